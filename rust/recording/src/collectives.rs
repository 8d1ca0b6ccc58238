//! What Score-P counts as sent and received in collective operations.

use whywait_otf2::enums::{CollectiveOp, CollectiveRoot};

use crate::format::{PEER_NULL, PEER_ROOT};
use crate::unify::LocalComm;

/// Root of the operation as OTF2 has it.
#[must_use]
pub(crate) fn root(peer: i32) -> u32 {
    match peer {
        PEER_ROOT => CollectiveRoot::SELF.0,
        PEER_NULL => CollectiveRoot::THIS_GROUP.0,
        peer if peer >= 0 => peer.cast_unsigned(),
        _ => CollectiveRoot::NONE.0,
    }
}

/// Bytes sent and received by a process whose own parts are `sent` and `received`; its copy to itself counts.
#[must_use]
pub(crate) fn bytes(operation: CollectiveOp, comm: &LocalComm, peer: i32, sent: u64, received: u64) -> (u64, u64) {
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
