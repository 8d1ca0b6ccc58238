//! Random programs with one-sided operations: the calls of a rank between two fences.
//!
//! An *active* program has operations in the epoch of the fences. A *passive* one has epochs of its own: the lock of
//! one target, exclusive or shared, or the shared locks of all, with operations and flushes inside.

use crate::Start;
use crate::definitions::Region;
use crate::noise::Purpose;

/// Maximum number of operations in an epoch.
const OPERATIONS: u64 = 4;
/// Maximum number of lock epochs in a passive program.
const EPOCHS: u64 = 2;

/// A step of a program.
#[derive(Debug)]
pub(crate) enum Step {
    /// Computes for this many ticks.
    Work(i64),
    /// Locks one target.
    Lock(u32, Sharing),
    /// Locks all targets, each with the first operation on it.
    LockAll,
    /// A put, get or atomic.
    Operate(Operation),
    /// A flush or unlock.
    Complete(Completion),
}

/// Whether others can hold a lock at the same time.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Sharing {
    Exclusive,
    Shared,
}

/// An operation on another rank.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Operation {
    pub(crate) region: Region,
    pub(crate) target: u32,
    /// Elements of 8 bytes.
    pub(crate) elements: u64,
    /// Its number in the program.
    pub(crate) id: u64,
    /// Whether it acquires the lock of its target.
    pub(crate) locks: bool,
}

impl Operation {
    /// Whether it returns data.
    fn answers(&self) -> bool {
        matches!(self.region, Region::Get | Region::GetAccumulate | Region::FetchAndOp)
    }
}

/// A call that completes operations.
#[derive(Debug)]
pub(crate) struct Completion {
    pub(crate) region: Region,
    /// Ids of the operations that it completes here.
    pub(crate) here: Vec<u64>,
    /// Ids of those that it completes at their targets.
    pub(crate) there: Vec<u64>,
    /// Ranks that have to make progress for it, sorted.
    pub(crate) targets: Vec<u32>,
    /// The lock that it releases, if any.
    pub(crate) unlocks: Option<Locked>,
}

/// The lock of an epoch.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Locked {
    One(u32),
    All,
}

/// The program of a rank in an iteration.
pub(crate) fn program(start: &Start, rank: u32, iteration: usize) -> Vec<Step> {
    let mut writer = Writer { start, rank, iteration: iteration as u64, drawn: 0, operations: 0, steps: Vec::new() };
    if is_active(iteration) {
        writer.active();
    } else {
        for epoch in 0..=writer.below(EPOCHS) {
            writer.passive(epoch);
        }
    }
    writer.steps
}

/// Whether the programs of an iteration are active: those of every other iteration.
pub(crate) fn is_active(iteration: usize) -> bool {
    iteration.is_multiple_of(2)
}

/// A pending operation.
struct Pending {
    operation: Operation,
    done_here: bool,
}

struct Writer<'a> {
    start: &'a Start,
    rank: u32,
    iteration: u64,
    /// Random numbers so far.
    drawn: u64,
    /// Operations so far.
    operations: u64,
    steps: Vec<Step>,
}

impl Writer<'_> {
    fn below(&mut self, limit: u64) -> u64 {
        let step = self.iteration << 16 | self.drawn;
        self.drawn += 1;
        self.start.noise.below(limit as i64, Purpose::Operation, self.rank, step) as u64
    }

    fn anybody_else(&mut self) -> u32 {
        let ranks = self.start.ranks;
        (self.rank + 1 + self.below(u64::from(ranks) - 1) as u32) % ranks
    }

    fn work(&mut self, epoch: u64) {
        self.steps.push(Step::Work(self.start.work(self.rank, self.iteration * EPOCHS + epoch)));
    }

    fn operate(&mut self, target: u32, locks: bool) -> Operation {
        let kinds = [Region::Put, Region::Get, Region::Accumulate, Region::GetAccumulate, Region::FetchAndOp];
        let region = kinds[self.below(kinds.len() as u64) as usize];
        let elements = if region == Region::FetchAndOp { 1 } else { 1 << self.below(14) };
        let operation = Operation { region, target, elements, id: self.operations, locks };
        self.operations += 1;
        self.steps.push(Step::Operate(operation));
        operation
    }

    fn active(&mut self) {
        self.work(0);
        for _ in 0..self.below(OPERATIONS + 1) {
            let target = self.anybody_else();
            self.operate(target, false);
        }
    }

    fn passive(&mut self, epoch: u64) {
        self.work(epoch);
        let locked = match self.below(3) {
            0 => Locked::All,
            _ => Locked::One(self.anybody_else()),
        };
        let lock = match locked {
            Locked::All => Step::LockAll,
            Locked::One(target) if self.below(2) == 0 => Step::Lock(target, Sharing::Exclusive),
            Locked::One(target) => Step::Lock(target, Sharing::Shared),
        };
        self.steps.push(lock);
        let mut reached: Vec<u32> = Vec::new();
        let mut pending: Vec<Pending> = Vec::new();
        // A lock_all without operations does not record its targets.
        let fewest = u64::from(locked == Locked::All);
        for _ in 0..fewest + self.below(OPERATIONS + 1 - fewest) {
            let (target, locks) = match locked {
                Locked::One(target) => (target, false),
                Locked::All => {
                    let target = self.anybody_else();
                    (target, !reached.contains(&target))
                }
            };
            reached.push(target);
            pending.push(Pending { operation: self.operate(target, locks), done_here: false });
            if self.below(3) == 0 {
                self.flush(locked, target, &mut pending);
            }
        }
        let unlock = match locked {
            Locked::One(target) => Completion {
                // The target has to process the unlock.
                targets: vec![target],
                ..complete(Region::WinUnlock, &mut pending, locked, true)
            },
            Locked::All => complete(Region::WinUnlockAll, &mut pending, locked, true),
        };
        self.steps.push(Step::Complete(Completion { unlocks: Some(locked), ..unlock }));
    }

    /// Flushes the operations at a target or at all of them, remotely or only locally.
    fn flush(&mut self, locked: Locked, target: u32, pending: &mut Vec<Pending>) {
        let there = self.below(2) == 0;
        let everywhere = locked == Locked::All && self.below(2) == 0;
        let (what, region) = match (everywhere, there) {
            (true, true) => (Locked::All, Region::WinFlushAll),
            (true, false) => (Locked::All, Region::WinFlushLocalAll),
            (false, true) => (Locked::One(target), Region::WinFlush),
            (false, false) => (Locked::One(target), Region::WinFlushLocal),
        };
        self.steps.push(Step::Complete(complete(region, pending, what, there)));
    }
}

/// A call that completes the operations on locked targets, remotely (`there`) or only locally.
fn complete(region: Region, pending: &mut Vec<Pending>, what: Locked, there: bool) -> Completion {
    let mut completion = Completion { region, here: Vec::new(), there: Vec::new(), targets: Vec::new(), unlocks: None };
    let chosen = |pending: &Pending| what == Locked::All || what == Locked::One(pending.operation.target);
    for Pending { operation, done_here } in pending.iter_mut().filter(|pending| chosen(pending)) {
        if there {
            completion.there.push(operation.id);
        }
        if !*done_here {
            completion.here.push(operation.id);
        }
        // An operation that returns data is complete at the target once it is complete here.
        if there || !*done_here && operation.answers() {
            completion.targets.push(operation.target);
        }
        *done_here = true;
    }
    pending.retain(|pending| !(there && chosen(pending)));
    completion.targets.sort_unstable();
    completion.targets.dedup();
    completion
}
