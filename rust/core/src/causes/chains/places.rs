//! Where a chain goes on from a place: what delayed work, or what a thread did before.
//!
//! From the begin of work on a stream the chain goes on to what delayed it ([`StartCause`]): the end of other work, or its
//! launch, and then backwards in time on the launching thread. A call of this thread that waited for work leads to the end of
//! that work. Where a thread other than the first one of its process is in no call, it waits for the first one to give it
//! something to do, so the chain goes on there. What the thread waits in MPI is a wait on the chain. The time from the cause of a
//! begin to the begin, the *latency*, belongs to the launch of the work that begins; if the launch is not recorded, to what the
//! first thread is in meanwhile. Of a process without any launches nobody knows what its host does: this latency has no call path.

use std::collections::BTreeMap;
use std::ops::Range;

use bitcode::{Decode, Encode};

use crate::ids::{CallPathId, InstanceId, LocationId};
use crate::trace::{Shard, Trace};
use crate::waits::WaitState;
use crate::waits::device::{Devices, Kernel, StartCause, waiting_in_mpi};

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

    /// What stretches are of, which can be one.
    pub(super) fn key(&self) -> (LocationId, CallPathId, InstanceId) {
        (self.location, self.callpath, self.wait)
    }
}

/// A rank whose chains are followed.
pub(super) struct Rank<'a> {
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
#[derive(Clone, Copy, Debug)]
pub(super) enum At {
    /// At the begin of work.
    Begin(u32),
    /// In a thread, at a time.
    Host(LocationId, i64),
}

/// What a chain goes on with.
pub(super) enum Next {
    /// Another place.
    At(At),
    /// The rest of the chain of this place, at an earlier time of the thread.
    Joins(u32),
    /// A kernel that communicates, or nothing.
    Before(Option<(LocationId, InstanceId)>),
}

impl<'a> Rank<'a> {
    pub(super) fn new(
        trace: &'a Trace,
        shard: &Shard,
        (devices, waits): (&'a Devices, &[WaitState]),
        kernels: &[Kernel],
    ) -> Self {
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

    /// A kernel by its number.
    pub(super) fn kernel(&self, number: u32) -> &'a Kernel {
        &self.devices.kernels[number as usize]
    }

    /// When a chain is at a place.
    pub(super) fn time(&self, at: At) -> i64 {
        match at {
            At::Begin(number) => self.kernel(number).run.enter,
            At::Host(_, time) => time,
        }
    }

    /// Follows a chain from a place to the next one: what happened in between, until when, and what is next. `earlier` is a
    /// place that is known in the same thread, at an earlier time.
    pub(super) fn step(&self, at: At, earlier: Option<(i64, u32)>, add: &mut impl FnMut(Stretch)) -> (i64, Next) {
        match at {
            At::Host(thread, time) => self.host((thread, time), earlier, add),
            At::Begin(number) => {
                let kernel = self.kernel(number);
                let begin = kernel.run.enter;
                match (kernel.start_cause, kernel.launch) {
                    (StartCause::After(other), _) => {
                        let end = self.kernel(other).run.leave.min(begin);
                        self.work((other, end), (begin, self.launching(kernel, end)), number, add)
                    }
                    (StartCause::Launched, Some(launch)) => {
                        let time = launch.enter.min(begin);
                        add(Stretch::work((launch.location, launch.callpath), begin - time));
                        (time, Next::At(At::Host(launch.location, time)))
                    }
                    _ => (begin, Next::Before(None)),
                }
            }
        }
    }

    /// Goes through work that ended at a time, and before it through what was late until another one. Work without length leads on
    /// if its number is below `limit`.
    fn work(
        &self,
        (number, end): (u32, i64),
        (since, late): (i64, (LocationId, CallPathId)),
        limit: u32,
        add: &mut impl FnMut(Stretch),
    ) -> (i64, Next) {
        add(Stretch::work(late, since - end));
        let kernel = self.kernel(number);
        let run = &kernel.run;
        if kernel.communicates {
            return (end, Next::Before(Some((run.location, run.instance))));
        }
        // Work that ends at its begin, or by clocks before it, could go on forever.
        if run.enter > end || (run.enter == end && number >= limit) {
            return (end, Next::Before(None));
        }
        add(Stretch::work((run.location, run.callpath), end - run.enter));
        (run.enter, Next::At(At::Begin(number)))
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

    /// Follows a thread back to what it waited for, or to a place that is known.
    fn host(
        &self,
        (thread, time): (LocationId, i64),
        earlier: Option<(i64, u32)>,
        add: &mut impl FnMut(Stretch),
    ) -> (i64, Next) {
        let Some(of_thread) = self.threads.get(&thread) else { return (time, Next::Before(None)) };
        debug_assert!(self.trace.owns(thread));
        let Thread { stretches, waits, .. } = of_thread;
        let last = waits.partition_point(|&(end, ..)| end <= time).checked_sub(1).map(|last| waits[last]);
        let until = last.map_or(i64::MIN, |(end, ..)| end);
        let earlier = earlier.filter(|&(earlier, _)| earlier >= until);
        let until = earlier.map_or(until, |(earlier, _)| earlier);
        let mut since = time;
        let before = stretches.partition_point(|&(_, begin, _)| begin < since);
        for &(callpath, begin, end) in stretches[..before].iter().rev().take_while(|&&(_, _, end)| end > until) {
            let begin = begin.max(until);
            if callpath.is_none() && thread != self.first {
                since = since.min(end);
                return (since, Next::At(At::Host(self.first, since)));
            }
            of_thread.add((thread, callpath), begin..end.min(since), add);
            since = begin;
        }
        match (earlier, last) {
            (Some((_, place)), _) => (since, Next::Joins(place)),
            (None, Some((end, _, kernel))) => {
                self.work((kernel, end.min(since)), (since, (thread, CallPathId::NONE)), 0, add)
            }
            (None, None) => (since, Next::Before(None)),
        }
    }
}
