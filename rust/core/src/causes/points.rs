//! Points: where a location synchronized or contended, or its events have to be divided for another reason.

use std::ops::Range;

use bitcode::{Decode, Encode};

use super::awaited::AwaitedWorks;
use crate::ids::{CallPathId, CommId, InstanceId, LocationId, ProcessId};
use crate::schema::Class;
use crate::trace::{NONE, Shard, Trace};

/// A place in the order of a location's events and of the steps between them.
///
/// The upper half is the index of the next event; the next four bits order the places before it. The rest numbers the
/// points of a thread before it begins ([`super::past`]).
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Encode, Decode)]
pub struct Position(u64);

const EVENT: u32 = 32;
const SUB: u32 = 28;
const JOIN_STEP: u64 = 0;
const PAST: u64 = 3;
const FORK_STEP: u64 = 4;
const EVENT_STEP: u64 = 14;

impl Position {
    fn new(event: u32, sub: u64) -> Self {
        Self((u64::from(event) << EVENT) | (sub << SUB))
    }

    /// What stands before the event that follows.
    fn sub(self) -> u64 {
        (self.0 >> SUB) & 15
    }

    /// Before an event, behind all that is over when the step before it begins.
    pub(crate) fn within_step_before(event: u32) -> Self {
        Self::new(event, Place::Ahead as u64)
    }

    /// Behind the step before an event, and before what follows the event.
    pub(crate) fn after_step_before(event: u32) -> Self {
        Self::new(event + 1, JOIN_STEP)
    }

    /// After everything.
    pub(crate) const END: Self = Self(u64::MAX);

    /// The first event at or after the position.
    #[inline]
    pub(crate) fn event(self) -> u32 {
        debug_assert!(self == Self::END || self.sub() < EVENT_STEP);
        (self.0 >> EVENT) as u32
    }

    /// The step from the end of a parallel region to the join, before the event that follows.
    pub(crate) fn before_join(event: u32) -> Self {
        Self::new(event, JOIN_STEP)
    }

    /// The step that a fork ends, before the Enter of its parallel region.
    pub(crate) fn before_fork(event: u32) -> Self {
        Self::new(event, FORK_STEP)
    }

    /// Whether it is the step that a fork ends.
    pub(crate) fn is_fork(self) -> bool {
        self.sub() == FORK_STEP
    }

    /// Behind the step to the join, before the event that follows.
    pub(crate) fn after_join(event: u32) -> Self {
        Self::new(event, Place::Behind as u64)
    }

    /// The past of a thread, before the Enter of its parallel region.
    pub(crate) fn past(event: u32) -> Self {
        Self::new(event, PAST)
    }

    /// Where the i-th copy stands in the past of a thread; `None` if the number does not fit.
    pub(crate) fn copy_of(self, i: u32) -> Option<Self> {
        (i < 1 << SUB).then_some(Self(self.0 | u64::from(i)))
    }

    /// Its number among the copies of the location, if a copy stands here.
    pub(crate) fn copy(self) -> Option<u32> {
        (self != Self::END && self.sub() == PAST).then_some((self.0 & ((1 << SUB) - 1)) as u32)
    }
}

/// A sort key: position, then number.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Key(u128);

impl Key {
    pub(crate) fn new(position: Position, number: u32) -> Self {
        Self((u128::from(position.0) << u32::BITS) | u128::from(number))
    }

    pub(crate) fn position(self) -> Position {
        Position((self.0 >> u32::BITS) as u64)
    }

    pub(crate) fn number(self) -> usize {
        self.0 as u32 as usize
    }

    /// The same with a number that is larger by `more`.
    pub(crate) fn moved(self, more: u32) -> Self {
        Self(self.0 + u128::from(more))
    }
}

/// Which points of a location lie in a call; `points` are all of the shard, `of_location` the location's.
pub(super) fn in_call<P>(
    shard: &Shard,
    call: InstanceId,
    points: &[P],
    of_location: Range<usize>,
    position: impl Fn(&P) -> Position,
) -> Range<usize> {
    let own = &points[of_location.clone()];
    let before = |event: u32| of_location.start + own.partition_point(|point| position(point).event() < event);
    before(shard.instances.enter[call])..before(shard.instances.leave[call] + 2)
}

/// Where a point lies relative to its call.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Encode, Decode)]
#[repr(u8)]
pub enum Place {
    /// After its Leave, before everything that follows.
    Behind = 1,
    /// At the join of the team whose parallel region it is.
    Join = 2,
    /// At the Enter of a parallel region: between the time before the fork and the time after it.
    Fork = 5,
    /// After its Enter, before everything in it.
    Begin = 6,
    /// In a barrier in which its thread runs tasks: when the last thread arrives, which may be in the middle of a step.
    Arrival = 7,
    /// In a barrier in which its thread runs tasks after the end of the barrier: then, likewise.
    Ended = 8,
    /// Before its Enter.
    Ahead = 9,
    /// At the record of a message sent, or of the completion of its request.
    Send = 10,
    /// At the record of a message received, or of its request.
    Receive = 11,
    /// At the end record of a collective operation.
    Collective = 12,
    /// At its Leave: after all records in it, before its last step.
    Leave = 13,
}

impl Place {
    /// When the step around this place in a call is divided, ticks.
    pub(crate) fn cut(self, shard: &Shard, instance: InstanceId) -> Option<i64> {
        match self {
            Self::Arrival => shard.arrivals.get(&instance).map(|barrier| barrier.latest),
            Self::Ended => shard.arrivals.get(&instance).map(|barrier| barrier.end),
            _ => None,
        }
    }

    /// The part of a wait at this place that lies in the call, ticks.
    pub(crate) fn inside(self, waiting: i64) -> i64 {
        if self == Self::Ahead { 0 } else { waiting }
    }
}

/// A place in a call.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Encode, Decode)]
pub struct Anchor {
    /// The location.
    pub location: LocationId,
    /// Region instance in the shard of the location; none: the end of the location's events.
    pub instance: InstanceId,
    /// Place with respect to the call.
    pub place: Place,
}

impl Anchor {
    /// A place in a call, given by location and region instance.
    #[must_use]
    pub fn new((location, instance): (LocationId, InstanceId), place: Place) -> Self {
        Self { location, instance, place }
    }

    /// The position, given the process at the other end of a message.
    pub(crate) fn position(self, trace: &Trace, peer: ProcessId) -> Position {
        let shard = trace.shard(self.location);
        if self.instance.is_none() {
            let i = shard.local(self.location);
            return Position::new(shard.event_offsets[i + 1], Place::Join as u64);
        }
        let enter = shard.instances.enter[self.instance];
        let leave = shard.instances.leave[self.instance];
        let event = match self.place {
            Place::Fork | Place::Ahead => enter,
            Place::Begin => enter + 1,
            Place::Arrival | Place::Ended => {
                let cut = self.place.cut(shard, self.instance).unwrap_or(i64::MIN);
                let inside = &shard.events.time[enter as usize + 1..leave as usize];
                enter + 1 + inside.partition_point(|&event| event <= cut) as u32
            }
            Place::Send | Place::Receive | Place::Collective if leave == enter + 1 => leave,
            Place::Send | Place::Receive | Place::Collective => match self.recorded(shard, peer) {
                // A nested call: records of the same time come before it.
                Some(time) => {
                    let inside = &shard.events.time[enter as usize + 1..leave as usize];
                    enter + 1 + inside.partition_point(|&event| event < time) as u32
                }
                None => enter + 1,
            },
            Place::Leave => leave,
            Place::Behind | Place::Join => leave + 1,
        };
        Position::new(event, self.place as u64)
    }

    /// Time of the record in the call, if it is known.
    fn recorded(self, shard: &Shard, peer: ProcessId) -> Option<i64> {
        fn find<T>(rows: &[T], from: i64, time: impl Fn(&T) -> i64, mine: impl Fn(&T) -> bool) -> Option<i64> {
            let begin = rows.partition_point(|row| time(row) < from);
            rows[begin..].iter().find(|row| mine(row)).map(time)
        }
        let i = shard.local(self.location);
        let (call, enter) = (self.instance, shard.enter(self.instance));
        match self.place {
            Place::Send => {
                find(shard.sends.of(i), enter, |row| row.time, |row| row.instance == call && row.peer == peer)
            }
            Place::Receive => {
                find(shard.receives.of(i), enter, |row| row.time, |row| row.instance == call && row.peer == peer)
            }
            _ => find(shard.collectives.of(i), enter, |row| row.end, |row| row.instance == call),
        }
    }
}

/// How two processes synchronize, which determines where their intervals begin.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Encode, Decode)]
#[repr(u8)]
pub enum Relation {
    /// The two with each other.
    Pair,
    /// As members of a group that all synchronize with each other ([`GroupSync`]).
    Group,
    /// One waits for the end of the other's activity.
    Contention,
    /// A thread waits for another one that owns a lock ([`super::ownership`]): no interval begins or ends there.
    Ownership,
    /// Two threads of a process with each other, besides teams.
    ThreadPair,
    /// Threads of a process that all synchronize with each other, besides teams.
    ThreadGroup,
    /// A thread begins that another one created: they synchronize, and nobody waits.
    Creation,
    /// A thread starts a task that another one made ready: nobody waits, and no interval begins or ends there.
    Start,
    /// A thread and a stream of a device, or two streams.
    Device,
    /// The same, or two devices, in a run whose devices communicate: no interval begins or ends there, because local chains
    /// have the costs ([`super::chains`]).
    Chain,
    /// Threads of a team.
    Threads,
    /// A master without its team.
    Alone,
    /// A thread and the one that forked it, before the fork: both have the same wait.
    Past,
}

impl Relation {
    /// Whether a wait ends when the other location ends something, not when it begins.
    pub(crate) fn waits_for_end(self) -> bool {
        matches!(self, Self::Contention | Self::Ownership | Self::Device | Self::Chain)
    }

    /// Whether it is between two locations only, so that their wait is not part of a group synchronization.
    pub(crate) fn is_of_two(self) -> bool {
        matches!(self, Self::Pair | Self::Contention | Self::Ownership | Self::Device | Self::Chain | Self::ThreadPair)
    }

    /// Whether a wait is explained by the work in an interval since the last synchronization.
    pub(crate) fn has_interval(self) -> bool {
        !matches!(self, Self::Ownership | Self::Creation | Self::Start | Self::Chain)
    }
}

/// A wait and its cause.
#[derive(Clone, Copy, Debug)]
pub struct SyncPoint {
    /// Class of the wait.
    pub class: Class,
    /// How the two synchronize.
    pub relation: Relation,
    /// The communicator of a collective operation, else none.
    pub comm: CommId,
    /// Where the wait is.
    pub waiter: Anchor,
    /// What it waited for.
    pub cause: Anchor,
    /// Waiting time, ticks.
    pub waiting: i64,
    /// From the Enter of the waiting call to the end of the wait, ticks.
    pub held: i64,
    /// Time of the waiting call after the synchronization, ticks.
    pub completion: i64,
    /// Time of the causing call after the synchronization, ticks.
    pub cause_completion: i64,
    /// Position among the wait states, or [`crate::trace::NONE`].
    pub state: u32,
}

/// The locations that take part in a [`GroupSync`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SyncScope {
    /// No location.
    Nobody,
    /// All processes.
    Everybody,
    /// All members of a communicator.
    Members {
        /// The communicator.
        comm: CommId,
    },
    /// Some members of a communicator.
    Some {
        /// The communicator.
        comm: CommId,
        /// Position of the sorted processes among the sets.
        set: u32,
    },
    /// Some threads of its process, such as those of a team.
    Threads {
        /// Position of the sorted locations among the sets of the shard.
        set: u32,
    },
    /// The begin of the master's work without its team.
    NoTeam,
}

/// A location's part in a group synchronization.
#[derive(Clone, Copy, Debug)]
pub struct GroupSync {
    /// Where.
    pub anchor: Anchor,
    /// Class of waits there.
    pub class: Class,
    /// Whom it synchronizes with.
    pub scope: SyncScope,
    /// Waiting time, ticks.
    pub waiting: i64,
    /// Duration of the call, ticks.
    pub total: i64,
    /// Time of the call after the synchronization, ticks.
    pub completion: i64,
}

/// A master works without its team, from the last join to this place.
#[derive(Clone, Copy, Debug)]
pub struct IdleTeamSpan {
    /// The fork, or the end.
    pub end: Anchor,
    /// Number of idle threads.
    pub idle: i64,
}

/// One point of a location.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Point {
    pub position: Position,
    /// The location.
    pub location: LocationId,
    /// Region instance, or none at the end.
    pub instance: InstanceId,
    pub callpath: CallPathId,
    pub class: Class,
    pub place: Place,
    /// Whether it waits for the work of a device ([`super::awaited`]).
    pub has_work: bool,
    /// Waiting time, ticks.
    pub waiting: i64,
    /// The part of the call's duration that can be work after the point, ticks.
    pub total: i64,
    /// From the Enter of the call to the end of its last wait, ticks; negative if that was before the Enter.
    pub held: i64,
}

impl Point {
    /// A point without synchronizations.
    pub(crate) fn new(shard: &Shard, anchor: Anchor, position: Position) -> Self {
        let Anchor { location, instance, place } = anchor;
        let known = instance.is_some();
        let is_over = !known || matches!(place, Place::Behind | Place::Join | Place::Ahead);
        Self {
            position,
            location,
            instance,
            callpath: if known { shard.callpath(instance) } else { CallPathId::NONE },
            class: Class::Mark,
            place,
            has_work: false,
            waiting: 0,
            total: if is_over { 0 } else { shard.leave(instance) - shard.enter(instance) },
            held: 0,
        }
    }
}

/// Where an interval begins.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct IntervalBegin {
    /// Its first point; the one before, if the location has any, is the last synchronization.
    pub from: u32,
    /// Time of the call at its left end that does not belong to it, ticks.
    pub before: i64,
}

/// Synchronization points of the locations of a shard as waiters.
#[derive(Debug, Default)]
pub(crate) struct SyncPoints {
    pub pairs: Vec<SyncPoint>,
    /// What devices did during these, by their numbers.
    pub awaited: AwaitedWorks,
    /// Keys of these, by position.
    pub order: Vec<Key>,
    pub group_syncs: Vec<GroupSync>,
    pub alone: Vec<IdleTeamSpan>,
    /// Sets of threads that synchronize as a group.
    pub thread_sets: Vec<Vec<LocationId>>,
}

/// A wait, for the causing side.
#[derive(Clone, Copy, Debug, Encode, Decode)]
pub(crate) struct CausedWait {
    /// Shard of the waiter, and position among its waits.
    pub shard: u32,
    pub own_wait: u32,
    /// The location that waited, or none.
    pub waiter: LocationId,
    pub comm: CommId,
    pub cause: Anchor,
    pub class: Class,
    pub relation: Relation,
    pub waiting: i64,
    pub completion: i64,
}

impl CausedWait {
    /// The idleness of a team, which concerns no other shard.
    pub(super) fn idleness(alone: &IdleTeamSpan) -> Self {
        Self {
            shard: NONE,
            own_wait: NONE,
            waiter: LocationId::NONE,
            comm: CommId::NONE,
            cause: alone.end,
            class: Class::OmpIdle,
            relation: Relation::Alone,
            waiting: alone.idle,
            completion: 0,
        }
    }

    /// The process that waited, or none.
    pub(super) fn process(&self, trace: &Trace) -> ProcessId {
        trace.definitions.locations.get(self.waiter.index()).map_or(ProcessId::NONE, |waiter| waiter.process)
    }
}
