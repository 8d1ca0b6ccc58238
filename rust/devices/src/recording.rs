//! Ranks as a recording.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};

use whywait_otf2::{
    Anchor, Definitions, Error, EventSink, EventStream, Events, Oddity, ReadSummary, Recording, count_events,
};

use crate::NONE;
use crate::contexts::Contexts;
use crate::definitions::{self, Numbers, define, place_of};
use crate::emit::Emitter;
use crate::facts::Facts;
use crate::matching::{Comm, Matched, match_all};
use crate::rank::Rank;
use crate::regions::{Region, Regions};
use crate::thread::Thread;

/// Where ranks are read from.
#[derive(Debug, Clone, Default)]
pub struct Source {
    /// The directory of a run, or its file.
    pub path: PathBuf,
    /// The name of the run.
    pub name: String,
    /// What recorded it.
    pub creator: &'static str,
    /// Begin of the names of properties that say what is known besides events.
    pub tool: &'static str,
}

/// The ranks of a run, as one recording.
#[derive(Debug)]
pub struct DeviceRecording {
    path: PathBuf,
    name: String,
    anchor: Anchor,
    definitions: Definitions,
    oddities: Vec<Oddity>,
    facts: Facts,
    ranks: Vec<Rank>,
    matched: Matched,
    numbers: Numbers,
}

impl DeviceRecording {
    /// A recording of ranks in order of their numbers. `comms` are the communicators that records of their calls name, and
    /// `facts` has what is known of these.
    pub fn new(
        source: Source,
        mut ranks: Vec<Rank>,
        comms: Vec<Comm>,
        mut facts: Facts,
        oddities: Vec<Oddity>,
    ) -> Self {
        for rank in &mut ranks {
            // Communicators count the first thread of each process.
            if rank.threads.is_empty() {
                rank.threads.push(Thread::empty());
            }
        }
        let matched = match_all(&ranks, facts.world_size, comms);
        facts.groups.extend(matched.groups.iter().cloned());
        let Source { path, name, creator, tool } = source;
        let has_devices = ranks.iter().any(|rank| !rank.streams.is_empty());
        let (mut numbers, regions, contexts) = unite(&ranks);
        let mut next = matched.comms.len() as u32;
        for rank in &ranks {
            numbers.teams.push(next);
            next += rank.teams.len() as u32;
        }
        let anchor = Anchor {
            machine_name: if has_devices { "GPU cluster" } else { "cluster" }.to_owned(),
            creator: creator.to_owned(),
            properties: facts.properties(tool),
            ..Anchor::default()
        };
        let mut recording =
            Self { path, name, anchor, definitions: Definitions::default(), oddities, facts, ranks, matched, numbers };
        let counts = recording.counts();
        recording.definitions =
            define(&recording.ranks, &recording.matched, (&regions, &contexts), &recording.numbers.memories, &counts);
        recording.anchor.number_of_locations = recording.definitions.locations.len() as u64;
        recording
    }

    /// What is known besides events.
    pub fn facts(&self) -> &Facts {
        &self.facts
    }

    /// Number of events of each location of each rank.
    fn counts(&self) -> Vec<Vec<u64>> {
        let count = |place: usize, rank: &Rank| {
            let locations = 0..rank.threads.len() + rank.streams.len();
            locations.map(|at| count_events(|sink| self.send(place, at, sink))).collect()
        };
        self.ranks.iter().enumerate().map(|(place, rank)| count(place, rank)).collect()
    }

    /// Sends the events of location number `at` of a rank; none if there is no such location.
    fn send(&self, place: usize, at: usize, sink: &mut dyn EventSink) {
        let Some(rank) = self.ranks.get(place) else { return };
        let emitter = Emitter {
            place,
            rank,
            regions: &self.numbers.regions[place],
            contexts: &self.numbers.contexts[place],
            first_team: self.numbers.teams[place],
            memories: &self.numbers.memories,
            operations: &self.matched.operations[place],
            messages: &self.matched.messages[place],
        };
        if let Some(thread) = rank.threads.get(at) {
            // Memory is that of the process.
            let memory = if at == 0 { rank.memory.as_slice() } else { &[] };
            emitter.thread(at, thread, memory, sink);
        } else if let Some(stream) = rank.streams.get(at - rank.threads.len()) {
            emitter.stream(stream, sink);
        }
    }
}

/// Regions and call paths of all ranks, each once, in order of ranks.
fn unite(ranks: &[Rank]) -> (Numbers, Vec<Region>, Vec<(u32, u32)>) {
    let mut numbers = Numbers::default();
    let mut regions = Regions::default();
    let mut contexts = Contexts::default();
    let memories: BTreeSet<Option<i64>> =
        ranks.iter().flat_map(|rank| &rank.memory).map(|sample| sample.device).collect();
    numbers.memories = memories.into_iter().collect();
    for rank in ranks {
        let of_rank: Vec<u32> = rank.regions.iter().map(|region| regions.number(region)).collect();
        let mut paths: Vec<u32> = Vec::with_capacity(rank.contexts.len());
        for (parent, region) in &rank.contexts {
            let parent = paths.get(*parent as usize).copied().unwrap_or(NONE);
            paths.push(contexts.node(parent, of_rank[*region as usize]));
        }
        numbers.regions.push(of_rank);
        numbers.contexts.push(paths);
    }
    (numbers, regions.list, contexts.list)
}

struct Stream<'a> {
    recording: &'a DeviceRecording,
    location: u64,
}

impl EventStream for Stream<'_> {
    fn read(&self, sink: &mut dyn EventSink) -> whywait_otf2::Result<ReadSummary> {
        let (place, at) = place_of(self.location);
        self.recording.send(place, at, sink);
        let location = self.recording.definitions.location(self.location);
        Ok(ReadSummary { events: location.map_or(0, |location| location.number_of_events), ..ReadSummary::default() })
    }

    fn first_time(&self) -> Option<i64> {
        let (place, at) = place_of(self.location);
        let rank = self.recording.ranks.get(place)?;
        if let Some(thread) = rank.threads.get(at) {
            let sample = rank.memory.first().filter(|_| at == 0).map(|sample| sample.time);
            return thread.visits.first().map(|visit| visit.begin).into_iter().chain(sample).min();
        }
        let stream = rank.streams.get(at - rank.threads.len())?;
        rank.works.get(stream.works.start).map(|work| work.begin)
    }
}

impl Recording for DeviceRecording {
    fn path(&self) -> &Path {
        &self.path
    }

    fn name(&self) -> &str {
        &self.name
    }

    fn anchor(&self) -> &Anchor {
        &self.anchor
    }

    fn definitions(&self) -> &Definitions {
        &self.definitions
    }

    fn oddities(&self) -> &[Oddity] {
        &self.oddities
    }

    fn events(&self, location: u64) -> whywait_otf2::Result<Events<'_>> {
        if self.definitions.location(location).is_none() {
            return Err(Error::NoArchive { path: self.path.clone(), why: format!("no location {location}").into() });
        }
        Ok(Events::new(Stream { recording: self, location }))
    }
}

/// The id of a location, for tests and tools: that of thread or stream number `at` of the rank at `place`.
pub const fn location_id(place: usize, at: usize) -> u64 {
    definitions::location(place, at)
}
