//! Samples of the call path: what a location ran at moments of its processor time, between its events.
//!
//! They are kept apart from the events, and no event, call path or time depends on them. Before some of them stands a record
//! of counters that belongs to the sample: how much the location had used of the system by then.

use bitcode::{Decode, Encode};
use rustc_hash::FxHashMap;
use whywait_otf2::Definitions;
use whywait_otf2::enums::MetricOccurrence;
use whywait_otf2::records::TypedValue;

use crate::ids::NONE;

/// What a location has used of the system since the sample before.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Encode, Decode)]
pub struct Usage {
    /// Processor time in the system, microseconds.
    pub system_time: u64,
    /// Page faults without input.
    pub minor_faults: u64,
    /// Page faults that read from a disk.
    pub major_faults: u64,
    /// Switches to another thread because this one waited.
    pub voluntary_switches: u64,
    /// Switches to another thread although this one could go on.
    pub involuntary_switches: u64,
}

impl Usage {
    /// Whether nothing was used.
    pub fn is_empty(&self) -> bool {
        *self == Self::default()
    }

    /// Adds another use.
    pub(crate) fn add(&mut self, other: &Self) {
        self.system_time += other.system_time;
        self.minor_faults += other.minor_faults;
        self.major_faults += other.major_faults;
        self.voluntary_switches += other.voluntary_switches;
        self.involuntary_switches += other.involuntary_switches;
    }

    fn field(&mut self, name: &str) -> Option<&mut u64> {
        Some(match name {
            "ru_stime" => &mut self.system_time,
            "ru_minflt" => &mut self.minor_faults,
            "ru_majflt" => &mut self.major_faults,
            "ru_nvcsw" => &mut self.voluntary_switches,
            "ru_nivcsw" => &mut self.involuntary_switches,
            _ => return None,
        })
    }

    fn since(&self, earlier: &Self) -> Self {
        Self {
            system_time: self.system_time.saturating_sub(earlier.system_time),
            minor_faults: self.minor_faults.saturating_sub(earlier.minor_faults),
            major_faults: self.major_faults.saturating_sub(earlier.major_faults),
            voluntary_switches: self.voluntary_switches.saturating_sub(earlier.voluntary_switches),
            involuntary_switches: self.involuntary_switches.saturating_sub(earlier.involuntary_switches),
        }
    }
}

/// One sample.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Encode, Decode)]
pub struct CallSample {
    /// Corrected time in ticks, at least that of the event before.
    pub time: i64,
    /// The calling context, an id of the definitions.
    pub context: u32,
    /// What triggered it, an id of the definitions.
    pub generator: u32,
    /// Number of events of the shard before it.
    pub events: u32,
    /// Position among [`super::shard::Shard::usages`]; [`NONE`] if nothing was used.
    pub usage: u32,
    /// Where in a library it was, in a call: a string of the definitions; [`NONE`] if that is not known.
    pub address: u32,
}

/// The metric classes whose records belong to samples.
#[derive(Clone, Debug, Default)]
pub struct UsageClasses {
    /// For each class the names of its members, with the factor to microseconds of those that are times.
    members: FxHashMap<u32, Vec<(String, Factor)>>,
}

/// What values are multiplied by, and divided by then.
type Factor = (u64, u64);

impl UsageClasses {
    /// Those of a run: classes without fixed times that count nothing but the use of the system, if there are samples.
    pub fn new(definitions: &Definitions) -> Self {
        if definitions.interrupt_generators.is_empty() {
            return Self::default();
        }
        let known: FxHashMap<u32, _> = definitions.metric_members.iter().map(|member| (member.id, member)).collect();
        let classes =
            definitions.metric_classes.iter().filter(|class| class.metric_occurrence == MetricOccurrence::ASYNCHRONOUS);
        let members = classes.filter_map(|class| {
            let members = class.metric_members.iter().map(|id| {
                let member = known.get(id)?;
                let name = definitions.string(member.name);
                Usage::default().field(name)?;
                let factor = if name == "ru_stime" { microseconds(member.exponent)? } else { (1, 1) };
                Some((name.to_owned(), factor))
            });
            Some((class.id, members.collect::<Option<Vec<_>>>()?))
        });
        Self { members: members.filter(|(_, members)| !members.is_empty()).collect() }
    }

    /// Whether a metric class is one of them.
    #[inline]
    pub fn contains(&self, class: u32) -> bool {
        !self.members.is_empty() && self.members.contains_key(&class)
    }

    /// Adds the values of a record to what is known of a location; returns whether the record belongs to samples.
    pub(super) fn update(&self, class: u32, values: impl Iterator<Item = TypedValue>, total: &mut Usage) -> bool {
        let Some(members) = self.members.get(&class) else { return false };
        for ((name, (by, over)), value) in members.iter().zip(values) {
            if let Some(field) = total.field(name) {
                *field = value.bits.saturating_mul(*by) / over;
            }
        }
        true
    }
}

/// The factor of a power of ten of seconds.
fn microseconds(exponent: i64) -> Option<Factor> {
    let power = |of: i64| u32::try_from(of).ok().and_then(|of| 10u64.checked_pow(of));
    let exponent = exponent.checked_add(6)?;
    if exponent >= 0 { Some((power(exponent)?, 1)) } else { Some((1, power(-exponent)?)) }
}

/// What was used before each sample of a location.
#[derive(Debug, Default)]
pub(super) struct UsageSoFar {
    /// Since the thread began, and at the sample before.
    pub(super) total: Usage,
    earlier: Option<Usage>,
}

impl UsageSoFar {
    /// What was used since the sample before, of which there must be one.
    pub(super) fn since_last(&mut self) -> Usage {
        let earlier = self.earlier.replace(self.total);
        earlier.map_or_else(Usage::default, |earlier| self.total.since(&earlier))
    }
}

/// Adds a use to a list, unless nothing was used; returns its position.
pub(super) fn keep(usages: &mut Vec<Usage>, usage: Usage) -> u32 {
    if usage.is_empty() {
        return NONE;
    }
    usages.push(usage);
    usages.len() as u32 - 1
}
