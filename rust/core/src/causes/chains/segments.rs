//! The forest of the chains: what several kernels' links have in common stands in it once.
//!
//! Each place on a chain has one continuation, so chains that meet go on together. A *segment* lasts from where a link ends, or
//! two meet, to the next such place on the way back.

use std::collections::BTreeMap;
use std::ops::Range;

use bitcode::{Decode, Encode};
use rustc_hash::FxHashMap;

use super::places::{At, Next, Rank, Stretch};
use crate::ids::{InstanceId, LocationId};

/// The chain of a kernel, back to the kernel before it.
#[derive(Clone, Copy, Debug, Encode, Decode)]
pub(super) struct Link {
    /// The kernel before it that communicates; `None` if the chain begins without one.
    pub before: Option<(LocationId, InstanceId)>,
    /// The end of that one, or the begin of the chain, ticks.
    pub since: i64,
    /// The segment that ends with the begin of the kernel.
    pub segment: u32,
}

/// A part of one or more links.
#[derive(Clone, Debug, Encode, Decode)]
pub(super) struct Segment {
    /// The segment before it, which has a smaller number.
    pub before: Option<u32>,
    /// How many are before it.
    pub depth: u32,
    /// The first of these, or itself.
    pub root: u32,
    /// Begin and end, ticks.
    pub since: i64,
    pub until: i64,
    /// What happened meanwhile; from the latest to the earliest if `in_order`.
    stretches: Vec<Stretch>,
    /// Whether nothing before is part of an operation, so that a record that begins later cuts the link.
    in_order: bool,
}

impl Segment {
    /// The same among others: numbers are larger by `first`.
    pub(super) fn moved(self, first: u32) -> Self {
        Self { before: self.before.map(|before| before + first), root: self.root + first, ..self }
    }

    /// What happened since a time.
    pub(super) fn stretches_after(&self, first: i64) -> impl Iterator<Item = Stretch> {
        let (all, inside) = (self.until - self.since, (self.until - first.max(self.since)).max(0));
        let mut left = inside;
        let stretches = self.stretches.iter().map(move |stretch| {
            let ticks = match self.in_order {
                true => stretch.ticks.min(left),
                false if inside < all => (i128::from(stretch.ticks) * i128::from(inside) / i128::from(all)) as i64,
                false => stretch.ticks,
            };
            left -= if self.in_order { ticks } else { 0 };
            Stretch { ticks, ..*stretch }
        });
        stretches.filter(|stretch| stretch.ticks > 0)
    }
}

/// A place on a chain, and what happened since the one before it.
#[derive(Debug)]
struct Place {
    /// The place before it; a smaller number.
    before: Option<u32>,
    /// When it is.
    until: i64,
    /// The begin of its chain.
    root: u32,
    /// Which stretches are its own.
    stretches: Range<u32>,
    /// How many chains go on with it.
    joined: u32,
}

/// The chains of a rank.
#[derive(Debug, Default)]
pub(super) struct Forest {
    places: Vec<Place>,
    stretches: Vec<Stretch>,
    /// Where chains begin: the kernel before, and when.
    roots: Vec<(Option<(LocationId, InstanceId)>, i64)>,
    /// The places at which work begins.
    of_kernels: FxHashMap<u32, u32>,
    /// By thread its places in order of time.
    of_threads: BTreeMap<LocationId, Vec<(i64, u32)>>,
}

impl Forest {
    /// Follows the chain of a kernel; returns its last place.
    pub(super) fn chain(&mut self, rank: &Rank, kernel: u32) -> u32 {
        let mut open: Vec<(At, Range<u32>)> = Vec::new();
        let mut at = At::Begin(kernel);
        let mut last = loop {
            let (known, earlier) = self.known(at);
            if known.is_some() {
                break known;
            }
            let first = self.stretches.len();
            let (since, next) = rank.step(at, earlier, &mut |stretch| match self.stretches[first..].last_mut() {
                Some(last) if last.key() == stretch.key() => last.ticks += stretch.ticks,
                _ if stretch.ticks > 0 => self.stretches.push(stretch),
                _ => {}
            });
            open.push((at, first as u32..self.stretches.len() as u32));
            match next {
                Next::At(next) => at = next,
                Next::Joins(place) => break Some(place),
                Next::Before(kernel) => {
                    self.roots.push((kernel, since));
                    break None;
                }
            }
        };
        for (at, stretches) in open.into_iter().rev() {
            last = Some(self.add((at, rank.time(at)), last, stretches));
        }
        last.expect("a chain has a place")
    }

    /// A place, if it is known, or one that is earlier in its thread.
    fn known(&self, at: At) -> (Option<u32>, Option<(i64, u32)>) {
        match at {
            At::Begin(kernel) => (self.of_kernels.get(&kernel).copied(), None),
            At::Host(thread, time) => {
                let places = self.of_threads.get(&thread).map_or(&[][..], Vec::as_slice);
                let earlier = places[..places.partition_point(|&(other, _)| other <= time)].last().copied();
                let known = earlier.filter(|&(other, _)| other == time).map(|(_, place)| place);
                (known, earlier)
            }
        }
    }

    /// Adds a place behind another one, or at the begin of the chain that was followed last.
    fn add(&mut self, (at, until): (At, i64), before: Option<u32>, stretches: Range<u32>) -> u32 {
        let number = self.places.len() as u32;
        let root = match before {
            Some(before) => {
                self.places[before as usize].joined += 1;
                self.places[before as usize].root
            }
            None => self.roots.len() as u32 - 1,
        };
        self.places.push(Place { before, until, root, stretches, joined: 0 });
        match at {
            At::Begin(kernel) => {
                self.of_kernels.insert(kernel, number);
            }
            At::Host(thread, time) => {
                let places = self.of_threads.entry(thread).or_default();
                places.insert(places.partition_point(|&(other, _)| other < time), (time, number));
            }
        }
        number
    }

    /// The segments, and the links that end at these places; `is_tied` tells whether a kernel is part of an operation.
    pub(super) fn finish(
        self,
        ends: impl Iterator<Item = u32>,
        is_tied: impl Fn((LocationId, InstanceId)) -> bool,
    ) -> (Vec<Segment>, Vec<Link>) {
        let ends: Vec<u32> = ends.collect();
        let mut is_kept: Vec<bool> = self.places.iter().map(|place| place.joined > 1).collect();
        for &end in &ends {
            is_kept[end as usize] = true;
        }
        let in_order: Vec<bool> = self.roots.iter().map(|&(kernel, _)| !kernel.is_some_and(&is_tied)).collect();
        let mut segments: Vec<Segment> = Vec::new();
        // Of the places that are kept, their segments.
        let mut numbers: Vec<u32> = Vec::with_capacity(self.places.len());
        for (place, &kept) in self.places.iter().zip(&is_kept) {
            numbers.push(segments.len() as u32);
            if kept {
                let mut stretches = self.stretches[as_range(&place.stretches)].to_vec();
                let mut before = place.before;
                while let Some(other) = before.filter(|&before| !is_kept[before as usize]) {
                    let other = &self.places[other as usize];
                    stretches.extend_from_slice(&self.stretches[as_range(&other.stretches)]);
                    before = other.before;
                }
                let in_order = in_order[place.root as usize];
                if !in_order {
                    stretches.sort_unstable_by_key(Stretch::key);
                }
                stretches.dedup_by(|next, kept| {
                    let is_same = next.key() == kept.key();
                    kept.ticks += if is_same { next.ticks } else { 0 };
                    is_same
                });
                stretches.shrink_to_fit();
                let since =
                    before.map_or(self.roots[place.root as usize].1, |before| self.places[before as usize].until);
                let before = before.map(|before| numbers[before as usize]);
                let own = segments.len() as u32;
                let of_before = before.map(|before| &segments[before as usize]);
                let (depth, root) = of_before.map_or((0, own), |before| (before.depth + 1, before.root));
                segments.push(Segment { before, depth, root, since, until: place.until, stretches, in_order });
            }
        }
        let link = |&end: &u32| {
            let (before, since) = self.roots[self.places[end as usize].root as usize];
            Link { before, since, segment: numbers[end as usize] }
        };
        let links = ends.iter().map(link).collect();
        (segments, links)
    }
}

fn as_range(numbers: &Range<u32>) -> Range<usize> {
    numbers.start as usize..numbers.end as usize
}
