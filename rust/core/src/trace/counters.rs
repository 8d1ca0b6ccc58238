//! Counters: what the definitions say of them, and what they come to.
//!
//! *Source*: counters.md#counters-of-the-trace; OTF2's definitions of metric modes.

use std::cell::Cell;

use rustc_hash::FxHashMap;
use whywait_otf2::Definitions;
use whywait_otf2::enums::{Base, GroupType, LocationType, MetricMode, MetricOccurrence, MetricScope, MetricType, Type};
use whywait_otf2::records::TypedValue;

use super::NONE;
pub use super::counter_values::{CounterCell, Number, Sample, Sums};
use super::locations::Location;
use crate::ids::{CallPathId, Ids, LocationId};
use crate::{Error, Result};

/// What a counter's values say.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Kind {
    /// A total so far: what counts is how it grows.
    #[default]
    Total,
    /// A change.
    Change {
        /// Whether it is that of the interval that begins with the sample, not of the one that ends.
        next: bool,
        /// Whether it is that of the moment.
        point: bool,
    },
    /// A level that holds for an interval.
    Level {
        /// Whether for the one that begins with the sample.
        next: bool,
    },
    /// A level at the moment, linear in between.
    Samples,
}

/// A counter: members of metric classes that mean the same.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Counter {
    /// Name.
    pub name: String,
    /// Description.
    pub description: String,
    /// Unit.
    pub unit: String,
    /// Where it comes from.
    pub metric_type: MetricType,
    /// What its values are said to be.
    pub mode: MetricMode,
    /// Whether values are floating point numbers.
    pub is_real: bool,
    /// Base of the factor of its values.
    pub base: Base,
    /// Exponent of the factor of its values.
    pub exponent: i64,
    /// When it is sampled.
    pub occurrence: MetricOccurrence,
    /// What its values are taken as instead, if somebody who knows better says so.
    pub taken_as: Option<MetricMode>,
}

impl Counter {
    /// What its values say, by their mode.
    #[must_use]
    pub fn kind(&self) -> Kind {
        match self.taken_as.unwrap_or(self.mode) {
            MetricMode::ABSOLUTE_POINT => Kind::Samples,
            MetricMode::ABSOLUTE_LAST => Kind::Level { next: false },
            MetricMode::ABSOLUTE_NEXT => Kind::Level { next: true },
            MetricMode::RELATIVE_POINT => Kind::Change { next: false, point: true },
            MetricMode::RELATIVE_LAST => Kind::Change { next: false, point: false },
            MetricMode::RELATIVE_NEXT => Kind::Change { next: true, point: false },
            _ => Kind::Total,
        }
    }

    /// What a recorded value has to be multiplied with.
    #[must_use]
    pub fn factor(&self) -> f64 {
        let base: f64 = if self.base == Base::BINARY { 2.0 } else { 10.0 };
        match i32::try_from(self.exponent) {
            Ok(exponent) if exponent.abs() <= EXPONENT => base.powi(exponent),
            _ => 1.0,
        }
    }

    /// Whether a total that falls was reset; of others one must think that they are no totals.
    #[must_use]
    pub fn is_trusted(&self) -> bool {
        matches!(self.metric_type, MetricType::PAPI | MetricType::RUSAGE) || self.taken_as.is_some()
    }

    /// Whether each Enter and Leave has a sample.
    #[must_use]
    pub fn is_strict(&self) -> bool {
        self.occurrence == MetricOccurrence::SYNCHRONOUS_STRICT
    }
}

/// Larger exponents make no number.
const EXPONENT: i32 = 300;

/// All counters of a run.
#[derive(Debug, Default)]
pub struct Counters {
    /// The counters.
    pub all: Vec<Counter>,
    /// Indexes of the counters of each metric class and instance, by OTF2 id.
    members: FxHashMap<u32, Vec<u32>>,
    /// The CPU threads that each metric instance speaks of.
    instances: FxHashMap<u32, Vec<LocationId>>,
    /// The streams of devices in the scope of each metric instance, sorted; none of most.
    streams: FxHashMap<u32, Vec<LocationId>>,
    /// What is odd about the definitions.
    pub oddities: Vec<String>,
}

impl Counters {
    /// Reads the definitions: a counter is a member of a class, the same for all members that are defined alike.
    #[must_use]
    pub fn new(definitions: &Definitions) -> Self {
        let mut counters = Self::default();
        let members: FxHashMap<u32, _> = definitions.metric_members.iter().map(|member| (member.id, member)).collect();
        for class in &definitions.metric_classes {
            let indexes: Option<Vec<u32>> = class
                .metric_members
                .iter()
                .map(|id| {
                    let member = members.get(id)?;
                    let text = |id| definitions.string(id).to_owned();
                    let counter = Counter {
                        name: text(member.name),
                        description: text(member.description),
                        unit: text(member.unit),
                        metric_type: member.metric_type,
                        mode: member.metric_mode,
                        is_real: member.value_type == Type::DOUBLE,
                        base: member.base,
                        exponent: member.exponent,
                        occurrence: class.metric_occurrence,
                        taken_as: None,
                    };
                    let known = counters.all.iter().position(|other| *other == counter);
                    Some(known.unwrap_or_else(|| {
                        counters.all.push(counter);
                        counters.all.len() - 1
                    }) as u32)
                })
                .collect();
            if let Some(indexes) = indexes {
                counters.members.entry(class.id).or_insert(indexes);
            }
        }
        for instance in &definitions.metric_instances {
            if let Some(class) = counters.members.get(&instance.metric_class).cloned() {
                counters.members.entry(instance.id).or_insert(class);
            }
        }
        counters.find_oddities();
        counters
    }

    /// Takes the values of counters as what a caller says that they are, by name.
    pub fn take_as(&mut self, modes: &[(String, MetricMode)]) -> Result<()> {
        for (name, mode) in modes {
            let mut named = self.all.iter_mut().filter(|counter| counter.name == *name).peekable();
            if named.peek().is_none() {
                return Err(Error::Usage(format!("the trace defines no counter {name}")));
            }
            named.for_each(|counter| counter.taken_as = Some(*mode));
        }
        Ok(())
    }

    fn find_oddities(&mut self) {
        let mut units: FxHashMap<&str, (&str, Base, i64)> = FxHashMap::default();
        for Counter { name, unit, base, exponent, .. } in &self.all {
            if i32::try_from(*exponent).map_or(true, |exponent| exponent.abs() > EXPONENT) {
                self.oddities.push(format!("{name} has the exponent {exponent}: its values stay as they are"));
            }
            let own = (unit.as_str(), *base, *exponent);
            if *units.entry(name).or_insert(own) != own {
                self.oddities
                    .push(format!("{name} is defined with several units or factors: these are several counters"));
            }
        }
    }

    /// Totals of whole numbers, all members of one metric class.
    #[cfg(test)]
    pub(super) fn totals(metric: u32, names: &[&str]) -> Self {
        let counter = |name: &&str| Counter {
            name: (*name).to_owned(),
            description: String::new(),
            unit: "#".to_owned(),
            metric_type: MetricType::PAPI,
            mode: MetricMode::ACCUMULATED_START,
            is_real: false,
            base: Base::DECIMAL,
            exponent: 0,
            occurrence: MetricOccurrence::SYNCHRONOUS_STRICT,
            taken_as: None,
        };
        let members = FxHashMap::from_iter([(metric, (0..names.len() as u32).collect())]);
        Self { all: names.iter().map(counter).collect(), members, ..Self::default() }
    }

    /// Finds the CPU threads in the scope of each metric instance.
    pub(super) fn find_carriers(&mut self, definitions: &Definitions, locations: &[Location]) {
        if definitions.metric_instances.is_empty() {
            return;
        }
        let mut by_group: FxHashMap<u32, Vec<LocationId>> = FxHashMap::default();
        for (index, location) in locations.iter().enumerate() {
            let index = LocationId::at(index);
            by_group.entry(location.group).or_default().push(index);
        }
        let parent_of_group: FxHashMap<u32, u32> =
            definitions.location_groups.iter().map(|group| (group.id, group.system_tree_parent)).collect();
        let parent_of_node: FxHashMap<u32, u32> =
            definitions.system_tree_nodes.iter().map(|node| (node.id, node.parent)).collect();
        let is_below = |group: u32, node: u32| {
            let mut next = parent_of_group.get(&group).copied();
            // A tree has no more levels than nodes: what is longer goes in a circle.
            for _ in 0..=parent_of_node.len() {
                match next {
                    Some(found) if found == node => return true,
                    Some(found) => next = parent_of_node.get(&found).copied(),
                    None => return false,
                }
            }
            false
        };
        let by_id: FxHashMap<u64, LocationId> =
            locations.iter().enumerate().map(|(index, location)| (location.id, LocationId::at(index))).collect();
        for instance in &definitions.metric_instances {
            let scope = u32::try_from(instance.scope).unwrap_or(NONE);
            let members: Vec<LocationId> = match instance.metric_scope {
                MetricScope::LOCATION => by_id.get(&instance.scope).copied().into_iter().collect(),
                MetricScope::LOCATION_GROUP => by_group.get(&scope).cloned().unwrap_or_default(),
                MetricScope::SYSTEM_TREE_NODE => {
                    let mut groups: Vec<u32> =
                        by_group.keys().copied().filter(|&group| is_below(group, scope)).collect();
                    groups.sort_unstable();
                    groups.iter().flat_map(|group| by_group[group].iter().copied()).collect()
                }
                MetricScope::GROUP => match definitions.group(scope) {
                    Some(group) if matches!(group.group_type, GroupType::LOCATIONS | GroupType::COMM_LOCATIONS) => {
                        group.members.iter().filter_map(|id| by_id.get(id).copied()).collect()
                    }
                    _ => Vec::new(),
                },
                _ => Vec::new(),
            };
            let exists = match instance.metric_scope {
                MetricScope::LOCATION_GROUP => parent_of_group.contains_key(&scope),
                MetricScope::SYSTEM_TREE_NODE => parent_of_node.contains_key(&scope),
                MetricScope::GROUP => definitions.group(scope).is_some(),
                _ => by_id.contains_key(&instance.scope),
            };
            if !exists {
                let text = format!("the scope of metric instance {} does not exist: its process counts", instance.id);
                self.oddities.push(text);
            }
            let mut streams = of_kind(locations, LocationType::ACCELERATOR_STREAM, members.iter().copied());
            if !streams.is_empty() {
                streams.sort_unstable();
                self.streams.entry(instance.id).or_insert(streams);
            }
            // A scope without a thread, or that does not exist: the process, and at last that of the recorder.
            let recorder = by_id.get(&instance.recorder).copied();
            let processes = members.first().copied().into_iter().chain(recorder);
            let mut carriers = threads(locations, members.iter().copied());
            for index in processes {
                if carriers.is_empty() {
                    carriers = threads_of_process(locations, index);
                }
            }
            carriers.sort_unstable();
            self.instances.entry(instance.id).or_insert(carriers);
        }
    }

    /// The CPU threads that a record of a metric at a location speaks of; none if nobody knows.
    #[must_use]
    pub fn carriers(&self, locations: &[Location], metric: u32, location: LocationId) -> Vec<LocationId> {
        match self.instances.get(&metric) {
            Some(carriers) => carriers.clone(),
            None if has_regions(locations[location].kind) => vec![location],
            None => threads_of_process(locations, location),
        }
    }

    /// The streams of devices that records of a metric speak of besides, sorted.
    #[must_use]
    pub fn streams(&self, metric: u32) -> &[LocationId] {
        self.streams.get(&metric).map_or(&[], Vec::as_slice)
    }

    /// Whether a record of a metric speaks of the location that it is recorded at, which has regions.
    #[must_use]
    pub fn is_of_recorder(&self, locations: &[Location], metric: u32, location: LocationId) -> bool {
        match self.instances.get(&metric) {
            Some(carriers) => carriers[..] == [location],
            None => has_regions(locations[location].kind),
        }
    }

    /// The counters that a metric record has values of; `None` if its class is not defined.
    #[must_use]
    pub fn of(&self, metric: u32) -> Option<&[u32]> {
        self.members.get(&metric).map(Vec::as_slice)
    }

    /// The values of a metric record, each with its counter; what is wrong with those that it lacks goes to `fault`.
    pub fn readings<'a>(
        &'a self,
        members: Option<&'a [u32]>,
        values: impl ExactSizeIterator<Item = TypedValue> + 'a,
        fault: &'a Cell<Option<Fault>>,
    ) -> impl Iterator<Item = Reading> + 'a {
        let members = members.filter(|members| members.len() == values.len());
        if members.is_none() {
            fault.set(Some(Fault::Unknown));
        }
        members.unwrap_or_default().iter().zip(values).filter_map(|(&counter, recorded)| {
            match Number::of(recorded, self.all[counter as usize].is_real) {
                None => fault.set(Some(Fault::Unknown)),
                Some(value) if !value.real.is_finite() => fault.set(Some(Fault::NotANumber)),
                Some(value) => return Some(Reading { counter, value, recorded }),
            }
            None
        })
    }
}

/// A value of a counter in a metric record.
#[derive(Clone, Copy, Debug)]
pub struct Reading {
    /// Index of the counter.
    pub counter: u32,
    /// The value.
    pub value: Number,
    /// As it was recorded.
    pub recorded: TypedValue,
}

/// Where the events of a location stand at a sample.
#[derive(Clone, Copy, Debug)]
pub struct Position {
    /// Number of events of the shard.
    pub events: u32,
    /// The innermost region.
    pub callpath: CallPathId,
    /// Number of regions around the sample.
    pub depth: u32,
}

/// What is wrong with a metric record.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Fault {
    /// Its class is unknown, or has another number of members or other types.
    Unknown,
    /// A total has fallen that was reset.
    Reset,
    /// A value is not a number.
    NotANumber,
    /// Some Enter or Leave since the last sample has none, though each should.
    Missing,
}

/// Whether a location can have regions: others record metrics alone.
fn has_regions(kind: LocationType) -> bool {
    kind != LocationType::METRIC
}

fn threads(locations: &[Location], indexes: impl Iterator<Item = LocationId>) -> Vec<LocationId> {
    of_kind(locations, LocationType::CPU_THREAD, indexes)
}

fn of_kind(locations: &[Location], kind: LocationType, indexes: impl Iterator<Item = LocationId>) -> Vec<LocationId> {
    indexes.filter(|&index| locations[index].kind == kind).collect()
}

/// The CPU threads of the process that a location belongs to.
fn threads_of_process(locations: &[Location], index: LocationId) -> Vec<LocationId> {
    let process = locations[index].process;
    if process.is_none() {
        return Vec::new();
    }
    // The locations of a process stand together.
    let start = LocationId::at(locations.partition_point(|location| location.process < process));
    let end = LocationId::at(locations.partition_point(|location| location.process <= process));
    threads(locations, Ids { start, end })
}
