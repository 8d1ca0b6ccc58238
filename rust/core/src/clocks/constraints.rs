//! What must come before what: every message and every collective operation bounds the difference of clocks.
//!
//! *Source*: clocks.md#constraints; the gates are those of the wait states (specification.md#collective-operations).

use bitcode::{Decode, Encode};

use crate::Result;
use crate::ids::{LocationId, ProcessId};
use crate::matching::collectives::{self, Member};
use crate::matching::messages;
use crate::trace::Trace;

/// Kinds of constraints.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Encode, Decode)]
pub enum Kind {
    /// A message is sent before it is received.
    Message,
    /// All enter a barrier before anyone leaves it.
    Barrier,
    /// All senders begin before a receiver ends.
    AllToAll,
    /// The root begins before a receiver ends.
    OneToAll,
    /// All senders begin before the root ends.
    AllToOne,
    /// The senders of lower ranks begin before a receiver ends.
    Prefix,
}

impl Kind {
    /// All kinds.
    pub const ALL: [Self; 6] =
        [Self::Message, Self::Barrier, Self::AllToAll, Self::OneToAll, Self::AllToOne, Self::Prefix];

    /// Name in tables.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::Message => "p2p",
            Self::Barrier => "barrier",
            Self::AllToAll => "n_to_n",
            Self::OneToAll => "one_to_n",
            Self::AllToOne => "n_to_one",
            Self::Prefix => "prefix",
        }
    }

    /// The kind of a collective operation; start-up bounds nothing, because processes start when they like.
    fn of(kind: collectives::Kind) -> Option<Self> {
        match kind {
            collectives::Kind::Finalize | collectives::Kind::Barrier => Some(Self::Barrier),
            collectives::Kind::AllToAll => Some(Self::AllToAll),
            collectives::Kind::OneToAll => Some(Self::OneToAll),
            collectives::Kind::AllToOne => Some(Self::AllToOne),
            collectives::Kind::Scan => Some(Self::Prefix),
            collectives::Kind::Init | collectives::Kind::Io | collectives::Kind::Undecided => None,
        }
    }
}

/// A moment on a location, ticks.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Encode, Decode)]
pub struct Moment {
    /// The location.
    pub location: LocationId,
    /// Its time.
    pub time: i64,
}

/// A message: the moments of its send and receive records.
#[derive(Clone, Copy, Debug, Encode, Decode)]
pub struct Message {
    /// Where it was sent.
    pub sent: Moment,
    /// Where it was received.
    pub received: Moment,
}

/// One member's part in an instance of a collective operation.
#[derive(Clone, Copy, Debug, Encode, Decode)]
pub struct Part {
    /// Begin of the operation, ticks.
    pub begin: i64,
    /// End of the operation, ticks.
    pub end: i64,
    /// The location.
    pub location: LocationId,
    /// Kind of the operation.
    pub kind: Kind,
    /// Whether it is the first part of its instance; parts are in the order of ranks.
    is_first: bool,
    /// Whether others cannot end before it has begun.
    pub is_source: bool,
    /// Whether it cannot end before others have begun.
    pub is_target: bool,
}

/// All constraints of a run. If several processes share the analysis, the first has them.
#[derive(Debug, Default)]
pub struct Constraints {
    /// Messages.
    pub messages: Vec<Message>,
    /// Parts in collective operations, instance by instance.
    parts: Vec<Part>,
    /// The process of each location.
    processes: Vec<ProcessId>,
}

impl Constraints {
    /// Collects the constraints of a run at its first process.
    pub fn gather(trace: &Trace) -> Result<Self> {
        let (messages, _) = messages::match_all(trace, |_, shard, matches| {
            let mut found = Vec::with_capacity(shard.receives.rows.len());
            for i in 0..shard.locations.len() {
                let location = shard.location(i);
                for row in shard.receives.range(i) {
                    let Some(send) = matches.send(row) else { continue };
                    found.push(Message {
                        sent: Moment { location: send.location, time: send.time },
                        received: Moment { location, time: shard.receives.rows[row].time },
                    });
                }
            }
            found
        })?;
        let (parts, _) = collectives::match_all(trace, Vec::with_capacity, add)?;
        Ok(Self {
            messages: trace.exchange.gatherv(messages.into_iter().flatten())?,
            parts: trace.exchange.gatherv(parts.into_iter().flatten())?,
            processes: trace.definitions.locations.iter().map(|location| location.process).collect(),
        })
    }

    /// The process of a location.
    #[must_use]
    #[inline]
    pub fn process(&self, location: LocationId) -> ProcessId {
        self.processes[location]
    }

    /// The instances of collective operations, each by rank.
    pub fn instances(&self) -> impl Iterator<Item = &[Part]> + Clone {
        self.parts.chunk_by(|_, next| !next.is_first)
    }

    /// What the same constraints at other times are moved by, where that is largest in size, for each process.
    #[must_use]
    pub(super) fn largest_moves(&self, moved: &Self, processes: usize) -> Vec<i64> {
        let mut largest = vec![0i64; processes];
        let mut see = |location, before: i64, after: i64| {
            if let Some(largest) = largest.get_mut(self.process(location).index())
                && (after - before).abs() > largest.abs()
            {
                *largest = after - before;
            }
        };
        for (before, after) in self.messages.iter().zip(&moved.messages) {
            see(before.sent.location, before.sent.time, after.sent.time);
            see(before.received.location, before.received.time, after.received.time);
        }
        for (before, after) in self.parts.iter().zip(&moved.parts) {
            see(before.location, before.begin, after.begin);
            see(before.location, before.end, after.end);
        }
        largest
    }

    /// The same constraints at other times: `time` maps a moment to its time.
    #[must_use]
    pub fn at(&self, time: impl Fn(ProcessId, i64) -> i64) -> Self {
        let moved = |Moment { location, time: t }: Moment| Moment { location, time: time(self.process(location), t) };
        let messages = self.messages.iter();
        let messages = messages.map(|message| Message { sent: moved(message.sent), received: moved(message.received) });
        let parts = self.parts.iter().map(|part| {
            let process = self.process(part.location);
            Part { begin: time(process, part.begin), end: time(process, part.end), ..*part }
        });
        Self { messages: messages.collect(), parts: parts.collect(), processes: self.processes.clone() }
    }
}

/// Adds the parts of an instance, if it bounds anything.
fn add(parts: &mut Vec<Part>, kind: collectives::Kind, members: &[Member]) {
    let Some(kind) = Kind::of(kind) else { return };
    let root = members.iter().find(|member| member.rank == member.root);
    match (kind, root) {
        (Kind::OneToAll, root) if root.is_none_or(|root| root.sent == 0) => return,
        (Kind::AllToOne, root) if root.is_none_or(|root| root.received == 0) => return,
        _ => {}
    }
    let mut is_first = true;
    for member in members {
        let is_root = member.rank == member.root;
        let (is_source, is_target) = match kind {
            Kind::Barrier | Kind::Message => (true, true),
            Kind::AllToAll => (member.sent > 0, member.received > 0),
            Kind::OneToAll => (is_root, !is_root && member.received > 0),
            Kind::AllToOne => (!is_root && member.sent > 0, is_root),
            Kind::Prefix => (member.sent > 0, member.sent > 0 || member.received > 0),
        };
        if is_source || is_target {
            let &Member { begin, end, location, .. } = member;
            parts.push(Part { begin, end, location, kind, is_first, is_source, is_target });
            is_first = false;
        }
    }
}
