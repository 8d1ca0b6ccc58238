//! Which places are known, who waits for the others, and how far the meetings are.
//!
//! A location or a meeting waits for one place at most, and only who makes that known lets it go on. So it may go on at
//! any time, on any thread: the new times are the same.

#![expect(clippy::inline_always, reason = "a shift stays in registers until it is published")]

use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::{Mutex, MutexGuard, PoisonError};

use crate::whatif::graph::steps::Graph;

/// The shift of a place is unknown, and nothing waits for it. Larger values name the waiter.
const UNKNOWN: u32 = 0;
/// The shift is known.
const KNOWN: u32 = u32::MAX;
/// The shift of a thread that has not begun.
pub(super) const NEVER: i64 = i64::MIN / 2;

/// How far a meeting is.
#[derive(Clone)]
pub(super) struct Progress<const K: usize> {
    /// Latest time of its members so far, or their latest shift.
    pub latest: [i64; K],
    pub members: u32,
    pub checkpoints: u32,
    pub has_begun: bool,
}

/// Locations of one group that can go on, from other groups.
#[derive(Default)]
struct Inbox {
    waiters: Vec<u32>,
    /// Whether a thread is at work on the group, or will be.
    is_awake: bool,
}

/// What all groups of locations share. A waiter is a location, or a meeting with a number after all locations.
pub(super) struct Board<const K: usize> {
    /// For each place whether its shift is known, or its first waiter.
    states: Vec<AtomicU32>,
    /// For each waiter, the next one that waits for the same place, plus one.
    next: Vec<AtomicU32>,
    meetings: Vec<Mutex<Progress<K>>>,
    /// First location of each group, and the number of locations.
    bounds: Vec<u32>,
    inboxes: Vec<Mutex<Inbox>>,
}

impl<const K: usize> Board<K> {
    /// Divides the locations among groups with about as many steps each.
    pub(super) fn new(graph: &Graph, groups: usize) -> Self {
        let locations = graph.offsets.len() - 1;
        let nobody = || Progress { latest: [NEVER; K], members: 0, checkpoints: 0, has_begun: false };
        let none = |count| vec![UNKNOWN; count].into_iter().map(AtomicU32::new).collect();
        let bound = |group: usize| {
            let steps = graph.steps.len() * group / groups;
            graph.offsets.partition_point(|&offset| (offset as usize) < steps).min(locations) as u32
        };
        let mut bounds: Vec<u32> = (0..groups).map(bound).collect();
        bounds.push(locations as u32);
        Self {
            states: none(graph.places()),
            next: none(locations + graph.meetings.len()),
            meetings: graph.meetings.iter().map(|_| Mutex::new(nobody())).collect(),
            bounds,
            inboxes: (0..groups).map(|_| Mutex::default()).collect(),
        }
    }

    /// Number of groups.
    pub(super) fn groups(&self) -> usize {
        self.inboxes.len()
    }

    /// Number of locations.
    pub(super) fn locations(&self) -> u32 {
        self.bounds[self.groups()]
    }

    /// The locations of a group.
    pub(super) fn locations_of(&self, group: usize) -> std::ops::Range<u32> {
        self.bounds[group]..self.bounds[group + 1]
    }

    /// The group of a location.
    pub(super) fn group_of(&self, location: u32) -> usize {
        self.bounds.partition_point(|&bound| bound <= location) - 1
    }

    pub(super) fn meeting(&self, number: usize) -> MutexGuard<'_, Progress<K>> {
        lock(&self.meetings[number])
    }

    #[inline]
    pub(super) fn knows(&self, place: u32) -> bool {
        self.states[place as usize].load(Ordering::Acquire) == KNOWN
    }

    /// Lets a location or a meeting wait for a place; `false` if that has become known.
    pub(super) fn park(&self, place: u32, waiter: u32) -> bool {
        let park = |first| {
            self.next[waiter as usize].store(first, Ordering::Relaxed);
            (first != KNOWN).then_some(waiter + 1)
        };
        self.states[place as usize].fetch_update(Ordering::AcqRel, Ordering::Acquire, park).is_ok()
    }

    /// Makes a place known, whose shift has been stored, and visits those who waited for it.
    #[inline(always)]
    pub(super) fn publish(&self, place: u32, visit: impl FnMut(u32)) {
        let state = &self.states[place as usize];
        let waiter = if self.groups() > 1 {
            state.swap(KNOWN, Ordering::AcqRel)
        } else {
            let waiter = state.load(Ordering::Relaxed);
            state.store(KNOWN, Ordering::Relaxed);
            waiter
        };
        if waiter != UNKNOWN {
            self.visit(waiter, visit);
        }
    }

    fn visit(&self, mut waiter: u32, mut visit: impl FnMut(u32)) {
        while waiter != UNKNOWN {
            let number = waiter - 1;
            // Once visited, it may wait elsewhere.
            waiter = self.next[number as usize].load(Ordering::Relaxed);
            visit(number);
        }
    }

    /// Removes a location from those who wait for a place. No thread may be at work.
    pub(super) fn unpark(&self, place: u32, location: u32) {
        let mut waiters = Vec::new();
        self.visit(self.states[place as usize].swap(UNKNOWN, Ordering::Relaxed), |waiter| waiters.push(waiter));
        for waiter in waiters.into_iter().rev().filter(|&waiter| waiter != location) {
            self.park(place, waiter);
        }
    }

    /// Tells another group that a location of it can go on; returns whether somebody must wake the group.
    pub(super) fn send(&self, group: usize, location: u32) -> bool {
        let mut inbox = lock(&self.inboxes[group]);
        inbox.waiters.push(location);
        !std::mem::replace(&mut inbox.is_awake, true)
    }

    /// Adds to `ready` what others have sent to a group, which is awake; `false` if that is nothing, and the group
    /// sleeps from now on.
    pub(super) fn receive(&self, group: usize, ready: &mut Vec<u32>) -> bool {
        let mut inbox = lock(&self.inboxes[group]);
        ready.append(&mut inbox.waiters);
        inbox.is_awake = !ready.is_empty();
        inbox.is_awake
    }

    /// Wakes a group.
    pub(super) fn wake(&self, group: usize) {
        lock(&self.inboxes[group]).is_awake = true;
    }
}

/// A thread that panics ends the others: whoever finds its lock may go on until then.
pub(super) fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
