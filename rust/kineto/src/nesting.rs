//! Spans of a thread as calls within calls, and what of them is on call paths.

use std::cmp::Reverse;
use std::collections::BinaryHeap;

use crate::columns::{Category, NONE, SHORT_FRAME, Span};
use crate::names::{Meaning, Names};
use crate::options::Paths;
use crate::regions::{EVALUATED, Regions};

/// Spans may cross by what the profiler rounds, ns.
const ROUNDING: i64 = 1000;

/// A span within another.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Placed {
    pub(crate) begin: i64,
    pub(crate) end: i64,
    /// Which span.
    pub(crate) span: u32,
    /// The place of the span around it.
    pub(crate) parent: u32,
    /// Whether it is on call paths.
    pub(crate) is_kept: bool,
    /// Whether it goes on after the span around it has ended.
    pub(crate) is_rest: bool,
}

/// Brings spans in order of begin into each other; the number of those that crossed another.
pub(crate) fn nest(spans: &[Span]) -> (Vec<Placed>, u64) {
    let mut placed: Vec<Placed> = Vec::with_capacity(spans.len());
    let mut rests: BinaryHeap<Reverse<(i64, Reverse<i64>, u32)>> = BinaryHeap::new();
    let mut open: Vec<u32> = Vec::new();
    let mut crossings = 0;
    let mut next = 0;
    loop {
        let rest = rests.peek().map(|Reverse((begin, Reverse(end), _))| (*begin, Reverse(*end)));
        let span = spans.get(next).map(|span| (span.begin, Reverse(span.end)));
        let is_rest = rest.is_some_and(|rest| span.is_none_or(|span| rest <= span));
        let (begin, mut end, span) = if is_rest {
            let Some(Reverse((begin, Reverse(end), span))) = rests.pop() else { break };
            (begin, end, span)
        } else {
            let Some(span) = spans.get(next) else { break };
            next += 1;
            (span.begin, span.end, next as u32 - 1)
        };
        while open.last().is_some_and(|top| placed[*top as usize].end <= begin) {
            open.pop();
        }
        while let Some((place, top)) = open.last().map(|top| (*top as usize, placed[*top as usize]))
            && top.end < end
        {
            crossings += 1;
            let is_frame = |span: u32| spans[span as usize].category == Category::Frame;
            // The writer reconstructs frames, and rounds.
            if is_frame(top.span) && end - top.end > top.end - begin {
                // What loses less is cut: the call that begins a step ends in it.
                placed[place].end = begin;
                open.pop();
                continue;
            }
            let is_drawn = is_frame(span) || is_frame(top.span);
            if end - top.end > ROUNDING && !is_drawn {
                rests.push(Reverse((top.end, Reverse(end), span)));
            }
            end = top.end;
        }
        let parent = open.last().copied().unwrap_or(NONE);
        open.push(placed.len() as u32);
        placed.push(Placed { begin, end, span, parent, is_kept: true, is_rest });
    }
    (placed, crossings)
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

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn span(begin: i64, end: i64, category: Category) -> Span {
        Span { begin, end, name: 0, thread: 0, detail: NONE, category }
    }

    fn times(spans: &[Span]) -> Vec<(i64, i64)> {
        nest(spans).0.iter().map(|part| (part.begin, part.end)).collect()
    }

    #[test]
    fn what_crosses_is_cut_or_goes_on() {
        use Category::{Frame, Op};
        let rounded = [span(0, 10_000, Op), span(5_000, 10_900, Op)];
        assert_eq!(times(&rounded), [(0, 10_000), (5_000, 10_000)]);
        let frame = [span(0, 10_000, Frame), span(5_000, 12_000, Op)];
        assert_eq!(times(&frame), [(0, 10_000), (5_000, 10_000)]);
        let step = [span(0, 10_000, Frame), span(9_000, 90_000, Op)];
        assert_eq!(times(&step), [(0, 9_000), (9_000, 90_000)]);
        let crossing = [span(0, 10_000, Op), span(5_000, 20_000, Op), span(12_000, 13_000, Op)];
        assert_eq!(times(&crossing), [(0, 10_000), (5_000, 10_000), (10_000, 20_000), (12_000, 13_000)]);
        assert_eq!(nest(&crossing).1, 1);
    }

    proptest! {
        #[test]
        fn all_is_nested(mut times in prop::collection::vec((0_i64..50_000, 0_i64..30_000), 0..40)) {
            times.sort_by_key(|(begin, length)| (*begin, -*length));
            let spans: Vec<Span> = times.iter().map(|(begin, length)| span(*begin, begin + length, Category::Op)).collect();
            let placed = nest(&spans).0;
            for part in &placed {
                prop_assert!(part.begin <= part.end);
                if let Some(around) = placed.get(part.parent as usize) {
                    prop_assert!(around.begin <= part.begin && part.end <= around.end);
                }
            }
            prop_assert!(placed.is_sorted_by_key(|part| part.begin));
            // Nothing is lost but what is rounded.
            let length: i64 = spans.iter().map(|span| span.end - span.begin).sum();
            let kept: i64 = placed.iter().map(|part| part.end - part.begin).sum();
            prop_assert!(kept <= length && length - kept <= ROUNDING * spans.len() as i64 * 2);
        }
    }
}
