//! MPI's collective operations, and those that make and free communicators. Bytes are those that Score-P counts as sent and received.

use whywait_otf2::Event;
use whywait_otf2::enums::{CollectiveOp, CollectiveRoot};
use whywait_otf2::records::UNDEFINED;

use super::library::{Called, Process, Records};
use crate::format::{Call, NONE, PEER_NULL, PEER_ROOT};
use crate::functions::{Class, FUNCTIONS};
use crate::model::Model;
use crate::requests::Request;
use crate::thread::Out;
use crate::unify::LocalComm;

/// Nothing has to be remembered.
#[derive(Debug)]
pub(crate) struct Collectives;

impl Records for Collectives {
    fn enter(&mut self, out: &mut Out<'_>, called: &Called<'_>, process: &mut Process<'_>) {
        let Called { function, call, .. } = called;
        if function.class == Class::Coll && function.operation.is_some() && process.comm(call.object).is_some() {
            out.put(call.enter, &Event::MpiCollectiveBegin {});
        }
    }

    fn leave(&mut self, out: &mut Out<'_>, called: &Called<'_>, process: &mut Process<'_>) {
        let Called { function, call, bytes: sent, .. } = called;
        let time = call.leave;
        if function.class == Class::Coll {
            if let (Some(collective_op), Some(comm)) = (function.operation, process.comm(call.object)) {
                let (size_sent, size_received) = bytes(collective_op, &comm, call.peer, *sent, call.received);
                let (communicator, root) = (comm.id, root(call.peer));
                out.put(time, &Event::MpiCollectiveEnd { collective_op, communicator, root, size_sent, size_received });
            }
            return;
        }
        if process.model != Model::Full {
            return;
        }
        match function.class {
            Class::Icoll if function.operation.is_some() && call.id != 0 => {
                out.put(time, &Event::NonBlockingCollectiveRequest { request_id: call.id });
            }
            Class::CommIdup if call.received != 0 => {
                out.put(time, &Event::NonBlockingCollectiveRequest { request_id: call.received });
            }
            Class::CommFree => {
                if let Some(comm) = process.comm(call.object) {
                    out.put(time, &Event::CommDestroy { communicator: comm.id });
                }
            }
            Class::CommCreate
            | Class::CommCreateGroup
            | Class::CommFromGroup
            | Class::IntercommCreate
            | Class::IntercommMerge => {
                if let Some(comm) = process.comm(call.id as u32).filter(|_| call.id < u64::from(NONE)) {
                    out.put(time, &Event::CommCreate { communicator: comm.id });
                }
            }
            _ => {}
        }
    }

    fn starts(&mut self, out: &mut Out<'_>, call: &Call, request: &Request, process: &mut Process<'_>) {
        let made = FUNCTIONS.get(usize::from(request.function));
        if process.model == Model::Full && made.is_some_and(|made| made.operation.is_some()) {
            out.put(call.leave, &Event::NonBlockingCollectiveRequest { request_id: request.id });
        }
    }

    fn completes(&mut self, out: &mut Out<'_>, time: u64, request: &Request, process: &mut Process<'_>) {
        let request_id = request.id;
        let (Model::Full, false, Some(made), Some(comm)) = (
            process.model,
            process.ignored.contains(&request_id),
            FUNCTIONS.get(usize::from(request.function)),
            process.comm(request.object),
        ) else {
            return;
        };
        let communicator = comm.id;
        // A communicator that is duplicated completes like a collective operation, but is none that OTF2 names.
        let (collective_op, root, (size_sent, size_received)) = if made.class == Class::CommIdup {
            (CollectiveOp::CREATE_HANDLE, UNDEFINED, (0, 0))
        } else if let Some(operation) = made.operation {
            let both = bytes(operation, &comm, request.peer, request.bytes, request.received);
            (operation, root(request.peer), both)
        } else {
            return;
        };
        let event = Event::NonBlockingCollectiveComplete {
            collective_op,
            communicator,
            root,
            size_sent,
            size_received,
            request_id,
        };
        out.put(time, &event);
    }
}

/// Root of the operation as OTF2 has it.
fn root(peer: i32) -> u32 {
    match peer {
        PEER_ROOT => CollectiveRoot::SELF.0,
        PEER_NULL => CollectiveRoot::THIS_GROUP.0,
        peer if peer >= 0 => peer.cast_unsigned(),
        _ => CollectiveRoot::NONE.0,
    }
}

/// Bytes sent and received by a process whose own parts are `sent` and `received`; its copy to itself counts.
fn bytes(operation: CollectiveOp, comm: &LocalComm, peer: i32, sent: u64, received: u64) -> (u64, u64) {
    let is_inter = comm.remote_size > 0;
    let ranks = u64::from(if is_inter { comm.remote_size } else { comm.size });
    let rank = u64::from(comm.rank);
    let is_root = if is_inter { peer == PEER_ROOT } else { peer == comm.rank.cast_signed() };
    let takes_no_part = is_inter && peer == PEER_NULL;
    let times = |count: u64, part: u64| part.saturating_mul(count);
    // Between two groups, the root only gives or only takes, and its group does nothing.
    let rooted = |at_root: u64, elsewhere: u64| match (takes_no_part, is_root) {
        (true, _) => 0,
        (_, true) => at_root,
        _ => elsewhere,
    };
    let own = |part: u64| rooted(if is_inter { 0 } else { part }, part);
    match operation {
        CollectiveOp::BARRIER => (0, 0),
        CollectiveOp::BCAST | CollectiveOp::SCATTER => (rooted(times(ranks, sent), 0), own(received)),
        CollectiveOp::SCATTERV => (rooted(sent, 0), own(received)),
        CollectiveOp::GATHER | CollectiveOp::REDUCE => (own(sent), rooted(times(ranks, received), 0)),
        CollectiveOp::GATHERV => (own(sent), rooted(received, 0)),
        CollectiveOp::ALLGATHER
        | CollectiveOp::ALLTOALL
        | CollectiveOp::ALLREDUCE
        | CollectiveOp::REDUCE_SCATTER_BLOCK => (times(ranks, sent), times(ranks, received)),
        CollectiveOp::ALLGATHERV => (times(ranks, sent), received),
        CollectiveOp::REDUCE_SCATTER => (sent, times(ranks, received)),
        CollectiveOp::SCAN => (times(ranks.saturating_sub(rank), sent), times(rank + 1, received)),
        CollectiveOp::EXSCAN => (times(ranks.saturating_sub(rank + 1), sent), times(rank, received)),
        _ => (sent, received),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const COMM: LocalComm = LocalComm { id: 0, rank: 1, size: 4, remote_size: 0 };

    #[test]
    fn the_copy_to_oneself_counts() {
        let of = |operation, peer| bytes(operation, &COMM, peer, 16, 8);
        assert_eq!(of(CollectiveOp::BCAST, 1), (64, 8));
        assert_eq!(of(CollectiveOp::BCAST, 0), (0, 8));
        assert_eq!(of(CollectiveOp::GATHER, 1), (16, 32));
        assert_eq!(of(CollectiveOp::GATHER, 0), (16, 0));
        assert_eq!(of(CollectiveOp::GATHERV, 1), (16, 8));
        assert_eq!(of(CollectiveOp::ALLREDUCE, -4), (64, 32));
        assert_eq!(of(CollectiveOp::ALLTOALLV, -4), (16, 8));
        assert_eq!(of(CollectiveOp::SCAN, -4), (48, 16));
        assert_eq!(of(CollectiveOp::EXSCAN, -4), (32, 8));
        assert_eq!(of(CollectiveOp::BARRIER, -4), (0, 0));
    }

    #[test]
    fn between_two_groups_the_group_of_the_root_does_nothing() {
        let inter = LocalComm { remote_size: 3, ..COMM };
        let of = |peer| bytes(CollectiveOp::BCAST, &inter, peer, 16, 16);
        assert_eq!(of(PEER_ROOT), (48, 0));
        assert_eq!(of(PEER_NULL), (0, 0));
        assert_eq!(of(1), (0, 16));
        assert_eq!(root(PEER_ROOT), CollectiveRoot::SELF.0);
        assert_eq!((root(2), root(-4)), (2, CollectiveRoot::NONE.0));
    }
}
