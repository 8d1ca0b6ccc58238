//! Things that get a number each.

use std::hash::Hash;

use rustc_hash::FxHashMap;

/// Things by number, in the order in which they came, each once.
#[derive(Debug, Clone)]
pub struct Numbered<T> {
    /// All of them.
    pub list: Vec<T>,
    known: FxHashMap<T, u32>,
}

impl<T> Default for Numbered<T> {
    fn default() -> Self {
        Self { list: Vec::new(), known: FxHashMap::default() }
    }
}

impl<T: Clone + Eq + Hash> Numbered<T> {
    /// The number of a thing.
    pub fn add(&mut self, thing: T) -> u32 {
        let next = self.list.len() as u32;
        *self.known.entry(thing).or_insert_with_key(|thing| {
            self.list.push(thing.clone());
            next
        })
    }

    /// The same of one that is only copied if it is new.
    pub fn number(&mut self, thing: &T) -> u32 {
        self.known.get(thing).copied().unwrap_or_else(|| self.add(thing.clone()))
    }
}
