//! What happened on a link since a time, by call path.
//!
//! Links of the same chain have most of their segments in common, and waits are divided in the order of time, so the profile of
//! a long link is kept, and what another one has besides is added to it or taken from it.

use std::collections::hash_map::Entry;

use rustc_hash::FxHashMap;

use super::places::Stretch;
use super::segments::Segment;
use crate::ids::{CallPathId, InstanceId, LocationId};

/// Work by call path and location, and waits in MPI.
#[derive(Debug, Default)]
pub(super) struct Profile {
    pub work: FxHashMap<(CallPathId, LocationId), i64>,
    /// Ticks of waiting.
    pub waiting: i64,
}

impl Profile {
    /// Adds ticks, or takes them away.
    pub(super) fn add(&mut self, key: (CallPathId, LocationId), ticks: i64) {
        match self.work.entry(key) {
            Entry::Vacant(entry) => {
                entry.insert(ticks);
            }
            Entry::Occupied(entry) if *entry.get() == -ticks => {
                entry.remove();
            }
            Entry::Occupied(mut entry) => *entry.get_mut() += ticks,
        }
    }

    fn add_stretches(&mut self, stretches: impl Iterator<Item = Stretch>, sign: i64) {
        for stretch in stretches {
            match stretch.wait {
                InstanceId::NONE => self.add((stretch.callpath, stretch.location), sign * stretch.ticks),
                _ => self.waiting += sign * stretch.ticks,
            }
        }
    }

    fn append(&mut self, other: &Self) {
        other.work.iter().for_each(|(&key, &ticks)| self.add(key, ticks));
        self.waiting += other.waiting;
    }
}

/// The profiles of long links.
#[derive(Default)]
pub(crate) struct Profiles {
    of_chains: FxHashMap<(u32, i64), Kept>,
}

/// The profile of a link.
#[derive(Default)]
struct Kept {
    /// Its segments, the earliest first.
    segments: Vec<usize>,
    profile: Profile,
}

/// A link of fewer segments is not kept.
const LONG: u32 = 8;

/// How many profiles are kept.
const MOST: usize = 1 << 10;

impl Profiles {
    /// Adds what happened on a link since a time; `segment` is its last one.
    pub(super) fn add(&mut self, segments: &[Segment], segment: u32, first: i64, to: &mut Profile) {
        let Segment { root, depth, .. } = segments[segment as usize];
        if depth < LONG {
            path(segments, segment, first)
                .for_each(|number| to.add_stretches(segments[number].stretches_after(first), 1));
            return;
        }
        if self.of_chains.len() == MOST && !self.of_chains.contains_key(&(root, first)) {
            self.of_chains.clear();
        }
        let Kept { segments: kept, profile } = self.of_chains.entry((root, first)).or_default();
        let base = kept.first().map_or(0, |&first| segments[first].depth);
        let mut more = Vec::new();
        let mut common = 0;
        for number in path(segments, segment, first) {
            let position = segments[number].depth.checked_sub(base).map(|position| position as usize);
            if let Some(position) = position.filter(|&position| kept.get(position) == Some(&number)) {
                common = position + 1;
                break;
            }
            more.push(number);
        }
        for number in kept.drain(common..) {
            profile.add_stretches(segments[number].stretches_after(first), -1);
        }
        for &number in more.iter().rev() {
            profile.add_stretches(segments[number].stretches_after(first), 1);
        }
        kept.extend(more.iter().rev());
        to.append(profile);
    }
}

/// The segments of a link since a time, the latest first; `segment` is its last one.
pub(super) fn path(segments: &[Segment], segment: u32, first: i64) -> impl Iterator<Item = usize> {
    let number = move |segment: u32| Some(segment as usize).filter(|&number| segments[number].until > first);
    std::iter::successors(number(segment), move |&of| segments[of].before.and_then(number))
}
