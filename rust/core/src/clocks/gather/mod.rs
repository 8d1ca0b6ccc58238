//! Collects the constraints of a run, family by family.

mod devices;
mod messages;
mod one_sided;
mod operations;
mod threads;

use rayon::prelude::*;

use super::constraints::{Constraints, Found};
use crate::Result;
use crate::matching;
use crate::trace::Trace;

/// Collects the constraints of a run at its first process.
pub(super) fn gather(trace: &Trace) -> Result<Constraints> {
    let mut found = messages::collect(trace)?;
    found.extend(operations::blocking(trace)?);
    found.extend(operations::nonblocking(trace)?);
    if let Some(epochs) = matching::one_sided::find(trace)? {
        found.extend(one_sided::collect(trace, &epochs)?);
    }
    found.extend(trace.par_shards().map(|shard| threads::of_shard(trace, shard)).collect::<Vec<_>>());
    let mut devices = Vec::new();
    if trace.definitions.has_streams {
        let (links, streams) = devices::collect(trace);
        found.push(links);
        devices = trace.exchange.gatherv(streams)?;
    }
    let mut all = Found::default();
    for of_shard in found {
        all.extend(of_shard);
    }
    let all = Found { links: trace.exchange.gatherv(all.links)?, parts: trace.exchange.gatherv(all.parts)? };
    let processes = trace.definitions.locations.iter().map(|location| location.process).collect();
    Ok(Constraints::new(all, processes, devices))
}
