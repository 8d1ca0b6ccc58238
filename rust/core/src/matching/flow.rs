//! Whom the members of a collective operation need: decided here for wait states, their causes, clocks, and simulated runs.
//!
//! A member that takes needs those that give, but for itself: all, those of lower ranks, or its neighbors. Records tell who
//! gives and takes by the flow of data. Where they do not, or where a library may do more than data require, calls that
//! overlap tell it: such needs are inferred, and hold for blocking operations only, since from its start to its completion a
//! non-blocking one overlaps with everything.
//!
//! *Source*: specification.md#collective-operations; MPI 4.1, chapter 6.

use super::collectives::{ALLTOALLV, ALLTOALLW, Kind, Member};
use super::nonblocking::Part;
use crate::trace::columns::{CREATE_HANDLE, FILE_HANDLE};

/// A member of a collective operation, by its records.
pub(crate) trait Records {
    /// Rank in the communicator, and that of the root.
    fn ranks(&self) -> (u32, u32);
    /// Whether it sends.
    fn sends(&self) -> bool;
    /// Whether it receives.
    fn receives(&self) -> bool;
}

impl Records for Member {
    fn ranks(&self) -> (u32, u32) {
        (self.rank, self.root)
    }

    fn sends(&self) -> bool {
        self.sent > 0
    }

    fn receives(&self) -> bool {
        self.received > 0
    }
}

impl Records for Part {
    fn ranks(&self) -> (u32, u32) {
        (self.rank, self.root)
    }

    fn sends(&self) -> bool {
        self.sends
    }

    fn receives(&self) -> bool {
        self.receives
    }
}

/// Of those that give, whom a member needs that takes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Needs {
    /// All.
    All,
    /// Those of lower ranks.
    Lower,
    /// Its neighbors in the topology of the communicator.
    Near,
}

/// Some of the members.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Who {
    Nobody,
    Everyone,
    Senders,
    Receivers,
    /// Who sends or receives.
    Exchanging,
    Root,
    /// All but the root.
    Others,
    SendersButRoot,
    ReceiversButRoot,
}

impl Who {
    fn has(self, member: &impl Records) -> bool {
        let (rank, root) = member.ranks();
        match self {
            Self::Nobody => false,
            Self::Everyone => true,
            Self::Senders => member.sends(),
            Self::Receivers => member.receives(),
            Self::Exchanging => member.sends() || member.receives(),
            Self::Root => rank == root,
            Self::Others => rank != root,
            Self::SendersButRoot => member.sends() && rank != root,
            Self::ReceiversButRoot => member.receives() && rank != root,
        }
    }
}

/// Who needs whom.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Flow {
    pub(crate) needs: Needs,
    gives: Who,
    takes: Who,
}

impl Flow {
    const fn new(needs: Needs, gives: Who, takes: Who) -> Self {
        Self { needs, gives, takes }
    }

    /// Whether others need a member.
    pub(crate) fn gives(self, member: &impl Records) -> bool {
        self.gives.has(member)
    }

    /// Whether a member needs others.
    pub(crate) fn takes(self, member: &impl Records) -> bool {
        self.takes.has(member)
    }

    /// By the records of an operation; `None` if these do not tell.
    pub(crate) fn recorded<M: Records>(kind: Kind, members: &[M]) -> Option<Self> {
        let root = || members.iter().find(|member| Who::Root.has(*member));
        let flow = match kind {
            Kind::Finalize | Kind::Barrier => Self::new(Needs::All, Who::Everyone, Who::Everyone),
            Kind::AllToAll | Kind::OtherGroup => Self::new(Needs::All, Who::Senders, Who::Receivers),
            Kind::Scan => Self::new(Needs::Lower, Who::Senders, Who::Receivers),
            Kind::Neighborhood => Self::new(Needs::Near, Who::Everyone, Who::Everyone),
            Kind::OneToAll if root().is_some_and(M::sends) => Self::new(Needs::All, Who::Root, Who::ReceiversButRoot),
            Kind::AllToOne if root().is_some_and(M::receives) => Self::new(Needs::All, Who::SendersButRoot, Who::Root),
            Kind::OneToAll | Kind::AllToOne => Self::new(Needs::All, Who::Nobody, Who::Nobody),
            Kind::Init | Kind::Io | Kind::Undecided => return None,
        };
        Some(flow)
    }

    /// By members that are in a blocking operation at the same time; `None` if that tells nothing.
    pub(crate) fn inferred(kind: Kind, members: &[Member]) -> Option<Self> {
        let who = match (kind, members.first()?.operation) {
            (Kind::AllToAll, _) => Who::Exchanging,
            (Kind::Io, _) | (Kind::Undecided, CREATE_HANDLE | FILE_HANDLE) => Who::Everyone,
            (Kind::Undecided, ALLTOALLV | ALLTOALLW) if members.iter().all(|one| one.sends() && one.receives()) => {
                Who::Everyone
            }
            _ => return None,
        };
        let of_these = || members.iter().filter(|member| who.has(*member));
        let last = of_these().map(|member| member.begin).max()?;
        (of_these().map(|member| member.end).min()? > last).then_some(Self::new(Needs::All, who, who))
    }

    /// Of kernels: those of all members exchange signals, whether they have data or not
    /// (specification.md#device-collectives).
    pub(crate) fn of_kernels(kind: Kind, operation: u8) -> Option<Self> {
        let (gives, takes) = match (kind, operation) {
            (Kind::Barrier | Kind::AllToAll, _) | (_, ALLTOALLV | ALLTOALLW) => (Who::Everyone, Who::Everyone),
            (Kind::OneToAll, _) => (Who::Root, Who::Others),
            (Kind::AllToOne, _) => (Who::Everyone, Who::Root),
            _ => return None,
        };
        Some(Self::new(Needs::All, gives, takes))
    }
}
