//! Arcs of collective operations on intercommunicators (whatif.md#how-it-works): data flows from one group to the
//! other.
//!
//! Without a root, members wait for the other group. With a root, data flows between it and the other group; the rest
//! of its own group does not wait.
//!
//! *Source*: MPI 4.1, section 6.2.3.

use std::collections::BTreeMap;

use rustc_hash::FxHashMap;

use super::collectives::{Call, Operation, all, all_to_all, have_met, of_kind, on_network, refuse_parts};
use crate::Result;
use crate::ids::{CommId, ProcessId};
use crate::matching::collectives::{ALLTOALLV, ALLTOALLW, Kind, Member};
use crate::parallel::exchange::{Inbox, Outbox};
use crate::parallel::iter::prelude::*;
use crate::trace::definition_index::Members;
use crate::trace::{Shard, Trace};
use crate::whatif::assumptions::{Assumption, Assumptions};
use crate::whatif::changes::cut::Cut;
use crate::whatif::graph::builder::Builder;
use crate::whatif::graph::network::Network;

/// Members of a group, or of both, by rank.
type Group = Vec<(Member, Call)>;

/// Finds the arcs. Returns the calls that vanish because the call of another member does. Collective.
pub(in crate::whatif) fn collect(
    trace: &Trace,
    cut: &Cut,
    network: Option<(&Network, &[u32])>,
    builder: &mut Builder,
    assumptions: &mut Assumptions,
) -> Result<Vec<u32>> {
    let mut gone = Vec::new();
    let operations = operations(trace, builder)?;
    let nonblocking = operations.iter().filter(|((_, blocks, _), _)| !blocks);
    refuse_parts(trace, cut, nonblocking.map(|(_, groups)| groups.iter().flatten().map(|(_, call)| call)))?;
    for ((comm, blocks, _), mut groups) in operations {
        for group in &mut groups {
            group.sort_unstable_by_key(|(member, _)| member.rank);
        }
        let parts = || groups.iter().flatten();
        if parts().any(|(_, call)| cut.has_call(call.number)) {
            if !blocks {
                continue;
            }
            gone.extend(parts().map(|(_, call)| call.number));
        }
        let operation = parts().next().map_or(0, |(member, _)| member.operation);
        let number = parts().count();
        if number != trace.definitions.comms[comm].size || parts().any(|(member, _)| member.operation != operation) {
            assumptions.count(Assumption::Unmatched, number as u64);
            continue;
        }
        let Some(flows) = flows(operation, groups) else {
            assumptions.count(Assumption::UnknownCollective, 1);
            continue;
        };
        for Flow { arcs, members, calls } in flows {
            let operation = match network {
                None => arcs,
                Some((network, nodes)) => on_network(arcs, network, nodes, trace, &members, &calls),
            };
            operation.add(builder);
        }
    }
    Ok(gone)
}

/// Communicator, whether it blocks, and number among these.
type Key = (CommId, bool, u32);

/// The operations that this process of the analysis evaluates.
fn operations(trace: &Trace, builder: &Builder) -> Result<BTreeMap<Key, [Group; 2]>> {
    let mut ranks: FxHashMap<(CommId, ProcessId), (usize, u32)> = FxHashMap::default();
    for (comm, of) in trace.definitions.comms.iter().enumerate() {
        if let Members::TwoGroups(a, b) = &*of.members {
            for (group, processes) in [a, b].into_iter().enumerate() {
                let members = processes.iter().zip(0..);
                ranks.extend(members.map(|(&process, rank)| ((CommId::at(comm), process), (group, rank))));
            }
        }
    }
    let mut operations: BTreeMap<Key, [Group; 2]> = BTreeMap::new();
    if ranks.is_empty() {
        return Ok(operations);
    }
    let post = |(i, shard)| post(trace, builder, &ranks, i, shard);
    let parts = trace.exchange.alltoallv(trace.par_shards().enumerate().map(post).collect())?;
    for &(key, group, member, call) in parts.iter().flat_map(Inbox::rows) {
        operations.entry(key).or_default()[group as usize].push((member, call));
    }
    Ok(operations)
}

/// The parts of a shard's processes in operations, each with its operation and group.
fn post(
    trace: &Trace,
    builder: &Builder,
    ranks: &FxHashMap<(CommId, ProcessId), (usize, u32)>,
    i: usize,
    shard: &Shard,
) -> Outbox<(Key, u8, Member, Call)> {
    let mut outbox = trace.exchange.outbox();
    for process in shard.processes {
        let mut parts = Vec::new();
        for location in trace.definitions.processes[process].locations {
            for row in shard.collectives.of(shard.local(location)) {
                if let Some(&(group, rank)) = ranks.get(&(row.comm, process)) {
                    let mut member = Member::blocking(row, 0, rank, location);
                    (member.begin, member.end) = (shard.enter(row.instance), shard.leave(row.instance));
                    parts.push((row.comm, true, group, member, Call::blocking(trace, builder, &member)));
                }
            }
            for row in shard.nonblocking.of(shard.local(location)) {
                if let Some(&(group, rank)) = ranks.get(&(row.comm, process)) {
                    let call = Call::nonblocking(shard, builder.first_of(i), row);
                    let member = Member::nonblocking(row, (call.enter, call.leave), 0, rank, location);
                    parts.push((row.comm, false, group, member, call));
                }
            }
        }
        parts.sort_by_key(|(_, _, _, _, call)| call.enter);
        let mut count: FxHashMap<(CommId, bool), u32> = FxHashMap::default();
        for (comm, blocks, group, member, call) in parts {
            let n = count.entry((comm, blocks)).or_insert(0);
            *n += 1;
            let key = (comm, blocks, *n);
            outbox.push(trace.exchange.evaluator(comm.number(), *n), (key, group as u8, member, call));
        }
    }
    outbox
}

/// The arcs of an operation, or of one direction of it.
struct Flow {
    arcs: Operation,
    /// The members that take part.
    members: Vec<Member>,
    /// The calls that complete it.
    calls: Vec<Call>,
}

/// The arcs of an operation by its flow of data; `None` if that is unknown.
fn flows(operation: u8, groups: [Group; 2]) -> Option<Vec<Flow>> {
    match (Kind::of(operation), operation) {
        (Kind::Barrier, _) => Some(both_ways(groups, all)),
        (Kind::AllToAll, _) => Some(both_ways(groups, all_to_all)),
        (_, ALLTOALLV | ALLTOALLW) => {
            let calls: Vec<Call> = groups.iter().flatten().map(|&(_, call)| call).collect();
            have_met(&calls).then(|| both_ways(groups, all))
        }
        (kind @ (Kind::OneToAll | Kind::AllToOne), _) => {
            let (members, calls) = of_root(groups)?;
            Some(
                of_kind(kind, &members, &calls, || None)
                    .map(|arcs| Flow { arcs, members, calls })
                    .into_iter()
                    .collect(),
            )
        }
        _ => {
            let (members, calls): (Vec<Member>, Vec<Call>) = groups.into_iter().flatten().unzip();
            Some(vec![Flow { arcs: of_kind(Kind::Undecided, &members, &calls, || None)?, members, calls }])
        }
    }
}

/// The arcs from each group to the other.
fn both_ways(groups: [Group; 2], arcs: impl Fn(&[Call], &[Call]) -> Operation) -> Vec<Flow> {
    let members: Vec<Member> = groups.iter().flatten().map(|(member, _)| *member).collect();
    let [a, b] = groups.map(|group| group.into_iter().map(|(_, call)| call).collect::<Vec<Call>>());
    let (to_a, to_b) = (arcs(&b, &a), arcs(&a, &b));
    [(to_a, a), (to_b, b)].into_iter().map(|(arcs, calls)| Flow { arcs, members: members.clone(), calls }).collect()
}

/// The root and the other group, which records the root's rank; the root's own group records only that it is a member.
fn of_root(groups: [Group; 2]) -> Option<(Vec<Member>, Vec<Call>)> {
    let names = |group: &Group, other: &Group| group.iter().any(|(member, _)| (member.root as usize) < other.len());
    let [a, b] = groups;
    let (own, other) = if names(&b, &a) { (a, b) } else { (b, a) };
    let rank = other.first()?.0.root;
    if names(&own, &other) || other.iter().any(|(member, _)| member.root != rank) {
        return None;
    }
    let root = own.into_iter().nth(rank as usize)?;
    // Renumbered, so that the root is a member of the operation.
    let members = std::iter::once(root).chain(other).zip(0..);
    let renumber = |((mut member, call), rank): ((Member, Call), u32)| {
        (member.rank, member.root) = (rank, 0);
        (member, call)
    };
    Some(members.map(renumber).unzip())
}
