//! The times of the records of messages in a changed run.
//!
//! A record keeps its distance to the Enter or the Leave of its call (whatif.md#how-it-works). For several messages in
//! one call this is not enough: when the call gets shorter, receives far from its Leave would come before their sends.
//! So a send is recorded no later than the Leave of its receive's call, and a receive no earlier than its send.

use bitcode::{Decode, Encode};
use rustc_hash::FxHashMap;

use crate::Result;
use crate::ids::InstanceId;
use crate::matching::messages::match_all;
use crate::parallel::exchange::{Inbox, Outbox};
use crate::parallel::iter::prelude::*;
use crate::trace::{Shard, Trace};

/// Bounds of the times of records, by shard and row, ticks.
#[derive(Debug, Default)]
pub(in crate::whatif) struct Stamps {
    /// The latest time of each send.
    pub sends: Vec<Vec<i64>>,
    /// The earliest time of each receive.
    pub receives: Vec<Vec<i64>>,
}

/// When a message is received, for the shard of its send.
#[derive(Clone, Copy, Encode, Decode)]
struct Bound {
    /// Row of the send.
    send: u32,
    /// Shard and row of the receive.
    receive: (u32, u32),
    /// The latest time of the send, ticks.
    latest: i64,
}

impl Stamps {
    /// Finds the bounds from the new times of all events, by shard, and from the ends of waits that come later, by shard and
    /// call; messages whose measured clocks disagree have none. Collective.
    pub(in crate::whatif) fn new(
        trace: &Trace,
        events: &[Vec<i64>],
        later: &FxHashMap<(usize, InstanceId), i64>,
    ) -> Result<Self> {
        let (bounds, _) = match_all(trace, |index, shard, matches| {
            let mut outbox = trace.exchange.outbox();
            for (row, receive) in shard.receives.rows.iter().enumerate() {
                let Some(send) = matches.send(row).filter(|send| send.time <= receive.time) else { continue };
                let left = events[index][shard.instances.leave[receive.instance] as usize];
                let latest = later.get(&(index, receive.instance)).map_or(left, |&end| end.max(left));
                let receive = (trace.exchange.own().start + index as u32, row as u32);
                outbox.push(trace.shard_of[send.location], Bound { send: send.row, receive, latest });
            }
            outbox
        })?;
        let bounds = trace.exchange.alltoallv(bounds)?;
        let stamp = |((shard, events), bounds): ((&Shard, &Vec<i64>), Inbox<Bound>)| {
            let (mut sent, mut outbox) = (vec![i64::MAX; shard.sends.rows.len()], trace.exchange.outbox());
            for Bound { send, receive: (of, row), latest } in bounds.rows() {
                let send_row = &shard.sends.rows[*send as usize];
                let new = |at: &[u32]| events[at[send_row.instance.index()] as usize];
                let (enter, leave) = (new(&shard.instances.enter), new(&shard.instances.leave));
                let at = (enter + (send_row.time - shard.enter(send_row.instance))).min(leave).min(*latest);
                sent[*send as usize] = at;
                outbox.push(*of, (*row, at));
            }
            (sent, outbox)
        };
        let stamped = trace.par_shards().zip(events).zip(bounds).map(stamp);
        let (sends, outgoing): (Vec<_>, Vec<Outbox<(u32, i64)>>) = stamped.unzip();
        let arrived = trace.exchange.alltoallv(outgoing)?;
        let receives = trace.shards.iter().zip(arrived).map(|(shard, stamps)| {
            let mut received = vec![i64::MIN; shard.receives.rows.len()];
            stamps.rows().for_each(|&(row, at)| received[row as usize] = at);
            received
        });
        Ok(Self { sends, receives: receives.collect() })
    }
}
