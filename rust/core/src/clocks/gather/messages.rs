//! Messages: sent before received; and, if their send is synchronous, posted before completed.

use crate::Result;
use crate::clocks::constraints::Found;
use crate::clocks::kind::Kind;
use crate::matching::messages::{self, Matches};
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
    #[must_use]
    pub fn new(trace: &Trace) -> Self {
        let name = |region| trace.regions.name(trace.records(), region);
        Self { synchronous: trace.tree.nodes().iter().map(|node| is_synchronous(name(node.region))).collect() }
    }

    /// The constraints of the messages that a shard receives.
    #[must_use]
    pub fn of_shard(&self, shard: &Shard, matches: &Matches) -> Found {
        let mut found = Found::default();
        found.links.reserve(shard.receives.rows.len());
        for i in 0..shard.locations.len() {
            let location = shard.location(i);
            let rows = shard.receives.range(i);
            let mut probes =
                shard.probes[shard.probes.partition_point(|(row, _)| (*row as usize) < rows.start)..].iter();
            let mut probe = probes.next();
            for row in rows {
                while probe.is_some_and(|(received, _)| (*received as usize) < row) {
                    probe = probes.next();
                }
                let Some(send) = matches.send(row) else { continue };
                let receive = &shard.receives.rows[row];
                let sent = (send.location, send.time);
                found.link(Kind::Message, sent, (location, receive.time));
                if let Some((_, call)) = probe.filter(|(received, _)| *received as usize == row) {
                    found.link(Kind::Message, sent, (shard.owner(location, *call), shard.leave(*call)));
                }
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
    let (found, _) = messages::match_all(trace, |_, shard, matches| messages.of_shard(shard, matches))?;
    Ok(found)
}
