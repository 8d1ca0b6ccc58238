//! How far a location is.

use super::lanes::{add, in_lane};
use crate::focus::End;
use crate::ids::LocationId;
use crate::trace::{NONE, Trace};
use crate::whatif::changes::durations::{Change, Shape};
use crate::whatif::graph::steps::Graph;

/// Shifts of the first and the last event of a location, and of that at which the focus may end, under `K` hypotheses,
/// ticks.
pub(super) type Ends<const K: usize> = [[i64; K]; 3];

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
    /// The event at which the focus may end, until it is reached; [`NONE`] if there is none.
    pub focus_end: u32,
    pub is_done: bool,
}

impl<const K: usize> Walk<K> {
    pub(super) fn new(trace: &Trace, graph: &Graph, shape: &Shape, focus: &[End], location: LocationId) -> Self {
        Self {
            shift: [0; K],
            cursor: 0,
            next: shape.of(location).first().map_or(NONE, |change| change.position),
            step: graph.steps_of(location).start as u32,
            parked: NONE,
            focus_end: match focus[location] {
                End::Call(position) => position,
                End::Nowhere | End::Last => NONE,
            },
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

    /// The shift of the event at which the focus may end: all steps at it have been passed.
    #[cold]
    pub(super) fn end_focus(&mut self, changes: &[Change]) -> [i64; K] {
        self.advance(changes, self.focus_end + 1);
        self.focus_end = NONE;
        self.shift
    }
}
