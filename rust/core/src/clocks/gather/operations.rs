//! Collective operations. The gates are those of the wait states (specification.md#collective-operations).

use crate::Result;
use crate::clocks::constraints::{Found, Member};
use crate::clocks::kind::Kind;
use crate::ids::LocationId;
use crate::matching::collectives::{self, Times};
use crate::matching::nonblocking;
use crate::parallel::iter::prelude::*;
use crate::trace::Trace;

/// The constraints of blocking operations, by owner of instances.
pub(super) fn blocking(trace: &Trace) -> Result<Vec<Found>> {
    let (found, _) = collectives::match_all(trace, Times::Operation, |_| Found::default(), add_operation)?;
    Ok(found)
}

/// Adds the constraints of a blocking operation.
pub fn add_operation(found: &mut Found, kind: collectives::Kind, members: &[collectives::Member]) {
    let Some(name) = Kind::of(kind) else { return };
    let parts = members.iter().map(|member| Data {
        rank: member.rank,
        root: member.root,
        sends: member.sent > 0,
        receives: member.received > 0,
    });
    add(found, name, kind, &parts, |number| (members[number].location, (members[number].begin, members[number].end)));
}

/// The constraints of non-blocking operations, by owner of instances.
pub(super) fn nonblocking(trace: &Trace) -> Result<Vec<Found>> {
    if !nonblocking::any(trace)? {
        return Ok(Vec::new());
    }
    let of_owner = |parts: Vec<nonblocking::Part>| {
        let mut found = Found::default();
        for members in nonblocking::instances(&parts).filter(|members| nonblocking::check(trace, members).is_ok()) {
            let parts = members.iter().map(|part| Data {
                rank: part.rank,
                root: part.root,
                sends: part.sends,
                receives: part.receives,
            });
            let kind = collectives::Kind::of(members[0].operation);
            if kind == collectives::Kind::Neighborhood {
                neighbors(trace, members, &mut found);
                continue;
            }
            add(&mut found, Kind::Nonblocking, kind, &parts, |number| {
                (members[number].location, (members[number].begin, members[number].end))
            });
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

/// What a member does with data.
struct Data {
    rank: u32,
    root: u32,
    sends: bool,
    receives: bool,
}

/// Adds an instance, if it bounds anything. `at` has location, begin, and end of each member.
fn add(
    found: &mut Found,
    name: Kind,
    kind: collectives::Kind,
    members: &(impl Iterator<Item = Data> + Clone),
    at: impl Fn(usize) -> (LocationId, (i64, i64)),
) {
    use collectives::Kind as Flow;
    let root = || members.clone().find(|member| member.rank == member.root);
    match kind {
        Flow::OneToAll if root().is_none_or(|root| !root.sends) => return,
        Flow::AllToOne if root().is_none_or(|root| !root.receives) => return,
        Flow::Init | Flow::Io | Flow::Neighborhood | Flow::Undecided => return,
        _ => {}
    }
    let member = |(number, data): (usize, Data)| {
        let Data { rank, root, sends, receives } = data;
        let is_root = rank == root;
        let (is_source, is_target) = match kind {
            Flow::AllToAll | Flow::OtherGroup | Flow::Scan => (sends, receives),
            Flow::OneToAll => (is_root, !is_root && receives),
            Flow::AllToOne => (!is_root && sends, is_root),
            _ => (true, true),
        };
        let (location, times) = at(number);
        Member { location, times, is_source, is_target }
    };
    found.instance(name, kind == Flow::Scan, members.clone().enumerate().map(member));
}
