//! Reading a recorded run into shards, in parallel.

use std::ops::Range;
use std::sync::Arc;
use std::sync::atomic::Ordering;

use bitcode::{Decode, Encode};
use rustc_hash::FxHashMap;
use whywait_otf2::enums::{LocationType, MetricMode};
use whywait_otf2::{Definitions, Recording};

use super::bounds::Bounds;
use super::call_details::{CallDetails, DetailIds};
use super::calltree::{CallPath, CallTree};
use super::chunks;
use super::decode::{Decoder, DetailCollector, Progress};
use super::definition_index::DefinitionIndex;
use super::devices;
use super::locations::Location;
use super::regions::{RegionClass, Regions};
use super::shard::{Rows, Shard};
use super::task_paths::{KnownTasks, TaskPaths};
use super::task_stacks::{TaskId, TaskPart, TaskParts, TaskStacks};
use crate::diagnostics::{DiagnosticKind, Diagnostics, Place};
use crate::ids::{CallPathId, Ids, InstanceId, LocationId, ProcessId};
use crate::parallel::exchange::{Exchange, Transport};
use crate::parallel::iter::prelude::*;
use crate::{Error, Result};

/// Approximate minimum number of events per shard, so that small processes share one.
pub const SHARD_EVENTS: u64 = 1 << 18;

/// A complete run: its definitions, events and inconsistencies.
///
/// If several processes share the analysis, each has the events of its own shards; everything else is the same on all.
#[derive(Debug)]
pub struct Trace {
    /// Locations, processes, communicators.
    pub definitions: DefinitionIndex,
    /// Regions.
    pub regions: Regions,
    /// All call paths.
    pub tree: CallTree,
    /// The events: the shards that this process of the analysis owns.
    pub shards: Vec<Shard>,
    /// Inconsistencies in these.
    pub diagnostics: Diagnostics,
    /// Ticks per second.
    pub resolution: u64,
    /// Number of the shard of each location.
    pub shard_of: Vec<u32>,
    /// The owner of each shard.
    pub exchange: Exchange,
    /// Number of events read.
    pub events: u64,
    recording: Arc<dyn Recording>,
    bounds: Bounds,
    span: Option<(i64, i64)>,
    /// Processes with a truncated event file, sorted.
    truncated: Vec<ProcessId>,
}

/// What one process of the analysis tells all others about its shards.
#[derive(Encode, Decode)]
struct Block {
    tree: Vec<CallPath>,
    first: i64,
    last: i64,
    events: u64,
    truncated: Vec<ProcessId>,
    /// The error of the first unreadable event file.
    unreadable: Option<String>,
}

impl Trace {
    /// Reads all events of a run with the threads of the current pool, in shards of at least about `shard_events`
    /// events. If several processes share the analysis, each reads its part.
    ///
    /// Locations whose events cannot be read are left out; if none remains, that is an error. `modes` gives the modes of
    /// counters by name where the definitions are wrong; `fold_recursion` makes recursive calls part of the outer call.
    pub fn load(
        recording: Arc<dyn Recording>,
        shard_events: u64,
        modes: &[(String, MetricMode)],
        fold_recursion: bool,
        transport: Option<Arc<dyn Transport>>,
        progress: &Progress,
    ) -> Result<Self> {
        let records = recording.definitions();
        let mut definitions = DefinitionIndex::new(records);
        definitions.counters.set_modes(modes)?;
        if fold_recursion {
            definitions.fold_from = 0;
        }
        let regions = Regions::new(records);
        let expected: FxHashMap<u64, u64> =
            records.locations.iter().rev().map(|of| (of.id, recording.expected_events(of))).collect();
        let (blocks, weights): (Vec<Shard>, Vec<u64>) =
            blocks(&definitions, |location| expected[&location.id], shard_events).into_iter().unzip();
        let mut shard_of = vec![0; definitions.locations.len()];
        for (index, shard) in blocks.iter().enumerate() {
            shard_of[shard.locations.range()].fill(index as u32);
        }
        let exchange = Exchange::new(transport, &weights, &joined(records, &definitions, &shard_of, blocks.len()));
        let own = exchange.own();
        let bounds = Bounds::new(&*recording, &definitions);
        let details = Some(DetailIds::new(records)).filter(|ids| definitions.has_streams && !ids.is_empty());
        let loader = Loader { recording: &*recording, regions: &regions, definitions: &definitions, bounds, details };
        let blocks = blocks.into_iter().skip(own.start as usize).take(own.len()).collect::<Vec<_>>();
        let loaded: Vec<Vec<(Shard, Diagnostics)>> = blocks
            .into_par_iter()
            .of_parts(|blocks| {
                let mut buffer = Vec::new();
                blocks.map(|block| loader.load(block, own.len(), &mut buffer, progress)).collect()
            })
            .into_iter()
            .collect::<Result<_>>()?;
        let mut merged = CallTree::default();
        let mut diagnostics = Diagnostics::default();
        let mut shards = Vec::with_capacity(own.len());
        let mut in_block = Vec::with_capacity(own.len());
        for (shard, shard_notes) in loaded.into_iter().flatten() {
            in_block.push(merged.merge(shard.tree.nodes()));
            diagnostics.merge(shard_notes);
            shards.push(shard);
        }
        let spans = || shards.iter().flat_map(|shard: &Shard| &shard.spans);
        let blocks = exchange.allgather(Block {
            tree: merged.nodes().to_vec(),
            first: spans().map(|span| span.first).min().unwrap_or(i64::MAX),
            last: spans().map(|span| span.last).max().unwrap_or(i64::MIN),
            events: spans().map(|span| span.events).sum(),
            truncated: shards.iter().flat_map(|shard| shard.truncated(&definitions)).collect(),
            unreadable: diagnostics.first_detail(DiagnosticKind::Unreadable).map(str::to_owned),
        })?;
        let events = blocks.iter().map(|block| block.events).sum();
        if events == 0
            && let Some(reason) = blocks.iter().find_map(|block| block.unreadable.as_ref())
        {
            return Err(Error::Trace(format!("no event file can be read: {reason}")));
        }
        let mut tree = CallTree::default();
        let in_run: Vec<Vec<CallPathId>> = blocks.iter().map(|block| tree.merge(&block.tree)).collect();
        let in_run = &in_run[exchange.rank()];
        shards.par_iter_mut().zip(in_block).for_each(|(shard, in_block)| {
            let callpaths: Vec<CallPathId> = in_block.into_iter().map(|callpath| in_run[callpath]).collect();
            shard.renumber(&callpaths);
        });

        let first = blocks.iter().map(|block| block.first).min().unwrap_or(i64::MAX);
        let last = blocks.iter().map(|block| block.last).max().unwrap_or(i64::MIN);
        let resolution = records.clock_properties.first().map_or(1, |clock| clock.timer_resolution).max(1);
        Ok(Self {
            resolution,
            recording,
            bounds,
            span: (first <= last).then_some((first, last)),
            events,
            truncated: blocks.into_iter().flat_map(|block| block.truncated).collect(),
            definitions,
            regions,
            tree,
            shards,
            diagnostics,
            shard_of,
            exchange,
        })
    }

    /// All definition records, with the names of things.
    pub fn records(&self) -> &Definitions {
        self.recording.definitions()
    }

    /// Where the run was read from.
    pub fn recording(&self) -> &Arc<dyn Recording> {
        &self.recording
    }

    /// The range of plausible times.
    pub(crate) fn bounds(&self) -> Bounds {
        self.bounds
    }

    /// Frees the memory of all synchronizations, which the epochs replace.
    pub fn forget_synchronizations(&mut self) {
        self.shards.par_iter_mut().for_each(|shard| shard.synchronizations = Rows::default());
    }

    /// The shard of a location that this process owns.
    #[inline]
    pub fn shard(&self, location: LocationId) -> &Shard {
        &self.shards[self.position(location)]
    }

    /// The shards of this process for all threads, one at a time: some take longer than others.
    pub(crate) fn par_shards(&self) -> &[Shard] {
        &self.shards
    }

    /// Position of the shard of a location among those of this process.
    #[inline]
    pub fn position(&self, location: LocationId) -> usize {
        self.exchange.position(self.shard_of[location])
    }

    /// Whether this process of the analysis owns a location.
    pub fn owns(&self, location: LocationId) -> bool {
        self.exchange.own().contains(&self.shard_of[location])
    }

    /// The locations that this process of the analysis owns.
    pub(crate) fn own_locations(&self) -> Range<usize> {
        let ends = (self.shards.first(), self.shards.last());
        let (Some(first), Some(last)) = ends else { return 0..0 };
        first.locations.start.index()..last.locations.end.index()
    }

    /// Whether any event file of a process is truncated.
    pub fn is_truncated(&self, process: ProcessId) -> bool {
        self.truncated.binary_search(&process).is_ok()
    }

    /// The class of a region instance's region.
    #[inline]
    pub fn class(&self, shard: &Shard, instance: InstanceId) -> RegionClass {
        self.regions.class(self.tree.region(shard.callpath(instance)))
    }

    /// Index of the shard that owns a process.
    #[inline]
    pub fn owner(&self, process: ProcessId) -> u32 {
        self.shard_of[self.definitions.master(process)]
    }

    /// Reports the locations for which there is only a profile.
    pub(crate) fn other_locations(&self) -> Diagnostics {
        let mut diagnostics = Diagnostics::default();
        let time = self.span.map_or(i64::MIN, |(first, _)| first);
        for (shard, index) in self.shards.iter().flat_map(|shard| shard.locations.map(move |index| (shard, index))) {
            let location = &self.definitions.locations[index];
            let is_known = match location.kind {
                LocationType::CPU_THREAD | LocationType::UNKNOWN => true,
                LocationType::METRIC => !shard.has_calls(index),
                _ => location.is_stream(),
            };
            if !is_known {
                diagnostics.count(DiagnosticKind::NotAThread, 1, Some(Place::at(index, time)));
            }
        }
        diagnostics
    }

    /// First and last time of the run in ticks; `None` if nothing was recorded.
    pub fn span(&self) -> Option<(i64, i64)> {
        self.span
    }
}

/// Contiguous blocks of processes with about the same number of events, and that number; locations without a process
/// come last.
fn blocks(definitions: &DefinitionIndex, expected: impl Fn(&Location) -> u64, shard_events: u64) -> Vec<(Shard, u64)> {
    let mut shards = Vec::new();
    let mut shard = Shard::default();
    let (mut events, mut weight) = (0, 0u64);
    for (index, process) in definitions.processes.iter().enumerate() {
        let own: u64 =
            definitions.locations[process.locations.range()].iter().map(&expected).fold(0, u64::saturating_add);
        events += own.min(shard_events);
        weight = weight.saturating_add(own);
        shard.locations.end = process.locations.end;
        shard.processes.end = ProcessId::at(index + 1);
        if events >= shard_events {
            let next = Shard {
                locations: Ids { start: shard.locations.end, end: shard.locations.end },
                processes: Ids { start: shard.processes.end, end: shard.processes.end },
                ..Shard::default()
            };
            shards.push((std::mem::replace(&mut shard, next), weight));
            (events, weight) = (0, 0);
        }
    }
    shard.locations.end = LocationId::at(definitions.locations.len());
    if shard.locations.len() > 0 {
        shards.push((shard, weight));
    }
    shards
}

/// Which shards must be in the same process as the one before: those with hosts of one device.
fn joined(records: &Definitions, definitions: &DefinitionIndex, shard_of: &[u32], shards: usize) -> Vec<bool> {
    let device_of = devices::of_streams(records, &definitions.locations);
    let mut of_devices: Vec<(u32, u32)> =
        device_of.into_iter().map(|(location, device)| (device, shard_of[location])).collect();
    of_devices.sort_unstable();
    let mut joined = vec![false; shards];
    for shards in of_devices.chunk_by(|a, b| a.0 == b.0) {
        let (first, last) = (shards[0].1 as usize, shards[shards.len() - 1].1 as usize);
        joined[first + 1..=last].fill(true);
    }
    joined
}

/// The tasks of a shard.
struct TasksSeen {
    /// Those whose calls may not nest in those of the threads that run them.
    moved: FxHashMap<TaskId, bool>,
    /// What is known of all.
    known: KnownTasks,
}

/// What is needed to read a shard.
struct Loader<'a> {
    recording: &'a dyn Recording,
    regions: &'a Regions,
    definitions: &'a DefinitionIndex,
    bounds: Bounds,
    /// Where details of calls are recorded, if devices need them.
    details: Option<DetailIds>,
}

impl Loader<'_> {
    /// Reads a shard through a buffer.
    fn load(
        &self,
        shard: Shard,
        shards: usize,
        buffer: &mut Vec<u8>,
        progress: &Progress,
    ) -> Result<(Shard, Diagnostics)> {
        let (locations, processes) = (shard.locations, shard.processes);
        let (found, TasksSeen { moved, known }) = self.decode(shard, shards, buffer, progress)?;
        let knows_more = known.knows_more(&found.0.task_instances);
        if moved.is_empty() && !knows_more {
            return Ok(found);
        }
        // Some tasks may continue on other threads, or begin before it is read where they were created: read again,
        // knowing which calls they take along, and below which call paths they are.
        let stacks = if moved.is_empty() {
            TaskStacks::default()
        } else {
            TaskStacks::new(&moved, locations.flat_map(|location| self.task_parts(location, buffer)).collect())
        };
        if stacks.moved.is_empty() && !knows_more {
            return Ok(found);
        }
        let (first, _) = found;
        let task_paths = Some(Arc::new(TaskPaths::new(&known, &first.task_instances, first.tree)));
        let task_stacks = Some(Arc::new(stacks)).filter(|stacks| !stacks.moved.is_empty());
        let shard = Shard { locations, processes, task_stacks, task_paths, ..Shard::default() };
        Ok(self.decode(shard, shards, buffer, progress)?.0)
    }

    /// The parts of tasks on a location.
    fn task_parts(&self, location: LocationId, buffer: &mut Vec<u8>) -> Vec<TaskPart> {
        let mut parts = TaskParts::new(self.regions, location);
        let events = self.recording.events(self.definitions.locations[location].id);
        // What cannot be read has been told already.
        if let Ok(events) = events
            && events.read(buffer, &mut parts).is_err()
        {
            return Vec::new();
        }
        parts.finish()
    }

    /// Decodes a shard; also returns its tasks.
    fn decode(
        &self,
        shard: Shard,
        shards: usize,
        buffer: &mut Vec<u8>,
        progress: &Progress,
    ) -> Result<((Shard, Diagnostics), TasksSeen)> {
        let locations = shard.locations;
        let room: u64 = locations.map(|index| self.plausible_events(&self.definitions.locations[index])).sum();
        if room > u64::from(u32::MAX >> 1) {
            return Err(Error::Trace(format!("a process with {room} events: more than 2^31 are not supported")));
        }
        let records = self.recording.definitions();
        let mut decoder = Decoder::new(records, self.regions, self.definitions, self.bounds, shard);
        let mut details = CallDetails::default();
        decoder.expect(room as usize);
        for index in locations {
            if progress.is_cancelled() {
                return Err(Error::Interrupted);
            }
            decoder.begin_location(index);
            let events = match self.recording.events(self.definitions.locations[index].id) {
                Ok(events) => events,
                Err(error) => {
                    decoder.end_location(0, None);
                    let nowhere = Place { location: index, time: None };
                    decoder.diagnostics().explain(DiagnosticKind::Unreadable, nowhere, error.to_string());
                    continue;
                }
            };
            // A malformed record ends the location like the end of the file: everything before it is good.
            let read = if let Some(ids) = self.details.as_ref().filter(|_| self.uses_devices(index)) {
                let mut collector = DetailCollector::new(ids, &mut decoder);
                let read = events.read(buffer, &mut collector);
                details.add(index, collector.finish());
                read
            } else if chunks::worth_sharing(&events, shards) {
                chunks::read_events(&events, &mut decoder)
            } else {
                events.read_inlined(buffer, &mut decoder)
            };
            match read {
                Ok(summary) => decoder.end_location(summary.events, summary.truncated.map(|error| error.to_string())),
                Err(error) => decoder.end_location(decoder.decoded(), Some(error.to_string())),
            }
            progress.events.fetch_add(self.definitions.locations[index].events, Ordering::Relaxed);
        }
        let moved = decoder.moved_tasks().clone();
        let known = decoder.take_known_tasks();
        let (mut shard, diagnostics) = decoder.finish();
        shard.call_details = details;
        Ok(((shard, diagnostics), TasksSeen { moved, known }))
    }

    /// Whether the process of a location has streams of devices.
    fn uses_devices(&self, location: LocationId) -> bool {
        let process = self.definitions.processes.get(self.definitions.locations[location].process.index());
        let mut locations = process.into_iter().flat_map(|process| process.locations);
        locations.any(|location| self.definitions.locations[location].is_stream())
    }

    /// Number of events to reserve capacity for; a wrong count cannot reserve more than the file size justifies.
    fn plausible_events(&self, location: &Location) -> u64 {
        const TRUSTED: u64 = 1 << 16;
        if location.events <= TRUSTED {
            return location.events;
        }
        // An event takes at least two bytes.
        let events = self.recording.events(location.id);
        events.map_or(0, |events| events.file_size().map_or(TRUSTED, |size| location.events.min(size / 2)))
    }
}
