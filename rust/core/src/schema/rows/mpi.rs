//! MPI: wait states in messages and collective operations.
//!
//! [`super`] says what stands in a row.

macro_rules! mpi {
    ([$next:ident $($rest:ident)*] $($before:tt)*) => { $next! { [$($rest)*] $($before)*
        /// Time in `MPI_Init` after the first process left it: a measure of uneven start-up.
        InitCompletion = "mpi_init_completion" {
            display_name: "Initialization Completion",
            below: "mpi_init_exit",
            waits_for: "for other processes to start up",
            look_at: "The start of the job rather than the program: how evenly processes are launched.",
            class: Some(Class::Library),
            position: Position::End,
            is_balanced_away: false,
            document: "init-and-finalize",
            source: "Scalasca, Initialization Completion",
            ..WAIT
        },
        /// Time in `MPI_Finalize` before the last process arrived.
        FinalizeWait = "mpi_finalize_wait" {
            display_name: "Wait at Finalize",
            below: "mpi_init_exit",
            waits_for: "for the last process to finish",
            look_at: "What only the last process does at the end: output, clean-up, collecting results.",
            class: Some(Class::Barrier),
            document: "init-and-finalize",
            source: "Scalasca, Wait at Finalize",
            ..WAIT
        },
        /// Time in a barrier before the last process arrived.
        BarrierWait = "mpi_barrier_wait" {
            display_name: "Wait at Barrier",
            below: "mpi_sync_collective",
            waits_for: "for the last process to reach the barrier",
            look_at: "What keeps the last process busy before this call: more work than the others have, or \
                waiting of its own. Then ask whether the barrier is needed at all.",
            class: Some(Class::Barrier),
            position: Position::BeginRecord,
            document: "barrier",
            source: "thesis, equation 2.2",
            ..WAIT
        },
        /// Time in a barrier after the first process left it.
        BarrierCompletion = "mpi_barrier_completion" {
            display_name: "Barrier Completion",
            below: "mpi_sync_collective",
            waits_for: "for the barrier to complete",
            look_at: "The network and the number of processes per node; the program itself has little influence.",
            position: Position::EndRecord,
            is_balanced_away: false,
            document: "barrier",
            source: "Scalasca, Barrier Completion",
            ..WAIT
        },
        /// Time in a call that completes a non-blocking barrier before the last process started it.
        NonblockingBarrierWait = "mpi_nbc_barrier_wait" {
            display_name: "Wait at Barrier (non-blocking)",
            below: "mpi_sync_collective",
            waits_for: "for the last process to start the non-blocking barrier",
            look_at: LAST_ONE,
            class: Some(Class::Barrier),
            position: Position::AfterMessages,
            document: "nonblocking-collectives",
            source: "whywait",
            ..WAIT
        },
        /// Time in a call that completes a non-blocking N-to-N operation before the last process started it.
        NonblockingWaitNxN = "mpi_nbc_wait_nxn" {
            display_name: "Wait at N x N (non-blocking)",
            below: "mpi_collective",
            waits_for: "for the last process to start the non-blocking operation",
            look_at: LAST_ONE,
            class: Some(Class::NxN),
            position: Position::AfterMessages,
            document: "nonblocking-collectives",
            source: "whywait",
            ..WAIT
        },
        /// Time in a call that completes a non-blocking 1-to-N operation before its root started it.
        NonblockingLateBroadcast = "mpi_nbc_latebroadcast" {
            display_name: "Late Broadcast (non-blocking)",
            below: "mpi_collective",
            waits_for: "for the root to start the non-blocking operation",
            look_at: "What the root does before it starts the operation.",
            class: Some(Class::LateBroadcast),
            position: Position::AfterMessages,
            document: "nonblocking-collectives",
            source: "whywait",
            ..WAIT
        },
        /// Time in which the root completes a non-blocking N-to-1 operation before the last process started it.
        NonblockingEarlyReduce = "mpi_nbc_earlyreduce" {
            display_name: "Early Reduce (non-blocking)",
            below: "mpi_collective",
            waits_for: "for the last process to contribute",
            look_at: LAST_ONE,
            class: Some(Class::EarlyReduce),
            position: Position::AfterMessages,
            document: "nonblocking-collectives",
            source: "whywait",
            ..WAIT
        },
        /// Time in a call that completes a non-blocking scan before the last process with a lower rank started it.
        NonblockingEarlyScan = "mpi_nbc_earlyscan" {
            display_name: "Early Scan (non-blocking)",
            below: "mpi_collective",
            waits_for: "for processes with lower ranks",
            look_at: LAST_ONE,
            class: Some(Class::NxN),
            position: Position::AfterMessages,
            document: "nonblocking-collectives",
            source: "whywait",
            ..WAIT
        },
        /// Time in a call that completes a non-blocking collective operation after all processes that it needs have started it.
        NonblockingCompletion = "mpi_nbc_completion" {
            display_name: "Completion (non-blocking)",
            below: "mpi_collective",
            waits_for: "for non-blocking collective operations to complete",
            look_at: "How much work there is between start and completion to hide the operation, and whether the library progresses meanwhile.",
            position: Position::End,
            is_balanced_away: false,
            document: "nonblocking-collectives",
            source: "whywait",
            ..WAIT
        },
        /// Time between the start of a non-blocking collective operation and its completing call in which a blocking one would wait.
        NonblockingHidden = "mpi_nbc_hidden_wait",
        /// Time a receiver waited because the message was sent after the receive began.
        LateSender = "mpi_latesender" {
            display_name: "Late Sender",
            below: "mpi_point2point",
            waits_for: "for messages that are sent late",
            look_at: "What the sender does before it sends: more work than its neighbors, or waiting of its own \
                that it propagates.",
            class: Some(Class::LateSender),
            document: "late-sender",
            source: "thesis, equation 2.1",
            ..WAIT
        },
        /// The part of Late Sender in which another message, sent earlier, could have been received instead.
        WrongOrder = "mpi_latesender_wo" {
            display_name: "Messages in Wrong Order",
            below: "mpi_latesender",
            part_of: Some(Metric::LateSender),
            document: "wrong-order",
            source: "Scalasca, Messages in Wrong Order",
            ..PART
        },
        /// Late Sender in wrong order where the earlier message came from another process.
        WrongOrderDifferent = "mpi_lswo_different" {
            display_name: "From different sources",
            below: "mpi_latesender_wo",
            part_of: Some(Metric::LateSender),
            document: "wrong-order",
            source: "Scalasca, Messages in Wrong Order",
            ..PART
        },
        /// Late Sender in wrong order where the earlier message came from the same process.
        WrongOrderSame = "mpi_lswo_same" {
            display_name: "From same source",
            below: "mpi_latesender_wo",
            part_of: Some(Metric::LateSender),
            document: "wrong-order",
            source: "Scalasca, Messages in Wrong Order",
            ..PART
        },
        /// Time a sender waited because the receive began after the send.
        LateReceiver = "mpi_latereceiver" {
            display_name: "Late Receiver",
            below: "mpi_point2point",
            waits_for: "for receivers that are not ready yet",
            look_at: "What the receiver does before it receives; or send without waiting for it (MPI_Isend).",
            class: Some(Class::LateReceiver),
            document: "late-receiver",
            source: "Scalasca, Late Receiver",
            ..WAIT
        },
        /// Time in a call that sends and receives, after all that it receives was sent, before the receive of what it sends began.
        ExchangeLateReceiver = "mpi_exchange_latereceiver" {
            display_name: "Late Receiver in Exchange",
            below: "mpi_point2point",
            waits_for: "for receivers that are not ready yet",
            look_at: "What the receiver does before it receives.",
            class: Some(Class::LateReceiver),
            position: Position::AfterSenders,
            document: "late-receiver",
            source: "whywait",
            ..WAIT
        },
        /// Time the root of an N-to-1 operation waited for the last of the other processes to begin it.
        EarlyReduce = "mpi_earlyreduce" {
            display_name: "Early Reduce",
            below: "mpi_collective",
            waits_for: "for the last process to contribute",
            look_at: LAST_ONE,
            class: Some(Class::EarlyReduce),
            position: Position::BeginRecord,
            document: "early-reduce",
            source: "thesis, equation 2.2",
            ..WAIT
        },
        /// Time a process waited in a scan for processes with lower ranks.
        EarlyScan = "mpi_earlyscan" {
            display_name: "Early Scan",
            below: "mpi_collective",
            waits_for: "for processes with lower ranks",
            look_at: LAST_ONE,
            class: Some(Class::NxN),
            position: Position::BeginRecord,
            document: "early-scan",
            source: "Scalasca, Early Scan",
            ..WAIT
        },
        /// Time a process waited in a 1-to-N operation for its root.
        LateBroadcast = "mpi_latebroadcast" {
            display_name: "Late Broadcast",
            below: "mpi_collective",
            waits_for: "for the root, which is late",
            look_at: "What the root does before it broadcasts.",
            class: Some(Class::LateBroadcast),
            position: Position::BeginRecord,
            document: "late-broadcast",
            source: "thesis, equation 2.2",
            ..WAIT
        },
        /// Time in an N-to-N operation before the last process arrived.
        WaitNxN = "mpi_wait_nxn" {
            display_name: "Wait at N x N",
            below: "mpi_collective",
            waits_for: "for the last process to take part",
            look_at: LAST_ONE,
            class: Some(Class::NxN),
            position: Position::BeginRecord,
            document: "wait-at-nxn",
            source: "thesis, equation 2.2",
            ..WAIT
        },
        /// Time in `MPI_Alltoallv` or `MPI_Alltoallw` before the last process took part, if all exchanged data at the same time.
        AlltoallvWait = "mpi_alltoallv_wait" {
            display_name: "Wait at Alltoallv",
            below: "mpi_collective",
            waits_for: "for the last process to take part",
            look_at: LAST_ONE,
            class: Some(Class::NxN),
            position: Position::BeginRecord,
            document: "inferred-synchronization",
            source: "whywait",
            ..WAIT
        },
        /// Time in an operation with a root, such as `MPI_Reduce`, before another process came, right after which the call ended: the
        /// process needed the other one in the tree that the library makes of the operation.
        TreeWait = "mpi_tree_wait" {
            display_name: "Wait in Tree",
            below: "mpi_collective",
            waits_for: "for another process in the tree of the operation",
            look_at: LAST_ONE,
            class: Some(Class::Tree),
            position: Position::BeginRecord,
            document: "wait-in-tree",
            source: "whywait",
            ..WAIT
        },
        /// Time in a collective operation of neighbors, such as `MPI_Neighbor_allgather`, before the last of the process's neighbors in the
        /// topology took part.
        NeighborWait = "mpi_neighbor_wait" {
            display_name: "Wait at Neighborhood",
            below: "mpi_collective",
            waits_for: "for the last neighbor in the topology to take part",
            look_at: "What the neighbor does before: more work than others, or waiting of its own that it propagates.",
            class: Some(Class::NxN),
            position: Position::AfterMessages,
            document: "neighborhoods",
            source: "whywait",
            ..WAIT
        },
        /// Time in a call that creates a communicator before the last process called it, if all were in it at the same time.
        CreationWait = "mpi_comm_create_wait" {
            display_name: "Wait at Creation of Communicators",
            below: "mpi_mgmt_comm",
            waits_for: "for the last process to create the communicator",
            look_at: LAST_ONE,
            class: Some(Class::Barrier),
            document: "inferred-synchronization",
            source: "whywait",
            ..WAIT
        },
        /// Time in a call that opens or closes a file before the last process called it, if all were in it at the same time.
        FileWait = "mpi_file_open_wait" {
            display_name: "Wait at Opening of Files",
            below: "mpi_mgmt_file",
            waits_for: "for the last process to open or close a file",
            look_at: LAST_ONE,
            class: Some(Class::Barrier),
            document: "inferred-synchronization",
            source: "whywait",
            ..WAIT
        },
        /// Time in `MPI_Probe` before the message was sent that the process receives next.
        ProbeLateSender = "mpi_probe_latesender" {
            display_name: "Late Sender at Probe",
            below: "mpi_point2point",
            waits_for: "for messages that are sent late",
            look_at: "What the sender does before it sends: more work than its neighbors, or waiting of its own \
                that it propagates.",
            class: Some(Class::LateSender),
            document: "inferred-synchronization",
            source: "whywait",
            ..WAIT
        },
        /// Time in an N-to-N operation after the first process left it.
        NxNCompletion = "mpi_nxn_completion" {
            display_name: "N x N Completion",
            below: "mpi_collective",
            waits_for: "for the operation to complete after all have arrived",
            look_at: "The amount of data and the network; a nonblocking collective operation can overlap this time with work.",
            position: Position::EndRecord,
            is_balanced_away: false,
            document: "wait-at-nxn",
            source: "Scalasca, N x N Completion",
            ..WAIT
        },
        /// Time in a collective read or write before the last process arrived.
        IoWait = "mpi_io_wait" {
            display_name: "Wait at Collective I/O",
            below: "mpi_io_collective",
            waits_for: "for the last process to take part in a collective read or write",
            look_at: LAST_ONE,
            class: Some(Class::Io),
            position: Position::BeginRecord,
            document: "io",
            source: "specification.md#collective-io",
            ..WAIT
        },
    } };
}
