//! Calls of MPI, by their names.

use whywait_otf2::enums::RegionRole;

/// The role of a call of MPI.
pub(crate) fn role(name: &str) -> RegionRole {
    let call = name.strip_prefix("MPI_").unwrap_or(name).to_ascii_lowercase();
    let is_any = |words: &[&str]| words.contains(&call.as_str());
    let starts = |words: &[&str]| words.iter().any(|word| call.starts_with(word));
    if starts(&["file_"]) {
        return RegionRole::FILE_IO;
    }
    if starts(&["win_", "put", "get_", "rput", "rget", "accumulate", "raccumulate", "fetch", "compare_and"])
        || call == "get"
    {
        return RegionRole::RMA;
    }
    let blocking = call.strip_prefix('i').unwrap_or(&call);
    match blocking {
        "barrier" => RegionRole::BARRIER,
        "bcast" | "scatter" | "scatterv" => RegionRole::COLL_ONE2ALL,
        "reduce" | "gather" | "gatherv" => RegionRole::COLL_ALL2ONE,
        "allreduce"
        | "allgather"
        | "allgatherv"
        | "alltoall"
        | "alltoallv"
        | "alltoallw"
        | "reduce_scatter"
        | "reduce_scatter_block" => RegionRole::COLL_ALL2ALL,
        "scan" | "exscan" => RegionRole::COLL_OTHER,
        _ if is_any(&["start", "startall"]) || starts(&["wait", "test", "send", "recv", "mrecv", "sendrecv"]) => {
            RegionRole::POINT2POINT
        }
        "send" | "bsend" | "ssend" | "rsend" | "recv" | "mrecv" | "probe" | "mprobe" => RegionRole::POINT2POINT,
        _ => RegionRole::FUNCTION,
    }
}
