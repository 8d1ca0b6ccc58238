//! Calls that synchronize processes and leave no record: the n-th calls of a region are one operation if all members
//! call it equally often.
//!
//! *Creation* of communicators, opening and closing of files: operations of all processes are found. Those of a part
//! of them are not, except where each process takes part in equally many; whether the members were in their calls at the
//! same time decides then.
//!
//! *Neighborhoods*: the members are those of the only topology that the processes are part of.
//!
//! *Source*: specification.md#inferred-synchronization.

use std::collections::BTreeMap;

use bitcode::{Decode, Encode};
use rustc_hash::FxHashSet;

use crate::Result;
use crate::diagnostics::{DiagnosticKind, Diagnostics};
use crate::ids::{InstanceId, LocationId, RegionKey};
use crate::parallel::iter::prelude::*;
use crate::trace::columns::{CREATE_HANDLE, FILE_HANDLE, NEIGHBORHOOD};
use crate::trace::locations::Process;
use crate::trace::{NONE, RegionClass, Shard, Trace};

/// The classes of these calls.
const CLASSES: [RegionClass; 2] = [RegionClass::Create, RegionClass::Neighborhood];

/// A call.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Unrecorded {
    pub region: RegionKey,
    pub location: LocationId,
    pub instance: InstanceId,
}

/// The calls without records of those of a shard's processes that call anything.
pub(crate) fn of_shard(trace: &Trace, shard: &Shard) -> Vec<Vec<Unrecorded>> {
    if !CLASSES.iter().any(|&class| trace.regions.has(class)) {
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
            if CLASSES.contains(&trace.regions.class(region)) {
                calls.push(Unrecorded { region, location, instance });
            }
        }
    }
    calls.sort_by_key(|call| (shard.enter(call.instance), call.location));
    calls
}

/// Who calls a region: all processes, or those of a topology.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Encode, Decode)]
enum Callers {
    Everybody,
    Topology(u32),
}

/// The operations whose calls are those of one region.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Series {
    /// [`CREATE_HANDLE`], [`FILE_HANDLE`] or [`NEIGHBORHOOD`].
    pub operation: u8,
    /// Number of members.
    pub size: usize,
}

/// A member's call.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Part {
    /// Index of the series, and number of the operation in it.
    pub series: u32,
    pub sequence: u32,
    pub rank: u32,
    pub location: LocationId,
    pub instance: InstanceId,
}

/// The calls of each shard in regions that all members call equally often, by process in the order of time; the series
/// that they belong to; and how many have unknown neighbors. Collective.
pub(crate) fn parts(trace: &Trace) -> Result<(Vec<Vec<Part>>, Vec<Series>, Diagnostics)> {
    let found: Vec<Vec<Vec<Unrecorded>>> = trace.par_shards().map(|shard| of_shard(trace, shard)).collect();
    let mut own: Vec<((Callers, RegionKey), u32)> = Vec::new();
    let mut processes = 0u64;
    for calls in found.iter().flatten() {
        let mut counts: BTreeMap<(Callers, RegionKey), u32> = BTreeMap::new();
        for call in calls {
            if let Some(callers) = callers(trace, call) {
                *counts.entry((callers, call.region)).or_default() += 1;
            }
        }
        own.extend(counts);
        processes += 1;
    }
    // By region and callers: how many call it, the fewest and the most calls.
    let mut all: BTreeMap<(Callers, RegionKey), (usize, u32, u32)> = BTreeMap::new();
    let mut total = 0;
    for (of_process, processes) in trace.exchange.allgather((own, processes))? {
        total += processes as usize;
        for (key, count) in of_process {
            let (callers, fewest, most) = all.entry(key).or_insert((0, count, count));
            (*callers, *fewest, *most) = (*callers + 1, count.min(*fewest), count.max(*most));
        }
    }
    let mut series = Vec::new();
    let mut number_of: BTreeMap<(Callers, RegionKey), u32> = BTreeMap::new();
    for (key, (callers, fewest, most)) in all {
        let one = match key.0 {
            Callers::Everybody if names(trace, key.1, "file_") => Series { operation: FILE_HANDLE, size: total },
            Callers::Everybody => Series { operation: CREATE_HANDLE, size: total },
            Callers::Topology(number) => {
                let comm = trace.definitions.topologies.get(number).comm;
                Series { operation: NEIGHBORHOOD, size: trace.definitions.comms[comm].size }
            }
        };
        if one.size > 1 && callers == one.size && fewest == most {
            number_of.insert(key, series.len() as u32);
            series.push(one);
        }
    }
    let of_shard = |(processes, shard): (Vec<Vec<Unrecorded>>, &Shard)| {
        let (mut parts, mut diagnostics) = (Vec::new(), Diagnostics::default());
        for calls in processes {
            let mut sequences: BTreeMap<u32, u32> = BTreeMap::new();
            for call in calls {
                let callers = callers(trace, &call);
                match callers.and_then(|callers| Some((callers, *number_of.get(&(callers, call.region))?))) {
                    Some((callers, series)) => {
                        let next = sequences.entry(series).or_default();
                        let (location, instance) = (call.location, call.instance);
                        let rank = rank(trace, callers, location);
                        parts.push(Part { series, sequence: *next, rank, location, instance });
                        *next += 1;
                    }
                    None if trace.regions.class(call.region) == RegionClass::Neighborhood => {
                        diagnostics.add(DiagnosticKind::UnknownNeighbors, call.location, shard.enter(call.instance));
                    }
                    None => {}
                }
            }
        }
        (parts, diagnostics)
    };
    let of_shards: Vec<_> = found.into_par_iter().zip(trace.par_shards()).map(of_shard).collect();
    let (mut parts, mut diagnostics) = (Vec::with_capacity(of_shards.len()), Diagnostics::default());
    for (own, notes) in of_shards {
        parts.push(own);
        diagnostics.merge(notes);
    }
    Ok((parts, series, diagnostics))
}

/// The rank of the process of a location among callers that it is one of.
fn rank(trace: &Trace, callers: Callers, location: LocationId) -> u32 {
    let process = trace.definitions.locations[location].process;
    match callers {
        Callers::Everybody => process.number(),
        Callers::Topology(number) => {
            let comm = trace.definitions.topologies.get(number).comm;
            trace.definitions.comms[comm].rank(process).unwrap_or(NONE)
        }
    }
}

/// Who takes part in the operation of a call; `None` if that is unknown, or it creates or frees a window, which has records of
/// its own.
fn callers(trace: &Trace, call: &Unrecorded) -> Option<Callers> {
    match trace.regions.class(call.region) {
        RegionClass::Neighborhood => {
            let process = trace.definitions.locations[call.location].process;
            trace.definitions.topologies.only(process).map(Callers::Topology)
        }
        _ => (!names(trace, call.region, "win_")).then_some(Callers::Everybody),
    }
}

/// Whether the name of a region has a part, in lower case.
fn names(trace: &Trace, region: RegionKey, part: &str) -> bool {
    trace.regions.get(region).is_some_and(|region| region.name.to_ascii_lowercase().contains(part))
}
