//! Tracks of recorded counters: the mean between samples of a level, the growth per second of all others.

use std::io::Write;

use bitcode::{Decode, Encode};

use super::packets::Track;
use super::tracks::{Writer, thread_track};
use crate::Result;
use crate::counters::recorded;
use crate::export::selection::Selection;
use crate::ids::LocationId;
use crate::trace::Trace;
use crate::trace::counters::Kind;

/// A counter of a location over time.
#[derive(Encode, Decode)]
pub(super) struct Course {
    location: LocationId,
    counter: u32,
    /// Whether its scope is the location.
    is_own: bool,
    /// Begin and end of stretches, ticks, and the mean of a level or the growth per tick.
    stretches: Vec<(i64, i64, f64)>,
}

/// The counters of a location that are written.
pub(super) fn of_location(trace: &Trace, kinds: &[Kind], selection: &Selection, location: LocationId) -> Vec<Course> {
    if !selection.has(trace, location) {
        return Vec::new();
    }
    let found = recorded(trace.reread(), kinds, location).into_iter().map(|recording| {
        let stretches = recording.series.course(selection.shortest);
        let stretches = stretches.filter(|&(from, until, _)| selection.overlaps(from, until)).collect();
        Course { location, counter: recording.counter, is_own: recording.is_own, stretches }
    });
    found.collect()
}

impl<W: Write> Writer<'_, W> {
    /// Writes a counter, below the thread it belongs to, or below the process that recorded it.
    pub(super) fn counter(&mut self, course: &Course, kinds: &[Kind]) -> Result<()> {
        let kind = kinds[course.counter as usize];
        let counter = &self.trace.definitions.counters.all[course.counter as usize];
        let is_level = matches!(kind, Kind::Level { .. } | Kind::Samples);
        let factor = counter.factor() * if is_level { 1.0 } else { self.trace.resolution as f64 };
        let mut end: Option<(Track, i64)> = None;
        let mut shown = None;
        for &(from, until, mean) in &course.stretches {
            let track = if let Some((track, _)) = end {
                track
            } else {
                let location = course.location;
                let above = if course.is_own { thread_track(location) } else { self.process_track(location) };
                let unit = if is_level { counter.unit.clone() } else { format!("{}/s", counter.unit) };
                let track = self.new_counter(Some(above), (&counter.name, &unit), course.counter)?;
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
