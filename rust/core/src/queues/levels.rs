//! Levels: how many of something there are at a time. Their maximum, their mean over the run, and their course.

use bitcode::{Decode, Encode};

use crate::ids::LocationId;

/// What there can be some of.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Encode, Decode)]
pub enum Quantity {
    /// Messages that have arrived, and whose receive is still to be posted.
    Unexpected,
    /// Bytes of those of them that are eager.
    UnexpectedData,
    /// Posted receives whose message is still to come.
    Posted,
    /// Sends that have begun, and are not completed.
    SendRequests,
    /// Receives that have begun, and are not completed.
    ReceiveRequests,
    /// These, and non-blocking collective and one-sided operations.
    Requests,
    /// Bytes that were sent, and whose receive is not completed.
    InFlight,
}

impl Quantity {
    /// All of them.
    pub const ALL: [Self; 7] = [
        Self::Unexpected,
        Self::UnexpectedData,
        Self::Posted,
        Self::SendRequests,
        Self::ReceiveRequests,
        Self::Requests,
        Self::InFlight,
    ];

    /// Unique name.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::Unexpected => "mpi_unexpected_queue",
            Self::UnexpectedData => "mpi_unexpected_data",
            Self::Posted => "mpi_posted_queue",
            Self::SendRequests => "mpi_send_requests",
            Self::ReceiveRequests => "mpi_receive_requests",
            Self::Requests => "mpi_requests",
            Self::InFlight => "mpi_bytes_in_flight",
        }
    }

    /// What it counts.
    #[must_use]
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
    /// The most there were.
    pub maximum: i64,
    /// When they were reached first, ticks.
    pub time: i64,
    /// Sum over time: level times ticks.
    pub integral: i128,
    /// Sum over time, and the most there were, in each bin.
    pub bins: Vec<(i128, i64)>,
}

/// What a level rises or falls by, and when.
pub(super) type Change = (i64, u64);

/// Sorts changes by time. Most of them come so, or nearly so.
pub(super) fn sort_by_time<T: Copy>(changes: &mut [T], time: impl Fn(&T) -> i64) {
    // A change moves by few places, or they are not nearly sorted.
    const PLACES: usize = 8;
    let mut left = PLACES * changes.len();
    for i in 1..changes.len() {
        let change = changes[i];
        let mut at = i;
        while at > 0 && time(&changes[at - 1]) > time(&change) {
            changes[at] = changes[at - 1];
            at -= 1;
        }
        changes[at] = change;
        match left.checked_sub(i - at) {
            Some(rest) => left = rest,
            None => return changes.sort_unstable_by_key(time),
        }
    }
}

/// Follows a level through a part of the run.
pub(super) struct Course {
    level: Level,
    /// First and last tick of the run.
    run: (i64, i64),
    now: i64,
    since: i64,
}

impl Course {
    /// Begins at a time with a level.
    pub(super) fn new(
        quantity: Quantity,
        location: LocationId,
        run: (i64, i64),
        bins: usize,
        (since, now): (i64, i64),
    ) -> Self {
        let level = Level { quantity, location, maximum: 0, time: run.0, integral: 0, bins: vec![(0, 0); bins] };
        Self { level, run, now, since }
    }

    /// Goes on to a time at which the level changes.
    #[inline]
    fn change(&mut self, time: i64, by: i64) {
        let time = time.clamp(self.since, self.run.1.max(self.since));
        self.level.add(self.now, self.since, time, self.run);
        self.since = time;
        self.now = self.now.saturating_add(by);
    }

    /// Follows changes, both sides in the order of time, up to a time.
    pub(super) fn follow(
        mut self,
        rises: impl Iterator<Item = Change>,
        falls: impl Iterator<Item = Change>,
        until: i64,
    ) -> Level {
        let size = |by: u64| i64::try_from(by).unwrap_or(i64::MAX);
        let mut falls = falls.peekable();
        for (time, by) in rises {
            // What ends when something else begins is not there at the same time.
            while let Some((time, by)) = falls.next_if(|fall| fall.0 <= time) {
                self.change(time, -size(by));
            }
            self.change(time, size(by));
            if self.now > self.level.maximum {
                (self.level.maximum, self.level.time) = (self.now, self.since);
            }
        }
        for (time, by) in falls {
            self.change(time, -size(by));
        }
        self.level.add(self.now, self.since, until, self.run);
        self.level
    }
}

/// The course of a level through the run, from first to last tick; `None` if it never changes.
pub(super) fn follow(
    quantity: Quantity,
    location: LocationId,
    (rises, falls): (impl ExactSizeIterator<Item = Change>, impl ExactSizeIterator<Item = Change>),
    run: (i64, i64),
    bins: usize,
) -> Option<Level> {
    if rises.len() + falls.len() == 0 {
        return None;
    }
    Some(Course::new(quantity, location, run, bins, (run.0, 0)).follow(rises, falls, run.1))
}

impl Level {
    fn add(&mut self, level: i64, from: i64, to: i64, (first, last): (i64, i64)) {
        if level == 0 || from >= to {
            return;
        }
        self.integral += i128::from(level) * i128::from(to - from);
        if self.bins.is_empty() {
            return;
        }
        let bins = self.bins.len() as i128;
        let length = i128::from(last - first).max(1);
        let bound = |bin: i128| first + (length * bin / bins) as i64;
        let mut bin = i128::from(from - first) * bins / length;
        while bin < bins && bound(bin) < to {
            let overlap = to.min(bound(bin + 1)) - from.max(bound(bin));
            if overlap > 0 {
                let (integral, maximum) = &mut self.bins[bin as usize];
                *integral += i128::from(level) * i128::from(overlap);
                *maximum = (*maximum).max(level);
            }
            bin += 1;
        }
    }

    /// Puts the courses of two parts of the run together.
    pub(super) fn join(mut self, other: &Self) -> Self {
        if (other.maximum, self.time) > (self.maximum, other.time) {
            (self.maximum, self.time) = (other.maximum, other.time);
        }
        self.integral += other.integral;
        for (own, (integral, maximum)) in self.bins.iter_mut().zip(&other.bins) {
            *own = (own.0 + integral, own.1.max(*maximum));
        }
        self
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn level(rises: &[Change], falls: &[Change], run: (i64, i64), bins: usize) -> Option<Level> {
        let changes = (rises.iter().copied(), falls.iter().copied());
        follow(Quantity::Unexpected, LocationId::new(0), changes, run, bins)
    }

    #[test]
    fn a_level_is_followed_through_its_bins() {
        let level_of = |bins| level(&[(10, 1), (20, 1)], &[(25, 1), (40, 1)], (0, 50), bins).unwrap();
        assert_eq!((level_of(5).maximum, level_of(5).time, level_of(5).integral), (2, 20, 35));
        assert_eq!(level_of(5).bins, [(0, 0), (10, 1), (15, 2), (10, 1), (0, 0)]);
        assert_eq!(level(&[], &[], (0, 50), 0), None);
    }

    #[test]
    fn what_ends_when_something_begins_is_not_there_with_it() {
        let level = level(&[(1, 1), (3, 1), (3, 1)], &[(3, 1), (4, 1), (4, 1)], (0, 5), 0).unwrap();
        assert_eq!((level.maximum, level.time, level.integral), (2, 3, 4));
    }

    #[test]
    fn bins_hold_all_of_a_level_whatever_their_number() {
        for bins in 1..40 {
            let level = level(&[(3, 2), (17, 5)], &[(29, 7)], (1, 31), bins).unwrap();
            assert_eq!(level.bins.iter().map(|bin| bin.0).sum::<i128>(), level.integral, "{bins}");
            assert_eq!(level.bins.iter().map(|bin| bin.1).max(), Some(7), "{bins}");
        }
    }

    proptest! {
        #[test]
        fn changes_are_sorted_by_time(mut changes in prop::collection::vec(0i64..50, 0..60)) {
            let mut sorted = changes.clone();
            sorted.sort_unstable();
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
            let whole = level(&rises, &falls, (0, 40), bins).unwrap();
            let part = |from: i64, to: i64| {
                let before = |changes: &[Change]| changes.iter().filter(|c| c.0 < from).map(|c| c.1 as i64).sum::<i64>();
                let within = |changes: &[Change]| -> Vec<Change> {
                    changes.iter().copied().filter(|change| (from..to).contains(&change.0)).collect()
                };
                let at = (from, before(&rises) - before(&falls));
                let course = Course::new(whole.quantity, whole.location, (0, 40), bins, at);
                course.follow(within(&rises).into_iter(), within(&falls).into_iter(), to.min(40))
            };
            let (first, second) = (part(0, cut), part(cut, 41));
            prop_assert_eq!(&first.clone().join(&second), &whole);
            prop_assert_eq!(second.join(&first), whole);
        }
    }
}
