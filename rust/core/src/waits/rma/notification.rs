//! Waiting for the notification of another process.
//!
//! ```text
//!  waiter    --[ wait |         ]----      records an incoming notification
//!  notifier  ---------[ notify ]-----      records an outgoing notification
//!              |------|  waiting
//! ```
//!
//! *Matching*: by window and pair of processes, the n-th outgoing notification matches the n-th incoming one.
//!
//! *Definition*: waiting = min(Enter(notify), Leave(wait)) − Enter(wait), if positive.
//!
//! *Pairs*: each side synchronizes with one process. The pair is needed if the notifier has accessed the other process
//! since its previous notification.
//!
//! *Source*: specification.md#notifications; the record is that of the thesis, section 3.1, pairs section 3.2.2.

use bitcode::{Decode, Encode};

use super::shard_waits::Waits;
use crate::Result;
use crate::ids::{InstanceId, LocationId, ProcessId, WindowId};
use crate::matching::epochs::Epochs;
use crate::matching::fifo::Fifo;
use crate::parallel::iter::prelude::*;
use crate::severity::Metric;
use crate::trace::Trace;
use crate::trace::regions::Library;
use crate::waits::WaitState;

/// A notification, for the process that it is sent to.
#[derive(Clone, Copy, Encode, Decode)]
struct SentNotification {
    window: WindowId,
    to: ProcessId,
    from: ProcessId,
    call: (LocationId, InstanceId),
    enter: i64,
    is_needed: bool,
}

pub(super) fn detect(trace: &Trace, epochs: &[Epochs], waits: &mut [Waits]) -> Result<()> {
    if !trace.exchange.any(epochs.iter().any(|epochs| !epochs.notifications.is_empty()))? {
        return Ok(());
    }
    let outgoing = trace.par_shards().zip(epochs).map(|(shard, epochs)| {
        let mut outbox = trace.exchange.outbox();
        for row in epochs.notifications.iter().filter(|row| !row.is_incoming) {
            let notification = SentNotification {
                window: row.window,
                to: row.partner,
                from: row.process,
                call: (row.location, row.instance),
                enter: shard.enter(row.instance),
                is_needed: row.is_needed,
            };
            outbox.push(trace.owner(row.partner), notification);
        }
        outbox
    });
    let received =
        trace.exchange.alltoallv(outgoing.collect())?.into_par_iter().zip(trace.par_shards()).zip(epochs).zip(waits);
    received.for_each(|(((notices, shard), epochs), waits)| {
        let mut notices =
            Fifo::new(notices.rows(), |notification| (notification.window, notification.to, notification.from));
        for row in &epochs.notifications {
            let library = trace.class(shard, row.instance).library().unwrap_or(Library::Mpi);
            let call = (row.location, row.instance);
            if !row.is_incoming {
                waits.count_pairs(shard, library, call, (1, row.is_needed.into()));
                continue;
            }
            let notification = notices.take(&(row.window, row.process, row.partner));
            // Without the other side's record, assume that the pair is needed.
            waits.count_pairs(
                shard,
                library,
                call,
                (1, notification.is_none_or(|notification| notification.is_needed).into()),
            );
            let Some(notification) = notification else { continue };
            let enter = shard.enter(row.instance);
            let until = notification.enter.min(shard.leave(row.instance));
            if until > enter && notification.from != row.process {
                waits.states.push(WaitState::new(metric(library), call, until - enter, notification.call));
            }
        }
    });
    Ok(())
}

/// Metric of the wait. In MPI, the notified process is a target that waits for its origin.
fn metric(library: Library) -> Metric {
    match library {
        Library::Mpi => Metric::EarlyWait,
        Library::Shmem => Metric::ShmemWaitUntil,
        Library::Armci => Metric::ArmciWaitUntil,
    }
}
