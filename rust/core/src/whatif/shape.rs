//! Hypotheses on durations: which segments of which location get another length (whatif.md#what-can-be-changed).
//!
//! A *segment* is the time between two neighboring Enters or Leaves of a location; it belongs to the innermost region.
//! At the Leave of a call that waits only the own time of the call counts. Hypotheses work one after the other, each on
//! what the one before left.

use std::borrow::Cow;

use rayon::prelude::*;

use super::balance::{Balance, Balancing};
use super::cut::Cut;
use super::graph::Graph;
use super::selection::{Chooser, Part, Selection};
use crate::ids::{CallPathId, LocationId};
use crate::trace::Trace;
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
    /// Every segment becomes shorter by the overhead of the measurement.
    Overhead {
        /// How much, ticks.
        ticks: i64,
        /// What stays, ticks.
        least: i64,
    },
}

impl Hypothesis {
    /// What it is about; nothing if it is about all of the run.
    fn selection(&self) -> Option<&Selection> {
        match self {
            Self::Scale { selection, .. }
            | Self::Set { selection, .. }
            | Self::Balance { selection, .. }
            | Self::Network { selection } => Some(selection),
            Self::Overhead { .. } => None,
        }
    }
}

/// A segment with another length.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Change {
    /// Position of the event that ends it.
    pub position: u32,
    /// How much longer it is than measured, waiting included, ticks.
    pub growth: i64,
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

    /// Applies hypotheses in their order; also what is to be said of them.
    pub(super) fn new(
        trace: &Trace,
        graph: &Graph,
        cut: &Cut,
        hypotheses: &[Hypothesis],
    ) -> Result<(Self, Vec<String>)> {
        let mut shape = Self::cut(trace, cut);
        let mut notes = Vec::new();
        for hypothesis in hypotheses {
            let selected = shape.select(trace, graph, cut, hypothesis)?;
            shape.apply(trace, hypothesis, Cow::Owned(selected), &mut notes)?;
        }
        shape.check()?;
        Ok((shape, notes))
    }

    /// Applies several lists of hypotheses, each to the measured run. Where lists begin with the same selection it is
    /// looked for once.
    pub(super) fn all(trace: &Trace, graph: &Graph, cut: &Cut, lists: &[Vec<Hypothesis>]) -> Result<Vec<Self>> {
        let measured = Self::cut(trace, cut);
        let begins_with = |list: &Vec<Hypothesis>| list.first().and_then(Hypothesis::selection).cloned();
        let begins: Vec<Option<Selection>> = lists.iter().map(begins_with).collect();
        let mut shapes = vec![None; lists.len()];
        for (first, begin) in begins.iter().enumerate() {
            if shapes[first].is_some() {
                continue;
            }
            let Some(begin) = begin else {
                shapes[first] = Some(Self::new(trace, graph, cut, &lists[first])?.0);
                continue;
            };
            let selected = measured.select_all(trace, graph, cut, begin)?;
            for other in (first..lists.len()).filter(|&other| begins[other].as_ref() == Some(begin)) {
                let mut shape = measured.clone();
                for (i, hypothesis) in lists[other].iter().enumerate() {
                    let selected = match i {
                        0 => Cow::Borrowed(&selected[..]),
                        _ => Cow::Owned(shape.select(trace, graph, cut, hypothesis)?),
                    };
                    shape.apply(trace, hypothesis, selected, &mut Vec::new())?;
                }
                shape.check()?;
                shapes[other] = Some(shape);
            }
        }
        Ok(shapes.into_iter().flatten().collect())
    }

    /// What is cut takes no time.
    fn cut(trace: &Trace, cut: &Cut) -> Self {
        if cut.is_empty() {
            return Self::default();
        }
        let locations = (0..trace.definitions.locations.len()).map(LocationId::at);
        let gone = |location| {
            let time = &trace.shard(location).events.time;
            let positions = cut.of(location).iter().flat_map(|range| range.start() + 1..=*range.end());
            let nothing = |position: u32| {
                let p = position as usize;
                Change { position, growth: time[p - 1] - time[p] }
            };
            positions.map(nothing).collect()
        };
        Self(locations.map(gone).collect())
    }

    /// Applies a hypothesis to what it selects.
    fn apply(
        &mut self,
        trace: &Trace,
        hypothesis: &Hypothesis,
        selected: Cow<'_, [Selected]>,
        notes: &mut Vec<String>,
    ) -> Result<()> {
        match hypothesis {
            Hypothesis::Scale { factor, min_span, .. } => self.change(trace, &selected, |segment| {
                let grows = segment.ticks >= *min_span;
                grows.then(|| rounded(segment.ticks as f64 * factor)).transpose()
            }),
            Hypothesis::Network { .. } => self.change(trace, &selected, |segment| Ok((!segment.waits).then_some(0))),
            Hypothesis::Overhead { ticks, least } => self
                .change(trace, &selected, |segment| Ok(Some((segment.ticks - ticks).max(segment.ticks.min(*least))))),
            Hypothesis::Set { ticks, .. } => {
                let mut selected = selected.into_owned();
                selected.par_iter_mut().for_each(|of| of.set(&vec![*ticks; of.instances as usize]));
                self.change(trace, &selected, |segment| Ok(Some(segment.ticks)))
            }
            Hypothesis::Balance { selection, balancing } => {
                let mut selected = selected.into_owned();
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
                self.change(trace, &selected, |segment| Ok(Some(segment.ticks)))
            }
        }
    }

    /// Gives selected segments the lengths that `length` says, if it says one.
    fn change(
        &mut self,
        trace: &Trace,
        selected: &[Selected],
        length: impl Fn(&Segment) -> Result<Option<i64>> + Sync,
    ) -> Result<()> {
        self.0.resize(selected.len(), Vec::new());
        self.0.par_iter_mut().zip(selected).enumerate().try_for_each(|(location, (changes, of))| {
            let time = &trace.shard(LocationId::at(location)).events.time;
            let mut news = Vec::with_capacity(of.segments.len());
            for segment in &of.segments {
                if let Some(ticks) = length(segment)? {
                    let p = segment.position as usize;
                    news.push(Change { position: segment.position, growth: ticks - (time[p] - time[p - 1]) });
                }
            }
            *changes = merge(std::mem::take(changes), news);
            Ok(())
        })
    }

    /// What a hypothesis is about.
    fn select(&self, trace: &Trace, graph: &Graph, cut: &Cut, hypothesis: &Hypothesis) -> Result<Vec<Selected>> {
        if let Some(selection) = hypothesis.selection() {
            return self.select_all(trace, graph, cut, selection);
        }
        let roots = vec![true; trace.tree.len()];
        let all = Selection { roots, text: "the run".to_owned(), ..Selection::default() };
        self.select_all(trace, graph, cut, &all)
    }

    fn select_all(&self, trace: &Trace, graph: &Graph, cut: &Cut, selection: &Selection) -> Result<Vec<Selected>> {
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
                    let p = position as usize;
                    let ticks =
                        changed.map_or(own, |change| change.growth + (shard.events.time[p] - shard.events.time[p - 1]));
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
    fn check(&self) -> Result<()> {
        let longer =
            |changes: &Vec<Change>| changes.iter().map(|change| change.growth.max(0)).fold(0, i64::saturating_add);
        let total: i128 = self.0.par_iter().map(|changes| i128::from(longer(changes))).sum();
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
        self.segments.sort_unstable_by_key(|segment| segment.position);
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
fn merge(old: Vec<Change>, new: Vec<Change>) -> Vec<Change> {
    if old.is_empty() {
        return new;
    }
    let mut old = old.into_iter().peekable();
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
