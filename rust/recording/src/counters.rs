//! Counters of a process: their definitions in the archive, and their values as they are read.

use rustc_hash::FxHashMap;
use whywait_otf2::enums::{Base, MetricMode, MetricOccurrence, MetricScope, MetricType, RecorderKind, Type};
use whywait_otf2::records::{MetricClass, MetricInstance, MetricMember, TypedValue};

use crate::definitions::Catalog;
use crate::format::{COUNTERS, CounterSource};
use crate::model::location;
use crate::samples::{COUNTS, Sample};
use crate::spool::{CounterEntry, Slot, word};

/// The counters of the run.
#[derive(Debug, Default)]
pub(crate) struct Metrics {
    members: FxHashMap<CounterEntry, u32>,
    classes: FxHashMap<(Vec<u32>, MetricOccurrence), u32>,
    /// Classes and instances share their numbers.
    next: u32,
}

/// The counters that a thread has.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(crate) struct Classes {
    /// The class of those of the thread, and their number.
    of_thread: Option<(u32, usize)>,
    /// The instance of those of the process, and their number.
    of_process: Option<(u32, usize)>,
}

impl Metrics {
    /// Defines the counters of a process: for its first thread, and for the others.
    pub(crate) fn define(&mut self, rank: u32, counters: &[CounterEntry], to: &mut Catalog) -> (Classes, Classes) {
        let is_of_process = |counter: &CounterEntry| counter.source == CounterSource::Mpi as u32;
        let split = counters.iter().position(is_of_process).unwrap_or(counters.len());
        let members: Vec<u32> = counters.iter().map(|counter| self.member(counter, to)).collect();
        let (of_thread, of_process) = members.split_at(split);
        let class = (!of_thread.is_empty())
            .then(|| (self.class(of_thread, MetricOccurrence::SYNCHRONOUS_STRICT, to), of_thread.len()));
        let instance = (!of_process.is_empty()).then(|| {
            let metric_class = self.class(of_process, MetricOccurrence::SYNCHRONOUS, to);
            let id = self.next();
            let (recorder, metric_scope, scope) = (location(rank, 0), MetricScope::LOCATION_GROUP, u64::from(rank));
            to.add(MetricInstance { id, metric_class, recorder, metric_scope, scope });
            (id, of_process.len())
        });
        let others = Classes { of_thread: class, of_process: None };
        (Classes { of_process: instance, ..others }, others)
    }

    /// Defines the counts that come with samples.
    pub(crate) fn of_samples(&mut self, to: &mut Catalog) -> u32 {
        let members = SAMPLED.map(|(name, exponent, unit, description)| {
            let counter = CounterEntry {
                source: CounterSource::Rusage as u32,
                mode: u32::from(MetricMode::ACCUMULATED_START.0),
                exponent,
                name: name.into(),
                unit: unit.into(),
                description: description.into(),
            };
            self.member(&counter, to)
        });
        self.class(&members, MetricOccurrence::ASYNCHRONOUS, to)
    }

    fn next(&mut self) -> u32 {
        self.next += 1;
        self.next - 1
    }

    fn member(&mut self, counter: &CounterEntry, to: &mut Catalog) -> u32 {
        if let Some(id) = self.members.get(counter) {
            return *id;
        }
        let id = self.members.len() as u32;
        self.members.insert(counter.clone(), id);
        let metric_type =
            if counter.source == CounterSource::Rusage as u32 { MetricType::RUSAGE } else { MetricType::OTHER };
        let name = to.string(&counter.name);
        let (description, unit) = (to.string(&counter.description), to.string(&counter.unit));
        to.add(MetricMember {
            id,
            name,
            description,
            metric_type,
            metric_mode: MetricMode(counter.mode as u8),
            value_type: Type::UINT64,
            base: Base::DECIMAL,
            exponent: i64::from(counter.exponent),
            unit,
        });
        id
    }

    fn class(&mut self, members: &[u32], metric_occurrence: MetricOccurrence, to: &mut Catalog) -> u32 {
        if let Some(id) = self.classes.get(&(members.to_vec(), metric_occurrence)) {
            return *id;
        }
        let id = self.next();
        self.classes.insert((members.to_vec(), metric_occurrence), id);
        let metric_members = members.to_vec();
        to.add(MetricClass { id, metric_members, metric_occurrence, recorder_kind: RecorderKind::CPU });
        id
    }
}

/// The counts that come with samples, named and described as those of `--counters rusage`.
const SAMPLED: [(&str, i32, &str, &str); COUNTS] = [
    ("ru_stime", -6, "s", "time in the kernel"),
    ("ru_minflt", 0, "#", "page faults without I/O"),
    ("ru_majflt", 0, "#", "page faults with I/O"),
    ("ru_nvcsw", 0, "#", "context switches because the thread slept"),
    ("ru_nivcsw", 0, "#", "context switches because another thread got the core"),
];

/// Counts that come with the samples of a thread.
#[derive(Debug)]
pub(crate) struct Counts {
    metric: u32,
    values: [TypedValue; COUNTS],
    is_known: bool,
}

impl Counts {
    pub(crate) fn new(metric: u32) -> Self {
        Self { metric, values: [TypedValue { kind: Type::UINT64, bits: 0 }; COUNTS], is_known: false }
    }

    /// The counts at a sample, if any is another than at the one before.
    pub(crate) fn changed(&mut self, sample: &Sample) -> Option<(u32, &[TypedValue])> {
        let mut changed = !std::mem::replace(&mut self.is_known, true);
        for (value, low) in self.values.iter_mut().zip(sample.counts) {
            // Only the low halves were kept.
            let grown = low.wrapping_sub(value.bits as u32);
            changed |= grown != 0;
            value.bits += u64::from(grown);
        }
        changed.then_some((self.metric, &self.values[..]))
    }
}

/// Values of a thread's counters while its slots are read.
#[derive(Debug)]
pub(crate) struct Values {
    classes: Classes,
    /// At the last entry or return; none before the first.
    last: Vec<TypedValue>,
    known: bool,
}

impl Values {
    pub(crate) fn new(classes: Classes) -> Self {
        let count = [classes.of_thread, classes.of_process].iter().flatten().map(|(_, count)| count).sum();
        Self { classes, last: vec![TypedValue { kind: Type::UINT64, bits: 0 }; count], known: false }
    }

    /// Takes over what a slot says.
    pub(crate) fn update(&mut self, slot: &Slot, items: usize) {
        let block = (word(slot, 0) >> 16) as u32 as usize;
        let values = self.last.iter_mut().skip(block.saturating_mul(COUNTERS));
        for (number, value) in values.take(items.min(COUNTERS)).enumerate() {
            value.bits = word(slot, 1 + number);
        }
        self.known = true;
    }

    /// The counters of the thread, which stand at each entry and return.
    #[inline]
    pub(crate) fn of_thread(&self) -> Option<(u32, &[TypedValue])> {
        let (class, count) = self.classes.of_thread.filter(|_| self.known)?;
        Some((class, &self.last[..count]))
    }

    /// The counters of the process.
    #[inline]
    pub(crate) fn of_process(&self) -> Option<(u32, &[TypedValue])> {
        let (instance, count) = self.classes.of_process.filter(|_| self.known)?;
        Some((instance, &self.last[self.last.len() - count..]))
    }
}
