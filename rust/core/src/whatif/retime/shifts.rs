//! Storage of the shifts of places while they are needed.

use std::sync::atomic::{AtomicI64, Ordering};

use crate::whatif::graph::steps::Graph;

/// Storage of the shifts of places while they are needed. What is known, and to whom, [`super::board`] says.
pub(super) trait Shifts<const K: usize>: Sized + Send + Sync {
    /// The known shift of a place.
    fn of(&self, place: u32) -> [i64; K];

    /// Stores the shift of a place.
    fn keep(&mut self, place: u32, shift: [i64; K]);

    /// Drops one reference to a place.
    fn release(&mut self, place: u32);

    /// The same storage for another thread, if threads can share it.
    fn share(&self) -> Option<Self>;
}

/// Stores the shifts of all places, for all threads.
#[derive(Debug)]
pub(super) struct All(Vec<AtomicI64>);

impl All {
    pub(super) fn new(graph: &Graph) -> Self {
        Self(vec![0; graph.places()].into_iter().map(AtomicI64::new).collect())
    }

    /// The shift of a place.
    #[inline]
    pub(super) fn at(&self, place: usize) -> i64 {
        self.0[place].load(Ordering::Relaxed)
    }
}

impl Shifts<1> for &All {
    #[inline]
    fn of(&self, place: u32) -> [i64; 1] {
        [self.at(place as usize)]
    }

    #[inline]
    fn keep(&mut self, place: u32, [shift]: [i64; 1]) {
        self.0[place as usize].store(shift, Ordering::Relaxed);
    }

    #[inline]
    fn release(&mut self, _: u32) {}

    fn share(&self) -> Option<Self> {
        Some(self)
    }
}

/// Stores shifts only while they are needed: few at a time, which stay in the cache of one thread.
pub(super) struct Passing<const K: usize> {
    places: Vec<Reference>,
    shifts: Vec<Lanes<K>>,
    /// Free slots.
    free: Vec<u32>,
}

/// The number of references to a place, and the slot of its shift.
#[derive(Clone, Copy)]
struct Reference {
    needs: u32,
    slot: u32,
}

/// Shifts in one line of the cache.
#[derive(Clone, Copy)]
#[repr(align(64))]
struct Lanes<const K: usize>([i64; K]);

impl<const K: usize> Passing<K> {
    pub(super) fn new(graph: &Graph) -> Self {
        let places = graph.references().iter().map(|&needs| Reference { needs, slot: 0 }).collect();
        Self { places, shifts: Vec::new(), free: Vec::new() }
    }
}

impl<const K: usize> Shifts<K> for Passing<K> {
    #[inline]
    fn of(&self, place: u32) -> [i64; K] {
        self.shifts[self.places[place as usize].slot as usize].0
    }

    #[inline]
    fn keep(&mut self, place: u32, shift: [i64; K]) {
        let place = &mut self.places[place as usize];
        if place.needs == 0 {
            return;
        }
        if let Some(slot) = self.free.pop() {
            self.shifts[slot as usize] = Lanes(shift);
            place.slot = slot;
        } else {
            place.slot = self.shifts.len() as u32;
            self.shifts.push(Lanes(shift));
        }
    }

    #[inline]
    fn release(&mut self, place: u32) {
        let place = &mut self.places[place as usize];
        place.needs -= 1;
        if place.needs == 0 {
            self.free.push(place.slot);
        }
    }

    fn share(&self) -> Option<Self> {
        None
    }
}
