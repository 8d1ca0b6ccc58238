//! The calls of MPI as Extrae numbers them.

use whywait_otf2::enums::{CollectiveOp, RegionRole};

use crate::pthreads;

/// What a call does with messages.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(crate) enum Part {
    /// It returns at once, and a later call completes what it starts.
    Starts,
    /// It completes one request.
    CompletesOne,
    /// It completes all its requests.
    CompletesAll,
    /// Anything else.
    #[default]
    Other,
}

/// Types of events: classes of calls of MPI.
pub(crate) const POINT_TO_POINT: u32 = 50_000_001;
pub(crate) const COLLECTIVE: u32 = 50_000_002;
pub(crate) const OTHER: u32 = 50_000_003;
pub(crate) const ONE_SIDED: u32 = 50_000_004;
pub(crate) const FILES: u32 = 50_000_005;

/// How Extrae numbers a call: the type and value of its event, and the state of the thread in it; by the name of a call of
/// MPI without `MPI_`, in lower case, or the whole name of a call of POSIX threads.
#[must_use]
pub fn numbered(call: &str) -> Option<(u32, u32, u8)> {
    if call.starts_with("pthread_") {
        return pthreads::numbered(call);
    }
    let call = call.strip_suffix("_thread").unwrap_or(call);
    let (number, _) = NAMES.iter().find(|(_, name)| name.eq_ignore_ascii_case(call))?;
    let kind = match number {
        1..=6 | 33..=38 | 40..=42 | 59..=62 | 112 | 116 | 117 | 121 | 122 | 190..=193 => POINT_TO_POINT,
        7..=18 | 30 | 80 | 154..=171 | 174..=183 | 214 | 215 => COLLECTIVE,
        63..=75 | 172 | 184..=189 => ONE_SIDED,
        141..=150 => FILES,
        _ => OTHER,
    };
    let state = match (kind, number) {
        (_, 1 | 33 | 34 | 35) => 4,
        (_, 2 | 192) => 3,
        (_, 3 | 36 | 37 | 38) => 10,
        (_, 4 | 193) => 11,
        (_, 5 | 6 | 59 | 60 | 39 | 125 | 126 | 128) => 8,
        (_, 41 | 42) => 16,
        (_, 61 | 62 | 190 | 191) => 6,
        (COLLECTIVE, _) => 13,
        (ONE_SIDED, _) => 20,
        (FILES, _) => 12,
        _ => 15,
    };
    Some((kind, u32::from(*number), state))
}

/// Whether a type is a class of calls of MPI.
pub(crate) const fn is_mpi(kind: u32) -> bool {
    kind >= POINT_TO_POINT && kind <= FILES
}

/// Whether a type says what calls did between two bursts of computation, instead of the calls.
pub(crate) const fn is_statistic(kind: u32) -> bool {
    kind >= 54_000_000 && kind < 55_000_000
}

/// The name without a label for it.
pub(crate) fn name(value: i64) -> Option<&'static str> {
    NAMES.binary_search_by_key(&value, |(known, _)| i64::from(*known)).ok().map(|at| NAMES[at].1)
}

/// The name of a call for files that has none of its own: which of a group it is, is not known without a label.
pub(crate) fn file_access(value: i64) -> String {
    match value {
        195..=202 => format!("MPI_File_... begin or end ({value})"),
        203..=210 => format!("MPI_File_... ordered or shared ({value})"),
        _ => format!("MPI_File_... ({value})"),
    }
}

/// What a call does with messages.
pub(crate) fn part(value: i64) -> Part {
    match value {
        3 | 36 | 37 | 38 | 123 | 124 => Part::Starts,
        5 | 59 => Part::CompletesOne,
        6 => Part::CompletesAll,
        _ => Part::Other,
    }
}

/// The operation of a blocking collective call.
pub(crate) fn operation(value: i64) -> Option<CollectiveOp> {
    Some(match value {
        7 => CollectiveOp::BCAST,
        8 => CollectiveOp::BARRIER,
        9 => CollectiveOp::REDUCE,
        10 => CollectiveOp::ALLREDUCE,
        11 => CollectiveOp::ALLTOALL,
        12 => CollectiveOp::ALLTOALLV,
        13 => CollectiveOp::GATHER,
        14 => CollectiveOp::GATHERV,
        15 => CollectiveOp::SCATTER,
        16 => CollectiveOp::SCATTERV,
        17 => CollectiveOp::ALLGATHER,
        18 => CollectiveOp::ALLGATHERV,
        30 => CollectiveOp::SCAN,
        80 => CollectiveOp::REDUCE_SCATTER,
        168 => CollectiveOp::REDUCE_SCATTER_BLOCK,
        170 => CollectiveOp::ALLTOALLW,
        214 => CollectiveOp::EXSCAN,
        _ => return None,
    })
}

/// Whether an operation has a root.
pub(crate) const fn is_rooted(operation: CollectiveOp) -> bool {
    matches!(
        operation,
        CollectiveOp::BCAST
            | CollectiveOp::REDUCE
            | CollectiveOp::GATHER
            | CollectiveOp::GATHERV
            | CollectiveOp::SCATTER
            | CollectiveOp::SCATTERV
    )
}

/// The role of a call.
pub(crate) fn role(kind: u32, value: i64) -> RegionRole {
    match (kind, operation(value)) {
        (_, Some(CollectiveOp::BARRIER)) => RegionRole::BARRIER,
        (_, Some(CollectiveOp::BCAST | CollectiveOp::SCATTER | CollectiveOp::SCATTERV)) => RegionRole::COLL_ONE2ALL,
        (_, Some(CollectiveOp::REDUCE | CollectiveOp::GATHER | CollectiveOp::GATHERV)) => RegionRole::COLL_ALL2ONE,
        (_, Some(CollectiveOp::SCAN | CollectiveOp::EXSCAN)) | (COLLECTIVE, None) => RegionRole::COLL_OTHER,
        (_, Some(_)) => RegionRole::COLL_ALL2ALL,
        (POINT_TO_POINT, None) => RegionRole::POINT2POINT,
        (OTHER, None) if matches!(value, 39 | 123..=128) => RegionRole::POINT2POINT,
        (ONE_SIDED, None) => RegionRole::RMA,
        (FILES, None) => RegionRole::FILE_IO,
        _ => RegionRole::FUNCTION,
    }
}

/// Sorted by number.
const NAMES: [(u8, &str); 132] = [
    (1, "Send"),
    (2, "Recv"),
    (3, "Isend"),
    (4, "Irecv"),
    (5, "Wait"),
    (6, "Waitall"),
    (7, "Bcast"),
    (8, "Barrier"),
    (9, "Reduce"),
    (10, "Allreduce"),
    (11, "Alltoall"),
    (12, "Alltoallv"),
    (13, "Gather"),
    (14, "Gatherv"),
    (15, "Scatter"),
    (16, "Scatterv"),
    (17, "Allgather"),
    (18, "Allgatherv"),
    (19, "Comm_rank"),
    (20, "Comm_size"),
    (21, "Comm_create"),
    (22, "Comm_dup"),
    (23, "Comm_split"),
    (24, "Comm_group"),
    (25, "Comm_free"),
    (30, "Scan"),
    (31, "Init"),
    (32, "Finalize"),
    (33, "Bsend"),
    (34, "Ssend"),
    (35, "Rsend"),
    (36, "Ibsend"),
    (37, "Issend"),
    (38, "Irsend"),
    (39, "Test"),
    (40, "Cancel"),
    (41, "Sendrecv"),
    (42, "Sendrecv_replace"),
    (43, "Cart_create"),
    (45, "Cart_coords"),
    (49, "Cart_sub"),
    (54, "Graph_create"),
    (59, "Waitany"),
    (60, "Waitsome"),
    (61, "Probe"),
    (62, "Iprobe"),
    (63, "Win_create"),
    (64, "Win_free"),
    (65, "Put"),
    (66, "Get"),
    (67, "Accumulate"),
    (68, "Win_fence"),
    (69, "Win_start"),
    (70, "Win_complete"),
    (71, "Win_post"),
    (72, "Win_wait"),
    (73, "Win_test"),
    (74, "Win_lock"),
    (75, "Win_unlock"),
    (80, "Reduce_scatter"),
    (96, "Intercomm_create"),
    (97, "Intercomm_merge"),
    (112, "Bsend_init"),
    (115, "Request_free"),
    (116, "Recv_init"),
    (117, "Send_init"),
    (121, "Rsend_init"),
    (122, "Ssend_init"),
    (123, "Start"),
    (124, "Startall"),
    (125, "Testall"),
    (126, "Testany"),
    (128, "Testsome"),
    (141, "File_open"),
    (142, "File_close"),
    (143, "File_read"),
    (144, "File_read_all"),
    (145, "File_write"),
    (146, "File_write_all"),
    (147, "File_read_at"),
    (148, "File_read_at_all"),
    (149, "File_write_at"),
    (150, "File_write_at_all"),
    (151, "Comm_spawn"),
    (152, "Comm_spawn_multiple"),
    (153, "Request_get_status"),
    (154, "Ireduce"),
    (155, "Iallreduce"),
    (156, "Ibarrier"),
    (157, "Ibcast"),
    (158, "Ialltoall"),
    (159, "Ialltoallv"),
    (160, "Iallgather"),
    (161, "Iallgatherv"),
    (162, "Igather"),
    (163, "Igatherv"),
    (164, "Iscatter"),
    (165, "Iscatterv"),
    (166, "Ireduce_scatter"),
    (167, "Iscan"),
    (168, "Reduce_scatter_block"),
    (169, "Ireduce_scatter_block"),
    (170, "Alltoallw"),
    (171, "Ialltoallw"),
    (172, "Get_accumulate"),
    (173, "Dist_graph_create"),
    (174, "Neighbor_allgather"),
    (175, "Ineighbor_allgather"),
    (176, "Neighbor_allgatherv"),
    (177, "Ineighbor_allgatherv"),
    (178, "Neighbor_alltoall"),
    (179, "Ineighbor_alltoall"),
    (180, "Neighbor_alltoallv"),
    (181, "Ineighbor_alltoallv"),
    (182, "Neighbor_alltoallw"),
    (183, "Ineighbor_alltoallw"),
    (184, "Fetch_and_op"),
    (185, "Compare_and_swap"),
    (186, "Win_flush"),
    (187, "Win_flush_all"),
    (188, "Win_flush_local"),
    (189, "Win_flush_local_all"),
    (190, "Mprobe"),
    (191, "Improbe"),
    (192, "Mrecv"),
    (193, "Imrecv"),
    (194, "Comm_split_type"),
    (211, "Comm_dup_with_info"),
    (212, "Dist_graph_create_adjacent"),
    (213, "Comm_create_group"),
    (214, "Exscan"),
    (215, "Iexscan"),
];

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn calls_have_names() {
        assert!(NAMES.is_sorted_by_key(|(number, _)| *number));
        for (number, call) in [(1, "Send"), (8, "Barrier"), (168, "Reduce_scatter_block"), (214, "Exscan")] {
            assert_eq!(name(number), Some(call));
            assert_eq!(numbered(&call.to_lowercase()).map(|known| i64::from(known.1)), Some(number));
        }
        assert_eq!(name(0), None);
    }
}
