//! When a rank was recorded, and what cannot be of that time.

use crate::columns::{Category, Columns, Work};
use crate::numbers::{EARLIEST_TIME, LARGEST_TIME};

/// Whether a time can be one of a run.
fn is_possible(time: i64) -> bool {
    (EARLIEST_TIME..=LARGEST_TIME).contains(&time)
}

/// Makes times absolute; what then is at a time that cannot be is left out.
pub(crate) fn shift(columns: &mut Columns, base: i64) {
    let at = |time: i64| time.saturating_add(base);
    let counts = &mut columns.counts;
    columns.spans.retain_mut(|span| {
        (span.begin, span.end) = (at(span.begin), at(span.end));
        let is_kept = is_possible(span.begin) && is_possible(span.end);
        counts.no_time += u64::from(!is_kept);
        is_kept
    });
    columns.works.retain_mut(|work| {
        (work.begin, work.end) = (at(work.begin), at(work.end));
        let is_kept = is_possible(work.begin) && is_possible(work.end);
        counts.no_time += u64::from(!is_kept);
        is_kept
    });
    for record in &mut columns.records {
        record.begin = at(record.begin);
    }
    columns.memory.retain_mut(|sample| {
        sample.time = at(sample.time);
        is_possible(sample.time)
    });
    columns.began = columns.began.map(at).filter(|time| is_possible(*time));
    columns.ended = columns.ended.map(at).filter(|time| is_possible(*time));
}

/// When the profiler began and ended, as far as the file says, else the first and last event of the host, else those of
/// the device.
pub(crate) fn window(columns: &Columns) -> (i64, i64) {
    let around = |times: &mut dyn Iterator<Item = (i64, i64)>| {
        times.reduce(|all: (i64, i64), (begin, end)| (all.0.min(begin), all.1.max(end)))
    };
    let own = columns.spans.iter().filter(|span| span.category != Category::Overhead);
    let hosts = around(&mut own.map(|span| (span.begin, span.end)));
    let events = hosts.or_else(|| around(&mut columns.works.iter().map(|work| (work.begin, work.end))));
    let (first, last) = events.unwrap_or_default();
    let begin = columns.began.unwrap_or(first);
    (begin, columns.ended.unwrap_or(last).max(begin))
}

/// Leaves out work at a time that cannot be (drivers write a time of 0 where they know none); how much that was, and the
/// window with all work.
///
/// If the file says when the window began or ended, that is what is a tenth of the window away from it. Else only what is far
/// from all other events: devices go on after their hosts, and may begin before them.
pub(crate) fn leave_out(columns: &mut Columns, (begin, end): (i64, i64)) -> (u64, (i64, i64)) {
    let length = end - begin;
    let mut times: Vec<(i64, i64)> = columns.works.iter().map(|work| (work.begin, work.end)).collect();
    times.sort_unstable();
    let first =
        if columns.began.is_some() { begin.saturating_sub(length / 10) } else { first_near(&times, begin, end) };
    let last = if columns.ended.is_some() {
        end.saturating_add(length / 10)
    } else {
        // The same on the other side of time.
        let mirrored: Vec<(i64, i64)> = times.iter().rev().map(|(begin, end)| (-end, -begin)).collect();
        -first_near(&mirrored, -end, -begin)
    };
    let is_near = |work: &Work| work.end >= first && work.begin <= last;
    let far = columns.works.iter().filter(|work| !is_near(work)).count();
    // If most of it is, it is the window that is wrong.
    let is_wrong = far * 2 > columns.works.len();
    if !is_wrong {
        columns.works.retain(is_near);
    }
    let works = || columns.works.iter();
    let earliest = works().map(|work| work.begin).min().filter(|_| columns.began.is_none());
    let latest = works().map(|work| work.end).max().filter(|_| columns.ended.is_none());
    let window = (earliest.map_or(begin, |time| time.min(begin)), latest.map_or(end, |time| time.max(end)));
    (if is_wrong { 0 } else { far as u64 }, window)
}

/// The begin of the first of some times after which no gap is much longer than all that follows it, up to an end.
fn first_near(times: &[(i64, i64)], begin: i64, end: i64) -> i64 {
    let end = times.iter().map(|(_, end)| *end).fold(end, i64::max);
    let mut first = begin;
    for (from, to) in times.iter().rev().filter(|(from, _)| *from < begin) {
        let extent = end.saturating_sub(first).max(1);
        if first.saturating_sub(*to) / MUCH_LONGER > extent {
            break;
        }
        first = first.min(*from);
    }
    first
}

/// A gap this many times as long as all that is on one side of it separates times that cannot be.
const MUCH_LONGER: i64 = 10;
