//! The regions of a thread: what types and values of events stand for.

use rustc_hash::FxHashMap;
use whywait_otf2::Numbered;
use whywait_otf2::enums::{Paradigm, RegionRole};

use crate::calls;
use crate::labels::{Labels, split_location};
use crate::openmp::{self, GIVES, OUTLINED};
use crate::pthreads::{self, CALLS, LIFE};
use crate::versions::NEW_OUTLINED;

/// Type of events: a function of the user begins or ends.
pub(crate) const FUNCTION: u32 = 60_000_019;
/// Type of events: the function that makes a call; those that follow are its callers.
pub(crate) const CALLER: u32 = 70_000_001;
/// Type of events: the place of the call in that function.
pub(crate) const CALLER_LINE: u32 = 80_000_001;
/// Levels of callers that have types.
pub(crate) const LEVELS: usize = 99;
/// Values that stand for an unknown caller: none, unresolved, not found.
pub(crate) const UNKNOWN_CALLERS: i64 = 2;

/// Tells the numbers of calls that poll from those of the same calls.
const POLLING: u32 = 1 << 31;

/// What a thread does, as its definition says.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub(crate) struct Region {
    pub(crate) name: String,
    pub(crate) paradigm: Paradigm,
    pub(crate) role: RegionRole,
    pub(crate) file: String,
    pub(crate) line: u32,
}

/// Regions by number, each once.
#[derive(Debug)]
pub(crate) struct Regions<'a> {
    labels: &'a Labels,
    all: Numbered<Region>,
    by_value: FxHashMap<(u32, i64, i64), u32>,
}

impl<'a> Regions<'a> {
    pub(crate) fn new(labels: &'a Labels) -> Self {
        Self { labels, all: Numbered::default(), by_value: FxHashMap::default() }
    }

    /// All of them.
    pub(crate) fn into_list(self) -> Vec<Region> {
        self.all.list
    }

    fn user(&mut self, name: &str) -> u32 {
        let (paradigm, role) = (Paradigm::USER, RegionRole::FUNCTION);
        self.all.add(Region { name: name.to_owned(), paradigm, role, file: String::new(), line: 0 })
    }

    /// What surrounds all that a task does.
    pub(crate) fn program(&mut self) -> u32 {
        self.user("main")
    }

    /// A call that is open where the trace begins: of which class it is, is known.
    pub(crate) fn cut(&mut self, kind: u32) -> u32 {
        let class = self.labels.of_type(kind).map_or_else(|| format!("type {kind}"), str::to_owned);
        let (paradigm, role) = if calls::is_mpi(kind) {
            (Paradigm::MPI, calls::role(kind, 0))
        } else {
            (Paradigm::USER, RegionRole::FUNCTION)
        };
        self.all.add(Region { name: format!("{class} (cut)"), paradigm, role, file: String::new(), line: 0 })
    }

    /// What a thread does by its state, outside of calls.
    pub(crate) fn state(&mut self, state: i32) -> u32 {
        let name = match (state, self.labels.of_state(state.into())) {
            (0, _) => "idle".to_owned(),
            (2, _) => "not created".to_owned(),
            (14, _) => "tracing disabled".to_owned(),
            (12, _) => "flush".to_owned(),
            (_, Some(label)) => format!("state: {label}"),
            (_, None) => format!("state: {state}"),
        };
        let (paradigm, role) = (Paradigm::MEASUREMENT_SYSTEM, RegionRole::ARTIFICIAL);
        self.all.add(Region { name, paradigm, role, file: String::new(), line: 0 })
    }

    /// A function that makes calls.
    pub(crate) fn caller(&mut self, value: i64) -> u32 {
        self.cached((CALLER, value, 0), |regions| {
            let name = regions.labels.of_value(CALLER, value).map_or_else(|| format!("caller {value}"), str::to_owned);
            regions.user(&name)
        })
    }

    /// What a value of a type stands for; `place` is that of the call.
    pub(crate) fn of(&mut self, kind: u32, value: i64, place: i64) -> u32 {
        self.cached((kind, value, place), |regions| regions.define(kind, value, place))
    }

    /// A call that finds something after others that did not, as whywait's recorder names it.
    pub(crate) fn polling(&mut self, kind: u32, value: i64, place: i64) -> u32 {
        self.cached((POLLING | kind, value, place), |regions| {
            let call = regions.define(kind, value, place);
            let call = regions.all.list[call as usize].clone();
            regions.all.add(Region { name: format!("{} (polling)", call.name), ..call })
        })
    }

    fn cached(&mut self, key: (u32, i64, i64), make: impl FnOnce(&mut Self) -> u32) -> u32 {
        if let Some(region) = self.by_value.get(&key) {
            return *region;
        }
        let region = make(self);
        self.by_value.insert(key, region);
        region
    }

    fn define(&mut self, kind: u32, value: i64, place: i64) -> u32 {
        let newer = || self.labels.of_value(NEW_OUTLINED, value).filter(|_| kind == OUTLINED);
        let label = self.labels.of_value(kind, value).or_else(newer);
        if let Some((role, name)) = openmp::role(kind) {
            let what = match (openmp::is_lock(kind), value) {
                (true, GIVES) => " (release)",
                _ => "",
            };
            let (paradigm, name) = (Paradigm::OPENMP, format!("{name}{what}"));
            return self.all.add(Region { name, paradigm, role, file: String::new(), line: 0 });
        }
        if let Some((name, role)) = pthreads::call(value).filter(|_| kind == CALLS) {
            let (paradigm, name) = (Paradigm::PTHREAD, name.to_owned());
            return self.all.add(Region { name, paradigm, role, file: String::new(), line: 0 });
        }
        if matches!(kind, FUNCTION | OUTLINED | LIFE) {
            let unnamed = || format!("type {kind}: value {value}");
            return self.user(&label.map_or_else(unnamed, str::to_owned));
        }
        if calls::is_mpi(kind) {
            let name = match (label, calls::name(value)) {
                (Some(label), _) => label.to_owned(),
                (None, Some(call)) => format!("MPI_{call}"),
                (None, None) if kind == calls::FILES => calls::file_access(value),
                (None, None) => format!("type {kind}: value {value}"),
            };
            let place_label = self.labels.of_value(CALLER_LINE, place);
            let (line, file) = place_label.map_or_else(|| (u32::try_from(place).unwrap_or(0), ""), split_location);
            let file = file.to_owned();
            return self.all.add(Region { name, paradigm: Paradigm::MPI, role: calls::role(kind, value), file, line });
        }
        let class = self.labels.of_type(kind).map_or_else(|| format!("type {kind}"), str::to_owned);
        let value = label.map_or_else(|| value.to_string(), str::to_owned);
        self.user(&format!("{class}: {value}"))
    }
}
