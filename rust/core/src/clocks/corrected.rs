//! A recording with corrected times.

use std::path::Path;
use std::sync::Arc;

use rustc_hash::FxHashMap;
use whywait_otf2::records::{Attributes, ClockOffset, Definition, Event, TypedValue};
use whywait_otf2::{Anchor, Definitions, EventSink, EventStream, Events, Oddity, ReadSummary, Recording, Result};

use super::clc::Near;
use super::timing::Timing;

/// How the times of a location are corrected.
#[derive(Clone, Debug)]
pub(super) enum Correction {
    /// By other clock offsets than those of its file.
    Offsets(Arc<[ClockOffset]>),
    /// By a function of the time that is read.
    Timing(Arc<Timing>),
}

/// A recording with corrected times; everything else is as recorded.
#[derive(Debug)]
pub(super) struct Corrected {
    recorded: Arc<dyn Recording>,
    /// By location id.
    corrections: FxHashMap<u64, Correction>,
}

impl Corrected {
    /// The recording with these corrections, by location id.
    pub(super) fn new(recorded: Arc<dyn Recording>, corrections: FxHashMap<u64, Correction>) -> Self {
        Self { recorded, corrections }
    }
}

impl Recording for Corrected {
    fn path(&self) -> &Path {
        self.recorded.path()
    }

    fn name(&self) -> &str {
        self.recorded.name()
    }

    fn anchor(&self) -> &Anchor {
        self.recorded.anchor()
    }

    fn definitions(&self) -> &Definitions {
        self.recorded.definitions()
    }

    fn oddities(&self) -> &[Oddity] {
        self.recorded.oddities()
    }

    fn events(&self, location: u64) -> Result<Events<'_>> {
        let events = self.recorded.events(location)?;
        Ok(match self.corrections.get(&location) {
            None => events,
            Some(Correction::Offsets(offsets)) => events.with_clock_offsets(offsets),
            Some(Correction::Timing(timing)) => Events::new(Retimed { events, timing }),
        })
    }
}

/// Events at corrected times.
pub(super) struct Retimed<'a> {
    pub(super) events: Events<'a>,
    pub(super) timing: &'a Timing,
}

impl EventStream for Retimed<'_> {
    fn read(&self, sink: &mut dyn EventSink) -> Result<ReadSummary> {
        self.events.read_inlined(&mut Vec::new(), &mut Retiming::new(sink, self.timing))
    }

    fn first_time(&self) -> Option<i64> {
        self.events.first_time().map(|time| self.timing.apply(time))
    }

    fn local_definitions(&self) -> &[Definition] {
        self.events.local_definitions()
    }
}

/// Passes events on at their corrected times.
struct Retiming<'a> {
    sink: &'a mut dyn EventSink,
    timing: &'a Timing,
    /// The last time that was read, and what it became: many events share one.
    last: Option<(i64, i64)>,
    near: Near,
}

impl<'a> Retiming<'a> {
    fn new(sink: &'a mut dyn EventSink, timing: &'a Timing) -> Self {
        Self { sink, timing, last: None, near: Near::default() }
    }

    #[inline]
    fn time(&mut self, read: i64) -> i64 {
        match self.last {
            Some((last, time)) if last == read => time,
            _ => {
                let time = self.timing.apply_near(read, &mut self.near);
                self.last = Some((read, time));
                time
            }
        }
    }
}

impl EventSink for Retiming<'_> {
    fn enter(&mut self, time: i64, region: u32) {
        let time = self.time(time);
        self.sink.enter(time, region);
    }

    fn leave(&mut self, time: i64, region: u32) {
        let time = self.time(time);
        self.sink.leave(time, region);
    }

    fn record(&mut self, time: i64, record: &Event<'_>, attributes: &Attributes<'_>) {
        let time = self.time(time);
        let record = match *record {
            Event::BufferFlush { stop_time } => Event::BufferFlush { stop_time: self.timing.apply(stop_time) },
            record => record,
        };
        self.sink.record(time, &record, attributes);
    }

    fn attributed(&mut self, attributes: &Attributes<'_>) {
        self.sink.attributed(attributes);
    }

    fn metric(&mut self, time: i64, metric: u32, values: &[TypedValue]) {
        let time = self.time(time);
        self.sink.metric(time, metric, values);
    }

    fn end_chunk(&mut self) {
        self.sink.end_chunk();
    }
}
