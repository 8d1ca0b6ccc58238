//! Whether the same takes longer while others use the same resource: transfers of a node, operations on files, own code of
//! a node (thesis, chapter 6: contention beyond locks).
//!
//! ```text
//!  node     rank 0  [ solve ]        [ solve       ]
//!           rank 1                   [ solve       ]      others: 0, then 1
//! ```
//!
//! No trace records who holds a link, a disk or a memory bus. It shows what lasts how long, and how many others of the same
//! resource are active meanwhile. *Alike* are messages of one size, locality and protocol, operations of one kind, size
//! and file system, and leaves of own code in one call path of one location. Of these, the third with the fewest others is
//! *quiet*; the median of the quiet ones is what the others are compared with. There is a finding only if the times grow
//! with the number of others ([`CORRELATED`]) and are longer by [`LONGER`]. Where everybody is always active, nothing can
//! be told.

use std::collections::BTreeMap;
use std::ops::Range;

use bitcode::{Decode, Encode};
use rustc_hash::FxHashMap;

use super::activities::{self, Activity};
use crate::Result;
use crate::ids::{CallPathId, LocationId};
use crate::matching::messages::match_all;
use crate::matching::protocol::{Protocol, ProtocolClassifier};
use crate::parallel::iter::prelude::*;
use crate::trace::columns::IoKind;
use crate::trace::nodes::nodes;
use crate::trace::{Shard, Trace};

/// Pearson's r of time and others, from which on they are said to depend on each other.
const CORRELATED: f64 = 0.4;
/// How much longer the crowded ones are than the quiet ones, at least.
const LONGER: f64 = 1.2;
/// What computes this many times longer than its smaller share of a node explains does other work.
const OTHER_WORK: f64 = 1.5;
/// How many more others they have.
const MORE: f64 = 0.5;
/// Fewer samples say nothing, of all together, and of those that are alike.
const SAMPLES: usize = 24;
const ALIKE: usize = 6;
/// Samples of a resource at most; of more, evenly spaced ones stand for all.
const MOST: usize = 1 << 18;

named! {
    /// What is shared.
    #[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
    pub enum Resource {
        /// The network of a node.
        Network = "network",
        /// A file system.
        Files = "files",
        /// The memory and caches of a node.
        Memory = "memory",
    }
}

/// Something that takes longer the more others are active.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Sharing {
    /// What is shared.
    pub resource: Resource,
    /// The call path that it happens in.
    pub callpath: CallPathId,
    /// A location of the node, or that did it first.
    pub location: LocationId,
    /// Number of samples.
    pub samples: u64,
    /// Mean number of others meanwhile: of the quiet third, and of the crowded one.
    pub others: [f64; 2],
    /// How many times as long the crowded third takes.
    pub ratio: f64,
    /// Pearson's r of time and others.
    pub r: f64,
    /// Ticks beyond what the quiet ones would have taken.
    pub excess: i64,
}

/// One use of a resource.
#[derive(Clone, Copy, Encode, Decode)]
struct Use {
    begin: i64,
    end: i64,
    /// Numbers of the resources; a message uses those of two nodes.
    of: [u32; 2],
    callpath: CallPathId,
    location: LocationId,
    /// What is alike.
    alike: (u64, u32),
    /// Whether its time shows: the transfer of a message that arrived before its receive does not.
    shows: bool,
}

/// By resource, when one more or one less is active.
type Changes = BTreeMap<u32, Vec<(i64, i64)>>;

/// How many are active, over time.
#[derive(Default)]
struct Course {
    times: Vec<i64>,
    /// Sum of the time of all up to each moment, and how many are active from then on.
    spent: Vec<i64>,
    active: Vec<i64>,
}

impl Course {
    fn new(mut changes: Vec<(i64, i64)>) -> Self {
        changes.sort_unstable();
        let mut course = Self::default();
        let (mut last, mut spent, mut active) = (i64::MIN, 0, 0);
        for (time, change) in changes {
            if time > last {
                if last > i64::MIN {
                    spent += active * (time - last);
                }
                course.times.push(time);
                course.spent.push(spent);
                course.active.push(active);
                last = time;
            }
            active += change;
            if let Some(now) = course.active.last_mut() {
                *now = active;
            }
        }
        course
    }

    /// Sum of the time of all up to a moment.
    fn until(&self, time: i64) -> i64 {
        match self.times.partition_point(|&at| at <= time).checked_sub(1) {
            Some(i) => self.spent[i] + self.active[i] * (time - self.times[i]),
            None => 0,
        }
    }

    /// Mean number that are active between two moments.
    fn mean(&self, begin: i64, end: i64) -> f64 {
        (self.until(end) - self.until(begin)) as f64 / (end - begin).max(1) as f64
    }
}

/// What takes longer in a window while others use the same resource, the largest excess first. Collective: the
/// first process gets all uses, and compares them.
pub(crate) fn find(trace: &Trace, window: &Range<i64>) -> Result<Vec<Sharing>> {
    let nodes = nodes(trace);
    let mut found = Vec::new();
    found.extend(judge(Resource::Network, messages(trace, window, &nodes)?, None));
    found.extend(judge(Resource::Files, trace.exchange.gatherv(operations(trace, window))?, None));
    let (uses, active) = own_code(trace, window, &nodes)?;
    found.extend(judge(Resource::Memory, uses, Some(active)));
    found.sort_by_key(|of| (-of.excess, of.resource, of.callpath, of.location));
    Ok(found)
}

/// Transfers of messages: from where both sides are ready to the end of the call that waited for it. Those that nobody
/// waited for take as long as the median of those alike.
fn messages(trace: &Trace, window: &Range<i64>, nodes: &[u32]) -> Result<Vec<Use>> {
    let classifier = ProtocolClassifier::new(trace);
    let (found, _) = match_all(trace, |_, shard, matches| {
        let mut uses: Vec<Use> = Vec::new();
        for (row, receive) in shard.receives.rows.iter().enumerate() {
            let Some(send) = matches.send(row) else { continue };
            let posted = shard.enter(receive.request);
            let is_rendezvous = classifier.protocol(send, posted) == Protocol::Rendezvous;
            let begin = if is_rendezvous { send.enter.max(posted) } else { send.enter };
            let (enter, end) = (shard.enter(receive.instance), shard.leave(receive.instance));
            if begin >= end || !window.contains(&begin) {
                continue;
            }
            let is_local = classifier.is_local(send);
            let node = |process: crate::ids::ProcessId| nodes.get(process.index()).copied().unwrap_or(u32::MAX);
            uses.push(Use {
                begin,
                end,
                of: [node(send.source), node(send.destination)],
                callpath: shard.callpath(receive.instance),
                location: shard.location_of_instance(receive.instance),
                alike: (send.bytes, u32::from(is_local) << 1 | u32::from(is_rendezvous)),
                shows: begin > enter,
            });
        }
        uses
    })?;
    let mut uses: Vec<Use> = trace.exchange.gatherv(found.into_iter().flatten())?;
    let medians = medians(uses.iter().filter(|of| of.shows));
    for of in uses.iter_mut().filter(|of| !of.shows) {
        let median = medians.get(&of.alike).copied().unwrap_or(0);
        of.end = of.end.min(of.begin + median);
    }
    uses.retain(|of| of.end > of.begin);
    Ok(uses)
}

/// Reads, writes and flushes of files. All files of one paradigm count as one file system.
fn operations(trace: &Trace, window: &Range<i64>) -> Vec<Use> {
    let mut uses = Vec::new();
    for shard in &trace.shards {
        for i in 0..shard.locations.len() {
            for row in shard.io.of(i) {
                let moves = matches!(row.kind, IoKind::Read | IoKind::Write | IoKind::Flush);
                if !moves || row.is_nested || row.end <= row.begin || !window.contains(&row.begin) {
                    continue;
                }
                let callpath = if row.instance.is_some() { shard.callpath(row.instance) } else { CallPathId::NONE };
                uses.push(Use {
                    begin: row.begin,
                    end: row.end,
                    of: [0, 0],
                    callpath,
                    location: shard.location(i),
                    alike: (row.bytes, row.kind as u32),
                    shows: true,
                });
            }
        }
    }
    uses
}

/// Leaves of own code, and how many locations of each node run own code.
fn own_code(trace: &Trace, window: &Range<i64>, nodes: &[u32]) -> Result<(Vec<Use>, FxHashMap<u32, Course>)> {
    let activities = activities::of_tree(trace);
    let of_shard = |shard: &Shard| {
        let mut uses: Vec<Use> = Vec::new();
        let mut changes = Changes::default();
        for (i, location) in shard.locations.enumerate() {
            let process = trace.definitions.locations[location].process;
            let Some(&node) = nodes.get(process.index()) else { continue };
            let changes = changes.entry(node).or_default();
            let mut stack: Vec<CallPathId> = Vec::new();
            let mut since: Option<i64> = None;
            let (first, end) = (shard.event_offsets[i], shard.event_offsets[i + 1]);
            for position in first..end {
                let time = shard.events.time[position as usize];
                let is_leave = shard.events.is_leave(position);
                if is_leave {
                    let callpath = stack.pop();
                    if let Some(callpath) = callpath
                        && position > first
                        && !shard.events.is_leave(position - 1)
                        && activities[callpath] == Activity::Own
                        && window.contains(&shard.events.time[position as usize - 1])
                    {
                        let begin = shard.events.time[position as usize - 1];
                        let (of, alike) = ([node, node], (u64::from(callpath.number()), location.number()));
                        uses.push(Use { begin, end: time, of, callpath, location, alike, shows: time > begin });
                    }
                } else {
                    stack.push(shard.events.callpath(position));
                }
                let runs = stack.last().is_some_and(|&callpath| activities[callpath] == Activity::Own);
                match since {
                    None if runs => since = Some(time),
                    Some(begin) if !runs => {
                        since = None;
                        changes.extend([(begin, 1), (time, -1)]);
                    }
                    _ => {}
                }
            }
        }
        (uses, changes)
    };
    let (own, of_shards): (Vec<_>, Vec<_>) = trace.par_shards().map(of_shard).collect::<Vec<_>>().into_iter().unzip();
    let uses = trace.exchange.gatherv(own.into_iter().flatten())?;
    let mut of_nodes = Changes::default();
    for (node, changes) in trace.exchange.gatherv(of_shards.into_iter().flatten())? {
        of_nodes.entry(node).or_default().extend(changes);
    }
    Ok((uses, of_nodes.into_iter().map(|(node, changes)| (node, Course::new(changes))).collect()))
}

/// The median of the times of those that are alike, if there are enough.
fn medians<'a>(uses: impl Iterator<Item = &'a Use>) -> FxHashMap<(u64, u32), i64> {
    let mut times: FxHashMap<(u64, u32), Vec<i64>> = FxHashMap::default();
    uses.for_each(|of| times.entry(of.alike).or_default().push(of.end - of.begin));
    let enough = times.into_iter().filter(|(_, times)| times.len() >= ALIKE / 3);
    enough
        .map(|(alike, mut times)| {
            let middle = (times.len() - 1) / 2;
            (alike, *times.select_nth_unstable(middle).1)
        })
        .collect()
}

/// Compares the uses of each call path on each resource. Without `active`, the uses themselves are what is active.
fn judge(resource: Resource, uses: Vec<Use>, active: Option<FxHashMap<u32, Course>>) -> Vec<Sharing> {
    let active = active.unwrap_or_else(|| {
        let mut changes = Changes::default();
        for of in &uses {
            let second = (of.of[1] != of.of[0]).then_some(of.of[1]);
            for node in [of.of[0]].into_iter().chain(second) {
                changes.entry(node).or_default().extend([(of.begin, 1), (of.end, -1)]);
            }
        }
        changes.into_iter().map(|(node, changes)| (node, Course::new(changes))).collect()
    });
    let mut groups: FxHashMap<(u32, CallPathId), Vec<Use>> = FxHashMap::default();
    for of in uses.into_iter().filter(|of| of.shows) {
        groups.entry((of.of[1], of.callpath)).or_default().push(of);
    }
    let groups: Vec<Vec<Use>> = groups.into_values().filter(|uses| uses.len() >= SAMPLES).collect();
    groups.into_par_iter().filter_map(|uses| compare(resource, &uses, &active)).collect()
}

/// Compares uses in one call path with each other.
fn compare(resource: Resource, uses: &[Use], active: &FxHashMap<u32, Course>) -> Option<Sharing> {
    let step = uses.len().div_ceil(MOST);
    let others = |of: &Use| {
        let mean = |node| active.get(&node).map_or(1.0, |course| course.mean(of.begin, of.end));
        (of.of.map(mean).into_iter().fold(1.0, f64::max) - 1.0).max(0.0)
    };
    let mut sampled: Vec<(f64, &Use)> = uses.iter().step_by(step).map(|of| (others(of), of)).collect();
    sampled.sort_by(|a, b| a.0.total_cmp(&b.0).then(a.1.begin.cmp(&b.1.begin)).then(a.1.location.cmp(&b.1.location)));
    let mut alike: BTreeMap<(u64, u32), Vec<(f64, i64)>> = BTreeMap::default();
    for (others, of) in &sampled {
        alike.entry(of.alike).or_default().push((*others, of.end - of.begin));
    }
    // Each with its others and its time relative to the quiet ones.
    let (mut pairs, mut excess): (Vec<(f64, f64)>, f64) = (Vec::new(), 0.0);
    for times in alike.values().filter(|times| times.len() >= ALIKE) {
        let third = times.len() / 3;
        let mut quiet: Vec<i64> = times[..third].iter().map(|&(_, time)| time).collect();
        let base = *quiet.select_nth_unstable((third - 1) / 2).1 as f64;
        if base > 0.0 {
            pairs.extend(times.iter().map(|&(others, time)| (others, time as f64 / base)));
            excess += times[third..].iter().map(|&(_, time)| time as f64 - base).sum::<f64>();
        }
    }
    if pairs.len() < SAMPLES || excess <= 0.0 {
        return None;
    }
    pairs.sort_by(|a, b| a.0.total_cmp(&b.0));
    // With all that have as many others as the last of a third.
    let third = pairs.len() / 3;
    let quiet = &pairs[..pairs.partition_point(|pair| pair.0 <= pairs[third - 1].0)];
    let crowded = &pairs[pairs.partition_point(|pair| pair.0 < pairs[pairs.len() - third].0)..];
    let mean = |of: &[(f64, f64)], value: fn(&(f64, f64)) -> f64| of.iter().map(value).sum::<f64>() / of.len() as f64;
    let [fewest, most] = [quiet, crowded].map(|of| mean(of, |pair| pair.0));
    let ratio = mean(crowded, |pair| pair.1) / mean(quiet, |pair| pair.1);
    let r = pearson(&pairs);
    let share = (1.0 + most) / (1.0 + fewest);
    if resource == Resource::Memory && ratio > OTHER_WORK * share {
        return None;
    }
    (r >= CORRELATED && ratio >= LONGER && most - fewest >= MORE).then(|| Sharing {
        resource,
        callpath: uses[0].callpath,
        location: uses.iter().map(|of| of.location).min().unwrap_or(LocationId::NONE),
        samples: pairs.len() as u64,
        others: [fewest, most],
        ratio,
        r,
        excess: (excess * step as f64) as i64,
    })
}

/// Pearson's r; 0 if one side is constant.
fn pearson(pairs: &[(f64, f64)]) -> f64 {
    let count = pairs.len() as f64;
    let mean = |value: fn(&(f64, f64)) -> f64| pairs.iter().map(value).sum::<f64>() / count;
    let means = (mean(|pair| pair.0), mean(|pair| pair.1));
    let [own, other, both] = pairs.iter().fold([0.0; 3], |sum, pair| {
        let (first, second) = (pair.0 - means.0, pair.1 - means.1);
        [sum[0] + first * first, sum[1] + second * second, sum[2] + first * second]
    });
    let norm = (own * other).sqrt();
    if norm > 0.0 { both / norm } else { 0.0 }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Uses of 10 ticks each while alone, and of 10 more for each other one.
    fn uses(slower: i64) -> Vec<Use> {
        let mut all = Vec::new();
        for round in 0..30 {
            let together = 1 + round % 3;
            for location in 0..together {
                let begin = 1000 * round;
                all.push(Use {
                    begin,
                    end: begin + 10 + slower * (together - 1),
                    of: [0, 0],
                    callpath: CallPathId::new(1),
                    location: LocationId::new(location as u32),
                    alike: (8, 0),
                    shows: true,
                });
            }
        }
        all
    }

    #[test]
    fn what_takes_longer_beside_others_is_found() {
        let found = judge(Resource::Files, uses(10), None);
        assert_eq!(found.len(), 1);
        let one = found[0];
        assert_eq!((one.samples, one.location), (60, LocationId::new(0)));
        assert!(one.r > 0.9 && one.ratio > 1.5, "{one:?}");
        // 20 uses beside one other take 10 ticks longer than 10, 30 beside two others 20.
        // The quiet third has ten that are alone and ten beside another: their median is 10.
        assert_eq!(one.excess, 10 * 10 + 30 * 20);
    }

    #[test]
    fn what_takes_as_long_beside_others_is_not() {
        assert!(judge(Resource::Files, uses(0), None).is_empty());
        // More than a smaller share of memory explains.
        assert_eq!(judge(Resource::Memory, uses(10), None).len(), 1);
        assert!(judge(Resource::Memory, uses(200), None).is_empty());
        // Longer, but not beside others.
        let mut alone = uses(0);
        for of in &mut alone {
            of.end += of.begin % 7;
        }
        assert!(judge(Resource::Files, alone, None).is_empty());
    }

    #[test]
    fn the_mean_of_a_course_counts_all_that_are_active() {
        let course = Course::new(vec![(0, 1), (10, -1), (5, 1), (15, -1)]);
        assert_eq!([0, 5, 10, 15, 25].map(|time| course.until(time)), [0, 5, 15, 20, 20]);
        assert!((course.mean(0, 10) - 1.5).abs() < 1e-12);
    }
}
