//! Arcs between hosts and devices (whatif.md#how-it-works): launches, kernels, synchronizations.
//!
//! A kernel starts after the begin of its launch, after the previous kernel on its stream, and in a run whose devices
//! communicate after the kernel of another stream that it waited for. A call that awaits kernels waits for the last one of each
//! stream, even if that had already ended, since in the changed run it may not have. Streams without known launches move with the
//! first thread of their process, unless nothing but devices is recorded of it.

use std::collections::BTreeSet;

use rustc_hash::FxHashSet;

use crate::ids::{LocationId, ProcessId};
use crate::trace::Trace;
use crate::waits::device::{Devices, Span, StartCause};
use crate::whatif::graph::builder::{Builder, Node, Raw, enter, leave, stop};
use crate::whatif::graph::steps::Kind;

/// Finds the arcs of all devices; `alone` are the processes of which nothing but these is recorded.
pub(in crate::whatif) fn collect(trace: &Trace, devices: &Devices, alone: &BTreeSet<ProcessId>, builder: &mut Builder) {
    let launched = devices.kernels.iter().filter(|kernel| kernel.launch.is_some());
    let launched: FxHashSet<LocationId> = launched.map(|kernel| kernel.run.location).collect();
    let communicates = devices.kernels.iter().any(|kernel| kernel.communicates);
    for kernel in devices.kernels.iter().filter(|kernel| trace.owns(kernel.run.location)) {
        let run = &kernel.run;
        let started = match &kernel.launch {
            Some(launch) => Some((enter(instance(trace, builder, launch)), launch.enter)),
            None if launched.contains(&run.location) => None,
            None if alone.contains(&trace.definitions.locations[run.location].process) => None,
            None => meanwhile(trace, run, builder).map(|node| (node, run.enter)),
        };
        // Work on other streams that it began after: what delayed it, and what would have if that had ended earlier.
        let after = match kernel.start_cause {
            StartCause::After(other) if communicates => Some(other),
            _ => None,
        };
        let ended = [after, kernel.follows.filter(|_| kernel.follows != after)].map(|other| {
            let other = &devices.kernels[other? as usize].run;
            let is_other = other.location != run.location;
            is_other.then(|| (leave(builder.instance(trace, (other.location, other.last))), other.leave))
        });
        // With clock errors, the launch does not constrain the start.
        let sources = [started, ended[0], ended[1]].map(|source| source.filter(|&(_, time)| time <= run.enter));
        if sources.iter().all(Option::is_none) {
            continue;
        }
        let shard = trace.shard(run.location);
        let position = shard.instances.enter[run.instance];
        let is_first = position == shard.event_offsets[shard.local(run.location)];
        let kind = if is_first { Kind::Begin } else { Kind::Gate };
        let start = builder.stop(run.location, position, run.enter, kind);
        let target = builder.stop_target(start);
        builder.raws.extend(sources.into_iter().flatten().map(|(source, time)| Raw::new(target, source, time)));
    }
    for &(call, kernel) in &devices.awaited {
        let (call, run) = (&devices.synchronizations[call as usize].call, &devices.kernels[kernel as usize].run);
        if !trace.owns(run.location) {
            continue;
        }
        let (target, ended) =
            (instance(trace, builder, call), leave(builder.instance(trace, (run.location, run.last))));
        builder.raws.push(Raw::new(target, ended, run.leave));
    }
}

/// The position of a process's first thread when a kernel starts; `None` before the thread has begun.
fn meanwhile(trace: &Trace, run: &Span, builder: &mut Builder) -> Option<Node> {
    let process = trace.definitions.locations[run.location].process;
    let master = trace.definitions.master(process);
    let shard = trace.shard(master);
    let i = shard.local(master);
    let (begin, end) = (shard.event_offsets[i], shard.event_offsets[i + 1]);
    let before = shard.events.time[begin as usize..end as usize].partition_point(|&event| event <= run.enter) as u32;
    (before > 0).then(|| stop(builder.stop(master, begin + before, run.enter, Kind::Point)))
}

fn instance(trace: &Trace, builder: &Builder, span: &Span) -> u32 {
    builder.instance(trace, (span.location, span.instance))
}
