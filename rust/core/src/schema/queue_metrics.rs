//! Metrics of the replay of message queues: counts of messages and requests.

use super::Unit;
use super::metrics::metrics;

metrics! {
    /// Metrics that the replay of queues sums by call path and location.
    QueueMetric of i64, summed by i64::saturating_add;
    /// Messages that could have arrived before their receive was posted: s < q.
    UnexpectedPossible = "mpi_unexpected_possible",
    /// Messages that arrived before their receive was posted: a < q.
    Unexpected = "mpi_unexpected",
    /// Messages that had certainly arrived before their receive was posted: a later one of their process was complete.
    UnexpectedAtLeast = "mpi_unexpected_at_least",
    /// Bytes of unexpected messages that are eager.
    UnexpectedBytes = "mpi_unexpected_bytes",
    /// Time that unexpected messages waited: q - a.
    UnexpectedTime = "mpi_unexpected_time",
    /// Time that posted receives waited for their message: a - q.
    PostedTime = "mpi_posted_time",
    /// Comparisons of messages with posted receives, and of receives with unexpected messages.
    MatchAttempts = "mpi_match_attempts",
    /// Messages whose receive was posted after that of a later message of the same pair and communicator.
    Overtaken = "mpi_overtaken",
    /// Messages whose send overlaps one of another thread to the same process and communicator.
    OutOfSequencePossible = "mpi_oos_possible",
    /// Messages proved eager.
    Eager = "mpi_eager",
    /// Messages proved to use rendezvous.
    Rendezvous = "mpi_rendezvous",
    /// Messages whose protocol only the eager limit decides.
    Undecided = "mpi_protocol_unknown",
    /// Bytes of messages proved eager.
    EagerBytes = "mpi_eager_bytes",
    /// Bytes of messages proved to use rendezvous.
    RendezvousBytes = "mpi_rendezvous_bytes",
    /// Bytes of messages whose protocol only the eager limit decides.
    UndecidedBytes = "mpi_protocol_unknown_bytes",
    /// Messages without data.
    Size0 = "mpi_message_size_0",
    /// Messages of at most 64 bytes.
    Size64 = "mpi_message_size_64",
    /// Messages of at most 1 KiB.
    Size1Ki = "mpi_message_size_1ki",
    /// Messages of at most 8 KiB.
    Size8Ki = "mpi_message_size_8ki",
    /// Messages of at most 64 KiB.
    Size64Ki = "mpi_message_size_64ki",
    /// Messages of at most 1 MiB.
    Size1Mi = "mpi_message_size_1mi",
    /// Messages of more than 1 MiB.
    SizeMore = "mpi_message_size_more",
    /// Messages of more bytes than the eager limit of their locality.
    AboveLimit = "mpi_message_size_above_limit",
    /// Requests that are never completed.
    RequestsLeaked = "mpi_requests_leaked",
    /// Parts in collective operations: at most B bytes, at most 64 members.
    CollectiveSmallSmall = "mpi_collective_size_small_small",
    /// Parts in collective operations: at most B bytes, more than 64 members.
    CollectiveSmallLarge = "mpi_collective_size_small_large",
    /// Parts in collective operations: more than B bytes, at most 64 members.
    CollectiveLargeSmall = "mpi_collective_size_large_small",
    /// Parts in collective operations: more than B bytes, more than 64 members.
    CollectiveLargeLarge = "mpi_collective_size_large_large",
}

impl QueueMetric {
    /// What its values count.
    pub fn unit(self) -> Unit {
        match self {
            Self::UnexpectedTime | Self::PostedTime => Unit::Time,
            Self::UnexpectedBytes | Self::EagerBytes | Self::RendezvousBytes | Self::UndecidedBytes => Unit::Bytes,
            _ => Unit::Count,
        }
    }
}
