//! One thread of a process: its slots in order, and its location with the functions that are open.

use std::collections::VecDeque;

use whywait_otf2::enums::MeasurementMode;
use whywait_otf2::records::MetricValues;
use whywait_otf2::{Attributes, Event, LocalDefinitions, LocationWriter};

use crate::counters::{Classes, Values};
use crate::error::Result;
use crate::expand::Regions;
use crate::format::{Call, Extension, flags};
use crate::functions::FUNCTIONS;
use crate::openmp::Construct;
use crate::paths::{FunctionId, Paths, Steps};
use crate::spool::{Slot, Slots, call as decoded, extension, word};

/// The place of a thread in the archive.
#[must_use]
pub(crate) fn location(rank: u32, thread: u32) -> u64 {
    u64::from(thread) << 32 | u64::from(rank)
}

/// A location being written. The first error is kept until the end.
pub(crate) struct Out<'a> {
    to: LocationWriter<'a>,
    last: u64,
    counters: Values,
    result: whywait_otf2::Result<()>,
}

impl<'a> Out<'a> {
    /// Begins a location.
    pub(crate) fn new(to: LocationWriter<'a>, counters: Classes) -> Self {
        Self { to, last: 0, counters: Values::new(counters), result: Ok(()) }
    }

    /// The time of the last event.
    pub(crate) fn last(&self) -> u64 {
        self.last
    }

    /// Writes the entry to or the exit from a region, with the counters of the thread before it.
    #[inline]
    pub(crate) fn region(&mut self, time: u64, event: &Event<'_>) {
        if let Some((metric, values)) = self.counters.of_thread() {
            self.last = self.last.max(time);
            let counters = Event::Metric { metric, values: MetricValues::new(values) };
            note(&mut self.result, || self.to.write(self.last, &counters, &Attributes::NONE));
        }
        self.put(time, event);
    }

    /// Takes over the counters that slots have.
    #[inline]
    pub(crate) fn count(&mut self, slots: &[Slot], of: Extension) {
        for slot in slots {
            if let Some((_, items)) = extension(slot).filter(|(kind, _)| *kind == of as u8) {
                self.counters.update(slot, items);
            }
        }
    }

    /// Writes the counters of the process.
    #[inline]
    pub(crate) fn count_process(&mut self, time: u64) {
        if let Some((metric, values)) = self.counters.of_process() {
            self.last = self.last.max(time);
            let counters = Event::Metric { metric, values: MetricValues::new(values) };
            note(&mut self.result, || self.to.write(self.last, &counters, &Attributes::NONE));
        }
    }

    /// Writes an event; clocks that run backwards stand still.
    #[inline]
    pub(crate) fn put(&mut self, time: u64, event: &Event<'_>) {
        self.put_with(time, event, &Attributes::NONE);
    }

    /// The same with attributes.
    #[inline]
    pub(crate) fn put_with(&mut self, time: u64, event: &Event<'_>, attributes: &Attributes<'_>) {
        self.last = self.last.max(time);
        note(&mut self.result, || self.to.write(self.last, event, attributes));
    }

    /// Completes the location.
    pub(crate) fn finish(self, clock_offsets: &[whywait_otf2::records::ClockOffset]) -> Result<()> {
        self.result?;
        self.to.finish(&LocalDefinitions { clock_offsets: clock_offsets.to_vec(), ..LocalDefinitions::default() })?;
        Ok(())
    }
}

/// Does the next thing and keeps its error, unless there is one already.
#[inline]
fn note(result: &mut whywait_otf2::Result<()>, next: impl FnOnce() -> whywait_otf2::Result<()>) {
    if result.is_ok()
        && let Err(error) = next()
    {
        *result = Err(error);
    }
}

/// A call, what stands before it, and its extensions.
#[derive(Debug)]
struct Group {
    before: Vec<Slot>,
    call: Call,
    after: Vec<Slot>,
}

/// Most tests of a run that are recorded by themselves; the recorder writes fewer.
const LONGEST: usize = 8;

/// Whether the slot of a call is that of a test after others.
fn is_in_run(slot: &Slot) -> bool {
    decoded(slot).flags & (flags::POLLS | flags::POLLED) != 0
}

/// A run of tests as one call, from the begin of the first to the end of the last.
fn folded(mut run: VecDeque<Group>) -> Option<Group> {
    let mut last = run.pop_back()?;
    let first = run.pop_front()?;
    last.call.enter = first.call.enter;
    // Values of counters that do not change are not repeated.
    let middle = run.into_iter().flat_map(|Group { before, after, .. }| [before, after]);
    let skipped = std::iter::once(first.after).chain(middle).chain([last.before]).flatten();
    let counters = skipped.filter(|slot| {
        let kind = extension(slot).map_or(0, |(kind, _)| kind);
        [Extension::CountersEnter, Extension::CountersLeave].iter().any(|known| *known as u8 == kind)
    });
    let counters = counters.map(|mut slot| {
        slot[0] = Extension::CountersLeave as u8;
        slot
    });
    last.after = counters.chain(last.after).collect();
    last.before = first.before;
    Some(last)
}

/// A thread whose slots are being read.
pub(crate) struct Thread<'a> {
    /// Number among those of the process.
    pub(crate) number: u32,
    pub(crate) out: Out<'a>,
    slots: Slots,
    /// Slots that the survey found to make sense.
    left: u64,
    paths: &'a Paths,
    steps: Steps,
    /// The call path of the regions that are open.
    pub(crate) node: u32,
    /// Constructs of OpenMP that the thread is in, and the functions that are open in the innermost one.
    pub(crate) constructs: Vec<Construct>,
    pub(crate) inside: Vec<FunctionId>,
    /// When the implicit barrier ended that may be the last one of a parallel region.
    pub(crate) barrier_end: Option<u64>,
    /// The task that goes on when the thread has nothing more to wait for.
    pub(crate) resumes: Option<u64>,
    /// The region of a call that never returned.
    pub(crate) open: Option<u32>,
    /// When the thread began, until it is in a function.
    pub(crate) begun: Option<u64>,
    pub(crate) next: Option<Call>,
    /// What stands before the next call.
    pub(crate) before: Vec<Slot>,
    /// Extensions of the next call.
    pub(crate) after: Vec<Slot>,
    /// Calls after the next one that were read already.
    ahead: VecDeque<Group>,
}

impl<'a> Thread<'a> {
    /// Begins before the first slot of a thread, of which so many make sense. Of a path, so many frames count.
    pub(crate) fn new(number: u32, out: Out<'a>, slots: Slots, left: u64, paths: &'a Paths, depth: u32) -> Self {
        Self {
            number,
            out,
            slots,
            left,
            paths,
            steps: Steps::new(depth),
            node: 0,
            constructs: Vec::new(),
            inside: Vec::new(),
            barrier_end: None,
            resumes: None,
            open: None,
            begun: None,
            next: None,
            before: Vec::new(),
            after: Vec::new(),
            ahead: VecDeque::new(),
        }
    }

    /// Goes on to the next call and what belongs to it. Tests one after the other, of which the last found something, are one call.
    #[inline]
    pub(crate) fn load(&mut self, folds: bool) -> Result<()> {
        if let Some(Group { before, call, after }) = self.ahead.pop_front() {
            (self.before, self.next, self.after) = (before, Some(call), after);
        } else {
            self.read()?;
        }
        match &self.next {
            Some(call) if folds && FUNCTIONS[usize::from(call.function)].tests() => self.fold(),
            _ => Ok(()),
        }
    }

    /// Looks ahead whether the call begins a run of tests, and takes it all if its last one found something.
    fn fold(&mut self) -> Result<()> {
        // If there is something ahead, the call was looked at with the run that it is part of.
        if !self.ahead.is_empty() || self.slots.peek()?.is_none_or(|slot| extension(slot).is_none() && !is_in_run(slot))
        {
            return Ok(());
        }
        let mut run = VecDeque::from_iter(self.take());
        while run.len() <= LONGEST {
            self.read()?;
            let Some(group) = self.take() else { break };
            let goes_on = group.call.flags & flags::POLLS != 0;
            let is_end = group.call.flags & flags::POLLED != 0;
            run.push_back(group);
            if is_end {
                run = VecDeque::from_iter(folded(run));
            }
            if !goes_on {
                break;
            }
        }
        if let Some(Group { before, call, after }) = run.pop_front() {
            (self.before, self.next, self.after) = (before, Some(call), after);
        }
        self.ahead = run;
        Ok(())
    }

    fn take(&mut self) -> Option<Group> {
        let call = self.next.take()?;
        Some(Group { before: std::mem::take(&mut self.before), call, after: std::mem::take(&mut self.after) })
    }

    /// Reads the next call and what belongs to it.
    #[inline]
    fn read(&mut self) -> Result<()> {
        self.next = None;
        self.before.clear();
        self.after.clear();
        while self.left > 0
            && let Some(slot) = self.slots.peek()?
        {
            match extension(slot) {
                None if self.next.is_some() => break,
                None => self.next = Some(decoded(slot)),
                Some((kind, _)) if self.next.is_some() => {
                    if !belongs(kind) {
                        break;
                    }
                    self.after.push(*slot);
                }
                Some((kind, _)) if stands_before(kind) => self.before.push(*slot),
                Some(_) => {}
            }
            self.slots.skip();
            self.left -= 1;
        }
        Ok(())
    }

    /// The functions of a call path, outermost first.
    pub(crate) fn chain(&self, path: u32) -> Vec<FunctionId> {
        let nodes = self.paths.upwards(path);
        let mut chain: Vec<FunctionId> =
            nodes.flat_map(|node| self.paths.functions(node).iter().rev()).copied().collect();
        chain.reverse();
        chain
    }

    /// Leaves and enters functions until those of the path are open.
    #[inline]
    pub(crate) fn follow(&mut self, path: u32, enter: u64, regions: &Regions) {
        let step = self.steps.get(self.paths, self.node, path);
        let leave = self.out.last;
        for function in &step.left {
            self.out.region(leave, &Event::Leave { region: regions.functions + function });
        }
        let mut entered = step.entered.iter();
        // The outermost function is that which the thread was created for.
        if let Some(begin) = self.begun.take()
            && let Some(function) = entered.next()
        {
            self.out.region(begin, &Event::Enter { region: regions.functions + function });
        }
        self.out.count(&self.before, Extension::CountersEnter);
        for function in entered {
            self.out.region(enter, &Event::Enter { region: regions.functions + function });
        }
        self.node = path;
    }

    /// Leaves the functions that are open: the outermost when the thread ends, the others after the last call.
    pub(crate) fn leave_functions(&mut self, end: u64, regions: &Regions) {
        if !self.constructs.is_empty() {
            return;
        }
        let step = self.steps.get(self.paths, self.node, 0);
        let Some((outermost, inner)) = step.left.split_last() else { return };
        let leave = self.out.last;
        for function in inner {
            self.out.region(leave, &Event::Leave { region: regions.functions + function });
        }
        self.out.region(end, &Event::Leave { region: regions.functions + outermost });
        self.node = 0;
    }

    /// Leaves all that is open: a call that never returned at the end of its process.
    pub(crate) fn end(&mut self, regions: &Regions, time: u64) {
        if let Some(region) = self.open.take() {
            self.out.region(time, &Event::Leave { region });
        }
        self.end_barrier(regions);
        while self.close(self.out.last, regions).is_some() {}
        if self.node != 0 {
            self.follow(0, self.out.last, regions);
        }
    }
}

/// Whether an extension is about what happened before the call that follows.
fn stands_before(kind: u8) -> bool {
    [Extension::Stall, Extension::Switch, Extension::CountersEnter].iter().any(|known| *known as u8 == kind)
}

/// Whether an extension belongs to the call before it.
fn belongs(kind: u8) -> bool {
    [Extension::Wide, Extension::Requests, Extension::Collective, Extension::CountersLeave, Extension::Polls]
        .iter()
        .any(|known| *known as u8 == kind)
}

/// Writes what stands before a call.
pub(crate) fn before(out: &mut Out<'_>, slot: &Slot) {
    let (first, second) = (word(slot, 1), word(slot, 2));
    let is = |of: Extension| extension(slot).is_some_and(|(kind, _)| kind == of as u8);
    if is(Extension::Stall) {
        out.put(first, &Event::BufferFlush { stop_time: second.cast_signed() });
    } else if is(Extension::Switch) {
        let measurement_mode = if second == 0 { MeasurementMode::OFF } else { MeasurementMode::ON };
        out.put(first, &Event::MeasurementOnOff { measurement_mode });
    }
}
