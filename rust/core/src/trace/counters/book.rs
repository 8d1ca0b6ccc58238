//! Books the counters of a location on its call paths while its events are read.
//!
//! A *sample* is the value of a counter at some time. The growth between two samples is distributed over the call paths
//! that ran in between, in proportion to their time; a strict counter is sampled at every Enter and Leave, so this is a
//! single call path. A level that is valid until the next sample, or since the last one, is integrated over that
//! interval; a level known only at its samples is interpolated linearly. A change at a point in time belongs to the
//! call path that runs then.
//!
//! Growth outside all regions is booked on no call path, so the cells of a location add up to its last value minus its
//! first.
//!
//! Samples that cover a process or a machine are kept for [`crate::counters`], which distributes them.
//!
//! *Source*: counters.md#counters-of-the-trace.

use std::cell::Cell;

use rustc_hash::FxHashMap;
use whywait_otf2::enums::Type;
use whywait_otf2::records::TypedValue;

use super::definitions::{Counters, Fault, Kind, Position, Reading};
use super::totals::Totals;
use super::values::{CounterCell, Number, Sample, Sums};
use crate::ids::{CallPathId, LocationId};
use crate::trace::calltree::CallTree;
use crate::trace::columns::Events;
use crate::trace::definition_index::DefinitionIndex;
use crate::trace::regions::Regions;

/// The latest sample of a counter at the current location.
#[derive(Clone, Copy)]
struct Latest {
    time: i64,
    value: Number,
    /// Position among the events.
    position: Position,
}

/// What a counter did between two samples.
#[derive(Clone, Copy, Default)]
struct Interval {
    /// Growth or change.
    amount: Number,
    /// The level in this interval.
    level: Option<Number>,
    /// Sum of the values at both ends, for a level that is interpolated.
    ends: Option<Number>,
}

impl Interval {
    /// Growth, change, or integral of a level over ticks; and twice the integral of an interpolated level.
    fn sums(&self, ticks: i64) -> [Number; 2] {
        let over = |value: Number| value.times(ticks);
        [self.level.map_or(self.amount, over), self.ends.map_or(Number::default(), over)]
    }
}

/// What has run on a location so far.
#[derive(Clone, Copy)]
pub struct LocationHistory<'a> {
    /// Enters and Leaves, after those of earlier locations of the shard.
    pub events: &'a Events,
    /// Their call paths.
    pub tree: &'a CallTree,
}

/// A metric class or instance at the current location.
struct Class<'a> {
    metric: u32,
    /// Its counters, if the class is defined.
    members: Option<&'a [u32]>,
    /// Whether it covers only the location that records it.
    covers_only_recorder: bool,
    /// Whether each Enter and Leave has a sample.
    is_strict: bool,
    /// The fast path, if all members are integer totals that no other class contains.
    totals: Option<Totals>,
}

/// The cells of the current location: one row per call path, with one cell per counter.
struct Cells {
    counters: usize,
    /// Row of each call path plus one, or 0 if it has none; [`CallPathId::NONE`] comes first.
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

    fn sums_mut(&mut self, callpath: CallPathId, counter: u32) -> &mut Sums {
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

/// Books the samples of one location after another.
pub struct CounterBook<'a> {
    definitions: &'a DefinitionIndex,
    counters: &'a Counters,
    classes: Vec<Class<'a>>,
    /// Position of each class in `classes` by its OTF2 id.
    class_positions: FxHashMap<u32, usize>,
    /// Position of the class of the last record.
    current: usize,
    latest: Vec<Option<Latest>>,
    /// The latest kept values, by metric and counter.
    latest_kept: FxHashMap<(u32, u32), Number>,
    cells: Cells,
    /// Whether each counter has fallen anywhere.
    has_fallen: Vec<bool>,
}

impl<'a> CounterBook<'a> {
    /// A book for the counters of a run.
    pub fn new(definitions: &'a DefinitionIndex) -> Self {
        let counters = definitions.counters.all.len();
        Self {
            definitions,
            counters: &definitions.counters,
            classes: Vec::new(),
            class_positions: FxHashMap::default(),
            current: 0,
            latest: vec![None; counters],
            latest_kept: FxHashMap::default(),
            cells: Cells { counters, row_of: Vec::new(), callpaths: Vec::new(), sums: Vec::new() },
            has_fallen: vec![false; counters],
        }
    }

    /// Whether each counter has fallen anywhere.
    pub fn has_fallen(&self) -> &[bool] {
        &self.has_fallen
    }

    /// Books the values of a metric record on the fast path; `false` if it needs the slow path.
    #[inline(always)]
    pub fn book_fast(&mut self, metric: u32, values: &[TypedValue], at: (i64, Position), events: &Events) -> bool {
        if self.classes.get(self.current).is_none_or(|class| class.metric != metric) {
            let Some(&number) = self.class_positions.get(&metric) else { return false };
            self.current = number;
        }
        let class = &mut self.classes[self.current];
        match (&mut class.totals, self.cells.row(at.1.callpath)) {
            (Some(totals), Some(row)) => totals.book(values, at, row, events),
            _ => false,
        }
    }

    /// Books the values of a metric record on the slow path; those that cover other locations go to `samples`.
    pub fn book_record(
        &mut self,
        location: LocationId,
        (metric, values): (u32, &[TypedValue]),
        at: (i64, Position),
        history: LocationHistory<'_>,
        samples: &mut Vec<Sample>,
    ) -> Result<(), Fault> {
        let class = self.class_positions.get(&metric).copied().unwrap_or_else(|| {
            self.add_class(metric, location);
            self.classes.len() - 1
        });
        let fault = Cell::new(None);
        let Class { members, covers_only_recorder, .. } = self.classes[class];
        let readings = self.counters.readings(members, values.iter().copied(), &fault);
        if covers_only_recorder {
            self.pause_fast_path(class);
            let has_unsampled_events = self.has_unsampled_events(class, at.1, history);
            for reading in readings {
                if let Err(what) = self.book_sample(reading, at, history) {
                    fault.set(Some(what));
                }
            }
            if let Some(totals) = self.classes[class].totals.as_mut().filter(|_| fault.get().is_none()) {
                totals.resume(values, at);
            }
            if has_unsampled_events && fault.get().is_none() {
                fault.set(Some(Fault::Missing));
            }
        } else {
            for reading in readings {
                if let Err(what) = self.keep_sample(metric, reading, (at.0, location), samples) {
                    fault.set(Some(what));
                }
            }
        }
        fault.get().map_or(Ok(()), Err)
    }

    /// Adds a class to the current location.
    fn add_class(&mut self, metric: u32, location: LocationId) {
        let members = self.counters.members_of(metric);
        let covers_only_recorder = self.counters.covers_only_recorder(&self.definitions.locations, metric, location);
        let mut can_be_fast = covers_only_recorder && members.is_some();
        for (i, member) in members.unwrap_or_default().iter().enumerate() {
            let counter = &self.counters.all[*member as usize];
            can_be_fast &= !members.unwrap_or_default()[..i].contains(member);
            can_be_fast &= counter.kind() == Kind::Total && counter.is_trusted() && !counter.is_real;
            for other in 0..self.classes.len() {
                if self.classes[other].members.unwrap_or_default().contains(member) {
                    can_be_fast = false;
                    self.pause_fast_path(other);
                    if let Some(totals) = self.classes[other].totals.take() {
                        self.add_totals(other, totals);
                    }
                }
            }
        }
        let first = members.and_then(|members| members.first());
        let is_strict =
            covers_only_recorder && first.is_some_and(|&first| self.counters.all[first as usize].is_strict());
        let totals = can_be_fast.then(|| Totals::new(members.unwrap_or_default().len()));
        self.class_positions.insert(metric, self.classes.len());
        self.classes.push(Class { metric, members, covers_only_recorder, is_strict, totals });
    }

    /// Whether an Enter or Leave of the program since the latest sample of a strict class has no sample.
    fn has_unsampled_events(
        &self,
        class: usize,
        position: Position,
        LocationHistory { events, tree }: LocationHistory<'_>,
    ) -> bool {
        let Class { members, is_strict, .. } = self.classes[class];
        let first = members.filter(|_| is_strict).and_then(|members| members.first());
        let Some(before) = first.and_then(|&first| self.latest[first as usize]) else { return false };
        let between = before.position.events..position.events;
        // The latest sample may belong to the first event.
        let sampled = events.time.get(between.start as usize) == Some(&before.time);
        let is_of_program = |event| {
            let region = tree.region(events.callpath(event));
            !Regions::is_pause(region) && !Regions::is_program(region)
        };
        between.skip(usize::from(sampled)).any(is_of_program)
    }

    /// Leaves the fast path of a class and copies its latest values.
    fn pause_fast_path(&mut self, class: usize) {
        let Class { members, totals, .. } = &mut self.classes[class];
        if let Some((time, position, values)) = totals.as_mut().and_then(Totals::pause) {
            for (&counter, value) in members.unwrap_or_default().iter().zip(values) {
                self.latest[counter as usize] = Some(Latest { time, value, position });
            }
        }
    }

    /// Adds the sums of the fast path to the cells.
    fn add_totals(&mut self, class: usize, totals: Totals) {
        let members = self.classes[class].members.unwrap_or_default();
        for (row, of_row) in totals.finish().chunks(members.len().max(1)).enumerate() {
            for (&counter, &sums) in members.iter().zip(of_row) {
                self.cells.sums[row * self.cells.counters + counter as usize] += sums;
            }
        }
    }

    /// Books a sample.
    fn book_sample(
        &mut self,
        reading: Reading,
        (time, position): (i64, Position),
        history: LocationHistory<'_>,
    ) -> Result<(), Fault> {
        let Reading { counter: index, value, .. } = reading;
        let counter = &self.counters.all[index as usize];
        let before = self.latest[index as usize].replace(Latest { time, value, position });
        let here = self.cells.sums_mut(position.callpath, index);
        here.samples += 1;
        here.sampled += value;
        let kind = counter.kind();
        if !matches!(kind, Kind::Level { .. }) {
            here.extend_range(value);
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
                interval.amount = value.minus(before.value);
                let has_fallen = interval.amount.value() < 0.0;
                self.has_fallen[index as usize] |= has_fallen;
                if !counter.is_trusted() {
                    // The counter may turn out to be a level.
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
        self.distribute(index, &interval, &before, (time, position), history);
        result
    }

    /// Keeps a sample that covers other locations.
    fn keep_sample(
        &mut self,
        metric: u32,
        Reading { counter, value, recorded }: Reading,
        (time, location): (i64, LocationId),
        samples: &mut Vec<Sample>,
    ) -> Result<(), Fault> {
        let is_unsigned = recorded.kind == Type::UINT64;
        samples.push(Sample { metric, counter, location, is_unsigned, time, bits: recorded.bits });
        let before = self.latest_kept.insert((metric, counter), value);
        let has_fallen = before.is_some_and(|before| value.minus(before).value() < 0.0);
        let definition = &self.counters.all[counter as usize];
        if has_fallen && definition.kind() == Kind::Total {
            self.has_fallen[counter as usize] = true;
            if definition.is_trusted() {
                return Err(Fault::Reset);
            }
        }
        Ok(())
    }

    /// Distributes an interval over the call paths that ran in it, except pauses.
    fn distribute(
        &mut self,
        counter: u32,
        interval: &Interval,
        before: &Latest,
        (time, position): (i64, Position),
        history: LocationHistory<'_>,
    ) {
        let is_known = interval.level.is_some() || interval.ends.is_some();
        let mut book = |callpath: CallPathId, [amount, area]: [Number; 2], ticks: i64| {
            let sums = self.cells.sums_mut(callpath, counter);
            sums.amount += amount;
            sums.area += area;
            if is_known {
                sums.ticks += ticks;
            }
            if let Some(level) = interval.level.filter(|_| ticks > 0) {
                sums.extend_range(level);
            }
        };
        let all = time - before.time;
        // No event between the samples, or only the event of the first.
        let between = before.position.events..position.events;
        let first = history.events.time.get(between.start as usize);
        if all == 0 || between.is_empty() || (between.len() == 1 && first == Some(&before.time)) {
            return book(position.callpath, interval.sums(all), all);
        }
        let all: i64 =
            callpaths_between(before, (time, position), history).map(|(_, since, until)| until - since).sum();
        let sums = interval.sums(all);
        if all == 0 {
            // The interval is only a pause.
            return book(before.position.callpath, sums, 0);
        }
        let (mut passed, mut distributed) = (0, [Number::default(); 2]);
        for (callpath, since, until) in callpaths_between(before, (time, position), history) {
            passed += until - since;
            let shares = sums.map(|sum| sum.share(i128::from(passed), i128::from(all)));
            book(callpath, [shares[0].minus(distributed[0]), shares[1].minus(distributed[1])], until - since);
            distributed = shares;
        }
    }

    /// Ends a location: its levels stay valid until its last event. Appends its cells, by call path and counter.
    pub fn end_location(
        &mut self,
        location: LocationId,
        (last, position): (i64, Position),
        history: LocationHistory<'_>,
        cells: &mut Vec<CounterCell>,
    ) {
        for index in 0..self.latest.len() {
            let Some(before) = self.latest[index].filter(|before| before.time < last) else { continue };
            if self.counters.all[index].kind() == (Kind::Level { next: true }) {
                let interval = Interval { level: Some(before.value), ..Interval::default() };
                self.distribute(index as u32, &interval, &before, (last, position), history);
            }
        }
        for class in 0..self.classes.len() {
            if let Some(totals) = self.classes[class].totals.take() {
                self.add_totals(class, totals);
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
        self.class_positions.clear();
        self.latest.fill(None);
        self.latest_kept.clear();
    }
}

/// The call paths that ran between two samples, with begin and end, without pauses; `NONE` is outside all regions.
fn callpaths_between<'a>(
    before: &Latest,
    (time, position): (i64, Position),
    LocationHistory { events, tree }: LocationHistory<'a>,
) -> impl Iterator<Item = (CallPathId, i64, i64)> + use<'a> {
    let (mut callpath, mut depth) = (before.position.callpath, before.position.depth);
    let mut since = before.time;
    let ends = (before.position.events..position.events).map(Some).chain([None]);
    let intervals = ends.map(move |event| {
        let Some(event) = event else { return (position.callpath, since, time) };
        let until = events.time[event as usize].clamp(since, time);
        let interval = (if depth == 0 { CallPathId::NONE } else { callpath }, since, until);
        since = until;
        let of = events.callpath(event);
        if events.is_leave(event) {
            depth = depth.saturating_sub(1);
            callpath = events.running_after(tree, event);
        } else {
            depth += 1;
            callpath = of;
        }
        interval
    });
    intervals.filter(move |&(callpath, since, until)| {
        until > since && !(callpath.is_some() && Regions::is_pause(tree.region(callpath)))
    })
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;
    use whywait_otf2::Definitions;
    use whywait_otf2::enums::LocationType;

    use super::*;
    use crate::ids::{ProcessId, RegionKey};
    use crate::trace::locations::Location;

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

    /// Cells and faults of a location, with or without the fast path.
    fn booked(definitions: &DefinitionIndex, steps: &[Step], fast: bool) -> (Vec<CounterCell>, Vec<Fault>) {
        let (mut events, mut tree, mut book) = (Events::default(), CallTree::default(), CounterBook::new(definitions));
        let (mut stack, mut time, mut faults, mut kept) = (vec![CallPathId::NONE], 0, Vec::new(), Vec::new());
        for step in steps {
            time += step.ticks;
            let top = stack[stack.len() - 1];
            if let Some(values) = &step.sample {
                let position = Position { events: events.len() as u32, callpath: top, depth: stack.len() as u32 - 1 };
                if !(fast && book.book_fast(METRIC, values, (time, position), &events)) {
                    let history = LocationHistory { events: &events, tree: &tree };
                    let record = (METRIC, &values[..]);
                    faults.extend(
                        book.book_record(LocationId::new(0), record, (time, position), history, &mut kept).err(),
                    );
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
        let history = LocationHistory { events: &events, tree: &tree };
        book.end_location(LocationId::new(0), (time, end), history, &mut cells);
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
    fn consecutive_samples_take_the_fast_path() {
        let definitions = definitions();
        let mut book = CounterBook::new(&definitions);
        let (events, tree) = (Events::default(), CallTree::default());
        let at = Position { events: 0, callpath: CallPathId::NONE, depth: 0 };
        let values = |value| [TypedValue { kind: Type::UINT64, bits: value }; 2];
        assert!(!book.book_fast(METRIC, &values(1), (0, at), &events));
        let history = LocationHistory { events: &events, tree: &tree };
        book.book_record(LocationId::new(0), (METRIC, &values(1)), (0, at), history, &mut Vec::new()).unwrap();
        assert!(book.book_fast(METRIC, &values(5), (1, at), &events));
        assert!(!book.book_fast(METRIC, &values(3), (1, at), &events));
    }

    proptest! {
        #[test]
        fn fast_and_slow_path_agree(steps in steps()) {
            let definitions = definitions();
            prop_assert_eq!(booked(&definitions, &steps, true), booked(&definitions, &steps, false));
        }
    }
}
