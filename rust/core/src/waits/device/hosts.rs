//! What hosts do while their devices do nothing.
//!
//! *Source*: accelerators.md#load-imbalance.

use std::collections::BTreeMap;
use std::ops::Range;

use whywait_otf2::enums::LocationType;

use super::activity::{Devices, Kernel};
use crate::Result;
use crate::ids::{CallPathId, LocationId};
use crate::parallel::iter::prelude::*;
use crate::trace::Trace;

impl Devices {
    /// Ticks within a window that each thread of a process with devices computes while its process runs no kernel.
    /// `computes` tells for each call path whether it is computation. Collective.
    pub fn host_computation(
        &self,
        trace: &Trace,
        computes: &[bool],
        window: &Range<i64>,
    ) -> Result<Vec<(LocationId, i64)>> {
        let process = |location: LocationId| trace.definitions.locations[location].process;
        let of_processes = self.kernels.chunk_by(|a, b| process(a.run.location) == process(b.run.location));
        let of_processes: Vec<_> = of_processes.filter(|kernels| process(kernels[0].run.location).is_some()).collect();
        let is_own = |kernels: &&[Kernel]| trace.owns(trace.definitions.master(process(kernels[0].run.location)));
        let found = of_processes.into_par_iter().filter(is_own).flat_map(|kernels| {
            let mut busy: Vec<(i64, i64)> = kernels.iter().map(|kernel| (kernel.run.enter, kernel.run.leave)).collect();
            busy.sort_unstable();
            busy.dedup_by(|next, last| {
                let overlaps = next.0 <= last.1;
                if overlaps {
                    last.1 = last.1.max(next.1);
                }
                overlaps
            });
            let locations = trace.definitions.processes[process(kernels[0].run.location)].locations;
            let threads =
                locations.filter(|&location| trace.definitions.locations[location].kind == LocationType::CPU_THREAD);
            threads.map(move |thread| (thread, computation(trace, thread, &busy, computes, window.clone())))
        });
        trace.exchange.gatherv(found.collect::<Vec<_>>())
    }

    /// Ticks within a window for which threads starve devices, by thread and innermost call path. Collective.
    pub fn starving(&self, trace: &Trace, window: &Range<i64>) -> Result<Vec<(LocationId, CallPathId, i64)>> {
        let mut launched: BTreeMap<LocationId, Vec<&Kernel>> = BTreeMap::new();
        for kernel in self.kernels.iter().filter(|kernel| kernel.starved > 0) {
            if let Some(host) = kernel.launch.map(|launch| launch.location).filter(|&host| trace.owns(host)) {
                launched.entry(host).or_default().push(kernel);
            }
        }
        let launched: Vec<_> = launched.into_iter().collect();
        let found = launched.into_par_iter().flat_map(|(host, kernels)| {
            let shard = trace.shard(host);
            let ran: Vec<_> = shard.stretches(&trace.tree, shard.local(host), window.clone()).collect();
            let mut ticks: BTreeMap<CallPathId, i64> = BTreeMap::new();
            for (from, until) in kernels.into_iter().map(Kernel::starvation) {
                for ((callpath, ..), length) in overlaps(&ran, from, until) {
                    *ticks.entry(*callpath).or_default() += length;
                }
            }
            ticks.into_iter().map(move |(callpath, ticks)| (host, callpath, ticks))
        });
        trace.exchange.gatherv(found.collect::<Vec<_>>())
    }
}

/// Ticks of computation at a location outside the busy intervals, which are sorted and disjoint.
fn computation(trace: &Trace, location: LocationId, busy: &[(i64, i64)], computes: &[bool], window: Range<i64>) -> i64 {
    let shard = trace.shard(location);
    let is_computation = |callpath: CallPathId| computes.get(callpath.index()).copied().unwrap_or_default();
    let (mut sum, mut busy) = (0, busy.iter().peekable());
    for (callpath, begin, end) in shard.stretches(&trace.tree, shard.local(location), window) {
        while busy.next_if(|(_, until)| *until <= begin).is_some() {}
        if !is_computation(callpath) {
            continue;
        }
        sum += end - begin;
        for &(from, until) in busy.clone() {
            if from >= end {
                break;
            }
            sum -= until.min(end) - from.max(begin);
        }
    }
    sum
}

/// The parts of consecutive stretches that lie in a span, each with its length.
pub(super) fn overlaps<T>(
    stretches: &[(T, i64, i64)],
    from: i64,
    until: i64,
) -> impl Iterator<Item = (&(T, i64, i64), i64)> {
    let first = stretches.partition_point(|(_, _, end)| *end <= from);
    stretches[first..]
        .iter()
        .take_while(move |(_, begin, _)| *begin < until)
        .map(move |stretch| (stretch, stretch.2.min(until) - stretch.1.max(from)))
}
