//! Writes the events of one location, and keeps the truth about its waiting.

use whywait_otf2::enums::{MappingType, Paradigm};
use whywait_otf2::records::{ClockOffset, IdPairs, List, MappingTable};
use whywait_otf2::{ArchiveWriter, Attributes, Event, LocalDefinitions, LocationWriter, Result};

use crate::definitions::Region;
use crate::truth::{OUTSIDE, Truth};

/// Writes the events of a location in the order of their times.
pub(crate) struct EventWriter<'a> {
    rank: u32,
    to: LocationWriter<'a>,
    /// Lag of the rank's clock behind the global one, ticks.
    behind: i64,
    /// Number of communicators of messages; those of thread teams follow, one per rank.
    communicators: u32,
    times: (i64, i64),
    stack: Vec<(usize, Region)>,
    truth: Truth,
}

impl<'a> EventWriter<'a> {
    /// The writer of a location: the master thread of a rank, or another thread.
    pub(crate) fn new(
        archive: &'a ArchiveWriter,
        location: u64,
        rank: u32,
        behind: i64,
        communicators: u32,
    ) -> Result<Self> {
        let to = archive.location(location)?;
        Ok(Self { rank, to, behind, communicators, times: (i64::MAX, 0), stack: Vec::new(), truth: Truth::default() })
    }

    /// Appends a record.
    pub(crate) fn record(&mut self, time: i64, event: &Event<'_>) -> Result<()> {
        debug_assert!(time >= self.times.1, "rank {}: {time} after {}, {event:?}", self.rank, self.times.1);
        self.times = (time.min(self.times.0), time);
        self.to.write((time - self.behind) as u64, event, &Attributes::NONE)
    }

    /// Begins the program.
    pub(crate) fn begin(&mut self, time: i64) -> Result<()> {
        let (program_name, program_arguments) = (Region::Program.string(), List::new(&[]));
        self.record(time, &Event::ProgramBegin { program_name, program_arguments })?;
        self.push(Region::Program);
        self.enter(time + 10, Region::Main)
    }

    /// Forks a team of threads.
    pub(crate) fn fork(&mut self, time: i64, threads: u32) -> Result<()> {
        self.record(time, &Event::ThreadFork { model: Paradigm::OPENMP, number_of_requested_threads: threads })
    }

    /// Joins a team of threads.
    pub(crate) fn join(&mut self, time: i64) -> Result<()> {
        self.record(time, &Event::ThreadJoin { model: Paradigm::OPENMP })
    }

    /// Begins the part of a thread in the team of a rank.
    pub(crate) fn begin_team(&mut self, time: i64, rank: u32) -> Result<()> {
        if self.stack.is_empty() {
            // The call paths of a thread other than the forking one begin at the fork.
            self.push(Region::Program);
            self.push(Region::Main);
        }
        self.record(time, &Event::ThreadTeamBegin { thread_team: self.communicators + rank })?;
        self.enter(time, Region::Parallel)
    }

    /// Ends it.
    pub(crate) fn end_team(&mut self, time: i64, rank: u32) -> Result<()> {
        self.leave(time)?;
        self.record(time, &Event::ThreadTeamEnd { thread_team: self.communicators + rank })
    }

    fn push(&mut self, region: Region) {
        let path = self.truth.path(self.path(), region);
        self.stack.push((path, region));
    }

    pub(crate) fn enter(&mut self, time: i64, region: Region) -> Result<()> {
        self.record(time, &Event::Enter { region: region as u32 })?;
        self.push(region);
        Ok(())
    }

    /// Leaves the innermost region.
    pub(crate) fn leave(&mut self, time: i64) -> Result<()> {
        match self.stack.pop() {
            Some((_, region)) => self.record(time, &Event::Leave { region: region as u32 }),
            None => Ok(()),
        }
    }

    /// A whole call with one record shortly after its begin.
    pub(crate) fn call(&mut self, region: Region, enter: i64, leave: i64, event: &Event<'_>) -> Result<()> {
        self.enter(enter, region)?;
        self.record(enter + (leave - enter).min(20), event)?;
        self.leave(leave)
    }

    /// The call path of the innermost region.
    pub(crate) fn path(&self) -> usize {
        self.stack.last().map_or(OUTSIDE, |&(path, _)| path)
    }

    /// Notes that a call path waited.
    pub(crate) fn book_at(&mut self, path: usize, metric: &'static str, ticks: i64) {
        self.truth.book(path, metric, ticks);
    }

    /// Notes that the innermost region waits.
    pub(crate) fn book(&mut self, metric: &'static str, ticks: i64) {
        self.truth.book(self.path(), metric, ticks);
    }

    /// Adds to the sum of a message or queue metric in calls of a region here.
    pub(crate) fn count(&mut self, region: Region, metric: &'static str, value: i64) {
        let path = self.truth.path(self.path(), region);
        self.truth.count(path, metric, value);
    }

    /// Notes the maximum of a level.
    pub(crate) fn level(&mut self, metric: &'static str, value: i64) {
        self.truth.count(OUTSIDE, metric, value);
    }

    /// Number of events so far.
    pub(crate) fn events(&self) -> u64 {
        self.to.events()
    }

    /// Ends the program.
    pub(crate) fn finish(mut self, time: i64) -> Result<Truth> {
        self.leave(time)?;
        self.record(time + 10, &Event::ProgramEnd { exit_status: 0 })?;
        self.close()
    }

    /// Ends the location.
    pub(crate) fn close(self) -> Result<Truth> {
        let offset =
            |time: i64| ClockOffset { time: (time - self.behind) as u64, offset: self.behind, standard_deviation: 0.0 };
        let clock_offsets = vec![offset(self.times.0), offset(self.times.1)];
        let identity = IdPairs::Dense((0..u64::from(self.communicators)).collect());
        let mapping_tables = vec![MappingTable { mapping_type: MappingType::COMM, id_map: identity }];
        self.to.finish(&LocalDefinitions { mapping_tables, clock_offsets, definitions: Vec::new() })?;
        Ok(self.truth)
    }
}
