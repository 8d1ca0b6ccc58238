//! How much slower a run of devices is than one in which all ranks are alike.
//!
//! The run is replayed: work begins after the work before it on its stream, after the work on another stream that it waited for, and
//! after its launch; a member of an operation ends its transfer after the last member that it needs has begun. A host takes as long
//! between two calls that wait for a device as it did. In the *ideal* run each kernel takes as long as the mean of its call path,
//! transfers as long as the median of theirs, and hosts as long as the mean of all ranks, if all launch equally often. Every
//! other run repairs some ranks or call paths only, or all but some.
//!
//! Of processes without any recorded launches, nobody knows why work begins later than all that delays it. In the runs of these,
//! before and after, it does not, and each step is a run of its own: what lies between is not recorded.
//!
//! *Source*: specification.md#device-collectives; Lin et al.: Understanding stragglers in large model training using what-if analysis,
//! arXiv 2505.05713, for the metrics.

use std::collections::BTreeMap;

use rustc_hash::FxHashMap;

use super::parameters;
use crate::ids::{CallPathId, LocationId, ProcessId};
use crate::parallel::iter::prelude::*;
use crate::severity::Metric;
use crate::trace::{NONE, Trace};
use crate::waits::device::{Devices, Kernel, StartCause};

/// Most kernels that are replayed, in all runs together.
const AFFORDABLE: usize = 100_000_000;
/// Call paths that are repaired alone: those with the most time.
const CALLPATHS: usize = 20;
/// The parameter that counts steps.
const STEP: &str = "step";
/// The share of the ranks that are repaired together as the slowest.
const SLOWEST: f64 = 0.03;

/// The lengths of replayed runs, ticks.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Stragglers {
    /// Nothing is repaired.
    pub length: i64,
    /// Everything is.
    pub ideal: i64,
    /// Everything is but one rank; empty if that would be too many kernels.
    pub of_ranks: Vec<(u32, i64)>,
    /// The 3% of the ranks that are slowest by this, and the length if only these are repaired.
    pub slowest: Option<(Vec<u32>, i64)>,
    /// Only some ranks are repaired, as asked.
    pub of_groups: Vec<i64>,
    /// Only one call path of kernels is.
    pub of_callpaths: Vec<(CallPathId, i64)>,
    /// Whether nothing but devices is recorded.
    pub is_alone: bool,
}

/// Replays a run, also with only some groups of ranks repaired; `None` if its devices do not communicate.
pub fn find(trace: &Trace, devices: &Devices, groups: &[Vec<u32>]) -> Option<Stragglers> {
    let replay = Replay::new(trace, devices)?;
    let mut ranks = replay.ranks.clone();
    ranks.sort_unstable();
    ranks.dedup();
    let is_affordable = (ranks.len() + CALLPATHS) * devices.kernels.len() <= AFFORDABLE;
    let of_ranks: Vec<(u32, i64)> = if is_affordable {
        ranks.par_iter().map(|&rank| (rank, replay.length(Repaired::AllBut(rank)))).collect()
    } else {
        Vec::new()
    };
    let mut order: Vec<(i64, u32)> = of_ranks.iter().map(|&(rank, length)| (-length, rank)).collect();
    order.sort_unstable();
    let count = (SLOWEST * order.len() as f64).ceil() as usize;
    let slowest: Vec<u32> = order.iter().take(count).map(|&(_, rank)| rank).collect();
    let slowest = (!slowest.is_empty()).then(|| (slowest.clone(), replay.length(Repaired::Ranks(&slowest))));
    let callpaths = if is_affordable { replay.callpaths() } else { Vec::new() };
    Some(Stragglers {
        length: replay.length(Repaired::Nothing),
        ideal: replay.length(Repaired::Everything),
        of_ranks,
        slowest,
        of_groups: groups.iter().map(|ranks| replay.length(Repaired::Ranks(ranks))).collect(),
        of_callpaths: callpaths.into_par_iter().map(|path| (path, replay.length(Repaired::CallPath(path)))).collect(),
        is_alone: replay.is_alone,
    })
}

/// What is as in an ideal run.
#[derive(Clone, Copy, Debug)]
enum Repaired<'a> {
    Nothing,
    Everything,
    AllBut(u32),
    Ranks(&'a [u32]),
    CallPath(CallPathId),
}

/// What a kernel waits for.
#[derive(Clone, Copy, Debug)]
enum Member {
    /// It does not communicate, or needs nobody.
    Alone,
    /// It needs all members of an operation.
    Of(u32),
    /// It needs a kernel.
    Needs(u32),
}

/// A call of a host that launches work or awaits a kernel.
#[derive(Clone, Copy, Debug)]
struct Call {
    enter: i64,
    /// When it goes on, if it awaits a kernel.
    resumes: i64,
    /// The kernel that is awaited; [`NONE`] for a launch.
    awaits: u32,
    /// The kernel that is launched; [`NONE`] for others.
    launches: u32,
}

/// The calls of the host of a rank, and what it takes until each since it last waited: as measured, and in an ideal run.
#[derive(Debug, Default)]
struct Host {
    rank: u32,
    calls: Vec<Call>,
    lengths: [Vec<i64>; 2],
}

/// A run that is replayed.
struct Replay<'a> {
    kernels: &'a [Kernel],
    /// The rank of each kernel, and what it waits for.
    ranks: Vec<u32>,
    members: Vec<Member>,
    /// The kernel before each on its stream, and the one whose end it waited for, or [`NONE`].
    before: Vec<u32>,
    after: Vec<u32>,
    /// What each takes, as measured and in an ideal run: all of it, or the transfer.
    lengths: [Vec<i64>; 2],
    /// By how much each begins later than all that delays it.
    lags: Vec<i64>,
    /// Kernels in order of their begins.
    order: Vec<u32>,
    hosts: Vec<Host>,
    /// The host of each kernel, and its launch there; [`NONE`] without a launch.
    launches: Vec<(u32, u32)>,
    operations: usize,
    /// The step of each kernel, and when each step begins.
    steps: Vec<u32>,
    begins: Vec<i64>,
    is_alone: bool,
}

impl<'a> Replay<'a> {
    fn new(trace: &Trace, devices: &'a Devices) -> Option<Self> {
        let kernels = &devices.kernels;
        if !kernels.iter().any(|kernel| kernel.communicates) {
            return None;
        }
        let rank =
            |location: LocationId| trace.definitions.processes[trace.definitions.locations[location].process].rank;
        let Needs { members, waiting, kinds, operations } = needs(devices);
        let is_alone = kernels.iter().all(|kernel| kernel.launch.is_none());
        let (steps, begins) = steps(trace, kernels, is_alone);
        let mut on_stream: FxHashMap<LocationId, u32> = FxHashMap::default();
        let before = (0..).zip(kernels).map(|(number, kernel)| {
            let before = on_stream.insert(kernel.run.location, number);
            let is_before = |other: u32| {
                let other = &kernels[other as usize].run;
                // What is not launched begins some microseconds early by its clock.
                other.leave <= kernel.run.enter || (is_alone && other.enter < kernel.run.enter)
            };
            before.filter(|&other| is_before(other) && steps[other as usize] == steps[number as usize]).unwrap_or(NONE)
        });
        let before: Vec<u32> = before.collect();
        let after = kernels.iter().enumerate().map(|(number, kernel)| match kernel.start_cause {
            StartCause::After(other) if steps[other as usize] == steps[number] => other,
            _ => NONE,
        });
        let after = after.collect();
        let length = |(kernel, waiting): (&Kernel, &i64)| kernel.run.leave - kernel.run.enter - waiting;
        let measured: Vec<i64> = kernels.iter().zip(&waiting).map(length).collect();
        let mut order: Vec<u32> = (0..kernels.len() as u32).collect();
        order.sort_by_key(|&number| (kernels[number as usize].run.enter, kernels[number as usize].run.leave));
        let mut found = Self {
            kernels,
            ranks: kernels.iter().map(|kernel| rank(kernel.run.location)).collect(),
            members,
            before,
            after,
            lengths: [Vec::new(), typical(kernels, &kinds, &measured)],
            lags: vec![0; kernels.len()],
            order,
            hosts: Vec::new(),
            launches: vec![(NONE, NONE); kernels.len()],
            operations,
            steps,
            begins,
            is_alone,
        };
        found.lengths[0] = measured;
        found.find_hosts(devices, &rank);
        if !is_alone {
            found.find_lags();
        }
        Some(found)
    }

    fn find_hosts(&mut self, devices: &Devices, rank: &impl Fn(LocationId) -> u32) {
        let mut of_ranks: BTreeMap<u32, Vec<Call>> = BTreeMap::new();
        for (number, kernel) in (0..).zip(self.kernels) {
            if let Some(launch) = kernel.launch {
                let enter = launch.enter.min(kernel.run.enter);
                let call = Call { enter, resumes: enter, awaits: NONE, launches: number };
                of_ranks.entry(rank(launch.location)).or_default().push(call);
            }
        }
        for synchronization in &devices.synchronizations {
            if let Some(awaits) = synchronization.kernel {
                let enter = synchronization.call.enter;
                let call = Call { enter, resumes: enter + synchronization.waiting, awaits, launches: NONE };
                of_ranks.entry(rank(synchronization.call.location)).or_default().push(call);
            }
        }
        for (rank, mut calls) in of_ranks {
            calls.sort_by_key(|call| (call.enter, call.awaits != NONE, call.launches));
            let mut resumed = self.begins[0];
            let mut measured = Vec::with_capacity(calls.len());
            for (at, call) in (0..).zip(&calls) {
                measured.push(call.enter - resumed);
                if call.awaits == NONE {
                    self.launches[call.launches as usize] = (self.hosts.len() as u32, at);
                } else {
                    resumed = call.resumes;
                }
            }
            self.hosts.push(Host { rank, calls, lengths: [measured.clone(), measured] });
        }
        let is_alike = |host: &Host| {
            let both = host.calls.iter().zip(&self.hosts[0].calls);
            host.calls.len() == self.hosts[0].calls.len() && { both }
                .all(|(a, b)| (a.awaits == NONE) == (b.awaits == NONE))
        };
        if !self.hosts.is_empty() && self.hosts.iter().all(is_alike) {
            let count = self.hosts.len() as i64;
            let mean = |at: usize| self.hosts.iter().map(|host| host.lengths[0][at]).sum::<i64>() / count;
            let means: Vec<i64> = (0..self.hosts[0].calls.len()).map(mean).collect();
            for host in &mut self.hosts {
                host.lengths[1].clone_from(&means);
            }
        }
    }

    fn find_lags(&mut self) {
        for (number, kernel) in self.kernels.iter().enumerate() {
            let others = [self.before[number], self.after[number]].into_iter().filter(|&other| other != NONE);
            let ends = others.map(|other| self.kernels[other as usize].run.leave);
            let launched = kernel.launch.map(|launch| launch.enter);
            if let Some(latest) = ends.chain(launched).filter(|&time| time <= kernel.run.enter).max() {
                self.lags[number] = kernel.run.enter - latest;
            }
        }
    }

    /// The call paths of kernels that compute with the most time.
    fn callpaths(&self) -> Vec<CallPathId> {
        let mut times: BTreeMap<CallPathId, i64> = BTreeMap::new();
        for (kernel, length) in self.kernels.iter().zip(&self.lengths[0]).filter(|(kernel, _)| !kernel.communicates) {
            *times.entry(kernel.run.callpath).or_default() += length;
        }
        let mut order: Vec<(i64, CallPathId)> = times.into_iter().map(|(callpath, time)| (-time, callpath)).collect();
        order.sort_unstable();
        order.into_iter().take(CALLPATHS).map(|(_, callpath)| callpath).collect()
    }

    /// The length of the run.
    fn length(&self, repaired: Repaired) -> i64 {
        let of_rank = |rank: u32| match repaired {
            Repaired::Nothing | Repaired::CallPath(_) => false,
            Repaired::Everything => true,
            Repaired::AllBut(other) => rank != other,
            Repaired::Ranks(ranks) => ranks.contains(&rank),
        };
        let length = |number: u32| {
            let at = number as usize;
            let kernel = &self.kernels[at];
            let is_of_path = matches!(repaired, Repaired::CallPath(path) if path == kernel.run.callpath);
            self.lengths[usize::from(of_rank(self.ranks[at]) || (is_of_path && !kernel.communicates))][at]
        };
        let mut now = Now {
            replay: self,
            begins: vec![i64::MIN; self.kernels.len()],
            latest: vec![i64::MIN; self.operations],
            hosts: self.hosts.iter().map(|host| (0, self.begins[0], usize::from(of_rank(host.rank)))).collect(),
        };
        let mut last = self.begins.clone();
        for &number in &self.order {
            now.begin(number, &length);
        }
        for &number in &self.order {
            let last = &mut last[self.steps[number as usize] as usize];
            *last = now.end(number, &length).max(*last);
        }
        last.iter().zip(&self.begins).map(|(last, begin)| last - begin).sum()
    }
}

/// A replay under way.
struct Now<'a> {
    replay: &'a Replay<'a>,
    begins: Vec<i64>,
    /// The latest begin of a member of each operation so far.
    latest: Vec<i64>,
    /// The next call of each host, when it last went on, and which lengths are its own.
    hosts: Vec<(u32, i64, usize)>,
}

impl Now<'_> {
    /// What a kernel needs has begun when this is asked: it began before it ended.
    fn end(&self, number: u32, length: &impl Fn(u32) -> i64) -> i64 {
        let begin = self.begins[number as usize];
        let until = match self.replay.members[number as usize] {
            Member::Alone => begin,
            Member::Of(operation) => self.latest[operation as usize],
            Member::Needs(other) => self.begins[other as usize],
        };
        begin.max(until) + length(number)
    }

    fn begin(&mut self, number: u32, length: &impl Fn(u32) -> i64) {
        let replay = self.replay;
        let kernel = &replay.kernels[number as usize];
        let mut begin = i64::MIN;
        if replay.before[number as usize] != NONE {
            begin = begin.max(self.end(replay.before[number as usize], length));
        }
        if replay.after[number as usize] != NONE {
            begin = begin.max(self.end(replay.after[number as usize], length));
        }
        let (host, launch) = replay.launches[number as usize];
        if host != NONE {
            begin = begin.max(self.launch(host as usize, launch, length));
        }
        let begin = if begin == i64::MIN { kernel.run.enter } else { begin + replay.lags[number as usize] };
        self.begins[number as usize] = begin;
        if let Member::Of(operation) = replay.members[number as usize] {
            let latest = &mut self.latest[operation as usize];
            *latest = begin.max(*latest);
        }
    }

    /// When a host launches: what it awaited before has ended.
    fn launch(&mut self, host: usize, launch: u32, length: &impl Fn(u32) -> i64) -> i64 {
        let Host { calls, lengths, .. } = &self.replay.hosts[host];
        let (next, mut resumed, lengths_of) = self.hosts[host];
        let lengths = &lengths[lengths_of];
        for at in next..launch {
            let awaits = calls[at as usize].awaits;
            if awaits != NONE {
                resumed = (resumed + lengths[at as usize]).max(self.end(awaits, length));
            }
        }
        self.hosts[host] = (next.max(launch), resumed, lengths_of);
        resumed + lengths[launch as usize]
    }
}

/// The step of each kernel, and when each begins: one for all, unless nothing but devices and steps is recorded.
fn steps(trace: &Trace, kernels: &[Kernel], is_alone: bool) -> (Vec<u32>, Vec<i64>) {
    let first = kernels.iter().map(|kernel| kernel.run.enter).min().unwrap_or(0);
    let one = || {
        let begin = trace.span().map_or(first, |(begin, _)| if is_alone { first } else { begin.min(first) });
        (vec![0; kernels.len()], vec![begin])
    };
    let (ids, _) = parameters::named(trace.records(), STEP);
    if !is_alone || ids.is_empty() || trace.exchange.processes() > 1 {
        return one();
    }
    let mut of_processes: FxHashMap<ProcessId, Vec<(i64, u64)>> = FxHashMap::default();
    let mut values: Vec<u64> = Vec::new();
    for shard in &trace.shards {
        for process in shard.processes {
            let changes = parameters::changes(shard, trace.definitions.master(process), &ids);
            values.extend(changes.iter().map(|change| change.value));
            of_processes.insert(process, changes.iter().map(|change| (change.time, change.value)).collect());
        }
    }
    values.sort_unstable();
    values.dedup();
    let mut begins = vec![i64::MAX; values.len()];
    let step = |kernel: &Kernel| {
        let changes = of_processes.get(&trace.definitions.locations[kernel.run.location].process)?;
        let (_, value) = changes[changes.partition_point(|&(time, _)| time <= kernel.run.enter).checked_sub(1)?];
        let step = values.binary_search(&value).ok()?;
        begins[step] = begins[step].min(kernel.run.enter);
        Some(step as u32)
    };
    let steps: Option<Vec<u32>> = kernels.iter().map(step).collect();
    // A step without work takes no time.
    steps.map_or_else(one, |steps| {
        (steps, begins.into_iter().map(|begin| if begin == i64::MAX { 0 } else { begin }).collect())
    })
}

/// What kernels wait for.
struct Needs {
    members: Vec<Member>,
    /// How long each waited.
    waiting: Vec<i64>,
    /// The metric of each wait.
    kinds: Vec<Option<Metric>>,
    /// Number of operations.
    operations: usize,
}

fn needs(devices: &Devices) -> Needs {
    let kernels = &devices.kernels;
    let keys = kernels.iter().map(|kernel| (kernel.run.location, kernel.run.instance));
    let numbers: FxHashMap<_, u32> = keys.zip(0..).collect();
    let mut operations: FxHashMap<_, u32> = FxHashMap::default();
    let (mut members, mut waiting) = (vec![Member::Alone; kernels.len()], vec![0; kernels.len()]);
    let mut kinds = vec![None; kernels.len()];
    for part in &devices.parts {
        let Some(&number) = numbers.get(&part.kernel) else { continue };
        waiting[number as usize] = part.waiting;
        kinds[number as usize] = Some(part.kind);
        let next = operations.len() as u32;
        if let Some(tie) = part.tie {
            members[number as usize] = Member::Of(*operations.entry(tie).or_insert(next));
            continue;
        }
        let cause = numbers.get(&part.cause).filter(|_| part.cause != part.kernel);
        // Who only sends to the root of a reduction needs nobody, and neither does what was sent before somebody received.
        let is_free = match part.kind {
            Metric::CclEarlyReduce => part.waiting == 0,
            Metric::CclLateReceiver => {
                cause.is_some_and(|&cause| kernels[cause as usize].run.enter > kernels[number as usize].run.leave)
            }
            _ => false,
        };
        if let Some(&cause) = cause.filter(|_| !is_free) {
            members[number as usize] = Member::Needs(cause);
        }
    }
    Needs { members, waiting, kinds, operations: operations.len() }
}

/// What each kernel takes in an ideal run: the mean of its call path, or of a transfer the median.
fn typical(kernels: &[Kernel], kinds: &[Option<Metric>], lengths: &[i64]) -> Vec<i64> {
    // Kernels that send and those that receive have one name.
    type Key = (bool, Option<Metric>, CallPathId);
    let key = |(kernel, kind): (&Kernel, &Option<Metric>)| (kernel.communicates, *kind, kernel.run.callpath);
    let mut of_keys: BTreeMap<Key, Vec<i64>> = BTreeMap::new();
    for (kernel, &length) in kernels.iter().zip(kinds).zip(lengths) {
        of_keys.entry(key(kernel)).or_default().push(length);
    }
    let typical = |(key, mut lengths): (Key, Vec<i64>)| {
        let middle = (lengths.len() - 1) / 2;
        let length = if key.0 {
            *lengths.select_nth_unstable(middle).1
        } else {
            (lengths.iter().map(|&length| i128::from(length)).sum::<i128>() / lengths.len() as i128) as i64
        };
        (key, length)
    };
    let typical: FxHashMap<Key, i64> = of_keys.into_iter().map(typical).collect();
    kernels.iter().zip(kinds).map(|kernel| typical[&key(kernel)]).collect()
}
