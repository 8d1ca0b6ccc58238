//! Signals: the writes to a process that may end its wait for a change of its memory.
//!
//! Traces do not record which variable a put or an atomic changes, so the writes that others begin up to the end of the wait are
//! all that is known.
//!
//! *Source*: specification.md#wait-until.

use bitcode::{Decode, Encode};

use super::epochs::Epochs;
use crate::Result;
use crate::ids::{InstanceId, LocationId, ProcessId};
use crate::parallel::iter::prelude::*;
use crate::trace::columns::OperationKind;
use crate::trace::{Shard, Trace};

/// A write to the memory of another process.
#[derive(Clone, Copy, Debug, Encode, Decode)]
pub(crate) struct Write {
    target: ProcessId,
    /// Enter of its call, ticks.
    pub(crate) enter: i64,
    /// The process that writes.
    pub(crate) origin: ProcessId,
    /// Location and region instance of its call.
    pub(crate) call: (LocationId, InstanceId),
}

/// The writes to the processes of a shard, by target and time.
#[derive(Debug)]
pub(crate) struct Writes(Vec<Write>);

impl Writes {
    /// Those that begin after one time, and at another one at the latest.
    pub(crate) fn within(&self, target: ProcessId, since: i64, until: i64) -> impl Iterator<Item = &Write> {
        let begin = self.0.partition_point(|write| (write.target, write.enter) <= (target, since));
        self.0[begin..].iter().take_while(move |write| write.target == target && write.enter <= until)
    }
}

/// The writes to the processes of each shard; none if no process waits for any. Collective.
pub(crate) fn writes(trace: &Trace, epochs: &[Epochs]) -> Result<Vec<Writes>> {
    if !trace.exchange.any(epochs.iter().any(|epochs| !epochs.changes.is_empty()))? {
        return Ok(Vec::new());
    }
    let post = |shard: &Shard| {
        let mut outbox = trace.exchange.outbox();
        for operation in shard.operations.rows.iter().filter(|operation| operation.kind != OperationKind::Get) {
            let location = shard.location_of_instance(operation.instance);
            let origin = trace.definitions.locations[location].process;
            let (target, enter) = (operation.target, shard.enter(operation.instance));
            if target != origin {
                let call = (location, operation.instance);
                outbox.push(trace.owner(target), Write { target, enter, origin, call });
            }
        }
        outbox
    };
    let received = trace.exchange.alltoallv(trace.par_shards().map(post).collect())?;
    let sorted = received.into_par_iter().map(|writes| {
        let mut writes = writes.into_vec();
        writes.sort_unstable_by_key(|write| (write.target, write.enter, write.origin, write.call));
        Writes(writes)
    });
    Ok(sorted.collect())
}
