//! Strata: like intervals between events, whose samples are pooled.
//!
//! The time of a stratum is known from the events; samples only divide it. So lost samples, and ranks that are sampled less
//! often than others, do not change times, only shares.

use std::ops::Range;

use rustc_hash::{FxHashMap, FxHashSet};
use whywait_otf2::enums::{Base, InterruptGeneratorMode};
use whywait_otf2::records::InterruptGenerator;

use super::paths::{Placed, Running, Sampling};
use crate::Result;
use crate::ids::{CallPathId, LocationId};
use crate::trace::call_samples::CallSample;
use crate::trace::regions::RegionClass;
use crate::trace::{Shard, Trace};

/// Kinds of intervals with fewer samples are pooled with all others of their call path.
const POOLED: usize = 20;

/// With fewer samples, the time of a stratum is not divided.
pub(super) const RESOLVED: usize = 10;

/// Intervals of a call path on a location.
#[derive(Debug)]
pub(super) struct Stratum {
    /// The call path that the events say was running.
    pub(super) recorded: CallPathId,
    /// For each interval the event at its end, and the time of all up to it, ticks.
    intervals: Vec<(u32, i64)>,
    /// For each sample the event at the end of its interval, and the call path that it saw.
    pub(super) samples: Vec<(u32, CallPathId)>,
    /// The same for samples of page faults.
    pub(super) faults: Vec<(u32, CallPathId)>,
    /// The time that a sample stands for, ticks, if they do not stand for all of the time.
    pub(super) period: Option<f64>,
}

/// Standard deviations of a difference that is more than chance.
pub(super) const CERTAIN: f64 = 2.58;

impl Stratum {
    /// The time of all intervals, ticks.
    pub(super) fn time(&self) -> i64 {
        self.intervals.last().map_or(0, |&(_, until)| until)
    }

    /// The time of the intervals that end at these events, ticks.
    pub(super) fn time_of(&self, events: Range<u32>) -> i64 {
        let until = |event: u32| {
            let count = self.intervals.partition_point(|&(end, _)| end < event);
            count.checked_sub(1).map_or(0, |last| self.intervals[last].1)
        };
        until(events.end) - until(events.start)
    }

    /// The samples in these intervals.
    pub(super) fn samples_of(&self, events: Range<u32>) -> &[(u32, CallPathId)] {
        inside(&self.samples, events)
    }

    /// The samples of page faults in these intervals.
    pub(super) fn faults_of(&self, events: Range<u32>) -> &[(u32, CallPathId)] {
        inside(&self.faults, events)
    }

    /// The time that no sample stands for, ticks: in the system, or without a core. It is known to a period times the root
    /// of the number of samples, and `None` if it may be chance.
    pub(super) fn away(&self) -> Option<i64> {
        away(self.time(), self.samples.len(), self.period?)
    }

    /// Whether there are enough samples to divide its time.
    pub(super) fn is_resolved(&self) -> bool {
        self.samples.len() >= RESOLVED
    }
}

fn inside(samples: &[(u32, CallPathId)], events: Range<u32>) -> &[(u32, CallPathId)] {
    let at = |event: u32| samples.partition_point(|&(end, _)| end < event);
    &samples[at(events.start)..at(events.end)]
}

/// What samples mean.
pub(super) struct Meaning<'a> {
    /// For each recorded call path whether samples divide its time.
    pub(super) is_divided: &'a [bool],
    /// Triggers that count what is rare, such as page faults, so that their samples do not divide time.
    rare: Vec<u32>,
    /// Mean time between the samples of triggers that follow a clock, ticks.
    periods: FxHashMap<u32, f64>,
    /// Ids of locations whose clock stands still in the system, and of those whose clock is looked at when the kernel's ticks.
    of_user_time: FxHashSet<u64>,
    of_ticks: FxHashSet<u64>,
}

impl<'a> Meaning<'a> {
    pub(super) fn new(trace: &Trace, is_divided: &'a [bool]) -> Self {
        let definitions = trace.records();
        let generators = &definitions.interrupt_generators;
        let is_count = |of: &&InterruptGenerator| of.interrupt_generator_mode == InterruptGeneratorMode::COUNT;
        let rare = generators.iter().filter(is_count);
        let rare = rare.filter(|of| definitions.string(of.name).contains("fault")).map(|of| of.id);
        Self {
            is_divided,
            rare: rare.collect(),
            periods: periods(trace),
            of_user_time: of_user_time(trace),
            of_ticks: locations_with(trace, TICKS),
        }
    }

    /// Whether a sample divides time.
    pub(super) fn is_of_time(&self, sample: &CallSample) -> bool {
        !self.rare.contains(&sample.generator)
    }

    /// The time that a sample stands for at a location, ticks, if its clock stands still in the system.
    pub(super) fn user_period(&self, trace: &Trace, location: LocationId, samples: &[CallSample]) -> Option<f64> {
        let id = trace.definitions.locations[location].id;
        self.period(samples).filter(|_| self.of_user_time.contains(&id))
    }

    /// The mean time between the samples of a location, ticks.
    fn period(&self, samples: &[CallSample]) -> Option<f64> {
        let first = samples.iter().find(|sample| self.is_of_time(sample))?;
        self.periods.get(&first.generator).copied()
    }

    /// Whether the samples of a location may be wrong about its functions: the scheduler switches at the ticks at which it is
    /// sampled, and did so often.
    pub(super) fn is_doubtful(
        &self,
        trace: &Trace,
        location: LocationId,
        samples: &[CallSample],
        switches: u64,
    ) -> bool {
        let id = trace.definitions.locations[location].id;
        let Some(period) = self.period(samples).filter(|_| self.of_ticks.contains(&id)) else { return false };
        let computed = period * samples.len() as f64 / trace.resolution as f64;
        switches as f64 > SWITCHES * computed
    }
}

/// Ids of the locations that have a property.
fn locations_with(trace: &Trace, wanted: (&str, &str)) -> FxHashSet<u64> {
    let definitions = trace.records();
    let text = |id| definitions.string(id);
    let properties = definitions.location_properties.iter();
    properties.filter(|of| (text(of.name), text(of.string_value)) == wanted).map(|of| of.location).collect()
}

/// Ids of the locations that are sampled by a clock which stands still in the system, and without a core.
pub fn of_user_time(trace: &Trace) -> FxHashSet<u64> {
    locations_with(trace, USER_TIME)
}

/// Mean time between the samples of triggers that follow a clock, ticks, by their ids.
pub fn periods(trace: &Trace) -> FxHashMap<u32, f64> {
    let generators = trace.records().interrupt_generators.iter();
    let clocks = generators.filter(|of| of.interrupt_generator_mode != InterruptGeneratorMode::COUNT);
    let period = |of: &InterruptGenerator| {
        let base: f64 = if of.base == Base::BINARY { 2.0 } else { 10.0 };
        let seconds = of.period as f64 * base.powi(i32::try_from(of.exponent).unwrap_or_default());
        (of.id, seconds * trace.resolution as f64)
    };
    clocks.map(period).collect()
}

/// What so many samples do not stand for of a time, ticks; `None` if it may be chance.
pub(super) fn away(time: i64, samples: usize, period: f64) -> Option<i64> {
    let samples = samples as f64;
    let away = time as f64 - period * samples;
    (away > CERTAIN * period * samples.sqrt()).then_some(away as i64)
}

/// The property of locations that are sampled by a clock of the time that they compute outside of the system.
const USER_TIME: (&str, &str) = ("sampling", "perf");

/// The property of those that are sampled by a timer, which expires at ticks of the kernel.
const TICKS: (&str, &str) = ("sampling", "timer");

/// In a second of processor time, fewer switches to another thread do not make samples doubtful.
const SWITCHES: f64 = 5.0;

/// For each recorded call path whether samples divide its time: it has some, and is no call of a library. Collective.
pub(crate) fn divided(trace: &Trace, sampling: &Sampling) -> Result<Vec<bool>> {
    let mut own = vec![false; trace.tree.len()];
    for placed in sampling.placed.iter().flatten().filter(|placed| placed.recorded.is_some()) {
        own[placed.recorded] = true;
    }
    for (is_divided, node) in own.iter_mut().zip(trace.tree.nodes()) {
        *is_divided &= trace.regions.class(node.region) == RegionClass::Other && !trace.regions.is_io(node.region);
    }
    let mut all = vec![false; trace.tree.len()];
    for of_process in trace.exchange.allgather(own)? {
        all.iter_mut().zip(of_process).for_each(|(all, own)| *all |= own);
    }
    Ok(all)
}

/// What happens at both ends of an interval: the call paths that are entered or left.
type Kind = (u64, u64);

/// Follows the intervals of a location whose call paths are divided.
struct Intervals<'a> {
    shard: &'a Shard,
    events: Range<u32>,
}

impl Intervals<'_> {
    fn node(&self, event: u32) -> u64 {
        if !self.events.contains(&event) {
            return u64::MAX;
        }
        u64::from(self.shard.events.callpath(event).number()) << 1 | u64::from(self.shard.events.is_leave(event))
    }

    /// The kind of the interval that ends at an event.
    fn kind(&self, event: u32) -> Kind {
        (self.node(event.wrapping_sub(1)), self.node(event))
    }
}

/// The strata of the shard's i-th location within a window, ticks.
pub(super) fn strata(
    trace: &Trace,
    (shard, i): (&Shard, usize),
    placed: &[Placed],
    meaning: &Meaning,
    window: Option<&Range<i64>>,
) -> Vec<Stratum> {
    let events = shard.event_offsets[i]..shard.event_offsets[i + 1];
    let intervals = Intervals { shard, events: events.clone() };
    let rows = shard.call_samples.range(i);
    let is_inside = |sample: &CallSample| window.is_none_or(|window| window.contains(&sample.time));
    let of_kind = |of_time: bool| {
        let all = shard.call_samples.rows[rows.clone()].iter().zip(&placed[rows.clone()]);
        all.filter(move |(sample, placed)| {
            placed.recorded.is_some()
                && meaning.is_divided[placed.recorded.index()]
                && meaning.is_of_time(sample) == of_time
                && is_inside(sample)
        })
    };
    let samples = || of_kind(true);
    let mut counts: FxHashMap<(CallPathId, Kind), usize> = FxHashMap::default();
    for (_, placed) in samples() {
        *counts.entry((placed.recorded, intervals.kind(placed.event))).or_default() += 1;
    }
    let period = meaning.user_period(trace, shard.location(i), &shard.call_samples.rows[rows.clone()]);
    let mut strata: Vec<Stratum> = Vec::new();
    let mut numbers: FxHashMap<(CallPathId, Option<Kind>), usize> = FxHashMap::default();
    let mut number = |strata: &mut Vec<Stratum>, recorded: CallPathId, kind: Kind| {
        let own = counts.get(&(recorded, kind)).is_some_and(|&count| count >= POOLED).then_some(kind);
        *numbers.entry((recorded, own)).or_insert_with(|| {
            strata.push(Stratum { recorded, intervals: Vec::new(), samples: Vec::new(), faults: Vec::new(), period });
            strata.len() - 1
        })
    };
    let mut running = Running::new(trace, shard, i);
    for event in events {
        // Nothing runs before the first event, and on a thread between its parts in teams.
        let recorded = running.callpath();
        running.advance();
        if recorded.is_none() || !meaning.is_divided[recorded.index()] {
            continue;
        }
        let [mut begin, mut end] = [event - 1, event].map(|event| shard.events.time[event as usize]);
        if let Some(window) = window {
            (begin, end) = (begin.max(window.start), end.min(window.end));
        }
        if begin < end {
            let stratum = number(&mut strata, recorded, intervals.kind(event));
            let stratum = &mut strata[stratum];
            stratum.intervals.push((event, stratum.time() + end - begin));
        }
    }
    for (_, placed) in samples() {
        let stratum = number(&mut strata, placed.recorded, intervals.kind(placed.event));
        strata[stratum].samples.push((placed.event, placed.sampled));
    }
    for (_, placed) in of_kind(false) {
        let stratum = number(&mut strata, placed.recorded, intervals.kind(placed.event));
        strata[stratum].faults.push((placed.event, placed.sampled));
    }
    strata
}

/// Divides a time among counts in proportion, without loss: what is left goes to the largest remainders.
pub(super) fn divide(time: i64, counts: &mut [(CallPathId, u64, i64)]) {
    let all: i128 = counts.iter().map(|&(_, count, _)| i128::from(count)).sum();
    if all == 0 {
        return;
    }
    let mut left = time;
    for (_, count, part) in &mut *counts {
        *part = (i128::from(time) * i128::from(*count) / all) as i64;
        left -= *part;
    }
    let mut order: Vec<usize> = (0..counts.len()).collect();
    let remainder = |i: usize| i128::from(time) * i128::from(counts[i].1) % all;
    order.sort_by_key(|&i| (std::cmp::Reverse(remainder(i)), counts[i].0));
    for i in order.into_iter().cycle().take(left.max(0) as usize) {
        counts[i].2 += 1;
    }
}

/// How often each call path was seen, by call path.
pub(super) fn counts(samples: impl Iterator<Item = CallPathId>) -> Vec<(CallPathId, u64, i64)> {
    let mut counts: FxHashMap<CallPathId, u64> = FxHashMap::default();
    for callpath in samples {
        *counts.entry(callpath).or_default() += 1;
    }
    let mut counts: Vec<_> = counts.into_iter().map(|(callpath, count)| (callpath, count, 0)).collect();
    counts.sort_unstable();
    counts
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn nothing_is_lost_in_a_division() {
        let mut parts = [(1, 1), (2, 1), (3, 1)].map(|(callpath, count)| (CallPathId::new(callpath), count, 0));
        divide(100, &mut parts);
        assert_eq!(parts.map(|(_, _, part)| part), [34, 33, 33]);
        let mut parts = [(1, 2), (2, 1)].map(|(callpath, count)| (CallPathId::new(callpath), count, 0));
        divide(100, &mut parts);
        assert_eq!(parts.map(|(_, _, part)| part), [67, 33]);
    }
}
