//! What calls of MPI do, by their names.

use whywait_otf2::enums::{CollectiveOp, RegionRole};

/// What a call does with a message.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Act {
    Send,
    Receive,
    /// Both at once: the first row of such a call sends, and a second one receives.
    SendReceive,
}

/// A call without its library, and without what tells its versions apart: `MPI_Ibcast_c` is `bcast`, non-blocking.
fn plain(name: &str) -> String {
    let call = name.strip_prefix("MPI_").unwrap_or(name).to_ascii_lowercase();
    call.strip_suffix("_c").map_or_else(|| call.clone(), str::to_owned)
}

/// When the message of a call is complete.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Mode {
    /// When the call ends.
    Blocking,
    /// In a later call.
    NonBlocking,
    /// The call only defines what a later call starts.
    Defining,
}

/// What a call of the table of messages does.
pub(super) fn act(name: &str) -> Option<(Act, Mode)> {
    let call = plain(name);
    let (call, mode) = match (call.strip_suffix("_init"), call.strip_prefix('i')) {
        (Some(call), _) => (call, Mode::Defining),
        (None, Some(call)) => (call, Mode::NonBlocking),
        (None, None) => (call.as_str(), Mode::Blocking),
    };
    let act = match call {
        "send" | "bsend" | "ssend" | "rsend" => Act::Send,
        "recv" | "mrecv" => Act::Receive,
        "sendrecv" | "sendrecv_replace" => Act::SendReceive,
        _ => return None,
    };
    Some((act, mode))
}

/// Whether a call starts requests that were defined before.
pub(super) fn starts(name: &str) -> bool {
    matches!(plain(name).as_str(), "start" | "startall")
}

/// Whether a call completes all requests that it names. A persistent one that is complete may be named again, to no effect.
pub(super) fn completes_all(name: &str) -> bool {
    matches!(plain(name).as_str(), "wait" | "waitall")
}

/// The operation of a call in which all members of a communicator take part, and its role.
pub(super) fn operation(name: &str) -> Option<(CollectiveOp, RegionRole)> {
    let call = plain(name);
    let known = |call: &str| {
        use RegionRole as Role;
        Some(match call {
            "barrier" => (CollectiveOp::BARRIER, Role::BARRIER),
            "bcast" => (CollectiveOp::BCAST, Role::COLL_ONE2ALL),
            "scatter" => (CollectiveOp::SCATTER, Role::COLL_ONE2ALL),
            "scatterv" => (CollectiveOp::SCATTERV, Role::COLL_ONE2ALL),
            "reduce" => (CollectiveOp::REDUCE, Role::COLL_ALL2ONE),
            "gather" => (CollectiveOp::GATHER, Role::COLL_ALL2ONE),
            "gatherv" => (CollectiveOp::GATHERV, Role::COLL_ALL2ONE),
            "allreduce" => (CollectiveOp::ALLREDUCE, Role::COLL_ALL2ALL),
            "allgather" => (CollectiveOp::ALLGATHER, Role::COLL_ALL2ALL),
            "allgatherv" => (CollectiveOp::ALLGATHERV, Role::COLL_ALL2ALL),
            "alltoall" => (CollectiveOp::ALLTOALL, Role::COLL_ALL2ALL),
            "alltoallv" => (CollectiveOp::ALLTOALLV, Role::COLL_ALL2ALL),
            "alltoallw" => (CollectiveOp::ALLTOALLW, Role::COLL_ALL2ALL),
            "reduce_scatter" => (CollectiveOp::REDUCE_SCATTER, Role::COLL_ALL2ALL),
            "reduce_scatter_block" => (CollectiveOp::REDUCE_SCATTER_BLOCK, Role::COLL_ALL2ALL),
            "scan" => (CollectiveOp::SCAN, Role::COLL_OTHER),
            "exscan" => (CollectiveOp::EXSCAN, Role::COLL_OTHER),
            _ => return None,
        })
    };
    known(&call).or_else(|| known(call.strip_prefix('i')?))
}

/// Whether all processes of a window take part in a call, and wait for each other.
pub(super) fn synchronizes_window(name: &str) -> bool {
    let makes = ["win_create", "win_create_dynamic", "win_allocate", "win_allocate_shared"];
    let call = plain(name);
    makes.contains(&call.as_str()) || matches!(call.as_str(), "win_fence" | "win_free")
}

/// The role of a call.
pub(crate) fn role(name: &str) -> RegionRole {
    if let Some((_, role)) = operation(name) {
        return role;
    }
    let call = plain(name);
    let begins = |words: &[&str]| words.iter().any(|word| call.starts_with(word));
    if begins(&["file_"]) {
        RegionRole::FILE_IO
    } else if begins(&["win_", "put", "get_acc", "rput", "rget", "accumulate", "raccumulate", "fetch_", "compare_and"])
        || call == "get"
    {
        RegionRole::RMA
    } else if act(name).is_some() || begins(&["start", "wait", "test", "probe", "iprobe", "mprobe", "improbe"]) {
        RegionRole::POINT2POINT
    } else {
        RegionRole::FUNCTION
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_tell_what_calls_do() {
        assert_eq!(act("MPI_Isend"), Some((Act::Send, Mode::NonBlocking)));
        assert_eq!(act("MPI_Recv_init"), Some((Act::Receive, Mode::Defining)));
        assert_eq!(act("MPI_Sendrecv_replace"), Some((Act::SendReceive, Mode::Blocking)));
        assert_eq!(act("MPI_Probe"), None);
        assert!(starts("MPI_Startall") && !starts("MPI_Wait"));
        assert!(completes_all("MPI_Wait") && !completes_all("MPI_Waitsome") && !completes_all("MPI_Testall"));
        assert_eq!(operation("MPI_Iallreduce"), Some((CollectiveOp::ALLREDUCE, RegionRole::COLL_ALL2ALL)));
        assert_eq!(operation("MPI_Bcast_c").map(|(operation, _)| operation), Some(CollectiveOp::BCAST));
        assert_eq!(operation("MPI_Reduce_local"), None);
        assert_eq!(operation("MPI_File_read_all"), None);
        assert_eq!(role("MPI_File_open"), RegionRole::FILE_IO);
        assert_eq!(role("MPI_Get_address"), RegionRole::FUNCTION);
        assert_eq!(role("MPI_Win_fence"), RegionRole::RMA);
        assert_eq!(role("MPI_Waitany"), RegionRole::POINT2POINT);
    }
}
