//! Runs of tests: calls that test whether something has come, one after the other, until it has.
//!
//! Such a run is waiting, and may have millions of calls. So only its first test from each place is recorded, the others are counted in a
//! [`Polls`], and the one that finds something is marked as the end of the run. Whoever computes between tests does not wait: processor time of
//! up to [`COMPUTING`] between two tests is part of the run, and so is any time in which the thread slept or had no core. Interrupts, and what the host of
//! a virtual machine takes, look like processor time: longer times are part of the run as long as they are a small part of it ([`SHARE`]).

use crate::clock;
use crate::format::{Call, Polls};
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};

/// The most processor time between two tests of a run, in nanoseconds.
const COMPUTING: u64 = 100_000;
/// The same in ticks; 0: each test is recorded by itself.
static LIMIT: AtomicU64 = AtomicU64::new(0);
/// Longer times may be one in so many parts of the run.
const SHARE: u64 = 10;
/// From how many places a run may test: the calls in the body of a loop.
pub(crate) const PLACES: usize = 4;

/// Looks for runs from now on. A clock has so many ticks per second.
pub(crate) fn begin(frequency: u64) {
    LIMIT.store(ticks(COMPUTING, frequency).max(1), Relaxed);
}

fn ticks(nanoseconds: u64, frequency: u64) -> u64 {
    (u128::from(nanoseconds) * u128::from(frequency) / 1_000_000_000) as u64
}

/// The run of tests that a thread is in.
pub(crate) struct Run {
    /// Function and call path of its tests.
    places: [(u16, u32); PLACES],
    pub(crate) used: usize,
    /// Where the next slot goes if nothing else is recorded; null: there is no run.
    pub(crate) next: *mut u8,
    /// Tests that were not recorded by themselves, if the last thing that was is this.
    pub(crate) polls: *mut Polls,
    /// When the first test was entered, and the last one returned.
    since: u64,
    until: u64,
    /// Processor time between tests that were further apart than [`COMPUTING`], in ticks.
    computing: u64,
    /// A time in the run, and the processor time that the thread had used by then, if it was asked for.
    sample: (u64, Option<u64>),
}

impl Run {
    /// There is none.
    pub(crate) const NONE: Self = Self {
        places: [(0, 0); PLACES],
        used: 0,
        next: std::ptr::null_mut(),
        polls: std::ptr::null_mut(),
        since: 0,
        until: 0,
        computing: 0,
        sample: (0, None),
    };

    /// Begins with a test that found nothing. To ask for the processor time is a system call, so it is only done where the next test will need it.
    pub(crate) fn begin(&mut self, call: &Call, next: *mut u8, asks: bool) {
        let sample = (call.leave, asks.then(clock::of_thread));
        *self = Self { since: call.enter, until: call.leave, next, sample, ..Self::NONE };
        self.add(call);
    }

    /// Whether a test that was entered at a time is still part of it.
    pub(crate) fn goes_on(&mut self, enter: u64) -> bool {
        let limit = LIMIT.load(Relaxed);
        let mut between = enter.wrapping_sub(self.until);
        if between <= limit {
            return true;
        }
        if let (time, Some(used)) = self.sample {
            let used = u128::from(clock::of_thread().wrapping_sub(used)) * u128::from(limit) / u128::from(COMPUTING);
            // From the sample to the last test, the thread may have had a core all the time.
            between = between.min((used as u64).saturating_sub(self.until.wrapping_sub(time)));
        }
        if between <= limit {
            return true;
        }
        self.computing += between;
        self.computing.saturating_mul(SHARE) <= enter.wrapping_sub(self.since)
    }

    /// Goes on to a test that found nothing, after which the next slot has its place.
    pub(crate) fn extend(&mut self, leave: u64, next: *mut u8) {
        (self.until, self.next) = (leave, next);
        if leave.wrapping_sub(self.sample.0) > LIMIT.load(Relaxed) {
            self.sample = (leave, Some(clock::of_thread()));
        }
    }

    pub(crate) fn knows(&self, call: &Call) -> bool {
        self.places[..self.used].contains(&(call.function, call.node))
    }

    pub(crate) fn add(&mut self, call: &Call) {
        if let Some(place) = self.places.get_mut(self.used) {
            *place = (call.function, call.node);
            self.used += 1;
        }
    }
}

/// Whether runs are looked for.
pub(crate) fn is_on() -> bool {
    LIMIT.load(Relaxed) != 0
}
