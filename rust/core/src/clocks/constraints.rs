//! What must come before what: every message, collective operation, and synchronization bounds the difference of clocks.
//!
//! *Source*: clocks.md#constraints.

use bitcode::{Decode, Encode};
use rayon::slice::ParallelSliceMut as _;

use super::kind::Kind;
use crate::Result;
use crate::ids::{LocationId, ProcessId};
use crate::parallel::exchange::Exchange;

/// A moment on a location, ticks.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Encode, Decode)]
pub struct Moment {
    /// The location.
    pub location: LocationId,
    /// Its time.
    pub time: i64,
}

/// One moment comes before another one. There is one for each message, so it is small.
#[derive(Clone, Copy, Debug, Encode, Decode)]
pub struct Link {
    sent: i64,
    received: i64,
    /// The location of the source, and behind its bits the kind.
    from: u32,
    to: LocationId,
}

/// Bits of a location in [`Link::from`].
const LOCATION: u32 = 27;
const _: () = assert!(Kind::ALL.len() <= 1 << (u32::BITS - LOCATION) && size_of::<Link>() == 24);

impl Link {
    fn new(kind: Kind, source: Moment, target: Moment) -> Self {
        let location = source.location.number();
        assert!(location < 1 << LOCATION, "no archive has as many locations");
        let from = location | (kind as u32) << LOCATION;
        Self { sent: source.time, received: target.time, from, to: target.location }
    }

    /// Why.
    #[inline]
    pub fn kind(&self) -> Kind {
        Kind::ALL[(self.from >> LOCATION) as usize]
    }

    /// What comes before.
    #[inline]
    pub fn source(&self) -> Moment {
        Moment { location: LocationId::new(self.from & ((1 << LOCATION) - 1)), time: self.sent }
    }

    /// What comes after.
    #[inline]
    pub fn target(&self) -> Moment {
        Moment { location: self.to, time: self.received }
    }
}

/// One member's part in an operation of many.
#[derive(Clone, Copy, Debug, Encode, Decode)]
#[expect(clippy::struct_excessive_bools, reason = "they are independent")]
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
    pub(super) is_first: bool,
    /// Whether others cannot end before it has begun.
    pub is_source: bool,
    /// Whether it cannot end before others have begun.
    pub is_target: bool,
    /// Whether only lower ranks bound it.
    pub is_prefix: bool,
}

/// The constraints that one shard finds.
#[derive(Debug, Default)]
pub struct Found {
    pub(super) links: Vec<Link>,
    pub(super) parts: Vec<Part>,
}

/// A member of an operation: its location, begin and end, and whether it is a source and a target.
pub(super) struct Member {
    pub(super) location: LocationId,
    pub(super) times: (i64, i64),
    pub(super) is_source: bool,
    pub(super) is_target: bool,
}

impl Part {
    /// The same part, as the first of its instance or not.
    pub(super) fn as_first(&self, is_first: bool) -> Self {
        Self { is_first, ..*self }
    }
}

impl Found {
    /// Adds that a moment comes before another one, unless both are on one location.
    pub(super) fn link(&mut self, kind: Kind, source: (LocationId, i64), target: (LocationId, i64)) {
        let moment = |(location, time)| Moment { location, time };
        if source.0 != target.0 {
            self.links.push(Link::new(kind, moment(source), moment(target)));
        }
    }

    /// Adds an operation; members are in the order of ranks.
    pub(super) fn instance(&mut self, kind: Kind, is_prefix: bool, members: impl Iterator<Item = Member>) {
        let mut is_first = true;
        for Member { location, times: (begin, end), is_source, is_target } in members {
            if is_source || is_target {
                self.parts.push(Part { begin, end, location, kind, is_first, is_source, is_target, is_prefix });
                is_first = false;
            }
        }
    }

    /// Adds an operation that nobody leaves before all have entered it.
    pub(super) fn meeting(&mut self, kind: Kind, members: impl Iterator<Item = (LocationId, (i64, i64))>) {
        let member = |(location, times)| Member { location, times, is_source: true, is_target: true };
        self.instance(kind, false, members.map(member));
    }

    pub(super) fn extend(&mut self, other: Self) {
        self.links.extend(other.links);
        self.parts.extend(other.parts);
    }
}

/// The constraints of a run. If several processes share the analysis, each has the links with targets on its locations, and
/// some of the operations.
#[derive(Debug, Default)]
pub struct Constraints {
    /// Pairs of moments; those of one kind with one target are neighbors.
    links: Vec<Link>,
    /// Parts in operations of many, instance by instance.
    parts: Vec<Part>,
    /// The process of each location.
    processes: Vec<ProcessId>,
    /// The device of each stream that ran something.
    devices: Vec<(LocationId, u32)>,
}

impl Constraints {
    pub(super) fn new(found: Found, processes: Vec<ProcessId>, mut devices: Vec<(LocationId, u32)>) -> Self {
        let Found { mut links, parts } = found;
        // The receive records of messages are targets of their own, even at one time.
        let target = |link: &Link| match link.kind() {
            Kind::Message => (Kind::Message, LocationId::NONE, 0),
            kind => (kind, link.to, link.received),
        };
        links.par_sort_by_key(target);
        devices.sort_unstable();
        devices.dedup();
        Self { links, parts, processes, devices }
    }

    /// The process of a location.
    #[inline]
    pub fn process(&self, location: LocationId) -> ProcessId {
        self.processes[location]
    }

    /// Number of locations.
    pub(super) fn locations(&self) -> usize {
        self.processes.len()
    }

    /// The device of each stream that ran something, by location.
    pub(super) fn devices(&self) -> &[(LocationId, u32)] {
        &self.devices
    }

    /// Pairs of moments.
    pub fn links(&self) -> &[Link] {
        &self.links
    }

    /// Pairs of moments: those of messages, whose targets differ, and the others.
    pub(super) fn messages_and_others(&self) -> (&[Link], &[Link]) {
        self.links.split_at(self.links.partition_point(|link| link.kind() == Kind::Message))
    }

    /// Parts in operations of many, instance by instance, each by rank.
    pub(super) fn parts(&self) -> &[Part] {
        &self.parts
    }

    /// The operations of many, each by rank.
    pub fn instances(&self) -> impl Iterator<Item = &[Part]> + Clone {
        self.parts.chunk_by(|_, next| !next.is_first)
    }

    /// What `time` moves the moments of each process by, where that is largest in size, of all processes of the analysis at
    /// the first one.
    pub(super) fn largest_moves(
        &self,
        processes: usize,
        time: impl Fn(LocationId, i64) -> i64,
        exchange: &Exchange,
    ) -> Result<Vec<i64>> {
        let larger = |a: i64, b: i64| if (a.abs(), a) < (b.abs(), b) { b } else { a };
        let mut largest = vec![0; processes];
        let mut see = |location, at| {
            if let Some(largest) = largest.get_mut(self.process(location).index()) {
                *largest = larger(*largest, time(location, at) - at);
            }
        };
        for moment in self.links.iter().flat_map(|link| [link.source(), link.target()]) {
            see(moment.location, moment.time);
        }
        for part in &self.parts {
            see(part.location, part.begin);
            see(part.location, part.end);
        }
        let add = |all: Vec<i64>, own: Vec<i64>| all.into_iter().zip(own).map(|(a, b)| larger(a, b)).collect();
        Ok(exchange.gather(largest)?.into_iter().reduce(add).unwrap_or_default())
    }

    /// Those of all processes of the analysis at the first one, where `time` moves them to; nothing at the others.
    pub(super) fn gather(&self, time: impl Fn(LocationId, i64) -> i64, exchange: &Exchange) -> Result<Self> {
        let moved = self.at(time);
        let found = Found { links: exchange.gatherv(moved.links)?, parts: exchange.gatherv(moved.parts)? };
        Ok(Self::new(found, moved.processes, moved.devices))
    }

    /// The same constraints at other times: `time` maps a moment to its time.
    #[must_use]
    pub fn at(&self, time: impl Fn(LocationId, i64) -> i64) -> Self {
        let moved = |Moment { location, time: t }: Moment| Moment { location, time: time(location, t) };
        let links = self.links.iter();
        let links = links.map(|link| Link::new(link.kind(), moved(link.source()), moved(link.target())));
        let parts = self.parts.iter().map(|part| {
            let time = |t| time(part.location, t);
            Part { begin: time(part.begin), end: time(part.end), ..*part }
        });
        Self {
            links: links.collect(),
            parts: parts.collect(),
            processes: self.processes.clone(),
            devices: self.devices.clone(),
        }
    }
}
