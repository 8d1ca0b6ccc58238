//! What threads do together: forks and joins of teams, and locks, by the rules of Extrae.
//!
//! ```text
//!  fork   60000001 3 ............................ 0     on the thread that forks
//!  lock   60000006 3 [asks] 6 [has] 5 [gives] 0         with the address of the lock
//! ```

use whywait_otf2::enums::Paradigm;

use crate::export::selection::{Selection, WrittenEvents};
use crate::ids::InstanceId;
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

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum What {
    Fork,
    Join,
    Lock,
}

/// Something that a thread does at a time.
#[derive(Clone, Copy, Debug)]
pub(super) struct Step {
    pub(super) time: i64,
    pub(super) what: What,
    value: i64,
    /// The address of a lock; 0 if it is not written.
    address: i64,
}

impl Step {
    /// Types and values of its events.
    pub(super) fn pairs(self) -> impl Iterator<Item = (u32, i64)> {
        let is_lock = self.what == What::Lock;
        let kind = if is_lock { LOCK } else { PARALLEL };
        let has_address = is_lock && (self.value == 0 || self.address != 0);
        std::iter::once((kind, self.value)).chain(has_address.then_some((LOCK_ADDRESS, self.address)))
    }
}

/// What a thread does with teams and locks, in order of time.
pub(super) struct Steps {
    rest: std::iter::Peekable<std::vec::IntoIter<Step>>,
    /// How many regions were open at each fork.
    forks: Vec<usize>,
}

impl Steps {
    /// Those of the i-th location of a shard.
    pub(super) fn new(
        trace: &Trace,
        (shard, i): (&Shard, usize),
        (selection, kept): (&Selection, &WrittenEvents),
    ) -> Self {
        let mut steps: Vec<Step> = Vec::new();
        let end = trace.span().map_or(0, |span| span.1);
        for fork in &shard.forks.rows[shard.forks.range(i)] {
            let join = if fork.join == i64::MIN { end } else { fork.join };
            if selection.lasts(fork.fork, join) {
                steps.push(Step { time: fork.fork, what: What::Fork, value: REGION, address: 0 });
                steps.push(Step { time: join, what: What::Join, value: 0, address: 0 });
            }
        }
        let is_kept = |call: InstanceId| call.is_some() && kept.has(shard.instances.enter[call]);
        let mut add = |time, value, address| steps.push(Step { time, what: What::Lock, value, address });
        for lock in &shard.locks.rows[shard.locks.range(i)] {
            if lock.paradigm != Paradigm::OPENMP.0 || !is_kept(lock.instance) {
                continue;
            }
            // No address is 0.
            let address = i64::from(lock.lock) + 1;
            if lock.acquired {
                add(shard.enter(lock.instance), ASKS, 0);
                add(lock.time, HAS, address);
            } else {
                add(lock.time, GIVES, address);
                add(shard.leave(lock.instance), 0, 0);
            }
        }
        steps.sort_by_key(|step| step.time);
        Self { rest: steps.into_iter().peekable(), forks: Vec::new() }
    }

    /// The next step up to a time; a team is joined when all regions in it have ended, as `open` are.
    pub(super) fn next(&mut self, time: i64, open: usize) -> Option<Step> {
        let is_inside = self.forks.last().is_some_and(|at_fork| at_fork + 1 < open);
        let is_due = |step: &Step| step.time < time || step.time == time && !(step.what == What::Join && is_inside);
        let step = self.rest.next_if(is_due)?;
        match step.what {
            What::Fork => self.forks.push(open),
            What::Join => drop(self.forks.pop()),
            What::Lock => {}
        }
        Some(step)
    }
}
