//! The records of a run, from its archive or from another run at new times.
//!
//! A simulated run need not be written: its records are those of the run before the change, which may be simulated
//! itself.

use std::ops::RangeInclusive;

use rayon::prelude::*;
use rustc_hash::FxHashSet;
use whywait_otf2::records::ClockProperties;
use whywait_otf2::{Archive, AttributeValue, Attributes, Event, EventSink};

use super::record_times::Map;
use super::stamps::Stamps;
use crate::Result;
use crate::ids::{Ids, LocationId};
use crate::trace::decode::Decoder;
use crate::trace::{Bounds, Shard, Trace};
use crate::whatif::changes::cut::{Cut, Gone, rows};
use crate::whatif::changes::requests::{Requests, started};
use crate::whatif::changes::side::{Side, side};
use crate::whatif::simulator::{Simulation, Simulator};

/// Where the records of a run come from.
#[derive(Debug)]
pub enum Source<'a> {
    /// From its archive.
    Archive(&'a Archive),
    /// From another run, at new times.
    Simulated(Box<Simulated<'a>>),
}

/// A simulated run: its records are those of the run before the change, at new times.
#[derive(Debug)]
pub struct Simulated<'a> {
    /// Where the records of the run before the change come from.
    of: Source<'a>,
    /// Times outside of them are invalid in these records.
    bounds: Bounds,
    pub(in crate::whatif) simulator: &'a Simulator,
    pub(in crate::whatif) simulation: &'a Simulation,
    /// The run before the change.
    pub(in crate::whatif) trace: &'a Trace,
    hypotheses: &'a str,
    events: Vec<Vec<i64>>,
    stamps: Stamps,
}

impl<'a> Source<'a> {
    /// The archive of the run that was measured.
    fn archive(&self) -> &'a Archive {
        match self {
            Self::Archive(archive) => archive,
            Self::Simulated(run) => run.archive(),
        }
    }

    /// What was changed, change by change.
    fn hypotheses(&self) -> Vec<&'a str> {
        match self {
            Self::Archive(_) => Vec::new(),
            Self::Simulated(run) => run.hypotheses(),
        }
    }

    /// The clock properties of the run, if it has any.
    fn clock(&self) -> Option<ClockProperties> {
        match self {
            Self::Archive(archive) => archive.definitions().clock_properties.first().cloned(),
            Self::Simulated(run) => run.clock(),
        }
    }

    /// The range of times of its events.
    fn bounds(&self, trace: &Trace) -> Bounds {
        match self {
            Self::Archive(archive) => Bounds::new(archive, &trace.definitions),
            Self::Simulated(run) => run.new_bounds(),
        }
    }

    /// The calls that do nothing but test requests that vanish, as ranges of events by location; none if nothing is
    /// cut.
    pub(in crate::whatif) fn idle_tests(&self, trace: &Trace, cut: &Cut) -> Result<Vec<Vec<RangeInclusive<u32>>>> {
        let bounds = self.bounds(trace);
        let find = |location: LocationId| {
            let gone = Gone::new(cut, trace, location);
            let mut requests = Requests::new(counter(trace, self.archive(), bounds, location), gone);
            if !gone.is_empty() {
                self.read(location, trace.definitions.locations[location].id, &mut requests)?;
            }
            Ok(requests.idle_tests())
        };
        (0..trace.definitions.locations.len()).into_par_iter().map(LocationId::at).map(find).collect()
    }

    /// Sends the records of a location with this id to `sink`; of a truncated file, those before its end.
    fn read(&self, location: LocationId, id: u64, sink: &mut dyn EventSink) -> Result<()> {
        match self {
            Self::Archive(archive) => match archive.location(id)?.read_events(&mut Vec::new(), sink) {
                Ok(_) | Err(whywait_otf2::Error::Malformed { .. }) => Ok(()),
                Err(error) => Err(error.into()),
            },
            Self::Simulated(run) => run.location(location, &mut Forwarded(sink)),
        }
    }
}

/// A decoder that counts the events of a location as the analysis does.
fn counter<'a>(trace: &'a Trace, archive: &'a Archive, bounds: Bounds, location: LocationId) -> Decoder<'a> {
    let process = trace.definitions.locations[location].process;
    let shard = Shard {
        locations: Ids { start: location, end: LocationId::at(location.index() + 1) },
        processes: Ids { start: process, end: process },
        ..Shard::default()
    };
    let mut decoder = Decoder::new(archive.definitions(), &trace.regions, &trace.definitions, bounds, shard);
    decoder.begin_location(location);
    decoder
}

/// Receives the records of a simulated run.
pub(in crate::whatif) trait Records {
    /// Takes the next record of the current location.
    fn put(&mut self, time: i64, event: &Event<'_>, attributes: &Attributes<'_>) -> whywait_otf2::Result<()>;
}

/// Receives records as from a reader.
pub(in crate::whatif) struct Forwarded<'a>(pub &'a mut dyn EventSink);

impl Records for Forwarded<'_> {
    fn put(&mut self, time: i64, event: &Event<'_>, attributes: &Attributes<'_>) -> whywait_otf2::Result<()> {
        match *event {
            Event::Enter { region } => {
                self.0.attributed(attributes);
                self.0.enter(time, region);
            }
            Event::Leave { region } => {
                self.0.attributed(attributes);
                self.0.leave(time, region);
            }
            _ => self.0.record(time, event, attributes),
        }
        Ok(())
    }
}

impl<'a> Simulated<'a> {
    /// A simulated run from the run before the change: `of` has the records of that, `trace` is its decoded form, and
    /// `hypotheses` says what was changed.
    pub fn new(
        of: Source<'a>,
        (simulator, simulation): (&'a Simulator, &'a Simulation),
        trace: &'a Trace,
        hypotheses: &'a str,
    ) -> Result<Self> {
        let events = simulator.events(trace, simulation);
        let stamps = Stamps::new(trace, &events)?;
        let bounds = of.bounds(trace);
        Ok(Self { of, bounds, simulator, simulation, trace, hypotheses, events, stamps })
    }

    /// The archive of the run that was measured.
    pub(in crate::whatif) fn archive(&self) -> &'a Archive {
        self.of.archive()
    }

    /// What was changed, change by change.
    pub(in crate::whatif) fn hypotheses(&self) -> Vec<&'a str> {
        let mut all = self.of.hypotheses();
        all.push(self.hypotheses);
        all
    }

    /// The clock properties of the run, if it has any.
    pub(in crate::whatif) fn clock(&self) -> Option<ClockProperties> {
        let mut clock = self.of.clock()?;
        self.simulation.set_clock(&mut clock);
        Some(clock)
    }

    /// The range of times of its events.
    pub(in crate::whatif) fn new_bounds(&self) -> Bounds {
        Bounds::of(self.clock().as_ref(), self.simulation.span.0)
    }

    /// Writes the records of a location to a sink.
    pub(in crate::whatif) fn location(&self, location: LocationId, to: &mut dyn Records) -> Result<()> {
        let id = self.trace.definitions.locations[location].id;
        let (position, shard) = (self.trace.position(location), self.trace.shard(location));
        let i = shard.local(location);
        let gone = Gone::new(&self.simulator.cut, self.trace, location);
        let mut requests = Requests::new(self.decoder(location), gone);
        if !gone.is_empty() {
            self.of.read(location, id, &mut requests)?;
        }
        let mut rewritten = Rewritten {
            map: self.map(location),
            gone,
            vanishing: requests.receives(),
            started: 0,
            sent: rows(&self.stamps.sends, position, shard.sends.range(i)),
            received: rows(&self.stamps.receives, position, shard.receives.range(i)),
            requests: FxHashSet::default(),
            decoder: self.decoder(location),
            to,
            attributes: Vec::new(),
            last: i64::MIN,
            failed: Ok(()),
        };
        self.of.read(location, id, &mut rewritten)?;
        Ok(rewritten.failed?)
    }

    fn decoder(&self, location: LocationId) -> Decoder<'a> {
        counter(self.trace, self.archive(), self.bounds, location)
    }

    /// The map from measured to new times of a location; without events, that of its process's master.
    fn map(&self, location: LocationId) -> Map<'_> {
        let shard = self.trace.shard(location);
        let range = |location: LocationId| {
            let i = shard.local(location);
            shard.event_offsets[i] as usize..shard.event_offsets[i + 1] as usize
        };
        let process = self.trace.definitions.locations[location].process;
        let own = !range(location).is_empty();
        let from = if own || process.is_none() { location } else { self.trace.definitions.master(process) };
        let events = range(from);
        let (graph, times) = (&self.simulator.graph, &self.simulator.graph.times);
        Map {
            measured: &shard.events.time[events.clone()],
            new: &self.events[self.trace.position(from)][events.clone()],
            stops: graph
                .steps_of(from)
                .filter(|&step| graph.kinds[step].is_stop())
                .map(|step| {
                    let position = graph.steps[step].position - events.start as u32;
                    (position, times[step], times[step] + self.simulation.times.shift(step))
                })
                .collect(),
            own,
        }
    }
}

/// The state of a location that is being written.
struct Rewritten<'a> {
    map: Map<'a>,
    gone: Gone<'a>,
    /// Latest time of each send, earliest of each receive.
    sent: &'a [i64],
    received: &'a [i64],
    /// Numbers of the records that start the request of a vanishing receive, and the number of such records so far.
    vanishing: FxHashSet<u32>,
    started: u32,
    /// Requests of messages that vanish, until they are complete.
    requests: FxHashSet<u64>,
    /// Counts events as the analysis does.
    decoder: Decoder<'a>,
    to: &'a mut dyn Records,
    attributes: Vec<AttributeValue>,
    /// Time of the last record.
    last: i64,
    failed: whywait_otf2::Result<()>,
}

impl Rewritten<'_> {
    fn write_at(&mut self, time: i64, event: &Event<'_>, attributes: &Attributes<'_>) {
        let time = time.max(self.last);
        self.last = time;
        if self.failed.is_ok() {
            self.failed = self.to.put(time, event, attributes);
        }
    }

    fn region(&mut self, event: &Event<'_>) {
        let mut attributes = std::mem::take(&mut self.attributes);
        if !self.gone.event(self.decoder.positions()) {
            let time = self.map.new_time(self.decoder.positions(), self.decoder.now(), Side::Both);
            self.write_at(time, event, &Attributes::new(&attributes));
        }
        attributes.clear();
        self.attributes = attributes;
    }
}

impl EventSink for Rewritten<'_> {
    fn enter(&mut self, time: i64, region: u32) {
        self.decoder.enter(time, region);
        self.region(&Event::Enter { region });
    }

    fn leave(&mut self, time: i64, region: u32) {
        self.decoder.leave(time, region);
        self.region(&Event::Leave { region });
    }

    fn record(&mut self, time: i64, record: &Event<'_>, attributes: &Attributes<'_>) {
        let (before, events) = (self.decoder.messages(), self.decoder.positions());
        self.decoder.record(time, record, attributes);
        let (sends, receives) = self.decoder.messages();
        let is_gone = |rows: &[bool], before: usize, now: usize| now > before && rows.get(before) == Some(&true);
        if is_gone(self.gone.sends, before.0, sends) {
            if let Event::MpiIsend { request_id, .. } = record {
                self.requests.insert(*request_id);
            }
            return;
        }
        if let Some(request) = started(record) {
            self.started += 1;
            if self.vanishing.contains(&(self.started - 1)) {
                self.requests.insert(request);
                return;
            }
        }
        let completes = match record {
            Event::MpiIsendComplete { request_id }
            | Event::MpiRequestTest { request_id }
            | Event::MpiRequestCancelled { request_id } => self.requests.contains(request_id),
            _ => false,
        };
        if let Event::MpiIsendComplete { request_id }
        | Event::MpiRequestCancelled { request_id }
        | Event::MpiIrecv { request_id, .. }
        | Event::MpiImrecv { request_id, .. } = record
        {
            self.requests.remove(request_id);
        }
        // A record that is an event has its own position, others that of the next event.
        let behind = self.decoder.positions();
        let is_enclosed = if behind > events { self.gone.event(behind) } else { self.gone.record(behind, record) };
        if completes || is_enclosed || is_gone(self.gone.receives, before.1, receives) {
            return;
        }
        let event = if let Event::BufferFlush { stop_time } = *record {
            // Its begin and end become events once another record follows.
            let Bounds { first, last, .. } = self.decoder.bounds();
            let stop_time = stop_time.clamp(first, last);
            let behind = self.map.measured.partition_point(|&event| event <= stop_time);
            Event::BufferFlush { stop_time: self.map.new_time(behind, stop_time, Side::Both) }
        } else {
            *record
        };
        let mut to = self.map.new_time(behind, self.decoder.now(), side(record));
        if sends > before.0 {
            to = to.min(self.sent.get(before.0).copied().unwrap_or(i64::MAX));
        }
        if receives > before.1 {
            to = to.max(self.received.get(before.1).copied().unwrap_or(i64::MIN));
        }
        self.write_at(to, &event, attributes);
    }

    fn attributed(&mut self, attributes: &Attributes<'_>) {
        self.attributes.extend(attributes);
    }
}
