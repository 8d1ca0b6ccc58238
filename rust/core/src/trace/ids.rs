//! A map from numbers that mostly count upwards, as measurement systems give them to requests.

use std::collections::VecDeque;

use rustc_hash::FxHashMap;

/// Values by number. A run of consecutive numbers is a table, all others are hashed.
#[derive(Debug)]
pub(super) struct Ids<T> {
    /// Number of the first entry of the table.
    first: u64,
    table: VecDeque<Option<T>>,
    others: FxHashMap<u64, T>,
    /// The table is never longer.
    longest: usize,
}

impl<T> Ids<T> {
    /// An empty map whose table has `longest` entries at most.
    pub(super) fn new(longest: usize) -> Self {
        Self { first: 0, table: VecDeque::new(), others: FxHashMap::default(), longest }
    }

    /// Sets the value of a number; returns the one before.
    #[inline]
    pub(super) fn insert(&mut self, id: u64, value: T) -> Option<T> {
        if self.table.is_empty() {
            self.first = id;
        }
        let place = id.wrapping_sub(self.first) as usize;
        if let Some(entry) = self.table.get_mut(place) {
            entry.replace(value)
        } else if place == self.table.len() && place < self.longest {
            self.table.push_back(Some(value));
            if self.others.is_empty() { None } else { self.others.remove(&id) }
        } else {
            self.others.insert(id, value)
        }
    }

    /// The value of a number.
    #[inline]
    pub(super) fn get(&self, id: u64) -> Option<&T> {
        match self.table.get(id.wrapping_sub(self.first) as usize) {
            Some(entry) => entry.as_ref(),
            None => self.others.get(&id),
        }
    }

    /// Takes the value of a number away.
    #[inline]
    pub(super) fn remove(&mut self, id: u64) -> Option<T> {
        let Some(entry) = self.table.get_mut(id.wrapping_sub(self.first) as usize) else {
            return self.others.remove(&id);
        };
        let value = entry.take();
        // What is in use is a short run that moves on.
        while let Some(None) = self.table.front() {
            self.table.pop_front();
            self.first = self.first.wrapping_add(1);
        }
        value
    }

    /// Number of values.
    pub(super) fn len(&self) -> usize {
        self.table.iter().flatten().count() + self.others.len()
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    proptest! {
        #[test]
        fn they_are_a_map(steps in prop::collection::vec((any::<bool>(), 0u64..40), 0..400), base in prop::sample::select(vec![0, u64::MAX - 20])) {
            let mut ids = Ids::new(16);
            let mut map = std::collections::HashMap::new();
            for (step, (insert, id)) in steps.into_iter().enumerate() {
                let id = base.wrapping_add(id);
                if insert {
                    prop_assert_eq!(ids.insert(id, step), map.insert(id, step));
                } else {
                    prop_assert_eq!(ids.get(id), map.get(&id));
                    prop_assert_eq!(ids.remove(id), map.remove(&id));
                }
                prop_assert_eq!(ids.len(), map.len());
            }
        }
    }

    #[test]
    fn an_old_request_does_not_hold_the_table() {
        let mut ids = Ids::new(100);
        for id in 0..1_000 {
            ids.insert(id, id);
            if id > 0 {
                assert_eq!(ids.remove(id), Some(id));
            }
        }
        assert!(ids.table.len() <= 100);
        assert_eq!(ids.remove(0), Some(0));
        assert_eq!(ids.len(), 0);
    }
}
