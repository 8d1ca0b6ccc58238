//! Matching of collective operations on intercommunicators: data flows from one group to the other.
//!
//! Without a root, members need the other group. With a root, data flows between it and the other group; the rest of its
//! own group needs nobody.
//!
//! *Source*: MPI 4.1, section 6.2.3.

use std::collections::BTreeMap;

use rustc_hash::FxHashMap;

use super::collectives::{Kind, Member};
use crate::Result;
use crate::ids::{CommId, ProcessId};
use crate::parallel::exchange::{Inbox, Outbox, Row};
use crate::parallel::iter::prelude::*;
use crate::trace::columns::Nonblocking;
use crate::trace::definition_index::Members;
use crate::trace::{Shard, Trace};

/// Members of a group, or of both, by rank.
pub(crate) type Group<T> = Vec<(Member, T)>;

/// Communicator, whether it blocks, and number among these.
pub(crate) type Key = (CommId, bool, u32);

/// The operations that this process of the analysis evaluates, whether all members take part or not; `with` says what
/// comes with a member of a shard, given by its index, and of a non-blocking operation its record. Collective.
pub(crate) fn operations<T: Row + Copy>(
    trace: &Trace,
    with: impl Fn(usize, &Shard, Option<&Nonblocking>, &Member) -> T + Sync,
) -> Result<BTreeMap<Key, [Group<T>; 2]>> {
    let mut ranks: FxHashMap<(CommId, ProcessId), (usize, u32)> = FxHashMap::default();
    for (comm, of) in trace.definitions.comms.iter().enumerate() {
        if let Members::TwoGroups(a, b) = &*of.members {
            for (group, processes) in [a, b].into_iter().enumerate() {
                let members = processes.iter().zip(0..);
                ranks.extend(members.map(|(&process, rank)| ((CommId::at(comm), process), (group, rank))));
            }
        }
    }
    let mut operations: BTreeMap<Key, [Group<T>; 2]> = BTreeMap::new();
    if ranks.is_empty() {
        return Ok(operations);
    }
    let post = |(i, shard)| post(trace, &ranks, (i, shard), &with);
    let parts = trace.exchange.alltoallv(trace.par_shards().enumerate().map(post).collect())?;
    for &(key, group, member, with) in parts.iter().flat_map(Inbox::rows) {
        operations.entry(key).or_default()[group as usize].push((member, with));
    }
    for group in operations.values_mut().flatten() {
        group.sort_unstable_by_key(|(member, _)| member.rank);
    }
    Ok(operations)
}

/// The parts of a shard's processes in operations, each with its operation and group.
fn post<T: Row + Copy>(
    trace: &Trace,
    ranks: &FxHashMap<(CommId, ProcessId), (usize, u32)>,
    (i, shard): (usize, &Shard),
    with: impl Fn(usize, &Shard, Option<&Nonblocking>, &Member) -> T,
) -> Outbox<(Key, u8, Member, T)> {
    let mut outbox = trace.exchange.outbox();
    for process in shard.processes {
        let mut parts = Vec::new();
        for location in trace.definitions.processes[process].locations {
            for row in shard.collectives.of(shard.local(location)) {
                if let Some(&(group, rank)) = ranks.get(&(row.comm, process)) {
                    let member = Member::blocking(row, 0, rank, location);
                    let with = with(i, shard, None, &member);
                    parts.push((row.comm, true, group, member, with));
                }
            }
            for row in shard.nonblocking.of(shard.local(location)) {
                if let Some(&(group, rank)) = ranks.get(&(row.comm, process)) {
                    let of_calls = (shard.enter(row.post), shard.leave(row.complete));
                    let member = Member::nonblocking(row, of_calls, 0, rank, location);
                    let with = with(i, shard, Some(row), &member);
                    parts.push((row.comm, false, group, member, with));
                }
            }
        }
        parts.sort_by_key(|(_, _, _, member, _)| member.begin);
        let mut count: FxHashMap<(CommId, bool), u32> = FxHashMap::default();
        for (comm, blocks, group, member, with) in parts {
            let n = count.entry((comm, blocks)).or_insert(0);
            *n += 1;
            let key = (comm, blocks, *n);
            outbox.push(trace.exchange.evaluator(comm.number(), *n), (key, group as u8, member, with));
        }
    }
    outbox
}

/// The operation, if all members of the communicator take part in the same one.
pub(crate) fn operation<T>(trace: &Trace, comm: CommId, groups: &[Group<T>; 2]) -> Option<u8> {
    let mut members = groups.iter().flatten().map(|(member, _)| member.operation);
    let number = groups[0].len() + groups[1].len();
    let first = members.next()?;
    (number == trace.definitions.comms[comm].size && members.all(|operation| operation == first)).then_some(first)
}

/// The members that need others and those that these need, by the ways in which data flow, and the kind of each: that of
/// an operation in which all members of one group send, and all of the other receive. `None` if the flow is unknown.
pub(crate) fn ways<T: Copy>(operation: u8, groups: [Group<T>; 2]) -> Option<Vec<(Kind, Group<T>)>> {
    let kind = match Kind::of(operation) {
        Kind::Barrier => Kind::OtherGroup,
        Kind::AllToAll => Kind::AllToAll,
        kind @ (Kind::OneToAll | Kind::AllToOne) => {
            return Some(vec![(kind, of_root(groups)?)]);
        }
        _ => return None,
    };
    let way = |from: &Group<T>, to: &Group<T>| {
        let bytes = |of: u64| if kind == Kind::OtherGroup { 1 } else { of };
        let with = |&(mut member, with): &(Member, T), (sent, received): (u64, u64)| {
            (member.sent, member.received) = (sent, received);
            (member, with)
        };
        let from = from.iter().map(|part| with(part, (bytes(part.0.sent), 0)));
        let to = to.iter().map(|part| with(part, (0, bytes(part.0.received))));
        (kind, from.chain(to).collect())
    };
    let [a, b] = &groups;
    Some(vec![way(a, b), way(b, a)])
}

/// The root and the other group, which records the root's rank; the root's own group records only that it is a member.
fn of_root<T>(groups: [Group<T>; 2]) -> Option<Group<T>> {
    let names =
        |group: &Group<T>, other: &Group<T>| group.iter().any(|(member, _)| (member.root as usize) < other.len());
    let [a, b] = groups;
    let (own, other) = if names(&b, &a) { (a, b) } else { (b, a) };
    let rank = other.first()?.0.root;
    if names(&own, &other) || other.iter().any(|(member, _)| member.root != rank) {
        return None;
    }
    let root = own.into_iter().nth(rank as usize)?;
    // Renumbered, so that the root is a member of the operation.
    let members = std::iter::once(root).chain(other).zip(0..);
    let renumber = |((mut member, with), rank): ((Member, T), u32)| {
        (member.rank, member.root) = (rank, 0);
        (member, with)
    };
    Some(members.map(renumber).collect())
}
