//! Times in the files of other programs.

use crate::trace::Trace;

/// The times of a run.
#[derive(Clone, Copy)]
pub(crate) struct Clock {
    /// Begin of the run, ticks.
    pub(crate) begin: i64,
    /// Ticks per second.
    resolution: u64,
}

impl Clock {
    pub(crate) fn of(trace: &Trace) -> Self {
        Self { begin: trace.span().map_or(0, |(first, _)| first), resolution: trace.resolution }
    }

    /// A time in ns since the begin of the run.
    pub(crate) fn nanoseconds(self, time: i64) -> u64 {
        let since = i128::from(time) - i128::from(self.begin);
        let resolution = i128::from(self.resolution);
        let rounded = if resolution == 1_000_000_000 {
            since
        } else {
            (since * 1_000_000_000 + resolution / 2).div_euclid(resolution)
        };
        rounded.clamp(0, i128::from(u64::MAX)) as u64
    }
}
