//! What lasts between calls under a handle: communicators, windows, files. Looked up without a lock.

use std::ptr;
use std::sync::atomic::{AtomicPtr, AtomicUsize, Ordering};
use std::sync::{Mutex, PoisonError};

struct Table<T: 'static> {
    /// Open addressing: a handle of 0 ends a search, a value of null is one that was removed.
    places: Box<[(AtomicUsize, AtomicPtr<T>)]>,
}

/// A table of handles. Values and outgrown tables are never freed, since another thread may be reading; there are few.
pub(crate) struct Handles<T: 'static> {
    table: AtomicPtr<Table<T>>,
    /// Places used.
    changes: Mutex<usize>,
}

fn spread(handle: usize) -> usize {
    handle.wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 32
}

impl<T> Table<T> {
    fn new(places: usize) -> Self {
        let places = (0..places).map(|_| (AtomicUsize::new(0), AtomicPtr::new(ptr::null_mut()))).collect();
        Self { places }
    }

    /// The place of a handle, or the free one where it would go. There always is a free one.
    #[inline]
    fn place(&self, handle: usize) -> Option<&(AtomicUsize, AtomicPtr<T>)> {
        let mask = self.places.len().wrapping_sub(1);
        let mut at = spread(handle) & mask;
        loop {
            let place = self.places.get(at)?;
            let known = place.0.load(Ordering::Acquire);
            if known == handle || known == 0 {
                return Some(place);
            }
            at = at.wrapping_add(1) & mask;
        }
    }
}

impl<T: Sync> Handles<T> {
    pub(crate) const fn new() -> Self {
        Self { table: AtomicPtr::new(ptr::null_mut()), changes: Mutex::new(0) }
    }

    fn table(&self) -> Option<&'static Table<T>> {
        // SAFETY: null, or leaked by `insert`.
        unsafe { self.table.load(Ordering::Acquire).as_ref() }
    }

    /// The value under a handle.
    #[inline]
    pub(crate) fn get(&self, handle: usize) -> Option<&'static T> {
        let place = self.table()?.place(handle)?;
        // SAFETY: null, or leaked by `insert`; handles other than 0 only.
        if handle == 0 { None } else { unsafe { place.1.load(Ordering::Acquire).as_ref() } }
    }

    /// Puts a value under a handle.
    pub(crate) fn insert(&self, handle: usize, value: T) -> &'static T {
        let value: &'static T = Box::leak(Box::new(value));
        self.set(handle, value);
        value
    }

    /// Puts a value back that was removed.
    pub(crate) fn set(&self, handle: usize, value: &'static T) {
        if handle == 0 {
            return;
        }
        let mut used = self.changes.lock().unwrap_or_else(PoisonError::into_inner);
        let size = self.table().map_or(0, |table| table.places.len());
        if *used * 2 >= size {
            let new = Table::new((size * 2).max(64));
            *used = 0;
            for (handle, value) in self.table().iter().flat_map(|table| table.places.iter()) {
                let (handle, value) = (handle.load(Ordering::Relaxed), value.load(Ordering::Relaxed));
                if !value.is_null() {
                    put(&new, handle, value, &mut used);
                }
            }
            self.table.store(Box::into_raw(Box::new(new)), Ordering::Release);
        }
        if let Some(table) = self.table() {
            put(table, handle, ptr::from_ref(value).cast_mut(), &mut used);
        }
    }

    /// Removes what is under a handle.
    pub(crate) fn remove(&self, handle: usize) -> Option<&'static T> {
        let _changes = self.changes.lock().unwrap_or_else(PoisonError::into_inner);
        let place = self.table()?.place(handle)?;
        if place.0.load(Ordering::Relaxed) != handle || handle == 0 {
            return None;
        }
        // SAFETY: null, or leaked by `insert`.
        unsafe { place.1.swap(ptr::null_mut(), Ordering::AcqRel).as_ref() }
    }
}

fn put<T>(table: &Table<T>, handle: usize, value: *mut T, used: &mut usize) {
    if let Some(place) = table.place(handle) {
        place.1.store(value, Ordering::Release);
        if place.0.swap(handle, Ordering::Release) == 0 {
            *used += 1;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn handles_come_and_go() {
        static TABLE: Handles<usize> = Handles::new();
        assert_eq!((TABLE.get(3), TABLE.get(0), TABLE.remove(3)), (None, None, None));
        for round in 0..10 {
            for handle in 1..1000_usize {
                TABLE.insert(handle * 16, handle + round);
            }
            for handle in 1..1000_usize {
                assert_eq!(TABLE.get(handle * 16), Some(&(handle + round)));
                assert_eq!(TABLE.remove(handle * 16), Some(&(handle + round)));
                assert_eq!(TABLE.get(handle * 16), None);
            }
        }
    }
}
