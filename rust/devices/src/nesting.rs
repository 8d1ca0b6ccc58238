//! Spans of a thread as calls within calls.

use std::cmp::Reverse;
use std::collections::BinaryHeap;

use crate::NONE;

/// Spans may cross by what the profiler rounds, ns.
const ROUNDING: i64 = 1000;

/// What has a begin and an end.
pub trait Spanning {
    /// When it begins, ns.
    fn begin(&self) -> i64;

    /// When it ends, ns.
    fn end(&self) -> i64;

    /// Whether its times are drawn around those of others rather than measured.
    fn is_drawn(&self) -> bool {
        false
    }

    /// Whether it is the profiler's own: inside of what it delays, and around nothing, wherever it is recorded.
    fn is_overhead(&self) -> bool {
        false
    }
}

/// A span within another.
#[derive(Debug, Clone, Copy)]
pub struct Placed {
    /// When it begins and ends, ns.
    pub begin: i64,
    /// See `begin`.
    pub end: i64,
    /// Which span.
    pub span: u32,
    /// The place of the span around it, or [`NONE`].
    pub parent: u32,
    /// Whether it is on call paths.
    pub is_kept: bool,
    /// Whether it goes on after the span around it has ended.
    pub is_rest: bool,
}

/// Brings spans in order of begin into each other; the number of those that crossed another.
pub fn nest<S: Spanning>(spans: &[S]) -> (Vec<Placed>, u64) {
    let mut placed: Vec<Placed> = Vec::with_capacity(spans.len());
    let mut rests: BinaryHeap<Reverse<(i64, Reverse<i64>, u32)>> = BinaryHeap::new();
    let mut open: Vec<u32> = Vec::new();
    let mut crossings = 0;
    let mut next = 0;
    loop {
        let rest = rests.peek().map(|Reverse((begin, Reverse(end), _))| (*begin, Reverse(*end)));
        let span = spans.get(next).map(|span| (span.begin(), Reverse(span.end())));
        let is_rest = rest.is_some_and(|rest| span.is_none_or(|span| rest <= span));
        let (begin, mut end, span) = if is_rest {
            let Some(Reverse((begin, Reverse(end), span))) = rests.pop() else { break };
            (begin, end, span)
        } else {
            let Some(span) = spans.get(next) else { break };
            next += 1;
            (span.begin(), span.end(), next as u32 - 1)
        };
        while open.last().is_some_and(|top| placed[*top as usize].end <= begin) {
            open.pop();
        }
        while let Some(top) = open.last().map(|top| *top as usize)
            && spans[placed[top].span as usize].is_overhead()
        {
            placed[top].end = begin;
            open.pop();
        }
        while let Some((place, top)) = open.last().map(|top| (*top as usize, placed[*top as usize]))
            && top.end < end
        {
            crossings += 1;
            // Who draws a span rounds.
            let is_drawn = |span: u32| spans[span as usize].is_drawn();
            if is_drawn(top.span) && end - top.end > top.end - begin {
                // What loses less is cut: the call that begins a step ends in it.
                placed[place].end = begin;
                open.pop();
                continue;
            }
            let is_whole = is_drawn(span) || is_drawn(top.span) || spans[span as usize].is_overhead();
            if end - top.end > ROUNDING && !is_whole {
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

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[derive(Clone, Copy, PartialEq)]
    enum Kind {
        Measured,
        Drawn,
        Overhead,
    }
    use Kind::{Drawn, Measured, Overhead};

    /// Begin, end, and kind.
    struct Span(i64, i64, Kind);

    impl Spanning for Span {
        fn begin(&self) -> i64 {
            self.0
        }

        fn end(&self) -> i64 {
            self.1
        }

        fn is_drawn(&self) -> bool {
            self.2 == Drawn
        }

        fn is_overhead(&self) -> bool {
            self.2 == Overhead
        }
    }

    fn times(spans: &[Span]) -> Vec<(i64, i64)> {
        nest(spans).0.iter().map(|part| (part.begin, part.end)).collect()
    }

    #[test]
    fn what_crosses_is_cut_or_goes_on() {
        let rounded = [Span(0, 10_000, Measured), Span(5_000, 10_900, Measured)];
        assert_eq!(times(&rounded), [(0, 10_000), (5_000, 10_000)]);
        let drawn = [Span(0, 10_000, Drawn), Span(5_000, 12_000, Measured)];
        assert_eq!(times(&drawn), [(0, 10_000), (5_000, 10_000)]);
        let step = [Span(0, 10_000, Drawn), Span(9_000, 90_000, Measured)];
        assert_eq!(times(&step), [(0, 9_000), (9_000, 90_000)]);
        let overhead = [Span(0, 10_000, Measured), Span(5_000, 12_000, Overhead), Span(6_000, 7_000, Measured)];
        assert_eq!(times(&overhead), [(0, 10_000), (5_000, 6_000), (6_000, 7_000)]);
        let crossing = [Span(0, 10_000, Measured), Span(5_000, 20_000, Measured), Span(12_000, 13_000, Measured)];
        assert_eq!(times(&crossing), [(0, 10_000), (5_000, 10_000), (10_000, 20_000), (12_000, 13_000)]);
        assert_eq!(nest(&crossing).1, 1);
    }

    proptest! {
        #[test]
        fn all_is_nested(mut times in prop::collection::vec((0_i64..50_000, 0_i64..30_000), 0..40)) {
            times.sort_by_key(|(begin, length)| (*begin, -*length));
            let spans: Vec<Span> = times.iter().map(|(begin, length)| Span(*begin, begin + length, Measured)).collect();
            let placed = nest(&spans).0;
            for part in &placed {
                prop_assert!(part.begin <= part.end);
                if let Some(around) = placed.get(part.parent as usize) {
                    prop_assert!(around.begin <= part.begin && part.end <= around.end);
                }
            }
            prop_assert!(placed.is_sorted_by_key(|part| part.begin));
            // Nothing is lost but what is rounded.
            let length: i64 = spans.iter().map(|span| span.1 - span.0).sum();
            let kept: i64 = placed.iter().map(|part| part.end - part.begin).sum();
            prop_assert!(kept <= length && length - kept <= ROUNDING * spans.len() as i64 * 2);
        }
    }
}
