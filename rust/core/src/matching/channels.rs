//! Channels of messages: the n-th send from one process to another with a communicator and tag meets the n-th receive.
//!
//! Receives count in the order of their completion.
//!
//! *Source*: specification.md#matching-of-messages-and-collective-operations.

use rustc_hash::FxHashMap;

use super::send_info::SendInfo;
use super::time_order::in_time_order;
use crate::diagnostics::{DiagnosticKind, Diagnostics, Place};
use crate::ids::{CommId, ProcessId};
use crate::trace::{NONE, Shard, Trace};

/// All messages between two processes with one communicator and tag.
#[derive(Default)]
struct Channel {
    first: u32,
    last: u32,
    sends: u32,
    receives: u32,
    /// Position of its first receive, for the report.
    first_receive: u32,
}

/// For each receive of a shard the position of its send among those that arrived there, or [`NONE`].
pub(super) fn pair(trace: &Trace, shard: &Shard, sends: &[&SendInfo], diagnostics: &mut Diagnostics) -> Vec<u32> {
    let mut ids: FxHashMap<(ProcessId, ProcessId, CommId, u32), u32> = FxHashMap::default();
    let mut channels: Vec<Channel> = Vec::new();
    let mut channel = |key| {
        *ids.entry(key).or_insert_with(|| {
            channels.push(Channel { first: NONE, last: NONE, first_receive: NONE, ..Channel::default() });
            channels.len() as u32 - 1
        })
    };
    let send_channel: Vec<u32> =
        sends.iter().map(|send| channel((send.destination, send.source, send.comm, send.tag))).collect();
    let mut receive_channel = vec![NONE; shard.receives.rows.len()];
    let mut order = Vec::with_capacity(shard.receives.rows.len());
    for process in shard.processes {
        let locations = shard.local_locations(trace.definitions.processes[process].locations);
        let ranges: Vec<_> = locations.map(|i| shard.receives.range(i)).collect();
        for row in in_time_order(&ranges, |row| shard.receives.rows[row].time) {
            let receive = &shard.receives.rows[row as usize];
            receive_channel[row as usize] = channel((process, receive.peer, receive.comm, receive.tag));
            order.push(row);
        }
    }

    let mut next = vec![NONE; sends.len()];
    for (position, &id) in send_channel.iter().enumerate() {
        let channel = &mut channels[id as usize];
        match channel.last {
            NONE => channel.first = position as u32,
            last => next[last as usize] = position as u32,
        }
        channel.last = position as u32;
        channel.sends += 1;
    }
    for &row in &order {
        let channel = &mut channels[receive_channel[row as usize] as usize];
        channel.receives += 1;
        channel.first_receive = channel.first_receive.min(row);
    }
    for channel in &mut channels {
        report(trace, shard, channel, sends, diagnostics);
    }

    let mut matched = vec![NONE; shard.receives.rows.len()];
    for row in order {
        let channel = &mut channels[receive_channel[row as usize] as usize];
        if channel.first != NONE {
            matched[row as usize] = channel.first;
            channel.first = next[channel.first as usize];
        }
    }
    matched
}

/// Reports what is left over in a channel, and excludes the channel if it is unclear which send is missing.
fn report(trace: &Trace, shard: &Shard, channel: &mut Channel, sends: &[&SendInfo], diagnostics: &mut Diagnostics) {
    let send = sends.get(channel.first as usize);
    if channel.sends > channel.receives {
        let place = send.map(|send| Place::at(send.location, send.time));
        diagnostics.count(DiagnosticKind::UnmatchedSend, u64::from(channel.sends - channel.receives), place);
    } else if channel.receives > channel.sends {
        let row = channel.first_receive;
        let receive = &shard.receives.rows[row as usize];
        let place = Place::at(shard.location_of(&shard.receives, row), receive.time);
        diagnostics.count(DiagnosticKind::UnmatchedReceive, u64::from(channel.receives - channel.sends), Some(place));
        // A sender with a truncated file lacks only its last sends; the earlier ones still match in order.
        if !trace.is_truncated(receive.peer) {
            channel.first = NONE;
        }
    }
}
