//! What is counted and measured besides waiting: calls, messages, bytes, the critical path.
//!
//! [`super`] says what stands in a row.

macro_rules! calls {
    ([$next:ident $($rest:ident)*] $($before:tt)*) => { $next! { [$($rest)*] $($before)*
        /// Exclusive time.
        Time = "time",
        /// Number of Enters.
        Visits = "visits" in Count,
    } };
}

macro_rules! messages {
    ([$next:ident $($rest:ident)*] $($before:tt)*) => { $next! { [$($rest)*] $($before)*
        /// Messages sent without payload.
        SyncsSend = "syncs_send" in Count,
        /// Late receivers of messages without payload.
        LateReceiverSyncs = "mpi_slr_count" in Count,
        /// Messages received without payload.
        SyncsReceive = "syncs_recv" in Count,
        /// Late senders of messages without payload.
        LateSenderSyncs = "mpi_sls_count" in Count,
        /// Messages without payload received in wrong order.
        WrongOrderSyncs = "mpi_slswo_count" in Count,
        /// Collective operations without payload.
        SyncsCollective = "syncs_coll" in Count,
        /// Messages sent with payload.
        CommsSend = "comms_send" in Count,
        /// Late receivers of messages with payload.
        LateReceiverComms = "mpi_clr_count" in Count,
        /// Messages received with payload.
        CommsReceive = "comms_recv" in Count,
        /// Late senders of messages with payload.
        LateSenderComms = "mpi_cls_count" in Count,
        /// Messages with payload received in wrong order.
        WrongOrderComms = "mpi_clswo_count" in Count,
        /// Collective operations that sent and received.
        CommsExchange = "comms_cxch" in Count,
        /// Collective operations that only sent.
        CommsSource = "comms_csrc" in Count,
        /// Collective operations that only received.
        CommsDestination = "comms_cdst" in Count,
        /// Bytes sent in messages.
        BytesSent = "bytes_sent" in Bytes,
        /// Bytes received in messages, as their senders sent them.
        BytesReceived = "bytes_rcvd" in Bytes,
        /// Bytes sent in collective operations.
        BytesOut = "bytes_cout" in Bytes,
        /// Bytes received in collective operations.
        BytesIn = "bytes_cin" in Bytes,
        /// Bytes of MPI puts.
        BytesPut = "bytes_put" in Bytes,
        /// Bytes of MPI gets.
        BytesGet = "bytes_get" in Bytes,
        /// What MPI atomics send, as recorded (with Score-P elements, not bytes).
        AtomicSent = "rma_atomic_sent" in Bytes,
        /// What MPI atomics bring back, as recorded (with Score-P elements, not bytes).
        AtomicReceived = "rma_atomic_received" in Bytes,
    } };
}

macro_rules! critical_path {
    ([$next:ident $($rest:ident)*] $($before:tt)*) => { $next! { [$($rest)*] $($before)*
        /// Time on the critical path.
        CriticalPath = "critical_path",
        /// Time in call paths that are on the critical path somewhere.
        CriticalPathActivities = "critical_path_activities",
        /// Time in call paths beyond what the critical path has of them.
        NonCriticalPathActivities = "non_critical_path_activities",
    } };
}
