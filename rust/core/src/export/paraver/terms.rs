//! What regions are in the file: types and values of events, and states.

use rustc_hash::FxHashMap;
use whywait_otf2::enums::{Paradigm, RegionRole};

use super::words::Numbered;
use crate::ids::{CallPathId, RegionKey};
use crate::trace::regions::{POLLING, mpi_call};
use crate::trace::{RegionClass, Regions, Trace};

/// Type of events: a user function.
pub(super) const FUNCTION: u32 = 60_000_019;
/// Types of events: how many calls found nothing, each followed by that of the time in them.
pub(super) const POLLS: u32 = 50_000_300;
/// Type of events: a call of POSIX threads.
pub(super) const PTHREAD_CALL: u32 = 61_000_000;
/// Type of events: the body of a parallel region, on each thread.
pub(super) const OUTLINED: u32 = 60_000_018;
/// Type of events: the function that makes a call.
pub(super) const CALLER: u32 = 70_000_001;
/// Type of events: the place of a call.
pub(super) const CALLER_LINE: u32 = 80_000_001;
/// Values of functions are greater: those up to it stand for unknown callers.
const FIRST_FUNCTION: i64 = 3;
/// Calls of MPI that Extrae does not know have greater numbers.
const UNKNOWN_CALL: u32 = 900;
const OTHER_CALL: u32 = 50_000_003;

/// States.
pub(super) const IDLE: u8 = 0;
pub(super) const RUNNING: u8 = 1;
pub(super) const NOT_CREATED: u8 = 2;
const SYNCHRONIZATION: u8 = 5;
pub(super) const SCHEDULING: u8 = 7;
const IO: u8 = 12;
const DISABLED: u8 = 14;
const OTHERS: u8 = 15;

/// The type of events that counts calls that found nothing; 0 of those that Extrae does not count.
fn counter(call: &str) -> u32 {
    match call {
        "iprobe" => POLLS,
        "request_get_status" => POLLS + 2,
        "test" | "testall" | "testany" | "testsome" => POLLS + 4,
        "improbe" => POLLS + 6,
        _ => 0,
    }
}

/// The name of a call without what says that it gives up: Extrae has one number for both.
fn without_limit(name: &str) -> String {
    ["_try", "_timed", "_clock"].iter().fold(name.to_owned(), |name, limit| name.replace(limit, "_"))
}

/// Whether the runtime of OpenMP works in a region, and not the program.
fn is_runtime(role: RegionRole) -> bool {
    use RegionRole as Role;
    matches!(role, Role::CRITICAL | Role::ATOMIC | Role::ORDERED | Role::TASK_WAIT | Role::FLUSH)
}

/// What a call path is in the file.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Term {
    /// Type and value of its event; type 0 if it has none.
    pub(super) kind: u32,
    pub(super) value: i64,
    /// The state in it; running if none.
    pub(super) state: Option<u8>,
    /// Whether it is a call of MPI.
    pub(super) is_call: bool,
    /// Of a call that stands for several that ask, the type of events that counts those that found nothing, else 0.
    pub(super) polls: u32,
    /// Whether its messages leave when it begins.
    pub(super) sends_at_once: bool,
    /// The line of a call, by its number in the table of lines; 0 if unknown.
    pub(super) line: i64,
}

/// What all call paths are in the file.
pub(super) struct Terms {
    of: Vec<Term>,
    /// Names of functions, of values from [`FIRST_FUNCTION`] on.
    functions: Vec<String>,
    /// Type, value and name of the calls that occur.
    pub(super) calls: Vec<(u32, i64, String)>,
    /// Lines and files of calls, of values from 1 on.
    pub(super) lines: Vec<String>,
}

impl Terms {
    pub(super) fn new(trace: &Trace, number: &(dyn Fn(&str) -> Option<Numbered> + Sync)) -> Self {
        let mut terms = Self { of: Vec::new(), functions: Vec::new(), calls: Vec::new(), lines: Vec::new() };
        let mut known: FxHashMap<RegionKey, Term> = FxHashMap::default();
        let mut functions: FxHashMap<String, i64> = FxHashMap::default();
        for node in trace.tree.nodes() {
            let term = *known
                .entry(node.region)
                .or_insert_with_key(|key| terms.of_region(trace, *key, &mut functions, number));
            terms.of.push(term);
        }
        terms
    }

    fn of_region(
        &mut self,
        trace: &Trace,
        key: RegionKey,
        functions: &mut FxHashMap<String, i64>,
        number: &(dyn Fn(&str) -> Option<Numbered> + Sync),
    ) -> Term {
        let name = trace.regions.name(trace.records(), key).to_owned();
        let region = trace.regions.get(key);
        let (paradigm, role) =
            region.map_or((Paradigm::USER, RegionRole::FUNCTION), |region| (region.paradigm, region.role));
        if let Some(call) = mpi_call(&name, paradigm) {
            let test = name.strip_suffix(POLLING);
            let test = test.and_then(|test| Some((mpi_call(test, paradigm)?, test.to_owned())));
            let polls = test.as_ref().map_or(0, |(call, _)| counter(call));
            let (call, name) = test.unwrap_or((call, name));
            let (kind, value, state) = number(&call).unwrap_or_else(|| self.unknown_call(&name));
            let value = value.into();
            self.add_call((kind, value, name));
            let line = region.map_or(0, |region| self.line(region.begin_line, &region.file));
            let sends_at_once = call.starts_with("sendrecv");
            return Term { kind, value, state: Some(state), is_call: true, polls, sends_at_once, line };
        }
        if paradigm == Paradigm::PTHREAD {
            let name = without_limit(&name);
            if let Some((kind, value, state)) = number(&name) {
                let value = value.into();
                self.add_call((kind, value, name));
                return Term { kind, value, state: Some(state), ..Term::default() };
            }
        }
        let class = trace.regions.class(key);
        let with_state = |kind, value, state| Term { kind, value, state: Some(state), ..Term::default() };
        match class {
            RegionClass::ExplicitBarrier => return with_state(60_000_005, 1, SYNCHRONIZATION),
            RegionClass::ImplicitBarrier => return with_state(60_000_016, 1, SYNCHRONIZATION),
            _ => {}
        }
        if Regions::is_pause(key) || paradigm == Paradigm::MEASUREMENT_SYSTEM && role == RegionRole::ARTIFICIAL {
            let state = match name.as_str() {
                "not created" => Some(NOT_CREATED),
                "tracing disabled" | "MEASUREMENT OFF" => Some(DISABLED),
                "flush" | "TRACE BUFFER FLUSH" => Some(IO),
                "idle" => Some(IDLE),
                _ if name.starts_with("state: ") => Some(OTHERS),
                _ => None,
            };
            if state.is_some() {
                return Term { state, ..Term::default() };
            }
        }
        let state = match paradigm {
            Paradigm::PTHREAD => Some(SYNCHRONIZATION),
            Paradigm::OPENMP if is_runtime(role) || name.starts_with("omp_") => Some(SYNCHRONIZATION),
            _ if matches!(role, RegionRole::FILE_IO | RegionRole::FILE_IO_METADATA) => Some(IO),
            _ if class.library().is_some() => Some(OTHERS),
            _ => None,
        };
        let next = functions.len() as i64 + FIRST_FUNCTION;
        let value = *functions.entry(name).or_insert_with_key(|name| {
            self.functions.push(name.clone());
            next
        });
        let kind = if class == RegionClass::Parallel { OUTLINED } else { FUNCTION };
        Term { kind, value, state, ..Term::default() }
    }

    fn add_call(&mut self, call: (u32, i64, String)) {
        if !self.calls.iter().any(|(kind, value, _)| (*kind, *value) == (call.0, call.1)) {
            self.calls.push(call);
        }
    }

    fn unknown_call(&self, name: &str) -> Numbered {
        let unknown = |(_, value, known): &&(u32, i64, String)| *value >= UNKNOWN_CALL.into() && known == name;
        let next = self.calls.iter().filter(|(_, value, _)| *value >= UNKNOWN_CALL.into()).count() as u32;
        let known = self.calls.iter().find(unknown).map(|(_, value, _)| *value as u32);
        (OTHER_CALL, known.unwrap_or(UNKNOWN_CALL + next), OTHERS)
    }

    /// The number of a line in its table.
    fn line(&mut self, line: u32, file: &str) -> i64 {
        if line == 0 {
            return 0;
        }
        let text = if file.is_empty() { line.to_string() } else { format!("{line} ({file}, program)") };
        let at = self.lines.iter().position(|known| *known == text).unwrap_or_else(|| {
            self.lines.push(text);
            self.lines.len() - 1
        });
        at as i64 + 1
    }

    /// What a call path is.
    pub(super) fn of(&self, callpath: CallPathId) -> Term {
        self.of.get(callpath.index()).copied().unwrap_or_default()
    }

    /// Values and names of functions.
    pub(super) fn functions(&self) -> impl Iterator<Item = (i64, &str)> {
        (FIRST_FUNCTION..).zip(self.functions.iter().map(String::as_str))
    }
}
