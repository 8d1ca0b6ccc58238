//! Slots of a process to events: the records that Score-P writes for the same calls.
//!
//! The threads of a process are merged by time, because one may complete what another has started.

use std::collections::BTreeMap;

use rustc_hash::FxHashSet;
use whywait_otf2::enums::{MeasurementMode, Type};
use whywait_otf2::records::{AttributeValue, StringRefs, TypedValue};
use whywait_otf2::{ArchiveWriter, Attributes, Event};

use crate::constructs::Constructs;
use crate::contexts::Contexts;
use crate::counters::Classes;
use crate::error::{Error, Result};
use crate::files::Files;
use crate::format::{Call, Extension, NONE, flags};
use crate::functions::{FUNCTIONS, Function};
use crate::libraries::{self, Called, Libraries, Process};
use crate::model::{ArmciWindow, Model, Regions, location};
use crate::openmp::{Ended, OpenMp};
use crate::paths::Paths;
use crate::requests::{self, wide};
use crate::samples::{Reader, Symbolized};
use crate::shmem_windows::Windows;
use crate::spool::{self, Slot, extension, word};
use crate::survey::Survey;
use crate::thread::{Out, Samples, Thread};
use crate::unify::Local;
use crate::worlds;

/// A process to expand.
#[derive(Debug)]
pub(crate) struct Job<'a> {
    /// Its rank.
    pub(crate) rank: u32,
    /// What it left.
    pub(crate) process: &'a spool::Process,
    /// Its ids.
    pub(crate) local: &'a Local,
    /// Survey and call paths of each thread.
    pub(crate) threads: &'a [(u32, Survey, Paths)],
    /// Name of its program, a string.
    pub(crate) program: u32,
    /// The most functions of a call path, innermost ones.
    pub(crate) depth: u32,
    /// The threads that it makes.
    pub(crate) contingent: Option<u32>,
    /// Its constructs of OpenMP.
    pub(crate) constructs: &'a Constructs,
    /// Its counters: of the first thread, and of the others.
    pub(crate) counters: (Classes, Classes),
    /// The windows of OpenSHMEM, if the program uses it.
    pub(crate) shmem: Option<&'a Windows>,
    /// The window of ARMCI, if the program uses it.
    pub(crate) armci: Option<ArmciWindow>,
    /// The samples of its threads, and the metric of their counts if anything was sampled in the run.
    pub(crate) samples: &'a BTreeMap<u32, Symbolized>,
    pub(crate) metric: Option<u32>,
    /// Written into the local definitions.
    pub(crate) clock_offsets: &'a [whywait_otf2::records::ClockOffset],
}

impl Job<'_> {
    /// When the process began and ended, by its own clock.
    pub(crate) fn span(&self) -> (u64, u64) {
        let definitions = &self.process.definitions;
        let spans = self.threads.iter().filter_map(|(_, survey, _)| survey.span);
        let (first, last) = spans.fold((u64::MAX, 0), |(first, last), (from, to)| (first.min(from), last.max(to)));
        let start = definitions.start.as_ref().map_or(u64::MAX, |start| start.time);
        let begin = if start == u64::MAX && first == u64::MAX { 0 } else { start.min(first) };
        (begin, definitions.end.map_or(0, |(time, _)| time).max(last).max(begin))
    }

    /// Writes the events of all threads, and returns the contexts of locations. `stop` is asked now and then whether to give up.
    pub(crate) fn write(
        &self,
        to: &ArchiveWriter,
        regions: &Regions,
        model: Model,
        stop: &dyn Fn() -> bool,
    ) -> Result<Vec<(u64, Contexts)>> {
        let span = self.span();
        let has_samples = self.metric.is_some();
        let mut threads = Vec::new();
        for (number, survey, paths) in self.threads {
            let slots = (self.process.slots(*number)?, survey.slots);
            let to = to.location(location(self.rank, *number))?;
            let counters = if *number == 0 { self.counters.0 } else { self.counters.1 };
            let samples = match (self.samples.get(number), self.process.samples.get(number), self.metric) {
                (Some(symbols), Some(path), Some(metric)) => {
                    Some(Samples::new(Reader::open(path, symbols.slots)?, symbols, metric))
                }
                _ => None,
            };
            let out = Out::new(to, counters, has_samples);
            threads.push(Thread::new(*number, out, slots, paths, self.depth, samples));
        }
        if threads.is_empty() {
            let mut out = Out::new(to.location(location(self.rank, 0))?, Classes::default(), false);
            self.begin(&mut out, regions, span.0);
            out.put(span.1, &Event::ProgramEnd { exit_status: UNKNOWN_STATUS });
            out.finish(self.clock_offsets)?;
            return Ok(Vec::new());
        }
        self.begin(&mut threads[0].out, regions, span.0);
        let partitioned = self.threads.iter().flat_map(|(_, survey, _)| &survey.partitioned);
        let partitioned = partitioned.map(|(request, count)| (*request, *count));
        let mut state = State {
            process: Process {
                local: self.local,
                model,
                contingent: self.contingent,
                ignored: FxHashSet::default(),
                unrecorded: worlds::unrecorded(&self.process.definitions),
                files: Files::default(),
            },
            libraries: Libraries::new(self.process, partitioned, self.shmem, self.armci),
            openmp: OpenMp::new(self.constructs),
            regions,
        };
        let folds = model == Model::Full;
        for thread in &mut threads {
            thread.load(folds)?;
        }
        let mut count = 0_u32;
        while let Some(next) = earliest(&threads) {
            if let Some((team, time)) = state.call(&mut threads[next])? {
                for thread in &mut threads {
                    state.openmp.close_team(thread, team, time, regions);
                }
            }
            threads[next].load(folds)?;
            count = count.wrapping_add(1);
            if count.is_multiple_of(1 << 16) && stop() {
                return Err(Error::Interrupted);
            }
        }
        let lost = &self.process.definitions.lost;
        let mut contexts = Vec::new();
        for ((number, ..), mut thread) in self.threads.iter().zip(threads) {
            if thread.constructs.is_empty() {
                thread.sample_until(span.1, thread.open.is_some(), regions)?;
            }
            thread.end(regions, span.1);
            thread.sample_until(span.1, false, regions)?;
            for (_, time, ..) in lost.iter().filter(|(thread, ..)| [*number, NONE].contains(thread)) {
                thread.out.put(*time, &Event::MeasurementOnOff { measurement_mode: MeasurementMode::OFF });
            }
            if *number == self.threads[0].0 {
                thread.out.put(span.1, &Event::ProgramEnd { exit_status: UNKNOWN_STATUS });
            }
            let found = thread.out.finish(self.clock_offsets)?;
            contexts.extend(found.map(|found| (location(self.rank, *number), found)));
        }
        Ok(contexts)
    }

    fn begin(&self, out: &mut Out<'_>, regions: &Regions, time: u64) {
        let pid = self.process.definitions.start.as_ref().map_or(0, |start| u64::from(start.pid));
        let value = TypedValue { kind: Type::UINT64, bits: pid };
        let attributes = [AttributeValue { id: regions.process_id, value }];
        let event = Event::ProgramBegin { program_name: self.program, program_arguments: StringRefs::new(&[]) };
        out.put_with(time, &event, &Attributes::new(&attributes));
    }
}

/// What OTF2 writes for an exit status that is not known.
const UNKNOWN_STATUS: i64 = i64::MIN;

/// The thread that enters a call next.
fn earliest(threads: &[Thread<'_>]) -> Option<usize> {
    let next = threads.iter().enumerate().filter_map(|(index, thread)| Some((thread.next.as_ref()?.enter, index)));
    next.min().map(|(_, index)| index)
}

/// What must be remembered between the calls of a process.
struct State<'a> {
    process: Process<'a>,
    libraries: Libraries<'a>,
    openmp: OpenMp<'a>,
    regions: &'a Regions,
}

impl State<'_> {
    /// Writes the events of a thread's next call. Returns the team of OpenMP whose parallel region is over with it.
    #[inline]
    fn call(&mut self, thread: &mut Thread<'_>) -> Result<Option<Ended>> {
        let Some(call) = thread.next else { return Ok(None) };
        let function = &FUNCTIONS[usize::from(call.function)];
        let is_full = self.process.model == Model::Full;
        thread.sample_before(&call, self.regions)?;
        if let Some(region) = thread.open.take() {
            thread.out.leave(call.enter, region);
        }
        thread.write_before(self.regions)?;
        let is_known = is_full || (function.is_in_scorep7() && call.flags & flags::LARGE == 0);
        if !is_full && (!is_known || requests::are_unknown(function.class)) {
            self.process.ignored.extend(requests::made(function.class, &call));
        }
        if !is_known {
            // Values that do not change are not repeated.
            thread.out.count(&thread.before, Extension::CountersEnter);
            thread.out.count(&thread.after, Extension::CountersLeave);
            return Ok(None);
        }
        if function.is_construct() {
            return Ok(self.openmp.moment(thread, &call, self.regions));
        }
        if function.is_moment() {
            libraries::moment(thread, function, &call, self.process.contingent, self.regions);
            return Ok(None);
        }
        thread.end_barrier(self.regions);
        thread.sample_until(call.enter, false, self.regions)?;
        let polled = call.flags & flags::POLLED != 0 && is_full;
        let polling = self.regions.polling.get(&call.function).copied().filter(|_| polled);
        let comms = &self.process.unrecorded;
        let is_unrecorded = !comms.is_empty() && function.is_with(call.object, comms);
        let unrecorded = self.regions.unrecorded.get(&call.function).copied().filter(|_| is_unrecorded);
        let region = unrecorded.or(polling).or(self.regions.mpi[usize::from(call.function)]);
        thread.follow_path(call.node, call.enter, self.regions);
        let out = &mut thread.out;
        out.count(&thread.before, Extension::CountersEnter);
        out.count_process(call.enter);
        if let Some(region) = region {
            out.enter(call.enter, region);
        }
        let bytes = if call.flags & flags::WIDE == 0 { u64::from(call.bytes) } else { wide(&thread.after) };
        let called = Called { function, call, bytes, after: &thread.after };
        let returned = called.returned();
        let failed = returned && call.flags & flags::FAILED != 0;
        if let Some(library) = self.libraries.of(function).filter(|of| !failed || of.records_failures(function)) {
            library.enter(out, &called, &mut self.process);
        }
        if returned {
            thread.sample_until(call.leave, true, self.regions)?;
            self.returned(thread, &call, function, bytes, failed);
            let out = &mut thread.out;
            out.count(&thread.after, Extension::CountersLeave);
            out.count_process(call.leave);
            if let Some(region) = region {
                out.leave(call.leave, region);
                if !polled && function.tests() {
                    tests_in_vain(out, region, &call, &thread.after);
                }
            }
        } else {
            thread.open = region;
        }
        Ok(None)
    }

    /// Writes what a call has done when it returns. The requests that it started and completed count even if it failed.
    #[inline]
    fn returned(
        &mut self,
        thread: &mut Thread<'_>,
        call: &Call,
        function: &'static Function,
        bytes: u64,
        failed: bool,
    ) {
        let (out, after) = (&mut thread.out, thread.after.as_slice());
        let called = Called { function, call: *call, bytes, after };
        if let Some(library) = self.libraries.of(function).filter(|of| !failed || of.records_failures(function)) {
            library.leave(out, &called, &mut self.process);
        }
        for request in requests::started(function.class, after) {
            if let Some(library) = self.libraries.of_request(request.kind) {
                library.starts(out, call, &request, &mut self.process);
            }
        }
        for request in requests::completed(function.class, call, after) {
            if let Some(library) = self.libraries.of_request(request.kind) {
                library.completes(out, call.leave, &request, &mut self.process);
            }
        }
    }
}

/// Further tests after one that found nothing either: one instance that is as long as all of them together, at their end.
fn tests_in_vain(out: &mut Out<'_>, region: u32, call: &Call, after: &[Slot]) {
    let is_polls = |slot: &&Slot| extension(slot).is_some_and(|(kind, _)| kind == Extension::Polls as u8);
    if let Some(slot) = after.iter().find(is_polls) {
        let (until, inside) = (word(slot, 1).max(call.leave), word(slot, 3));
        out.enter(until.saturating_sub(inside).max(call.leave), region);
        out.leave(until, region);
    }
}
