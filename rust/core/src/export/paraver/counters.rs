//! Counters: what each counted since the last reading of its thread.

use std::cell::Cell;

use whywait_otf2::enums::Base;
use whywait_otf2::{Attributes, Event, EventSink};

use super::lines::Lines;
use crate::analysis::Analysis;
use crate::export::selection::Selection;
use crate::ids::LocationId;
use crate::trace::Trace;
use crate::trace::counters::{Counter, Kind, Reading};

/// Types of events: presets of PAPI, by their number.
const PRESETS: u32 = 42_000_000;
/// Types of events: other counters.
const OTHERS: u32 = 44_000_000;
/// Presets of PAPI that are common, and their numbers.
const COMMON: [(&str, u32); 22] = [
    ("PAPI_L1_DCM", 0),
    ("PAPI_L1_ICM", 1),
    ("PAPI_L2_DCM", 2),
    ("PAPI_L2_ICM", 3),
    ("PAPI_L1_TCM", 6),
    ("PAPI_L2_TCM", 7),
    ("PAPI_L3_TCM", 8),
    ("PAPI_TLB_DM", 20),
    ("PAPI_TLB_IM", 21),
    ("PAPI_STL_ICY", 37),
    ("PAPI_BR_CN", 43),
    ("PAPI_BR_MSP", 46),
    ("PAPI_TOT_IIS", 49),
    ("PAPI_TOT_INS", 50),
    ("PAPI_FP_INS", 52),
    ("PAPI_LD_INS", 53),
    ("PAPI_SR_INS", 54),
    ("PAPI_BR_INS", 55),
    ("PAPI_VEC_INS", 56),
    ("PAPI_RES_STL", 57),
    ("PAPI_TOT_CYC", 59),
    ("PAPI_FP_OPS", 102),
];

/// The counters that are written.
pub(super) struct Counters<'a> {
    analysis: &'a Analysis,
    /// The type of each counter; 0 if it is not written.
    types: Vec<u32>,
}

impl<'a> Counters<'a> {
    pub(super) fn new(analysis: &'a Analysis) -> Self {
        let counters = analysis.trace.definitions.counters.all.iter().zip(&analysis.counters.kinds);
        let mut types: Vec<u32> = Vec::new();
        for (number, (counter, kind)) in (1..).zip(counters) {
            // Levels do not increase, and values in such traces are whole numbers.
            let counts = matches!(kind, Kind::Total | Kind::Change { next: false, .. }) && !counter.is_real;
            let preset = preset(&counter.name).filter(|preset| !types.contains(preset));
            types.push(if counts { preset.unwrap_or(OTHERS + number) } else { 0 });
        }
        Self { analysis, types }
    }

    /// Types and names.
    pub(super) fn labels(&self) -> impl Iterator<Item = (u32, String)> {
        let counters = self.types.iter().zip(&self.analysis.trace.definitions.counters.all);
        counters.filter(|(kind, _)| **kind != 0).map(|(kind, counter)| (*kind, label(counter)))
    }

    /// The lines of a location; none if it counts nothing.
    pub(super) fn lines(&self, location: LocationId, selection: &Selection) -> Option<Lines> {
        let trace = &self.analysis.trace;
        if self.types.iter().all(|kind| *kind == 0) {
            return None;
        }
        let before = vec![None; self.types.len()];
        let lines = Lines::new(location);
        let mut reader =
            Reader { counters: self, trace, location, selection, now: i64::MIN, before, lines, pairs: Vec::new() };
        // Unreadable data ends them, as it ended the events.
        let _ = trace.reread().location(location, &mut reader);
        Some(reader.lines).filter(|lines| !lines.list.is_empty())
    }
}

/// The type of a preset of PAPI.
fn preset(name: &str) -> Option<u32> {
    COMMON.iter().find(|(known, _)| *known == name).map(|(_, preset)| PRESETS + preset)
}

/// The name of a counter, with the unit of what is written if there is one.
fn label(counter: &Counter) -> String {
    let unit = match (counter.exponent, counter.unit.as_str()) {
        (0, "" | "#") => return counter.name.clone(),
        (0, unit) => unit.to_owned(),
        (exponent, unit) => {
            let base = if counter.base == Base::BINARY { 2 } else { 10 };
            format!("{base}^{exponent} {unit}")
        }
    };
    format!("{}, {}", counter.name, unit.trim_end())
}

struct Reader<'a> {
    counters: &'a Counters<'a>,
    trace: &'a Trace,
    location: LocationId,
    selection: &'a Selection,
    now: i64,
    /// The last value of each total.
    before: Vec<Option<i128>>,
    lines: Lines,
    /// Of a record.
    pairs: Vec<(u32, i64)>,
}

impl Reader<'_> {
    /// What a counter counted since its last reading; none if nobody knows.
    fn increase(&mut self, Reading { counter, value, .. }: Reading) -> Option<i64> {
        let value = value.integer;
        let increase = match self.counters.analysis.counters.kinds[counter as usize] {
            // The first reading has nothing before it, but others are after it.
            Kind::Total => value - self.before[counter as usize].replace(value).unwrap_or(value),
            _ => value,
        };
        i64::try_from(increase).ok().filter(|increase| *increase >= 0)
    }
}

impl EventSink for Reader<'_> {
    fn enter(&mut self, _: i64, _: u32) {}

    fn leave(&mut self, _: i64, _: u32) {}

    fn record(&mut self, time: i64, record: &Event<'_>, _: &Attributes<'_>) {
        let Event::Metric { metric, values } = *record else { return };
        let definitions = &self.trace.definitions;
        if !definitions.counters.covers_only_recorder(&definitions.locations, metric, self.location) {
            return;
        }
        let (first, last) = self.trace.span().unwrap_or_default();
        self.now = self.now.max(time.clamp(first, last));
        let ignored = Cell::default();
        let members = definitions.counters.members_of(metric);
        let mut pairs = std::mem::take(&mut self.pairs);
        pairs.clear();
        for reading in definitions.counters.readings(members, values.iter(), &ignored) {
            let kind = self.counters.types[reading.counter as usize];
            if kind != 0 {
                pairs.extend(self.increase(reading).map(|increase| (kind, increase)));
            }
        }
        if !pairs.is_empty() && self.selection.overlaps(self.now, self.now) {
            self.lines.events(self.now, pairs.iter().copied());
        }
        self.pairs = pairs;
    }
}
