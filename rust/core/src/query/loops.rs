//! How evenly threads share the work of worksharing constructs: loops, sections, and single blocks.
//!
//! ```text
//!  thread 0  --[ loop            |= barrier =|]--
//!  thread 1  -----[ loop                |====|]--      late start: thread 1 enters the loop later, and is last
//!            |---|                   ^ thread 1 is last
//! ```
//!
//! The n-th calls of a construct by the threads of a team are one instance. A thread's time in it is that without waits,
//! without explicit tasks that it runs meanwhile, and without the barrier at its end; its loss is the largest time of a
//! thread less the mean. The wait in the barrier behind it is due to a *late start* as far as the thread that comes last has
//! entered the construct later; the rest is due to the construct.
//!
//! *Source*: specification.md#worksharing.

use std::borrow::Cow;
use std::cmp::Reverse;
use std::ops::Range;

use bitcode::{Decode, Encode};
use rustc_hash::FxHashMap;
use whywait_otf2::enums::{Paradigm, RegionRole};

use super::waited::{Waits, waited, waits};
use crate::Result;
use crate::analysis::Analysis;
use crate::ids::{CallPathId, LocationId, ProcessId, RegionKey};
use crate::matching::threads::teams::{Part, Teams, ThreadTeam};
use crate::trace::{RegionClass, Shard, Trace};
use crate::waits::interval::union;
use crate::waits::tasks::within;

/// The share of instances in which one thread is last from which on it always is, the least number of instances, and the
/// share of a thread's time by which the last thread of a tail is late at most.
const PERSISTENT: (f64, u64, f64) = (0.8, 5, 0.1);

/// Loops whose threads work less than this many times as long as it takes to fork and join them are too small.
const TINY: i64 = 10;

named! {
    /// How the work of a construct is distributed.
    #[derive(Clone, Copy, Debug, PartialEq, Eq, Encode, Decode)]
    pub enum Distribution {
        /// Fork and join take longer than the work.
        Tiny = "tiny",
        /// The same thread is last in most instances.
        Persistent = "persistent",
        /// The last thread is only a little later than the others.
        Tail = "tail",
        /// Another thread is last each time.
        Alternating = "alternating",
        /// There are too few instances to tell.
        Few = "few",
    }
}

/// A worksharing construct in a process.
#[derive(Clone, Debug, Encode, Decode)]
pub struct LoopUse {
    /// The process.
    pub process: ProcessId,
    /// The call path of the construct.
    pub callpath: CallPathId,
    /// Number of instances.
    pub instances: u64,
    /// The most threads of an instance.
    pub threads: u64,
    /// The mean time of a thread in an instance, summed over instances, ticks.
    pub mean: i64,
    /// That of the thread which works longest.
    pub longest: i64,
    /// Waiting in the barriers behind it that is due to late starts, ticks.
    pub late_start: i64,
    /// The rest of this waiting, ticks.
    pub uneven: i64,
    /// The thread that is last most often, and in how many instances.
    pub last: (u32, u64),
    /// Threads without a section, summed over instances.
    pub without_section: u64,
    /// How the work is distributed.
    pub distribution: Distribution,
}

/// A thread's part in an instance.
#[derive(Clone, Copy)]
struct Share {
    location: LocationId,
    enter: i64,
    /// When its work ends.
    end: i64,
    /// Without waits, ticks.
    work: i64,
    /// Waiting in the barrier behind.
    waiting: i64,
    has_section: bool,
}

impl Analysis {
    /// The worksharing constructs, those that lose most first; with a window only instances that begin in it. Collective.
    pub fn worksharing(&self, window: Option<&Range<i64>>) -> Result<Vec<LoopUse>> {
        let trace = &self.trace;
        let classes: Vec<Option<Class>> = trace.tree.nodes().iter().map(|path| class(trace, path.region)).collect();
        let mut found = Vec::new();
        if classes.contains(&Some(Class::Construct)) {
            for shard in &trace.shards {
                let waits = waits(self, shard);
                for process in shard.processes {
                    let mut constructs: FxHashMap<CallPathId, Gathered> = FxHashMap::default();
                    for team in Teams::new(shard, &trace.definitions.processes[process]).iter() {
                        gather(shard, team, (&classes, &waits), window, &mut constructs);
                    }
                    found.extend(constructs.into_iter().map(|(path, of)| of.finish(trace, (process, path))));
                }
            }
        }
        let mut found = trace.exchange.gatherv(found)?;
        found.sort_by_key(|one| (Reverse(one.longest - one.mean), one.process, one.callpath));
        Ok(found)
    }
}

/// What a call path is for a construct.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Class {
    Construct,
    Section,
    Barrier,
    /// Its barriers are those of another team.
    Team,
}

fn class(trace: &Trace, region: RegionKey) -> Option<Class> {
    let known = trace.regions.get(region)?;
    match (trace.regions.class(region), known.role) {
        (RegionClass::ImplicitBarrier | RegionClass::ExplicitBarrier, _) => Some(Class::Barrier),
        (RegionClass::Parallel, _) => Some(Class::Team),
        _ if known.paradigm != Paradigm::OPENMP => None,
        (_, RegionRole::LOOP | RegionRole::SECTIONS | RegionRole::SINGLE | RegionRole::WORKSHARE) => {
            Some(Class::Construct)
        }
        (_, RegionRole::SECTION) => Some(Class::Section),
        _ => None,
    }
}

/// What is known of a construct so far.
#[derive(Default)]
struct Gathered {
    instances: u64,
    threads: u64,
    mean: i64,
    longest: i64,
    lead: i64,
    late_start: i64,
    uneven: i64,
    without_section: u64,
    /// Fork and join of the teams that run it, ticks.
    management: i64,
    /// In how many instances each thread is last.
    last: FxHashMap<LocationId, u64>,
}

/// Adds the instances of a team's constructs.
fn gather(
    shard: &Shard,
    team: ThreadTeam,
    (classes, waits): (&[Option<Class>], &Waits),
    window: Option<&Range<i64>>,
    constructs: &mut FxHashMap<CallPathId, Gathered>,
) {
    let mut instances: FxHashMap<(CallPathId, u32), Vec<Share>> = FxHashMap::default();
    for part in team.recorded() {
        let of_location = waits.get(&part.location).map_or(&[][..], Vec::as_slice);
        let elsewhere = elsewhere(shard, part, of_location);
        let add = |key, share| instances.entry(key).or_default().push(share);
        shares(shard, part, classes, (of_location, &elsewhere), add);
    }
    let fork = team.fork();
    let members = || team.recorded().map(|part| part.team.instance);
    let begin = members().map(|instance| shard.enter(instance)).min().unwrap_or(fork.fork);
    let end = members().map(|instance| shard.leave(instance)).max().unwrap_or(fork.fork);
    let join = if fork.join == i64::MIN { end } else { fork.join };
    let management = (begin - fork.fork).max(0) + (join - end).max(0);
    let mut instances: Vec<_> = instances.into_iter().collect();
    instances.sort_unstable_by_key(|&(key, _)| key);
    let begins_in = |window: &Range<i64>, shares: &[Share]| {
        shares.iter().map(|share| share.enter).min().is_some_and(|begin| window.contains(&begin))
    };
    let mut last = None;
    for ((callpath, _), shares) in instances {
        if !window.is_none_or(|window| begins_in(window, &shares)) {
            continue;
        }
        let construct = constructs.entry(callpath).or_default();
        construct.add(&shares);
        // All instances in a team share its fork and join.
        if last.replace(callpath) != Some(callpath) {
            construct.management += management;
        }
    }
}

/// When a thread of a team waits or runs explicit tasks of the team, which are not part of the construct around them.
fn elsewhere<'a>(shard: &Shard, part: &Part, waits: &'a [Range<i64>]) -> Cow<'a, [Range<i64>]> {
    if shard.task_instances.is_empty() {
        return waits.into();
    }
    let span = shard.enter(part.team.instance)..shard.leave(part.team.instance);
    let runs = shard.tasks.of(shard.local(part.location));
    let first = runs.partition_point(|run| run.begin < span.start);
    let inside = runs[first..].iter().take_while(|run| run.begin < span.end);
    let of_team = inside.filter(|run| shard.task_instances[run.task as usize].fork == part.team.fork);
    let tasks = of_team.map(|run| run.begin..run.end);
    union(within(waits, &span).into_iter().chain(tasks).collect()).into()
}

/// The parts of a thread of a team in constructs, by call path and number.
fn shares(
    shard: &Shard,
    part: &Part,
    classes: &[Option<Class>],
    (waits, elsewhere): (&[Range<i64>], &[Range<i64>]),
    mut add: impl FnMut((CallPathId, u32), Share),
) {
    let (begin, end) = (shard.instances.enter[part.team.instance], shard.instances.leave[part.team.instance]);
    let mut numbers: FxHashMap<CallPathId, u32> = FxHashMap::default();
    // The construct that is open, the barrier in it, and the one that is complete and may have its barrier behind it.
    let mut open: Option<(CallPathId, Share)> = None;
    let mut barrier: Option<(CallPathId, i64)> = None;
    let mut complete: Option<(CallPathId, Share)> = None;
    let mut inner = 0u32;
    for event in begin + 1..end {
        let callpath = shard.events.callpath(event);
        let Some(class) = classes[callpath] else { continue };
        let time = shard.events.time[event as usize];
        let is_leave = shard.events.is_leave(event);
        match (class, is_leave) {
            (Class::Team, false) => inner += 1,
            (Class::Team, true) => inner = inner.saturating_sub(1),
            _ if inner > 0 => {}
            (Class::Construct, false) if open.is_none() => {
                let share =
                    Share { location: part.location, enter: time, end: time, work: 0, waiting: 0, has_section: false };
                finish(&mut complete, &mut numbers, &mut add);
                open = Some((callpath, share));
            }
            (Class::Construct, true) if open.is_some_and(|(other, _)| other == callpath) => {
                if let Some((_, mut share)) = open.take() {
                    // Without a barrier in it, its work ends here.
                    if share.end == share.enter {
                        share.end = time;
                        share.work = time - share.enter - waited(elsewhere, &(share.enter..time));
                    }
                    complete = Some((callpath, share));
                }
            }
            (Class::Section, false) => {
                if let Some((_, share)) = &mut open {
                    share.has_section = true;
                }
            }
            (Class::Barrier, false) => barrier = Some((callpath, time)),
            (Class::Barrier, true) => {
                let Some((_, entered)) = barrier.take().filter(|&(other, _)| other == callpath) else { continue };
                let waiting = waited(waits, &(entered..time));
                if let Some((_, share)) = &mut open {
                    share.end = entered;
                    share.work = entered - share.enter - waited(elsewhere, &(share.enter..entered));
                    share.waiting += waiting;
                } else if let Some((_, share)) = &mut complete {
                    share.waiting += waiting;
                    finish(&mut complete, &mut numbers, &mut add);
                }
            }
            _ => {}
        }
    }
    finish(&mut complete, &mut numbers, &mut add);
}

fn finish(
    complete: &mut Option<(CallPathId, Share)>,
    numbers: &mut FxHashMap<CallPathId, u32>,
    add: &mut impl FnMut((CallPathId, u32), Share),
) {
    if let Some((callpath, share)) = complete.take() {
        let number = numbers.entry(callpath).or_insert(0);
        add((callpath, *number), share);
        *number += 1;
    }
}

impl Gathered {
    fn add(&mut self, shares: &[Share]) {
        let Some(last) = shares.iter().max_by_key(|share| (share.end, Reverse(share.location))) else { return };
        let others = shares.iter().filter(|share| share.location != last.location);
        let second = others.map(|share| share.end).max();
        let work = || shares.iter().map(|share| share.work);
        self.instances += 1;
        self.threads = self.threads.max(shares.len() as u64);
        self.mean += work().sum::<i64>() / shares.len() as i64;
        self.longest += work().max().unwrap_or(0);
        self.lead += second.map_or(0, |second| last.end - second);
        *self.last.entry(last.location).or_default() += 1;
        self.without_section += shares.iter().filter(|share| !share.has_section).count() as u64;
        for share in shares {
            let late = share.waiting.min((last.enter - share.enter).max(0));
            self.late_start += late;
            self.uneven += share.waiting - late;
        }
    }

    fn finish(self, trace: &Trace, (process, callpath): (ProcessId, CallPathId)) -> LoopUse {
        let (share, least, tail) = PERSISTENT;
        let most = self.last.iter().max_by_key(|&(&location, &count)| (count, Reverse(location)));
        let (location, count) = most.map_or((LocationId::NONE, 0), |(&location, &count)| (location, count));
        let is_section =
            trace.regions.get(trace.tree.region(callpath)).is_some_and(|region| region.role == RegionRole::SECTIONS);
        let distribution = if self.instances < least {
            Distribution::Few
        } else if self.mean < TINY * self.management {
            Distribution::Tiny
        } else if count as f64 >= share * self.instances as f64 {
            Distribution::Persistent
        } else if (self.lead as f64) < tail * self.mean as f64 {
            Distribution::Tail
        } else {
            Distribution::Alternating
        };
        LoopUse {
            process,
            callpath,
            instances: self.instances,
            threads: self.threads,
            mean: self.mean,
            longest: self.longest,
            late_start: self.late_start,
            uneven: self.uneven,
            last: (if count > 0 { trace.definitions.locations[location].thread } else { 0 }, count),
            without_section: if is_section { self.without_section } else { 0 },
            distribution,
        }
    }
}
