//! Devices: a kernel begins after its launch, and the call that awaits it ends after it.

use crate::clocks::constraints::Found;
use crate::clocks::kind::Kind;
use crate::ids::LocationId;
use crate::trace::Trace;
use crate::waits::{Findings, device};

/// The constraints of devices, and the device of each stream that ran something.
pub(super) fn collect(trace: &Trace) -> (Found, Vec<(LocationId, u32)>) {
    let nothing: Vec<Findings> = trace.shards.iter().map(|_| Findings::default()).collect();
    let (devices, _) = device::detect(trace, &nothing);
    let mut found = Found::default();
    let mut streams = Vec::new();
    for of_shard in &devices {
        let kernel = |number: u32| &of_shard.kernels[number as usize].run;
        for kernel in &of_shard.kernels {
            streams.push((kernel.run.location, kernel.device));
            if let Some(launch) = &kernel.launch {
                found.link(Kind::Device, (launch.location, launch.enter), (kernel.run.location, kernel.run.enter));
            }
        }
        for (number, launch) in &of_shard.early {
            let run = kernel(*number);
            found.link(Kind::Device, (launch.location, launch.enter), (run.location, run.enter));
        }
        for &(call, number) in &of_shard.awaited {
            let (run, call) = (kernel(number), &of_shard.synchronizations[call as usize].call);
            found.link(Kind::Device, (run.location, run.leave), (call.location, call.leave));
        }
    }
    streams.sort_unstable();
    streams.dedup();
    (found, streams)
}
