//! Booking the counters of a location on its call paths, while its events are read.
//!
//! A *sample* is a value of a counter at a time. What a counter grew by between two samples of a location belongs to
//! the call paths that ran there in between, in proportion to their time: of a strict counter, which is sampled at
//! every Enter and Leave, that is one call path. A level that holds until the next sample, or since the last one, is
//! integrated over the same interval, and one that is known at its samples as a line from one to the other. A change of
//! a moment belongs to the call path that runs then.
//!
//! What lies outside of all regions is booked on no call path, so that all cells of a location add up to last value
//! less first value.
//!
//! Samples that speak of a process or a machine are kept: [`crate::counters`] divides them.
//!
//! *Source*: counters.md#counters-of-the-trace.

use std::cell::Cell;

use rustc_hash::FxHashMap;
use whywait_otf2::enums::Type;
use whywait_otf2::records::TypedValue;

use super::calltree::CallTree;
use super::columns::Events;
use super::counter_totals::Totals;
use super::counters::{CounterCell, Counters, Fault, Kind, Number, Position, Reading, Sample, Sums};
use super::definition_index::DefinitionIndex;
use super::regions::Regions;
use crate::ids::{CallPathId, LocationId};

/// The latest sample of a counter at the current location.
#[derive(Clone, Copy)]
struct Latest {
    time: i64,
    value: Number,
    /// Where the events stood.
    position: Position,
}

/// What belongs to the time between two samples.
#[derive(Clone, Copy, Default)]
struct Interval {
    /// Growth or change.
    amount: Number,
    /// The level that holds.
    level: Option<Number>,
    /// Sum of the values at both ends of what is known at its samples.
    ends: Option<Number>,
}

impl Interval {
    /// Growth, change, or the integral of a level over ticks; and twice the integral of what is known at its samples.
    fn sums(&self, ticks: i64) -> [Number; 2] {
        let over = |value: Number| value.times(ticks);
        [self.level.map_or(self.amount, over), self.ends.map_or(Number::default(), over)]
    }
}

/// What ran at a location so far.
#[derive(Clone, Copy)]
pub struct Ran<'a> {
    /// Its Enters and Leaves, those of the shard before them.
    pub events: &'a Events,
    /// The call paths that they name.
    pub tree: &'a CallTree,
}

/// A metric class or instance at the current location.
struct Class<'a> {
    metric: u32,
    /// Its counters, if it is known.
    members: Option<&'a [u32]>,
    /// Whether it speaks of the location.
    is_of_recorder: bool,
    /// Whether each Enter and Leave has a sample.
    is_strict: bool,
    /// The quick way, if all members are totals of whole numbers that no other class has.
    totals: Option<Totals>,
}

/// The cells of the current location: a row for each call path, in it one for each counter.
struct Cells {
    counters: usize,
    /// By number of the call path, after the row of [`CallPathId::NONE`]: one more than the row; 0 if there is none.
    row_of: Vec<u32>,
    callpaths: Vec<CallPathId>,
    sums: Vec<Sums>,
}

impl Cells {
    /// The row of a call path, if it has one.
    #[inline(always)]
    fn row(&self, callpath: CallPathId) -> Option<usize> {
        let row = *self.row_of.get(callpath.number().wrapping_add(1) as usize)?;
        row.checked_sub(1).map(|row| row as usize)
    }

    fn of(&mut self, callpath: CallPathId, counter: u32) -> &mut Sums {
        let row = self.row(callpath).unwrap_or_else(|| {
            let slot = callpath.number().wrapping_add(1) as usize;
            if self.row_of.len() <= slot {
                self.row_of.resize(slot + 1, 0);
            }
            self.callpaths.push(callpath);
            self.sums.resize(self.callpaths.len() * self.counters, Sums::default());
            self.row_of[slot] = self.callpaths.len() as u32;
            self.callpaths.len() - 1
        });
        &mut self.sums[row * self.counters + counter as usize]
    }

    fn clear(&mut self) {
        self.row_of.clear();
        self.callpaths.clear();
        self.sums.clear();
    }
}

/// Books the samples of one location after the other.
pub struct Book<'a> {
    definitions: &'a DefinitionIndex,
    counters: &'a Counters,
    classes: Vec<Class<'a>>,
    /// Position of each class by its OTF2 id, and of the one of the last record.
    numbers: FxHashMap<u32, usize>,
    current: usize,
    latest: Vec<Option<Latest>>,
    /// The latest values that are kept, by metric and counter.
    kept: FxHashMap<(u32, u32), Number>,
    cells: Cells,
    /// Counters that have fallen somewhere.
    fell: Vec<bool>,
}

impl<'a> Book<'a> {
    /// A book for the counters of a run.
    #[must_use]
    pub fn new(definitions: &'a DefinitionIndex) -> Self {
        let counters = definitions.counters.all.len();
        Self {
            definitions,
            counters: &definitions.counters,
            classes: Vec::new(),
            numbers: FxHashMap::default(),
            current: 0,
            latest: vec![None; counters],
            kept: FxHashMap::default(),
            cells: Cells { counters, row_of: Vec::new(), callpaths: Vec::new(), sums: Vec::new() },
            fell: vec![false; counters],
        }
    }

    /// Counters that have fallen somewhere.
    #[must_use]
    pub fn fell(&self) -> &[bool] {
        &self.fell
    }

    /// Books the values of a metric record the quick way, or says that it has to take the general one.
    #[inline(always)]
    pub fn take(&mut self, metric: u32, values: &[TypedValue], at: (i64, Position), events: &Events) -> bool {
        if self.classes.get(self.current).is_none_or(|class| class.metric != metric) {
            let Some(&number) = self.numbers.get(&metric) else { return false };
            self.current = number;
        }
        let class = &mut self.classes[self.current];
        match (&mut class.totals, self.cells.row(at.1.callpath)) {
            (Some(totals), Some(row)) => totals.take(values, at, row, events),
            _ => false,
        }
    }

    /// Takes the values of a metric record; those that do not speak of the location go to `samples`.
    pub fn record(
        &mut self,
        location: LocationId,
        (metric, values): (u32, &[TypedValue]),
        at: (i64, Position),
        ran: Ran<'_>,
        samples: &mut Vec<Sample>,
    ) -> Result<(), Fault> {
        let class = self.numbers.get(&metric).copied().unwrap_or_else(|| {
            self.meet(metric, location);
            self.classes.len() - 1
        });
        let fault = Cell::new(None);
        let Class { members, is_of_recorder, .. } = self.classes[class];
        let readings = self.counters.readings(members, values.iter().copied(), &fault);
        if is_of_recorder {
            self.pause(class);
            let lacks_samples = self.lacks_samples(class, at.1, ran);
            for reading in readings {
                if let Err(what) = self.sample(reading, at, ran) {
                    fault.set(Some(what));
                }
            }
            if let Some(totals) = self.classes[class].totals.as_mut().filter(|_| fault.get().is_none()) {
                totals.resume(values, at);
            }
            if lacks_samples && fault.get().is_none() {
                fault.set(Some(Fault::Missing));
            }
        } else {
            for reading in readings {
                if let Err(what) = self.keep(metric, reading, (at.0, location), samples) {
                    fault.set(Some(what));
                }
            }
        }
        fault.get().map_or(Ok(()), Err)
    }

    /// Adds a class to those of the location.
    fn meet(&mut self, metric: u32, location: LocationId) {
        let members = self.counters.of(metric);
        let is_of_recorder = self.counters.is_of_recorder(&self.definitions.locations, metric, location);
        let mut is_simple = is_of_recorder && members.is_some();
        for (i, member) in members.unwrap_or_default().iter().enumerate() {
            let counter = &self.counters.all[*member as usize];
            is_simple &= !members.unwrap_or_default()[..i].contains(member);
            is_simple &= counter.kind() == Kind::Total && counter.is_trusted() && !counter.is_real;
            for other in 0..self.classes.len() {
                if self.classes[other].members.unwrap_or_default().contains(member) {
                    is_simple = false;
                    self.pause(other);
                    if let Some(totals) = self.classes[other].totals.take() {
                        self.close(other, totals);
                    }
                }
            }
        }
        let first = members.and_then(|members| members.first());
        let is_strict = is_of_recorder && first.is_some_and(|&first| self.counters.all[first as usize].is_strict());
        let totals = is_simple.then(|| Totals::new(members.unwrap_or_default().len()));
        self.numbers.insert(metric, self.classes.len());
        self.classes.push(Class { metric, members, is_of_recorder, is_strict, totals });
    }

    /// Whether an Enter or a Leave of the program since the latest sample has none, though each should.
    fn lacks_samples(&self, class: usize, position: Position, Ran { events, tree }: Ran<'_>) -> bool {
        let Class { members, is_strict, .. } = self.classes[class];
        let first = members.filter(|_| is_strict).and_then(|members| members.first());
        let Some(before) = first.and_then(|&first| self.latest[first as usize]) else { return false };
        let between = before.position.events..position.events;
        // The first event may be the one that the latest sample stands before.
        let sampled = events.time.get(between.start as usize) == Some(&before.time);
        let is_of_program = |event| {
            let region = tree.region(events.callpath(event));
            !Regions::is_pause(region) && !Regions::is_program(region)
        };
        between.skip(usize::from(sampled)).any(is_of_program)
    }

    /// Brings what the general way knows of a class up to date.
    fn pause(&mut self, class: usize) {
        let Class { members, totals, .. } = &mut self.classes[class];
        if let Some((time, position, values)) = totals.as_mut().and_then(Totals::pause) {
            for (&counter, value) in members.unwrap_or_default().iter().zip(values) {
                self.latest[counter as usize] = Some(Latest { time, value, position });
            }
        }
    }

    /// Puts what was booked the quick way with the rest.
    fn close(&mut self, class: usize, totals: Totals) {
        let members = self.classes[class].members.unwrap_or_default();
        for (row, of_row) in totals.finish().chunks(members.len().max(1)).enumerate() {
            for (&counter, &sums) in members.iter().zip(of_row) {
                self.cells.sums[row * self.cells.counters + counter as usize] += sums;
            }
        }
    }

    /// Books a sample.
    fn sample(&mut self, reading: Reading, (time, position): (i64, Position), ran: Ran<'_>) -> Result<(), Fault> {
        let Reading { counter: index, value, .. } = reading;
        let counter = &self.counters.all[index as usize];
        let before = self.latest[index as usize].replace(Latest { time, value, position });
        let here = self.cells.of(position.callpath, index);
        here.samples += 1;
        here.sampled += value;
        let kind = counter.kind();
        if !matches!(kind, Kind::Level { .. }) {
            here.see(value);
        }
        if kind == (Kind::Change { next: false, point: true }) {
            here.amount += value;
            return Ok(());
        }
        let Some(before) = before else { return Ok(()) };
        let mut interval = Interval::default();
        let mut result = Ok(());
        match kind {
            Kind::Total => {
                interval.amount = value.less(before.value);
                let has_fallen = interval.amount.value() < 0.0;
                self.fell[index as usize] |= has_fallen;
                if !counter.is_trusted() {
                    // It may turn out to be a level.
                    interval.ends = Some(value.plus(before.value));
                } else if has_fallen {
                    result = Err(Fault::Reset);
                    interval.amount = Number::default();
                }
            }
            Kind::Change { next: true, .. } => interval.amount = before.value,
            Kind::Change { .. } => interval.amount = value,
            Kind::Level { next } => interval.level = Some(if next { before.value } else { value }),
            Kind::Samples => interval.ends = Some(value.plus(before.value)),
        }
        self.divide(index, &interval, &before, (time, position), ran);
        result
    }

    /// Keeps a sample that does not speak of its location.
    fn keep(
        &mut self,
        metric: u32,
        Reading { counter, value, recorded }: Reading,
        (time, location): (i64, LocationId),
        samples: &mut Vec<Sample>,
    ) -> Result<(), Fault> {
        let is_unsigned = recorded.kind == Type::UINT64;
        samples.push(Sample { metric, counter, location, is_unsigned, time, bits: recorded.bits });
        let before = self.kept.insert((metric, counter), value);
        let has_fallen = before.is_some_and(|before| value.less(before).value() < 0.0);
        let definition = &self.counters.all[counter as usize];
        if has_fallen && definition.kind() == Kind::Total {
            self.fell[counter as usize] = true;
            if definition.is_trusted() {
                return Err(Fault::Reset);
            }
        }
        Ok(())
    }

    /// Divides what belongs to an interval over the call paths that ran in it. Pauses get nothing.
    fn divide(
        &mut self,
        counter: u32,
        interval: &Interval,
        before: &Latest,
        (time, position): (i64, Position),
        ran: Ran<'_>,
    ) {
        let is_known = interval.level.is_some() || interval.ends.is_some();
        let mut book = |callpath: CallPathId, [amount, area]: [Number; 2], ticks: i64| {
            let sums = self.cells.of(callpath, counter);
            sums.amount += amount;
            sums.area += area;
            if is_known {
                sums.ticks += ticks;
            }
            if let Some(level) = interval.level.filter(|_| ticks > 0) {
                sums.see(level);
            }
        };
        let all = time - before.time;
        // Nothing between the samples but the event that the first stands before.
        let between = before.position.events..position.events;
        let first = ran.events.time.get(between.start as usize);
        if all == 0 || between.is_empty() || (between.len() == 1 && first == Some(&before.time)) {
            return book(position.callpath, interval.sums(all), all);
        }
        let all: i64 = running(before, (time, position), ran).map(|(_, since, until)| until - since).sum();
        let sums = interval.sums(all);
        if all == 0 {
            // A pause and nothing else.
            return book(before.position.callpath, sums, 0);
        }
        let (mut passed, mut given) = (0, [Number::default(); 2]);
        for (callpath, since, until) in running(before, (time, position), ran) {
            passed += until - since;
            let shares = sums.map(|sum| sum.share(i128::from(passed), i128::from(all)));
            book(callpath, [shares[0].less(given[0]), shares[1].less(given[1])], until - since);
            given = shares;
        }
    }

    /// Ends a location: levels that hold until their next sample hold until its last event. Appends its cells, by call
    /// path and counter.
    pub fn end_location(
        &mut self,
        location: LocationId,
        (last, position): (i64, Position),
        ran: Ran<'_>,
        cells: &mut Vec<CounterCell>,
    ) {
        for index in 0..self.latest.len() {
            let Some(before) = self.latest[index].filter(|before| before.time < last) else { continue };
            if self.counters.all[index].kind() == (Kind::Level { next: true }) {
                let interval = Interval { level: Some(before.value), ..Interval::default() };
                self.divide(index as u32, &interval, &before, (last, position), ran);
            }
        }
        for class in 0..self.classes.len() {
            if let Some(totals) = self.classes[class].totals.take() {
                self.close(class, totals);
            }
        }
        let mut rows: Vec<(CallPathId, usize)> = self.cells.callpaths.drain(..).zip(0..).collect();
        rows.sort_unstable();
        for (callpath, row) in rows {
            let of_row = &self.cells.sums[row * self.cells.counters..(row + 1) * self.cells.counters];
            let is_used = |sums: &Sums| *sums != Sums::default();
            let used = (0..).zip(of_row).filter(|(_, sums)| is_used(sums));
            cells.extend(used.map(|(counter, &sums)| CounterCell { counter, callpath, location, sums }));
        }
        self.cells.clear();
        self.classes.clear();
        self.numbers.clear();
        self.latest.fill(None);
        self.kept.clear();
    }
}

/// What ran between two samples, with begin and end, without pauses; no call path is outside of all regions.
fn running<'a>(
    before: &Latest,
    (time, position): (i64, Position),
    Ran { events, tree }: Ran<'a>,
) -> impl Iterator<Item = (CallPathId, i64, i64)> + use<'a> {
    let (mut callpath, mut depth) = (before.position.callpath, before.position.depth);
    let mut since = before.time;
    let ends = (before.position.events..position.events).map(Some).chain([None]);
    let stretches = ends.map(move |event| {
        let Some(event) = event else { return (position.callpath, since, time) };
        let until = events.time[event as usize].clamp(since, time);
        let stretch = (if depth == 0 { CallPathId::NONE } else { callpath }, since, until);
        since = until;
        let of = events.callpath(event);
        if events.is_leave(event) {
            depth = depth.saturating_sub(1);
            callpath = tree.nodes()[of].parent;
        } else {
            depth += 1;
            callpath = of;
        }
        stretch
    });
    stretches.filter(move |&(callpath, since, until)| {
        until > since && !(callpath.is_some() && Regions::is_pause(tree.region(callpath)))
    })
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;
    use whywait_otf2::Definitions;
    use whywait_otf2::enums::LocationType;

    use super::super::locations::Location;
    use super::*;
    use crate::ids::{ProcessId, RegionKey};

    const METRIC: u32 = 3;

    /// What happens next: ticks later a sample, if any, then an Enter or a Leave.
    #[derive(Clone, Debug)]
    struct Step {
        ticks: i64,
        sample: Option<[TypedValue; 2]>,
        enter: Option<u32>,
    }

    fn value() -> impl Strategy<Value = TypedValue> {
        let of = |kind: Type| move |bits: u64| TypedValue { kind, bits };
        prop_oneof![
            8 => (0u64..200).prop_map(of(Type::INT64)),
            1 => prop::sample::select(vec![i64::MIN as u64, i64::MAX as u64, 1 << 62]).prop_map(of(Type::INT64)),
            1 => prop::sample::select(vec![u64::MAX, 1 << 63, 5]).prop_map(of(Type::UINT64)),
            1 => Just(TypedValue { kind: Type::DOUBLE, bits: 0 }),
        ]
    }

    fn steps() -> impl Strategy<Value = Vec<Step>> {
        let sample = prop::option::weighted(0.9, [value(), value()]);
        let enter = prop::option::of(0u32..3);
        let step = (0i64..3, sample, enter).prop_map(|(ticks, sample, enter)| Step { ticks, sample, enter });
        // Totals that grow from sample to sample, if they are sorted.
        (prop::collection::vec(step, 1..40), any::<bool>()).prop_map(|(mut steps, sorted)| {
            let mut values: Vec<_> = steps.iter_mut().filter_map(|step| step.sample.as_mut()).collect();
            for member in 0..2 {
                let mut of_member: Vec<TypedValue> = values.iter().map(|values| values[member]).collect();
                if sorted {
                    of_member.sort_by_key(|value| value.bits as i64);
                }
                values.iter_mut().zip(of_member).for_each(|(values, value)| values[member] = value);
            }
            steps
        })
    }

    /// Cells and faults of a location; with `quick` in the quick way wherever it can be.
    fn booked(definitions: &DefinitionIndex, steps: &[Step], quick: bool) -> (Vec<CounterCell>, Vec<Fault>) {
        let (mut events, mut tree, mut book) = (Events::default(), CallTree::default(), Book::new(definitions));
        let (mut stack, mut time, mut faults, mut kept) = (vec![CallPathId::NONE], 0, Vec::new(), Vec::new());
        for step in steps {
            time += step.ticks;
            let top = stack[stack.len() - 1];
            if let Some(values) = &step.sample {
                let position = Position { events: events.len() as u32, callpath: top, depth: stack.len() as u32 - 1 };
                if !(quick && book.take(METRIC, values, (time, position), &events)) {
                    let ran = Ran { events: &events, tree: &tree };
                    let record = (METRIC, &values[..]);
                    faults.extend(book.record(LocationId::new(0), record, (time, position), ran, &mut kept).err());
                }
            }
            if let Some(region) = step.enter {
                stack.push(tree.child(top, RegionKey::new(region)));
                events.enter(time, stack[stack.len() - 1]);
            } else if top.is_some() {
                stack.pop();
                events.leave(time, top);
            }
        }
        let end = Position { events: events.len() as u32, callpath: CallPathId::NONE, depth: 0 };
        let mut cells = Vec::new();
        let ran = Ran { events: &events, tree: &tree };
        book.end_location(LocationId::new(0), (time, end), ran, &mut cells);
        (cells, faults)
    }

    fn definitions() -> DefinitionIndex {
        let location = Location {
            id: 0,
            name: 0,
            kind: LocationType::CPU_THREAD,
            group: 0,
            process: ProcessId::new(0),
            thread: 0,
            events: 0,
        };
        let mut definitions = DefinitionIndex::new(&Definitions::default());
        definitions.locations.push(location);
        definitions.counters = Counters::totals(METRIC, &["a", "b"]);
        definitions
    }

    #[test]
    fn samples_in_a_row_are_quick() {
        let definitions = definitions();
        let mut book = Book::new(&definitions);
        let (events, tree) = (Events::default(), CallTree::default());
        let at = Position { events: 0, callpath: CallPathId::NONE, depth: 0 };
        let values = |value| [TypedValue { kind: Type::UINT64, bits: value }; 2];
        assert!(!book.take(METRIC, &values(1), (0, at), &events));
        let ran = Ran { events: &events, tree: &tree };
        book.record(LocationId::new(0), (METRIC, &values(1)), (0, at), ran, &mut Vec::new()).unwrap();
        assert!(book.take(METRIC, &values(5), (1, at), &events));
        assert!(!book.take(METRIC, &values(3), (1, at), &events));
    }

    proptest! {
        #[test]
        fn the_quick_way_and_the_general_one_agree(steps in steps()) {
            let definitions = definitions();
            prop_assert_eq!(booked(&definitions, &steps, true), booked(&definitions, &steps, false));
        }
    }
}
