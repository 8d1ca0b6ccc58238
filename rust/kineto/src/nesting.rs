//! What of a thread's spans is on call paths.

use whywait_devices::{Placed, Spanning};

use crate::columns::{Category, SHORT_FRAME, Span};
use crate::names::{Meaning, Names};
use crate::options::Paths;
use crate::regions::{EVALUATED, Regions};

impl Spanning for Span {
    fn begin(&self) -> i64 {
        self.begin
    }

    fn end(&self) -> i64 {
        self.end
    }

    /// The writer reconstructs frames.
    fn is_drawn(&self) -> bool {
        self.category == Category::Frame
    }

    fn is_overhead(&self) -> bool {
        self.category == Category::Overhead
    }
}

/// Decides what is on call paths, and gives each span its region.
pub(crate) fn keep(
    placed: &mut [Placed],
    spans: &[Span],
    names: &Names,
    regions: &mut Regions,
    paths: Paths,
) -> Vec<u32> {
    // Length of what is directly inside each frame, and whether another frame is.
    let mut inside: Vec<(i64, bool)> = vec![(0, false); placed.len()];
    for part in placed.iter() {
        if let Some(around) = inside.get_mut(part.parent as usize) {
            around.0 = around.0.saturating_add(part.end - part.begin);
            around.1 |= spans[part.span as usize].category == Category::Frame;
        }
    }
    let of: Vec<u32> = placed
        .iter()
        .map(|part| {
            let span = &spans[part.span as usize];
            regions.of_host(names, span.name, span.category)
        })
        .collect();
    for at in 0..placed.len() {
        let part = placed[at];
        let span = &spans[part.span as usize];
        placed[at].is_kept = match span.category {
            Category::Frame => match (paths, names.meaning(span.name)) {
                (Paths::Op, _) => false,
                (Paths::Python | Paths::All, _) | (_, Meaning::Module | Meaning::OwnFrame) => true,
                (Paths::Module, _) => {
                    let (length, has_frames) = inside[at];
                    !has_frames && (part.end - part.begin).saturating_sub(length) >= SHORT_FRAME
                }
            },
            // An operator within its own evaluation by the engine.
            _ => match placed.get(part.parent as usize) {
                Some(around) if of[at] == of[part.parent as usize] => {
                    !names.get(spans[around.span as usize].name).starts_with(EVALUATED)
                }
                _ => true,
            },
        };
    }
    of
}
