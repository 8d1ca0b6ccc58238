//! When the records of messages are written in a changed run.
//!
//! A record keeps its distance to the Enter or the Leave of its call (WHATIF 4.8). Of the records of several messages in
//! one call that is not enough: when the call gets shorter, those far from its Leave would come before their sends. So a
//! send is recorded no later than its receive's call is left, and a receive no earlier than its send.

use super::graph::{Builder, enter, leave};
use super::retime::Times;
use crate::Result;
use crate::matching::messages::match_all;
use crate::trace::Trace;

/// Bounds of the times of records, by shard and row, ticks.
#[derive(Debug, Default)]
pub(super) struct Stamps {
    /// The latest time of each send.
    pub sends: Vec<Vec<i64>>,
    /// The earliest time of each receive.
    pub receives: Vec<Vec<i64>>,
}

impl Stamps {
    /// Finds the bounds; messages whose measured clocks disagree have none.
    pub(super) fn new(trace: &Trace, times: &Times<1>) -> Result<Self> {
        let builder = Builder::new(trace)?;
        let (found, _) = match_all(trace, |index, shard, matches| {
            let of = |node| times.of(node)[0];
            let mut messages = Vec::new();
            for (row, receive) in shard.receives.rows.iter().enumerate() {
                let Some(send) = matches.send(row).filter(|send| send.time <= receive.time) else { continue };
                let call = builder.instance(trace, (send.location, send.instance));
                let received = of(leave(builder.first_of(index) + receive.instance.number()));
                let at = (of(enter(call)) + (send.time - send.enter)).min(of(leave(call))).min(received);
                messages.push((trace.position(send.location), send.row, row, at));
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
