//! How far a location is.

use super::lanes::{add, in_lane};
use crate::focus::{Edges, End};
use crate::ids::LocationId;
use crate::trace::{NONE, Trace};
use crate::whatif::changes::durations::{Change, Shape};
use crate::whatif::graph::steps::Graph;

/// Shifts of the first and the last event of a location, and of those at which the focus may begin and end, under `K`
/// hypotheses, ticks.
pub(super) type Ends<const K: usize> = [[i64; K]; 4];

/// The position of a location.
#[derive(Clone, Copy)]
pub(super) struct Walk<const K: usize> {
    /// Shift of the place that was reached.
    pub shift: [i64; K],
    /// Number of applied changes, and the position of the next; [`NONE`] after the last.
    cursor: u32,
    next: u32,
    /// The next step.
    pub step: u32,
    /// The place it waits for, or [`NONE`].
    pub parked: u32,
    /// The events at which the focus may begin and end, until they are reached, and the next of them; [`NONE`] if there is none.
    marks: [u32; 2],
    pub mark: u32,
    pub is_done: bool,
}

impl<const K: usize> Walk<K> {
    pub(super) fn new(trace: &Trace, graph: &Graph, shape: &Shape, focus: &[Edges], location: LocationId) -> Self {
        let Edges { begin, end } = focus[location];
        let end = if let End::Call(position) = end { position } else { NONE };
        let marks = [begin.unwrap_or(NONE), end];
        Self {
            shift: [0; K],
            cursor: 0,
            next: shape.of(location).first().map_or(NONE, |change| change.position),
            step: graph.steps_of(location).start as u32,
            parked: NONE,
            marks,
            mark: marks[0].min(marks[1]),
            is_done: !trace.owns(location),
        }
    }

    /// Applies the changes before an event; nothing waits in between.
    #[inline]
    pub(super) fn advance(&mut self, changes: &[Change], position: u32) {
        while self.next < position {
            let change = &changes[self.cursor as usize];
            // Sums of growths stay far from overflow (`Shape::check`).
            add(&mut self.shift, &in_lane(change.lane, change.growth));
            self.pass(changes, 1);
        }
    }

    /// The changes of the time before an event, if these are the next.
    #[inline]
    pub(super) fn changes_at<'a>(&self, changes: &'a [Change], position: u32) -> &'a [Change] {
        if self.next != position {
            return &[];
        }
        let next = &changes[self.cursor as usize..];
        let count = next.iter().take_while(|change| change.position == position).count();
        &next[..count]
    }

    /// Skips the next changes.
    #[inline]
    pub(super) fn pass(&mut self, changes: &[Change], count: usize) {
        self.cursor += count as u32;
        self.next = changes.get(self.cursor as usize).map_or(NONE, |change| change.position);
    }

    /// Keeps the shift of the next event at which the focus may begin or end: all steps at it have been passed.
    #[cold]
    pub(super) fn keep_mark(&mut self, changes: &[Change], ends: &mut Ends<K>) {
        self.advance(changes, self.mark + 1);
        for (mark, end) in self.marks.iter_mut().zip(&mut ends[2..]).filter(|(mark, _)| **mark == self.mark) {
            (*mark, *end) = (NONE, self.shift);
        }
        self.mark = self.marks[0].min(self.marks[1]);
    }
}
