//! Arcs of collective operations (whatif.md#how-it-works): the members that the Leave of a member waits for, by the
//! flow of data.
//!
//! Times are Enter and Leave of the calls. Some members keep their measured length, because the trace does not tell
//! whether they wait: the root of a broadcast, members that only send to a root, `MPI_Init`.

use std::collections::BTreeMap;

use bitcode::{Decode, Encode};

use crate::ids::{CallPathId, CommId, InstanceId, LocationId, RegionKey};
use crate::matching::collectives::{self, Kind, Member, With, match_all};
use crate::matching::flow::{Flow, Needs};
use crate::matching::nonblocking::{Started, of_process};
use crate::matching::trees::{Part, inner_waits};
use crate::matching::unrecorded;
use crate::parallel::exchange::Inbox;
use crate::parallel::iter::prelude::*;
use crate::trace::columns::{CREATE_HANDLE, FILE_HANDLE, Nonblocking};
use crate::trace::topologies::Topology;
use crate::trace::{RegionClass, Shard, Trace};
use crate::whatif::assumptions::{Assumption, Assumptions};
use crate::whatif::changes::cut::Cut;
use crate::whatif::graph::builder::{Builder, MEASURED, Node, Raw, enter};
use crate::whatif::graph::network::{self, Network, all_equal};
use crate::{Error, Result};

/// The contribution of one operation.
pub(in crate::whatif) struct Operation {
    /// Ordered members with the times of their Enters.
    members: Vec<(Node, i64)>,
    /// Instances that wait, and the number of members that each waits for.
    waiting: Vec<(u32, u32)>,
    /// Instances that, due to clock errors, were left before other members arrived, and the number of these last
    /// members.
    late: Vec<(u32, u32)>,
    /// Additional arcs to these instances.
    arcs: Vec<Raw>,
    /// Its cost on a given network.
    cost: i64,
}

impl Operation {
    /// An operation in which some calls wait for all members; both are ordered by Enter.
    fn all_for<'a>(members: Vec<(Node, i64)>, calls: impl Iterator<Item = &'a Call>) -> Self {
        let (mut waiting, mut late) = (Vec::new(), Vec::new());
        for call in calls {
            let come = members.partition_point(|&(_, enter)| enter <= call.leave);
            waiting.extend((come > 0).then_some((call.number, come as u32)));
            late.extend((come < members.len()).then_some((call.number, (members.len() - come) as u32)));
        }
        waiting.sort_unstable_by_key(|&(_, count)| count);
        late.sort_unstable_by_key(|&(_, count)| count);
        Self { members, waiting, late, arcs: Vec::new(), cost: MEASURED }
    }

    /// An operation with some arcs.
    fn of_arcs(arcs: Vec<Raw>) -> Self {
        Self { members: Vec::new(), waiting: Vec::new(), late: Vec::new(), arcs, cost: MEASURED }
    }

    /// Adds its arcs.
    pub(in crate::whatif) fn add(mut self, builder: &mut Builder) {
        builder.meet(&self.members, &self.waiting, self.cost);
        if !self.late.is_empty() {
            self.members.reverse();
            builder.meet_late(&self.members, &self.late);
        }
        builder.raws.extend(self.arcs);
    }
}

/// The contributions of one owner's operations.
#[derive(Default)]
struct Found {
    operations: Vec<Operation>,
    undecided: u64,
    gone: Vec<u32>,
}

/// The operation on a given network: every member leaves a fixed time after the last Enter that it needs.
pub(in crate::whatif) fn on_network(
    mut operation: Operation,
    network: &Network,
    nodes: &[u32],
    trace: &Trace,
    members: &[Member],
    calls: &[Call],
) -> Operation {
    let others = || members.iter().filter(|member| member.rank != member.root);
    let node = |member: &Member| nodes.get(trace.definitions.locations[member.location].process.index());
    operation.cost = network.collective(&network::Operation {
        kind: members[0].operation,
        size: members.len(),
        is_local: all_equal(members.iter().map(node)),
        sent: others().map(|member| member.sent).max().unwrap_or(0),
        received: others().map(|member| member.received).max().unwrap_or(0),
        received_by_last: members[members.len() - 1].received,
    });
    operation.arcs.iter_mut().for_each(|arc| arc.cost = operation.cost);
    // A simulated network has no clock errors.
    let late = std::mem::take(&mut operation.late);
    operation.waiting.retain(|(call, _)| !late.iter().any(|(other, _)| other == call));
    operation.waiting.extend(late.iter().map(|&(call, _)| (call, operation.members.len() as u32)));
    // A non-blocking operation takes its time from the call that starts it.
    let blocking = calls.iter().filter(|call| call.source == call.number);
    operation.arcs.extend(blocking.map(|call| Raw::own(call.number, operation.cost)));
    operation
}

/// Whether all members are in their calls at the same time.
fn overlapping(calls: &[Call]) -> bool {
    let latest = calls.iter().map(|call| call.enter).max();
    latest < calls.iter().map(|call| call.leave).min()
}

/// A call without a record.
#[derive(Clone, Copy, Encode, Decode)]
struct Unrecorded {
    region: RegionKey,
    location: LocationId,
    instance: InstanceId,
    enter: i64,
    leave: i64,
}

/// Calls that synchronize but have no record: the n-th calls of a region are one operation if all processes have the
/// same number of them and are in it at the same time. Returns the number of calls for which this does not hold, and
/// the time in them, ticks.
fn without_record(
    trace: &Trace,
    cut: &Cut,
    network: Option<(&Network, &[u32])>,
    builder: &mut Builder,
    gone: &mut Vec<u32>,
) -> Result<(u64, i64)> {
    let of_shard = |shard: &Shard| -> Vec<Vec<Unrecorded>> {
        let row = |call: unrecorded::Unrecorded| Unrecorded {
            region: call.region,
            location: call.location,
            instance: call.instance,
            enter: shard.enter(call.instance),
            leave: shard.leave(call.instance),
        };
        // `match_all` finds those of neighbors.
        let is_creation = |call: &unrecorded::Unrecorded| trace.regions.class(call.region) == RegionClass::Create;
        let rows = |calls: Vec<unrecorded::Unrecorded>| calls.into_iter().filter(is_creation).map(row).collect();
        unrecorded::of_shard(trace, shard).into_iter().map(rows).collect()
    };
    let own: Vec<Vec<Unrecorded>> = trace.par_shards().flat_map(of_shard).collect();
    let mut alone = (0, 0);
    let mut processes = 0;
    // Calls of each region, by process in turn. There are few, so the first process of the analysis takes them all.
    let mut regions: BTreeMap<RegionKey, Vec<Vec<Unrecorded>>> = BTreeMap::new();
    for calls in trace.exchange.gatherv(own)? {
        for call in calls {
            let of = regions.entry(call.region).or_default();
            of.resize(processes + 1, Vec::new());
            of[processes].push(call);
        }
        processes += 1;
    }
    let mut wait_for_nobody = |call: Unrecorded| alone = (alone.0 + 1, alone.1 + (call.leave - call.enter));
    for of in regions.into_values() {
        if processes < 2 {
            continue;
        }
        if of.len() != processes || of.iter().any(|calls| calls.len() != of[0].len()) {
            of.into_iter().flatten().for_each(&mut wait_for_nobody);
            continue;
        }
        for n in 0..of[0].len() {
            let members: Vec<Unrecorded> = of.iter().map(|calls| calls[n]).collect();
            let number = |call: &Unrecorded| builder.instance(trace, (call.location, call.instance));
            let call = |call: &Unrecorded| Call {
                number: number(call),
                source: number(call),
                enter: call.enter,
                leave: call.leave,
            };
            let calls: Vec<Call> = members.iter().map(call).collect();
            if !overlapping(&calls) {
                members.into_iter().for_each(&mut wait_for_nobody);
                continue;
            }
            if calls.iter().any(|call| cut.has_call(call.number)) {
                gone.extend(calls.iter().map(|call| call.number));
            }
            let cost = network.map(|(network, nodes)| {
                let process = |call: &Unrecorded| trace.definitions.locations[call.location].process;
                let is_local = all_equal(members.iter().map(|call| nodes.get(process(call).index())));
                network.barrier(calls.len(), is_local)
            });
            barrier(&calls, cost, builder);
        }
    }
    Ok(alone)
}

/// Number of non-blocking operations that were started without a record, and the time in calls that complete nothing
/// known, ticks.
fn unrecorded_nonblocking(trace: &Trace) -> Result<(u64, i64)> {
    let class = |callpath: CallPathId| trace.regions.class(trace.tree.region(callpath));
    let is_wait = |class: RegionClass| matches!(class, RegionClass::Wait | RegionClass::WaitMany);
    let (mut started, mut waiting) = (0, 0);
    for shard in &trace.shards {
        for cell in &shard.profile.rows {
            match class(cell.callpath) {
                RegionClass::StartCollective | RegionClass::StartNeighborhood => started += cell.visits,
                class if is_wait(class) => waiting += cell.time,
                _ => {}
            }
        }
        started -= (shard.nonblocking.rows.len() as u64).min(started);
        let calls = shard.locations.flat_map(|location| shard.instances_of(location));
        let known = calls.filter(|&call| is_wait(trace.class(shard, call)));
        waiting -= known.map(|call| shard.leave(call) - shard.enter(call)).sum::<i64>();
    }
    let all = trace.exchange.allgather((started, waiting))?;
    let (started, waiting) = all.into_iter().fold((0, 0), |all, own| (all.0 + own.0, all.1 + own.1));
    Ok(if started > 0 { (started, waiting) } else { (0, 0) })
}

/// Time of all locations, ticks.
fn total(trace: &Trace) -> Result<i64> {
    let own: i64 = trace.shards.iter().flat_map(|shard| &shard.profile.rows).map(|cell| cell.time).sum();
    Ok(trace.exchange.allgather(own)?.into_iter().sum())
}

/// A member's calls: the one that waits, and the one that others wait for; the same if the operation blocks.
#[derive(Clone, Copy, Encode, Decode)]
pub(in crate::whatif) struct Call {
    pub number: u32,
    pub source: u32,
    pub enter: i64,
    pub leave: i64,
}

impl Call {
    /// The call of a blocking operation in a shard.
    pub(in crate::whatif) fn blocking(shard: &Shard, first: u32, member: &Member) -> Self {
        let number = first + member.instance.number();
        Self { number, source: number, enter: shard.enter(member.instance), leave: shard.leave(member.instance) }
    }

    /// The calls that start and complete a non-blocking operation in a shard.
    pub(in crate::whatif) fn nonblocking(shard: &Shard, first: u32, row: &Nonblocking) -> Self {
        Self {
            number: first + row.complete.number(),
            source: first + row.post.number(),
            enter: shard.enter(row.post),
            leave: shard.leave(row.complete),
        }
    }
}

/// Finds the arcs of all collective operations; `network` comes with the node of each process. Returns the calls that
/// vanish because the call of another member does. Collective.
pub(in crate::whatif) fn collect(
    trace: &Trace,
    cut: &Cut,
    network: Option<(&Network, &[u32])>,
    builder: &mut Builder,
    assumptions: &mut Assumptions,
) -> Result<Vec<u32>> {
    let (found, _) = match_all(
        trace,
        |i, shard, member| With { member, with: Call::blocking(shard, builder.first_of(i), &member) },
        |_| Found::default(),
        |found, kind, instance: &[With<Call>]| {
            let (members, calls): (Vec<Member>, Vec<Call>) = instance.iter().map(|of| (of.member, of.with)).unzip();
            // `without_record` finds these, and those that create windows.
            if members[0].comm().is_none() && matches!(members[0].operation, CREATE_HANDLE | FILE_HANDLE) {
                return;
            }
            let is_gone = |call: &Call| cut.has_call(call.number);
            if calls.iter().any(is_gone) {
                found.gone.extend(calls.iter().filter(|call| !is_gone(call)).map(|call| call.number));
            }
            let on_device = trace.definitions.locations[members[0].location].is_stream();
            let flow = if on_device {
                Flow::of_kernels(kind, members[0].operation)
            } else {
                Flow::inferred(kind, &members).or_else(|| Flow::recorded(kind, &members))
            };
            let topology = || collectives::neighborhood(trace, &members);
            let mut operation = flow.and_then(|flow| of_flow(flow, &members, &calls, topology));
            if let (Kind::AllToOne, false, Some(operation)) = (kind, on_device, &mut operation) {
                operation.arcs.extend(in_tree(&members, &calls));
            }
            let is_known = operation.is_some() || !matches!(kind, Kind::Undecided | Kind::Neighborhood);
            found.undecided += u64::from(!is_known);
            let operation = match network {
                None => operation,
                Some((network, nodes)) => operation.map(|of| on_network(of, network, nodes, trace, &members, &calls)),
            };
            found.operations.extend(operation);
        },
    )?;
    let mut gone = Vec::new();
    for found in found {
        gone.extend(found.gone);
        assumptions.count(Assumption::UnknownCollective, found.undecided);
        found.operations.into_iter().for_each(|operation| operation.add(builder));
    }
    let (alone, time) = without_record(trace, cut, network, builder, &mut gone)?;
    let least = total(trace)? / LITTLE;
    if trace.exchange.is_root() && time > least {
        assumptions.concern(Assumption::Unrecorded, alone, time);
    }
    let (alone, time) = unrecorded_nonblocking(trace)?;
    if trace.exchange.is_root() && time > least {
        assumptions.concern(Assumption::UnrecordedNonBlocking, alone, time);
    }
    nonblocking(trace, cut, network, builder, assumptions)?;
    Ok(gone)
}

fn by_enter<'a>(calls: impl Iterator<Item = &'a Call>) -> Vec<(Node, i64)> {
    let mut members: Vec<(Node, i64)> = calls.map(|call| (enter(call.source), call.enter)).collect();
    members.sort_unstable_by_key(|&(node, time)| (time, node));
    members
}

/// Every call of `to` waits for all of `from`.
pub(in crate::whatif) fn all<'a>(
    from: impl Iterator<Item = &'a Call>,
    to: impl Iterator<Item = &'a Call>,
) -> Operation {
    Operation::all_for(by_enter(from), to)
}

/// Adds a barrier, which costs a fixed time on a given network.
pub(in crate::whatif) fn barrier(calls: &[Call], cost: Option<i64>, builder: &mut Builder) {
    let Some(cost) = cost else { return all(calls.iter(), calls.iter()).add(builder) };
    // A simulated network has no clock errors.
    let members = by_enter(calls.iter());
    let waiting: Vec<(u32, u32)> = calls.iter().map(|call| (call.number, members.len() as u32)).collect();
    builder.meet(&members, &waiting, cost);
    builder.raws.extend(calls.iter().map(|call| Raw::own(call.number, cost)));
}

/// The arcs of an operation by its flow, for neighbors on a topology; `None` if that is unknown.
pub(in crate::whatif) fn of_flow<'a>(
    flow: Flow,
    members: &[Member],
    calls: &[Call],
    topology: impl FnOnce() -> Option<&'a Topology>,
) -> Option<Operation> {
    let calls_of = |is: fn(Flow, &Member) -> bool| {
        members.iter().zip(calls).filter(move |(member, _)| is(flow, member)).map(|(_, call)| call)
    };
    let takes = || calls_of(Flow::takes);
    match flow.needs {
        Needs::All => {
            let from = by_enter(calls_of(Flow::gives));
            Some(match from[..] {
                [(node, time)] => Operation::of_arcs(takes().map(|call| Raw::new(call.number, node, time)).collect()),
                _ => Operation::all_for(from, takes()),
            })
        }
        Needs::Lower => Some(scan(flow, members, calls)),
        Needs::Near => topology().map(|topology| neighborhood(members, calls, topology)),
    }
}

/// Non-blocking operations: the n-th ones that the members of a communicator start belong together. The call that
/// completes one waits for the calls that started it.
fn nonblocking(
    trace: &Trace,
    cut: &Cut,
    network: Option<(&Network, &[u32])>,
    builder: &mut Builder,
    assumptions: &mut Assumptions,
) -> Result<()> {
    let post = |(i, shard): (usize, &Shard)| {
        let mut outbox = trace.exchange.outbox();
        for process in shard.processes {
            for started in of_process(trace, shard, &trace.definitions.processes[process]) {
                let Started { location, row, sequence, operation, .. } = started;
                let Some(rank) = trace.definitions.comms[row.comm].rank(process) else { continue };
                let call = Call::nonblocking(shard, builder.first_of(i), row);
                let mut member = Member::nonblocking(row, (call.enter, call.leave), sequence, rank, location);
                member.operation = operation;
                outbox
                    .push(trace.exchange.evaluator(row.comm.number(), sequence), ((row.comm, sequence), member, call));
            }
        }
        outbox
    };
    let parts = trace.exchange.alltoallv(trace.par_shards().enumerate().map(post).collect())?;
    let mut operations: BTreeMap<(CommId, u32), Vec<(Member, Call)>> = BTreeMap::new();
    for &(operation, member, call) in parts.iter().flat_map(Inbox::rows) {
        operations.entry(operation).or_default().push((member, call));
    }
    drop(parts);
    refuse_parts(trace, cut, operations.values().map(|of| of.iter().map(|(_, call)| call)))?;
    let (mut alone, mut undecided) = (0, 0);
    for ((comm, _), mut of) in operations {
        of.sort_unstable_by_key(|(member, _)| member.rank);
        let (members, calls): (Vec<Member>, Vec<Call>) = of.into_iter().unzip();
        if cut.has_call(calls[0].number) {
            continue;
        }
        let same =
            members.iter().all(|member| (member.operation, member.root) == (members[0].operation, members[0].root));
        if members.len() != trace.definitions.comms[comm].size || !same {
            alone += members.len() as u64;
            continue;
        }
        let flow = Flow::recorded(Kind::of(members[0].operation), &members);
        let topology = || trace.definitions.topologies.of(comm);
        let operation = flow.and_then(|flow| of_flow(flow, &members, &calls, topology));
        let operation = match network {
            None => operation,
            Some((network, nodes)) => operation.map(|of| on_network(of, network, nodes, trace, &members, &calls)),
        };
        match operation {
            Some(operation) => operation.add(builder),
            None => undecided += 1,
        }
    }
    assumptions.count(Assumption::NonBlockingCollective, alone);
    assumptions.count(Assumption::UnknownCollective, undecided);
    Ok(())
}

/// Fails if a part of a non-blocking operation is cut; `operations` are the calls of each. Collective.
pub(in crate::whatif) fn refuse_parts<'a>(
    trace: &Trace,
    cut: &Cut,
    mut operations: impl Iterator<Item = impl Iterator<Item = &'a Call>>,
) -> Result<()> {
    let is_in_part = operations.any(|calls| {
        let mut are_gone = calls.flat_map(|call| [call.number, call.source]).map(|call| cut.has_call(call));
        let is_first_gone = are_gone.next();
        are_gone.any(|is_gone| Some(is_gone) != is_first_gone)
    });
    if trace.exchange.any(is_in_part)? {
        return Err(Error::Usage(
            "a non-blocking collective operation cannot be cut in part: cut it for all, start and end".into(),
        ));
    }
    Ok(())
}

/// Members that wait for others of the tree that a blocking N-to-1 operation is made of.
fn in_tree(members: &[Member], calls: &[Call]) -> Vec<Raw> {
    let mut arcs = Vec::new();
    let is_root = |member: &Member| member.rank == member.root && member.received > 0;
    let Some(root) = members.iter().position(is_root) else { return arcs };
    let part = |i: usize| {
        let call: &Call = &calls[i];
        Part { begin: call.enter, end: call.leave, has_data: members[i].sent > 0 }
    };
    inner_waits((root, calls.len()), part, &mut Vec::new(), |i, cause| {
        arcs.push(Raw::new(calls[i].number, enter(calls[cause].source), calls[cause].enter));
    });
    arcs
}

/// Each member waits for its neighbors; members are ordered by rank.
fn neighborhood(members: &[Member], calls: &[Call], topology: &Topology) -> Operation {
    let mut arcs = Vec::new();
    for (member, call) in members.iter().zip(calls) {
        let neighbors = collectives::neighbors(topology, calls, member.rank);
        arcs.extend(neighbors.map(|other| Raw::new(call.number, enter(other.source), other.enter)));
    }
    Operation::of_arcs(arcs)
}

/// Each member that takes waits for those of lower ranks that give; members are ordered by rank.
fn scan(flow: Flow, of: &[Member], calls: &[Call]) -> Operation {
    let mut members = Vec::new();
    let (mut waiting, mut arcs) = (Vec::new(), Vec::new());
    let mut latest = i64::MIN;
    for (member, call) in of.iter().zip(calls) {
        if flow.takes(member) && latest > call.leave && arcs.len() < MANY {
            // Due to clock errors, some arrived too late; each gets its own arc.
            arcs.extend(members.iter().map(|&(node, time)| Raw::new(call.number, node, time)));
        } else if flow.takes(member) && !members.is_empty() {
            waiting.push((call.number, members.len() as u32));
        }
        if flow.gives(member) {
            members.push((enter(call.source), call.enter));
            latest = latest.max(call.enter);
        }
    }
    Operation { members, waiting, late: Vec::new(), arcs, cost: MEASURED }
}

/// Inverse of the share of time below which no assumption is noted.
const LITTLE: i64 = 100;

/// Limit of a scan's arcs for members with clock errors; further members wait for the latest one, with its offset.
const MANY: usize = 1 << 20;
