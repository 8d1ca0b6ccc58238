//! Tracks of recorded counters: the mean between samples of a level, the growth per second of all others.

use std::io::Write;

use super::packets::Track;
use super::tracks::Writer;
use crate::Result;
use crate::counters::{Recorded, RecordedCounter, recorded};
use crate::ids::LocationId;
use crate::trace::counters::Kind;

impl<W: Write> Writer<'_, W> {
    /// Writes all counters, each below the thread it belongs to, or below the process that recorded it.
    pub(super) fn counters(&mut self, found: &Recorded) -> Result<()> {
        if found.kinds.is_empty() {
            return Ok(());
        }
        let trace = self.trace;
        for location in (0..trace.definitions.locations.len()).map(LocationId::at) {
            if !self.selection.has(trace, location) {
                continue;
            }
            self.look_up()?;
            for recording in recorded(trace.reread(), &found.kinds, location) {
                self.counter(location, &recording, found.kinds[recording.counter as usize])?;
            }
        }
        Ok(())
    }

    fn counter(&mut self, location: LocationId, recording: &RecordedCounter, kind: Kind) -> Result<()> {
        let counter = &self.trace.definitions.counters.all[recording.counter as usize];
        let is_level = matches!(kind, Kind::Level { .. } | Kind::Samples);
        let factor = counter.factor() * if is_level { 1.0 } else { self.trace.resolution as f64 };
        let mut end: Option<(Track, i64)> = None;
        let mut shown = None;
        for (from, until, mean) in recording.series.course(self.selection.shortest) {
            if !self.selection.overlaps(from, until) {
                continue;
            }
            let track = if let Some((track, _)) = end {
                track
            } else {
                let above = if recording.is_own { Self::thread_track(location) } else { self.process_track(location) };
                let unit = if is_level { counter.unit.clone() } else { format!("{}/s", counter.unit) };
                let track = self.new_counter(Some(above), (&counter.name, &unit), recording.counter)?;
                self.written.counters += 1;
                track
            };
            let value = mean * factor;
            if shown.replace(value) != Some(value) {
                let time = self.nanoseconds(from);
                self.packets.counter(time, track, value)?;
            }
            end = Some((track, until));
        }
        // The growth after the last sample is unknown.
        if let Some((track, until)) = end.filter(|_| !is_level) {
            let time = self.nanoseconds(until);
            self.packets.counter(time, track, 0.0)?;
        }
        Ok(())
    }
}
