//! Collects the constraints of a run, family by family.

mod devices;
mod messages;
mod one_sided;
mod operations;
mod threads;

pub use messages::OfMessages;
pub use operations::add_operation;

use super::constraints::{Constraints, Found, Link};
use crate::Result;
use crate::ids::ProcessId;
use crate::matching;
use crate::parallel::iter::prelude::*;
use crate::trace::Trace;

/// Collects the constraints of a run; each process of the analysis has those with targets on its locations, and the
/// operations that its shards evaluate. `met` has those of messages and blocking operations, if they are known.
pub(super) fn gather(trace: &Trace, met: Option<Vec<Found>>) -> Result<Constraints> {
    let mut found = if let Some(found) = met {
        found
    } else {
        let mut found = messages::collect(trace)?;
        found.extend(operations::blocking(trace)?);
        found
    };
    found.extend(operations::nonblocking(trace)?);
    if let Some(epochs) = matching::one_sided::find(trace)? {
        found.extend(one_sided::collect(trace, &epochs)?);
    }
    found.extend(trace.par_shards().map(|shard| threads::of_shard(trace, shard)).collect::<Vec<_>>());
    let mut devices = Vec::new();
    if trace.definitions.has_streams {
        let (links, streams) = devices::collect(trace);
        found.push(links);
        devices = trace.exchange.allgather(streams)?.concat();
    }
    let mut all = Found::default();
    for of_shard in found {
        all.extend(of_shard);
    }
    let processes: Vec<ProcessId> = trace.definitions.locations.iter().map(|location| location.process).collect();
    if trace.exchange.processes() > 1 {
        let mut links: Vec<Vec<Link>> = vec![Vec::new(); trace.exchange.processes()];
        for link in all.links {
            let owner = trace.owner(processes[link.target().location.index()]);
            links[trace.exchange.process_of(owner)].push(link);
        }
        all.links = trace.exchange.alltoall(links)?.concat();
    }
    Ok(Constraints::new(all, processes, devices))
}
