//! Messages: sent before received; and, if their send is synchronous, posted before completed.

use crate::Result;
use crate::clocks::constraints::Found;
use crate::clocks::kind::Kind;
use crate::matching::messages::{self, Matches, Needs};
use crate::matching::protocol::is_synchronous;
use crate::trace::{Shard, Trace};

/// The constraints of messages.
#[derive(Debug)]
pub struct OfMessages {
    /// Whether the sends of each call path are synchronous.
    synchronous: Vec<bool>,
}

impl OfMessages {
    /// Those of a run.
    pub fn new(trace: &Trace) -> Self {
        let name = |region| trace.regions.name(trace.records(), region);
        Self { synchronous: trace.tree.nodes().iter().map(|node| is_synchronous(name(node.region))).collect() }
    }

    /// The constraints of the messages that a shard receives.
    pub fn of_shard(&self, trace: &Trace, shard: &Shard, matches: &Matches) -> Found {
        let needs = Needs::new(trace, shard, matches);
        let mut found = Found::default();
        found.links.reserve(shard.receives.rows.len());
        for i in 0..shard.locations.len() {
            let location = shard.location(i);
            let rows = shard.receives.range(i);
            for row in rows {
                for need in needs.of(row).filter(|need| need.is_bound) {
                    let received = (shard.owner(location, need.call), need.proven);
                    found.link(Kind::Message, (need.sender.0, need.sent), received);
                }
                let (receive, Some(send)) = (&shard.receives.rows[row], matches.send(row)) else { continue };
                if self.synchronous[send.callpath.index()] && send.complete_leave != i64::MIN {
                    let posted = (shard.owner(location, receive.request), shard.enter(receive.request));
                    found.link(Kind::SynchronousSend, posted, (send.location, send.complete_leave));
                }
            }
        }
        found
    }
}

/// The constraints of all messages, by receiving shard.
pub(super) fn collect(trace: &Trace) -> Result<Vec<Found>> {
    let messages = OfMessages::new(trace);
    let (found, _) = messages::match_all(trace, |_, shard, matches| messages.of_shard(trace, shard, matches))?;
    Ok(found)
}
