//! What threads do together: forks and joins of teams, lives of threads that others make, and locks, by the rules of Extrae.
//!
//! ```text
//!  fork      60000001 3 ............................ 0     on the thread that forks
//!  lock      60000006 3 [asks] 6 [has] 5 [gives] 0         with the address of the lock
//!  life      60000020 function ..................... 0     on the thread that another one makes
//!  mutex     61000008 address ...................... 0     during the call, which is an event of its own
//! ```

use whywait_otf2::enums::Paradigm;

use super::terms::{FUNCTION, PTHREAD_CALL, Terms};
use crate::export::selection::{Selection, WrittenEvents};
use crate::ids::InstanceId;
use crate::trace::columns::ThreadStep;
use crate::trace::{Shard, Trace};

/// Type of events: a parallel region, on the thread that forks.
const PARALLEL: u32 = 60_000_001;
const REGION: i64 = 3;
/// Type of events: what a thread does with a lock.
pub(super) const LOCK: u32 = 60_000_006;
const ASKS: i64 = 3;
const GIVES: i64 = 5;
const HAS: i64 = 6;
/// Type of events: the address of a lock.
pub(super) const LOCK_ADDRESS: u32 = 60_000_032;
/// Type of events: the function of a thread that another one made.
pub(super) const LIFE: u32 = 60_000_020;
/// Stands for a function that is not known.
const UNRESOLVED: i64 = 1;
/// Calls of POSIX threads that are for a lock, by number: their types have its address.
const LOCK_CALLS: std::ops::RangeInclusive<i64> = 5..=9;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum What {
    Fork,
    Join,
    Begin,
    End,
    Lock,
}

impl What {
    fn opens(self) -> bool {
        matches!(self, Self::Fork | Self::Begin)
    }

    fn closes(self) -> bool {
        matches!(self, Self::Join | Self::End)
    }
}

/// Something that a thread does at a time.
#[derive(Clone, Copy, Debug)]
pub(super) struct Step {
    pub(super) time: i64,
    pub(super) what: What,
    kind: u32,
    value: i64,
    /// The address of a lock of OpenMP; 0 if it is not written.
    address: i64,
}

impl Step {
    /// Types and values of its events.
    pub(super) fn pairs(self) -> impl Iterator<Item = (u32, i64)> {
        let has_address = self.kind == LOCK && (self.value == 0 || self.address != 0);
        std::iter::once((self.kind, self.value)).chain(has_address.then_some((LOCK_ADDRESS, self.address)))
    }
}

/// What a thread does with teams, other threads and locks, in order of time.
pub(super) struct Steps {
    rest: std::iter::Peekable<std::vec::IntoIter<Step>>,
    /// How many regions were open at each fork, and where the thread began.
    opened: Vec<usize>,
}

impl Steps {
    /// Those of the i-th location of a shard.
    pub(super) fn new(
        (trace, terms): (&Trace, &Terms),
        (shard, i): (&Shard, usize),
        (selection, kept): (&Selection, &WrittenEvents),
    ) -> Self {
        let mut steps: Vec<Step> = Vec::new();
        let end = trace.span().map_or(0, |span| span.1);
        for fork in &shard.forks.rows[shard.forks.range(i)] {
            let join = if fork.join == i64::MIN { end } else { fork.join };
            if selection.lasts(fork.fork, join) {
                steps.push(Step { time: fork.fork, what: What::Fork, kind: PARALLEL, value: REGION, address: 0 });
                steps.push(Step { time: join, what: What::Join, kind: PARALLEL, value: 0, address: 0 });
            }
        }
        let mut begun = None;
        for life in shard.threads.of(i) {
            match life.step {
                ThreadStep::Begin => begun = Some(life),
                ThreadStep::End => {
                    let Some(begin) = begun.take().filter(|begin| selection.lasts(begin.time, life.time)) else {
                        continue;
                    };
                    let term = begin.instance.is_some().then(|| terms.of(shard.callpath(begin.instance)));
                    let value = term.filter(|term| term.kind == FUNCTION).map_or(UNRESOLVED, |term| term.value);
                    steps.push(Step { time: begin.time, what: What::Begin, kind: LIFE, value, address: 0 });
                    steps.push(Step { time: life.time, what: What::End, kind: LIFE, value: 0, address: 0 });
                }
                ThreadStep::Create | ThreadStep::Wait => {}
            }
        }
        let is_kept = |call: InstanceId| call.is_some() && kept.has(shard.instances.enter[call]);
        let mut add = |time, kind, value, address| steps.push(Step { time, what: What::Lock, kind, value, address });
        for lock in &shard.locks.rows[shard.locks.range(i)] {
            if !is_kept(lock.instance) {
                continue;
            }
            let (enter, leave) = (shard.enter(lock.instance), shard.leave(lock.instance));
            // No address is 0.
            let address = i64::from(lock.lock) + 1;
            if lock.paradigm == Paradigm::PTHREAD.0 {
                let term = terms.of(shard.callpath(lock.instance));
                if term.kind == PTHREAD_CALL && LOCK_CALLS.contains(&term.value) {
                    let kind = PTHREAD_CALL + term.value as u32;
                    add(enter, kind, address, 0);
                    add(leave, kind, 0, 0);
                }
            } else if lock.paradigm == Paradigm::OPENMP.0 && lock.acquired {
                add(enter, LOCK, ASKS, 0);
                add(lock.time, LOCK, HAS, address);
            } else if lock.paradigm == Paradigm::OPENMP.0 {
                add(lock.time, LOCK, GIVES, address);
                add(leave, LOCK, 0, 0);
            }
        }
        steps.sort_by_key(|step| step.time);
        Self { rest: steps.into_iter().peekable(), opened: Vec::new() }
    }

    /// The next step up to a time; a team is joined, and a thread ends, when all regions in it have ended, as `open` are.
    pub(super) fn next(&mut self, time: i64, open: usize) -> Option<Step> {
        let is_inside = self.opened.last().is_some_and(|before| before + 1 < open);
        let is_due = |step: &Step| step.time < time || step.time == time && !(step.what.closes() && is_inside);
        let step = self.rest.next_if(is_due)?;
        if step.what.opens() {
            self.opened.push(open);
        } else if step.what.closes() {
            self.opened.pop();
        }
        Some(step)
    }
}
