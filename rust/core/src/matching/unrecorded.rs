//! Calls that create communicators, or other objects of all processes, and leave no record: the n-th calls of a region are
//! one operation if all processes call it equally often.
//!
//! So operations of all processes are found. Those of a part of them are not, except where each process takes part in
//! equally many; whether the members were in their calls at the same time decides then.
//!
//! *Source*: specification.md#inferred-synchronization.

use std::collections::BTreeMap;

use rayon::prelude::*;
use rustc_hash::FxHashSet;

use crate::Result;
use crate::ids::{InstanceId, LocationId, RegionKey};
use crate::trace::locations::Process;
use crate::trace::{RegionClass, Shard, Trace};

/// A call.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Unrecorded {
    pub region: RegionKey,
    pub location: LocationId,
    pub instance: InstanceId,
}

/// The calls without records of those of a shard's processes that call anything.
pub(crate) fn of_shard(trace: &Trace, shard: &Shard) -> Vec<Vec<Unrecorded>> {
    if !trace.regions.has(RegionClass::Create) {
        return Vec::new();
    }
    let recorded: FxHashSet<InstanceId> = shard.collectives.rows.iter().map(|row| row.instance).collect();
    let processes = shard.processes.map(|process| &trace.definitions.processes[process]);
    processes
        .filter(|process| takes_part(shard, process))
        .map(|process| of_process(trace, shard, process, &recorded))
        .collect()
}

/// Whether a process calls anything.
fn takes_part(shard: &Shard, process: &Process) -> bool {
    let mut locations = process.locations;
    locations.any(|location| shard.has_calls(location))
}

fn of_process(trace: &Trace, shard: &Shard, process: &Process, recorded: &FxHashSet<InstanceId>) -> Vec<Unrecorded> {
    let mut calls = Vec::new();
    for location in process.locations {
        for instance in shard.instances_of(location).filter(|instance| !recorded.contains(instance)) {
            let region = trace.tree.region(shard.callpath(instance));
            if trace.regions.class(region) == RegionClass::Create {
                calls.push(Unrecorded { region, location, instance });
            }
        }
    }
    calls.sort_by_key(|call| (shard.enter(call.instance), call.location));
    calls
}

/// The calls of each shard, by process, that create communicators in regions that all processes call equally often, and
/// the number of processes. Collective.
pub(crate) fn of_everybody(trace: &Trace) -> Result<(Vec<Vec<Vec<Unrecorded>>>, usize)> {
    let mut found: Vec<Vec<Vec<Unrecorded>>> = trace.par_shards().map(|shard| of_shard(trace, shard)).collect();
    let mut own: Vec<(RegionKey, u32)> = Vec::new();
    let mut processes = 0u64;
    for calls in found.iter().flatten() {
        let mut counts: BTreeMap<RegionKey, u32> = BTreeMap::new();
        for call in calls.iter().filter(|call| creates_communicator(trace, call.region)) {
            *counts.entry(call.region).or_default() += 1;
        }
        own.extend(counts);
        processes += 1;
    }
    // By region: processes that call it, the fewest and the most calls.
    let mut all: BTreeMap<RegionKey, (u64, u32, u32)> = BTreeMap::new();
    let mut total = 0;
    for (of_process, processes) in trace.exchange.allgather((own, processes))? {
        total += processes;
        for (region, count) in of_process {
            let (callers, fewest, most) = all.entry(region).or_insert((0, count, count));
            (*callers, *fewest, *most) = (*callers + 1, count.min(*fewest), count.max(*most));
        }
    }
    let equal = all.into_iter().filter(|&(_, (callers, fewest, most))| total > 1 && callers == total && fewest == most);
    let regions: FxHashSet<RegionKey> = equal.map(|(region, _)| region).collect();
    for calls in found.iter_mut().flatten() {
        calls.retain(|call| regions.contains(&call.region));
    }
    Ok((found, total as usize))
}

/// Whether a call creates a communicator; windows and files are synchronized by records of their own.
fn creates_communicator(trace: &Trace, region: RegionKey) -> bool {
    trace.regions.get(region).is_some_and(|region| {
        let name = region.name.to_ascii_lowercase();
        !name.contains("win_") && !name.contains("file_")
    })
}
