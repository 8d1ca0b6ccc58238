//! When each device was busy, over all streams and processes that share it: the analysis has them in one process.

use rustc_hash::FxHashMap;

use crate::ids::LocationId;
use crate::matching::launches::Span;
use crate::trace::{Trace, devices};

/// When each device was busy.
pub(super) struct BusyTimes {
    /// The number of the device of each stream.
    pub device: FxHashMap<LocationId, u32>,
    /// The kernels of each device, by begin: begin, stream, and the latest end of all up to this one.
    ran: Vec<Vec<(i64, LocationId, i64)>>,
}

impl BusyTimes {
    /// Collects the kernels of all streams.
    pub(super) fn new<'a>(trace: &Trace, runs: impl Iterator<Item = &'a Span>) -> Self {
        let device = devices::of_streams(trace.records(), &trace.definitions.locations);
        let mut rows: Vec<(u32, i64, LocationId, i64)> =
            runs.map(|run| (device[&run.location], run.enter, run.location, run.leave)).collect();
        rows.sort_unstable();
        let number = device.values().max().map_or(0, |&last| last as usize + 1);
        let mut ran = vec![Vec::new(); number];
        for of_device in rows.chunk_by(|a, b| a.0 == b.0) {
            let mut latest = i64::MIN;
            ran[of_device[0].0 as usize].extend(of_device.iter().map(|&(_, begin, stream, end)| {
                latest = latest.max(end);
                (begin, stream, latest)
            }));
        }
        Self { device, ran }
    }

    /// When the device had ended everything that began before `run`; `None` before the first.
    pub(super) fn previous_end(&self, run: &Span) -> Option<i64> {
        let ran = &self.ran[self.device[&run.location] as usize];
        let earlier = ran.partition_point(|&(begin, stream, _)| (begin, stream) < (run.enter, run.location));
        earlier.checked_sub(1).map(|last| ran[last].2)
    }
}
