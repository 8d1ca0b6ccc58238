//! Arcs of one-sided communication (whatif.md#how-it-works): collective calls on windows, post-start-complete-wait,
//! locks, progress.
//!
//! If a library may block in one of several calls, the measured waits decide: the call that waited in this epoch, or
//! that waited most often on this window; otherwise the last call of an access epoch or the first of a lock epoch. Lock
//! epochs keep their measured order.

use bitcode::{Decode, Encode};
use rayon::prelude::*;
use rustc_hash::{FxHashMap, FxHashSet};

use crate::Result;
use crate::analysis::Analysis;
use crate::ids::{InstanceId, LocationId, ProcessId, WindowId};
use crate::matching::epochs::{Change, Epoch, Epochs, Exposed, Notification, exposed};
use crate::matching::fifo::Fifo;
use crate::matching::windows::match_all;
use crate::severity::Metric;
use crate::trace::columns::{Operation, OperationKind};
use crate::trace::{Shard, Trace};
use crate::waits::rma::lock::{Predecessor, predecessors};
use crate::waits::rma::progress::LibraryCalls;
use crate::whatif::assumptions::{Assumption, Assumptions};
use crate::whatif::graph::builder::{Builder, MEASURED, Node, OWN, Raw, enter, leave};
use crate::whatif::graph::network::{Network, all_equal};
use crate::whatif::model::Model;

/// What the members of a collective call on a window need to know about it.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Encode, Decode)]
struct Instance {
    /// Location and region instance of the first member, which identify the call.
    key: (LocationId, InstanceId),
    /// Whether all members were in the call at the same time.
    overlap: bool,
}

/// Finds the arcs of one-sided communication.
pub(in crate::whatif) fn collect(
    analysis: &Analysis,
    model: &Model,
    network: Option<(&Network, &[u32])>,
    builder: &mut Builder,
    assumptions: &mut Assumptions,
) -> Result<()> {
    let (trace, epochs) = (&analysis.trace, &analysis.epochs[..]);
    if epochs.is_empty() {
        return Ok(());
    }
    let before = builder.raws.len();
    collectives(trace, epochs, network, builder)?;
    let found = Found::new(analysis);
    gats(trace, epochs, &found, builder);
    complete_progress(trace, epochs, model, builder);
    locks(trace, epochs, &found, builder, assumptions)?;
    notifications(trace, epochs, builder);
    signals(trace, epochs, builder);
    for wait in &analysis.waits {
        let progress = matches!(
            wait.kind,
            Metric::ProgressSync
                | Metric::ProgressComm
                | Metric::ShmemProgressSync
                | Metric::ShmemProgressComm
                | Metric::ArmciProgressSync
                | Metric::ArmciProgressComm
        );
        if progress && wait.cause_instance.is_some() {
            let cause = (wait.cause_location, wait.cause_instance);
            let target = builder.instance(trace, (wait.location, wait.instance));
            let source = enter(builder.instance(trace, cause));
            let raw = Raw::new(target, source, trace.shard(cause.0).enter(cause.1));
            builder.raws.push(Raw { kept: !model.asynchronous_progress, ..raw });
        }
    }
    if let Some((network, nodes)) = network {
        on_network(trace, epochs, network, nodes, before, builder);
    }
    Ok(())
}

/// Costs on a given network: a synchronization travels as an empty message; the data of an operation have arrived at
/// the Leave of the call that completes it (whatif.md#networks).
fn on_network(
    trace: &Trace,
    epochs: &[Epochs],
    network: &Network,
    nodes: &[u32],
    before: usize,
    builder: &mut Builder,
) {
    let mut raws = std::mem::take(&mut builder.raws);
    let process = |call: u32| {
        let (shard, instance) = builder.place(call);
        trace.definitions.locations[trace.shards[shard].location_of_instance(instance)].process
    };
    for raw in raws[before..].iter_mut().filter(|raw| raw.cost == MEASURED) {
        let is_local = builder
            .call_of(raw.source)
            .is_some_and(|source| nodes.get(process(source).index()) == nodes.get(process(raw.target).index()));
        raw.cost = network.transfer(0, is_local);
    }
    for (number, (shard, epochs)) in trace.shards.iter().zip(epochs).enumerate() {
        for (operation, epoch) in shard.operations.rows.iter().zip(&epochs.epoch_of) {
            let ends = match *epoch {
                _ if operation.done_remote.is_some() => operation.done_remote,
                _ if operation.done_local.is_some() => operation.done_local,
                Epoch::Collective(part) => epochs.collectives[part as usize].instance,
                Epoch::Access(access) => epochs.accesses[access as usize].complete,
                Epoch::Lock(lock) => epochs.locks[lock as usize].release,
                Epoch::Open => InstanceId::NONE,
            };
            if ends.is_none() {
                continue;
            }
            let of = trace.definitions.locations[shard.location_of_instance(operation.instance)].process;
            let is_local = nodes.get(of.index()) == nodes.get(operation.target.index());
            let answer = if operation.kind.is_fetching() { network.transfer(0, is_local) } else { 0 };
            let cost = network.transfer(operation.sent.max(operation.received), is_local) + answer;
            let call = |instance: InstanceId| builder.first_of(number) + instance.number();
            let source = if ends == operation.instance { OWN } else { enter(call(operation.instance)) };
            raws.push(Raw { source, ..Raw::own(call(ends), cost) });
        }
    }
    builder.raws = raws;
}

/// Calls in which waits for posts and locks were found, by location and instance.
struct Found {
    posts: FxHashSet<(LocationId, InstanceId)>,
    /// The release that was waited for.
    locks: FxHashSet<((LocationId, InstanceId), (LocationId, InstanceId))>,
}

impl Found {
    fn new(analysis: &Analysis) -> Self {
        let mut found = Self { posts: FxHashSet::default(), locks: FxHashSet::default() };
        for wait in &analysis.waits {
            let call = (wait.location, wait.instance);
            match wait.kind {
                Metric::LatePostSync | Metric::LatePostComm => {
                    found.posts.insert(call);
                }
                Metric::LockContentionSync
                | Metric::LockContentionComm
                | Metric::ShmemLockContentionSync
                | Metric::ShmemLockContentionComm
                | Metric::ArmciLockContentionSync
                | Metric::ArmciLockContentionComm => {
                    found.locks.insert((call, (wait.cause_location, wait.cause_instance)));
                }
                _ => {}
            }
        }
        found
    }
}

/// Fences and the like: barriers where all were in the call at the same time; a fence that did not synchronize waits
/// for the last operation on its process in the epoch that it ends.
fn collectives(
    trace: &Trace,
    epochs: &[Epochs],
    network: Option<(&Network, &[u32])>,
    builder: &mut Builder,
) -> Result<()> {
    let (instances, _) = match_all(trace, epochs, |parts| {
        let latest = parts.iter().map(|part| part.enter).max().unwrap_or(i64::MIN);
        let first = parts.iter().map(|part| part.leave).min().unwrap_or(i64::MAX);
        Instance { key: (parts[0].location, parts[0].instance), overlap: parts.len() > 1 && latest < first }
    })?;
    let mut calls: FxHashMap<(LocationId, InstanceId), Vec<(u32, i64)>> = FxHashMap::default();
    let mut order = Vec::new();
    // Fences that did not synchronize, by process, window and number.
    let mut loose: FxHashMap<(ProcessId, WindowId, u32), (u32, i64)> = FxHashMap::default();
    for (number, ((shard, epochs), instances)) in trace.shards.iter().zip(epochs).zip(&instances).enumerate() {
        for (part, instance) in epochs.collectives.iter().zip(instances) {
            let Some(instance) = instance else { continue };
            let call = builder.first_of(number) + part.instance.number();
            if instance.overlap {
                let of = calls.entry(instance.key).or_insert_with(|| {
                    order.push(instance.key);
                    Vec::new()
                });
                of.push((call, shard.enter(part.instance)));
            } else if part.is_fence() {
                loose.insert((part.process, part.window, part.sequence), (call, shard.leave(part.instance)));
            }
        }
    }
    for key in order {
        let of = &calls[&key];
        let mut members: Vec<(Node, i64)> = of.iter().map(|&(call, time)| (enter(call), time)).collect();
        members.sort_unstable_by_key(|&(node, time)| (time, node));
        let waiting: Vec<(u32, u32)> = of.iter().map(|&(call, _)| (call, members.len() as u32)).collect();
        let cost = network.map_or(MEASURED, |(network, nodes)| {
            let processes = of.iter().map(|&(call, _)| {
                let (shard, instance) = builder.place(call);
                let location = trace.shards[shard].location_of_instance(instance);
                nodes.get(trace.definitions.locations[location].process.index())
            });
            network.barrier(of.len(), all_equal(processes))
        });
        builder.meet(&members, &waiting, cost);
        if cost != MEASURED {
            builder.raws.extend(of.iter().map(|&(call, _)| Raw::own(call, cost)));
        }
    }
    if loose.is_empty() {
        return Ok(());
    }
    let mut last: FxHashMap<u32, (i64, u32)> = FxHashMap::default();
    for (number, (shard, epochs)) in trace.shards.iter().zip(epochs).enumerate() {
        for (position, part) in epochs.collectives.iter().enumerate().filter(|(_, part)| part.is_fence()) {
            for &row in epochs.of_collective.of(position) {
                let operation = &shard.operations.rows[row as usize];
                let Some(&(fence, end)) = loose.get(&(operation.target, part.window, part.sequence)) else { continue };
                let done = (shard.leave(operation.instance), builder.first_of(number) + operation.instance.number());
                if operation.target != part.process && done.0 <= end {
                    last.entry(fence).and_modify(|last| *last = (*last).max(done)).or_insert(done);
                }
            }
        }
    }
    let arcs = last.into_iter().map(|(fence, (time, operation))| Raw::new(fence, leave(operation), time));
    builder.raws.extend(arcs);
    Ok(())
}

/// The calls of an access epoch that may wait for a post: start, operations, complete.
#[derive(Clone, Copy, PartialEq, Eq)]
enum BlockingCall {
    Start,
    Operation,
    Complete,
}

fn gats(trace: &Trace, epochs: &[Epochs], found: &Found, builder: &mut Builder) {
    let exposed = exposed(trace, epochs);
    let mut exposed = Fifo::new(exposed.iter(), Exposed::pair);
    let usual = usual_places(trace, epochs, found);
    for (number, (shard, epochs)) in trace.shards.iter().zip(epochs).enumerate() {
        for (position, access) in epochs.accesses.iter().enumerate() {
            let rows = epochs.of_access.of(position);
            let own = place(shard, epochs, position, found);
            let usual = usual.get(&access.window).copied().unwrap_or(BlockingCall::Complete);
            let call = |instance: InstanceId| builder.first_of(number) + instance.number();
            let mut arcs = Vec::new();
            for &target in trace.definitions.group_members(access.group, &access.process) {
                let exposure = exposed.take(&(access.window, access.process, target));
                let Some(exposure) = exposure.filter(|_| access.complete.is_some()) else { continue };
                let there = |instance: InstanceId| builder.first_of(exposure.shard) + instance.number();
                if exposure.wait.is_some() {
                    let completed = shard.enter(access.complete);
                    arcs.push(Raw::new(there(exposure.wait), enter(call(access.complete)), completed));
                }
                let posted = trace.shards[exposure.shard].enter(exposure.post);
                let operations = || rows.iter().map(|&row| &shard.operations.rows[row as usize]);
                let accessed = operations().find(|operation| operation.target == target);
                let call_at = |place| match place {
                    BlockingCall::Start => Some(access.start),
                    BlockingCall::Operation => accessed.map(|operation| operation.instance),
                    BlockingCall::Complete => Some(access.complete),
                };
                let blocked = match own {
                    Some(own) => call_at(own),
                    // A call that was left before the post did not wait for it.
                    None => call_at(usual).map(|call| if shard.leave(call) < posted { access.complete } else { call }),
                };
                let also = accessed.map(|_| access.complete).filter(|_| blocked != Some(access.complete));
                for instance in blocked.into_iter().chain(also) {
                    arcs.push(Raw::new(call(instance), enter(there(exposure.post)), posted));
                }
            }
            builder.raws.extend(arcs);
        }
    }
}

/// A call that waits for a notification waits for the call that sends it, matched as in [`crate::waits::rma`]: by
/// window and pair of processes, the n-th with the n-th.
fn notifications(trace: &Trace, epochs: &[Epochs], builder: &mut Builder) {
    let rows = |incoming: bool| {
        let of_shard = move |(shard, epochs): (usize, &Epochs)| -> Vec<(usize, Notification)> {
            let rows = epochs.notifications.iter().filter(|row| row.is_incoming == incoming);
            rows.map(|&row| (shard, row)).collect()
        };
        epochs.iter().enumerate().flat_map(of_shard)
    };
    let sent: Vec<(usize, Notification)> = rows(false).collect();
    let mut sent = Fifo::new(sent.iter(), |(_, row)| (row.window, row.process, row.partner));
    for (shard, row) in rows(true).filter(|(_, row)| row.partner != row.process) {
        if let Some((from, sent)) = sent.take(&(row.window, row.partner, row.process)) {
            let source = enter(builder.first_of(*from) + sent.instance.number());
            let target = builder.first_of(shard) + row.instance.number();
            builder.raws.push(Raw::new(target, source, trace.shards[*from].enter(sent.instance)));
        }
    }
}

/// A call that waits until memory changes waits for a write. The trace does not record which one: it is the last one of
/// each process that began after the previous call of this kind was left, and before this one is left.
fn signals(trace: &Trace, epochs: &[Epochs], builder: &mut Builder) {
    if epochs.iter().all(|epochs| epochs.changes.is_empty()) {
        return;
    }
    // By target and time, then origin: the call.
    let of_shard = |(number, shard): (usize, &Shard)| -> Vec<(ProcessId, i64, ProcessId, u32)> {
        let writes = shard.operations.rows.iter().filter(|operation| operation.kind != OperationKind::Get);
        let write = |operation: &Operation| {
            let origin = trace.definitions.locations[shard.location_of_instance(operation.instance)].process;
            let call = builder.first_of(number) + operation.instance.number();
            (operation.target, shard.enter(operation.instance), origin, call)
        };
        writes.map(write).filter(|&(target, _, origin, _)| target != origin).collect()
    };
    let mut writes: Vec<_> = trace.par_shards().enumerate().flat_map_iter(of_shard).collect();
    writes.par_sort_unstable();
    let mut last: FxHashMap<ProcessId, (i64, u32)> = FxHashMap::default();
    for (number, (shard, epochs)) in trace.shards.iter().zip(epochs).enumerate() {
        let mut changes: Vec<&Change> = epochs.changes.iter().collect();
        changes.sort_by_key(|change| (change.process, shard.enter(change.instance)));
        for of_process in changes.chunk_by(|a, b| a.process == b.process) {
            let mut since = i64::MIN;
            for change in of_process {
                let (process, leave) = (change.process, shard.leave(change.instance));
                let from = writes.partition_point(|write| (write.0, write.1) <= (process, since));
                let within = writes[from..].iter().take_while(|write| write.0 == process && write.1 <= leave);
                last.clear();
                last.extend(within.map(|&(_, enter, origin, call)| (origin, (enter, call))));
                let target = builder.first_of(number) + change.instance.number();
                builder.raws.extend(last.values().map(|&(time, call)| Raw::new(target, enter(call), time)));
                since = since.max(leave);
            }
        }
    }
}

/// `MPI_Win_complete` moves data, for which many libraries need the target: it waits for the target's next call if
/// that begins within it.
fn complete_progress(trace: &Trace, epochs: &[Epochs], model: &Model, builder: &mut Builder) {
    let mut calls: Vec<LibraryCalls> = trace.shards.iter().map(|shard| LibraryCalls::new(trace, shard)).collect();
    let mut targets = Vec::new();
    for (number, (shard, epochs)) in trace.shards.iter().zip(epochs).enumerate() {
        for (position, access) in epochs.accesses.iter().enumerate().filter(|(_, access)| access.complete.is_some()) {
            let (begin, end) = (shard.enter(access.complete), shard.leave(access.complete));
            targets.clear();
            let rows = epochs.of_access.of(position).iter();
            targets.extend(rows.map(|&row| shard.operations.rows[row as usize].target));
            targets.sort_unstable();
            targets.dedup();
            for &target in targets.iter().filter(|&&target| target != access.process) {
                let calls = &mut calls[trace.position(trace.definitions.master(target))];
                let Some(serving) = calls.serving(target, begin, end) else { continue };
                let time = trace.shard(serving.0).enter(serving.1);
                if time > begin {
                    let source = enter(builder.instance(trace, serving));
                    let raw = Raw::new(builder.first_of(number) + access.complete.number(), source, time);
                    builder.raws.push(Raw { kept: !model.asynchronous_progress, ..raw });
                }
            }
        }
    }
}

/// Where the Late Post of an access epoch was found.
fn place(shard: &Shard, epochs: &Epochs, position: usize, found: &Found) -> Option<BlockingCall> {
    let access = &epochs.accesses[position];
    let waited = |instance: InstanceId| {
        instance.is_some() && found.posts.contains(&(shard.location_of_instance(instance), instance))
    };
    if found.posts.is_empty() {
        return None;
    }
    if waited(access.complete) {
        Some(BlockingCall::Complete)
    } else if waited(access.start) {
        Some(BlockingCall::Start)
    } else {
        let rows = epochs.of_access.of(position).iter();
        let mut operations = rows.map(|&row| shard.operations.rows[row as usize].instance);
        operations.any(waited).then_some(BlockingCall::Operation)
    }
}

/// Where Late Posts were found most often on each window.
fn usual_places(trace: &Trace, epochs: &[Epochs], found: &Found) -> FxHashMap<WindowId, BlockingCall> {
    let mut counts: FxHashMap<WindowId, [(usize, BlockingCall); 3]> = FxHashMap::default();
    for (shard, epochs) in trace.shards.iter().zip(epochs) {
        for (position, access) in epochs.accesses.iter().enumerate() {
            if let Some(place) = place(shard, epochs, position, found) {
                let none = [(0, BlockingCall::Complete), (0, BlockingCall::Start), (0, BlockingCall::Operation)];
                let counts = counts.entry(access.window).or_insert(none);
                counts.iter_mut().filter(|(_, of)| *of == place).for_each(|(count, _)| *count += 1);
            }
        }
    }
    let most = |counts: [(usize, BlockingCall); 3]| counts.into_iter().rev().max_by_key(|(count, _)| *count);
    counts.into_iter().filter_map(|(window, counts)| Some((window, most(counts)?.1))).collect()
}

/// Kinds of calls in a lock epoch, in order of time.
const LOCK_CALLS: usize = 4;

fn locks(
    trace: &Trace,
    epochs: &[Epochs],
    found: &Found,
    builder: &mut Builder,
    assumptions: &mut Assumptions,
) -> Result<()> {
    let (before, _) = predecessors(trace, epochs)?;
    let mut counts: FxHashMap<WindowId, [usize; LOCK_CALLS]> = FxHashMap::default();
    for ((shard, epochs), before) in trace.shards.iter().zip(epochs).zip(&before) {
        for before in before.rows() {
            if let Some(kind) = calls(shard, epochs, before).iter().position(|call| waited(shard, *call, before, found))
            {
                counts.entry(epochs.locks[before.epoch as usize].window).or_default()[kind] += 1;
            }
        }
    }
    let acquired: FxHashMap<(LocationId, InstanceId), InstanceId> =
        epochs.iter().flat_map(|of| &of.locks).map(|epoch| ((epoch.location, epoch.release), epoch.acquire)).collect();
    let mut late = 0;
    for (number, ((shard, epochs), before)) in trace.shards.iter().zip(epochs).zip(&before).enumerate() {
        for before in before.rows() {
            let epoch = &epochs.locks[before.epoch as usize];
            if epoch.tried {
                continue;
            }
            let calls = calls(shard, epochs, before);
            let usual = counts.get(&epoch.window).map_or(0, |counts| {
                counts.iter().enumerate().rev().max_by_key(|(_, count)| **count).map_or(0, |(kind, _)| kind)
            });
            let own = calls.iter().copied().find(|&call| waited(shard, call, before, found));
            // A call that was left before the release did not wait for it.
            let later = |call: &InstanceId| call.is_some() && shard.leave(*call) >= before.leave;
            let blocked = own.or(Some(calls[usual]).filter(later)).or_else(|| calls.iter().copied().find(later));
            let Some(blocked) = blocked else {
                late += 1;
                continue;
            };
            let release = builder.instance(trace, before.release);
            let own = builder.first_of(number);
            let (blocked, request) = (own + blocked.number(), own + epoch.acquire.number());
            builder.raws.push(Raw::new(blocked, leave(release), before.leave));
            if let Some(&first) = acquired.get(&before.release) {
                let first = builder.instance(trace, (before.release.0, first));
                builder.turns.push([enter(first), enter(request), leave(release), enter(blocked)]);
            }
        }
    }
    assumptions.count(Assumption::LockOrder, late);
    Ok(())
}

/// The calls of a lock epoch that may wait for the lock of a target: lock, first operation, its completion, unlock;
/// none if missing.
fn calls(shard: &Shard, epochs: &Epochs, before: &Predecessor) -> [InstanceId; LOCK_CALLS] {
    let epoch = &epochs.locks[before.epoch as usize];
    if epoch.blocking {
        return [epoch.acquire, InstanceId::NONE, InstanceId::NONE, InstanceId::NONE];
    }
    let rows = epochs.of_lock.of(before.epoch as usize).iter();
    let mut operations =
        rows.map(|&row| &shard.operations.rows[row as usize]).filter(|operation| operation.target == before.target);
    let first = operations.next();
    let done = first.map_or(InstanceId::NONE, |operation| {
        if operation.done_remote.is_none() { operation.done_local } else { operation.done_remote }
    });
    [epoch.acquire, first.map_or(InstanceId::NONE, |operation| operation.instance), done, epoch.release]
}

fn waited(shard: &Shard, call: InstanceId, before: &Predecessor, found: &Found) -> bool {
    call.is_some()
        && !found.locks.is_empty()
        && found.locks.contains(&((shard.location_of_instance(call), call), before.release))
}
