//! The steps of a training loop.

use std::cmp::Reverse;
use std::ops::Range;

use whywait_devices::NONE;

use crate::columns::{Category, Span};
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

/// Adds the parts of the steps that a record begins or ends within: what operators it has before its first step and after
/// its last one. The profiler writes only whole steps.
pub(crate) fn add_parts(threads: &mut [Vec<Span>], names: &Names, name: u32) {
    for spans in threads {
        let is_step = |span: &&Span| matches!(names.meaning(span.name), Meaning::Step(_));
        let (Some(&first), Some(&last)) = (spans.iter().find(is_step), spans.iter().rfind(is_step)) else { continue };
        let within = |step: Span, time: Range<i64>| {
            let around = |span: &&Span| span.begin <= step.begin && span.end >= step.end && span.name != step.name;
            let begin = spans.iter().filter(around).map(|span| span.begin).max().unwrap_or(i64::MIN).max(time.start);
            let end = spans.iter().filter(around).map(|span| span.end).min().unwrap_or(i64::MAX).min(time.end);
            let is_inside = |span: &&Span| span.begin >= begin && span.end <= end && span.end > span.begin;
            let is_work = |span: &Span| matches!(span.category, Category::Op | Category::Annotation);
            let inside: Vec<&Span> = spans.iter().filter(is_inside).collect();
            let begin = inside.iter().map(|span| span.begin).min()?;
            let end = inside.iter().map(|span| span.end).max()?;
            inside.into_iter().any(is_work).then_some((begin, end))
        };
        let before = within(first, i64::MIN..first.begin).map(|(begin, _)| (begin, first.begin));
        let after = within(last, last.end..i64::MAX).map(|(_, end)| (last.end, end));
        let part =
            |(begin, end)| Span { begin, end, name, thread: first.thread, detail: NONE, category: first.category };
        let parts: Vec<Span> = before.into_iter().chain(after).map(part).collect();
        if !parts.is_empty() {
            spans.extend(parts);
            spans.sort_by_key(|span| (span.begin, Reverse(span.end), span.category));
        }
    }
}
