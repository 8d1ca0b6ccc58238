//! Messages: sent before received; and, if their send is synchronous, posted before completed.

use crate::Result;
use crate::clocks::constraints::Found;
use crate::clocks::kind::Kind;
use crate::matching::messages;
use crate::matching::protocol::is_synchronous;
use crate::trace::Trace;

/// The constraints of all messages, by receiving shard.
pub(super) fn collect(trace: &Trace) -> Result<Vec<Found>> {
    let name = |region| trace.regions.name(trace.records(), region);
    let synchronous: Vec<bool> = trace.tree.nodes().iter().map(|node| is_synchronous(name(node.region))).collect();
    let (found, _) = messages::match_all(trace, |_, shard, matches| {
        let mut found = Found { links: Vec::with_capacity(shard.receives.rows.len()), ..Found::default() };
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
                if synchronous[send.callpath.index()] && send.complete_leave != i64::MIN {
                    let posted = (shard.owner(location, receive.request), shard.enter(receive.request));
                    found.link(Kind::SynchronousSend, posted, (send.location, send.complete_leave));
                }
            }
        }
        found
    })?;
    Ok(found)
}
