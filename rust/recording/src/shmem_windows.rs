//! The windows of OpenSHMEM: one of all PEs, one of each PE alone, and one for each active set that a collective operation
//! used.

use std::collections::BTreeSet;

use rustc_hash::FxHashMap;

use crate::format::{Call, NONE};
use crate::unify::Id;

/// An active set: its first PE, the logarithm of its stride, how many they are.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(crate) struct Set {
    pub(crate) start: u32,
    pub(crate) stride: u32,
    pub(crate) size: u32,
}

impl Set {
    /// That of a collective call; none if it is over all.
    pub(crate) fn of(call: &Call) -> Option<Self> {
        let set = Self { start: call.peer.cast_unsigned(), stride: call.tag.cast_unsigned(), size: call.object };
        (set.size != NONE).then_some(set)
    }

    /// The last PE and the stride, if all of so many exist.
    fn last(self, all: u32) -> Option<(u64, usize)> {
        let step = 1_u64.checked_shl(self.stride).filter(|_| self.size > 0)?;
        let last = step.checked_mul(u64::from(self.size - 1))?.checked_add(u64::from(self.start))?;
        (last < u64::from(all)).then_some((last, step as usize))
    }

    /// The PEs.
    fn members(self, all: u32) -> Option<Vec<u64>> {
        self.last(all).map(|(last, step)| (u64::from(self.start)..=last).step_by(step).collect())
    }
}

/// Name and members of a window; none: whoever uses it.
pub(crate) type Definition = (String, Option<Vec<u64>>);

/// Ids of the windows.
#[derive(Debug)]
pub(crate) struct Windows {
    pub(crate) all: Id,
    pub(crate) own: Id,
    pub(crate) size: u32,
    sets: FxHashMap<Set, Id>,
}

impl Windows {
    /// The windows of a run with these active sets; and, for ids from `first` on, what they are.
    pub(crate) fn new(size: u32, first: Id, sets: &BTreeSet<Set>) -> (Self, Vec<Definition>) {
        let mut windows = Self { all: first, own: first + 1, size, sets: FxHashMap::default() };
        let all = (0..u64::from(size)).collect();
        let mut definitions = vec![("All PEs".to_owned(), Some(all)), ("Self PE".to_owned(), None)];
        for set in sets {
            if let Some(members) = set.members(size).filter(|members| (2..size as usize).contains(&members.len())) {
                windows.sets.insert(*set, first + definitions.len() as Id);
                definitions.push((format!("Active set {}:{}:{}", set.start, set.stride, set.size), Some(members)));
            }
        }
        (windows, definitions)
    }

    /// How many there are.
    pub(crate) fn count(&self) -> u32 {
        2 + self.sets.len() as u32
    }

    /// The window of an active set and how many PEs it has.
    pub(crate) fn of(&self, set: Option<Set>) -> Option<(Id, u32)> {
        let Some(set) = set else { return Some((self.all, self.size)) };
        set.last(self.size)?;
        match set.size {
            1 => Some((self.own, 1)),
            all if all == self.size => Some((self.all, self.size)),
            _ => self.sets.get(&set).map(|id| (*id, set.size)),
        }
    }
}
