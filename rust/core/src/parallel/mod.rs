//! How work is spread: over the threads of a process, and over the processes of an analysis.

pub mod exchange;
pub mod failure;
pub(crate) mod iter;
pub mod per_shard;
pub mod pool;
pub mod rounds;

pub use exchange::Exchange;
pub use per_shard::PerShard;
