//! Parameters as markers of iterations: loop counters that a program records.
//!
//! ```text
//!  main --[step i=0]--[step i=1]--[step i=2]-- main    recorded at the begin of a call: it begins the iteration
//!  main ---i=0--[work]---i=1--[work]---i=2--[work]---  recorded in between: the record does
//! ```
//!
//! An iteration begins on a process when its master thread records a new value. `SCOREP_USER_PARAMETER_INT64` is used
//! at the begin of a region, so its record directly follows the Enter. If that holds for all values, in the same call
//! path, the iteration begins with the Enter. The last iteration ends with the last Leave of a call path that earlier
//! ones entered, within the region that encloses the iterations; without such a Leave, it ends with that region.

use bitcode::{Decode, Encode};
use rustc_hash::FxHashSet;
use whywait_otf2::Definitions;
use whywait_otf2::enums::ParameterType;

use crate::Result;
use crate::analysis::Analysis;
use crate::ids::{CallPathId, LocationId};
use crate::parallel::iter::prelude::*;
use crate::trace::columns::ParameterChange;
use crate::trace::{CallTree, Shard, Trace};

/// A parameter that a program records.
#[derive(Clone, Debug, PartialEq)]
pub struct Parameter {
    /// Its name.
    pub name: String,
    /// The smallest number of consecutive values on a master thread.
    pub least: u32,
    /// The largest number.
    pub most: u32,
    /// Whether it is a number, and each value on each process is larger than the one before.
    pub rises: bool,
    /// Share of its iterations in the time of all processes, without start-up and shutdown.
    pub share: f64,
}

/// Text of a parameter's value.
pub fn text(definitions: &Definitions, kind: ParameterType, value: u64) -> String {
    match kind {
        ParameterType::STRING => {
            u32::try_from(value).map_or_else(|_| String::new(), |id| definitions.string(id).into())
        }
        ParameterType::UINT64 => value.to_string(),
        _ => value.cast_signed().to_string(),
    }
}

/// Sorted ids of the parameters with a name, and their kind.
pub fn named(definitions: &Definitions, name: &str) -> (Vec<u32>, ParameterType) {
    let named: Vec<_> = definitions.parameters.iter().filter(|each| definitions.string(each.name) == name).collect();
    let mut ids: Vec<u32> = named.iter().map(|each| each.id).collect();
    ids.sort_unstable();
    (ids, named.first().map_or(ParameterType::INT64, |each| each.parameter_type))
}

/// The parameters that master threads record. Collective.
pub fn recorded(analysis: &Analysis) -> Result<Vec<Parameter>> {
    let (trace, definitions) = (&analysis.trace, analysis.trace.records());
    let rows = trace.shards.iter().flat_map(|shard| &shard.parameters.rows);
    let own: FxHashSet<u32> = rows.map(|row| row.parameter).collect();
    let ids: FxHashSet<u32> = trace.exchange.allgather(own)?.into_iter().flatten().collect();
    let mut names: Vec<&str> = Vec::new();
    for parameter in &definitions.parameters {
        let name = definitions.string(parameter.name);
        if ids.contains(&parameter.id) && !names.contains(&name) {
            names.push(name);
        }
    }
    let mut found = names.iter().map(|name| describe(trace, name)).collect::<Result<Vec<_>>>()?;
    found.retain(|parameter| parameter.most > 0);
    Ok(found)
}

fn describe(trace: &Trace, name: &str) -> Result<Parameter> {
    let (ids, kind) = named(trace.records(), name);
    let of_shard = |shard: &Shard| {
        let mut own = Own { least: u32::MAX, most: 0, rises: kind != ParameterType::STRING, inside: 0, outside: 0 };
        for master in shard.masters(&trace.definitions) {
            let changes = changes(shard, master, &ids);
            let count = changes.len() as u32;
            let order = |change: &ParameterChange| match kind {
                ParameterType::UINT64 => i128::from(change.value),
                _ => i128::from(change.value.cast_signed()),
            };
            own.least = own.least.min(count);
            own.most = own.most.max(count);
            own.rises &= changes.is_sorted_by(|a, b| order(a) < order(b));
            let bounds = boundaries(&trace.tree, shard, master, &changes);
            if let (Some(first), Some(last)) = (bounds.first(), bounds.last()) {
                own.inside += i128::from(last - first);
            }
            own.outside += i128::from(length(shard, master));
        }
        own
    };
    let none = || Own { least: u32::MAX, most: 0, rises: true, inside: 0, outside: 0 };
    let own = trace.par_shards().map(of_shard).reduce(none, Own::merged);
    let all = trace.exchange.gather(own)?.into_iter().fold(none(), Own::merged);
    Ok(Parameter {
        name: name.to_owned(),
        least: if all.least == u32::MAX { 0 } else { all.least },
        most: all.most,
        rises: all.rises,
        share: if all.outside > 0 { all.inside as f64 / all.outside as f64 } else { 0.0 },
    })
}

#[derive(Clone, Copy, Encode, Decode)]
struct Own {
    least: u32,
    most: u32,
    rises: bool,
    inside: i128,
    outside: i128,
}

impl Own {
    fn merged(self, other: Self) -> Self {
        Self {
            least: self.least.min(other.least),
            most: self.most.max(other.most),
            rises: self.rises && other.rises,
            inside: self.inside + other.inside,
            outside: self.outside + other.outside,
        }
    }
}

/// Duration of a location's run without the calls that start and shut down MPI.
fn length(shard: &Shard, location: LocationId) -> i64 {
    let span = &shard.spans[shard.local(location)];
    let ends = [span.init, span.finalize].into_iter().filter(|instance| instance.is_some());
    let ends: i64 = ends.map(|instance| shard.leave(instance) - shard.enter(instance)).sum();
    if span.first > span.last { 0 } else { span.last - span.first - ends }
}

/// Where a location records new values of the parameters; repeated records of the same value count once.
pub(super) fn changes(shard: &Shard, location: LocationId, ids: &[u32]) -> Vec<ParameterChange> {
    let rows = shard.parameters.of(shard.local(location)).iter();
    let mut changes: Vec<ParameterChange> =
        rows.filter(|row| ids.binary_search(&row.parameter).is_ok()).copied().collect();
    changes.dedup_by_key(|row| row.value);
    changes
}

/// The values of parameters on all processes, in order, if these are numbers that rise, and each process says when its record
/// began: profilers begin at different iterations, of which the value tells the number. Collective.
pub(super) fn values_of_windows(trace: &Trace, ids: &[u32]) -> Result<Vec<i64>> {
    let of_process = |(shard, master): (&Shard, LocationId)| {
        let process = &trace.definitions.processes[trace.definitions.locations[master].process];
        let changes = changes(shard, master, ids);
        let values: Vec<i64> = changes.iter().map(|change| change.value.cast_signed()).collect();
        (process.recorded.0.is_some() && values.is_sorted_by(|a, b| a < b)).then_some(values)
    };
    let processes =
        trace.shards.iter().flat_map(|shard| shard.masters(&trace.definitions).map(move |master| (shard, master)));
    let own: Option<Vec<Vec<i64>>> = processes.map(of_process).collect();
    let all: Option<Vec<Vec<Vec<i64>>>> = trace.exchange.allgather(own)?.into_iter().collect();
    let mut values = all.unwrap_or_default().concat().concat();
    values.sort_unstable();
    values.dedup();
    Ok(values)
}

/// The call path that a change is recorded in.
pub(super) fn callpath(tree: &CallTree, shard: &Shard, location: LocationId, change: &ParameterChange) -> CallPathId {
    if change.events == shard.event_offsets[shard.local(location)] {
        return CallPathId::NONE;
    }
    shard.events.running_after(tree, change.events - 1)
}

/// Begins of the iterations, and the end of the last one.
pub(super) fn boundaries(
    tree: &CallTree,
    shard: &Shard,
    location: LocationId,
    changes: &[ParameterChange],
) -> Vec<i64> {
    let Some(last) = changes.last() else { return Vec::new() };
    let i = shard.local(location);
    let events = &shard.events;
    let entered = |change: &ParameterChange| {
        let is_inside = change.events > shard.event_offsets[i];
        (is_inside && !events.is_leave(change.events - 1)).then(|| events.callpath(change.events - 1))
    };
    let is_call = entered(last).is_some() && changes.iter().all(|change| entered(change) == entered(last));
    let start = |change: &ParameterChange| change.events - u32::from(is_call);
    let mut bounds: Vec<i64> =
        changes.iter().map(|change| if is_call { events.time[start(change) as usize] } else { change.time }).collect();

    let mut belongs = vec![false; tree.len()];
    for event in start(&changes[0])..start(last) {
        if !events.is_leave(event) {
            belongs[events.callpath(event)] = true;
        }
    }
    let (mut depth, mut end, mut own) = (0i64, None, None);
    let behind = shard.event_offsets[i + 1];
    for event in start(last)..behind {
        let time = events.time[event as usize];
        if !events.is_leave(event) {
            depth += 1;
            continue;
        }
        depth -= 1;
        if depth < 0 {
            // The region that encloses the iterations.
            own = own.or(Some(time));
            break;
        }
        if belongs[events.callpath(event)] {
            end = Some(time);
        }
        if is_call && depth == 0 {
            own = own.or(Some(time));
        }
    }
    let finish = || if behind > shard.event_offsets[i] { events.time[behind as usize - 1] } else { last.time };
    // Records after the last event must not extend the iteration.
    bounds.push(end.or(own).unwrap_or_else(finish).max(bounds[bounds.len() - 1]));
    bounds
}
