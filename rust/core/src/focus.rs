//! The focus: the part of a run that shares and headlines refer to.
//!
//! It lasts from the last Leave of the call that starts the communication library to the last Enter of the one that
//! ends it: `MPI_Init` and `MPI_Finalize`, and the same calls of OpenSHMEM and ARMCI. Of a location only the first
//! start and the last end of a library count. A process without an end ends with its last event. If no process starts
//! or ends a library, the first or last event of a CPU location is the bound.
//!
//! The last Enter rather than the first: what only one process does at the end (collecting results, writing them) is
//! part of the program, and the others wait for it in `MPI_Finalize`.

use std::ops::Range;

use bitcode::{Decode, Encode};
use whywait_otf2::enums::Paradigm;

use crate::Result;
use crate::ids::LocationId;
use crate::parallel::iter::prelude::*;
use crate::trace::regions::{Library, Region, RegionClass};
use crate::trace::{Shard, Trace};

/// What decided the bounds of a focus.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Rule {
    /// The calls that start and end the communication library.
    LastFinalize,
    /// Nothing starts or ends a library: all of the run.
    Whole,
    /// The window that was analyzed.
    Window,
}

impl Rule {
    /// Name in tables and facts.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::LastFinalize => "last_finalize",
            Self::Whole => "whole",
            Self::Window => "window",
        }
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
    #[must_use]
    pub fn window(&self) -> Range<i64> {
        self.begin..self.end
    }

    /// Finds the focus of a run, or takes the window that is analyzed; `None` if the run has no events.
    pub(crate) fn find(trace: &Trace, window: Option<&Range<i64>>) -> Result<Option<Self>> {
        let phases: Vec<Option<(Phase, Library)>> = trace
            .tree
            .nodes()
            .iter()
            .map(|node| phase(trace.regions.class(node.region), trace.regions.get(node.region)))
            .collect();
        let own = trace.par_shards().map(|shard| of_shard(trace, shard, &phases));
        let own = own.reduce(Bounds::default, Bounds::merge);
        let bounds = trace.exchange.allgather(own)?.into_iter().fold(Bounds::default(), Bounds::merge);
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

/// For each location of this process of the analysis, the event at which the focus may end: `Focus::find` for runs whose
/// times change.
pub(crate) fn ends(trace: &Trace, rule: Rule) -> Vec<End> {
    let is_end: Vec<bool> = { trace.tree.nodes().iter() }
        .map(|node| phase(trace.regions.class(node.region), trace.regions.get(node.region)))
        .map(|phase| matches!(phase, Some((Phase::End, _))))
        .collect();
    let mut ends = vec![End::Nowhere; trace.definitions.locations.len()];
    let last_call = |location: LocationId| {
        let shard = trace.shard(location);
        let i = shard.local(location);
        // Most locations have one, near their last event.
        let mut events = (shard.event_offsets[i]..shard.event_offsets[i + 1]).rev();
        let is_one = |&position: &u32| !shard.events.is_leave(position) && is_end[shard.events.callpath(position)];
        if shard.profile.of(i).iter().any(|cell| is_end[cell.callpath]) { events.find(is_one) } else { None }
    };
    for process in &trace.definitions.processes {
        let is_thread =
            |&location: &LocationId| trace.owns(location) && trace.definitions.locations[location].is_thread();
        let threads = || process.locations.filter(is_thread);
        let calls = threads().filter_map(|location| last_call(location).map(|position| (location, position)));
        let calls: Vec<(LocationId, u32)> = if rule == Rule::LastFinalize { calls.collect() } else { Vec::new() };
        if calls.is_empty() {
            threads().for_each(|location| ends[location] = End::Last);
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
}

impl Bounds {
    fn merge(self, other: Self) -> Self {
        let events = match (self.events, other.events) {
            (Some(a), Some(b)) => Some((a.0.min(b.0), a.1.max(b.1))),
            (a, b) => a.or(b),
        };
        Self {
            start: self.start.max(other.start),
            end: self.end.max(other.end),
            unended: self.unended.max(other.unended),
            events,
        }
    }

    fn focus(self) -> Option<Focus> {
        let (first, last) = self.events?;
        let whole = Focus { begin: first, end: last, rule: Rule::Whole };
        if self.start.is_none() && self.end.is_none() {
            return Some(whole);
        }
        let begin = self.start.unwrap_or(first);
        let end = self.end.map_or(last, |end| end.max(self.unended.unwrap_or(end)));
        Some(if begin < end { Focus { begin, end, rule: Rule::LastFinalize } } else { whole })
    }
}

fn of_shard(trace: &Trace, shard: &Shard, phases: &[Option<(Phase, Library)>]) -> Bounds {
    let mut found = Bounds::default();
    for process in shard.processes {
        let of_process = { trace.definitions.processes[process].locations }
            .filter(|&location| trace.definitions.locations[location].is_thread())
            .map(|location| of_location(shard, location, phases));
        let mut of_process = of_process.fold(Bounds::default(), Bounds::merge);
        if of_process.end.is_none() {
            of_process.unended = of_process.events.map(|(_, last)| last);
        }
        found = found.merge(of_process);
    }
    found
}

fn of_location(shard: &Shard, location: LocationId, phases: &[Option<(Phase, Library)>]) -> Bounds {
    let i = shard.local(location);
    let events = &shard.events;
    let mut found = Bounds::default();
    let span = &shard.spans[i];
    if span.first > span.last {
        return found;
    }
    found.events = Some((span.first, span.last));
    let mut started = [false; 3];
    for position in shard.event_offsets[i]..shard.event_offsets[i + 1] {
        let Some((phase, library)) = phases[events.callpath(position)] else { continue };
        let time = Some(events.time[position as usize]);
        match (phase, events.is_leave(position)) {
            (Phase::Start, true) if !std::mem::replace(&mut started[library as usize], true) => {
                found.start = found.start.max(time);
            }
            (Phase::End, false) => found.end = found.end.max(time),
            _ => {}
        }
    }
    found
}

fn phase(class: RegionClass, region: Option<&Region>) -> Option<(Phase, Library)> {
    match class {
        RegionClass::Init => return Some((Phase::Start, Library::Mpi)),
        RegionClass::Finalize => return Some((Phase::End, Library::Mpi)),
        _ => {}
    }
    let region = region?;
    let name = region.name.trim_end_matches("()");
    match name {
        "start_pes" | "shmem_init" | "shmem_init_thread" if region.paradigm == Paradigm::SHMEM => {
            Some((Phase::Start, Library::Shmem))
        }
        "shmem_finalize" if region.paradigm == Paradigm::SHMEM => Some((Phase::End, Library::Shmem)),
        "ARMCI_Init" | "ARMCI_Init_args" | "PARMCI_Init" | "PARMCI_Init_args" => Some((Phase::Start, Library::Armci)),
        "ARMCI_Finalize" | "PARMCI_Finalize" => Some((Phase::End, Library::Armci)),
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
        assert_eq!(of("main", Paradigm::USER), None);
        assert_eq!(phase(RegionClass::Init, None), Some((Phase::Start, Library::Mpi)));
        assert_eq!(phase(RegionClass::Finalize, None), Some((Phase::End, Library::Mpi)));
    }

    #[test]
    fn the_last_start_and_the_last_end_are_the_bounds() {
        let of = |start, end, unended| Bounds { start, end, unended, events: Some((0, 12)) };
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
        // It ends before it begins.
        assert_eq!(focus(&[of(Some(9), Some(3), None)]), (0, 12, Rule::Whole));
        assert_eq!(Bounds::default().focus(), None);
    }
}
