//! Turns wait states into pairs and group synchronizations, from which the root causes are computed.
//!
//! | wait | the waiting point | the causing point | time of the calls after the synchronization |
//! |---|---|---|---|
//! | Late Sender | receive record | send record | `[L(own) − L(other)]+` |
//! | Late Receiver | completion of the send | request of the receive | the same |
//! | collective operations | end record | end record | [`CollectiveSync`] |
//! | Late Post, Early Wait | Leave | Leave | `[L(own) − L(other)]+` |
//! | Wait for Progress | Leave | after the Enter of the call that makes progress | `[L − E(progress)]+`; all of it |
//! | Late Sender at a probe | Leave | after the Enter of the send | `[L − E(send)]+`; all of it |
//! | Late Receiver in an exchange | Leave | after the Enter of the receive | `[L − E(receive)]+`; all of it |
//! | non-blocking collective operations | Leave | after the Enter of the call that starts it | `[L − E(start)]+`; all of it |
//! | contention | Leave | after the Leave of the release | all but the wait; nothing |
//! | contention of threads | after the Enter | after the Leave of the release | no synchronization |
//! | end of a thread | Leave | after the Leave of its last function | `[L − end]+`; nothing |
//! | signals, barriers and creation of POSIX threads | [`posix`] | | |
//! | host and device | [`devices`] | | |
//!
//! *Source*: specification.md#synchronization-points; thesis, definitions 4 and 8.

use super::cost_model::CostModel;
use super::ownership::ContendedLock;
use super::points::{Anchor, Place, Relation, SyncPoint, SyncScope};
use super::points::{GroupSync, Key, SyncPoints};
use super::states::States;
use super::teams::ThreadSets;
use super::{devices, posix, teams};
use crate::ids::CommId;
use crate::matching::threads::locks::ThreadLock;
use crate::schema::{Class, Pattern};
use crate::severity::Metric;
use crate::trace::{Shard, Trace};
use crate::waits::WaitState;
use crate::waits::collective_sync::{CollectiveSync, Participants};
use crate::waits::device::Devices;
use crate::waits::remote_calls::RemoteCalls;

/// Number of waits whose causes are looked up together.
const TOGETHER: usize = 64;

/// Collects the synchronization points of a shard's locations as waiters, and the locks that its threads waited for; `first`
/// is the position of its first wait state.
pub(super) fn collect<'a>(
    (trace, shard): (&Trace, &Shard),
    model: CostModel,
    (first, waits, calls): (usize, &'a [WaitState], &RemoteCalls),
    (collective_syncs, (devices, of_devices), locks): (
        impl Iterator<Item = &'a CollectiveSync>,
        (Option<&Devices>, Relation),
        &[Vec<ThreadLock>],
    ),
) -> (SyncPoints, Vec<ContendedLock>) {
    let mut sync_points = SyncPoints { pairs: Vec::with_capacity(waits.len()), ..SyncPoints::default() };
    let mut states = States::new(shard, waits, first);
    let of_two = |(wait, state): (&'a WaitState, u32)| {
        let class = class_of(wait.kind, model).filter(|_| wait.cause_instance.is_some())?;
        Some(PairwiseWait { class, places: sync_places(wait.kind, class)?, wait, state })
    };
    let mut of_two = waits.iter().zip(first as u32..).filter_map(of_two).peekable();
    let (mut together, mut times) = (Vec::with_capacity(TOGETHER), Vec::with_capacity(TOGETHER));
    while of_two.peek().is_some() {
        together.clear();
        together.extend(of_two.by_ref().take(TOGETHER));
        let causes = together.iter().map(|PairwiseWait { wait, .. }| (wait.cause_location, wait.cause_instance));
        calls.times(trace, causes, &mut times);
        sync_points
            .pairs
            .extend(together.iter().zip(&times).map(|(wait, &times)| wait.pair((trace, shard), model, times)));
    }
    // In the order of events, as the waits are, consecutive lookups are close together in memory.
    let mut collective_syncs: Vec<(u32, &CollectiveSync)> = collective_syncs
        .map(|collective_sync| (shard.instances.enter[collective_sync.call.1], collective_sync))
        .collect();
    collective_syncs.sort_by_key(|&(enter, _)| enter);
    sync_points.group_syncs.reserve(collective_syncs.len());
    for (_, collective_sync) in collective_syncs {
        if let Some(class) = class_of(collective_sync.kind, model) {
            record(trace, shard, class, &mut states, collective_sync, &mut sync_points);
        }
    }
    if let Some(devices) = devices.filter(|_| model != CostModel::Scalasca) {
        devices::collect(shard, (devices, of_devices), &mut states, &mut sync_points);
    }
    sync_points.pairs.shrink_to_fit();
    let mut sets = ThreadSets::default();
    let mut contended = Vec::new();
    teams::collect(trace, shard, model, &mut states, (&mut sync_points, &mut sets, &mut contended));
    if model != CostModel::Scalasca {
        posix::collect((trace, shard), locks, &mut states, (&mut sync_points, &mut sets, &mut contended));
    }
    sync_points.thread_sets = sets.finish();
    let position = |pair: &SyncPoint| {
        let cause = &trace.definitions.locations[pair.cause.location];
        pair.waiter.position(trace, cause.process)
    };
    sync_points.order = sync_points.pairs.iter().zip(0..).map(|(pair, i)| Key::new(position(pair), i)).collect();
    // Pairwise waits are sorted, and so are collective ones.
    sync_points.order.sort();
    (sync_points, contended)
}

/// The class of a wait. Scalasca computes no costs of waits in `MPI_Finalize` and in prefix operations, and does not
/// infer any.
fn class_of(kind: Metric, model: CostModel) -> Option<Class> {
    match (kind, model) {
        (Metric::FinalizeWait, CostModel::Scalasca) => Some(Class::Library),
        (
            Metric::AlltoallvWait
            | Metric::CreationWait
            | Metric::EarlyScan
            | Metric::ExchangeLateReceiver
            | Metric::FileWait
            | Metric::NeighborWait
            | Metric::NonblockingEarlyScan
            | Metric::ProbeLateSender,
            CostModel::Scalasca,
        ) => None,
        _ => Pattern::class_of(kind).filter(|&class| has_costs(class, model)),
    }
}

fn has_costs(class: Class, model: CostModel) -> bool {
    model != CostModel::Scalasca || class.is_known_to_scalasca()
}

/// The places of both sides of a pairwise wait; `None` for collective ones, which come as collective synchronizations.
fn sync_places(kind: Metric, class: Class) -> Option<(Place, Place)> {
    if has_to_start(kind) {
        return Some((Place::Leave, Place::Begin));
    }
    if matches!(kind, Metric::ConditionContention | Metric::LateSignal) {
        // Both wait for a signal first.
        return None;
    }
    Some(match class {
        Class::LateSender => (Place::Receive, Place::Send),
        Class::LateReceiver => (Place::Send, Place::Receive),
        Class::LatePost | Class::EarlyWait | Class::PthreadBarrier => (Place::Leave, Place::Leave),
        Class::Progress => (Place::Leave, Place::Begin),
        Class::Lock | Class::Join => (Place::Leave, Place::Behind),
        // The wait comes before everything in the call, such as the block of a critical construct.
        Class::ThreadLock => (Place::Begin, Place::Behind),
        _ => return None,
    })
}

/// Whether the cause of a wait only has to start a call: the send of a probed message, the receive of an exchange, a non-blocking
/// operation, or one of neighbors.
fn has_to_start(kind: Metric) -> bool {
    matches!(
        kind,
        Metric::NonblockingBarrierWait
            | Metric::NonblockingWaitNxN
            | Metric::NonblockingLateBroadcast
            | Metric::NonblockingEarlyReduce
            | Metric::NonblockingEarlyScan
            | Metric::ExchangeLateReceiver
            | Metric::NeighborWait
            | Metric::ProbeLateSender
    )
}

/// A pairwise wait.
struct PairwiseWait<'a> {
    class: Class,
    /// Where it waits, and for what.
    places: (Place, Place),
    wait: &'a WaitState,
    /// Position among all.
    state: u32,
}

impl PairwiseWait<'_> {
    /// The pair that it makes, with Enter and Leave of the causing call.
    fn pair(
        &self,
        (trace, shard): (&Trace, &Shard),
        model: CostModel,
        (cause_enter, cause_leave): (i64, i64),
    ) -> SyncPoint {
        let Self { class, places, wait, state } = *self;
        let (own, other) = ((wait.location, wait.instance), (wait.cause_location, wait.cause_instance));
        let leave = shard.leave(own.1);
        let place = match class {
            Class::ThreadLock => posix::release_place(trace, shard, other.1),
            _ => places.1,
        };
        let (completion, cause_completion) = match class {
            // Scalasca 2.6 has the comparison reversed: the completion of the waiting side is zero or even negative.
            Class::LateReceiver if model == CostModel::Scalasca => {
                ((leave - cause_leave).min(0), (cause_leave - leave).max(0))
            }
            Class::Progress => ((leave - cause_enter).max(0), cause_leave - cause_enter),
            Class::Join => ((leave - shard.enter(own.1) - wait.waiting).max(0), 0),
            _ if has_to_start(wait.kind) => ((leave - cause_enter).max(0), cause_leave - cause_enter),
            _ => ((leave - cause_leave).max(0), (cause_leave - leave).max(0)),
        };
        let (relation, end) = match class {
            Class::Lock => (Relation::Contention, cause_leave),
            Class::ThreadLock => (Relation::Ownership, shard.enter(own.1) + wait.waiting),
            Class::Join => (Relation::ThreadPair, shard.enter(own.1) + wait.waiting),
            Class::PthreadBarrier => (Relation::ThreadGroup, shard.enter(own.1) + wait.waiting),
            _ => (Relation::Pair, cause_enter),
        };
        SyncPoint {
            class,
            relation,
            comm: CommId::NONE,
            waiter: Anchor::new(own, places.0),
            cause: Anchor::new(other, place),
            waiting: wait.waiting,
            held: end.min(leave) - shard.enter(own.1),
            completion,
            cause_completion,
            state,
        }
    }
}

fn record(
    trace: &Trace,
    shard: &Shard,
    class: Class,
    states: &mut States,
    collective_sync: &CollectiveSync,
    sync_points: &mut SyncPoints,
) {
    let place = match collective_sync.kind {
        Metric::BarrierWait
        | Metric::WaitNxN
        | Metric::AlltoallvWait
        | Metric::LateBroadcast
        | Metric::EarlyReduce
        | Metric::EarlyScan
        | Metric::TreeWait => Place::Collective,
        _ => Place::Leave,
    };
    let anchor = Anchor::new(collective_sync.call, place);
    let total = shard.leave(collective_sync.call.1) - shard.enter(collective_sync.call.1);
    let everybody =
        |comm: CommId| comm.is_none() || trace.definitions.comms[comm].size == trace.definitions.processes.len();
    let scope = match collective_sync.with {
        Participants::All if everybody(collective_sync.comm) => SyncScope::Everybody,
        Participants::All => SyncScope::Members { comm: collective_sync.comm },
        Participants::Set(set) => SyncScope::Some { comm: collective_sync.comm, set },
        Participants::Cause => SyncScope::Nobody,
    };
    if scope != SyncScope::Nobody {
        let CollectiveSync { waiting, completion, .. } = *collective_sync;
        sync_points.group_syncs.push(GroupSync { anchor, class, scope, waiting, total, completion });
    }
    let charged =
        class != Class::Library && collective_sync.cause.1.is_some() && collective_sync.cause != collective_sync.call;
    if charged && (collective_sync.waiting > 0 || scope == SyncScope::Nobody) {
        sync_points.pairs.push(SyncPoint {
            class,
            relation: if scope == SyncScope::Nobody { Relation::Pair } else { Relation::Group },
            comm: collective_sync.comm,
            waiter: anchor,
            cause: Anchor::new(collective_sync.cause, place),
            waiting: collective_sync.waiting,
            held: collective_sync.waiting,
            completion: collective_sync.completion,
            cause_completion: collective_sync.cause_completion,
            state: states.find(collective_sync.kind, collective_sync.call.1),
        });
    }
}
