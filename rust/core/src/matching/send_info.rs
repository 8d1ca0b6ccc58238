//! A send as the receiving side needs it.

use bitcode::{Decode, Encode};

use crate::ids::{CallPathId, CommId, InstanceId, LocationId, ProcessId};

/// The data of a send that the receiving side needs.
#[derive(Clone, Copy, Debug, Encode, Decode)]
pub struct SendInfo {
    /// Time of the send record, ticks.
    pub time: i64,
    /// Enter of the send call, ticks.
    pub enter: i64,
    /// Leave of the send call, ticks.
    pub leave: i64,
    /// Enter of the call that completed the send, ticks; `i64::MAX` if nothing did.
    pub complete_enter: i64,
    /// Leave of the call that completed the send, ticks; `i64::MIN` if nothing did.
    pub complete_leave: i64,
    /// Whether that call completed nothing else; if not, it may have waited for another operation.
    pub is_alone: bool,
    /// Bytes sent.
    pub bytes: u64,
    /// Sending process.
    pub source: ProcessId,
    /// Receiving process.
    pub destination: ProcessId,
    /// Communicator.
    pub comm: CommId,
    /// Tag.
    pub tag: u32,
    /// Sending location.
    pub location: LocationId,
    /// Region instance of the send call.
    pub instance: InstanceId,
    /// Region instance of the call that completed the send, if any.
    pub complete: InstanceId,
    /// Its call path.
    pub callpath: CallPathId,
    /// Row of the send in its shard.
    pub row: u32,
}
