//! Point-to-point messages with their requests, and collective operations.

use super::decoder::Decoder;
use super::envelopes::{Envelope, KnownComm, names_nobody};
use super::strays::{Stray, StrayKind};
use crate::diagnostics::DiagnosticKind;
use crate::ids::{CommId, InstanceId, ProcessId};
use crate::trace::NONE;
use crate::trace::columns::{Collective, OpenRequest, Received, RequestOf, Sent};
use crate::trace::definition_index::Members;

impl<'a> Decoder<'a> {
    /// Index of a communicator.
    #[inline(always)]
    pub(super) fn known_comm(&mut self, id: u32) -> Option<KnownComm<'a>> {
        match self.last_comm {
            Some(known) if known.id == id => Some(known),
            _ => self.find_comm(id),
        }
    }

    #[inline(never)]
    pub(super) fn find_comm(&mut self, id: u32) -> Option<KnownComm<'a>> {
        let comm = self.index.comm(id)?;
        let members = match &*self.index.comms[comm].members {
            Members::Processes(by_rank) | Members::Some { all: by_rank, .. } => &by_rank[..],
            _ => &[],
        };
        self.last_comm = Some(KnownComm { id, comm, members });
        self.last_comm
    }

    /// Index of a communicator, and the process of a rank in it.
    #[inline(always)]
    pub(super) fn peer(&mut self, time: i64, communicator: u32, rank: u32) -> Option<(CommId, ProcessId)> {
        if let Some(known) = self.last_comm
            && known.id == communicator
            && let Some(&peer) = known.members.get(rank as usize)
        {
            return Some((known.comm, peer));
        }
        self.find_peer(time, communicator, rank)
    }

    #[inline(never)]
    pub(super) fn find_peer(&mut self, time: i64, communicator: u32, rank: u32) -> Option<(CommId, ProcessId)> {
        let Some(KnownComm { comm, .. }) = self.known_comm(communicator) else {
            self.note(DiagnosticKind::UnknownCommunicator, time);
            return None;
        };
        let Some(peer) = self.index.comms[comm].peer(rank, self.state.process) else {
            if names_nobody(rank) {
                return None;
            }
            let unknown = *self.index.comms[comm].members == Members::Unknown;
            self.note(if unknown { DiagnosticKind::UnknownCommunicator } else { DiagnosticKind::UnknownPeer }, time);
            return None;
        };
        Some((comm, peer))
    }

    pub(super) fn send(
        &mut self,
        time: i64,
        receiver: u32,
        communicator: u32,
        tag: u32,
        bytes: u64,
        request: Option<u64>,
    ) {
        let Some(instance) = self.communicating(time) else { return };
        let peer = self.peer(time, communicator, receiver);
        if let Some(request) = request {
            let row = if peer.is_some() { self.shard.sends.rows.len() as u32 } else { NONE };
            self.state.sends.insert(request, row);
        }
        let Some((comm, peer)) = peer else { return };
        let complete = if request.is_some() { InstanceId::NONE } else { instance };
        self.shard.sends.rows.push(Sent { time, bytes, instance, complete, peer, comm, tag, cancelled: false });
    }

    /// A completed receive; `posted` is the instance that posted it where that is another call.
    pub(super) fn receive(&mut self, time: i64, message: Envelope, bytes: u64, posted: Option<InstanceId>) {
        let Some(instance) = self.communicating(time) else { return };
        let Some((comm, peer)) = self.peer(time, message.communicator, message.sender) else { return };
        let request = posted.unwrap_or(instance);
        if message.probe.is_some() {
            self.shard.probes.push((self.shard.receives.rows.len() as u32, message.probe));
        }
        let tag = message.tag;
        self.shard.receives.rows.push(Received { time, bytes, instance, request, peer, comm, tag, lead: u32::MAX });
    }

    pub(super) fn complete_receive(&mut self, time: i64, message: Envelope, bytes: u64, request: u64) {
        let posted = self.state.receives.remove(request);
        let row = self.shard.receives.rows.len();
        self.receive(time, message, bytes, posted);
        if posted.is_none() {
            let row = if self.shard.receives.rows.len() > row { row as u32 } else { NONE };
            self.end_elsewhere(time, (StrayKind::Receive, request), row);
        }
    }

    pub(super) fn post_receive(&mut self, time: i64, request: u64, probed: Option<Envelope>) {
        if let Some(instance) = self.communicating(time) {
            self.state.receives.insert(request, instance);
            if let Some(message) = probed {
                self.state.posted.insert(request, message);
            }
        }
    }

    pub(super) fn complete_send(&mut self, time: i64, request: u64) {
        let Some(instance) = self.communicating(time) else { return };
        match self.state.sends.remove(request) {
            Some(row) => {
                if let Some(send) = self.shard.sends.rows.get_mut(row as usize) {
                    send.complete = instance;
                }
            }
            None => self.end_elsewhere(time, (StrayKind::Send, request), NONE),
        }
    }

    /// A request ends that this thread has not begun.
    fn end_elsewhere(&mut self, time: i64, request: (StrayKind, u64), row: u32) {
        let instance = self.instance().unwrap_or(InstanceId::NONE);
        let location = self.state.index;
        self.strays.ended.push(Stray { request, time, location, instance, row, open: NONE });
    }

    pub(super) fn cancel(&mut self, time: i64, request: u64) {
        let (sent, posted) = (self.state.sends.remove(request), self.state.receives.remove(request));
        let end = self.instance().unwrap_or(InstanceId::NONE);
        if let Some(row) = sent {
            if let Some(send) = self.shard.sends.rows.get_mut(row as usize) {
                send.cancelled = true;
                self.shard.requests.rows.push(OpenRequest { begin: send.instance, end, of: RequestOf::Send });
            }
        } else if let Some(begin) = posted {
            self.shard.requests.rows.push(OpenRequest { begin, end, of: RequestOf::Receive });
        } else {
            self.note(DiagnosticKind::UnknownRequest, time);
        }
    }

    pub(super) fn collective(
        &mut self,
        time: i64,
        operation: u8,
        communicator: u32,
        root: u32,
        sent: u64,
        received: u64,
    ) {
        let begin = self.state.collective_begin.take();
        let Some(instance) = self.communicating(time) else { return };
        let Some(KnownComm { comm, .. }) = self.known_comm(communicator) else {
            self.note(DiagnosticKind::UnknownCommunicator, time);
            return;
        };
        // The begin record may be missing, or be left over from a call without an end record.
        let enter = self.shard.enter(instance);
        let begin = begin.map_or(enter, |begin| begin.max(enter));
        self.shard.collectives.rows.push(Collective {
            begin,
            end: time,
            sent,
            received,
            instance,
            comm,
            root,
            operation,
        });
    }
}
