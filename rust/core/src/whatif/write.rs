//! A simulated run as an archive: the records of the measured one at their new times (whatif.md#how-it-works).
//!
//! Every record lies between two consecutive Enters and Leaves, which the decoder counts; times alone are not enough,
//! since events of equal time may be separated. In a call, records written before the time in the library keep their
//! distance to the Enter, records written after it their distance to the Leave; elsewhere, times are interpolated
//! linearly.

use std::path::Path;

use rayon::prelude::*;
use rustc_hash::FxHashSet;
use whywait_otf2::records::Definition;
use whywait_otf2::{
    ArchiveWriter, AttributeValue, Attributes, Event, EventSink, LocalDefinitions, LocationWriter, WriteOptions,
};

use super::cut::Cut;
use super::graph::Graph;
use super::requests::{Requests, started};
use super::retime::Times;
use super::source::Source;
use super::stamps::Stamps;
use super::{Simulation, Simulator};
use crate::analysis::Analysis;
use crate::ids::{Ids, LocationId};
use crate::trace::decode::Decoder;
use crate::trace::{Bounds, Shard, Trace};
use crate::{Error, Result};

/// Name of the anchor's property with the hypotheses.
const PROPERTY: &str = "WHYWAIT::HYPOTHESES";

impl Simulator {
    /// Writes a simulated run as the archive `name` in a directory; `hypotheses` describes the changes.
    pub fn write(
        &self,
        analysis: &Analysis,
        simulation: &Simulation,
        source: &Source<'_>,
        (directory, name): (&Path, &str),
        hypotheses: &str,
    ) -> Result<()> {
        let (trace, archive) = (&analysis.trace, source.archive());
        if simulation.span.0 < 0 {
            return Err(Error::Usage(
                "the corrected times of the run begin before zero: they cannot be written".into(),
            ));
        }
        let events = self.events(trace, simulation);
        let stamps = Stamps::new(trace, &events)?;
        let mut options = WriteOptions { anchor: archive.anchor().clone(), ..WriteOptions::default() };
        options.anchor.number_of_snapshots = 0;
        options.anchor.number_of_thumbnails = 0;
        for changes in source.hypotheses().into_iter().chain([hypotheses]) {
            options.anchor.properties.push((PROPERTY.to_owned(), changes.to_owned()));
        }
        let writer = ArchiveWriter::create(directory, name, options)?;
        for definition in archive.definitions().iter() {
            let mut definition = definition.to_owned();
            if let (Definition::ClockProperties(clock), Some(known)) = (&mut definition, source.clock()) {
                *clock = known;
                simulation.set_clock(clock);
            }
            writer.define(definition);
        }
        let rewriter = Rewriter::new((self, simulation), (trace, source), &events, &stamps);
        (0..trace.definitions.locations.len())
            .into_par_iter()
            .map(LocationId::at)
            .try_for_each(|location| rewriter.write(&writer, location))?;
        Ok(writer.finish()?)
    }
}

/// Says when the records of a simulated run are, location by location.
pub(super) struct Rewriter<'a> {
    cut: &'a Cut,
    stamps: &'a Stamps,
    /// Times outside them are invalid.
    bounds: Bounds,
    trace: &'a Trace,
    graph: &'a Graph,
    times: &'a Times,
    source: &'a Source<'a>,
    events: &'a [Vec<i64>],
}

/// What takes the records of a simulated run.
pub(super) trait Records {
    /// Takes the next record of the current location.
    fn put(&mut self, time: i64, event: &Event<'_>, attributes: &Attributes<'_>) -> whywait_otf2::Result<()>;
}

impl Records for LocationWriter<'_> {
    fn put(&mut self, time: i64, event: &Event<'_>, attributes: &Attributes<'_>) -> whywait_otf2::Result<()> {
        self.write(time as u64, event, attributes)
    }
}

impl<'a> Rewriter<'a> {
    pub(super) fn new(
        (simulator, simulation): (&'a Simulator, &'a Simulation),
        (trace, source): (&'a Trace, &'a Source<'a>),
        events: &'a [Vec<i64>],
        stamps: &'a Stamps,
    ) -> Self {
        Self {
            cut: &simulator.cut,
            stamps,
            bounds: source.bounds(trace),
            trace,
            graph: &simulator.graph,
            times: &simulation.times,
            source,
            events,
        }
    }

    /// Writes a location.
    fn write(&self, writer: &ArchiveWriter, location: LocationId) -> Result<()> {
        let id = self.trace.definitions.locations[location].id;
        // A location that could not be read was not simulated either, and stays empty.
        let Ok(reader) = self.source.archive().location(id) else { return Ok(()) };
        let mut to = writer.location(id)?;
        self.location(location, &mut to)?;
        let local = reader.local_definitions();
        let local = LocalDefinitions { definitions: local.definitions.clone(), ..LocalDefinitions::default() };
        Ok(to.finish(&local)?)
    }

    /// Puts the records of a location somewhere.
    pub(super) fn location(&self, location: LocationId, to: &mut dyn Records) -> Result<()> {
        let id = self.trace.definitions.locations[location].id;
        let (position, shard) = (self.trace.position(location), self.trace.shard(location));
        let i = shard.local(location);
        let gone = self.gone(location);
        let mut requests = Requests::new(self.decoder(location), gone.receives);
        if gone.receives.contains(&true) {
            self.source.read(location, id, &mut requests)?;
        }
        let mut rewritten = Rewritten {
            map: self.map(location),
            gone,
            vanishing: requests.found(),
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
        self.source.read(location, id, &mut rewritten)?;
        Ok(rewritten.failed?)
    }

    /// A decoder that counts the events of a location as the analysis does.
    fn decoder(&self, location: LocationId) -> Decoder<'a> {
        let process = self.trace.definitions.locations[location].process;
        let shard = Shard {
            locations: Ids { start: location, end: LocationId::at(location.index() + 1) },
            processes: Ids { start: process, end: process },
            ..Shard::default()
        };
        let (trace, definitions) = (self.trace, self.source.archive().definitions());
        let mut decoder = Decoder::new(definitions, &trace.regions, &trace.definitions, self.bounds, shard);
        decoder.begin_location(location);
        decoder
    }

    /// What vanishes at a location.
    fn gone(&self, location: LocationId) -> Gone<'a> {
        let position = self.trace.position(location);
        let shard = self.trace.shard(location);
        let i = shard.local(location);
        Gone {
            cut: self.cut,
            location,
            first: shard.event_offsets[i],
            sends: rows(&self.cut.sends, position, shard.sends.range(i)),
            receives: rows(&self.cut.receives, position, shard.receives.range(i)),
        }
    }

    /// The map from measured to new times of a location; without events, that of its process's master.
    fn map(&self, location: LocationId) -> Map<'a> {
        let shard = self.trace.shard(location);
        let range = |location: LocationId| {
            let i = shard.local(location);
            shard.event_offsets[i] as usize..shard.event_offsets[i + 1] as usize
        };
        let process = self.trace.definitions.locations[location].process;
        let own = !range(location).is_empty();
        let from = if own || process.is_none() { location } else { self.trace.definitions.master(process) };
        let events = range(from);
        let (graph, times) = (self.graph, &self.graph.times);
        Map {
            measured: &shard.events.time[events.clone()],
            new: &self.events[self.trace.position(from)][events.clone()],
            stops: graph
                .steps_of(from)
                .filter(|&step| graph.kinds[step].is_stop())
                .map(|step| {
                    let position = graph.steps[step].position - events.start as u32;
                    (position, times[step], times[step] + self.times.shift(step))
                })
                .collect(),
            own,
        }
    }
}

/// Measured and new times.
struct Map<'a> {
    measured: &'a [i64],
    new: &'a [i64],
    /// Places between events: position of the next event, measured and new time.
    stops: Vec<(u32, i64, i64)>,
    /// Whether these are times of the location itself, so that its events can be counted.
    own: bool,
}

/// The end of a call to which a record keeps its distance.
#[derive(Clone, Copy)]
enum Side {
    Enter,
    Leave,
    Both,
}

impl Map<'_> {
    /// New time of a record after this many events.
    fn new_time(&self, behind: usize, time: i64, side: Side) -> i64 {
        let behind = if self.own { behind } else { self.measured.partition_point(|&event| event <= time) };
        let Some(last) = self.measured.len().checked_sub(1) else { return time };
        if behind == 0 {
            return self.new[0] - (self.measured[0] - time);
        }
        let from = self.stops.partition_point(|stop| (stop.0 as usize) < behind);
        let stops = self.stops[from..].iter().take_while(|stop| stop.0 as usize == behind);
        let (mut a, mut to_a) = (self.measured[behind - 1], self.new[behind - 1]);
        let mut side = side;
        for &(_, stop, to) in stops {
            if time == stop {
                return to;
            }
            if time < stop {
                return between((a, to_a), (stop, to), time);
            }
            (a, to_a, side) = (stop, to, Side::Both);
        }
        if behind > last {
            return to_a + (time - a);
        }
        let (b, to_b) = (self.measured[behind], self.new[behind]);
        match side {
            Side::Enter => (to_a + (time - a)).clamp(to_a, to_b),
            Side::Leave => (to_b - (b - time)).clamp(to_a, to_b),
            Side::Both => between((a, to_a), (b, to_b), time),
        }
    }
}

/// Linear interpolation between two points.
fn between((a, to_a): (i64, i64), (b, to_b): (i64, i64), time: i64) -> i64 {
    let share = |length: i64| (i128::from(time - a) * i128::from(length) / i128::from(b - a)) as i64;
    if b <= a { to_a } else { to_a + share(to_b - to_a) }
}

/// The end of its call to which a record keeps its distance, by when it is written.
fn side(record: &Event<'_>) -> Side {
    match record {
        Event::MpiSend { .. }
        | Event::MpiIsend { .. }
        | Event::MpiIrecvRequest { .. }
        | Event::MpiImrecvRequest { .. }
        | Event::MpiCollectiveBegin {}
        | Event::NonBlockingCollectiveRequest { .. }
        | Event::RmaCollectiveBegin {}
        | Event::RmaRequestLock { .. }
        | Event::RmaPut { .. }
        | Event::RmaGet { .. }
        | Event::RmaAtomic { .. } => Side::Enter,
        Event::MpiRecv { .. }
        | Event::MpiIrecv { .. }
        | Event::MpiMrecv { .. }
        | Event::MpiImrecv { .. }
        | Event::MpiIsendComplete { .. }
        | Event::MpiCollectiveEnd { .. }
        | Event::MpiRequestCancelled { .. }
        | Event::MpiRequestTest { .. }
        | Event::NonBlockingCollectiveComplete { .. }
        | Event::RmaCollectiveEnd { .. }
        | Event::RmaGroupSync { .. }
        | Event::RmaAcquireLock { .. }
        | Event::RmaReleaseLock { .. }
        | Event::RmaWaitChange { .. }
        | Event::RmaOpCompleteBlocking { .. }
        | Event::RmaOpCompleteNonBlocking { .. }
        | Event::RmaOpCompleteRemote { .. } => Side::Leave,
        _ => Side::Both,
    }
}

/// What vanishes at a location.
struct Gone<'a> {
    cut: &'a Cut,
    location: LocationId,
    /// Position of the first event.
    first: u32,
    /// For each send and receive, whether it vanishes.
    sends: &'a [bool],
    receives: &'a [bool],
}

impl Gone<'_> {
    /// Whether the last of this many events vanishes.
    fn event(&self, behind: usize) -> bool {
        behind > 0 && self.cut.has(self.location, self.first + behind as u32 - 1)
    }

    /// Whether a record after this many events vanishes.
    fn record(&self, behind: usize, record: &Event<'_>) -> bool {
        let next = self.first + behind as u32;
        match record {
            // A thread's part in a team vanishes with its begin and end, which enclose its first region.
            Event::ThreadTeamBegin { .. } => {
                self.cut.encloses(self.location, next) || self.cut.teams.contains(&(self.location, next))
            }
            Event::ThreadTeamEnd { .. } => {
                let ends = |&(location, start): &(LocationId, u32)| {
                    location == self.location
                        && self.cut.of(location).iter().any(|range| *range.start() == start && *range.end() + 1 == next)
                };
                self.cut.encloses(self.location, next) || self.cut.teams.iter().any(ends)
            }
            _ => self.cut.encloses(self.location, next),
        }
    }
}

/// What is known of some rows of a shard.
fn rows<T>(all: &[Vec<T>], shard: usize, rows: std::ops::Range<usize>) -> &[T] {
    all.get(shard).map_or(&[], |of| &of[rows])
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
    fn write(&mut self, time: i64, side: Side, event: &Event<'_>, attributes: &Attributes<'_>) {
        let time = self.map.new_time(self.decoder.positions(), time, side);
        self.write_at(time, event, attributes);
    }

    fn write_at(&mut self, time: i64, event: &Event<'_>, attributes: &Attributes<'_>) {
        let time = time.max(self.last);
        self.last = time;
        if self.failed.is_ok() {
            self.failed = self.to.put(time, event, attributes);
        }
    }

    fn region(&mut self, time: i64, event: &Event<'_>) {
        let mut attributes = std::mem::take(&mut self.attributes);
        if !self.gone.event(self.decoder.positions()) {
            self.write(time, Side::Both, event, &Attributes::new(&attributes));
        }
        attributes.clear();
        self.attributes = attributes;
    }
}

impl EventSink for Rewritten<'_> {
    fn enter(&mut self, time: i64, region: u32) {
        self.decoder.enter(time, region);
        self.region(time, &Event::Enter { region });
    }

    fn leave(&mut self, time: i64, region: u32) {
        self.decoder.leave(time, region);
        self.region(time, &Event::Leave { region });
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
            // Its begin and its end become events once another record follows.
            let behind = self.map.measured.partition_point(|&event| event <= stop_time);
            Event::BufferFlush { stop_time: self.map.new_time(behind, stop_time, Side::Both) }
        } else {
            *record
        };
        let mut to = self.map.new_time(behind, time, side(record));
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
