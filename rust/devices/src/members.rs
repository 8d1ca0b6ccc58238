//! One rank's parts in operations.

use crate::kinds::Kind;

/// One rank's part in an operation.
#[derive(Debug, Clone)]
pub struct Member {
    /// When it begins and ends, ns.
    pub begin: i64,
    /// See `begin`.
    pub end: i64,
    /// When it was launched, else when it began: the order of the program.
    pub order: i64,
    /// What the operation does.
    pub kind: Kind,
    /// The step in which it was issued, if that is recorded.
    pub step: Option<i64>,
    /// The group, if it is known.
    pub group: Option<Group>,
    /// The number of the operation in its group.
    pub sequence: Option<u64>,
    /// The number that all members of the operation have in common.
    pub comms: Option<u64>,
    /// Rank of the root in the world.
    pub root: Option<u32>,
    /// Bytes sent and received.
    pub sent: u64,
    /// See `sent`.
    pub received: u64,
    /// Elements, to compare members where only their order is known; 0 if unknown.
    pub elements: u64,
    /// Messages that it consists of.
    pub messages: Vec<Part>,
    /// What it is recognized by if a thread of the host issued it, to complete later, and no kernel carries it out.
    pub host: Option<HostPart>,
    /// Whether its group is none of the known ones for certain.
    pub is_ambiguous: bool,
}

/// An operation of a library for CPUs as it is recognized on all ranks.
#[derive(Debug, Clone, Copy)]
pub struct HostPart {
    /// Its call path, and how many alike came before it in the step.
    pub signature: u64,
}

/// A message as one side describes it.
#[derive(Debug, Clone, Copy)]
pub struct Part {
    /// Whether this side sends it.
    pub is_send: bool,
    /// Rank of the other side in the world.
    pub peer: Option<u32>,
    /// Its number.
    pub sequence: Option<u64>,
    /// Its size.
    pub bytes: u64,
}

/// A group of ranks as one of them names it.
#[derive(Debug, Clone, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Group {
    /// Its name for libraries.
    pub name: String,
    /// What it is for.
    pub description: String,
    /// Ranks in the world, if they are known.
    pub ranks: Option<Vec<u32>>,
    /// Number of ranks, if it is known.
    pub size: Option<u64>,
}
