//! Collective operations. The gates are those of the wait states (specification.md#collective-operations).

use crate::Result;
use crate::clocks::constraints::{Found, Member};
use crate::clocks::kind::Kind;
use crate::ids::LocationId;
use crate::matching::collectives;
use crate::matching::flow::{Flow, Needs, Records};
use crate::matching::nonblocking;
use crate::parallel::iter::prelude::*;
use crate::trace::Trace;

/// The constraints of blocking operations, by owner of instances.
pub(super) fn blocking(trace: &Trace) -> Result<Vec<Found>> {
    let (found, _) = collectives::match_all(trace, |_, _, member| member, |_| Found::default(), add_operation)?;
    Ok(found)
}

/// Adds the constraints of a blocking operation.
pub fn add_operation(found: &mut Found, kind: collectives::Kind, members: &[collectives::Member]) {
    let Some(name) = Kind::of(kind) else { return };
    let Some(flow) = Flow::recorded(kind, members) else { return };
    add(found, name, flow, members, |member| (member.location, (member.begin, member.end)));
}

/// The constraints of non-blocking operations, by owner of instances.
pub(super) fn nonblocking(trace: &Trace) -> Result<Vec<Found>> {
    if !nonblocking::any(trace)? {
        return Ok(Vec::new());
    }
    let of_owner = |parts: Vec<nonblocking::Part>| {
        let mut found = Found::default();
        for members in nonblocking::instances(&parts).filter(|members| nonblocking::check(trace, members).is_ok()) {
            match Flow::recorded(collectives::Kind::of(members[0].operation), members) {
                Some(Flow { needs: Needs::Near, .. }) => neighbors(trace, members, &mut found),
                Some(flow) => {
                    let at = |part: &nonblocking::Part| (part.location, (part.begin, part.end));
                    add(&mut found, Kind::Nonblocking, flow, members, at);
                }
                None => {}
            }
        }
        found
    };
    Ok(nonblocking::parts(trace)?.into_par_iter().map(of_owner).collect())
}

/// Adds what neighbors on the recorded topology of a communicator need of each other.
fn neighbors(trace: &Trace, members: &[nonblocking::Part], found: &mut Found) {
    let Some(topology) = trace.definitions.topologies.of(members[0].comm) else { return };
    for part in members {
        for other in collectives::neighbors(topology, members, part.rank) {
            found.link(Kind::Nonblocking, (other.location, other.begin), (part.location, part.end));
        }
    }
}

/// Adds an instance; `at` has location, begin, and end of a member.
fn add<M: Records>(
    found: &mut Found,
    name: Kind,
    flow: Flow,
    members: &[M],
    at: impl Fn(&M) -> (LocationId, (i64, i64)),
) {
    let member = |member: &M| {
        let (location, times) = at(member);
        Member { location, times, is_source: flow.gives(member), is_target: flow.takes(member) }
    };
    if flow.needs != Needs::Near {
        found.instance(name, flow.needs == Needs::Lower, members.iter().map(member));
    }
}
