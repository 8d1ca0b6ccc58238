//! The segments of selections: one pass over the trace finds those of several selections.
//!
//! A *segment* is the time between two consecutive Enters or Leaves of a location; it belongs to the innermost region.
//! In the last segment of a call that waits, only the call's own time counts.

use std::collections::BTreeMap;

use bitcode::{Decode, Encode};

use super::cut::Cut;
use super::durations::{Change, Shape};
use super::selection::{Chooser, Part, Selection, refusal};
use crate::ids::LocationId;
use crate::parallel::iter::prelude::*;
use crate::trace::Trace;
use crate::trace::shard::ProfileCell;
use crate::whatif::graph::steps::Graph;

/// A selected segment.
#[derive(Clone, Copy, Debug)]
pub(in crate::whatif) struct Segment {
    /// Position of the event that ends it.
    pub position: u32,
    /// Number among the selected instances of the location.
    pub instance: u32,
    /// Whether it ends in a call that waits.
    pub waits: bool,
    /// Ticks without waiting.
    pub ticks: i64,
    /// Measured ticks, waiting included.
    pub measured: i64,
}

impl Segment {
    /// The change to this many ticks without waiting.
    #[inline]
    pub(in crate::whatif) fn change(&self, lane: u32, ticks: i64) -> Change {
        Change { position: self.position, lane, growth: ticks - self.measured }
    }
}

/// Inverse of the part of its new time that is hardly any.
const HARDLY: i64 = 20;

/// Whether an instance has hardly any of its new time.
pub(in crate::whatif) fn is_hardly_any(old: i64, new: i64) -> bool {
    old.saturating_mul(HARDLY) < new
}

/// The ticks of the segments of the longest instance, by number of segments: the same in whatever order they are found.
#[derive(Clone, Debug, Default, Encode, Decode)]
pub(in crate::whatif) struct Patterns(BTreeMap<usize, Vec<i64>>);

impl Patterns {
    fn add(&mut self, pattern: Vec<i64>) {
        let size = |pattern: &Vec<i64>| pattern.iter().sum::<i64>();
        let longest = self.0.entry(pattern.len()).or_default();
        if (size(&pattern), &pattern) > (size(longest), &*longest) {
            *longest = pattern;
        }
    }

    pub(in crate::whatif) fn merge(mut self, other: Self) -> Self {
        other.0.into_values().for_each(|pattern| self.add(pattern));
        self
    }
}

/// What is selected at a location.
#[derive(Clone, Debug, Default)]
pub(in crate::whatif) struct Selected {
    /// Selected segments, by position.
    pub segments: Vec<Segment>,
    pub instances: u32,
    /// Number of instances after the filters by path, ranks, numbers and window.
    left: [u64; 4],
    /// Whether they have a segment.
    has_segments: bool,
}

impl Selected {
    /// Time of each instance, ticks.
    pub(in crate::whatif) fn times(&self) -> Vec<i64> {
        let mut times = vec![0; self.instances as usize];
        for segment in &self.segments {
            times[segment.instance as usize] += segment.ticks;
        }
        times
    }

    /// Makes each segment an instance.
    pub(in crate::whatif) fn take_apart(&mut self) {
        self.instances = self.segments.len() as u32;
        (0..).zip(&mut self.segments).for_each(|(number, segment)| segment.instance = number);
    }

    /// Shortens the segments that end at some positions, and keeps only these; `by` is sorted by position, ticks.
    pub(in crate::whatif) fn shorten(&mut self, by: &[(u32, i64)]) {
        let mut by = by.iter().peekable();
        self.segments.retain_mut(|segment| {
            while by.next_if(|&&(position, _)| position < segment.position).is_some() {}
            let Some(&(_, ticks)) = by.next_if(|&&(position, _)| position == segment.position) else { return false };
            let old = segment.ticks;
            segment.ticks = (old - ticks).max(old.min(0));
            segment.ticks != old
        });
    }

    /// The ticks of the segments of its longest instances.
    pub(in crate::whatif) fn patterns(&mut self) -> Patterns {
        self.segments.sort_by_key(|segment| (segment.instance, segment.position));
        let mut found = Patterns::default();
        for of in self.segments.chunk_by(|a, b| a.instance == b.instance) {
            found.add(of.iter().map(|segment| segment.ticks).collect());
        }
        self.segments.sort_unstable_by_key(|segment| segment.position);
        found
    }

    /// Sets the length of each instance: its segments in proportion, the rounding rest to the longest. The proportions of an
    /// instance with hardly any time say nothing: it gets its time in the proportions of another one, if one has as many segments.
    pub(in crate::whatif) fn set(&mut self, lengths: &[i64], patterns: &Patterns) {
        self.segments.sort_by_key(|segment| (segment.instance, segment.position));
        for of in self.segments.chunk_by_mut(|a, b| a.instance == b.instance) {
            let (old, new) = (of.iter().map(|segment| segment.ticks).sum::<i64>(), lengths[of[0].instance as usize]);
            let longest = of.iter().enumerate().rev().max_by_key(|(_, segment)| segment.ticks).map_or(0, |(i, _)| i);
            if is_hardly_any(old, new)
                && let Some(pattern) = patterns.0.get(&of.len())
                && let sum = pattern.iter().sum::<i64>()
                && sum > 0
            {
                let mut rest = new - old;
                for (segment, &ticks) in of.iter_mut().zip(pattern) {
                    let more = (i128::from(ticks) * i128::from(new - old) / i128::from(sum)) as i64;
                    segment.ticks += more;
                    rest -= more;
                }
                let most = (0..pattern.len()).rev().max_by_key(|&i| pattern[i]).unwrap_or(0);
                of[most].ticks += rest;
                continue;
            }
            if old == 0 {
                let last = of.len() - 1;
                of[last].ticks = new;
                continue;
            }
            let mut rest = new;
            for segment in &mut *of {
                segment.ticks = (i128::from(segment.ticks) * i128::from(new) / i128::from(old)) as i64;
                rest -= segment.ticks;
            }
            of[longest].ticks += rest;
        }
        self.segments.sort_unstable_by_key(|segment| segment.position);
    }
}

/// The selection by location, or the reason why it is empty.
pub(in crate::whatif) type Found = Result<Vec<Selected>, String>;

/// What selections select in a run, by selection and location, of those of this process of the analysis; an error for each
/// that selects nothing anywhere. Collective. `sees` gets the
/// segments of a location in order of position, each with the number of its selection, and returns whether to keep it.
/// It updates a state by location, which `begin` creates from the location's visits, and which is returned as well.
pub(in crate::whatif) fn select<S: Send>(
    trace: &Trace,
    graph: &Graph,
    (cut, shape): (&Cut, &Shape),
    selections: &[&Selection],
    begin: impl Fn(&[ProfileCell]) -> S + Sync,
    sees: impl Fn(&mut S, usize, &Segment) -> bool + Sync,
) -> crate::Result<(Vec<Found>, Vec<S>)> {
    let locations = trace.definitions.locations.len();
    let chosen = Chosen::new(trace, selections);
    let at = |location| {
        let location = LocationId::at(location);
        if !trace.owns(location) {
            return (vec![Selected::default(); selections.len()], begin(&[]));
        }
        let shard = trace.shard(location);
        let mut seen = begin(shard.profile.of(shard.local(location)));
        let found =
            chosen.at(trace, graph, (cut, shape), location, |selection, segment| sees(&mut seen, selection, segment));
        (found, seen)
    };
    let (of_locations, seen): (Vec<Vec<Selected>>, Vec<S>) = (0..locations).into_par_iter().map(at).unzip();
    let mut found: Vec<Vec<Selected>> = selections.iter().map(|_| Vec::with_capacity(locations)).collect();
    for of_location in of_locations {
        found.iter_mut().zip(of_location).for_each(|(found, of)| found.push(of));
    }
    let own = found.iter().map(|found| {
        let left = found.iter().fold([0; 4], |sum, of| std::array::from_fn(|i| sum[i] + of.left[i]));
        (left, found.iter().any(|of| of.has_segments))
    });
    let own: Vec<([u64; 4], bool)> = own.collect();
    let all = trace.exchange.allgather(own)?;
    let found = selections.iter().zip(found).enumerate().map(|(i, (selection, found))| {
        let why = match refusal(all.iter().map(|of| of[i].0)) {
            Some(why) => why,
            None if all.iter().all(|of| !of[i].1) => "its instances have no such part",
            None => return Ok(found),
        };
        Err(format!("{} selects nothing: {why}", selection.text))
    });
    Ok((found.collect(), seen))
}

/// Selections by call path: a bit for each of them, of which there are no more than lanes.
struct Chosen<'a> {
    selections: &'a [&'a Selection],
    /// Whether a call path begins an instance of any.
    begins: Vec<bool>,
    /// The selections whose instances it begins.
    roots: Vec<u32>,
    /// The selections for which its time counts within an instance.
    counts: Vec<u32>,
    /// The selections that include call paths below their instances.
    deep: u32,
}

/// A region that has been entered and not left.
struct Frame {
    /// Begin of its owners; those of the innermost region are the last.
    owners: u32,
    /// Segments that have ended.
    segments: u32,
}

/// A selected instance that encloses a region.
#[derive(Clone, Copy)]
struct Owner {
    selection: u32,
    /// Number of the instance.
    instance: u32,
    /// Whether the own time of the region counts.
    counts: bool,
}

/// The bits that are set.
fn bits(mut mask: u32) -> impl Iterator<Item = usize> {
    std::iter::from_fn(move || {
        let bit = mask.trailing_zeros() as usize;
        mask &= mask.wrapping_sub(1);
        (bit < u32::BITS as usize).then_some(bit)
    })
}

impl<'a> Chosen<'a> {
    fn new(trace: &Trace, selections: &'a [&'a Selection]) -> Self {
        let mask = |of: &dyn Fn(&Selection) -> bool| {
            let chosen = selections.iter().enumerate().filter(|(_, selection)| of(selection));
            chosen.fold(0u32, |mask, (bit, _)| mask | 1 << bit)
        };
        let callpaths = 0..trace.tree.len();
        let roots: Vec<u32> = callpaths.clone().map(|path| mask(&|of| of.roots.get(path) == Some(&true))).collect();
        Self {
            selections,
            begins: roots.iter().map(|&roots| roots != 0).collect(),
            roots,
            counts: callpaths.map(|path| mask(&|of| of.below.get(path) != Some(&false))).collect(),
            deep: mask(&|of| !of.below.is_empty()),
        }
    }

    /// What is selected at a location.
    fn at(
        &self,
        trace: &Trace,
        graph: &Graph,
        (cut, shape): (&Cut, &Shape),
        location: LocationId,
        mut sees: impl FnMut(usize, &Segment) -> bool,
    ) -> Vec<Selected> {
        let shard = trace.shard(location);
        let i = shard.local(location);
        let mut found = vec![Selected::default(); self.selections.len()];
        if !shard.profile.of(i).iter().any(|cell| self.begins[cell.callpath]) {
            return found;
        }
        let mut choosers: Vec<Chooser<'_>> = self.selections.iter().map(|of| Chooser::new(of, shard, i)).collect();
        let mut segments = graph.segments(shard, location);
        let mut changes = shape.of(location).iter().peekable();
        let (mut frames, mut owners): (Vec<Frame>, Vec<Owner>) = (Vec::new(), Vec::new());
        let (mut next, end) = (shard.event_offsets[i], shard.event_offsets[i + 1]);
        let is_cut = !cut.of(location).is_empty();
        let is_plain = !is_cut && shape.of(location).is_empty();
        while next < end {
            if frames.is_empty() {
                // No earlier event concerns any of them.
                let Some(enter) = shard.events.next_enter(next..end, &self.begins) else { break };
                next = enter;
            }
            let position = next;
            next += 1;
            let is_leave = shard.events.is_leave(position);
            let time = shard.events.time[position as usize];
            if let Some(frame) = frames.last_mut() {
                let number = frame.segments;
                frame.segments += 1;
                let is_part = |part: Option<Part>| match part {
                    None => true,
                    Some(Part::Nth(part)) => part == number,
                    Some(Part::Last) => is_leave,
                };
                let own = &owners[frame.owners as usize..];
                if own.iter().any(|owner| owner.counts) && !(is_cut && cut.encloses(location, position)) {
                    let (own_ticks, waits) = segments.before(position);
                    let measured = time - shard.events.time[position as usize - 1];
                    while changes.next_if(|change| change.position < position).is_some() {}
                    let changed = changes.next_if(|change| change.position == position);
                    let ticks = changed.map_or(own_ticks, |change| change.growth + measured);
                    for &Owner { selection, instance, .. } in own.iter().filter(|owner| owner.counts) {
                        let selection = selection as usize;
                        if is_part(self.selections[selection].part) {
                            let segment = Segment { position, instance, waits, ticks, measured };
                            let found = &mut found[selection];
                            found.has_segments = true;
                            if sees(selection, &segment) {
                                found.segments.push(segment);
                            }
                        }
                    }
                }
            }
            if is_leave {
                if let Some(frame) = frames.pop() {
                    owners.truncate(frame.owners as usize);
                }
                continue;
            }
            let callpath = shard.events.callpath(position);
            if is_plain && next < end && shard.events.is_leave(next) && (frames.is_empty() || self.deep == 0) {
                // A single segment, of an instance that encloses nothing and is part of no other.
                let leave = next;
                next += 1;
                let mut segment: Option<Segment> = None;
                for selection in bits(self.roots[callpath]) {
                    if !choosers[selection].takes(callpath, time) {
                        continue;
                    }
                    let found = &mut found[selection];
                    let instance = found.instances;
                    found.instances += 1;
                    let is_part = !matches!(self.selections[selection].part, Some(Part::Nth(1..)));
                    if is_part && self.counts[callpath] >> selection & 1 == 1 {
                        let of = segment.get_or_insert_with(|| {
                            let (ticks, waits) = segments.before(leave);
                            let measured = shard.events.time[leave as usize] - time;
                            Segment { position: leave, instance, waits, ticks, measured }
                        });
                        let segment = Segment { instance, ..*of };
                        found.has_segments = true;
                        if sees(selection, &segment) {
                            found.segments.push(segment);
                        }
                    }
                }
                continue;
            }
            let around = frames.last().map_or(0, |frame| frame.owners as usize)..owners.len();
            frames.push(Frame { owners: owners.len() as u32, segments: 0 });
            let counts = self.counts[callpath];
            let mut within = 0;
            for outer in around {
                let owner = owners[outer];
                if self.deep >> owner.selection & 1 == 1 {
                    within |= 1 << owner.selection;
                    owners.push(Owner { counts: counts >> owner.selection & 1 == 1, ..owner });
                }
            }
            for selection in bits(self.roots[callpath] & !within) {
                if choosers[selection].takes(callpath, time) && !(is_cut && cut.has(location, position)) {
                    let counts = counts >> selection & 1 == 1;
                    let instance = found[selection].instances;
                    found[selection].instances += 1;
                    owners.push(Owner { selection: selection as u32, instance, counts });
                }
            }
        }
        for (found, chooser) in found.iter_mut().zip(choosers) {
            found.left = chooser.left;
        }
        found
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn segments_change_in_proportion_and_the_rest_is_the_longest_ones() {
        let segment = |position, ticks| Segment { position, instance: 0, waits: false, ticks, measured: ticks };
        let mut selected = Selected {
            segments: vec![segment(1, 1), segment(2, 5), segment(3, 1)],
            instances: 1,
            ..Selected::default()
        };
        selected.set(&[10], &Patterns::default());
        assert_eq!(selected.segments.iter().map(|segment| segment.ticks).collect::<Vec<_>>(), [1, 8, 1]);
        selected.segments.iter_mut().for_each(|segment| segment.ticks = 0);
        selected.set(&[4], &Patterns::default());
        assert_eq!(selected.segments.iter().map(|segment| segment.ticks).collect::<Vec<_>>(), [0, 0, 4]);
    }

    #[test]
    fn segments_become_shorter_by_the_excess_of_their_calls() {
        let segment = |position, ticks| Segment { position, instance: 0, waits: false, ticks, measured: ticks };
        let mut selected =
            Selected { segments: vec![segment(1, 5), segment(4, 5), segment(6, 2)], ..Selected::default() };
        selected.shorten(&[(0, 1), (1, 2), (5, 9), (6, 3)]);
        let left: Vec<(u32, i64)> = selected.segments.iter().map(|segment| (segment.position, segment.ticks)).collect();
        assert_eq!(left, [(1, 3), (6, 0)]);
    }

    #[test]
    fn bits_are_numbers() {
        assert_eq!(bits(0b1001 | 1 << 31).collect::<Vec<_>>(), [0, 3, 31]);
        assert_eq!(bits(0).count(), 0);
    }
}
