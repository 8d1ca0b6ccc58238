//! The backward pass: its operators are below the modules of the operators of the forward pass that they belong to.

use rustc_hash::FxHashMap;
use whywait_devices::{Contexts, NONE, Placed};

use crate::columns::{Category, Sequence, Span};
use crate::names::{Meaning, Names};
use crate::regions::Regions;

/// Modules in which the operators of the forward pass are, for those of the backward pass.
#[derive(Default)]
pub(crate) struct Forward {
    backward: u32,
    modules: Contexts,
    /// Begin and path of the operators with a number.
    by_number: FxHashMap<i64, Vec<(i64, u32)>>,
}

/// Finds the modules of all operators with a number.
pub(crate) fn forward(threads: &[Vec<Span>], names: &Names, sequences: &[Sequence], regions: &mut Regions) -> Forward {
    let mut forward = Forward::default();
    if !sequences.iter().any(|sequence| sequence.forward_thread > 0) {
        return forward;
    }
    forward.backward = regions.backward();
    for spans in threads {
        // Frames of modules are open one in another: those that have ended are dropped.
        let mut open: Vec<(i64, u32)> = Vec::new();
        for span in spans {
            while open.last().is_some_and(|(end, _)| *end <= span.begin) {
                open.pop();
            }
            if names.meaning(span.name) == Meaning::Module && span.category == Category::Frame {
                let parent = open.last().map_or(NONE, |(_, path)| *path);
                let region = regions.of_host(names, span.name, span.category);
                open.push((span.end, forward.modules.node(parent, region)));
            } else if let (Category::Op, Some(sequence)) = (span.category, sequence_of(span, names, sequences))
                && sequence.forward_thread <= 0
                && let Some((_, path)) = open.last()
            {
                forward.by_number.entry(sequence.number).or_default().push((span.begin, *path));
            }
        }
    }
    #[expect(clippy::iter_over_hash_type, reason = "each is sorted by itself")]
    for places in forward.by_number.values_mut() {
        places.sort_unstable();
    }
    forward
}

fn sequence_of<'a>(span: &Span, names: &Names, sequences: &'a [Sequence]) -> Option<&'a Sequence> {
    let is_other = matches!(names.meaning(span.name), Meaning::Communication | Meaning::Issue | Meaning::HostOperation);
    if span.category != Category::Op || is_other { None } else { sequences.get(span.detail as usize) }
}

impl Forward {
    /// The paths of modules below which the outermost operators of the backward pass are put, by their places.
    pub(crate) fn places(&self, spans: &[Span], placed: &[Placed], sequences: &[Sequence]) -> FxHashMap<u32, u32> {
        let mut found = FxHashMap::default();
        if self.by_number.is_empty() {
            return found;
        }
        // Up to where an operator of the backward pass is open.
        let mut until = i64::MIN;
        for (at, part) in (0..).zip(placed) {
            let span = &spans[part.span as usize];
            if span.category != Category::Op || part.begin < until {
                continue;
            }
            let Some(sequence) = sequences.get(span.detail as usize).filter(|sequence| sequence.forward_thread > 0)
            else {
                continue;
            };
            let Some(places) = self.by_number.get(&sequence.number) else { continue };
            let before = places.partition_point(|(begin, _)| *begin <= part.begin);
            if let Some((_, path)) = before.checked_sub(1).and_then(|last| places.get(last)) {
                found.insert(at, *path);
                until = part.end;
            }
        }
        found
    }

    /// The regions of a path, outermost first, below `backward`.
    pub(crate) fn path(&self, path: u32) -> Vec<u32> {
        let mut regions = self.modules.path(path);
        regions.insert(0, self.backward);
        regions
    }
}
