//! Matching of notifications: which one a process waited for.
//!
//! *With an id* (an attribute of the record that waits): the n-th wait of a process for an id meets the n-th notification with this
//! id that is sent to it on the window, from whomever, in the order of their Enters.
//! *Without*, for a known process: by window and pair of processes, the n-th meets the n-th; notifications with ids count if the
//! pair has no others. *Without*, for an unknown process: the last that is sent to the waiting one within its call, which is
//! inferred.
//!
//! *Source*: specification.md#notifications.

use bitcode::{Decode, Encode};
use rustc_hash::FxHashSet;

use super::epochs::{Epochs, Notification};
use super::fifo::Fifo;
use crate::Result;
use crate::ids::{InstanceId, LocationId, ProcessId, WindowId};
use crate::parallel::exchange::Inbox;
use crate::parallel::iter::prelude::*;
use crate::trace::columns::ALL;
use crate::trace::{Shard, Trace};

/// A notification, for the process that it is sent to.
#[derive(Clone, Copy, Debug, Encode, Decode)]
pub(crate) struct Sent {
    /// The process that notifies.
    pub(crate) from: ProcessId,
    /// Location and region instance of its call, and its Enter.
    pub(crate) call: (LocationId, InstanceId),
    pub(crate) enter: i64,
    /// Whether the process has accessed the other one since its notification before.
    pub(crate) is_needed: bool,
    /// Whether only its time tells that it is the one.
    pub(crate) is_inferred: bool,
    window: WindowId,
    to: ProcessId,
    id: u64,
}

/// For each row of [`Epochs::notifications`] that waits, the notification that it waits for; one list per shard. Collective.
pub(crate) fn matched(trace: &Trace, epochs: &[Epochs]) -> Result<Vec<Vec<Option<Sent>>>> {
    if !trace.exchange.any(epochs.iter().any(|epochs| !epochs.notifications.is_empty()))? {
        return Ok(trace.shards.iter().map(|_| Vec::new()).collect());
    }
    let outgoing = trace.par_shards().zip(epochs).map(|(shard, epochs)| {
        let mut outbox = trace.exchange.outbox();
        for row in epochs.notifications.iter().filter(|row| !row.is_incoming) {
            let sent = Sent {
                from: row.process,
                call: (row.location, row.instance),
                enter: shard.enter(row.instance),
                is_needed: row.is_needed,
                is_inferred: false,
                window: row.window,
                to: row.partner,
                id: row.id,
            };
            outbox.push(trace.owner(row.partner), sent);
        }
        outbox
    });
    let received = trace.exchange.alltoallv(outgoing.collect())?.into_par_iter();
    Ok(received
        .zip(trace.par_shards().zip(epochs))
        .map(|(sent, (shard, epochs))| of_shard(shard, epochs, &sent))
        .collect())
}

fn of_shard(shard: &Shard, epochs: &Epochs, sent: &Inbox<Sent>) -> Vec<Option<Sent>> {
    let pair = |sent: &Sent| (sent.window, sent.to, sent.from);
    let plain: FxHashSet<_> = sent.rows().filter(|sent| sent.id == 0).map(pair).collect();
    let mut of_pairs = Fifo::new(sent.rows().filter(|sent| sent.id == 0 || !plain.contains(&pair(sent))), pair);
    let mut in_order: Vec<&Sent> = sent.rows().collect();
    in_order.sort_by_key(|sent| (sent.window, sent.to, sent.enter, sent.from));
    let mut of_ids = Fifo::new(in_order.iter().copied(), |sent| (sent.window, sent.to, sent.id));
    let within = |row: &Notification| {
        let (enter, leave) = (shard.enter(row.instance), shard.leave(row.instance));
        let end =
            in_order.partition_point(|sent| (sent.window, sent.to, sent.enter) <= (row.window, row.process, leave));
        let last = in_order[..end].last().filter(|sent| (sent.window, sent.to) == (row.window, row.process));
        last.filter(|sent| sent.enter > enter).map(|sent| Sent { is_inferred: true, ..**sent })
    };
    let of_row = |row: &Notification| match row {
        row if !row.is_incoming => None,
        row if row.id > 0 => of_ids.take(&(row.window, row.process, row.id)).copied(),
        row if row.partner == ALL => within(row),
        row => of_pairs.take(&(row.window, row.process, row.partner)).copied(),
    };
    epochs.notifications.iter().map(of_row).collect()
}
