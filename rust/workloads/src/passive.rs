//! Simulates programs with passive-target locks: when each lock is granted, and when targets make progress.
//!
//! *Locks*: a call that requests a lock returns with it. A shared lock is granted unless it is held exclusively, an
//! exclusive lock when it is free, in order of requests. A rank that requests a lock holds no other one, except those
//! of `lock_all`, which are shared and wait only for exclusive ones. So there is no deadlock.
//!
//! *Progress*: a call that completes operations at a target returns once the target is inside the library.

use std::cmp::Reverse;
use std::collections::{BinaryHeap, VecDeque};

use crate::collective::{CALL, GAP};
use crate::program::{Sharing, Step};

/// A call as it went.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Call {
    pub(crate) enter: i64,
    pub(crate) leave: i64,
    /// Ticks that the call waits for a lock.
    pub(crate) contention: i64,
}

/// The result of a program.
#[derive(Debug)]
pub(crate) struct Outcome {
    pub(crate) calls: Vec<Call>,
    /// When the rank is done.
    pub(crate) end: i64,
}

/// Runs the programs of all ranks, each from its own begin.
pub(crate) fn run(programs: &[Vec<Step>], begin: impl Fn(u32) -> i64) -> Vec<Outcome> {
    let processes = (0..).zip(programs).map(|(rank, steps)| Process::new(steps, begin(rank))).collect();
    let locks = programs.iter().map(|_| Lock::default()).collect();
    let mut run = Run { processes, locks, agenda: BinaryHeap::new() };
    for rank in 0..programs.len() as u32 {
        run.proceed(rank);
    }
    while let Some(Reverse((time, rank, what))) = run.agenda.pop() {
        match what {
            Happening::Release => run.release(rank, time),
            Happening::Call => run.call(rank, time),
        }
    }
    debug_assert!(run.processes.iter().all(|process| process.steps.is_empty()), "a program is locked up");
    run.processes.into_iter().map(|process| Outcome { calls: process.calls, end: process.next }).collect()
}

#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Happening {
    Release,
    Call,
}

struct Run<'a> {
    processes: Vec<Process<'a>>,
    /// The lock of each rank's window.
    locks: Vec<Lock>,
    agenda: BinaryHeap<Reverse<(i64, u32, Happening)>>,
}

struct Process<'a> {
    /// The remaining steps.
    steps: &'a [Step],
    calls: Vec<Call>,
    /// Leave of the last call; unknown while a call is blocked.
    leave: i64,
    /// Enter of the next call, or of the blocked one.
    next: i64,
    /// Targets whose locks the rank holds.
    held: Vec<u32>,
    /// Position of the last `lock_all` among the calls.
    lock_all: usize,
}

impl<'a> Process<'a> {
    fn new(steps: &'a [Step], begin: i64) -> Self {
        Self { steps, calls: Vec::new(), leave: begin - GAP, next: begin, held: Vec::new(), lock_all: 0 }
    }

    /// The first time from one on at which it is inside the library.
    fn present(&self, from: i64) -> i64 {
        if self.leave >= from { from } else { self.next.max(from) }
    }
}

#[derive(Default)]
struct Lock {
    exclusive: bool,
    sharers: u32,
    waiting: VecDeque<(u32, Sharing)>,
    /// Enter and Leave of the last unlock that was exclusive.
    unlock: (i64, i64),
}

impl Lock {
    /// Acquires the lock, if possible.
    fn take(&mut self, sharing: Sharing) -> bool {
        let free = !self.exclusive && (sharing == Sharing::Shared || self.sharers == 0);
        if free {
            match sharing {
                Sharing::Exclusive => self.exclusive = true,
                Sharing::Shared => self.sharers += 1,
            }
        }
        free
    }

    /// Releases the lock and grants it to the next request, or to all waiting shared requests.
    fn pass_on(&mut self, unlock: (i64, i64)) -> Vec<u32> {
        if self.exclusive {
            self.exclusive = false;
            self.unlock = unlock;
        } else {
            self.sharers -= 1;
        }
        let Some(&(first, sharing)) = self.waiting.front() else { return Vec::new() };
        if !self.take(sharing) {
            return Vec::new();
        }
        self.waiting.pop_front();
        let mut next = vec![first];
        if sharing == Sharing::Shared {
            let shared = |&(_, sharing): &(u32, Sharing)| sharing == Sharing::Shared;
            next.extend(self.waiting.iter().filter(|&waiting| shared(waiting)).map(|&(rank, _)| rank));
            self.waiting.retain(|waiting| !shared(waiting));
            self.sharers = next.len() as u32;
        }
        next
    }
}

impl Run<'_> {
    /// Advances to the next call of a rank.
    fn proceed(&mut self, rank: u32) {
        let process = &mut self.processes[rank as usize];
        while let [Step::Work(ticks), rest @ ..] = process.steps {
            process.next += ticks + GAP;
            process.steps = rest;
        }
        if !process.steps.is_empty() {
            self.agenda.push(Reverse((process.next, rank, Happening::Call)));
        }
    }

    fn call(&mut self, rank: u32, time: i64) {
        match &self.processes[rank as usize].steps[0] {
            Step::Work(_) => {}
            Step::Lock(target, sharing) => self.ask(rank, *target, *sharing, time),
            Step::LockAll => {
                let process = &mut self.processes[rank as usize];
                process.lock_all = process.calls.len();
                self.done(rank, time + CALL, 0);
            }
            Step::Operate(operation) if operation.locks => self.ask(rank, operation.target, Sharing::Shared, time),
            Step::Operate(_) => self.done(rank, time + CALL, 0),
            Step::Complete(completion) => {
                let present = |&target: &u32| self.processes[target as usize].present(time);
                let leave = completion.targets.iter().map(present).max().unwrap_or(time) + CALL;
                if completion.unlocks.is_some() {
                    self.agenda.push(Reverse((leave, rank, Happening::Release)));
                }
                self.done(rank, leave, 0);
            }
        }
    }

    fn ask(&mut self, rank: u32, target: u32, sharing: Sharing, time: i64) {
        if self.locks[target as usize].take(sharing) {
            self.granted(rank, target, time);
        } else {
            self.locks[target as usize].waiting.push_back((rank, sharing));
            self.processes[rank as usize].leave = i64::MAX;
        }
    }

    fn granted(&mut self, rank: u32, target: u32, time: i64) {
        let process = &mut self.processes[rank as usize];
        process.held.push(target);
        let mut contention = time - process.next;
        if let Step::Operate(_) = process.steps[0] {
            // Which call of the epoch waited for the lock is seen by the unlock before it: that which was longer in it.
            let (enter, leave) = self.locks[target as usize].unlock;
            let lock_all = &mut process.calls[process.lock_all];
            let overlap = if lock_all.leave > enter { leave.min(lock_all.leave) - lock_all.enter } else { 0 };
            if overlap > contention {
                lock_all.contention = lock_all.contention.max(overlap);
                contention = 0;
            }
        }
        self.done(rank, time + CALL, contention);
    }

    fn release(&mut self, rank: u32, time: i64) {
        let process = &mut self.processes[rank as usize];
        let enter = process.calls.last().map_or(time, |unlock| unlock.enter);
        for target in std::mem::take(&mut process.held) {
            for next in self.locks[target as usize].pass_on((enter, time)) {
                self.granted(next, target, time);
            }
        }
    }

    /// Ends the call of a rank.
    fn done(&mut self, rank: u32, leave: i64, contention: i64) {
        let process = &mut self.processes[rank as usize];
        process.calls.push(Call { enter: process.next, leave, contention });
        process.leave = leave;
        process.next = leave + GAP;
        process.steps = &process.steps[1..];
        self.proceed(rank);
    }
}
