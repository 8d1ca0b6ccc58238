//! Which parts of a range of addresses are free.

use std::collections::{BTreeMap, BTreeSet};
use std::ops::Range;

/// The free parts of a range, by their begin and by their length.
#[derive(Debug)]
pub(crate) struct Extents {
    free: BTreeMap<usize, usize>,
    by_length: BTreeSet<(usize, usize)>,
    size: usize,
}

impl Extents {
    /// A range that is all free.
    pub(crate) fn new(size: usize) -> Self {
        let mut extents = Self { free: BTreeMap::new(), by_length: BTreeSet::new(), size };
        extents.insert(0..size);
        extents
    }

    /// Takes `length` from the smallest free part that has it, at its begin; parts of a size from the front.
    pub(crate) fn take(&mut self, length: usize) -> Option<usize> {
        let &(found, begin) = self.by_length.range((length, 0)..).next()?;
        self.remove(begin, found);
        self.insert(begin + length..begin + found);
        Some(begin)
    }

    /// Takes exactly this part if it is free.
    pub(crate) fn take_at(&mut self, part: Range<usize>) -> bool {
        match self.free.get(&part.start) {
            Some(&found) if found >= part.len() => {
                self.remove(part.start, found);
                self.insert(part.end..part.start + found);
                true
            }
            _ => false,
        }
    }

    /// Gives a part back.
    pub(crate) fn give(&mut self, mut part: Range<usize>) {
        if let Some((&begin, &length)) = self.free.range(..part.start).next_back()
            && begin + length == part.start
        {
            self.remove(begin, length);
            part.start = begin;
        }
        if let Some(&length) = self.free.get(&part.end) {
            self.remove(part.end, length);
            part.end += length;
        }
        self.insert(part);
    }

    /// Where the last part that is taken ends; 0 if none is.
    pub(crate) fn end(&self) -> usize {
        match self.free.last_key_value() {
            Some((&begin, &length)) if begin + length == self.size => begin,
            _ => self.size,
        }
    }

    fn insert(&mut self, part: Range<usize>) {
        if !part.is_empty() {
            self.free.insert(part.start, part.len());
            self.by_length.insert((part.len(), part.start));
        }
    }

    fn remove(&mut self, begin: usize, length: usize) {
        self.free.remove(&begin);
        self.by_length.remove(&(length, begin));
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn neighbors_merge_and_the_end_is_known() {
        let mut extents = Extents::new(100);
        assert_eq!(extents.end(), 0);
        let [a, b, c] = [10, 20, 30].map(|length| extents.take(length).expect("room"));
        assert_eq!([a, b, c, extents.end()], [0, 10, 30, 60]);
        extents.give(10..30);
        assert!(!extents.take_at(10..31), "what follows is taken");
        extents.give(0..10);
        assert_eq!(extents.take(30), Some(0), "merged");
        extents.give(30..60);
        assert_eq!(extents.end(), 30);
        extents.give(0..30);
        assert_eq!((extents.end(), extents.free.len(), extents.by_length.len()), (0, 1, 1));
    }

    #[test]
    fn the_smallest_part_that_suffices_is_taken() {
        let mut extents = Extents::new(100);
        assert_eq!(extents.take(100), Some(0));
        assert_eq!((extents.take(1), extents.end()), (None, 100));
        extents.give(0..30);
        extents.give(50..60);
        assert_eq!(extents.take(5), Some(50));
        assert_eq!(extents.take(6), Some(0));
    }

    proptest! {
        #[test]
        fn it_agrees_with_a_map_of_bytes(steps in prop::collection::vec((any::<bool>(), 1..20_usize, any::<prop::sample::Index>()), 1..100)) {
            let mut extents = Extents::new(200);
            let mut taken = [false; 200];
            let mut blocks: Vec<Range<usize>> = Vec::new();
            for (take, length, which) in steps {
                if take || blocks.is_empty() {
                    if let Some(begin) = extents.take(length) {
                        prop_assert!(taken[begin..begin + length].iter().all(|taken| !taken));
                        taken[begin..begin + length].fill(true);
                        blocks.push(begin..begin + length);
                    } else {
                        let longest = taken.split(|&taken| taken).map(<[bool]>::len).max();
                        prop_assert!(longest < Some(length));
                    }
                } else {
                    let block = blocks.swap_remove(which.index(blocks.len()));
                    taken[block.clone()].fill(false);
                    extents.give(block);
                }
                prop_assert_eq!(extents.end(), taken.iter().rposition(|&taken| taken).map_or(0, |last| last + 1));
            }
        }
    }
}
