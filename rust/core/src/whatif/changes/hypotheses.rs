//! Hypotheses on durations: new lengths of segments (whatif.md#what-can-be-changed).
//!
//! Hypotheses are applied in order, each to the result of the previous one.

use std::sync::Arc;

use super::balance::{Balance, Balancing};
use super::cut::Cut;
use super::durations::{Change, Shape};
use super::segments::{self, Patterns, Segment, Selected};
use super::selection::Selection;
use crate::account::Excess;
use crate::ids::{CallPathId, LocationId};
use crate::parallel::iter::prelude::*;
use crate::trace::Trace;
use crate::trace::shard::ProfileCell;
use crate::whatif::graph::steps::Graph;
use crate::{Error, Result};

/// Sums of times stay below this, so that no clock overflows, ticks.
const LONGEST: i128 = 1 << 61;

/// Lanes whose hypotheses cannot be applied, and why.
pub(in crate::whatif) type Refused = Vec<(u32, String)>;

/// A change of durations.
#[derive(Clone, Debug)]
pub enum Hypothesis {
    /// Segments become `factor` times as long, except those shorter than `min_span` ticks.
    Scale {
        /// What.
        selection: Selection,
        /// The factor.
        factor: f64,
        /// Shorter segments do not change, ticks.
        min_span: i64,
    },
    /// Instances get a given length.
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
    /// Calls become as fast as the fastest of their kind.
    Trim {
        /// What.
        selection: Selection,
        /// What calls take beyond that.
        excess: Arc<Excess>,
    },
    /// Communication takes as long as the graph of a given network says; calls that do not wait take no time.
    Network {
        /// Calls of communication libraries.
        selection: Selection,
    },
    /// Every segment becomes shorter by the overhead of the measurement.
    Overhead {
        /// The overhead of an event, ticks.
        ticks: i64,
        /// The shortest remaining length, ticks.
        least: i64,
    },
}

impl Hypothesis {
    /// The selection that it changes; `None` for the whole run.
    fn selection(&self) -> Option<&Selection> {
        match self {
            Self::Scale { selection, .. }
            | Self::Set { selection, .. }
            | Self::Balance { selection, .. }
            | Self::Trim { selection, .. }
            | Self::Network { selection } => Some(selection),
            Self::Overhead { .. } => None,
        }
    }
}

impl Shape {
    /// Applies hypotheses in order; also returns notes on them. Collective.
    pub(in crate::whatif) fn new(
        trace: &Trace,
        graph: &Graph,
        cut: &Cut,
        hypotheses: &[Hypothesis],
    ) -> Result<(Self, Vec<String>)> {
        let mut notes = Vec::new();
        let mut shape = Self::cut(trace, cut);
        for hypothesis in hypotheses {
            let (news, refused) = shape.apply(trace, graph, cut, &[(0, hypothesis)], &mut notes)?;
            if let Some((_, error)) = refused.into_iter().next() {
                return Err(Error::Usage(error));
            }
            shape.0.resize(news.len(), Vec::new());
            shape.0.par_iter_mut().zip(news).for_each(|(changes, news)| {
                *changes = merge(std::mem::take(changes), news);
            });
        }
        shape.check(trace, 1)?.into_iter().next().map_or(Ok((shape, notes)), |(_, error)| Err(Error::Usage(error)))
    }

    /// Applies several lists of hypotheses to the measured run, each in its lane. One pass over the trace finds the
    /// selections of all lanes. Also returns the lanes whose hypotheses cannot be applied; their results are
    /// meaningless. Collective.
    pub(in crate::whatif) fn lanes(
        trace: &Trace,
        graph: &Graph,
        cut: &Cut,
        lists: &[Vec<Hypothesis>],
    ) -> Result<(Self, Refused)> {
        let measured = Self::cut(trace, cut);
        let singles: Vec<(u32, &Hypothesis)> =
            (0..).zip(lists).filter(|(_, list)| list.len() == 1).map(|(lane, list)| (lane, &list[0])).collect();
        let (mut changes, mut refused) = measured.apply(trace, graph, cut, &singles, &mut Vec::new())?;
        changes.resize(trace.definitions.locations.len(), Vec::new());
        for (lane, list) in (0..).zip(lists) {
            let own = match &list[..] {
                [_] | [] => measured.clone(),
                list => match Self::new(trace, graph, cut, list) {
                    Ok((shape, _)) => shape,
                    Err(Error::Usage(error)) => {
                        refused.push((lane, error));
                        measured.clone()
                    }
                    Err(error) => return Err(error),
                },
            };
            add(&mut changes, own.0, lane);
        }
        let mut shape = Self(changes);
        for (lane, error) in shape.check(trace, lists.len())? {
            shape.0.par_iter_mut().for_each(|changes| changes.retain(|change| change.lane != lane));
            refused.push((lane, error));
        }
        Ok((shape, refused))
    }

    /// Removes the time of cut events.
    fn cut(trace: &Trace, cut: &Cut) -> Self {
        if cut.is_empty() {
            return Self::default();
        }
        let locations = (0..trace.definitions.locations.len()).map(LocationId::at);
        let gone = |location| {
            if cut.of(location).is_empty() {
                return Vec::new();
            }
            let time = &trace.shard(location).events.time;
            let positions = cut.of(location).iter().flat_map(|range| range.start() + 1..=*range.end());
            let nothing = |position: u32| {
                let p = position as usize;
                Change { position, lane: 0, growth: time[p - 1] - time[p] }
            };
            positions.map(nothing).collect()
        };
        Self(locations.map(gone).collect())
    }

    /// The changes of hypotheses to this shape, each in its own lane, by location; and the lanes whose hypothesis
    /// cannot be applied.
    fn apply(
        &self,
        trace: &Trace,
        graph: &Graph,
        cut: &Cut,
        hypotheses: &[(u32, &Hypothesis)],
        notes: &mut Vec<String>,
    ) -> Result<(Vec<Vec<Change>>, Refused)> {
        if hypotheses.is_empty() {
            return Ok(<_>::default());
        }
        let all = Selection { roots: vec![true; trace.tree.len()], text: "the run".to_owned(), ..Selection::default() };
        let mut selections: Vec<&Selection> = Vec::new();
        let mut of_selection: Vec<Vec<(u32, &Hypothesis)>> = Vec::new();
        for &(lane, hypothesis) in hypotheses {
            let selection = hypothesis.selection().unwrap_or(&all);
            if let Some(known) = selections.iter().position(|&known| known == selection) {
                of_selection[known].push((lane, hypothesis));
            } else {
                selections.push(selection);
                of_selection.push(vec![(lane, hypothesis)]);
            }
        }
        let sees = |changes: &mut Vec<Change>, selection: usize, segment: &Segment| {
            let mut keeps = false;
            for &(lane, hypothesis) in &of_selection[selection] {
                if hypothesis.needs_all() {
                    keeps = true;
                } else if let Some(ticks) = hypothesis.length(segment).filter(|&ticks| ticks != segment.ticks) {
                    changes.push(segment.change(lane, ticks));
                }
            }
            keeps
        };
        // Most instances have one segment, and most hypotheses change it.
        let room = |cells: &[ProfileCell]| {
            let mut room = 0;
            for (selection, hypotheses) in selections.iter().zip(&of_selection) {
                let visits = cells.iter().filter(|cell| selection.roots.get(cell.callpath.index()) == Some(&true));
                room += hypotheses.len() * visits.map(|cell| cell.visits as usize).sum::<usize>();
            }
            Vec::with_capacity(room)
        };
        let (selected, mut changes) = segments::select(trace, graph, (cut, self), &selections, room, sees)?;
        let mut refused = Refused::new();
        for (selected, hypotheses) in selected.into_iter().zip(&of_selection) {
            let selected = match selected {
                Ok(selected) => selected,
                Err(error) => {
                    refused.extend(hypotheses.iter().map(|&(lane, _)| (lane, error.clone())));
                    continue;
                }
            };
            for &(lane, hypothesis) in hypotheses.iter().filter(|(_, hypothesis)| hypothesis.needs_all()) {
                match hypothesis.redo(trace, selected.clone(), notes) {
                    Ok(redone) => {
                        let change = |segment: &Segment| segment.change(lane, segment.ticks);
                        let news = redone.into_iter().map(|of| of.segments.iter().map(change).collect()).collect();
                        add(&mut changes, news, lane);
                    }
                    Err(Error::Usage(error)) => refused.push((lane, error)),
                    Err(error) => return Err(error),
                }
            }
        }
        Ok((changes, refused))
    }

    /// An error for each lane whose times could overflow. Collective.
    fn check(&self, trace: &Trace, lanes: usize) -> Result<Refused> {
        let longer = |changes: &Vec<Change>| {
            let mut longer = vec![0i64; lanes];
            for change in changes.iter().filter(|change| change.growth > 0) {
                let lane = &mut longer[change.lane as usize];
                *lane = lane.saturating_add(change.growth);
            }
            longer
        };
        let longer: Vec<Vec<i64>> = self.0.par_iter().map(longer).collect();
        let total = |lane: usize| longer.iter().map(|of| i128::from(of[lane])).sum::<i128>();
        let own: Vec<i128> = (0..lanes).map(total).collect();
        let all = trace.exchange.allgather(own)?;
        let is_too_long = |lane: &usize| all.iter().map(|of| of[*lane]).sum::<i128>() >= LONGEST;
        let too_long = || "the changed run is longer than the clock of the trace".to_owned();
        Ok((0..lanes).filter(is_too_long).map(|lane| (lane as u32, too_long())).collect())
    }
}

impl Hypothesis {
    /// Whether the new length of a segment depends on others.
    #[inline]
    fn needs_all(&self) -> bool {
        matches!(self, Self::Set { .. } | Self::Balance { .. } | Self::Trim { .. })
    }

    /// The new length of a segment, ticks; `None` if it does not change.
    #[inline]
    fn length(&self, segment: &Segment) -> Option<i64> {
        match self {
            Self::Scale { factor, min_span, .. } => {
                (segment.ticks >= *min_span).then(|| rounded(segment.ticks as f64 * factor))
            }
            Self::Network { .. } => (!segment.waits).then_some(0),
            Self::Overhead { ticks, least } => Some((segment.ticks - ticks).max(segment.ticks.min(*least))),
            Self::Set { .. } | Self::Balance { .. } | Self::Trim { .. } => None,
        }
    }

    /// New lengths of segments that depend on each other. Collective.
    fn redo(&self, trace: &Trace, mut selected: Vec<Selected>, notes: &mut Vec<String>) -> Result<Vec<Selected>> {
        match self {
            Self::Set { ticks, .. } => {
                selected
                    .par_iter_mut()
                    .for_each(|of| of.set(&vec![*ticks; of.instances as usize], &Patterns::default()));
            }
            Self::Balance { selection, balancing } => {
                let own = trace.own_locations();
                if balancing.mode == Balance::Segment {
                    selected[own.clone()].par_iter_mut().for_each(Selected::take_apart);
                }
                let times: Vec<Vec<i64>> = selected[own.clone()].par_iter().map(Selected::times).collect();
                let times: Vec<Vec<i64>> = trace.exchange.allgather(times)?.into_iter().flatten().collect();
                let without = trace.definitions.processes.len() - with_instances(trace, &times);
                if without > 0 {
                    notes.push(format!("{}: {without} processes have no instance and take no part", selection.text));
                }
                if times.iter().filter(|of| !of.is_empty()).count() == 1 {
                    notes.push(format!("{}: only one location has instances, so no time can move", selection.text));
                }
                if matches!(balancing.mode, Balance::Instance | Balance::Segment)
                    && !is_alike(trace, selection, &times)?
                {
                    notes.push(format!(
                        "{}: not all locations call the same from it, so the n-th instances need not belong together",
                        selection.text
                    ));
                }
                let lengths = balancing.apply(trace, &times, &selection.text)?;
                let is_needed = times
                    .iter()
                    .zip(&lengths)
                    .any(|(old, new)| old.iter().zip(new).any(|(&old, &new)| segments::is_hardly_any(old, new)));
                let mut patterns = Patterns::default();
                if is_needed {
                    let of_own: Vec<Patterns> = selected[own.clone()].par_iter_mut().map(Selected::patterns).collect();
                    let of_own = of_own.into_iter().fold(Patterns::default(), Patterns::merge);
                    patterns = trace.exchange.allgather(of_own)?.into_iter().fold(patterns, Patterns::merge);
                }
                let of_own = selected[own.clone()].par_iter_mut().zip(&lengths[own]);
                of_own.for_each(|(of, lengths)| of.set(lengths, &patterns));
            }
            Self::Trim { excess, .. } => {
                let own = &mut selected[trace.own_locations()];
                own.par_iter_mut().zip(&**excess).for_each(|(of, excess)| of.shorten(excess));
            }
            Self::Scale { .. } | Self::Network { .. } | Self::Overhead { .. } => {}
        }
        Ok(selected)
    }
}

/// Adds the changes of another lane to those of each location.
fn add(changes: &mut [Vec<Change>], own: Vec<Vec<Change>>, lane: u32) {
    changes.par_iter_mut().zip(own).filter(|(_, own)| !own.is_empty()).for_each(|(changes, own)| {
        changes.extend(own.into_iter().map(|change| Change { lane, ..change }));
        changes.sort_by_key(|change| change.position);
    });
}

/// Rounds to nearest, ties to even; the conversion saturates.
#[inline]
fn rounded(ticks: f64) -> i64 {
    // Numbers of this size are 1 apart, so adding it rounds. Faster than a call of the math library.
    const UNIT: f64 = (3u64 << 51) as f64;
    let rounded = if ticks < (1u64 << 51) as f64 { ticks + UNIT - UNIT } else { ticks.round_ties_even() };
    rounded.min(LONGEST as f64) as i64
}

/// Merges both lists by position; at equal positions the second list wins.
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

/// Whether the selected instances have the same callees everywhere. Collective.
fn is_alike(trace: &Trace, selection: &Selection, times: &[Vec<i64>]) -> Result<bool> {
    let called = |location: usize| {
        let shard = trace.shard(LocationId::at(location));
        let cells = shard.profile.of(shard.local(LocationId::at(location))).iter();
        let parent = |callpath: CallPathId| trace.tree.nodes()[callpath].parent;
        let is_called = |callpath: CallPathId| selection.roots.get(parent(callpath).index()) == Some(&true);
        let mut called: Vec<CallPathId> = cells.map(|cell| cell.callpath).filter(|&path| is_called(path)).collect();
        called.sort_unstable();
        called
    };
    let mut own: Vec<Vec<CallPathId>> =
        trace.own_locations().filter(|&location| !times[location].is_empty()).map(called).collect();
    own.dedup();
    let all: Vec<Vec<CallPathId>> = trace.exchange.allgather(own)?.into_iter().flatten().collect();
    Ok(all.iter().all(|called| *called == all[0]))
}

fn with_instances(trace: &Trace, times: &[Vec<i64>]) -> usize {
    let has =
        |process: &crate::trace::locations::Process| { process.locations }.any(|location| !times[location].is_empty());
    trace.definitions.processes.iter().filter(|process| has(process)).count()
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn halves_go_to_the_even() {
        let half: Vec<i64> = [1, 2, 3].iter().map(|&ticks| rounded(f64::from(ticks) * 0.5)).collect();
        assert_eq!(half, [0, 1, 2]);
    }

    proptest! {
        #[test]
        fn rounding_is_that_of_the_standard(ticks in prop_oneof![0.0..1e3, 0.0..1e19, (0u64..1 << 53).prop_map(|half| half as f64 / 2.0)]) {
            prop_assert_eq!(rounded(ticks), ticks.round_ties_even().min(LONGEST as f64) as i64);
        }
    }
}
