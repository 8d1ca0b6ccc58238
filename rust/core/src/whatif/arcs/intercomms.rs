//! Arcs of collective operations on intercommunicators (whatif.md#how-it-works), whose data flow from one group to the
//! other ([`crate::matching::intercomms`]).

use super::collectives::{Call, Operation, all, all_to_all, have_met, of_kind, on_network, refuse_parts};
use crate::Result;
use crate::matching::collectives::{ALLTOALLV, ALLTOALLW, Kind, Member, Times};
use crate::matching::intercomms::{Group, of_root, operation, operations};
use crate::trace::Trace;
use crate::whatif::assumptions::{Assumption, Assumptions};
use crate::whatif::changes::cut::Cut;
use crate::whatif::graph::builder::Builder;
use crate::whatif::graph::network::Network;

/// Finds the arcs. Returns the calls that vanish because the call of another member does. Collective.
pub(in crate::whatif) fn collect(
    trace: &Trace,
    cut: &Cut,
    network: Option<(&Network, &[u32])>,
    builder: &mut Builder,
    assumptions: &mut Assumptions,
) -> Result<Vec<u32>> {
    let mut gone = Vec::new();
    let found = operations(trace, Times::Call, |i, shard, nonblocking, member| match nonblocking {
        None => Call::blocking(trace, builder, member),
        Some(row) => Call::nonblocking(shard, builder.first_of(i), row),
    })?;
    let nonblocking = found.iter().filter(|((_, blocks, _), _)| !blocks);
    refuse_parts(trace, cut, nonblocking.map(|(_, groups)| groups.iter().flatten().map(|(_, call)| call)))?;
    for ((comm, blocks, _), groups) in found {
        let parts = || groups.iter().flatten();
        if parts().any(|(_, call)| cut.has_call(call.number)) {
            if !blocks {
                continue;
            }
            gone.extend(parts().map(|(_, call)| call.number));
        }
        let Some(operation) = operation(trace, comm, &groups) else {
            assumptions.count(Assumption::Unmatched, parts().count() as u64);
            continue;
        };
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

/// The arcs of an operation, or of one direction of it.
struct Flow {
    arcs: Operation,
    /// The members that take part.
    members: Vec<Member>,
    /// The calls that complete it.
    calls: Vec<Call>,
}

/// The arcs of an operation by its flow of data; `None` if that is unknown.
fn flows(operation: u8, groups: [Group<Call>; 2]) -> Option<Vec<Flow>> {
    match (Kind::of(operation), operation) {
        (Kind::Barrier, _) => Some(both_ways(groups, all)),
        (Kind::AllToAll, _) => Some(both_ways(groups, all_to_all)),
        (_, ALLTOALLV | ALLTOALLW) => {
            let calls: Vec<Call> = groups.iter().flatten().map(|&(_, call)| call).collect();
            have_met(&calls).then(|| both_ways(groups, all))
        }
        (kind @ (Kind::OneToAll | Kind::AllToOne), _) => {
            let (members, calls): (Vec<Member>, Vec<Call>) = of_root(groups)?.into_iter().unzip();
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
fn both_ways(groups: [Group<Call>; 2], arcs: impl Fn(&[Call], &[Call]) -> Operation) -> Vec<Flow> {
    let members: Vec<Member> = groups.iter().flatten().map(|(member, _)| *member).collect();
    let [a, b] = groups.map(|group| group.into_iter().map(|(_, call)| call).collect::<Vec<Call>>());
    let (to_a, to_b) = (arcs(&b, &a), arcs(&a, &b));
    [(to_a, a), (to_b, b)].into_iter().map(|(arcs, calls)| Flow { arcs, members: members.clone(), calls }).collect()
}
