//! What a location does: events of calls and functions, and states.

use whywait_otf2::enums::CollectiveRoot;

use super::findings::{FINDING, Findings};
use super::lines::Lines;
use super::objects::Objects;
use super::terms::{CALLER, CALLER_LINE, FUNCTION, IDLE, NOT_CREATED, RUNNING, SCHEDULING, Terms};
use super::threads::{Step, Steps, What};
use crate::export::clock::Clock;
use crate::export::selection::{Selection, WrittenEvents};
use crate::ids::CallPathId;
use crate::trace::{Shard, Trace};

/// Types of events that come with collective calls: bytes sent and received, whether the task is the root, communicator.
const COLLECTIVE: [u32; 4] = [50_100_001, 50_100_002, 50_100_003, 50_100_004];
/// Callers of a call that are written.
const LEVELS: usize = 3;

/// The states of a location so far.
struct States {
    since: i64,
    has_begun: bool,
    open: Vec<u8>,
}

impl States {
    fn current(&self) -> u8 {
        self.open.last().copied().unwrap_or(IDLE)
    }

    /// Before the first event of a location, it does not exist; `begin` is that of the run.
    fn begin_at(&mut self, time: i64, begin: i64, lines: &mut Lines) {
        if !self.has_begun {
            lines.state(begin, time, NOT_CREATED);
            (self.since, self.has_begun) = (time, true);
        }
    }

    /// Writes what a thread does with others.
    fn step(&mut self, step: Step, lines: &mut Lines) {
        match step.what {
            What::Fork => self.begin(step.time, SCHEDULING, lines),
            What::Begin => self.begin(step.time, RUNNING, lines),
            What::Join | What::End => self.end(step.time, lines),
            What::Lock => {}
        }
        lines.events(step.time, step.pairs());
    }

    /// Turns to another state, from which it comes back.
    fn begin(&mut self, time: i64, state: u8, lines: &mut Lines) {
        if self.open.last() != Some(&state) {
            self.turn(time, lines);
        }
        self.open.push(state);
    }

    /// Comes back to the state before.
    fn end(&mut self, time: i64, lines: &mut Lines) {
        let before = self.current();
        let after = self.open.iter().rev().nth(1).copied().unwrap_or(IDLE);
        if before != after {
            self.turn(time, lines);
        }
        self.open.pop();
    }

    /// Ends the current state.
    fn turn(&mut self, time: i64, lines: &mut Lines) {
        lines.state(self.since, time, self.current());
        self.since = time;
    }
}

/// The lines of the i-th location of a shard.
pub(super) fn of_location(
    trace: &Trace,
    (objects, terms, findings): (&Objects, &Terms, &Findings<'_>),
    (shard, i): (&Shard, usize),
    (selection, kept): (&Selection, &WrittenEvents),
) -> Lines {
    let location = shard.location(i);
    let mut lines = Lines::new(location);
    let process = trace.definitions.locations[location].process;
    if objects.task(location) == 0 {
        return lines;
    }
    let (begin, end) = trace.span().unwrap_or((0, 0));
    let mut collectives: Vec<(u32, usize)> = shard
        .collectives
        .range(i)
        .map(|row| (shard.instances.enter[shard.collectives.rows[row].instance], row))
        .collect();
    collectives.sort_unstable();
    let mut collectives = collectives.into_iter().peekable();
    let mut states = States { since: begin, has_begun: false, open: Vec::new() };
    // Findings about open calls, each with the number of calls around.
    let mut found: Vec<(usize, i64)> = Vec::new();
    let clock = Clock::of(trace);
    // When the open call began that stands for several.
    let mut asked = 0;
    let mut steps = Steps::new((trace, terms), (shard, i), (selection, kept));
    for position in shard.event_offsets[i]..shard.event_offsets[i + 1] {
        let time = shard.events.time[position as usize];
        let is_leave = shard.events.is_leave(position);
        let callpath = shard.events.callpath(position);
        let collective = collectives.next_if(|(enter, _)| *enter == position);
        if !kept.has(position) {
            continue;
        }
        let term = terms.of(callpath);
        while let Some(step) = steps.next(time, states.open.len()) {
            states.begin_at(step.time, begin, &mut lines);
            states.step(step, &mut lines);
        }
        states.begin_at(time, begin, &mut lines);
        if is_leave {
            states.end(time, &mut lines);
            if term.polls != 0 {
                let ticks = clock.nanoseconds(time).saturating_sub(clock.nanoseconds(asked)) as i64;
                let of_call = [(term.polls + 1, ticks), (term.polls, 1), (term.kind, term.value)];
                lines.events(time, of_call.into_iter().chain(origin(trace, terms, callpath)));
            }
            let is_end = found.pop_if(|(around, _)| *around == states.open.len()).is_some();
            let finding = is_end.then(|| (FINDING, found.last().map_or(0, |(_, number)| *number)));
            if term.kind != 0 || is_end {
                lines.events(time, (term.kind != 0).then_some((term.kind, 0)).into_iter().chain(finding));
            }
            continue;
        }
        lines.calls += u64::from(term.kind != 0);
        // The program's own code runs in barriers as well: tasks do.
        let finding = findings.at(trace, callpath, location);
        found.extend(finding.map(|number| (states.open.len(), number)));
        let finding = finding.map(|number| (FINDING, number));
        states.begin(time, term.state.unwrap_or(RUNNING), &mut lines);
        if term.polls != 0 {
            asked = time;
            lines.events(time, std::iter::once((term.polls, 0)).chain(finding));
            continue;
        }
        if term.kind == 0 {
            if finding.is_some() {
                lines.events(time, finding);
            }
            continue;
        }
        let operation = collective.filter(|_| term.is_call).map(|(_, row)| &shard.collectives.rows[row]);
        let of_operation = operation.into_iter().flat_map(|operation| {
            let comm = objects.comm(trace, operation.comm, process);
            let known = trace.definitions.comms.get(operation.comm.index());
            let rank = known.and_then(|known| known.rank(process));
            let is_root = rank == Some(operation.root) || operation.root == CollectiveRoot::SELF.0;
            let [sent, received, root, number] = COLLECTIVE;
            let sizes = [(sent, operation.sent.cast_signed()), (received, operation.received.cast_signed())];
            let comm = comm.map(|comm| (number, i64::from(comm)));
            sizes.into_iter().chain(comm).chain(is_root.then_some((root, 1)))
        });
        let call = std::iter::once((term.kind, term.value));
        lines.events(time, call.chain(of_operation).chain(origin(trace, terms, callpath)).chain(finding));
    }
    while let Some(step) = steps.next(end, states.open.len()) {
        states.step(step, &mut lines);
    }
    states.turn(end, &mut lines);
    lines
}

/// Where a call of MPI is made: the functions around it, and its line.
fn origin<'a>(trace: &'a Trace, terms: &'a Terms, callpath: CallPathId) -> impl Iterator<Item = (u32, i64)> + 'a {
    let term = terms.of(callpath);
    let callers = term.is_call.then(|| callers(trace, terms, callpath)).into_iter().flatten();
    callers.chain((term.line > 0).then_some((CALLER_LINE, term.line)))
}

/// The functions around a call, the nearest first.
fn callers<'a>(trace: &'a Trace, terms: &'a Terms, callpath: CallPathId) -> impl Iterator<Item = (u32, i64)> + 'a {
    let parents = std::iter::successors(Some(callpath), |at| {
        let parent = trace.tree.nodes()[*at].parent;
        parent.is_some().then_some(parent)
    });
    let functions = parents.skip(1).map(|at| terms.of(at)).filter(|term| term.kind == FUNCTION);
    (CALLER..).zip(functions.take(LEVELS)).map(|(kind, term)| (kind, term.value))
}
