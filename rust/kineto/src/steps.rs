//! The steps of a training loop.

use crate::columns::Span;
use crate::names::{Meaning, Names};

/// The steps of a rank: begin, end and number of each, in order.
#[derive(Debug)]
pub(crate) struct Steps(Vec<(i64, i64, i64)>);

impl Steps {
    pub(crate) fn new(threads: &[Vec<Span>], names: &Names) -> Self {
        let step = |span: &Span| match names.meaning(span.name) {
            Meaning::Step(number) => Some((span.begin, span.end, number)),
            _ => None,
        };
        let mut steps: Vec<_> = threads.iter().flatten().filter_map(step).collect();
        steps.sort_unstable();
        Self(steps)
    }

    /// The step at a time.
    pub(crate) fn at(&self, time: i64) -> Option<i64> {
        let before = self.0.partition_point(|(begin, ..)| *begin <= time);
        let (_, end, number) = self.0.get(before.checked_sub(1)?)?;
        (time < *end).then_some(*number)
    }
}
