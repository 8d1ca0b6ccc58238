//! Matching of records: messages, members of collective operations, and epochs of one-sided communication.

pub(crate) mod active_targets;
mod channels;
pub mod collectives;
pub mod epochs;
pub mod fifo;
pub(crate) mod flow;
pub(crate) mod intercomms;
pub mod launches;
pub mod messages;
pub(crate) mod nonblocking;
pub(crate) mod notifications;
pub mod one_sided;
pub(crate) mod ownership;
mod pairing;
mod probes;
pub mod protocol;
pub(crate) mod send_info;
pub(crate) mod signals;
pub(crate) mod threads;
mod time_order;
pub mod transfers;
pub(crate) mod trees;
pub(crate) mod unrecorded;
pub mod windows;
mod worlds;
