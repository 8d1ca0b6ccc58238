//! Waiting for the notification of another process.
//!
//! ```text
//!  waiter    --[ wait |         ]----      records an incoming notification
//!  notifier  ---------[ notify ]-----      records an outgoing notification
//!              |------|  waiting
//! ```
//!
//! *Matching*: by id, by pair of processes, or by time (matching/notifications.rs).
//!
//! *Definition*: waiting = min(Enter(notify), Leave(wait)) − Enter(wait), if positive.
//!
//! *Pairs*: each side synchronizes with one process. The pair is needed if the notifier has accessed the other process
//! since its previous notification.
//!
//! *Source*: specification.md#notifications; the record is that of the thesis, section 3.1, pairs section 3.2.2.

use super::shard_waits::Waits;
use crate::Result;
use crate::matching::epochs::Epochs;
use crate::matching::notifications::matched;
use crate::parallel::iter::prelude::*;
use crate::severity::Metric;
use crate::trace::Trace;
use crate::trace::regions::Library;
use crate::waits::WaitState;

pub(super) fn detect(trace: &Trace, epochs: &[Epochs], waits: &mut [Waits]) -> Result<()> {
    let found = matched(trace, epochs)?;
    found.into_par_iter().zip(trace.par_shards()).zip(epochs).zip(waits).for_each(
        |(((found, shard), epochs), waits)| {
            for (row, sent) in epochs.notifications.iter().zip(found) {
                let library = trace.class(shard, row.instance).library().unwrap_or(Library::Mpi);
                let call = (row.location, row.instance);
                // Without the other side's record, assume that the pair is needed.
                let is_needed = if row.is_incoming { sent.is_none_or(|sent| sent.is_needed) } else { row.is_needed };
                waits.count_pairs(shard, library, call, (1, is_needed.into()));
                let Some(sent) = sent else { continue };
                let enter = shard.enter(row.instance);
                let until = sent.enter.min(shard.leave(row.instance));
                if until > enter && sent.from != row.process {
                    waits.states.push(WaitState::new(metric(library), call, until - enter, sent.call));
                }
            }
        },
    );
    Ok(())
}

/// Metric of the wait. In MPI, the notified process is a target that waits for its origin.
fn metric(library: Library) -> Metric {
    match library {
        Library::Mpi => Metric::EarlyWait,
        Library::Shmem => Metric::ShmemWaitUntil,
        Library::Armci => Metric::ArmciWaitUntil,
        Library::Pgas => Metric::PgasWaitUntil,
    }
}
