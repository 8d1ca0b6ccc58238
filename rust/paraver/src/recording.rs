//! A trace as a recording.

use std::path::{Path, PathBuf};

use whywait_otf2::enums::{Paradigm, RegionRole};
use whywait_otf2::{
    Anchor, Definitions, Error, EventSink, EventStream, Events, Numbered, Oddity, ReadSummary, Recording, count_events,
};

use crate::collectives::Operations;
use crate::definitions::{self, define};
use crate::detect;
use crate::emit::{Emitter, Team};
use crate::facts::Facts;
use crate::labels::{Labels, Names};
use crate::lives::LifeLink;
use crate::messages::Messages;
use crate::processes::{Comms, Processes};
use crate::regions::Region;
use crate::teams::LockLink;
use crate::thread::Thread;

/// The property of the anchor that says how many calls complete non-blocking sends by inference.
const INFERRED_COMPLETIONS: &str = "WHYWAIT::INFERRED_COMPLETIONS";

/// What is read from a trace.
#[derive(Debug)]
pub(crate) struct Content {
    pub(crate) threads: Vec<Thread>,
    /// What each thread does with locks.
    pub(crate) locks: Vec<Vec<LockLink>>,
    /// The threads that each thread makes and awaits, and that it is.
    pub(crate) lives: Vec<Vec<LifeLink>>,
    pub(crate) processes: Processes,
    pub(crate) comms: Comms,
    pub(crate) messages: Messages,
    pub(crate) operations: Operations,
    pub(crate) labels: Labels,
    pub(crate) names: Names,
    /// Length of the run, and ticks of a second.
    pub(crate) end: i64,
    pub(crate) resolution: u64,
}

impl Content {
    /// The communicator of the threads that others make in the process of a thread.
    fn made(&self, thread: usize) -> u32 {
        let before = self.comms.list.len() + self.processes.list.len() + self.threads.len();
        before as u32 + self.processes.of_threads[thread]
    }
}

/// The regions of a thread in those of the run, and whether each is the program's own.
#[derive(Debug)]
struct Numbers {
    regions: Vec<u32>,
    is_own: Vec<bool>,
}

/// A trace of Paraver as a recording.
#[derive(Debug)]
pub struct ParaverRecording {
    path: PathBuf,
    name: String,
    anchor: Anchor,
    definitions: Definitions,
    oddities: Vec<Oddity>,
    facts: Facts,
    content: Content,
    numbers: Vec<Numbers>,
    /// Types of counters.
    counters: Vec<u32>,
}

impl ParaverRecording {
    pub(crate) fn new(path: PathBuf, content: Content, facts: Facts, oddities: Vec<Oddity>) -> Self {
        let (numbers, regions) = unite(&content.threads);
        let mut counters: Vec<u32> = content.threads.iter().flat_map(|thread| thread.samples.kinds()).collect();
        counters.sort_unstable();
        counters.dedup();
        let name = detect::name(&path);
        let inferred = (facts.inferred > 0).then(|| (INFERRED_COMPLETIONS.to_owned(), facts.inferred.to_string()));
        let properties = inferred.into_iter().collect();
        let anchor = Anchor { creator: "Paraver trace".to_owned(), properties, ..Anchor::default() };
        let definitions = Definitions::default();
        let mut recording = Self { path, name, anchor, definitions, oddities, facts, content, numbers, counters };
        let threads = 0..recording.content.threads.len();
        let events: Vec<u64> =
            threads.map(|thread| count_events(|sink| recording.emitter(thread).send(sink))).collect();
        recording.definitions = define(&definitions::Content {
            threads: &recording.content.threads,
            lives: &recording.content.lives,
            processes: &recording.content.processes,
            comms: &recording.content.comms,
            regions: &regions,
            counters: &recording.counters,
            labels: &recording.content.labels,
            names: &recording.content.names,
            end: recording.content.end,
            resolution: recording.content.resolution,
            events: &events,
        });
        let strings = &recording.definitions;
        recording.facts.counters =
            strings.metric_members.iter().map(|member| strings.string(member.name).to_owned()).collect();
        recording.anchor.number_of_locations = events.len() as u64;
        recording
    }

    /// What is known besides events.
    #[must_use]
    pub fn facts(&self) -> &Facts {
        &self.facts
    }

    /// The team of a thread, and its number of threads; none for those of processes with one thread, and for streams.
    fn team(&self, thread: usize) -> Option<Team> {
        let Content { processes, comms, names, .. } = &self.content;
        let process = processes.of_threads[thread];
        let of_process = processes.list[process as usize];
        let threads = of_process.team(names).count() as u32;
        let forks = of_process.first_thread as usize == thread;
        let first = comms.list.len();
        let alone = (first + processes.list.len() + thread) as u32;
        (threads > 1 && !names.is_stream(thread)).then_some(Team {
            comm: first as u32 + process,
            threads,
            forks,
            alone,
        })
    }

    fn emitter(&self, thread: usize) -> Emitter<'_> {
        Emitter {
            thread: &self.content.threads[thread],
            regions: &self.numbers[thread].regions,
            is_own: &self.numbers[thread].is_own,
            counters: &self.counters,
            operations: &self.content.operations.of_threads[thread],
            links: &self.content.messages.links[thread],
            messages: &self.content.messages.list,
            locks: &self.content.locks[thread],
            lives: &self.content.lives[thread],
            made: self.content.made(thread),
            team: self.team(thread),
        }
    }
}

/// Whether a thread does the program's own work in a region: the states of the thread say when.
fn is_own(region: &Region) -> bool {
    region.paradigm == Paradigm::USER || matches!(region.role, RegionRole::PARALLEL | RegionRole::WORKSHARE)
}

/// The regions of all threads, each once, in order of threads.
fn unite(threads: &[Thread]) -> (Vec<Numbers>, Vec<Region>) {
    let mut regions: Numbered<Region> = Numbered::default();
    let numbers = threads.iter().map(|thread| {
        let of_thread = thread.regions.iter().map(|region| regions.number(region)).collect();
        let is_own = thread.regions.iter().map(is_own).collect();
        Numbers { regions: of_thread, is_own }
    });
    (numbers.collect(), regions.list)
}

struct Stream<'a> {
    emitter: Emitter<'a>,
    events: u64,
}

impl EventStream for Stream<'_> {
    fn read(&self, sink: &mut dyn EventSink) -> whywait_otf2::Result<ReadSummary> {
        self.emitter.send(sink);
        Ok(ReadSummary { events: self.events, ..ReadSummary::default() })
    }

    fn first_time(&self) -> Option<i64> {
        let thread = self.emitter.thread;
        let first = thread.visits.first().map(|visit| visit.begin);
        first.into_iter().chain(thread.samples.first_time()).min()
    }
}

impl Recording for ParaverRecording {
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
        let place = usize::try_from(location).ok().filter(|place| *place < self.content.threads.len());
        let known = place.zip(self.definitions.location(location));
        let Some((thread, definition)) = known else {
            return Err(Error::NoArchive { path: self.path.clone(), why: format!("no location {location}").into() });
        };
        Ok(Events::new(Stream { emitter: self.emitter(thread), events: definition.number_of_events }))
    }
}
