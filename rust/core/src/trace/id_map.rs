//! A map for keys that mostly count upwards, such as request ids.

use rustc_hash::FxHashMap;

/// Values by key. The lowest bits of a key are its slot in a table; if the slot is taken, the key goes to a hash map.
#[derive(Debug)]
pub(super) struct IdMap<T> {
    /// Numbers and values; the length is a power of two, or zero.
    table: Vec<(u64, Option<T>)>,
    /// Number of values in the table.
    used: usize,
    others: FxHashMap<u64, T>,
}

impl<T> Default for IdMap<T> {
    fn default() -> Self {
        Self { table: Vec::new(), used: 0, others: FxHashMap::default() }
    }
}

impl<T> IdMap<T> {
    #[inline(always)]
    fn place(&self, id: u64) -> usize {
        id as usize & self.table.len().wrapping_sub(1)
    }

    /// Sets the value of a number; returns the previous one.
    #[inline(always)]
    pub(super) fn insert(&mut self, id: u64, value: T) -> Option<T> {
        let place = self.place(id);
        match self.table.get_mut(place) {
            Some(entry @ (_, None)) => {
                *entry = (id, Some(value));
                self.used += 1;
                if self.others.is_empty() { None } else { self.others.remove(&id) }
            }
            Some((there, Some(before))) if *there == id => Some(std::mem::replace(before, value)),
            _ => self.insert_elsewhere(id, value),
        }
    }

    #[inline(never)]
    fn insert_elsewhere(&mut self, id: u64, value: T) -> Option<T> {
        let size = self.table.len();
        if 2 * self.used < size {
            return self.others.insert(id, value);
        }
        let larger = (2 * size).max(16);
        let mut table: Vec<_> = std::iter::repeat_with(|| (0, None)).take(larger).collect();
        // Keys with a slot of their own keep one in the larger table.
        for entry in self.table.drain(..).filter(|(_, value)| value.is_some()) {
            let place = entry.0 as usize & (larger - 1);
            table[place] = entry;
        }
        self.table = table;
        self.insert(id, value)
    }

    /// The value of a number.
    #[inline]
    pub(super) fn get(&self, id: u64) -> Option<&T> {
        match self.table.get(self.place(id)) {
            Some((there, Some(value))) if *there == id => Some(value),
            _ => self.others.get(&id),
        }
    }

    /// Removes the value of a number and returns it.
    #[inline(always)]
    pub(super) fn remove(&mut self, id: u64) -> Option<T> {
        let place = self.place(id);
        if let Some((there, value)) = self.table.get_mut(place)
            && *there == id
            && let Some(value) = value.take()
        {
            self.used -= 1;
            return Some(value);
        }
        self.others.remove(&id)
    }

    /// Removes all values; keeps the table if much of it was in use.
    pub(super) fn clear(&mut self) {
        if self.table.len() <= 4 * self.used {
            self.table.fill_with(|| (0, None));
        } else {
            self.table = Vec::new();
        }
        self.used = 0;
        self.others.clear();
    }

    /// All numbers with their values, in no particular order.
    pub(super) fn iter(&self) -> impl Iterator<Item = (u64, &T)> {
        let table = self.table.iter().filter_map(|(id, value)| Some((*id, value.as_ref()?)));
        table.chain(self.others.iter().map(|(&id, value)| (id, value)))
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    proptest! {
        #[test]
        fn they_are_a_map(steps in prop::collection::vec((any::<bool>(), 0u64..40), 0..400), base in prop::sample::select(vec![0, u64::MAX - 20]), stride in prop::sample::select(vec![1, 3, 1 << 40])) {
            let mut ids = IdMap::default();
            let mut map = std::collections::HashMap::new();
            for (step, (insert, id)) in steps.into_iter().enumerate() {
                let id = base.wrapping_add(id.wrapping_mul(stride));
                if insert {
                    prop_assert_eq!(ids.insert(id, step), map.insert(id, step));
                } else {
                    prop_assert_eq!(ids.get(id), map.get(&id));
                    prop_assert_eq!(ids.remove(id), map.remove(&id));
                }
                prop_assert_eq!(ids.iter().count(), map.len());
            }
        }
    }

    #[test]
    fn the_table_is_no_longer_than_what_it_holds_explains() {
        let mut ids = IdMap::default();
        for id in 0..1_000 {
            ids.insert(id, id);
            if id > 0 {
                assert_eq!(ids.remove(id), Some(id));
            }
        }
        assert!(ids.table.len() <= 16);
        assert_eq!(ids.remove(0), Some(0));
        assert_eq!(ids.iter().count(), 0);
        for id in 0..1_000 {
            ids.insert(id, id);
        }
        assert!(ids.table.len() <= 1_024 && ids.others.is_empty());
        assert_eq!(ids.iter().count(), 1_000);
        ids.clear();
        assert_eq!((ids.iter().count(), ids.get(7), ids.table.len()), (0, None, 1_024));
        ids.insert(7, 7);
        ids.clear();
        assert_eq!((ids.iter().count(), ids.get(7), ids.table.len()), (0, None, 0));
    }
}
