//! Time and visits by call path, and all counts that need no other location.
//!
//! *Source*: specification.md#counts-and-bytes, specification.md#time.

use super::findings::Findings;
use crate::ids::CallPathId;
use crate::severity::{Accumulator, Metric, volume};
use crate::trace::columns::{COLLECTIVE_IO, Collective};
use crate::trace::{Shard, Trace};

/// Counts the profile, sends and collective operations of a shard.
pub fn book(trace: &Trace, shard: &Shard) -> Findings {
    let mut cells = Accumulator::new(&trace.tree);
    for i in 0..shard.locations.len() {
        for cell in shard.profile.of(i) {
            cells.add(Metric::Time, cell.callpath, cell.time);
            cells.add(Metric::Visits, cell.callpath, cell.visits as i64);
        }
        // What devices send each other is no communication of processes.
        if trace.definitions.locations[shard.location(i)].is_stream() {
            cells.end_location(shard.location(i));
            continue;
        }
        for send in shard.sends.of(i) {
            let callpath = shard.callpath(send.instance);
            let metric = if send.bytes == 0 { Metric::SyncsSend } else { Metric::CommsSend };
            cells.add(metric, callpath, 1);
            cells.add(Metric::BytesSent, callpath, volume(send.bytes));
        }
        for row in shard.collectives.of(i).iter().filter(|row| row.operation != COLLECTIVE_IO) {
            book_collective(&mut cells, shard.callpath(row.instance), row);
        }
        cells.end_location(shard.location(i));
    }
    Findings { severities: cells.finish(), ..Findings::default() }
}

fn book_collective(cells: &mut Accumulator, callpath: CallPathId, row: &Collective) {
    let metric = match (row.sent, row.received) {
        (0, 0) => Metric::SyncsCollective,
        (_, 0) => Metric::CommsSource,
        (0, _) => Metric::CommsDestination,
        _ => Metric::CommsExchange,
    };
    cells.add(metric, callpath, 1);
    cells.add(Metric::BytesOut, callpath, volume(row.sent));
    cells.add(Metric::BytesIn, callpath, volume(row.received));
}
