//! Arcs of collective operations (WHATIF 4.4): whom the Leave of a member waits for, by the flow of data.
//!
//! Times are Enter and Leave of the calls. A member that keeps its length does so because nobody recorded whether it
//! waits inside: the root of a broadcast, those that only send to a root, `MPI_Init`.

use super::cut::Cut;
use super::graph::{Builder, Node, Raw, enter};
use super::{Assumption, Assumptions};
use crate::Result;
use crate::matching::collectives::{Kind, Member, match_all};
use crate::trace::Trace;

/// What one operation contributes.
struct Operation {
    /// Members in the order in which they count, with the times of their Enters.
    members: Vec<(Node, i64)>,
    /// Instances that wait, and for how many of the members.
    waiting: Vec<(u32, u32)>,
    /// Whom each of those waits for in addition.
    arcs: Vec<Raw>,
}

/// What the operations of one owner contribute.
#[derive(Default)]
struct Found {
    operations: Vec<Operation>,
    undecided: u64,
    gone: Vec<u32>,
}

/// A member's call.
struct Call {
    number: u32,
    enter: i64,
    leave: i64,
    sends: bool,
    receives: bool,
}

/// Finds the arcs of all collective operations.
/// Returns the calls that vanish, because that of another member does.
pub(super) fn collect(
    trace: &Trace,
    cut: &Cut,
    builder: &mut Builder,
    assumptions: &mut Assumptions,
) -> Result<Vec<u32>> {
    let (found, _) = match_all(trace, |found: &mut Found, kind, members| {
        let is_gone = |member: &Member| cut.has_instance(trace, (member.location, member.instance));
        if !cut.is_empty() && members.iter().any(is_gone) {
            let number = |member: &Member| builder.instance(trace, (member.location, member.instance));
            found.gone.extend(members.iter().filter(|member| !is_gone(member)).map(number));
        }
        let calls: Vec<Call> = members.iter().map(|member| call(trace, builder, member)).collect();
        let operation = match kind {
            Kind::Init => return,
            Kind::Undecided => {
                found.undecided += 1;
                return;
            }
            Kind::Finalize | Kind::Barrier => Some(all(&calls)),
            Kind::AllToAll => all_to_all(&calls),
            Kind::OneToAll => one_to_all(members, &calls),
            Kind::AllToOne => all_to_one(members, &calls),
            Kind::Scan => Some(scan(&calls)),
        };
        found.operations.extend(operation);
    })?;
    let mut gone = Vec::new();
    for found in found {
        gone.extend(found.gone);
        assumptions.count(Assumption::UnknownCollective, found.undecided);
        for Operation { members, waiting, arcs } in found.operations {
            builder.meet(&members, &waiting);
            builder.raws.extend(arcs);
        }
    }
    Ok(gone)
}

fn call(trace: &Trace, builder: &Builder, member: &Member) -> Call {
    let shard = trace.shard(member.location);
    Call {
        number: builder.instance(trace, (member.location, member.instance)),
        enter: shard.enter(member.instance),
        leave: shard.leave(member.instance),
        sends: member.sent > 0,
        receives: member.received > 0,
    }
}

fn by_enter<'a>(calls: impl Iterator<Item = &'a Call>) -> Vec<(Node, i64)> {
    let mut members: Vec<(Node, i64)> = calls.map(|call| (enter(call.number), call.enter)).collect();
    members.sort_unstable_by_key(|&(node, time)| (time, node));
    members
}

/// Everybody waits for all.
fn all(calls: &[Call]) -> Operation {
    let waiting = calls.iter().map(|call| (call.number, calls.len() as u32)).collect();
    Operation { members: by_enter(calls.iter()), waiting, arcs: Vec::new() }
}

/// Who receives waits for all if all are in their calls at the same time, else for those that have sent by then.
fn all_to_all(calls: &[Call]) -> Option<Operation> {
    let taking_part = || calls.iter().filter(|call| call.sends || call.receives);
    let latest = taking_part().map(|call| call.enter).max()?;
    let receivers = || calls.iter().filter(|call| call.receives);
    if taking_part().all(|call| call.leave > latest) {
        let members = by_enter(taking_part());
        let waiting = receivers().map(|call| (call.number, members.len() as u32)).collect();
        return Some(Operation { members, waiting, arcs: Vec::new() });
    }
    let members = by_enter(calls.iter().filter(|call| call.sends));
    let before = |call: &Call| members.partition_point(|&(_, time)| time <= call.leave) as u32;
    let mut waiting: Vec<(u32, u32)> = receivers().map(|call| (call.number, before(call))).collect();
    waiting.sort_unstable_by_key(|&(_, count)| count);
    Some(Operation { members, waiting, arcs: Vec::new() })
}

fn root(members: &[Member]) -> Option<usize> {
    members.iter().position(|member| member.rank == member.root)
}

/// Who receives waits for the root.
fn one_to_all(members: &[Member], calls: &[Call]) -> Option<Operation> {
    let root = root(members)?;
    let (node, time) = (enter(calls[root].number), calls[root].enter);
    let others = calls.iter().enumerate().filter(|(i, call)| *i != root && call.receives && calls[root].sends);
    let arcs = others.map(|(_, call)| Raw::new(call.number, node, time)).collect();
    Some(Operation { members: Vec::new(), waiting: Vec::new(), arcs })
}

/// The root waits for all that send.
fn all_to_one(members: &[Member], calls: &[Call]) -> Option<Operation> {
    let root = root(members)?;
    let senders = calls.iter().enumerate().filter(|(i, call)| *i != root && call.sends && calls[root].receives);
    let members = by_enter(senders.map(|(_, call)| call));
    let waiting = vec![(calls[root].number, members.len() as u32)];
    Some(Operation { members, waiting, arcs: Vec::new() })
}

/// Each waits for those of lower ranks; members come by rank.
fn scan(calls: &[Call]) -> Operation {
    let members = calls.iter().map(|call| (enter(call.number), call.enter)).collect();
    let waiting = calls.iter().zip(0..).map(|(call, rank)| (call.number, rank)).collect();
    Operation { members, waiting, arcs: Vec::new() }
}
