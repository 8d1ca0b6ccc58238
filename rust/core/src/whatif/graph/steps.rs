//! The dependency graph: the places in the events of each location that depend on others, or on which others depend.
//!
//! Between two of these *steps*, a location depends only on itself: it takes as long as measured, or as a hypothesis
//! says. All times are *shifts* against the measured run. The shift of a step follows from the place before it and the
//! sources of its arcs, less slack: `L' = max(E' + own, x' + weight)` of [`super::builder`] becomes
//! `s(L) = max(s(E) + E + own - L, s(x) + x + weight - L)`. In a run without changes, all shifts are 0.

use std::ops::Range;
use std::sync::OnceLock;

use super::border::Border;
use crate::ids::LocationId;
use crate::trace::Shard;

/// Kinds of steps.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(in crate::whatif) enum Kind {
    /// Between two events: others wait for it.
    Point,
    /// Between two events: it waits for others.
    Gate,
    /// Between two events: a thread of a team begins. It keeps its distance to the fork, not to its own previous event.
    Begin,
    /// An event without arcs in the measured run: it keeps its distance to the place before it.
    Event,
    /// An event whose arcs have determined the waiting before it, even if none of them is left.
    Judged,
}

impl Kind {
    /// Whether it lies between two events.
    #[inline]
    pub(in crate::whatif) fn is_stop(self) -> bool {
        matches!(self, Self::Point | Self::Gate | Self::Begin)
    }
}

/// A place in the events of a location that others wait for, or that waits for others.
#[derive(Clone, Copy, Debug)]
pub(in crate::whatif) struct Step {
    /// Own time less measured time since the place before, ticks; not positive, unless a wait was moved here.
    pub slack: i64,
    /// Position of its event, or of the event after it.
    pub position: u32,
    /// Begin of its arcs.
    pub arcs: u32,
}

/// Several places that wait for the latest member, or for the latest of the first few members.
#[derive(Clone, Debug)]
pub(in crate::whatif) struct Meeting {
    /// Range of its members among those of all meetings.
    pub members: Range<u32>,
    /// Range of its checkpoints among those of all meetings.
    pub checkpoints: Range<u32>,
    /// Whether, due to clock errors, its members arrived after the end of the wait; then their shifts count, not their
    /// times.
    pub is_late: bool,
}

/// The graph of a run. Its places are the steps, followed by the checkpoints, followed by the places that other processes
/// of the analysis tell about.
#[derive(Debug)]
pub(in crate::whatif) struct Graph {
    /// By location, in order of time; steps before an event precede the event.
    pub steps: Vec<Step>,
    /// Measured time of each step, ticks, and its kind.
    pub times: Vec<i64>,
    pub kinds: Vec<Kind>,
    /// End of the steps of each location, with a leading 0.
    pub offsets: Vec<u32>,
    /// Source and slack of each arc.
    pub sources: Vec<u32>,
    pub slacks: Vec<i64>,
    /// Ordered members of each meeting.
    pub members: Vec<u32>,
    /// Number of members that a checkpoint needs, and the measured time of the last of them.
    pub checkpoints: Vec<u32>,
    pub checkpoint_times: Vec<i64>,
    /// All meetings.
    pub meetings: Vec<Meeting>,
    /// The meeting of each checkpoint.
    pub meeting_of: Vec<u32>,
    /// Places of two epochs of one lock in a row: the Enters of their lock calls, the Leave of the first one's release,
    /// and the Enter of the call of the second one that waits for it.
    pub turns: Vec<[u32; 4]>,
    /// The place of each stop, by number.
    pub stops: Vec<u32>,
    /// What the processes of the analysis tell each other.
    pub border: Border,
    /// By place, the number of arcs and meetings that begin there, once they have been counted.
    pub references: OnceLock<Vec<u32>>,
}

impl Graph {
    /// Number of places.
    pub(in crate::whatif) fn places(&self) -> usize {
        self.steps.len() + self.checkpoints.len() + self.border.times.len()
    }

    /// The number of arcs and meetings that begin at each place.
    pub(in crate::whatif) fn references(&self) -> &[u32] {
        self.references.get_or_init(|| {
            let mut references = vec![0; self.places()];
            for &place in self.sources.iter().chain(&self.members) {
                references[place as usize] += 1;
            }
            references
        })
    }

    /// The steps of a location.
    #[inline]
    pub(in crate::whatif) fn steps_of(&self, location: LocationId) -> Range<usize> {
        self.offsets[location] as usize..self.offsets[location.index() + 1] as usize
    }

    /// The arcs to a step.
    #[inline]
    pub(in crate::whatif) fn arcs(&self, step: usize) -> Range<usize> {
        let end = self.steps.get(step + 1).map_or(self.sources.len(), |next| next.arcs as usize);
        self.steps[step].arcs as usize..end
    }

    /// The checkpoint of a place, if it is one.
    #[inline]
    pub(in crate::whatif) fn checkpoint(&self, place: u32) -> Option<usize> {
        (place as usize).checked_sub(self.steps.len()).filter(|&number| number < self.checkpoints.len())
    }

    /// The place of a checkpoint.
    #[inline]
    pub(in crate::whatif) fn place_of_checkpoint(&self, checkpoint: usize) -> u32 {
        (self.steps.len() + checkpoint) as u32
    }

    /// Measured time of a place, ticks.
    #[inline]
    pub(in crate::whatif) fn time(&self, place: u32) -> i64 {
        match (place as usize).checked_sub(self.steps.len()) {
            None => self.times[place as usize],
            Some(number) => match self.checkpoint_times.get(number) {
                Some(time) => *time,
                None => self.border.times[number - self.checkpoints.len()],
            },
        }
    }

    /// The segments of a location, for increasing events.
    pub(in crate::whatif) fn segments<'a>(&'a self, shard: &'a Shard, location: LocationId) -> Segments<'a> {
        let begin = shard.event_offsets[shard.local(location)];
        Segments { graph: self, time: &shard.events.time, begin, steps: self.steps_of(location) }
    }
}

/// Visits the segments of a location in order of their events.
pub(in crate::whatif) struct Segments<'a> {
    graph: &'a Graph,
    time: &'a [i64],
    /// Position of the first event.
    begin: u32,
    steps: Range<usize>,
}

impl Segments<'_> {
    /// Begins at a step.
    pub(in crate::whatif) fn from(mut self, step: usize) -> Self {
        self.steps.start = step;
        self
    }

    /// Ticks of the segment before an event that are not waiting, and whether arcs have determined its end; events must
    /// be requested in order.
    #[inline]
    pub(in crate::whatif) fn before(&mut self, position: u32) -> (i64, bool) {
        while self.steps.clone().next().is_some_and(|step| self.graph.steps[step].position < position) {
            self.steps.start += 1;
        }
        let (mut own, mut waits) = (0, false);
        let mut since = if position > self.begin { self.time[position as usize - 1] } else { i64::MIN };
        let mut any = false;
        for index in self.steps.clone() {
            let step = &self.graph.steps[index];
            if step.position != position {
                break;
            }
            let time = self.graph.times[index];
            own += step.slack + if since == i64::MIN { 0 } else { time - since };
            since = time;
            waits = self.graph.kinds[index] == Kind::Judged;
            any = true;
        }
        if !any && position > self.begin {
            own = self.time[position as usize] - since;
        }
        (own, waits)
    }
}
