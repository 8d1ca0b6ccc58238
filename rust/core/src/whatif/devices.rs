//! Arcs between hosts and devices (whatif.md#how-it-works): launches, kernels, synchronizations.
//!
//! A kernel starts after its launch began and after what its stream ran before. A call that awaits kernels waits for the
//! last one of each stream, also for one that had ended when it was called: in the changed run it may not have.

use super::builder::{Builder, Raw, enter, leave};
use super::graph::Kind;
use crate::trace::Trace;
use crate::waits::device::{Devices, Span};

/// Finds the arcs of all devices.
pub(super) fn collect(trace: &Trace, devices: &Devices, builder: &mut Builder) {
    for kernel in &devices.kernels {
        let run = &kernel.run;
        // Where clocks disagree, the launch says nothing about the start.
        let Some(launch) = kernel.launch.filter(|launch| launch.enter <= run.enter) else { continue };
        let shard = trace.shard(run.location);
        let position = shard.instances.enter[run.instance];
        let is_first = position == shard.event_offsets[shard.local(run.location)];
        let kind = if is_first { Kind::Begin } else { Kind::Gate };
        let start = builder.stop(run.location, position, run.enter, kind);
        let launched = enter(instance(trace, builder, &launch));
        builder.raws.push(Raw::new(builder.stop_target(start), launched, launch.enter));
    }
    for &(call, kernel) in &devices.awaited {
        let (call, run) = (&devices.synchronizations[call as usize].call, &devices.kernels[kernel as usize].run);
        let (target, ended) = (instance(trace, builder, call), leave(instance(trace, builder, run)));
        builder.raws.push(Raw::new(target, ended, run.leave));
    }
}

fn instance(trace: &Trace, builder: &Builder, span: &Span) -> u32 {
    builder.instance(trace, (span.location, span.instance))
}
