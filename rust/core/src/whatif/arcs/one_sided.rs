//! Arcs of one-sided communication (whatif.md#how-it-works): collective calls on windows, post-start-complete-wait,
//! locks, progress.
//!
//! If a library may block in one of several calls, the measured waits decide: the call that waited in this epoch, or
//! that waited most often on this window; otherwise the last call of an access epoch or the first of a lock epoch. Lock
//! epochs keep their measured order.

use bitcode::{Decode, Encode};
use rustc_hash::{FxHashMap, FxHashSet};

use super::collectives::{Call, all, barrier};
use super::waited::own_waits;
use crate::Result;
use crate::analysis::Analysis;
use crate::ids::{InstanceId, LocationId, ProcessId, WindowId};
use crate::matching::active_targets::exposures;
use crate::matching::epochs::{Change, Epoch, Epochs, accessed};
use crate::matching::notifications::matched;
use crate::matching::ownership::{HandOver, hand_overs, operations};
use crate::matching::signals::writes;
use crate::matching::windows::{Direction, always_synchronizes, match_all};
use crate::parallel::exchange::{Inbox, Outbox};
use crate::parallel::iter::prelude::*;
use crate::severity::Metric;
use crate::trace::{Shard, Trace};
use crate::waits::rma::activities::LibraryCalls;
use crate::whatif::assumptions::{Assumption, Assumptions};
use crate::whatif::graph::builder::{Builder, MEASURED, OWN, Raw, enter, leave};
use crate::whatif::graph::network::{Network, all_equal};
use crate::whatif::model::Model;

/// What the members of a collective call on a window need to know about it.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Encode, Decode)]
struct Instance {
    /// Location and region instance of the first member, which identify the call.
    key: (LocationId, InstanceId),
    /// Whether they synchronized.
    met: bool,
    /// Whether all members were in the call at the same time.
    overlap: bool,
}

/// What synchronizations cost on a given network, if there is one: they travel as empty messages.
#[derive(Clone, Copy)]
struct Costs<'a>(Option<(&'a Network, &'a [u32])>);

impl Costs<'_> {
    /// The cost of one between two processes.
    fn between(self, a: ProcessId, b: ProcessId) -> i64 {
        let node = |nodes: &[u32], process: ProcessId| nodes.get(process.index()).copied();
        self.0.map_or(MEASURED, |(network, nodes)| network.transfer(0, node(nodes, a) == node(nodes, b)))
    }
}

/// Finds the arcs of one-sided communication. Collective.
pub(in crate::whatif) fn collect(
    analysis: &Analysis,
    model: &Model,
    network: Option<(&Network, &[u32])>,
    builder: &mut Builder,
    assumptions: &mut Assumptions,
) -> Result<()> {
    let (trace, epochs) = (&analysis.trace, &analysis.epochs[..]);
    if !trace.exchange.any(!epochs.is_empty())? {
        return Ok(());
    }
    let costs = Costs(network);
    collectives(trace, epochs, network, builder)?;
    gats(trace, epochs, &late_posts(analysis), costs, builder)?;
    complete_progress(trace, epochs, model, costs, builder)?;
    locks(trace, epochs, costs, builder, assumptions)?;
    notifications(trace, epochs, costs, builder)?;
    signals(trace, epochs, costs, builder)?;
    progress(analysis, model, costs, builder)?;
    if let Some((network, nodes)) = network {
        data(trace, epochs, network, nodes, builder);
    }
    Ok(())
}

/// A call that made progress, the number of the call that waited for it, and the process of that.
type Progress = ((LocationId, InstanceId), u32, ProcessId);

/// Calls that waited for progress wait for the call that made it.
fn progress(analysis: &Analysis, model: &Model, costs: Costs<'_>, builder: &mut Builder) -> Result<()> {
    let trace = &analysis.trace;
    let mut outgoing: Vec<Outbox<Progress>> = trace.shards.iter().map(|_| trace.exchange.outbox()).collect();
    for wait in own_waits(analysis) {
        let is_one = matches!(
            wait.kind,
            Metric::ProgressSync
                | Metric::ProgressComm
                | Metric::ShmemProgressSync
                | Metric::ShmemProgressComm
                | Metric::ArmciProgressSync
                | Metric::ArmciProgressComm
                | Metric::PgasProgressSync
                | Metric::PgasProgressComm
        );
        if is_one && wait.cause_instance.is_some() {
            let target = builder.instance(trace, (wait.location, wait.instance));
            let process = trace.definitions.locations[wait.location].process;
            let cause = (wait.cause_location, wait.cause_instance);
            outgoing[trace.position(wait.location)].push(trace.shard_of[cause.0], (cause, target, process));
        }
    }
    for &(cause, target, process) in trace.exchange.alltoallv(outgoing)?.iter().flat_map(Inbox::rows) {
        let source = enter(builder.instance(trace, cause));
        let raw = Raw::new(target, source, trace.shard(cause.0).enter(cause.1));
        let cost = costs.between(trace.definitions.locations[cause.0].process, process);
        builder.raws.push(Raw { cost, kept: !model.asynchronous_progress, ..raw });
    }
    Ok(())
}

/// On a given network, the data of an operation have arrived at the Leave of the call that completes it
/// (whatif.md#networks).
fn data(trace: &Trace, epochs: &[Epochs], network: &Network, nodes: &[u32], builder: &mut Builder) {
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
            let call = builder.first_of(number);
            let source = if ends == operation.instance { OWN } else { enter(call + operation.instance.number()) };
            builder.raws.push(Raw { source, ..Raw::own(call + ends.number(), cost) });
        }
    }
}

/// Calls in which waits for posts were found, by location and instance.
type LatePosts = FxHashSet<(LocationId, InstanceId)>;

fn late_posts(analysis: &Analysis) -> LatePosts {
    let late = own_waits(analysis).filter(|wait| matches!(wait.kind, Metric::LatePostSync | Metric::LatePostComm));
    late.map(|wait| (wait.location, wait.instance)).collect()
}

/// Fences and the like: barriers, if they always synchronize or all were in the call at the same time; another fence waits
/// for the fences of those who accessed its process in the epoch that it ends.
fn collectives(
    trace: &Trace,
    epochs: &[Epochs],
    network: Option<(&Network, &[u32])>,
    builder: &mut Builder,
) -> Result<()> {
    let costs = Costs(network);
    let (instances, _) = match_all(trace, epochs, |parts| {
        let latest = parts.iter().map(|part| part.enter).max().unwrap_or(i64::MIN);
        let first = parts.iter().map(|part| part.leave).min().unwrap_or(i64::MAX);
        let (library, operation, root) = (parts[0].library, parts[0].operation, parts[0].root);
        let is_rooted = Direction::of(library, operation, root) != Direction::Everybody;
        let (several, overlap) = (parts.len() > 1, latest < first);
        let met = several && (overlap || is_rooted || always_synchronizes(library, operation, root));
        Instance { key: (parts[0].location, parts[0].begin), met, overlap }
    })?;
    // Fences that did not synchronize, by process, window and number.
    let mut loose: FxHashMap<(ProcessId, WindowId, u32), u32> = FxHashMap::default();
    let mut outgoing = Vec::with_capacity(trace.shards.len());
    for (number, ((shard, epochs), instances)) in trace.shards.iter().zip(epochs).zip(&instances).enumerate() {
        let mut outbox = trace.exchange.outbox();
        for (part, instance) in epochs.collectives.iter().zip(instances) {
            let Some(instance) = instance else { continue };
            let first_of = builder.first_of(number);
            let number = first_of + part.instance.number();
            if instance.met {
                let (location, first) = instance.key;
                let owner = trace.exchange.evaluator(location.number(), first.number());
                let source = first_of + part.begin.number();
                let (enter, leave) = (shard.enter(part.begin), shard.leave(part.instance));
                let is_root = part.process == part.root;
                let (gives, takes) = match Direction::of(part.library, part.operation, part.root) {
                    Direction::Everybody => (true, true),
                    Direction::FromRoot => (is_root, !is_root),
                    Direction::ToRoot => (true, is_root || instance.overlap),
                };
                let call = Call { number, source, enter, leave };
                outbox.push(owner, (instance.key, call, (gives, takes), part.process));
            } else if part.is_fence() {
                loose.insert((part.process, part.window, part.sequence), number);
            }
        }
        outgoing.push(outbox);
    }
    for inbox in trace.exchange.alltoallv(outgoing)? {
        let mut parts = inbox.into_vec();
        parts.sort_unstable_by_key(|&(key, call, ..)| (key, call.number));
        for of in parts.chunk_by(|a, b| a.0 == b.0) {
            let cost = network.map(|(network, nodes)| {
                let processes = of.iter().map(|&(.., process)| nodes.get(process.index()));
                network.barrier(of.len(), all_equal(processes))
            });
            if of.iter().all(|&(_, _, (gives, takes), _)| gives && takes) {
                let calls: Vec<Call> = of.iter().map(|&(_, call, ..)| call).collect();
                barrier(&calls, cost, builder);
            } else {
                let giving = of.iter().filter(|(_, _, (gives, _), _)| *gives).map(|(_, call, ..)| call);
                let taking = of.iter().filter(|(_, _, (_, takes), _)| *takes).map(|(_, call, ..)| call);
                all(giving, taking).add(builder);
            }
        }
    }
    if trace.exchange.any(!loose.is_empty())? { accesses(trace, epochs, &loose, costs, builder) } else { Ok(()) }
}

/// The arcs of fences that not all were in at the same time, given by process, window and number.
fn accesses(
    trace: &Trace,
    epochs: &[Epochs],
    loose: &FxHashMap<(ProcessId, WindowId, u32), u32>,
    costs: Costs<'_>,
    builder: &mut Builder,
) -> Result<()> {
    let post = |((i, shard), epochs): ((usize, &Shard), &Epochs)| {
        let mut outbox = trace.exchange.outbox();
        let mut targets: Vec<ProcessId> = Vec::new();
        for (position, part) in epochs.collectives.iter().enumerate().filter(|(_, part)| part.is_fence()) {
            accessed(shard, epochs.of_collective.of(position), &mut targets);
            let call = builder.first_of(i) + part.instance.number();
            for &target in targets.iter().filter(|target| **target != part.process) {
                let fence = (target, part.window, part.sequence);
                outbox.push(trace.owner(target), (fence, call, shard.enter(part.instance), part.process));
            }
        }
        outbox
    };
    let accesses = trace.exchange.alltoallv(trace.par_shards().enumerate().zip(epochs).map(post).collect())?;
    for &(fence, closing, time, origin) in accesses.iter().flat_map(Inbox::rows) {
        if let Some(&call) = loose.get(&fence) {
            let cost = costs.between(origin, fence.0);
            builder.raws.push(Raw { cost, ..Raw::new(call, enter(closing), time) });
        }
    }
    Ok(())
}

/// The calls of an access epoch that may wait for a post: start, operations, complete.
#[derive(Clone, Copy, PartialEq, Eq)]
enum BlockingCall {
    Start,
    Operation,
    Complete,
}

fn gats(trace: &Trace, epochs: &[Epochs], late: &LatePosts, costs: Costs<'_>, builder: &mut Builder) -> Result<()> {
    let exposures = exposures(trace, epochs)?;
    let usual = usual_places(trace, epochs, late)?;
    for (number, ((shard, epochs), exposures)) in trace.shards.iter().zip(epochs).zip(&exposures).enumerate() {
        for (position, access) in epochs.accesses.iter().enumerate() {
            let rows = epochs.of_access.of(position);
            let own = place(shard, epochs, position, late);
            let usual = usual.get(&access.window).copied().unwrap_or(BlockingCall::Complete);
            let call = |instance: InstanceId| builder.first_of(number) + instance.number();
            let mut arcs = Vec::new();
            let exposures = exposures.of(position).iter().flatten();
            for exposure in exposures.filter(|_| access.complete.is_some()) {
                let (target, posted) = (exposure.target, exposure.enter);
                let cost = costs.between(access.process, target);
                let there = |instance: InstanceId| builder.instance(trace, (exposure.post.0, instance));
                if exposure.wait.is_some() {
                    let completed = shard.enter(access.complete);
                    let raw = Raw::new(there(exposure.wait), enter(call(access.complete)), completed);
                    arcs.push(Raw { cost, ..raw });
                }
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
                    arcs.push(Raw { cost, ..Raw::new(call(instance), enter(there(exposure.post.1)), posted) });
                }
            }
            builder.raws.extend(arcs);
        }
    }
    Ok(())
}

/// A call that waits for a notification waits for the call that sends it.
fn notifications(trace: &Trace, epochs: &[Epochs], costs: Costs<'_>, builder: &mut Builder) -> Result<()> {
    for (i, (sent, epochs)) in matched(trace, epochs)?.into_iter().zip(epochs).enumerate() {
        for (row, sent) in epochs.notifications.iter().zip(sent) {
            let Some(sent) = sent.filter(|sent| sent.from != row.process) else { continue };
            let target = builder.first_of(i) + row.instance.number();
            let source = enter(builder.instance(trace, sent.call));
            let cost = costs.between(sent.from, row.process);
            builder.raws.push(Raw { cost, ..Raw::new(target, source, sent.enter) });
        }
    }
    Ok(())
}

/// A call that waits until memory changes waits for a write. The trace does not record which one: it is the last one of
/// each process that began after the previous call of this kind was left, and before this one is left.
fn signals(trace: &Trace, epochs: &[Epochs], costs: Costs<'_>, builder: &mut Builder) -> Result<()> {
    let mut last: FxHashMap<ProcessId, (i64, u32)> = FxHashMap::default();
    let writes = writes(trace, epochs)?;
    for (number, ((shard, epochs), writes)) in trace.shards.iter().zip(epochs).zip(&writes).enumerate() {
        let mut changes: Vec<&Change> = epochs.changes.iter().collect();
        changes.sort_by_key(|change| (change.process, shard.enter(change.instance)));
        for of_process in changes.chunk_by(|a, b| a.process == b.process) {
            let mut since = i64::MIN;
            for change in of_process {
                let leave = shard.leave(change.instance);
                last.clear();
                let within = writes.within(change.process, since, leave);
                last.extend(within.map(|write| (write.origin, (write.enter, builder.instance(trace, write.call)))));
                let target = builder.first_of(number) + change.instance.number();
                let arc = |(&origin, &(time, call)): (&ProcessId, &(i64, u32))| Raw {
                    cost: costs.between(origin, change.process),
                    ..Raw::new(target, enter(call), time)
                };
                builder.raws.extend(last.iter().map(arc));
                since = since.max(leave);
            }
        }
    }
    Ok(())
}

/// Target, begin and end of a call, its process, and its number.
type Served = (ProcessId, i64, i64, ProcessId, u32);

/// `MPI_Win_complete` moves data, for which many libraries need the target: it waits for the target's next call if
/// that begins within it.
fn complete_progress(
    trace: &Trace,
    epochs: &[Epochs],
    model: &Model,
    costs: Costs<'_>,
    builder: &mut Builder,
) -> Result<()> {
    let post = |((i, shard), epochs): ((usize, &Shard), &Epochs)| {
        let mut outbox = trace.exchange.outbox();
        let mut targets = Vec::new();
        for (position, access) in epochs.accesses.iter().enumerate().filter(|(_, access)| access.complete.is_some()) {
            let call = builder.first_of(i) + access.complete.number();
            let (begin, end) = (shard.enter(access.complete), shard.leave(access.complete));
            targets.clear();
            let rows = epochs.of_access.of(position).iter();
            targets.extend(rows.map(|&row| shard.operations.rows[row as usize].target));
            targets.sort_unstable();
            targets.dedup();
            for &target in targets.iter().filter(|&&target| target != access.process) {
                outbox.push(trace.owner(target), (target, begin, end, access.process, call));
            }
        }
        outbox
    };
    let asked = trace.exchange.alltoallv(trace.par_shards().enumerate().zip(epochs).map(post).collect())?;
    let answer = |(shard, asked): (&Shard, Inbox<Served>)| {
        let mut asked = asked.into_vec();
        if asked.is_empty() {
            return Vec::new();
        }
        asked.sort_unstable();
        let mut calls = LibraryCalls::new(trace, shard);
        let arc = |(target, begin, end, origin, call)| {
            let serving = calls.serving(target, begin, end)?;
            let time = shard.enter(serving.1);
            let raw = Raw::new(call, enter(builder.instance(trace, serving)), time);
            let cost = costs.between(target, origin);
            (time > begin).then_some(Raw { cost, kept: !model.asynchronous_progress, ..raw })
        };
        asked.into_iter().filter_map(arc).collect()
    };
    let arcs: Vec<Vec<Raw>> = trace.par_shards().zip(asked).map(answer).collect();
    builder.raws.extend(arcs.into_iter().flatten());
    Ok(())
}

/// Where the Late Post of an access epoch was found.
fn place(shard: &Shard, epochs: &Epochs, position: usize, late: &LatePosts) -> Option<BlockingCall> {
    let access = &epochs.accesses[position];
    let waited =
        |instance: InstanceId| instance.is_some() && late.contains(&(shard.location_of_instance(instance), instance));
    if late.is_empty() {
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

/// Sums counts by window over all processes of the analysis.
fn sums<const N: usize>(
    trace: &Trace,
    own: FxHashMap<WindowId, [usize; N]>,
) -> Result<FxHashMap<WindowId, [usize; N]>> {
    let own: Vec<(WindowId, Vec<usize>)> = own.into_iter().map(|(window, counts)| (window, counts.to_vec())).collect();
    let mut all: FxHashMap<WindowId, [usize; N]> = FxHashMap::default();
    for (window, counts) in trace.exchange.allgather(own)?.into_iter().flatten() {
        all.entry(window).or_insert([0; N]).iter_mut().zip(counts).for_each(|(sum, count)| *sum += count);
    }
    Ok(all)
}

/// Where Late Posts were found most often on each window.
fn usual_places(trace: &Trace, epochs: &[Epochs], late: &LatePosts) -> Result<FxHashMap<WindowId, BlockingCall>> {
    const PLACES: [BlockingCall; 3] = [BlockingCall::Complete, BlockingCall::Start, BlockingCall::Operation];
    let mut counts: FxHashMap<WindowId, [usize; PLACES.len()]> = FxHashMap::default();
    for (shard, epochs) in trace.shards.iter().zip(epochs) {
        for (position, access) in epochs.accesses.iter().enumerate() {
            if let Some(place) = place(shard, epochs, position, late) {
                let counts = counts.entry(access.window).or_default();
                counts.iter_mut().zip(PLACES).filter(|(_, of)| *of == place).for_each(|(count, _)| *count += 1);
            }
        }
    }
    let most = |counts: [usize; PLACES.len()]| counts.into_iter().zip(PLACES).rev().max_by_key(|(count, _)| *count);
    Ok(sums(trace, counts)?.into_iter().filter_map(|(window, counts)| Some((window, most(counts)?.1))).collect())
}

/// Kinds of calls in a lock epoch, in order of time.
const LOCK_CALLS: usize = 4;

fn locks(
    trace: &Trace,
    epochs: &[Epochs],
    costs: Costs<'_>,
    builder: &mut Builder,
    assumptions: &mut Assumptions,
) -> Result<()> {
    let (hand_overs, _) = hand_overs(trace, epochs)?;
    let mut counts: FxHashMap<WindowId, [usize; LOCK_CALLS]> = FxHashMap::default();
    for ((shard, epochs), own) in trace.shards.iter().zip(epochs).zip(&hand_overs) {
        for hand_over in own.rows() {
            let blocked = hand_over.blocked(shard, epochs);
            let is_blocked = |call: &InstanceId| blocked.is_some_and(|(blocked, _)| blocked == *call);
            if let Some(kind) = calls(shard, epochs, hand_over).iter().position(is_blocked) {
                counts.entry(epochs.locks[hand_over.epoch as usize].window).or_default()[kind] += 1;
            }
        }
    }
    let counts = sums(trace, counts)?;
    let mut late = 0;
    for (number, ((shard, epochs), own)) in trace.shards.iter().zip(epochs).zip(&hand_overs).enumerate() {
        for hand_over in own.rows() {
            let epoch = &epochs.locks[hand_over.epoch as usize];
            let calls = calls(shard, epochs, hand_over);
            let usual = counts.get(&epoch.window).map_or(0, |counts| {
                counts.iter().enumerate().rev().max_by_key(|(_, count)| **count).map_or(0, |(kind, _)| kind)
            });
            // A call that was left before the release did not wait for it.
            let later = |call: &InstanceId| call.is_some() && shard.leave(*call) >= hand_over.leave;
            let blocked = hand_over.blocked(shard, epochs).map(|(call, _)| call);
            let blocked = blocked.or(Some(calls[usual]).filter(later)).or_else(|| calls.iter().copied().find(later));
            let Some(blocked) = blocked else {
                late += 1;
                continue;
            };
            let release = builder.instance(trace, hand_over.release);
            let own = builder.first_of(number);
            let (blocked, request) = (own + blocked.number(), own + epoch.acquire.number());
            let cost = costs.between(trace.definitions.locations[hand_over.release.0].process, epoch.process);
            builder.raws.push(Raw { cost, ..Raw::new(blocked, leave(release), hand_over.leave) });
            let first = builder.instance(trace, (hand_over.release.0, hand_over.acquire));
            builder.turns.push([enter(first), enter(request), leave(release), enter(blocked)]);
        }
    }
    assumptions.count(Assumption::LockOrder, late);
    Ok(())
}

/// The calls of a lock epoch that may wait for the lock of a target: lock, first operation, its completion, unlock;
/// none if missing.
fn calls(shard: &Shard, epochs: &Epochs, hand_over: &HandOver) -> [InstanceId; LOCK_CALLS] {
    let epoch = &epochs.locks[hand_over.epoch as usize];
    if epoch.blocking {
        return [epoch.acquire, InstanceId::NONE, InstanceId::NONE, InstanceId::NONE];
    }
    let first = operations(shard, epochs, hand_over.epoch, hand_over.target).next();
    let done = first.map_or(InstanceId::NONE, |operation| {
        if operation.done_remote.is_none() { operation.done_local } else { operation.done_remote }
    });
    [epoch.acquire, first.map_or(InstanceId::NONE, |operation| operation.instance), done, epoch.release]
}
