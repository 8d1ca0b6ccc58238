//! What calls move, and with whom: by region instance.

use crate::ids::{CommId, InstanceId, ProcessId};
use crate::trace::definition_index::Members;
use crate::trace::nodes::nodes;
use crate::trace::{Shard, Trace};

/// What the account asks about the partners of all processes.
pub(super) struct Partners {
    /// A key of each process's node; empty if there is only one node.
    nodes: Vec<u32>,
    /// Of each communicator, the logarithm of the next power of two of its size, and whether it spans nodes.
    comms: Vec<(u8, bool)>,
}

/// The logarithm of the next power of two of a number of members.
pub(super) fn logarithm(members: usize) -> u8 {
    members.next_power_of_two().ilog2() as u8
}

impl Partners {
    pub(super) fn new(trace: &Trace) -> Self {
        let nodes = nodes(trace);
        let is_one = nodes.iter().all(|&node| node == nodes[0]);
        let nodes = if is_one { Vec::new() } else { nodes };
        let comms = trace.definitions.comms.iter().map(|comm| {
            let of_processes = |members: &[ProcessId]| members.iter().any(|&member| nodes[member] != nodes[members[0]]);
            let is_own = *comm.members == Members::OwnProcess;
            let spans = !nodes.is_empty() && !is_own && comm.processes().is_none_or(of_processes);
            (logarithm(comm.size), spans)
        });
        let comms = comms.collect();
        Self { nodes, comms }
    }

    pub(super) fn is_remote(&self, a: ProcessId, b: ProcessId) -> bool {
        match (self.nodes.get(a.index()), self.nodes.get(b.index())) {
            (Some(a), Some(b)) => a != b,
            _ => !self.nodes.is_empty(),
        }
    }

    pub(super) fn comm(&self, comm: CommId) -> (u8, bool) {
        self.comms.get(comm.index()).copied().unwrap_or((0, !self.nodes.is_empty()))
    }
}

/// What a call moves: bytes, members of a collective operation as a logarithm, and whether it leaves the node, in one
/// word.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Moved(u64);

const BYTES: u64 = (1 << 48) - 1;
const REMOTE: u64 = 1 << 63;

impl Moved {
    fn add(&mut self, bytes: u64, members: u8, is_remote: bool) {
        let sum = (self.0 & BYTES).saturating_add(bytes).min(BYTES);
        let rest = (self.0 & !BYTES) | u64::from(members) << 48 | if is_remote { REMOTE } else { 0 };
        self.0 = rest | sum;
    }

    pub(super) fn bytes(self) -> u64 {
        self.0 & BYTES
    }

    pub(super) fn members(self) -> u8 {
        (self.0 >> 48) as u8
    }

    pub(super) fn is_local(self) -> bool {
        self.0 & REMOTE == 0
    }
}

/// How long the last of the messages that a call receives had been sent when it began, ticks; `u32::MAX` if longer or
/// unknown.
pub(super) fn leads(shard: &Shard) -> Vec<u32> {
    let mut all = vec![u32::MAX; shard.instances.enter.len()];
    for receive in &shard.receives.rows {
        if let Some(lead) = all.get_mut(receive.instance.index()) {
            *lead = receive.lead.min(*lead);
        }
    }
    all
}

/// What each region instance of a shard sends, receives or completes.
pub(super) fn moved(trace: &Trace, shard: &Shard, partners: &Partners) -> Vec<Moved> {
    let mut all = vec![Moved::default(); shard.instances.enter.len()];
    let mut add = |instance: InstanceId, bytes, members, is_remote| {
        if let Some(moved) = all.get_mut(instance.index()) {
            moved.add(bytes, members, is_remote);
        }
    };
    for i in 0..shard.locations.len() {
        let own = trace.definitions.locations[shard.location(i)].process;
        for send in shard.sends.of(i) {
            let is_remote = partners.is_remote(own, send.peer);
            add(send.instance, send.bytes, 0, is_remote);
            if send.complete != send.instance {
                add(send.complete, send.bytes, 0, is_remote);
            }
        }
        for receive in shard.receives.of(i) {
            add(receive.instance, receive.bytes, 0, partners.is_remote(own, receive.peer));
        }
        for operation in shard.collectives.of(i) {
            let (members, spans) = partners.comm(operation.comm);
            add(operation.instance, operation.sent.saturating_add(operation.received), members, spans);
        }
        for operation in shard.nonblocking.of(i) {
            let (members, spans) = partners.comm(operation.comm);
            add(operation.complete, operation.sent.saturating_add(operation.received), members, spans);
        }
        for operation in shard.operations.of(i) {
            let is_remote = partners.is_remote(own, operation.target);
            let bytes = operation.sent.saturating_add(operation.received);
            add(operation.instance, bytes, 0, is_remote);
            if operation.done_remote != operation.instance {
                add(operation.done_remote, bytes, 0, is_remote);
            }
        }
    }
    all
}
