//! The wait states that were found.

use crate::analysis::Analysis;
use crate::waits::WaitState;

/// The waits of this process of the analysis.
pub(super) fn own_waits(analysis: &Analysis) -> impl Iterator<Item = &WaitState> {
    (0..analysis.trace.shards.len()).flat_map(|i| analysis.waits.of(i).1)
}
