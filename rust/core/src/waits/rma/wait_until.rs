//! Wait until: a PE waits until another PE changes its memory.
//!
//! ```text
//!  waiter  --[ wait_until |        ]----
//!  writer  ---------------[ put ]-------
//!            |------------|  waiting
//! ```
//!
//! *Definition*: the signal is the last put or atomic on the waiter that another process begins within the call;
//! waiting = Enter(signal) − Enter(call). Traces do not record which variable a put changes, so a call without such an
//! operation has no wait.
//!
//! *Source*: specification.md#wait-until; the records are those of the thesis, section 3.1.3.

use bitcode::{Decode, Encode};

use super::operations::{last_of, origin_of};
use super::shard_waits::Waits;
use crate::Result;
use crate::ids::{InstanceId, LocationId, ProcessId};
use crate::matching::epochs::Epochs;
use crate::parallel::iter::prelude::*;
use crate::severity::Metric;
use crate::trace::Trace;
use crate::trace::columns::OperationKind;
use crate::waits::WaitState;

/// A write, for its target.
#[derive(Clone, Copy, Encode, Decode)]
struct Write {
    target: ProcessId,
    origin: ProcessId,
    enter: i64,
    call: (LocationId, InstanceId),
}

pub(super) fn detect(trace: &Trace, epochs: &[Epochs], waits: &mut [Waits]) -> Result<()> {
    if !trace.exchange.any(epochs.iter().any(|epochs| !epochs.changes.is_empty()))? {
        return Ok(());
    }
    let outgoing = trace.par_shards().map(|shard| {
        let mut outbox = trace.exchange.outbox();
        for (row, operation) in shard.operations.rows.iter().enumerate() {
            let location = origin_of(shard, row as u32);
            let origin = trace.definitions.locations[location].process;
            if operation.kind != OperationKind::Get && operation.target != origin {
                let enter = shard.enter(operation.instance);
                let write = Write { target: operation.target, origin, enter, call: (location, operation.instance) };
                outbox.push(trace.owner(operation.target), write);
            }
        }
        outbox
    });
    let received =
        trace.exchange.alltoallv(outgoing.collect())?.into_par_iter().zip(trace.par_shards()).zip(epochs).zip(waits);
    received.for_each(|(((writes, shard), epochs), waits)| {
        let mut writes: Vec<Write> = writes.into_vec();
        writes.sort_unstable_by_key(|write| (write.target, write.enter, write.origin));
        for change in &epochs.changes {
            let (enter, leave) = (shard.enter(change.instance), shard.leave(change.instance));
            let begin = writes.partition_point(|write| (write.target, write.enter) <= (change.process, enter));
            let within = writes[begin..].iter().take_while(|w| w.target == change.process && w.enter <= leave);
            if let Some(signal) = last_of(within, |write| (write.enter, write.origin)) {
                let call = (change.location, change.instance);
                waits.states.push(WaitState::new(Metric::ShmemWaitUntil, call, signal.enter - enter, signal.call));
            }
        }
    });
    Ok(())
}
