//! A counter over time: its samples, and its cumulative sums.

use std::borrow::Cow;

use super::pauses::Pauses;
use crate::ids::CallPathId;
use crate::trace::counters::{Counter, Kind, Number, Sums};

/// A sample, and the sum from the first sample to it.
#[derive(Clone, Copy, Debug)]
struct Point {
    time: i64,
    value: Number,
    /// Whether it is a sample, rather than the end of the last one's validity.
    is_sample: bool,
    /// Growth of a total, sum of changes, integral of a level over ticks (twice that of one known at its samples).
    sum: Number,
}

/// The samples of a counter at one place, in order of time.
#[derive(Clone, Debug, Default)]
pub(crate) struct Series {
    points: Vec<Point>,
    kind: Kind,
    is_trusted: bool,
}

impl Series {
    /// An empty series of a counter whose values are of this kind.
    pub(super) fn new(counter: &Counter, kind: Kind) -> Self {
        Self { points: Vec::new(), kind, is_trusted: counter.is_trusted() }
    }

    /// Adds the next sample; if its time is earlier than the previous one, it gets that time.
    pub(super) fn push(&mut self, time: i64, value: Number) {
        let Some(&last) = self.points.last() else {
            let sum = if self.is_of_moments() { value } else { Number::default() };
            return self.points.push(Point { time, value, is_sample: true, sum });
        };
        let time = time.max(last.time);
        let span = time - last.time;
        let step = match self.kind {
            Kind::Total => {
                let growth = value.minus(last.value);
                if self.is_trusted && growth.value() < 0.0 { Number::default() } else { growth }
            }
            Kind::Change { next: true, .. } => last.value,
            Kind::Change { .. } => value,
            Kind::Level { next: true } => last.value.times(span),
            Kind::Level { next: false } => value.times(span),
            Kind::Samples => value.plus(last.value).times(span),
        };
        self.points.push(Point { time, value, is_sample: true, sum: last.sum.plus(step) });
    }

    /// Extends the validity of a level's last sample to a time.
    pub(super) fn hold(&mut self, until: i64) {
        if let Some(&last) = self.points.last().filter(|last| last.time < until)
            && self.kind == (Kind::Level { next: true })
        {
            let sum = last.sum.plus(last.value.times(until - last.time));
            self.points.push(Point { time: until, is_sample: false, sum, ..last });
        }
    }

    /// The counter on the time axis of a location with pauses.
    pub(super) fn in_time_of(&self, pauses: &Pauses) -> Cow<'_, Self> {
        if pauses.is_empty() {
            return Cow::Borrowed(self);
        }
        let mut series = Self { points: Vec::with_capacity(self.points.len()), ..*self };
        for point in &self.points {
            let time = pauses.running(point.time);
            if point.is_sample { series.push(time, point.value) } else { series.hold(time) }
        }
        Cow::Owned(series)
    }

    /// Whether changes happen at samples, not between them.
    fn is_of_moments(&self) -> bool {
        self.kind == Kind::Change { next: false, point: true }
    }

    /// The sum from the first sample to a time: linear between two samples, constant beyond.
    pub(super) fn at(&self, time: i64) -> Number {
        if self.is_of_moments() {
            let before = self.points.partition_point(|point| point.time < time).checked_sub(1);
            return before.map_or_else(Number::default, |before| self.points[before].sum);
        }
        let Some(before) = self.points.partition_point(|point| point.time <= time).checked_sub(1) else {
            return Number::default();
        };
        let from = self.points[before];
        match self.points.get(before + 1) {
            Some(to) if time > from.time => {
                let step = to.sum.minus(from.sum);
                from.sum.plus(step.share(i128::from(time - from.time), i128::from(to.time - from.time)))
            }
            _ => from.sum,
        }
    }

    /// Ticks up to a time in which a level is known.
    fn known(&self, time: i64) -> i64 {
        match (self.kind, self.points.first(), self.points.last()) {
            (Kind::Level { .. } | Kind::Samples, Some(first), Some(last)) => {
                time.clamp(first.time, last.time) - first.time
            }
            _ => 0,
        }
    }

    /// Divides what lies in some stretches of time over what runs there: hands what the `part`-th of `parts` equal
    /// parts comes to in each stretch to `book`, with its call path. Stretches follow each other without gaps; a sample
    /// belongs to the one that begins at its time or before. Pauses get nothing.
    pub(super) fn divide(
        &self,
        (part, parts): (usize, usize),
        pauses: &Pauses,
        stretches: impl Iterator<Item = (CallPathId, i64, i64)>,
        mut book: impl FnMut(CallPathId, Sums),
    ) {
        let running = self.in_time_of(pauses);
        let known = |time| Number::from_integer(running.known(time)).part(part, parts).integer as i64;
        for (callpath, from, until) in stretches {
            let (from, until) = (pauses.running(from), pauses.running(until));
            if from == until {
                continue;
            }
            let mut sums = Sums { ticks: known(until) - known(from), ..Sums::default() };
            let amount = running.at(until).part(part, parts).minus(running.at(from).part(part, parts));
            match self.kind {
                Kind::Samples => sums.area = amount,
                _ => sums.amount = amount,
            }
            running.look(from, until, &mut sums);
            if part > 0 {
                (sums.samples, sums.sampled) = (0, Number::default());
            }
            if sums != Sums::default() {
                book(callpath, sums);
            }
        }
    }

    /// Adds the number of samples of a stretch, and the range of values in it.
    fn look(&self, from: i64, until: i64, sums: &mut Sums) {
        let own = |point: &&Point| from <= point.time && point.time < until;
        let first = self.points.partition_point(|point| point.time < from);
        let is_level = matches!(self.kind, Kind::Level { .. });
        for sample in self.points[first..].iter().take_while(own).filter(|point| point.is_sample) {
            sums.samples += 1;
            sums.sampled += sample.value;
            if !is_level {
                sums.extend_range(sample.value);
            }
        }
        if let Kind::Level { next } = self.kind {
            // A level is valid from sample to sample, so the first interval may begin before the stretch.
            for pair in self.points[first.saturating_sub(1)..].windows(2).take_while(|pair| pair[0].time < until) {
                if pair[0].time < pair[1].time && from < pair[1].time {
                    sums.extend_range(if next { pair[0].value } else { pair[1].value });
                }
            }
        }
    }

    /// The change between two times; for a level, its integral over ticks.
    pub(super) fn change(&self, from: i64, until: i64) -> f64 {
        self.change_of((0, 1), from, until)
    }

    /// The same for one of several equal parts.
    pub(super) fn change_of(&self, (part, parts): (usize, usize), from: i64, until: i64) -> f64 {
        let doubled = if self.kind == Kind::Samples { 0.5 } else { 1.0 };
        self.at(until).part(part, parts).minus(self.at(from).part(part, parts)).value() * doubled
    }

    /// The share of one of several equal parts in the ticks between two times in which a level is known.
    pub(super) fn known_of(&self, (part, parts): (usize, usize), from: i64, until: i64) -> i64 {
        let known = |time| Number::from_integer(self.known(time)).part(part, parts).integer as i64;
        known(until) - known(from)
    }

    /// Minimum and maximum of a level between two times; (inf, -inf) if it is unknown.
    pub(super) fn range(&self, from: i64, until: i64) -> (f64, f64) {
        let mut sums = Sums::default();
        if matches!(self.kind, Kind::Level { .. } | Kind::Samples) && from < until {
            self.look(from, until, &mut sums);
        }
        if self.kind == Kind::Samples && from < until {
            // Between two samples, the level is their mean.
            let first = self.points.partition_point(|point| point.time <= from).saturating_sub(1);
            for pair in self.points[first..].windows(2).take_while(|pair| pair[0].time < until) {
                let mean = pair[0].value.plus(pair[1].value).value() / 2.0;
                sums.range = (sums.range.0.min(mean), sums.range.1.max(mean));
            }
        }
        sums.range
    }

    /// The counter over time, in stretches from sample to sample of at least `shortest` ticks (except the last one):
    /// begin, end, and the mean of a level or the growth per tick.
    pub(crate) fn course(&self, shortest: i64) -> impl Iterator<Item = (i64, i64, f64)> + '_ {
        let last = self.points.len().saturating_sub(1);
        let mut from = self.points.first().map_or(0, |point| point.time);
        self.points.iter().enumerate().filter_map(move |(index, point)| {
            let least = if index == last { 1 } else { shortest.max(1) };
            (point.time - from >= least).then(|| {
                let begin = std::mem::replace(&mut from, point.time);
                (begin, point.time, self.change(begin, point.time) / (point.time - begin) as f64)
            })
        })
    }

    /// Times of the first and the last sample, or until when that holds.
    pub(super) fn span(&self) -> Option<(i64, i64)> {
        Some((self.points.first()?.time, self.points.last()?.time))
    }

    /// Whether anything is known of the time between two times.
    pub(super) fn covers(&self, from: i64, until: i64) -> bool {
        match (self.points.first(), self.points.last()) {
            (Some(first), Some(last)) => first.time <= until && from <= last.time,
            _ => false,
        }
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;
    use rustc_hash::FxHashMap;

    use super::*;

    fn series(kind: Kind, samples: &[(i64, i64)]) -> Series {
        let mut series = Series { kind, ..Series::default() };
        for &(time, value) in samples {
            series.push(time, Number::from_integer(value));
        }
        series
    }

    /// What call paths get of the parts of all threads.
    fn divided(series: &Series, threads: &[&[(CallPathId, i64, i64)]]) -> FxHashMap<CallPathId, Sums> {
        let mut found: FxHashMap<CallPathId, Sums> = FxHashMap::default();
        for (part, stretches) in threads.iter().enumerate() {
            let each = stretches.iter().copied();
            series.divide((part, threads.len()), &Pauses::default(), each, |callpath, sums| {
                *found.entry(callpath).or_default() += sums;
            });
        }
        found
    }

    const MAIN: CallPathId = CallPathId::new(0);
    const FOO: CallPathId = CallPathId::new(1);
    const BAR: CallPathId = CallPathId::new(2);

    /// An example of counters.md#counters-of-the-trace.
    #[test]
    fn a_total_is_divided_over_carriers_and_time() {
        let series = series(Kind::Total, &[(0, 0), (4, 40), (8, 120)]);
        let master: &[_] = &[(MAIN, 0, 2), (FOO, 2, 6), (MAIN, 6, 8)];
        let alone = divided(&series, &[master]);
        assert_eq!((alone[&FOO].amount.integer, alone[&MAIN].amount.integer), (60, 60));
        let two = divided(&series, &[master, &[(BAR, 0, 8)]]);
        assert_eq!([MAIN, FOO, BAR].map(|callpath| two[&callpath].amount.integer), [30, 30, 60]);
    }

    #[test]
    fn a_trusted_total_that_falls_does_not_shrink() {
        for (is_trusted, amount) in [(true, 9), (false, 7)] {
            let mut series = Series { is_trusted, kind: Kind::Total, ..Series::default() };
            for (time, value) in [(0, 5), (1, 9), (2, 7), (3, 12)] {
                series.push(time, Number::from_integer(value));
            }
            assert_eq!(divided(&series, &[&[(MAIN, 0, 3)]])[&MAIN].amount.integer, amount);
        }
    }

    /// An example of counters.md#counters-of-the-trace.
    #[test]
    fn a_level_is_integrated_where_it_is_known() {
        let mut series = series(Kind::Level { next: true }, &[(1, 100), (3, 300), (6, 0)]);
        series.hold(8);
        let found = divided(&series, &[&[(MAIN, 0, 2), (FOO, 2, 4), (MAIN, 4, 8)]]);
        let (main, foo) = (found[&MAIN], found[&FOO]);
        assert_eq!((foo.amount.integer, foo.ticks, foo.range), (400, 2, (100.0, 300.0)));
        assert_eq!((main.amount.integer, main.ticks, main.samples), (700, 5, 2));
    }

    /// Times are in hundredths.
    #[test]
    fn windows_cut_totals_by_time() {
        let series = series(Kind::Total, &[(0, 0), (1000, 100)]);
        let upto = |time| series.at(time).integer;
        assert_eq!(upto(500) - upto(250), 25);
        assert_eq!([upto(15), upto(35) - upto(15), upto(1000) - upto(35)], [1, 2, 97]);
    }

    #[test]
    fn samples_are_joined_by_lines() {
        let series = series(Kind::Samples, &[(0, 5), (10, 9), (20, 7), (30, 12)]);
        assert!((series.change(0, 30) - 245.0).abs() < 1e-12);
        let found = divided(&series, &[&[(MAIN, 0, 31)]]);
        assert_eq!((found[&MAIN].area.integer, found[&MAIN].ticks), (490, 30));
        assert_eq!((found[&MAIN].samples, found[&MAIN].range), (4, (5.0, 12.0)));
    }

    #[test]
    fn a_course_has_means_of_stretches() {
        let total = series(Kind::Total, &[(0, 0), (2, 10), (2, 12), (3, 12), (7, 20)]);
        assert_eq!(total.course(0).collect::<Vec<_>>(), [(0, 2, 6.0), (2, 3, 0.0), (3, 7, 2.0)]);
        assert_eq!(total.course(3).collect::<Vec<_>>(), [(0, 3, 4.0), (3, 7, 2.0)]);
        let mut level = series(Kind::Level { next: true }, &[(0, 4), (2, 6)]);
        level.hold(6);
        assert_eq!(level.course(0).collect::<Vec<_>>(), [(0, 2, 4.0), (2, 6, 6.0)]);
        assert_eq!(level.course(5).collect::<Vec<_>>(), [(0, 6, 32.0 / 6.0)]);
        assert_eq!(series(Kind::Total, &[(5, 1)]).course(0).count(), 0);
    }

    #[test]
    fn changes_of_a_moment_belong_to_what_runs_then() {
        let series = series(Kind::Change { next: false, point: true }, &[(1, 3), (5, 4)]);
        let found = divided(&series, &[&[(MAIN, 0, 2), (FOO, 2, 4), (BAR, 4, 9)]]);
        assert_eq!((found[&MAIN].amount.integer, found[&BAR].amount.integer), (3, 4));
        assert!(!found.contains_key(&FOO));
    }

    proptest! {
        #[test]
        fn parts_and_windows_add_up(
            steps in prop::collection::vec((0i64..5, 0i64..40), 1..12),
            mut cuts in prop::collection::vec(0i64..40, 0..6),
            threads in 1usize..4,
        ) {
            let (mut time, mut value) = (0, 7);
            let samples: Vec<(i64, i64)> =
                steps.into_iter().map(|(span, growth)| { time += span; value += growth; (time, value) }).collect();
            let series = series(Kind::Total, &samples);
            cuts.sort_unstable();
            let bounds: Vec<i64> = [-1].into_iter().chain(cuts).chain([100]).collect();
            let windows: Vec<_> = bounds.windows(2).map(|pair| (MAIN, pair[0], pair[1])).collect();
            let all = divided(&series, &vec![&windows[..]; threads]);
            let sums = all.get(&MAIN).copied().unwrap_or_default();
            prop_assert_eq!(sums.amount.integer, i128::from(samples[samples.len() - 1].1 - samples[0].1));
            prop_assert_eq!(sums.samples, samples.len() as u64);
        }
    }
}
