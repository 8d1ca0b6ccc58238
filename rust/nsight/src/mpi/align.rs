//! Which calls of two processes are of one operation, as their order and times tell.
//!
//! A call that needs another one cannot end before that begins, and ends soon after. Of the shifts of one list against the other
//! in which no pair contradicts that, the one counts in which least time stays unexplained.

use whywait_devices::{BETWEEN_CLOCKS, FURTHEST};

use super::Side;

/// So many pairs of a shift are looked at.
const COMPARED: usize = 4096;
/// A message may have been there for long before it is received, but that is less likely: what this part of the time weighs.
const FAR: f64 = 0.125;
/// What the offset of two clocks weighs.
const OFFSET: f64 = 0.4;

/// By how much two clocks may differ.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Clocks {
    /// Not at all.
    Same,
    /// A little: of one machine, or set by the same time.
    Near,
    /// By any time, but always the same.
    Any,
}

/// Whether a call needs the other one.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Need {
    No,
    /// It may wait for it, or not.
    May,
    /// It does not end before the other begins.
    Must,
}

/// A call: when it begins and ends.
#[derive(Debug, Clone, Copy)]
pub(super) struct Span {
    pub(super) begin: i64,
    pub(super) end: i64,
    /// Whether it ends when this operation is complete: the end of a call for several is that of the last.
    pub(super) is_alone: bool,
}

/// What two calls would be to each other as one operation.
#[derive(Debug, Clone, Copy)]
pub(super) struct Pair {
    pub(super) first: Span,
    pub(super) second: Span,
    /// Whether the first needs the second, and the other way round.
    pub(super) needs: (Need, Need),
    /// Whether they do the same, but for their sizes.
    pub(super) is_alike: bool,
    pub(super) has_same_size: bool,
}

impl Clocks {
    pub(super) fn of(first: &Side<'_>, second: &Side<'_>) -> Self {
        if first.clock == second.clock {
            Self::Same
        } else if first.machine == second.machine {
            Self::Near
        } else {
            Self::Any
        }
    }
}

impl Pair {
    /// The latest time by which the clock of the second may be set forward, and the earliest.
    fn bounds(&self) -> (Option<i64>, Option<i64>) {
        let bound = |need: Need, bound: i64| (need == Need::Must).then_some(bound);
        let latest = bound(self.needs.0, self.first.end.saturating_sub(self.second.begin));
        let earliest = bound(self.needs.1, self.first.begin.saturating_sub(self.second.end));
        (latest, earliest)
    }

    fn is_possible(&self, offset: i64) -> bool {
        let (latest, earliest) = self.bounds();
        self.is_alike && latest.is_none_or(|latest| offset <= latest) && earliest.is_none_or(|least| offset >= least)
    }

    /// The time that stays unexplained, ns.
    fn cost(&self, offset: i64) -> f64 {
        let own = |time: i64| time as f64;
        let moved = |time: i64| time as f64 + offset as f64;
        let first = (own(self.first.begin), own(self.first.end));
        let second = (moved(self.second.begin), moved(self.second.end));
        if self.needs == (Need::No, Need::No) {
            return FAR * (first.0 - second.0).abs();
        }
        let are_alone = self.first.is_alone && self.second.is_alone;
        if self.needs == (Need::Must, Need::Must) && are_alone {
            // Both end with the last of all members, which need not be one of them.
            return (first.1 - second.1).abs();
        }
        let of_one = |need: Need, is_alone: bool, (begin, end): (f64, f64), other: f64| {
            let is_between = other > begin && other < end;
            let rest = end - if is_between { other } else { begin };
            let rest = if is_alone && need != Need::No { rest } else { 0.0 };
            rest + if need == Need::Must { FAR * (end - other).abs() } else { 0.0 }
        };
        of_one(self.needs.0, self.first.is_alone, first, second.0)
            + of_one(self.needs.1, self.second.is_alone, second, first.0)
    }
}

/// Two lists of calls.
#[derive(Debug, Clone, Copy)]
pub(super) struct Lists<P> {
    /// How many each has.
    pub(super) counts: (usize, usize),
    pub(super) clocks: Clocks,
    /// From when on, on the clock of the second, nothing is complete any more that it began before its window.
    pub(super) settled: i64,
    /// What two calls, by their places, would be to each other.
    pub(super) pair: P,
}

impl<P: Fn(usize, usize) -> Pair> Lists<P> {
    /// The number to add to the place of an operation in the first list for that in the second; `None` if they do not agree.
    pub(super) fn shift(&self) -> Option<i64> {
        let best = |clocks: Clocks| {
            let fits = (-FURTHEST..=FURTHEST).filter_map(|shift| Some((self.fit(shift, (clocks, 0))?, shift)));
            let order = |a: &(f64, i64), b: &(f64, i64)| a.0.total_cmp(&b.0).then(a.1.abs().cmp(&b.1.abs()));
            fits.min_by(order).map(|(_, shift)| shift)
        };
        // Clocks that may differ by any time most often hardly do.
        let near = best(if self.clocks == Clocks::Any { Clocks::Near } else { self.clocks });
        near.or_else(|| if self.clocks == Clocks::Any { best(Clocks::Any) } else { None })
    }

    /// Whether they agree as they are, with clocks that differ by about one of some times. Those of two machines drift, so that
    /// times say nothing of long lists.
    pub(super) fn agree(&self, offsets: &[i64]) -> bool {
        let count = self.counts.0.min(self.counts.1);
        if self.clocks == Clocks::Any {
            return (0..count).filter(|at| !(self.pair)(*at, *at).is_alike).count() * 100 <= count;
        }
        count == 0 || offsets.iter().any(|offset| self.fit(0, (self.clocks, *offset)).is_some())
    }

    /// The time that stays unexplained on average, if not more than one in a hundred pairs is impossible with clocks that differ
    /// by about a time.
    fn fit(&self, shift: i64, (clocks, about): (Clocks, i64)) -> Option<f64> {
        let step = self.step()?;
        let begins = ((-shift).max(0) as usize, shift.max(0) as usize);
        let count = self.counts.0.saturating_sub(begins.0).min(self.counts.1.saturating_sub(begins.1)).min(COMPARED);
        let mut pairs: Vec<Pair> = Vec::new();
        let mut misses = 0;
        for at in 0..count {
            let pair = (self.pair)(at + begins.0, at + begins.1);
            misses += usize::from(!pair.is_alike || (clocks == Clocks::Same && !pair.is_possible(0)));
            if misses * 100 > count {
                return None;
            }
            pairs.push(pair);
        }
        if pairs.is_empty() {
            return None;
        }
        // The last message whose receive is from before the window.
        let skipped = begins.0.checked_sub(1).map(|at| (self.pair)(at, 0).first);
        let weight = if clocks == Clocks::Any { 0.0 } else { OFFSET };
        let cost = |offset: i64| -> Option<f64> {
            let misses = pairs.iter().filter(|pair| !pair.is_possible(offset)).count();
            if skipped.is_some_and(|skipped| skipped.begin > self.settled.saturating_add(offset)) {
                return None;
            }
            let of_pair = |pair: &Pair| pair.cost(offset) + if pair.has_same_size { 0.0 } else { step };
            // Few pairs may agree by chance.
            let sum: f64 = pairs.iter().map(of_pair).sum::<f64>() + step;
            (misses * 100 <= count).then(|| sum / count as f64 + weight * offset.unsigned_abs() as f64)
        };
        offsets(&pairs, clocks, about).into_iter().filter_map(cost).min_by(f64::total_cmp)
    }

    /// About the time from one operation to the next.
    fn step(&self) -> Option<f64> {
        let last = (self.counts.0.checked_sub(1)?, self.counts.1.checked_sub(1)?);
        let (from, to) = ((self.pair)(0, 0), (self.pair)(last.0, last.1));
        let each = |from: Span, to: Span, last: usize| (to.begin as f64 - from.begin as f64) / (last + 1) as f64;
        Some(each(from.first, to.first, last.0).max(each(from.second, to.second, last.1)))
    }
}

/// Offsets of the second clock that may explain pairs best.
fn offsets(pairs: &[Pair], clocks: Clocks, about: i64) -> Vec<i64> {
    let (from, to) = match clocks {
        Clocks::Same => return vec![0],
        Clocks::Near => (about.saturating_sub(BETWEEN_CLOCKS), about.saturating_add(BETWEEN_CLOCKS)),
        Clocks::Any => (-i64::MAX, i64::MAX),
    };
    let mut latest: Vec<i64> = pairs.iter().filter_map(|pair| pair.bounds().0).collect();
    let mut earliest: Vec<i64> = pairs.iter().filter_map(|pair| pair.bounds().1).collect();
    let mut apart: Vec<i64> = pairs.iter().map(|pair| pair.first.end.saturating_sub(pair.second.end)).collect();
    for list in [&mut latest, &mut earliest, &mut apart] {
        list.sort_unstable();
    }
    let middle = |list: &[i64]| list.get(list.len() / 2).copied();
    let spared = |list: &[i64]| list.len() / 100;
    let least = latest.get(spared(&latest)).copied();
    let greatest = earliest.len().checked_sub(1 + spared(&earliest)).map(|at| earliest[at]);
    let all = [Some(about), least, greatest, middle(&latest), middle(&earliest), middle(&apart)];
    all.into_iter().flatten().map(|offset| offset.clamp(from, to)).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    const MS: i64 = 1_000_000;

    fn span(begin: i64, end: i64) -> Span {
        Span { begin: begin * MS, end: end * MS, is_alone: true }
    }

    /// The shift of messages from a list of sends to one of receives.
    fn of_messages(sends: &[(Span, i64)], receives: &[(Span, i64)], clocks: Clocks) -> Option<i64> {
        let pair = |send: usize, receive: usize| {
            let ((first, sent), (second, room)) = (sends[send], receives[receive]);
            let needs = (Need::May, Need::Must);
            Pair { first, second, needs, is_alike: sent <= room, has_same_size: sent == room }
        };
        Lists { counts: (sends.len(), receives.len()), clocks, settled: i64::MAX, pair }.shift()
    }

    #[test]
    fn a_receive_that_waits_is_one_of_the_send_that_ends_it() {
        let sends: Vec<_> = (0..20).map(|step| (span(step * 20 + 9, step * 20 + 10), 8)).collect();
        let receives: Vec<_> = (0..20).map(|step| (span(step * 20, step * 20 + 10), 16)).collect();
        for clocks in [Clocks::Same, Clocks::Near, Clocks::Any] {
            assert_eq!(of_messages(&sends, &receives, clocks), Some(0));
            assert_eq!(of_messages(&sends[3..], &receives, clocks), Some(3));
            assert_eq!(of_messages(&sends, &receives[5..], clocks), Some(-5));
        }
    }

    #[test]
    fn a_message_that_lies_ready_is_the_last_one_before() {
        let sends: Vec<_> = (0..20).map(|step| (span(step * 20, step * 20), 8)).collect();
        let receives: Vec<_> = (0..20).map(|step| (span(step * 20 + 18, step * 20 + 18), 8)).collect();
        assert_eq!(of_messages(&sends, &receives, Clocks::Same), Some(0));
        assert_eq!(of_messages(&sends[1..], &receives, Clocks::Same), Some(1));
    }

    #[test]
    fn sizes_tell_what_times_do_not() {
        let size = |step: i64| step * step % 13;
        let sends: Vec<_> = (0..20).map(|step| (span(step * 20, step * 20), size(step))).collect();
        // Three messages are always on their way.
        let receives: Vec<_> = (0..20).map(|step| (span(step * 20 + 61, step * 20 + 61), size(step))).collect();
        assert_eq!(of_messages(&sends[2..], &receives, Clocks::Same), Some(2));
    }

    #[test]
    fn clocks_that_differ_always_do_so_by_the_same_time() {
        let starts = [0, 30, 45, 80, 100, 160, 170, 200];
        let both = |begin: i64, end: i64| span(begin, end);
        let first: Vec<_> = starts.iter().map(|at| both(*at, at + 5)).collect();
        let pair_with = |second: &[Span], clocks| {
            let second = second.to_vec();
            let pair = |a: usize, b: usize| Pair {
                first: first[a],
                second: second[b],
                needs: (Need::Must, Need::Must),
                is_alike: true,
                has_same_size: true,
            };
            let lists = Lists { counts: (first.len(), second.len()), clocks, settled: i64::MAX, pair };
            (lists.agree(&[0]), lists.shift())
        };
        let late = |by: i64| -> Vec<Span> { starts.iter().map(|at| both(at + by, at + by + 5)).collect() };
        assert_eq!(pair_with(&late(0)[2..], Clocks::Near).1, Some(-2));
        assert_eq!(pair_with(&late(8), Clocks::Near), (true, Some(0)));
        assert!(!pair_with(&late(8), Clocks::Same).0, "they do not overlap");
        assert_eq!(pair_with(&late(7000), Clocks::Any), (true, Some(0)));
        assert_eq!(pair_with(&late(7000), Clocks::Near), (false, None));
        let faster: Vec<Span> = starts.iter().map(|at| both(at / 2, at / 2 + 5)).collect();
        assert!(!pair_with(&faster, Clocks::Near).0);
    }
}
