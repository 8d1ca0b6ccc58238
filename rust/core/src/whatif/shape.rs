//! Hypotheses on durations: which segments of which location get another length (whatif.md#what-can-be-changed).
//!
//! A *segment* is the time between two neighboring Enters or Leaves of a location; it belongs to the innermost region.
//! At the Leave of a call that waits only the own time of the call counts. Hypotheses work one after the other, each on
//! what the one before left.

use rayon::prelude::*;

use super::balance::{Balance, Balancing};
use super::cut::Cut;
use super::graph::Graph;
use super::selection::{Chooser, Part, Selection};
use crate::ids::{CallPathId, LocationId};
use crate::trace::{Shard, Trace};
use crate::{Error, Result};

/// Sums of times stay below this, so that no clock overflows, ticks.
const LONGEST: i128 = 1 << 61;

/// A change of durations.
#[derive(Clone, Debug)]
pub enum Hypothesis {
    /// Segments become `factor` times as long, those of less than `min_span` ticks excepted.
    Scale {
        /// What.
        selection: Selection,
        /// How many times.
        factor: f64,
        /// Shorter segments stay, ticks.
        min_span: i64,
    },
    /// Instances become so long.
    Set {
        /// What.
        selection: Selection,
        /// How long, ticks.
        ticks: i64,
    },
    /// Time moves between instances.
    Balance {
        /// What.
        selection: Selection,
        /// How.
        balancing: Balancing,
    },
    /// What communicates takes as long as the graph of a network of given numbers says, and what waits for nobody
    /// nothing.
    Network {
        /// Calls of communication libraries.
        selection: Selection,
    },
    /// Every segment becomes shorter by the overhead of the measurement, ticks; 10 ns stay.
    Overhead {
        /// How much, ticks.
        ticks: i64,
        /// What stays, ticks.
        least: i64,
    },
}

/// A segment with another length.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Change {
    /// Position of the event that ends it.
    pub position: u32,
    /// New length without waiting, ticks.
    pub ticks: i64,
}

/// The changed segments of each location, by position.
#[derive(Clone, Debug, Default)]
pub struct Shape(Vec<Vec<Change>>);

/// A selected segment.
#[derive(Clone, Copy, Debug)]
struct Segment {
    position: u32,
    /// Number among the selected instances of the location.
    instance: u32,
    ticks: i64,
    /// Whether it ends in a call that waits.
    waits: bool,
}

/// What is selected at a location.
#[derive(Clone, Debug, Default)]
struct Selected {
    segments: Vec<Segment>,
    instances: u32,
    /// Instances that the path, the ranks, the numbers and the window leave.
    left: [u64; 4],
}

impl Shape {
    /// The changed segments of a location.
    pub(super) fn of(&self, location: LocationId) -> &[Change] {
        self.0.get(location.index()).map_or(&[], Vec::as_slice)
    }

    /// Number of changed segments.
    #[must_use]
    pub fn len(&self) -> usize {
        self.0.iter().map(Vec::len).sum()
    }

    /// Whether nothing changed.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Applies hypotheses in their order.
    pub(super) fn new(
        trace: &Trace,
        graph: &Graph,
        cut: &Cut,
        hypotheses: &[Hypothesis],
    ) -> Result<(Self, Vec<String>)> {
        let mut shape = Self::default();
        if !cut.is_empty() {
            let nothing = |position| Change { position, ticks: 0 };
            let gone =
                |location| cut.of(location).iter().flat_map(|range| range.start() + 1..=*range.end()).map(nothing);
            shape.0 = (0..trace.definitions.locations.len())
                .map(LocationId::at)
                .map(|location| gone(location).collect())
                .collect();
        }
        let mut notes = Vec::new();
        for hypothesis in hypotheses {
            shape.apply(trace, graph, cut, hypothesis, &mut notes)?;
        }
        shape.check(trace)?;
        Ok((shape, notes))
    }

    fn apply(
        &mut self,
        trace: &Trace,
        graph: &Graph,
        cut: &Cut,
        hypothesis: &Hypothesis,
        notes: &mut Vec<String>,
    ) -> Result<()> {
        match hypothesis {
            Hypothesis::Scale { selection, factor, min_span } => {
                let selected = self.select(trace, graph, cut, selection)?;
                self.change(selected, |of| {
                    for segment in of.segments.iter_mut().filter(|segment| segment.ticks >= *min_span) {
                        segment.ticks = rounded(segment.ticks as f64 * factor)?;
                    }
                    Ok(())
                })
            }
            Hypothesis::Network { selection } => {
                let selected = self.select(trace, graph, cut, selection)?;
                self.change(selected, |of| {
                    of.segments.retain_mut(|segment| {
                        segment.ticks = 0;
                        !segment.waits
                    });
                    Ok(())
                })
            }
            Hypothesis::Set { selection, ticks } => {
                let selected = self.select(trace, graph, cut, selection)?;
                self.change(selected, |of| {
                    let lengths = vec![*ticks; of.instances as usize];
                    of.set(&lengths);
                    Ok(())
                })
            }
            Hypothesis::Balance { selection, balancing } => {
                let mut selected = self.select(trace, graph, cut, selection)?;
                let times: Vec<Vec<i64>> = selected.par_iter().map(Selected::times).collect();
                let without = trace.definitions.processes.len() - with_instances(trace, &times);
                if without > 0 {
                    notes.push(format!("{}: {without} processes have no instance and take no part", selection.text));
                }
                if times.iter().filter(|of| !of.is_empty()).count() == 1 {
                    notes.push(format!("{}: only one location has instances, so no time can move", selection.text));
                }
                if balancing.mode == Balance::Instance && !is_alike(trace, selection, &times) {
                    notes.push(format!(
                        "{}: not all locations call the same from it, so the n-th instances need not belong together",
                        selection.text
                    ));
                }
                let lengths = balancing.apply(trace, &times, &selection.text)?;
                selected.par_iter_mut().zip(&lengths).for_each(|(of, lengths)| of.set(lengths));
                self.change(selected, |_| Ok(()))
            }
            Hypothesis::Overhead { ticks, least } => {
                let all = Selection {
                    roots: vec![true; trace.tree.len()],
                    text: "overhead".to_owned(),
                    ..Selection::default()
                };
                let selected = self.select(trace, graph, cut, &all)?;
                self.change(selected, |of| {
                    for segment in &mut of.segments {
                        segment.ticks = (segment.ticks - ticks).max(segment.ticks.min(*least));
                    }
                    Ok(())
                })
            }
        }
    }

    /// Lets `alter` change the segments of each location, and takes them over.
    fn change(&mut self, selected: Vec<Selected>, alter: impl Fn(&mut Selected) -> Result<()> + Sync) -> Result<()> {
        self.0.resize(selected.len(), Vec::new());
        self.0.par_iter_mut().zip(selected).try_for_each(|(changes, mut of)| {
            alter(&mut of)?;
            of.segments.sort_unstable_by_key(|segment| segment.position);
            let news = of.segments.iter().map(|&Segment { position, ticks, .. }| Change { position, ticks });
            *changes = merge(changes, news);
            Ok(())
        })
    }

    fn select(&self, trace: &Trace, graph: &Graph, cut: &Cut, selection: &Selection) -> Result<Vec<Selected>> {
        let locations = 0..trace.definitions.locations.len();
        let selected: Vec<Selected> = locations
            .into_par_iter()
            .map(|location| self.select_at(trace, graph, (cut, selection), LocationId::at(location)))
            .collect();
        let left = selected.iter().fold([0u64; 4], |sum, of| std::array::from_fn(|i| sum[i] + of.left[i]));
        let text = &selection.text;
        let why = match left {
            [0, ..] => "the run has no instance of it",
            [_, 0, ..] => "the ranks have no instance of it",
            [_, _, 0, _] => "there are no instances with these numbers",
            [_, _, _, 0] => "no instance begins in the window",
            _ if selected.iter().all(|of| of.segments.is_empty()) => "its instances have no such part",
            _ => return Ok(selected),
        };
        Err(Error::Usage(format!("{text} selects nothing: {why}")))
    }

    fn select_at(
        &self,
        trace: &Trace,
        graph: &Graph,
        (cut, selection): (&Cut, &Selection),
        location: LocationId,
    ) -> Selected {
        let shard = trace.shard(location);
        let i = shard.local(location);
        let mut selected = Selected::default();
        if !shard.profile.of(i).iter().any(|cell| selection.roots[cell.callpath]) {
            return selected;
        }
        let mut segments = graph.segments(shard, location);
        let mut changes = self.of(location).iter().peekable();
        let mut frames: Vec<Frame> = Vec::new();
        let mut chooser = Chooser::new(selection, shard, i);
        let (mut next, end) = (shard.event_offsets[i], shard.event_offsets[i + 1]);
        while next < end {
            if frames.is_empty() {
                // Nothing before is about any of them.
                let Some(enter) = shard.events.next_enter(next..end, &selection.roots) else { break };
                next = enter;
            }
            let position = next;
            next += 1;
            let is_leave = shard.events.is_leave(position);
            if let Some(frame) = frames.last_mut() {
                let number = frame.segments;
                frame.segments += 1;
                let is_part = match selection.part {
                    None => true,
                    Some(Part::Nth(part)) => part == number,
                    Some(Part::Last) => is_leave,
                };
                if let Some(instance) =
                    frame.selected.filter(|_| is_part && frame.counts && !cut.encloses(location, position))
                {
                    let (own, waits) = segments.before(position);
                    while changes.next_if(|change| change.position < position).is_some() {}
                    let changed = changes.next_if(|change| change.position == position);
                    let ticks = changed.map_or(own, |change| change.ticks);
                    selected.segments.push(Segment { position, instance, ticks, waits });
                }
            }
            if is_leave {
                frames.pop();
                continue;
            }
            let callpath = shard.events.callpath(position);
            let around = frames.last().and_then(|frame| frame.selected).filter(|_| !selection.below.is_empty());
            let mut frame =
                Frame { selected: around, counts: selection.below.get(callpath.index()) != Some(&false), segments: 0 };
            if around.is_none()
                && chooser.chooses(callpath, shard.events.time[position as usize])
                && !cut.has(location, position)
            {
                frame.selected = Some(selected.instances);
                selected.instances += 1;
            }
            frames.push(frame);
        }
        selected.left = chooser.left;
        selected
    }

    /// An error if times could leave the clock.
    fn check(&self, trace: &Trace) -> Result<()> {
        let longer = |location: LocationId| {
            let shard: &Shard = trace.shard(location);
            let time = &shard.events.time;
            let grown = |change: &Change| {
                let p = change.position as usize;
                i128::from(change.ticks - (time[p] - time[p - 1])).max(0)
            };
            self.of(location).iter().map(grown).sum::<i128>()
        };
        let total: i128 = (0..self.0.len()).into_par_iter().map(LocationId::at).map(longer).sum();
        if total < LONGEST { Ok(()) } else { Err(Error::Usage("the changed run is longer than the clock".into())) }
    }
}

/// A region that has been entered and not left.
struct Frame {
    /// Number of the selected instance that its time belongs to.
    selected: Option<u32>,
    counts: bool,
    /// Segments that have ended.
    segments: u32,
}

impl Selected {
    /// Time of each instance, ticks.
    fn times(&self) -> Vec<i64> {
        let mut times = vec![0; self.instances as usize];
        for segment in &self.segments {
            times[segment.instance as usize] += segment.ticks;
        }
        times
    }

    /// Gives each instance a new length: its segments in proportion, the rest to the longest.
    fn set(&mut self, lengths: &[i64]) {
        self.segments.sort_by_key(|segment| (segment.instance, segment.position));
        for of in self.segments.chunk_by_mut(|a, b| a.instance == b.instance) {
            let (old, new) = (of.iter().map(|segment| segment.ticks).sum::<i64>(), lengths[of[0].instance as usize]);
            let longest = of.iter().enumerate().rev().max_by_key(|(_, segment)| segment.ticks).map_or(0, |(i, _)| i);
            if old == 0 {
                let last = of.len() - 1;
                of[last].ticks = new;
                continue;
            }
            let mut rest = new;
            for segment in &mut *of {
                segment.ticks = (i128::from(segment.ticks) * i128::from(new) / i128::from(old)) as i64;
                rest -= segment.ticks;
            }
            of[longest].ticks += rest;
        }
    }
}

/// Rounds to the nearest, halves to the even one.
fn rounded(ticks: f64) -> Result<i64> {
    let ticks = ticks.round_ties_even();
    if ticks.abs() < LONGEST as f64 {
        Ok(ticks as i64)
    } else {
        Err(Error::Usage("the changed run is longer than the clock".into()))
    }
}

/// Both lists by position; of two at one position that of the second.
fn merge(old: &[Change], new: impl Iterator<Item = Change>) -> Vec<Change> {
    if old.is_empty() {
        return new.collect();
    }
    let mut old = old.iter().copied().peekable();
    let mut merged = Vec::new();
    for change in new {
        while let Some(before) = old.next_if(|before| before.position < change.position) {
            merged.push(before);
        }
        old.next_if(|before| before.position == change.position);
        merged.push(change);
    }
    merged.extend(old);
    merged
}

/// Whether what is selected calls the same everywhere.
fn is_alike(trace: &Trace, selection: &Selection, times: &[Vec<i64>]) -> bool {
    let called = |location: usize| {
        let shard = trace.shard(LocationId::at(location));
        let cells = shard.profile.of(shard.local(LocationId::at(location))).iter();
        let parent = |callpath: CallPathId| trace.tree.nodes()[callpath].parent;
        let is_called = |callpath: CallPathId| selection.roots.get(parent(callpath).index()) == Some(&true);
        let mut called: Vec<CallPathId> = cells.map(|cell| cell.callpath).filter(|&path| is_called(path)).collect();
        called.sort_unstable();
        called
    };
    let mut all = (0..times.len()).filter(|&location| !times[location].is_empty()).map(called);
    let first = all.next();
    all.all(|called| Some(called) == first)
}

fn with_instances(trace: &Trace, times: &[Vec<i64>]) -> usize {
    let has =
        |process: &crate::trace::locations::Process| { process.locations }.any(|location| !times[location].is_empty());
    trace.definitions.processes.iter().filter(|process| has(process)).count()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn halves_go_to_the_even() {
        let half: Vec<i64> = [1, 2, 3].iter().filter_map(|&ticks| rounded(f64::from(ticks) * 0.5).ok()).collect();
        assert_eq!(half, [0, 1, 2]);
    }

    #[test]
    fn segments_change_in_proportion_and_the_rest_is_the_longest_ones() {
        let segment = |position, ticks| Segment { position, instance: 0, ticks, waits: false };
        let mut selected =
            Selected { segments: vec![segment(1, 1), segment(2, 5), segment(3, 1)], instances: 1, left: [1; 4] };
        selected.set(&[10]);
        assert_eq!(selected.segments.iter().map(|segment| segment.ticks).collect::<Vec<_>>(), [1, 8, 1]);
        selected.segments.iter_mut().for_each(|segment| segment.ticks = 0);
        selected.set(&[4]);
        assert_eq!(selected.segments.iter().map(|segment| segment.ticks).collect::<Vec<_>>(), [0, 0, 4]);
    }
}
