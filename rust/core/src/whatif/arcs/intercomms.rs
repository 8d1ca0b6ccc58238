//! Arcs of collective operations on intercommunicators (whatif.md#how-it-works), whose data flow from one group to the
//! other ([`crate::matching::intercomms`]).

use super::collectives::{Call, of_flow, on_network, refuse_parts};
use crate::Result;
use crate::matching::collectives::Member;
use crate::matching::flow::Flow;
use crate::matching::intercomms::{operation, operations, ways};
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
    let found = operations(trace, |i, shard, nonblocking, member| match nonblocking {
        None => Call::blocking(shard, builder.first_of(i), member),
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
        let Some(ways) = ways(operation, groups) else {
            assumptions.count(Assumption::UnknownCollective, 1);
            continue;
        };
        for (kind, group) in ways {
            let (members, calls): (Vec<Member>, Vec<Call>) = group.into_iter().unzip();
            let Some(arcs) = Flow::recorded(kind, &members).and_then(|flow| of_flow(flow, &members, &calls, || None))
            else {
                continue;
            };
            let operation = match network {
                None => arcs,
                Some((network, nodes)) => on_network(arcs, network, nodes, trace, &members, &calls),
            };
            operation.add(builder);
        }
    }
    Ok(gone)
}
