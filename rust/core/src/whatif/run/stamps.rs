//! The times of the records of messages in a changed run.
//!
//! A record keeps its distance to the Enter or the Leave of its call (whatif.md#how-it-works). For several messages in
//! one call this is not enough: when the call gets shorter, receives far from its Leave would come before their sends.
//! So a send is recorded no later than the Leave of its receive's call, and a receive no earlier than its send.

use rustc_hash::FxHashMap;

use crate::Result;
use crate::ids::InstanceId;
use crate::matching::messages::match_all;
use crate::trace::Trace;

/// Bounds of the times of records, by shard and row, ticks.
#[derive(Debug, Default)]
pub(in crate::whatif) struct Stamps {
    /// The latest time of each send.
    pub sends: Vec<Vec<i64>>,
    /// The earliest time of each receive.
    pub receives: Vec<Vec<i64>>,
}

impl Stamps {
    /// Finds the bounds from the new times of all events, by shard, and from the ends of waits that come later, by shard and
    /// call; messages whose measured clocks disagree have none.
    pub(in crate::whatif) fn new(
        trace: &Trace,
        events: &[Vec<i64>],
        later: &FxHashMap<(usize, InstanceId), i64>,
    ) -> Result<Self> {
        let (found, _) = match_all(trace, |index, shard, matches| {
            let mut messages = Vec::new();
            for (row, receive) in shard.receives.rows.iter().enumerate() {
                let Some(send) = matches.send(row).filter(|send| send.time <= receive.time) else { continue };
                let sender = trace.position(send.location);
                let calls = &trace.shards[sender].instances;
                let new = |at: &[u32]| events[sender][at[send.instance.index()] as usize];
                let left = events[index][shard.instances.leave[receive.instance] as usize];
                let received = later.get(&(index, receive.instance)).map_or(left, |&end| end.max(left));
                let at = (new(&calls.enter) + (send.time - send.enter)).min(new(&calls.leave)).min(received);
                messages.push((sender, send.row, row, at));
            }
            messages
        })?;
        let mut stamps = Self {
            sends: trace.shards.iter().map(|shard| vec![i64::MAX; shard.sends.rows.len()]).collect(),
            receives: trace.shards.iter().map(|shard| vec![i64::MIN; shard.receives.rows.len()]).collect(),
        };
        for (messages, receives) in found.into_iter().zip(&mut stamps.receives) {
            for (shard, sent, received, at) in messages {
                stamps.sends[shard][sent as usize] = at;
                receives[received] = at;
            }
        }
        Ok(stamps)
    }
}
