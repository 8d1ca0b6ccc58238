//! Counters as the trace defines them, and the locations that they cover.
//!
//! *Source*: counters.md#counters-of-the-trace; OTF2's definitions of metric modes.

use std::cell::Cell;

use rustc_hash::FxHashMap;
use whywait_otf2::Definitions;
use whywait_otf2::enums::{Base, GroupType, LocationType, MetricMode, MetricOccurrence, MetricScope, MetricType, Type};
use whywait_otf2::records::TypedValue;

use super::values::Number;
use crate::ids::{CallPathId, Ids, LocationId};
use crate::trace::NONE;
use crate::trace::call_samples::UsageClasses;
use crate::trace::locations::Location;
use crate::{Error, Result};

/// What the values of a counter mean.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Kind {
    /// A running total, of which the growth counts.
    #[default]
    Total,
    /// A change.
    Change {
        /// Whether it happens in the interval after the sample instead of before it.
        next: bool,
        /// Whether it happens at the time of the sample.
        point: bool,
    },
    /// A level that is valid for an interval.
    Level {
        /// Whether for the interval after the sample instead of before it.
        next: bool,
    },
    /// A level at the time of the sample, linear in between.
    Samples,
}

/// A counter: all members of metric classes with the same definition.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Counter {
    /// Name.
    pub name: String,
    /// Description.
    pub description: String,
    /// Unit.
    pub unit: String,
    /// Its source, such as PAPI.
    pub metric_type: MetricType,
    /// Mode of its values, according to the trace.
    pub mode: MetricMode,
    /// Whether its values are floating-point numbers.
    pub is_real: bool,
    /// Base of the factor of its values.
    pub base: Base,
    /// Exponent of the factor of its values.
    pub exponent: i64,
    /// When it is sampled.
    pub occurrence: MetricOccurrence,
    /// Mode of its values, if the user corrects the trace.
    pub mode_override: Option<MetricMode>,
}

impl Counter {
    /// The meaning of its values, by their mode.
    pub fn kind(&self) -> Kind {
        match self.mode_override.unwrap_or(self.mode) {
            MetricMode::ABSOLUTE_POINT => Kind::Samples,
            MetricMode::ABSOLUTE_LAST => Kind::Level { next: false },
            MetricMode::ABSOLUTE_NEXT => Kind::Level { next: true },
            MetricMode::RELATIVE_POINT => Kind::Change { next: false, point: true },
            MetricMode::RELATIVE_LAST => Kind::Change { next: false, point: false },
            MetricMode::RELATIVE_NEXT => Kind::Change { next: true, point: false },
            _ => Kind::Total,
        }
    }

    /// Factor from recorded values to values in the counter's unit.
    pub fn factor(&self) -> f64 {
        let base: f64 = if self.base == Base::BINARY { 2.0 } else { 10.0 };
        match i32::try_from(self.exponent) {
            Ok(exponent) if exponent.abs() <= EXPONENT => base.powi(exponent),
            _ => 1.0,
        }
    }

    /// Whether a falling total was reset; a falling counter of any other source is treated as a level.
    pub fn is_trusted(&self) -> bool {
        matches!(self.metric_type, MetricType::PAPI | MetricType::RUSAGE) || self.mode_override.is_some()
    }

    /// Whether each Enter and Leave has a sample.
    pub fn is_strict(&self) -> bool {
        self.occurrence == MetricOccurrence::SYNCHRONOUS_STRICT
    }
}

/// Larger exponents may exceed the range of floating-point numbers.
const EXPONENT: i32 = 300;

/// All counters of a run.
#[derive(Clone, Debug, Default)]
pub struct Counters {
    /// The counters.
    pub all: Vec<Counter>,
    /// Indexes of the counters of each metric class and instance, by OTF2 id.
    members: FxHashMap<u32, Vec<u32>>,
    /// The CPU threads that each metric instance covers.
    instances: FxHashMap<u32, Vec<LocationId>>,
    /// The device streams that each metric instance covers, sorted; most cover none.
    streams: FxHashMap<u32, Vec<LocationId>>,
    /// Inconsistencies of the definitions.
    pub oddities: Vec<String>,
}

impl Counters {
    /// Reads the definitions; members with equal definitions are the same counter. The classes of samples are no counters.
    pub fn new(definitions: &Definitions, of_samples: &UsageClasses) -> Self {
        let mut counters = Self::default();
        let members: FxHashMap<u32, _> = definitions.metric_members.iter().map(|member| (member.id, member)).collect();
        for class in definitions.metric_classes.iter().filter(|class| !of_samples.contains(class.id)) {
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
                        mode_override: None,
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

    /// Sets the modes that the user gives for counters by name.
    pub fn set_modes(&mut self, modes: &[(String, MetricMode)]) -> Result<()> {
        for (name, mode) in modes {
            let mut named = self.all.iter_mut().filter(|counter| counter.name == *name).peekable();
            if named.peek().is_none() {
                return Err(Error::Usage(format!("the trace defines no counter {name}")));
            }
            named.for_each(|counter| counter.mode_override = Some(*mode));
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

    /// Integer totals, all members of one metric class.
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
            mode_override: None,
        };
        let members = FxHashMap::from_iter([(metric, (0..names.len() as u32).collect())]);
        Self { all: names.iter().map(counter).collect(), members, ..Self::default() }
    }

    /// Finds the CPU threads in the scope of each metric instance.
    pub(in crate::trace) fn find_covered_threads(&mut self, definitions: &Definitions, locations: &[Location]) {
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
            // A longer path than the number of nodes is a cycle.
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
            // A scope without CPU threads, or one that does not exist, covers its process, or else that of the
            // recorder.
            let recorder = by_id.get(&instance.recorder).copied();
            let processes = members.first().copied().into_iter().chain(recorder);
            let mut covered = threads(locations, members.iter().copied());
            for index in processes {
                if covered.is_empty() {
                    covered = threads_of_process(locations, index);
                }
            }
            covered.sort_unstable();
            self.instances.entry(instance.id).or_insert(covered);
        }
    }

    /// The CPU threads that a record of a metric at a location covers; empty if unknown.
    pub fn covered_threads(&self, locations: &[Location], metric: u32, location: LocationId) -> Vec<LocationId> {
        match self.instances.get(&metric) {
            Some(covered) => covered.clone(),
            None if has_regions(locations[location].kind) => vec![location],
            None => threads_of_process(locations, location),
        }
    }

    /// The device streams that records of a metric also cover, sorted.
    pub fn covered_streams(&self, metric: u32) -> &[LocationId] {
        self.streams.get(&metric).map_or(&[], Vec::as_slice)
    }

    /// Whether a record of a metric covers only the location that records it, which has regions.
    pub fn covers_only_recorder(&self, locations: &[Location], metric: u32, location: LocationId) -> bool {
        match self.instances.get(&metric) {
            Some(covered) => covered[..] == [location],
            None => has_regions(locations[location].kind),
        }
    }

    /// The counters of a metric class or instance; `None` if it is not defined.
    pub fn members_of(&self, metric: u32) -> Option<&[u32]> {
        self.members.get(&metric).map(Vec::as_slice)
    }

    /// The valid values of a metric record with their counters; `fault` receives what is wrong with the others.
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
            match Number::from_recorded(recorded, self.all[counter as usize].is_real) {
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

/// Position of a sample among the events of its location.
#[derive(Clone, Copy, Debug)]
pub struct Position {
    /// Number of events of the shard before it.
    pub events: u32,
    /// The innermost region.
    pub callpath: CallPathId,
    /// Number of regions around the sample.
    pub depth: u32,
}

/// What is wrong with a metric record.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Fault {
    /// Its class is undefined, or the number or types of its values differ from its class.
    Unknown,
    /// A total was reset.
    Reset,
    /// A value is not a number.
    NotANumber,
    /// An Enter or Leave since the last sample of a strict counter has no sample.
    Missing,
}

/// Whether a location can have regions; others only record metrics.
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
    // The locations of a process are contiguous.
    let start = LocationId::at(locations.partition_point(|location| location.process < process));
    let end = LocationId::at(locations.partition_point(|location| location.process <= process));
    threads(locations, Ids { start, end })
}
