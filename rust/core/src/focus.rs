//! The focus: the part of a run that shares and headlines refer to.
//!
//! It lasts from the last Leave of the call that starts the communication library to the last Enter of the one that
//! ends it: `MPI_Init` and `MPI_Finalize`, the same calls for sessions, and those of OpenSHMEM and ARMCI. Of a location only
//! the first start and the last end of a library count. A process without an end ends with its last event. If no process starts
//! or ends a library, the first or last event of a CPU location is the bound.
//!
//! Profilers start and stop apart: the focus is what all of them recorded ([`recorded`]). Devices meet in their first collective
//! operation; if most of the waiting in it is due to records that begin apart, the focus begins where the last member begins
//! it ([`Skew`]).
//!
//! The last Enter rather than the first: what only one process does at the end (collecting results, writing them) is
//! part of the program, and the others wait for it in `MPI_Finalize`.

use std::ops::Range;

use bitcode::{Decode, Encode};
use whywait_otf2::enums::Paradigm;

use crate::Result;
use crate::ids::{CallPathId, LocationId};
use crate::parallel::iter::prelude::*;
use crate::trace::regions::{Library, Region, RegionClass};
use crate::trace::{Shard, Trace};
use crate::waits::device::{DevicePart, Devices};

/// Profilers that start and stop within this part of the run do so together.
const PRECISION: i64 = 1000;

named! {
    /// What decided the bounds of a focus.
    #[derive(Clone, Copy, Debug, PartialEq, Eq)]
    pub enum Rule {
        /// The calls that start and end the communication library.
        LastFinalize = "last_finalize",
        /// What the profilers of all processes recorded, from the first operation in which devices meet if they began apart.
        Profiler = "profiler",
        /// Nothing starts or ends a library: all of the run.
        Whole = "whole",
        /// The window that was analyzed.
        Window = "window",
    }
}

/// The part of a run that shares refer to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Focus {
    /// First tick.
    pub begin: i64,
    /// Last tick.
    pub end: i64,
    /// What decided them.
    pub rule: Rule,
}

impl Focus {
    /// The ticks in it.
    pub fn window(&self) -> Range<i64> {
        self.begin..self.end
    }

    /// Finds the focus of a run, or takes the window that is analyzed; `None` if the run has no events.
    pub(crate) fn find(trace: &Trace, devices: &[Devices], window: Option<&Range<i64>>) -> Result<Option<Self>> {
        let phases = Phases::new(trace);
        let own = trace.par_shards().map(|shard| of_shard(trace, shard, &phases));
        let own = own.reduce(Bounds::default, Bounds::merge);
        let mut bounds = trace.exchange.allgather(own)?.into_iter().fold(Bounds::default(), Bounds::merge);
        bounds.met = Skew::find(trace, devices)?.met();
        bounds.recorded = recorded(trace);
        Ok(match window {
            Some(window) => Some(Self { begin: window.start, end: window.end, rule: Rule::Window }),
            None => bounds.focus(),
        })
    }
}

/// The event of a location at which the focus may end: the latest of all locations decides.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum End {
    /// It decides nothing: it belongs to a process that says so elsewhere, or is no thread of a CPU.
    Nowhere,
    /// The last Enter of a call that ends a library, by position.
    Call(u32),
    /// The last event.
    Last,
}

/// The events of a location at which the focus may begin and end.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Edges {
    /// The Leave of a call that starts a library, by position; the latest of all locations decides.
    pub begin: Option<u32>,
    pub end: End,
}

/// For each location of this process of the analysis, where the focus may begin and end: `Focus::find` for runs whose times
/// change.
pub(crate) fn edges(trace: &Trace, rule: Rule, end: i64) -> Vec<Edges> {
    let phases = Phases::new(trace);
    let begin = |location: LocationId| {
        let decides = rule == Rule::LastFinalize && trace.definitions.locations[location].is_thread();
        if decides && trace.owns(location) { starts(trace.shard(location), location, &phases).last() } else { None }
    };
    let ends = ends(trace, rule, end, &phases);
    ends.into_iter().enumerate().map(|(i, end)| Edges { begin: begin(LocationId::at(i)), end }).collect()
}

/// The Leaves of the first call of a location that starts each library, by position.
fn starts(shard: &Shard, location: LocationId, phases: &Phases) -> impl Iterator<Item = u32> {
    let i = shard.local(location);
    let is_used = shard.profile.of(i).iter().any(|cell| matches!(phases.of[cell.callpath], Some((Phase::Start, _))));
    let end = if is_used { shard.event_offsets[i + 1] } else { shard.event_offsets[i] };
    let mut started = [false; Library::COUNT];
    let is_first = move |&position: &u32| {
        let Some((Phase::Start, library)) = phases.of[shard.events.callpath(position)] else { return false };
        shard.events.is_leave(position) && !std::mem::replace(&mut started[library as usize], true)
    };
    (shard.event_offsets[i]..end).filter(is_first).take(phases.libraries)
}

/// The last Enter of a call of a location that ends a library, by position.
fn last_end(shard: &Shard, location: LocationId, phases: &Phases) -> Option<u32> {
    let i = shard.local(location);
    let is_end = |callpath: CallPathId| matches!(phases.of[callpath], Some((Phase::End, _)));
    // Most locations have one, near their last event.
    let mut events = (shard.event_offsets[i]..shard.event_offsets[i + 1]).rev();
    let is_one = |&position: &u32| !shard.events.is_leave(position) && is_end(shard.events.callpath(position));
    if shard.profile.of(i).iter().any(|cell| is_end(cell.callpath)) { events.find(is_one) } else { None }
}

fn ends(trace: &Trace, rule: Rule, end: i64, phases: &Phases) -> Vec<End> {
    let mut ends = vec![End::Nowhere; trace.definitions.locations.len()];
    // What one profiler recorded after another had stopped is outside.
    let last_until = |location: LocationId| {
        let shard = trace.shard(location);
        let i = shard.local(location);
        let first = shard.event_offsets[i];
        let times = &shard.events.time[first as usize..shard.event_offsets[i + 1] as usize];
        match times.partition_point(|&time| time <= end) as u32 {
            0 => End::Nowhere,
            before => End::Call(first + before - 1),
        }
    };
    for process in &trace.definitions.processes {
        let is_thread =
            |&location: &LocationId| trace.owns(location) && trace.definitions.locations[location].is_thread();
        let threads = || process.locations.filter(is_thread);
        let last_call = |location| last_end(trace.shard(location), location, phases);
        let calls = threads().filter_map(|location| last_call(location).map(|position| (location, position)));
        let calls: Vec<(LocationId, u32)> = if rule == Rule::LastFinalize { calls.collect() } else { Vec::new() };
        if calls.is_empty() {
            threads().for_each(|location| {
                ends[location] = if rule == Rule::Profiler { last_until(location) } else { End::Last }
            });
        }
        for (location, position) in calls {
            ends[location] = End::Call(position);
        }
    }
    ends
}

/// Whether a call path starts or shuts down a communication library.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Phase {
    /// Starts it.
    Start,
    /// Ends it.
    End,
}

/// What some processes say about the focus, ticks.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Encode, Decode)]
struct Bounds {
    /// The last Leave of a start.
    start: Option<i64>,
    /// The last Enter of an end.
    end: Option<i64>,
    /// The last event of a process that ends nothing.
    unended: Option<i64>,
    /// First and last event of a CPU location.
    events: Option<(i64, i64)>,
    /// The same of any location.
    any: Option<(i64, i64)>,
    /// Where devices met after their profilers had started.
    met: Option<i64>,
    /// What all profilers recorded.
    recorded: Option<(i64, i64)>,
}

impl Bounds {
    fn merge(self, other: Self) -> Self {
        let united = |a: Option<(i64, i64)>, b: Option<(i64, i64)>| match (a, b) {
            (Some(a), Some(b)) => Some((a.0.min(b.0), a.1.max(b.1))),
            (a, b) => a.or(b),
        };
        Self {
            start: self.start.max(other.start),
            end: self.end.max(other.end),
            unended: self.unended.max(other.unended),
            events: united(self.events, other.events),
            any: united(self.any, other.any),
            met: self.met.max(other.met),
            recorded: self.recorded.or(other.recorded),
        }
    }

    fn focus(self) -> Option<Focus> {
        let (first, last) = self.events.or(self.any)?;
        let whole = Focus { begin: first, end: last, rule: Rule::Whole };
        if self.start.is_none() && self.end.is_none() {
            let recorded = self.recorded.map(|(begin, end)| (begin.max(first), end.min(last)));
            let (begin, end) = recorded.filter(|(begin, end)| begin < end).unwrap_or((first, last));
            let begin = self.met.filter(|&met| begin < met && met < end).unwrap_or(begin);
            let cut = (last - first) - (end - begin);
            let focus = Focus { begin, end, rule: Rule::Profiler };
            return Some(if cut * PRECISION > last - first { focus } else { whole });
        }
        let begin = self.start.unwrap_or(first);
        let end = self.end.map_or(last, |end| end.max(self.unended.unwrap_or(end)));
        Some(if begin < end { Focus { begin, end, rule: Rule::LastFinalize } } else { whole })
    }
}

/// From the last begin to the first end of the records of all processes, ticks, if profilers say when these begin and end.
fn recorded(trace: &Trace) -> Option<(i64, i64)> {
    let processes = || trace.definitions.processes.iter().map(|process| process.recorded);
    Some((processes().filter_map(|recorded| recorded.0).max()?, processes().filter_map(|recorded| recorded.1).min()?))
}

/// The first operation of the largest group of devices: when each member began it, for how long it waited, and when the record
/// of its process begins.
#[derive(Debug, Default)]
struct Skew(Vec<Meeting>);

/// The part of a member.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Encode, Decode)]
struct Meeting {
    location: LocationId,
    cause: LocationId,
    begin: i64,
    waiting: i64,
    recorded: i64,
}

impl Skew {
    /// Finds the first operation. Collective.
    fn find(trace: &Trace, devices: &[Devices]) -> Result<Self> {
        if !trace.definitions.has_streams {
            return Ok(Self::default());
        }
        let recorded = |location: LocationId| {
            let shard = trace.shard(location);
            let process = trace.definitions.locations[location].process;
            let own = trace.definitions.processes[process].locations;
            own.map(|own| shard.spans[shard.local(own)].first).min().unwrap_or(i64::MAX)
        };
        let parts = devices.iter().flat_map(|devices| &devices.parts);
        // The most members first, then the first operation.
        let order = |part: &DevicePart| {
            part.tie.map(|(comm, number)| (-(trace.definitions.comms[comm].size as i64), comm, number))
        };
        let first = trace.exchange.allgather(parts.clone().filter_map(order).min())?.into_iter().flatten().min();
        let own = parts.filter(|part| first.is_some() && order(part) == first).map(|part| Meeting {
            location: part.kernel.0,
            cause: part.cause.0,
            begin: trace.shard(part.kernel.0).enter(part.kernel.1),
            waiting: part.waiting,
            recorded: recorded(part.kernel.0),
        });
        Ok(Self(trace.exchange.allgather(own.collect::<Vec<_>>())?.concat()))
    }

    /// Where the last member begins, if at least half of the waiting is due to records that begin apart.
    fn met(&self) -> Option<i64> {
        let recorded = |location: LocationId| self.0.iter().find(|other| other.location == location);
        let late =
            |member: &Meeting| recorded(member.cause).map_or(0, |cause| (cause.recorded - member.recorded).max(0));
        let waiting: i64 = self.0.iter().map(|member| member.waiting).sum();
        let of_records: i64 = self.0.iter().map(|member| member.waiting.min(late(member))).sum();
        let begin = self.0.iter().map(|member| member.begin).max();
        begin.filter(|_| waiting > 0 && 2 * of_records >= waiting)
    }
}

fn of_shard(trace: &Trace, shard: &Shard, phases: &Phases) -> Bounds {
    let mut found = Bounds::default();
    for process in shard.processes {
        let of_process = { trace.definitions.processes[process].locations }.map(|location| {
            if trace.definitions.locations[location].is_thread() {
                return of_location(shard, location, phases);
            }
            let span = &shard.spans[shard.local(location)];
            Bounds { any: (span.first <= span.last).then_some((span.first, span.last)), ..Bounds::default() }
        });
        let mut of_process = of_process.fold(Bounds::default(), Bounds::merge);
        if of_process.end.is_none() {
            of_process.unended = of_process.events.map(|(_, last)| last);
        }
        found = found.merge(of_process);
    }
    found
}

fn of_location(shard: &Shard, location: LocationId, phases: &Phases) -> Bounds {
    let span = &shard.spans[shard.local(location)];
    if span.first > span.last {
        return Bounds::default();
    }
    let time = |position: u32| shard.events.time[position as usize];
    Bounds {
        start: starts(shard, location, phases).last().map(time),
        end: last_end(shard, location, phases).map(time),
        events: Some((span.first, span.last)),
        ..Bounds::default()
    }
}

/// What call paths do to libraries.
struct Phases {
    /// By call path.
    of: Vec<Option<(Phase, Library)>>,
    /// How many libraries are started.
    libraries: usize,
}

impl Phases {
    fn new(trace: &Trace) -> Self {
        let of_region = |region| phase(trace.regions.class(region), trace.regions.get(region));
        let of: Vec<_> = trace.tree.nodes().iter().map(|node| of_region(node.region)).collect();
        let mut started = [false; Library::COUNT];
        for (_, library) in of.iter().flatten().filter(|(phase, _)| *phase == Phase::Start) {
            started[*library as usize] = true;
        }
        Self { of, libraries: started.iter().filter(|is_started| **is_started).count() }
    }
}

fn phase(class: RegionClass, region: Option<&Region>) -> Option<(Phase, Library)> {
    match class {
        RegionClass::Init | RegionClass::SessionInit => return Some((Phase::Start, Library::Mpi)),
        RegionClass::Finalize | RegionClass::SessionFinalize => return Some((Phase::End, Library::Mpi)),
        _ => {}
    }
    let region = region.filter(|region| region.paradigm != Paradigm::COMPILER)?;
    let name = region.name.trim_end_matches("()");
    match name {
        "start_pes" | "shmem_init" | "shmem_init_thread" if region.paradigm == Paradigm::SHMEM => {
            Some((Phase::Start, Library::Shmem))
        }
        "shmem_finalize" if region.paradigm == Paradigm::SHMEM => Some((Phase::End, Library::Shmem)),
        "ARMCI_Init" | "ARMCI_Init_args" | "PARMCI_Init" | "PARMCI_Init_args" => Some((Phase::Start, Library::Armci)),
        "ARMCI_Finalize" | "PARMCI_Finalize" => Some((Phase::End, Library::Armci)),
        "gaspi_proc_init" | "pgaspi_proc_init" if region.paradigm == Paradigm::GASPI => {
            Some((Phase::Start, Library::Pgas))
        }
        _ if class == RegionClass::GaspiFinalize => Some((Phase::End, Library::Pgas)),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use whywait_otf2::enums::RegionRole;

    use super::*;

    #[test]
    fn calls_start_and_end_libraries() {
        let of = |name: &str, paradigm| {
            let region = Region {
                name: name.to_owned(),
                canonical_name: String::new(),
                paradigm,
                role: RegionRole::FUNCTION,
                file: String::new(),
                begin_line: 0,
                end_line: 0,
                is_dynamic: false,
            };
            phase(RegionClass::Other, Some(&region))
        };
        for name in ["start_pes", "shmem_init", "shmem_init_thread", "shmem_init()"] {
            assert_eq!(of(name, Paradigm::SHMEM), Some((Phase::Start, Library::Shmem)), "{name}");
            assert_eq!(of(name, Paradigm::USER), None, "{name}");
        }
        assert_eq!(of("shmem_finalize", Paradigm::SHMEM), Some((Phase::End, Library::Shmem)));
        assert_eq!(of("ARMCI_Init_args", Paradigm::UNKNOWN), Some((Phase::Start, Library::Armci)));
        assert_eq!(of("PARMCI_Finalize", Paradigm::UNKNOWN), Some((Phase::End, Library::Armci)));
        assert_eq!(of("ARMCI_Init", Paradigm::COMPILER), None);
        assert_eq!(of("main", Paradigm::USER), None);
        assert_eq!(phase(RegionClass::Init, None), Some((Phase::Start, Library::Mpi)));
        assert_eq!(phase(RegionClass::Finalize, None), Some((Phase::End, Library::Mpi)));
        assert_eq!(phase(RegionClass::SessionInit, None), Some((Phase::Start, Library::Mpi)));
        assert_eq!(phase(RegionClass::SessionFinalize, None), Some((Phase::End, Library::Mpi)));
    }

    #[test]
    fn the_last_start_and_the_last_end_are_the_bounds() {
        let of = |start, end, unended| Bounds { start, end, unended, events: Some((0, 12)), ..Bounds::default() };
        let focus = |all: &[Bounds]| {
            let focus = all.iter().copied().fold(Bounds::default(), Bounds::merge).focus().unwrap();
            (focus.begin, focus.end, focus.rule)
        };
        assert_eq!(focus(&[of(Some(2), Some(9), None), of(Some(5), Some(7), None)]), (5, 9, Rule::LastFinalize));
        // A process without an end goes on until its last event.
        assert_eq!(focus(&[of(Some(2), Some(9), None), of(Some(5), None, Some(11))]), (5, 11, Rule::LastFinalize));
        assert_eq!(focus(&[of(Some(2), Some(9), None), of(Some(5), None, Some(8))]), (5, 9, Rule::LastFinalize));
        assert_eq!(focus(&[of(Some(2), None, Some(12))]), (2, 12, Rule::LastFinalize));
        assert_eq!(focus(&[of(None, Some(9), None)]), (0, 9, Rule::LastFinalize));
        assert_eq!(focus(&[of(None, None, Some(12))]), (0, 12, Rule::Whole));
        // Devices meet late.
        assert_eq!(focus(&[Bounds { met: Some(4), ..of(None, None, None) }]), (4, 12, Rule::Profiler));
        // Profilers start and stop apart.
        assert_eq!(focus(&[Bounds { recorded: Some((3, 10)), ..of(None, None, None) }]), (3, 10, Rule::Profiler));
        assert_eq!(focus(&[Bounds { recorded: Some((-1, 12)), ..of(None, None, None) }]), (0, 12, Rule::Whole));
        assert_eq!(focus(&[Bounds { recorded: Some((9, 4)), ..of(None, None, None) }]), (0, 12, Rule::Whole));
        // It ends before it begins.
        assert_eq!(focus(&[of(Some(9), Some(3), None)]), (0, 12, Rule::Whole));
        assert_eq!(Bounds::default().focus(), None);
    }
}
