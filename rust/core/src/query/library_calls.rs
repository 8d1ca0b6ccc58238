//! When processes start and shut down their library.

use bitcode::{Decode, Encode};

use crate::Result;
use crate::ids::{InstanceId, LocationId};
use crate::trace::Trace;

/// Enter and Leave of the first `MPI_Init` and `MPI_Finalize` of a process, ticks; without such a call, its first or last
/// event.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Encode, Decode)]
pub struct LibraryCalls {
    /// The first location of the process.
    pub location: LocationId,
    /// The call that starts the library.
    pub init: (i64, i64),
    /// The call that shuts it down.
    pub finalize: (i64, i64),
}

/// Those of all processes that have events; at the first process of the analysis. Collective.
pub fn library_calls_of_all(trace: &Trace) -> Result<Vec<LibraryCalls>> {
    let mut own = Vec::new();
    for process in &trace.definitions.processes {
        let mut locations = process.locations;
        let Some(location) = locations.next().filter(|&location| trace.owns(location)) else { continue };
        let shard = trace.shard(location);
        let span = &shard.spans[shard.local(location)];
        if span.first > span.last {
            continue;
        }
        let call = |instance: InstanceId, or: i64| {
            if instance.is_some() { (shard.enter(instance), shard.leave(instance)) } else { (or, or) }
        };
        let (init, finalize) = (call(span.init, span.first), call(span.finalize, span.last));
        own.push(LibraryCalls { location, init, finalize });
    }
    trace.exchange.gatherv(own)
}
