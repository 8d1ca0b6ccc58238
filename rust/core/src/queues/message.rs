//! The messages of a shard's receivers.

use std::ops::Range;

use super::sums::CellKey;
use crate::ids::{CallPathId, InstanceId, LocationId};
use crate::matching::messages::Matches;
use crate::matching::protocol::{Limits, Proofs, Protocol, ProtocolClassifier};
use crate::trace::Shard;

/// The properties of a message's send that the receiver needs.
#[derive(Clone, Copy, Debug)]
pub(super) struct Message {
    /// Enter of the call that starts the send (s), ticks.
    pub sent: i64,
    /// Leave of that call, ticks.
    pub returned: i64,
    pub bytes: u64,
    /// Sending location, call path of the send, and its row in the sender's shard.
    pub location: LocationId,
    pub callpath: CallPathId,
    pub row: u32,
    pub protocol: Protocol,
    /// Whether both processes are on one node.
    pub is_local: bool,
}

impl Message {
    pub(super) fn place(&self) -> CellKey {
        (self.callpath, self.location)
    }

    pub(super) fn is_eager(&self, limits: Limits) -> bool {
        limits.is_eager(self.is_local, self.bytes, self.protocol)
    }
}

/// The messages of a shard's receivers.
#[derive(Debug, Default)]
pub struct Messages {
    /// By receive; `None` if it is not matched.
    pub(super) of: Vec<Option<Message>>,
    pub(super) proofs: Proofs,
}

/// The calls of a shard's i-th location that complete receives, with their rows.
pub(super) fn calls(shard: &Shard, i: usize) -> impl Iterator<Item = (InstanceId, Range<usize>)> {
    let mut end = shard.receives.range(i).start;
    shard.receives.of(i).chunk_by(|a, b| a.instance == b.instance).map(move |receives| {
        let rows = end..end + receives.len();
        end = rows.end;
        (receives[0].instance, rows)
    })
}

/// Rows of receives, each with the call that posts it, or with the probe that found the message before.
pub(super) fn posted(shard: &Shard, rows: Range<usize>) -> impl Iterator<Item = (usize, InstanceId)> {
    let first = shard.probes.partition_point(|(row, _)| (*row as usize) < rows.start);
    let mut probes = shard.probes[first..].iter().peekable();
    rows.map(move |row| {
        let probe = probes.next_if(|(received, _)| *received as usize == row);
        (row, probe.map_or(shard.receives.rows[row].request, |&(_, probe)| probe))
    })
}

/// The matched messages of a shard's receivers.
pub fn messages(classifier: &ProtocolClassifier, shard: &Shard, matches: &Matches) -> Messages {
    let mut proofs = Proofs::default();
    let message = |(row, request)| {
        let send = matches.send(row)?;
        let (protocol, is_local) = classifier.count(send, shard.enter(request), &mut proofs);
        Some(Message {
            sent: send.enter,
            returned: send.leave,
            bytes: send.bytes,
            location: send.location,
            callpath: send.callpath,
            row: send.row,
            protocol,
            is_local,
        })
    };
    let of = posted(shard, 0..shard.receives.rows.len()).map(message).collect();
    Messages { of, proofs }
}
