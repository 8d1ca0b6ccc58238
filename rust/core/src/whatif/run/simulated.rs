//! A simulated run as a recording: the records of the run before the change, at their new times.
//!
//! It need not be written, and the run before the change may be simulated itself.

use std::path::Path;
use std::sync::Arc;

use rustc_hash::{FxHashMap, FxHashSet};
use whywait_otf2::enums::{Paradigm, RegionRole};
use whywait_otf2::records::{Definition, Region, Text};
use whywait_otf2::{
    Anchor, AttributeValue, Attributes, Definitions, Event, EventSink, EventStream, Events, ReadSummary, Recording,
};

use super::inserted::{At, CALLS, Inserted, Item, wait_times};
use super::record_times::Map;
use super::stamps::Stamps;
use crate::Result;
use crate::analysis::Analysis;
use crate::ids::LocationId;
use crate::parallel::iter::prelude::*;
use crate::trace::Bounds;
use crate::trace::decode::Decoder;
use crate::whatif::changes::cut::{Gone, rows};
use crate::whatif::changes::requests::{Requests, complete_records, counter, started};
use crate::whatif::changes::side::{Side, side};
use crate::whatif::simulator::{Simulation, Simulator};

/// Name of the anchor's property with the hypotheses.
const PROPERTY: &str = "WHYWAIT::HYPOTHESES";

/// A simulated run.
#[derive(Debug)]
pub struct Simulated {
    /// The run before the change.
    analysis: Arc<Analysis>,
    simulator: Arc<Simulator>,
    simulation: Arc<Simulation>,
    anchor: Anchor,
    definitions: Definitions,
    /// The locations by their ids.
    locations: FxHashMap<u64, LocationId>,
    /// Time of the first Enter of each location, those of other processes of the analysis included, ticks.
    first_times: Vec<Option<i64>>,
    /// New times of all Enters and Leaves, by shard, ticks.
    events: Vec<Vec<i64>>,
    stamps: Stamps,
    /// Ids of the regions of [`CALLS`], if calls are moved.
    calls: [u32; 7],
}

impl Simulated {
    /// The run that follows from a change of an analyzed one; `hypotheses` says what was changed. Collective: each process of
    /// the analysis has the events of its own locations.
    pub fn new(
        analysis: Arc<Analysis>,
        simulator: Arc<Simulator>,
        simulation: Arc<Simulation>,
        hypotheses: String,
    ) -> Result<Self> {
        let trace = &analysis.trace;
        let events = simulator.events(trace, &simulation);
        let waits = simulator.moves.calls().map(|(location, of)| {
            let (_, end) = wait_times(trace, (&simulator, &simulation), &events, location, of);
            ((trace.position(location), of.instance), end)
        });
        let stamps = Stamps::new(trace, &events, &waits.collect())?;
        let mut anchor = trace.recording().anchor().clone();
        (anchor.number_of_snapshots, anchor.number_of_thumbnails) = (0, 0);
        anchor.properties.push((PROPERTY.to_owned(), hypotheses));
        let definitions = Definitions::default();
        let locations = trace.definitions.locations.iter().zip(0..);
        let locations = locations.map(|(location, index)| (location.id, LocationId::at(index))).collect();
        let first_time = |location: LocationId| {
            let range = trace.shard(location).events_of(location);
            events[trace.position(location)][range].first().copied()
        };
        let own: Vec<Option<i64>> = trace.own_locations().map(LocationId::at).map(first_time).collect();
        let first_times = trace.exchange.allgather(own)?.concat();
        let calls = [0; 7];
        let mut run = Self {
            analysis,
            simulator,
            simulation,
            anchor,
            definitions,
            locations,
            first_times,
            events,
            stamps,
            calls,
        };
        let added = if run.simulator.moves.is_empty() { Vec::new() } else { run.add_calls() };
        run.definitions = run.changed_definitions(added)?;
        Ok(run)
    }

    /// The definitions with the length of this run, and the number of events of each location.
    fn changed_definitions(&self, added: Vec<Definition>) -> Result<Definitions> {
        let trace = &self.analysis.trace;
        let locations = trace.own_locations().into_par_iter().map(LocationId::at);
        let counts = locations.map(|location| {
            let id = trace.definitions.locations[location].id;
            let shard = trace.shard(location);
            let records = shard.spans[shard.local(location)].events;
            if Gone::new(&self.simulator.cut, trace, location).is_empty()
                && self.simulator.moves.of(location).is_empty()
                && shard.call_samples.of(shard.local(location)).is_empty()
            {
                return Ok((id, records));
            }
            // A location that cannot be read was not simulated either.
            let Ok(events) = trace.recording().events(id) else { return Ok((id, 0)) };
            Ok((id, self.rewrite(location, &events, &mut Nowhere)?))
        });
        let own: Vec<(u64, u64)> = counts.collect::<Result<_>>()?;
        let counts: FxHashMap<u64, u64> = trace.exchange.allgather(own)?.into_iter().flatten().collect();
        let changed = |mut definition: Definition| {
            match &mut definition {
                Definition::ClockProperties(clock) => self.simulation.set_clock(clock),
                Definition::Location(location) => {
                    location.number_of_events = counts.get(&location.id).copied().unwrap_or(0);
                }
                _ => {}
            }
            definition
        };
        let definitions = trace.records().iter().map(|definition| changed(definition.to_owned()));
        Ok(Definitions::from_records(definitions.chain(added)))
    }

    /// Finds the regions of the calls that moves insert; returns the definitions of those that the run lacks.
    fn add_calls(&mut self) -> Vec<Definition> {
        let records = self.analysis.trace.records();
        let region_of = |name: &str| records.regions.iter().find(|region| records.string(region.name) == name);
        let Some(model) = records.regions.iter().find(|region| region.paradigm == Paradigm::MPI) else {
            return Vec::new();
        };
        let mut next = records.regions.iter().map(|region| region.id).max().unwrap_or(0);
        let mut text = records.strings.iter().map(|string| string.id).max().unwrap_or(0);
        let mut added = Vec::new();
        for (id, name) in self.calls.iter_mut().zip(CALLS) {
            *id = region_of(name).map_or_else(
                || {
                    (next, text) = (next + 1, text + 1);
                    added.push(Definition::Text(Text { id: text, string: name.to_owned() }));
                    added.push(Definition::Region(Region {
                        id: next,
                        name: text,
                        canonical_name: text,
                        region_role: RegionRole::POINT2POINT,
                        ..model.clone()
                    }));
                    next
                },
                |region| region.id,
            );
        }
        added
    }

    /// Sends the records of a location that stay to `to`, at their new times, and returns their number.
    fn rewrite(&self, location: LocationId, events: &Events<'_>, to: &mut dyn EventSink) -> whywait_otf2::Result<u64> {
        let trace = &self.analysis.trace;
        let (position, shard) = (trace.position(location), trace.shard(location));
        let i = shard.local(location);
        let gone = Gone::new(&self.simulator.cut, trace, location);
        let mut buffer = Vec::new();
        let mut requests = Requests::new(counter(trace, location), gone);
        if !gone.is_empty() {
            complete_records(events.read(&mut buffer, &mut requests))?;
        }
        let mut rewritten = Rewritten {
            map: self.map(location),
            gone,
            vanishing: requests.receives(),
            started: 0,
            sent: rows(&self.stamps.sends, position, shard.sends.range(i)),
            received: rows(&self.stamps.receives, position, shard.receives.range(i)),
            requests: FxHashSet::default(),
            decoder: counter(trace, location),
            inserted: self.inserted(location, gone.first),
            to,
            attributes: Vec::new(),
            last: i64::MIN,
            records: 0,
        };
        complete_records(events.read(&mut buffer, &mut rewritten))?;
        Ok(rewritten.records)
    }

    /// What is inserted at a location, whose first event has a position; `None` if nothing is.
    fn inserted(&self, location: LocationId, first: u32) -> Option<Inserted<'_>> {
        let moves = self.simulator.moves.of(location);
        let of = (&*self.simulator, &*self.simulation);
        let times = moves.iter().map(|of_call| wait_times(&self.analysis.trace, of, &self.events, location, of_call));
        (!moves.is_empty()).then(|| Inserted::new(moves, times.collect(), self.calls, first))
    }

    /// The map from measured to new times of a location; without events, that of its process's master.
    fn map(&self, location: LocationId) -> Map<'_> {
        let trace = &self.analysis.trace;
        let shard = trace.shard(location);
        let process = trace.definitions.locations[location].process;
        let own = shard.has_calls(location);
        let from = if own || process.is_none() { location } else { trace.definitions.master(process) };
        let events = shard.events_of(from);
        let (graph, times) = (&self.simulator.graph, &self.simulator.graph.times);
        Map {
            measured: &shard.events.time[events.clone()],
            new: &self.events[trace.position(from)][events.clone()],
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

impl Recording for Simulated {
    fn path(&self) -> &Path {
        self.analysis.trace.recording().path()
    }

    fn name(&self) -> &str {
        self.analysis.trace.recording().name()
    }

    fn anchor(&self) -> &Anchor {
        &self.anchor
    }

    fn definitions(&self) -> &Definitions {
        &self.definitions
    }

    fn expected_events(&self, location: &whywait_otf2::records::Location) -> u64 {
        let known = self.locations.get(&location.id);
        known.map_or(location.number_of_events, |&known| self.analysis.trace.definitions.locations[known].events)
    }

    fn events(&self, location: u64) -> whywait_otf2::Result<Events<'_>> {
        let trace = &self.analysis.trace;
        let before = trace.recording().events(location)?;
        let location = self.locations.get(&location).copied();
        Ok(Events::new(SimulatedEvents { run: self, location, before }))
    }
}

/// The records of a location.
struct SimulatedEvents<'a> {
    run: &'a Simulated,
    /// `None` if it is not defined.
    location: Option<LocationId>,
    before: Events<'a>,
}

impl EventStream for SimulatedEvents<'_> {
    fn read(&self, sink: &mut dyn EventSink) -> whywait_otf2::Result<ReadSummary> {
        let rewrite = |location| self.run.rewrite(location, &self.before, sink);
        let own = self.location.filter(|&location| self.run.analysis.trace.owns(location));
        let events = own.map(rewrite).transpose()?.unwrap_or(0);
        Ok(ReadSummary { events, ..ReadSummary::default() })
    }

    fn first_time(&self) -> Option<i64> {
        self.run.first_times[self.location?]
    }

    fn local_definitions(&self) -> &[Definition] {
        self.before.local_definitions()
    }
}

/// Receives records that are only counted.
struct Nowhere;

impl EventSink for Nowhere {
    fn enter(&mut self, _: i64, _: u32) {}

    fn leave(&mut self, _: i64, _: u32) {}

    fn record(&mut self, _: i64, _: &Event<'_>, _: &Attributes<'_>) {}
}

/// The state of a location between two of its records.
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
    inserted: Option<Inserted<'a>>,
    to: &'a mut dyn EventSink,
    attributes: Vec<AttributeValue>,
    /// Time of the last record, and the number of records.
    last: i64,
    records: u64,
}

impl Rewritten<'_> {
    /// Time of the next record.
    fn stamp(&mut self, time: i64) -> i64 {
        self.records += 1;
        self.last = self.last.max(time);
        self.last
    }

    /// Passes on an Enter or a Leave, unless it vanishes or something else stands for it.
    fn region(&mut self, item: Item) {
        let mut attributes = std::mem::take(&mut self.attributes);
        let behind = self.decoder.positions();
        if !self.gone.event(behind) {
            let time = self.map.of_event(behind, self.decoder.now());
            let mut instead = None;
            if let Some(inserted) = &mut self.inserted {
                let waits = inserted.waits(behind - 1, false);
                instead = match item {
                    Item::Enter(region) => inserted.enter(behind, time, region),
                    _ => inserted.leave(time),
                };
                self.insert(waits);
            }
            if let Some(instead) = instead {
                self.insert(instead);
            } else {
                let time = self.stamp(time);
                if !attributes.is_empty() {
                    self.to.attributed(&Attributes::new(&attributes));
                }
                item.send(time, self.to);
            }
            if let Some(inserted) = &mut self.inserted {
                let waits = inserted.waits(behind, true);
                self.insert(waits);
            }
        }
        attributes.clear();
        self.attributes = attributes;
    }

    /// Passes on records that the measured run does not have.
    fn insert(&mut self, records: Vec<At>) {
        for (time, item) in records {
            let time = self.stamp(time);
            item.send(time, self.to);
        }
    }
}

impl EventSink for Rewritten<'_> {
    fn enter(&mut self, time: i64, region: u32) {
        let skipped = self.decoder.skipped();
        self.decoder.enter(time, region);
        if skipped == self.decoder.skipped() {
            self.region(Item::Enter(region));
        }
    }

    fn leave(&mut self, time: i64, region: u32) {
        let skipped = self.decoder.skipped();
        self.decoder.leave(time, region);
        if skipped == self.decoder.skipped() {
            self.region(Item::Leave(region));
        }
    }

    fn record(&mut self, time: i64, record: &Event<'_>, attributes: &Attributes<'_>) {
        // Samples say what the measured run did; of the simulated one, nothing has been seen.
        if self.decoder.is_of_sample(record) {
            return;
        }
        let (before, events) = (self.decoder.messages(), self.decoder.positions());
        let skipped = self.decoder.skipped();
        self.decoder.record(time, record, attributes);
        if skipped != self.decoder.skipped() {
            return;
        }
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
        if let Some(instead) = self.inserted.as_mut().and_then(|inserted| inserted.record(to, &event)) {
            self.insert(instead);
            return;
        }
        let time = self.stamp(to);
        self.to.record(time, &event, attributes);
    }

    fn attributed(&mut self, attributes: &Attributes<'_>) {
        self.attributes.extend(attributes);
    }
}
