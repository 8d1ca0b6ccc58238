//! Which part of a run is written: processes, a time window, a shortest duration.

use crate::ids::LocationId;
use crate::trace::{Shard, Trace};

/// The part of a run to write.
#[derive(Clone, Debug)]
pub struct Selection {
    /// For each process, whether it is written; `None` writes all, and locations that belong to no process.
    pub processes: Option<Vec<bool>>,
    /// Only items that overlap this window, ticks.
    pub window: (i64, i64),
    /// Shortest duration of calls, waits, transfers and stretches of the critical path, ticks.
    pub shortest: i64,
}

impl Selection {
    pub(crate) fn has(&self, trace: &Trace, location: LocationId) -> bool {
        let process = trace.definitions.locations[location].process;
        self.processes.as_ref().is_none_or(|chosen| chosen.get(process.index()).copied().unwrap_or(false))
    }

    pub(crate) fn lasts(&self, from: i64, to: i64) -> bool {
        self.overlaps(from, to) && to - from >= self.shortest
    }

    pub(crate) fn overlaps(&self, from: i64, to: i64) -> bool {
        from <= self.window.1 && to >= self.window.0
    }
}

/// For each Enter and Leave of a shard, whether it is written.
pub(crate) struct WrittenEvents(Vec<bool>);

impl WrittenEvents {
    pub(crate) fn of(trace: &Trace, shard: &Shard, selection: &Selection) -> Self {
        let mut kept = vec![false; shard.events.len()];
        let mut open: Vec<u32> = Vec::new();
        for (i, location) in shard.locations.enumerate() {
            if !selection.has(trace, location) {
                continue;
            }
            for position in shard.event_offsets[i]..shard.event_offsets[i + 1] {
                if !shard.events.is_leave(position) {
                    open.push(position);
                } else if let Some(enter) = open.pop() {
                    let time = |position: u32| shard.events.time[position as usize];
                    if selection.lasts(time(enter), time(position)) {
                        kept[enter as usize] = true;
                        kept[position as usize] = true;
                    }
                }
            }
            open.clear();
        }
        Self(kept)
    }

    pub(crate) fn has(&self, position: u32) -> bool {
        self.0.get(position as usize).copied().unwrap_or(false)
    }
}
