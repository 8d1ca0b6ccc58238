//! Levels: the number of items at a time, with its maximum, its mean over the run, and its values over time.

use bitcode::{Decode, Encode};

use crate::ids::LocationId;

named! {
    /// The quantities of which levels are computed.
    #[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Encode, Decode)]
    pub enum Quantity {
        /// Messages that have arrived before their receive is posted.
        Unexpected = "mpi_unexpected_queue",
        /// Bytes of the eager ones among them.
        UnexpectedData = "mpi_unexpected_data",
        /// Posted receives whose message has not arrived.
        Posted = "mpi_posted_queue",
        /// Sends that have begun and are not completed.
        SendRequests = "mpi_send_requests",
        /// Receives that have begun and are not completed.
        ReceiveRequests = "mpi_receive_requests",
        /// These, and non-blocking collective and one-sided operations.
        Requests = "mpi_requests",
        /// Bytes that were sent and whose receive is not completed.
        InFlight = "mpi_bytes_in_flight",
    }
}

impl Quantity {
    /// What it counts.
    pub fn unit(self) -> &'static str {
        match self {
            Self::Unexpected => "messages",
            Self::UnexpectedData | Self::InFlight => "bytes",
            Self::Posted | Self::SendRequests | Self::ReceiveRequests | Self::Requests => "requests",
        }
    }
}

/// A level at a location, or of the whole run.
#[derive(Clone, Debug, PartialEq, Eq, Encode, Decode)]
pub struct Level {
    /// What it counts.
    pub quantity: Quantity,
    /// The master thread of the process, or none of the run.
    pub location: LocationId,
    /// The maximum.
    pub maximum: i64,
    /// When the maximum was first reached, ticks.
    pub time: i64,
    /// Sum over time: level times ticks.
    pub integral: i128,
    /// Sum over time, and maximum, in each bin.
    pub bins: Vec<(i128, i64)>,
    /// Where it is not zero: begin and end, ticks, and the level, in order of time; empty unless requested.
    pub steps: Option<Vec<(i64, i64, i64)>>,
}

/// How much of a level's course to keep.
#[derive(Clone, Copy, Debug)]
pub(super) struct Detail<'a> {
    /// The edges of bins, ticks.
    pub(super) edges: &'a [i64],
    /// Whether to keep every step.
    pub(super) has_steps: bool,
}

/// Time and size of a change of a level.
pub(super) type Change = (i64, u64);

/// Sorts changes by time; usually they are sorted, or nearly so.
pub(super) fn sort_by_time<T: Copy>(changes: &mut Vec<T>, time: impl Fn(&T) -> i64) {
    if !merge(changes, &time) {
        distribute(changes, &time);
    }
}

/// Sorts block by block, and merges each with the end of those before it; `false` as soon as that takes too long.
fn merge<T: Copy>(changes: &mut [T], time: impl Fn(&T) -> i64) -> bool {
    // Besides a block, what a sort needs fits on the stack.
    const BLOCK: usize = 128;
    // If a block overlaps many others, a radix sort is faster; a few blocks are too small a sample.
    const OVERLAP: usize = 2 * BLOCK;
    const MOST: usize = 16 * OVERLAP;
    let mut left = MOST;
    let mut sorted = 0;
    while sorted < changes.len() {
        let end = changes.len().min(sorted + BLOCK);
        let block = &mut changes[sorted..end];
        if !insert(block, &time) {
            block.sort_by_key(&time);
        }
        let first = time(&changes[sorted]);
        if sorted > 0 && time(&changes[sorted - 1]) > first {
            let from = changes[..sorted].partition_point(|change| time(change) <= first);
            match (left + OVERLAP).min(MOST).checked_sub(sorted - from) {
                Some(rest) => left = rest,
                None => return false,
            }
            // Two runs: a stable sort merges them.
            changes[from..end].sort_by_key(&time);
        }
        sorted = end;
    }
    true
}

/// Insertion sort for nearly sorted changes; `false` as soon as it takes too long.
fn insert<T: Copy>(changes: &mut [T], time: impl Fn(&T) -> i64) -> bool {
    // If a change has to move further, the changes are not nearly sorted.
    const PLACES: usize = 4;
    let mut left = 16 * PLACES;
    for i in 1..changes.len() {
        let change = changes[i];
        let mut at = i;
        while at > 0 && time(&changes[at - 1]) > time(&change) {
            changes[at] = changes[at - 1];
            at -= 1;
        }
        changes[at] = change;
        match (left + PLACES).checked_sub(i - at) {
            Some(rest) => left = rest,
            None => return false,
        }
    }
    true
}

/// Radix sort by time, least significant digit first.
fn distribute<T: Copy>(changes: &mut Vec<T>, time: impl Fn(&T) -> i64) {
    const BITS: u32 = 11;
    const DIGITS: usize = 1 << BITS;
    let (first, last) =
        changes.iter().map(&time).fold((i64::MAX, i64::MIN), |(first, last), now| (first.min(now), last.max(now)));
    let since = |change: &T| time(change).wrapping_sub(first) as u64;
    let digits = (u64::BITS - (last.wrapping_sub(first) as u64).leading_zeros()).div_ceil(BITS);
    // The table of a digit costs as much as many changes do.
    if u32::try_from(changes.len()).is_err()
        || digits as usize * DIGITS > changes.len() * changes.len().checked_ilog2().unwrap_or(0) as usize
    {
        return changes.sort_by_key(time);
    }
    let mut sorted = changes.clone();
    for shift in (0..digits).map(|digit| digit * BITS) {
        let digit = |change: &T| (since(change) >> shift) as usize % DIGITS;
        let mut next = [0u32; DIGITS];
        for change in &*changes {
            next[digit(change)] += 1;
        }
        let mut before = 0;
        for next in &mut next {
            before += std::mem::replace(next, before);
        }
        for change in &*changes {
            let at = &mut next[digit(change)];
            sorted[*at as usize] = *change;
            *at += 1;
        }
        std::mem::swap(changes, &mut sorted);
    }
}

/// Computes a level over a part of the run.
pub(super) struct Course<'a> {
    level: Level,
    /// The last tick of the run.
    last: i64,
    now: i64,
    since: i64,
    detail: Detail<'a>,
    /// The current bin.
    bin: usize,
}

impl<'a> Course<'a> {
    /// Begins at a time with a level.
    pub(super) fn new(
        quantity: Quantity,
        location: LocationId,
        run: (i64, i64),
        detail: Detail<'a>,
        (since, now): (i64, i64),
    ) -> Self {
        let (bins, steps) = (vec![(0, 0); detail.edges.len().saturating_sub(1)], detail.has_steps.then(Vec::new));
        let level = Level { quantity, location, maximum: 0, time: run.0, integral: 0, bins, steps };
        Self { level, last: run.1, now, since, detail, bin: 0 }
    }

    /// Adds a change; times must not decrease.
    #[inline]
    pub(super) fn change(&mut self, time: i64, by: i64) {
        if time > self.since {
            self.go_on(time.min(self.last));
        }
        self.now = self.now.saturating_add(by);
    }

    /// Advances to a time; changes of one time make one step.
    #[inline]
    fn go_on(&mut self, time: i64) {
        if self.now > self.level.maximum {
            (self.level.maximum, self.level.time) = (self.now, self.since);
        }
        if time > self.since {
            if self.now != 0 {
                // The product of two 64-bit numbers fits.
                self.level.integral += i128::from(self.now).wrapping_mul(i128::from(time - self.since));
                if !self.detail.edges.is_empty() || self.detail.has_steps {
                    self.spread(time);
                }
            }
            self.since = time;
        }
    }

    /// Ends at a time.
    pub(super) fn end(mut self, until: i64) -> Level {
        self.go_on(until);
        self.level
    }

    /// Adds the level up to a time to its bins and steps.
    #[cold]
    fn spread(&mut self, to: i64) {
        let (from, level) = (self.since, self.now);
        while let Some(&[begin, end]) = self.detail.edges.get(self.bin..self.bin + 2) {
            let overlap = to.min(end) - from.max(begin);
            if overlap > 0 {
                let (integral, maximum) = &mut self.level.bins[self.bin];
                *integral += i128::from(level) * i128::from(overlap);
                *maximum = (*maximum).max(level);
            }
            if to < end {
                break;
            }
            self.bin += 1;
        }
        if let Some(steps) = &mut self.level.steps {
            steps.push((from, to, level));
        }
    }
}

/// A size as the change of a level.
pub(super) fn size(by: u64) -> i64 {
    i64::try_from(by).unwrap_or(i64::MAX)
}

impl Level {
    /// Joins the levels of two consecutive parts of the run.
    pub(super) fn join(mut self, other: &Self) -> Self {
        if (other.maximum, self.time) > (self.maximum, other.time) {
            (self.maximum, self.time) = (other.maximum, other.time);
        }
        self.integral += other.integral;
        for (own, (integral, maximum)) in self.bins.iter_mut().zip(&other.bins) {
            *own = (own.0 + integral, own.1.max(*maximum));
        }
        if let (Some(own), Some(steps)) = (&mut self.steps, &other.steps) {
            own.extend(steps);
            own.sort_unstable();
        }
        self
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::super::options::Bins;
    use super::*;

    /// Rises and falls in order of time.
    fn changes(rises: &[Change], falls: &[Change]) -> Vec<(i64, i64)> {
        let mut changes: Vec<(i64, i64)> = rises.iter().map(|&(time, by)| (time, size(by))).collect();
        changes.extend(falls.iter().map(|&(time, by)| (time, -size(by))));
        changes.sort_by_key(|change| change.0);
        changes
    }

    fn level(rises: &[Change], falls: &[Change], run: (i64, i64), bins: usize) -> Level {
        cut(rises, falls, run, &Bins::Number(bins).edges(run, 1))
    }

    fn cut(rises: &[Change], falls: &[Change], run: (i64, i64), edges: &[i64]) -> Level {
        let detail = Detail { edges, has_steps: edges.len() == 2 };
        let mut course = Course::new(Quantity::Unexpected, LocationId::new(0), run, detail, (run.0, 0));
        for (time, by) in changes(rises, falls) {
            course.change(time, by);
        }
        course.end(run.1)
    }

    #[test]
    fn a_level_is_followed_through_its_bins() {
        let level_of = |bins| level(&[(10, 1), (20, 1)], &[(25, 1), (40, 1)], (0, 50), bins);
        assert_eq!((level_of(5).maximum, level_of(5).time, level_of(5).integral), (2, 20, 35));
        assert_eq!(level_of(5).bins, [(0, 0), (10, 1), (15, 2), (10, 1), (0, 0)]);
    }

    #[test]
    fn steps_say_what_a_level_is_from_when_to_when() {
        let level = level(&[(10, 1), (20, 2)], &[(25, 3), (40, 0)], (0, 50), 1);
        assert_eq!(level.steps, Some(vec![(10, 20, 1), (20, 25, 3)]));
    }

    #[test]
    fn bins_may_have_any_edges() {
        let of = |edges: &[i64]| cut(&[(10, 1), (20, 1)], &[(25, 1), (40, 1)], (0, 50), edges).bins;
        assert_eq!(of(&[0, 12, 50]), [(2, 1), (33, 2)]);
        assert_eq!(of(&[15, 22, 24]), [(9, 2), (4, 2)]);
        assert_eq!(of(&[30, 30, 60]), [(0, 0), (10, 1)]);
        assert_eq!(of(&[45, 50]), [(0, 0)]);
        assert_eq!(Bins::Edges(vec![0.0, 1.25, 9.0]).edges((100, 150), 10), [100, 113, 150]);
    }

    #[test]
    fn what_ends_when_something_begins_is_not_there_with_it() {
        let level = level(&[(1, 1), (3, 1), (3, 1)], &[(3, 1), (4, 1), (4, 1)], (0, 5), 0);
        assert_eq!((level.maximum, level.time, level.integral), (2, 3, 4));
    }

    #[test]
    fn bins_hold_all_of_a_level_whatever_their_number() {
        for bins in 1..40 {
            let level = level(&[(3, 2), (17, 5)], &[(29, 7)], (1, 31), bins);
            assert_eq!(level.bins.iter().map(|bin| bin.0).sum::<i128>(), level.integral, "{bins}");
            assert_eq!(level.bins.iter().map(|bin| bin.1).max(), Some(7), "{bins}");
        }
    }

    proptest! {
        #[test]
        fn changes_that_move_by_few_or_many_places_are_sorted_by_time(
            length in 0usize..3000,
            places in prop::sample::select(vec![1i64, 20, 300, 1000, 3000]),
            mixed in 1i64..1000,
        ) {
            let mut changes: Vec<(i64, usize)> =
                (0..length).map(|i| (i as i64 + (i as i64 * mixed * 7919) % places, i)).collect();
            let mut sorted = changes.clone();
            sorted.sort_by_key(|change| change.0);
            sort_by_time(&mut changes, |change| change.0);
            prop_assert_eq!(changes, sorted);
        }

        #[test]
        fn changes_are_sorted_by_time(mut changes in prop::collection::vec(0i64..50, 0..60)) {
            let mut sorted = changes.clone();
            sorted.sort_unstable();
            sort_by_time(&mut changes, |time| *time);
            prop_assert_eq!(changes, sorted);
        }

        #[test]
        fn changes_in_disorder_are_sorted_by_time(
            changes in prop::collection::vec(any::<i64>(), 0..1600),
            few in prop::sample::select(vec![1, 7, 100_000, i64::MAX]),
        ) {
            let mut changes: Vec<i64> = changes.into_iter().map(|time| time % few).collect();
            let mut sorted = changes.clone();
            sorted.sort_unstable();
            let mut distributed = changes.clone();
            distribute(&mut distributed, |time| *time);
            prop_assert_eq!(&distributed, &sorted);
            changes.reverse();
            sort_by_time(&mut changes, |time| *time);
            prop_assert_eq!(changes, sorted);
        }

        #[test]
        fn the_parts_of_a_run_make_the_whole(
            spans in prop::collection::vec((0i64..30, 1i64..10, 1u64..4), 1..12),
            cut in 1i64..40,
            bins in 0usize..5,
        ) {
            let mut rises: Vec<Change> = spans.iter().map(|&(begin, _, by)| (begin, by)).collect();
            let mut falls: Vec<Change> = spans.iter().map(|&(begin, length, by)| (begin + length, by)).collect();
            rises.sort_unstable();
            falls.sort_unstable();
            let whole = Level { steps: None, ..level(&rises, &falls, (0, 40), bins) };
            let changes = changes(&rises, &falls);
            let part = |from: i64, to: i64| {
                let before = changes.iter().filter(|change| change.0 < from).map(|change| change.1).sum();
                let edges = Bins::Number(bins).edges((0, 40), 1);
                let detail = Detail { edges: &edges, has_steps: false };
                let mut course = Course::new(whole.quantity, whole.location, (0, 40), detail, (from, before));
                for &(time, by) in changes.iter().filter(|change| (from..to).contains(&change.0)) {
                    course.change(time, by);
                }
                course.end(to.min(40))
            };
            let (first, second) = (part(0, cut), part(cut, 41));
            prop_assert_eq!(&first.clone().join(&second), &whole);
            prop_assert_eq!(second.join(&first), whole);
        }
    }
}
