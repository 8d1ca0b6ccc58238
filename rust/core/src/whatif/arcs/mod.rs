//! Who waits for whom: the arcs of the graph, one file for each kind of communication.

pub(super) mod collectives;
pub(super) mod devices;
pub(super) mod intercomms;
pub(super) mod messages;
pub(super) mod one_sided;
pub(super) mod threads;

use crate::analysis::Analysis;
use crate::waits::WaitState;

/// The waits of this process of the analysis.
fn own_waits(analysis: &Analysis) -> impl Iterator<Item = &WaitState> {
    (0..analysis.trace.shards.len()).flat_map(|i| analysis.waits.of(i).1)
}
