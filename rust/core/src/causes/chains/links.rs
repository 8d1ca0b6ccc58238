//! What delayed the begin of each kernel that communicates, back to the kernel before it on its chain that does.
//!
//! From the begin of work on a stream the chain goes on to what delayed it ([`StartCause`]): the end of other work, or its
//! launch, and then backwards in time on the launching thread. A call of this thread that waited for work leads to the end of
//! that work. Where a thread other than the first one of its process is in no call, it waits for the first one to give it
//! something to do, so the chain goes on there. What the thread waits in MPI is a wait on the chain. The time from the cause of a begin to the begin, the *latency*, belongs to the
//! launch of the work that begins; if the launch is not recorded, to what the first thread is in meanwhile. Of a process without
//! any launches nobody knows what its host does: this latency has no call path.

use std::collections::BTreeMap;
use std::ops::Range;

use bitcode::{Decode, Encode};
use rustc_hash::FxHashMap;

use crate::ids::{CallPathId, CommId, InstanceId, LocationId};
use crate::parallel::iter::prelude::*;
use crate::parallel::per_shard::PerShard;
use crate::severity::Metric;
use crate::trace::{Shard, Trace};
use crate::waits::WaitState;
use crate::waits::device::{DevicePart, Devices, Kernel, StartCause, waiting_in_mpi};

/// An operation of which each member needs all others.
pub(super) type Tie = (CommId, u32);

/// A kernel that communicates.
#[derive(Clone, Debug, Encode, Decode)]
pub(super) struct Node {
    /// Location and region instance.
    pub kernel: (LocationId, InstanceId),
    pub callpath: CallPathId,
    /// Begin and end, ticks.
    pub begin: i64,
    pub end: i64,
    /// From its begin until all that it needs had begun, and what of this is exposed, ticks.
    pub waiting: i64,
    pub exposed: i64,
    /// The metric of its wait; `None` if it is no part of an operation.
    pub kind: Option<Metric>,
    /// What it waits for.
    pub cause: (LocationId, InstanceId),
    pub tie: Option<Tie>,
    pub link: Link,
}

/// The chain of a kernel, back to the kernel before it.
#[derive(Clone, Debug, Encode, Decode)]
pub(super) struct Link {
    /// The kernel before it that communicates; `None` if the chain begins without one.
    pub before: Option<(LocationId, InstanceId)>,
    /// The end of that one, or the begin of the chain, ticks.
    pub since: i64,
    /// What happened meanwhile; from the latest to the earliest if `in_order`.
    pub stretches: Vec<Stretch>,
    /// Whether nothing before is part of an operation, so that a record that begins later cuts this link.
    pub in_order: bool,
}

/// What happened on a chain: work in a call path, or a wait of the host in MPI.
#[derive(Clone, Copy, Debug, Encode, Decode)]
pub(super) struct Stretch {
    pub location: LocationId,
    pub callpath: CallPathId,
    /// The call that waits; none if it is work.
    pub wait: InstanceId,
    pub ticks: i64,
}

impl Stretch {
    fn work((location, callpath): (LocationId, CallPathId), ticks: i64) -> Self {
        Self { location, callpath, wait: InstanceId::NONE, ticks }
    }

    fn key(&self) -> (LocationId, CallPathId, InstanceId) {
        (self.location, self.callpath, self.wait)
    }
}

/// The nodes of the shards of this process.
pub(super) fn of_shards(trace: &Trace, devices: &[Devices], waits: &PerShard<WaitState>) -> Vec<Node> {
    let pairs: Vec<(&Shard, &Devices, &[WaitState])> = trace
        .shards
        .iter()
        .zip(devices)
        .zip(0..)
        .map(|((shard, devices), i)| (shard, devices, waits.of(i).1))
        .collect();
    let nodes = pairs.par_iter().flat_map(|&(shard, devices, waits)| {
        let parts: FxHashMap<_, &DevicePart> = devices.parts.iter().map(|part| (part.kernel, part)).collect();
        let process = |kernel: &Kernel| trace.definitions.locations[kernel.run.location].process;
        let of_processes = devices.kernels.chunk_by(|a, b| process(a) == process(b));
        let of_processes = of_processes.filter(|kernels| kernels.iter().any(|kernel| kernel.communicates));
        let nodes = of_processes.flat_map(|kernels| {
            let rank = Rank::new(trace, shard, (devices, waits), kernels);
            let nodes = kernels.iter().filter(|kernel| kernel.communicates);
            nodes.map(|kernel| rank.node(kernel, &parts)).collect::<Vec<_>>()
        });
        nodes.collect::<Vec<_>>()
    });
    nodes.collect()
}

/// A rank whose chains are followed.
struct Rank<'a> {
    trace: &'a Trace,
    devices: &'a Devices,
    first: LocationId,
    threads: BTreeMap<LocationId, Thread>,
    has_launches: bool,
}

/// What a thread did, and when it waited for devices.
struct Thread {
    /// Innermost call path, begin and end, in order.
    stretches: Vec<(CallPathId, i64, i64)>,
    /// End, begin, and what it waited for: a position among the kernels.
    waits: Vec<(i64, i64, u32)>,
    /// Begin, end, and call of its waits in MPI, in order.
    in_mpi: Vec<(i64, i64, InstanceId)>,
}

impl Thread {
    /// Adds what the thread did in a stretch of a call path, backwards: its waits in MPI, and the rest.
    fn add(&self, place: (LocationId, CallPathId), time: Range<i64>, add: &mut impl FnMut(Stretch)) {
        let mut until = time.end;
        let before = self.in_mpi.partition_point(|&(begin, ..)| begin < time.end);
        for &(begin, end, wait) in self.in_mpi[..before].iter().rev().take_while(|&&(_, end, _)| end > time.start) {
            let (begin, end) = (begin.max(time.start), end.min(until));
            add(Stretch::work(place, until - end));
            add(Stretch { wait, ..Stretch::work(place, end - begin) });
            until = begin;
        }
        add(Stretch::work(place, until - time.start));
    }
}

/// Where a chain stands.
enum At {
    /// At the begin of work.
    Begin(u32),
    /// In work, at a time.
    End(u32, i64),
    /// In a thread, at a time.
    Host(LocationId, i64),
}

impl<'a> Rank<'a> {
    fn new(trace: &'a Trace, shard: &Shard, (devices, waits): (&'a Devices, &[WaitState]), kernels: &[Kernel]) -> Self {
        let process = trace.definitions.locations[kernels[0].run.location].process;
        let first = trace.definitions.master(process);
        let launching = kernels.iter().filter_map(|kernel| Some(kernel.launch?.location));
        let mut threads: BTreeMap<LocationId, Thread> = BTreeMap::new();
        for thread in launching.chain([first]) {
            threads.entry(thread).or_insert_with(|| {
                let i = shard.local(thread);
                let span = &shard.spans[i];
                let stretches = shard.stretches(&trace.tree, i, span.first..span.last.max(span.first)).collect();
                let in_mpi = waiting_in_mpi(trace, thread, waits).into_iter();
                let in_mpi = in_mpi.filter(|(wait, ..)| wait.cause_instance.is_some());
                let in_mpi = in_mpi.map(|(wait, begin, end)| (begin, end, wait.instance)).collect();
                Thread { stretches, waits: Vec::new(), in_mpi }
            });
        }
        for synchronization in &devices.synchronizations {
            let call = &synchronization.call;
            if let (Some(kernel), Some(thread)) = (synchronization.kernel, threads.get_mut(&call.location))
                && synchronization.waiting > 0
            {
                thread.waits.push((call.enter + synchronization.waiting, call.enter, kernel));
            }
        }
        for thread in threads.values_mut() {
            thread.waits.sort_unstable();
        }
        let has_launches = kernels.iter().any(|kernel| kernel.launch.is_some());
        Self { trace, devices, first, threads, has_launches }
    }

    fn node(&self, kernel: &Kernel, parts: &FxHashMap<(LocationId, InstanceId), &DevicePart>) -> Node {
        let run = &kernel.run;
        let key = (run.location, run.instance);
        let part = parts.get(&key);
        Node {
            kernel: key,
            callpath: run.callpath,
            begin: run.enter,
            end: run.leave,
            waiting: part.map_or(0, |part| part.waiting),
            exposed: part.map_or(0, |part| part.exposed),
            kind: part.map(|part| part.kind),
            cause: part.map_or((LocationId::NONE, InstanceId::NONE), |part| part.cause),
            tie: part.and_then(|part| part.tie),
            link: self.link(kernel, parts),
        }
    }

    fn kernel(&self, number: u32) -> &'a Kernel {
        &self.devices.kernels[number as usize]
    }

    /// Follows the chain of a kernel to the kernel before it.
    fn link(&self, kernel: &Kernel, parts: &FxHashMap<(LocationId, InstanceId), &DevicePart>) -> Link {
        let mut stretches: Vec<Stretch> = Vec::new();
        let mut add = |next: Stretch| match stretches.last_mut() {
            Some(last) if last.key() == next.key() => last.ticks += next.ticks,
            _ if next.ticks > 0 => stretches.push(next),
            _ => {}
        };
        let mut since = kernel.run.enter;
        let mut begun = kernel;
        let mut at = self.cause(kernel);
        let before = loop {
            match at {
                None => break None,
                Some(At::Begin(number)) => {
                    begun = self.kernel(number);
                    at = self.cause(begun);
                }
                Some(At::End(number, time)) => {
                    let time = time.min(since);
                    add(Stretch::work(self.launching(begun, time), since - time));
                    since = time;
                    let kernel = self.kernel(number);
                    if kernel.communicates {
                        break Some((kernel.run.location, kernel.run.instance));
                    }
                    let place = (kernel.run.location, kernel.run.callpath);
                    add(Stretch::work(place, since - kernel.run.enter.min(since)));
                    // Work that ends at its begin, or by clocks before it, would never end.
                    if kernel.run.enter >= since {
                        break None;
                    }
                    since = kernel.run.enter;
                    at = Some(At::Begin(number));
                }
                Some(At::Host(thread, time)) => {
                    let time = time.min(since);
                    add(Stretch::work(self.launching(begun, time), since - time));
                    since = time;
                    at = self.host(thread, &mut since, &mut add);
                }
            }
        };
        let in_order = before.is_none_or(|before| !parts.contains_key(&before));
        if !in_order {
            stretches.sort_unstable_by_key(Stretch::key);
            stretches.dedup_by(|next, kept| {
                let is_same = next.key() == kept.key();
                kept.ticks += if is_same { next.ticks } else { 0 };
                is_same
            });
            stretches.shrink_to_fit();
        }
        Link { before, since, stretches, in_order }
    }

    /// What delayed the begin of work.
    fn cause(&self, kernel: &Kernel) -> Option<At> {
        match kernel.start_cause {
            StartCause::Unknown => None,
            StartCause::Launched => kernel.launch.map(|launch| At::Host(launch.location, launch.enter)),
            StartCause::After(other) => Some(At::End(other, self.kernel(other).run.leave)),
        }
    }

    /// What is late if work begins later than its cause ended: its launch, or the first thread at that time, or nobody knows.
    fn launching(&self, kernel: &Kernel, time: i64) -> (LocationId, CallPathId) {
        if let Some(launch) = kernel.launch {
            return (launch.location, launch.callpath);
        }
        if !self.has_launches {
            return (self.first, CallPathId::NONE);
        }
        let stretches = &self.threads[&self.first].stretches;
        let before = stretches.partition_point(|&(_, begin, _)| begin <= time);
        let running = stretches[..before].last().filter(|&&(callpath, _, end)| callpath.is_some() && time < end);
        running.map_or((kernel.run.location, kernel.run.callpath), |&(callpath, ..)| (self.first, callpath))
    }

    /// Follows a thread back to what it waited for.
    fn host(&self, thread: LocationId, since: &mut i64, add: &mut impl FnMut(Stretch)) -> Option<At> {
        let of_thread = self.threads.get(&thread)?;
        let Thread { stretches, waits, .. } = of_thread;
        let last = waits.partition_point(|&(end, ..)| end <= *since).checked_sub(1).map(|last| waits[last]);
        let until = last.map_or(i64::MIN, |(end, ..)| end);
        let before = stretches.partition_point(|&(_, begin, _)| begin < *since);
        for &(callpath, begin, end) in stretches[..before].iter().rev().take_while(|&&(_, _, end)| end > until) {
            let begin = begin.max(until);
            if callpath.is_none() && thread != self.first {
                *since = (*since).min(end);
                return Some(At::Host(self.first, *since));
            }
            of_thread.add((thread, callpath), begin..end.min(*since), add);
            *since = begin;
        }
        debug_assert!(self.trace.owns(thread));
        last.map(|(end, _, kernel)| At::End(kernel, end))
    }
}
