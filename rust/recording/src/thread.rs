//! One thread of a process: its slots in order, and its location with the functions that are open.

use std::collections::VecDeque;

use rustc_hash::FxHashMap;
use whywait_otf2::enums::{MeasurementMode, Type};
use whywait_otf2::records::{AttributeValue, MetricValues, TypedValue, UNDEFINED};
use whywait_otf2::{Attributes, Event, LocalDefinitions, LocationWriter};

use crate::contexts::Contexts;
use crate::counters::{Classes, Counts, Values};
use crate::error::Result;
use crate::format::{self, Call, Extension, flags};
use crate::function_ids::FunctionId;
use crate::functions::FUNCTIONS;
use crate::model::{ADDRESS, Regions};
use crate::paths::{Paths, Steps};
use crate::samples::{Reader, Sample, Symbolized};
use crate::spool::{Slot, Slots, call as decoded, extension, word};

/// A construct that a thread is in.
#[derive(Debug)]
pub(crate) struct Construct {
    pub(crate) name: &'static str,
    pub(crate) region: u32,
    /// Its address.
    pub(crate) code: u64,
    /// The team of a parallel region, and the number of a task.
    pub(crate) team: u32,
    pub(crate) task: u64,
    /// Functions that were open when it began: those around the constructs, and all inside of them.
    pub(crate) around: Vec<FunctionId>,
    /// Functions of the construct around it that are open.
    pub(crate) outer: Vec<FunctionId>,
}

/// A location being written. The first error is kept until the end.
pub(crate) struct Out<'a> {
    to: LocationWriter<'a>,
    last: u64,
    counters: Values,
    /// If there are samples.
    pub(crate) contexts: Option<Contexts>,
    result: whywait_otf2::Result<()>,
}

impl<'a> Out<'a> {
    /// Begins a location.
    pub(crate) fn new(to: LocationWriter<'a>, counters: Classes, has_samples: bool) -> Self {
        let contexts = has_samples.then(Contexts::new);
        Self { to, last: 0, counters: Values::new(counters), contexts, result: Ok(()) }
    }

    /// The time of the last event.
    pub(crate) fn last(&self) -> u64 {
        self.last
    }

    /// Writes the entry to a region, with the counters of the thread before it.
    #[inline]
    pub(crate) fn enter(&mut self, time: u64, region: u32) {
        let event = match &mut self.contexts {
            None => Event::Enter { region },
            Some(contexts) => contexts.enter(region),
        };
        self.region(time, &event);
    }

    /// Opens a function around what is entered next. Where there are samples, it has no record of its own.
    #[inline]
    pub(crate) fn open(&mut self, time: u64, region: u32) {
        match &mut self.contexts {
            None => self.region(time, &Event::Enter { region }),
            Some(contexts) => contexts.open(region),
        }
    }

    /// Writes the exit from a region, or closes a function.
    #[inline]
    pub(crate) fn leave(&mut self, time: u64, region: u32) {
        let event = match &mut self.contexts {
            None => Some(Event::Leave { region }),
            Some(contexts) => contexts.leave(),
        };
        if let Some(event) = event {
            self.region(time, &event);
        }
    }

    fn region(&mut self, time: u64, event: &Event<'_>) {
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

    /// Completes the location; returns its contexts.
    pub(crate) fn finish(self, clock_offsets: &[whywait_otf2::records::ClockOffset]) -> Result<Option<Contexts>> {
        self.result?;
        self.to.finish(&LocalDefinitions { clock_offsets: clock_offsets.to_vec(), ..LocalDefinitions::default() })?;
        Ok(self.contexts)
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

/// The samples of a thread being read.
pub(crate) struct Samples<'a> {
    reader: Reader,
    symbols: &'a Symbolized,
    counts: Counts,
    /// Contexts of places that do not depend on what is open.
    known: FxHashMap<(u32, u64), u32>,
}

impl<'a> Samples<'a> {
    /// Begins before the first.
    pub(crate) fn new(reader: Reader, symbols: &'a Symbolized, metric: u32) -> Self {
        Self { reader, symbols, counts: Counts::new(metric), known: FxHashMap::default() }
    }

    /// The context of a sample between calls, and its line. What is open has a context, and is in a construct or not; of that, some functions are
    /// around the construct.
    fn context(
        &mut self,
        sample: &Sample,
        contexts: &mut Contexts,
        (base, is_in_construct, around): (u32, bool, &[FunctionId]),
        regions: &Regions,
    ) -> (u32, u32) {
        let key = sample.key();
        let Some(leaf) = self.symbols.leaves.get(&key) else { return (base, 0) };
        let is_whole =
            !sample.is(format::sample::INCOMPLETE) && !is_in_construct && !self.symbols.partial.contains(&sample.node);
        if let Some(known) = self.known.get(&key).filter(|_| is_whole) {
            return (*known, leaf.line);
        }
        let paths = &self.symbols.paths;
        let mut nodes: Vec<u32> = paths.upwards(sample.node).collect();
        nodes.reverse();
        let path = nodes.iter().flat_map(|node| paths.functions(*node)).chain(&leaf.functions);
        let path: Vec<FunctionId> = path.copied().collect();
        let mut path = path.strip_prefix(around).unwrap_or(&path);
        let mut context = if is_whole { UNDEFINED } else { base };
        if !is_whole && !is_in_construct {
            // Where the outermost function that is known is open, the path goes on from there.
            let first = path.first().map(|function| regions.functions + function);
            let mut open = base;
            while open != UNDEFINED && contexts.region(open) != first {
                open = contexts.parent(open);
            }
            if open != UNDEFINED {
                (context, path) = (open, &path[1..]);
            }
        }
        for function in path {
            context = contexts.child(context, regions.functions + function);
        }
        if is_whole {
            self.known.insert(key, context);
        }
        (context, leaf.line)
    }
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
    /// The outermost function of the next path is entered already.
    has_outermost: bool,
    samples: Option<Samples<'a>>,
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
    pub(crate) fn new(
        number: u32,
        out: Out<'a>,
        (slots, left): (Slots, u64),
        paths: &'a Paths,
        depth: u32,
        samples: Option<Samples<'a>>,
    ) -> Self {
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
            has_outermost: false,
            samples,
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

    /// Writes the samples up to a time, which come before the next call at some path.
    #[inline]
    pub(crate) fn sample_before(&mut self, call: &Call, regions: &Regions) -> Result<()> {
        if self.out.contexts.is_none() {
            return Ok(());
        }
        let of_thread = !FUNCTIONS[usize::from(call.function)].is_moment() && self.constructs.is_empty();
        if of_thread
            && let Some(begin) = self.begun.take()
            && let Some(function) = self.steps.get(self.paths, self.node, call.node).entered.first()
        {
            self.out.enter(begin, regions.functions + function);
            self.has_outermost = true;
        }
        // Samples must not hold up the events that are written with the call, but have earlier times.
        let moments = self.before.iter().filter_map(time_of).chain(self.barrier_end);
        let until = moments.fold(call.enter, u64::min);
        self.sample_until(until, self.open.is_some(), regions)
    }

    /// Writes what stands before the next call, and the samples between.
    pub(crate) fn write_before(&mut self, regions: &Regions) -> Result<()> {
        for at in 0..self.before.len() {
            let slot = self.before[at];
            if let Some(time) = time_of(&slot).filter(|_| self.out.contexts.is_some()) {
                self.sample_until(time, false, regions)?;
            }
            before(&mut self.out, &slot);
        }
        Ok(())
    }

    /// Writes the samples up to a time: in the call that was entered last, or where they were.
    pub(crate) fn sample_until(&mut self, time: u64, is_in_call: bool, regions: &Regions) -> Result<()> {
        let Self { samples: Some(samples), out, constructs, inside, .. } = self else { return Ok(()) };
        while let Some(sample) = samples.reader.until(time)? {
            let Some(mut contexts) = out.contexts.take() else { break };
            let is_in_call = is_in_call || sample.is(format::sample::INSIDE);
            let (mut base, mut around) = (contexts.at(), &[][..]);
            if let Some(construct) = constructs.last().filter(|_| !is_in_call) {
                base = inside.iter().fold(base, |base, _| contexts.parent(base));
                around = &construct.around;
            }
            let (context, line) = if is_in_call {
                (base, 0)
            } else {
                samples.context(&sample, &mut contexts, (base, !constructs.is_empty(), around), regions)
            };
            let generator = samples.symbols.generators[usize::from(sample.is(format::sample::FAULT))];
            let event = (context != UNDEFINED).then(|| contexts.sample(context, line, generator));
            out.contexts = Some(contexts);
            // What was in none of the program's functions has no context.
            let Some(event) = event else { continue };
            if let Some((metric, values)) = samples.counts.changed(&sample) {
                out.put(sample.time, &Event::Metric { metric, values: MetricValues::new(values) });
            }
            let spot = samples.symbols.spots.get(&sample.address).filter(|_| is_in_call);
            let value = |text: u32| TypedValue { kind: Type::STRING, bits: u64::from(text) };
            let attribute = spot.map(|(_, text)| [AttributeValue { id: ADDRESS, value: value(*text) }]);
            match &attribute {
                Some(attribute) => out.put_with(sample.time, &event, &Attributes::new(attribute)),
                None => out.put(sample.time, &event),
            }
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
            self.out.leave(leave, regions.functions + function);
        }
        let mut entered = step.entered.iter();
        if std::mem::take(&mut self.has_outermost) {
            entered.next();
        }
        // The outermost function is that which the thread was created for.
        if let Some(begin) = self.begun.take()
            && let Some(function) = entered.next()
        {
            self.out.enter(begin, regions.functions + function);
        }
        self.out.count(&self.before, Extension::CountersEnter);
        for function in entered {
            self.out.open(enter, regions.functions + function);
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
            self.out.leave(leave, regions.functions + function);
        }
        self.out.leave(end, regions.functions + outermost);
        self.node = 0;
    }

    /// Leaves all that is open: a call that never returned at the end of its process.
    pub(crate) fn end(&mut self, regions: &Regions, time: u64) {
        if let Some(region) = self.open.take() {
            self.out.leave(time, region);
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
        .chain(&[Extension::Partitions])
        .any(|known| *known as u8 == kind)
}

/// When something happened that stands before a call.
fn time_of(slot: &Slot) -> Option<u64> {
    let has_time = |kind: u8| [Extension::Stall, Extension::Switch].iter().any(|known| *known as u8 == kind);
    extension(slot).filter(|(kind, _)| has_time(*kind)).map(|_| word(slot, 1))
}

/// Writes what stands before a call.
fn before(out: &mut Out<'_>, slot: &Slot) {
    let (first, second) = (word(slot, 1), word(slot, 2));
    let is = |of: Extension| extension(slot).is_some_and(|(kind, _)| kind == of as u8);
    if is(Extension::Stall) {
        out.put(first, &Event::BufferFlush { stop_time: second.cast_signed() });
    } else if is(Extension::Switch) {
        let measurement_mode = if second == 0 { MeasurementMode::OFF } else { MeasurementMode::ON };
        out.put(first, &Event::MeasurementOnOff { measurement_mode });
    }
}
