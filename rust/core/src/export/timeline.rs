//! A run over time, small enough for a picture: the shares of activities in bins of time and groups of locations.
//!
//! ```text
//!          bin 0      bin 1      bin 2
//!  row 0   compute 1  p2p 0.3    waiting 0.8      row: one location, or neighboring ones
//!  row 1   compute 1  compute 1  collective 1
//! ```
//!
//! *Levels*: with more locations than a picture has rows, there are three levels: about as many rows as bins, more rows
//! and fewer bins, and fewer rows and more bins. So there is more detail to zoom into in either direction. Coarser
//! levels are not needed, since they are sums of neighbors.
//!
//! *Waiting*, and the management of teams of threads, replace the class of the call in which they lie, so the shares of a cell never exceed 1. The rest to 1 is
//! time outside any call.
//!
//! *Individual items* (waits, messages, transfers, tasks, locks) are limited to those that take or cost most. Calls are included all
//! or not at all.
//!
//! Each process of the analysis makes the rows of its locations, and selects its items. Of a row that several share, the
//! first process adds up the times.

use std::cmp::Reverse;
use std::iter;
use std::ops::Range;

use bitcode::{Decode, Encode};

use crate::analysis::Analysis;
use crate::export::calls::{self, Calls};
use crate::export::threads::{self, Owned};
use crate::ids::{CallPathId, LocationId};
use crate::matching::messages;
use crate::matching::transfers;
use crate::parallel::exchange::{Exchange, Row};
use crate::parallel::iter::prelude::*;
use crate::schema::MetricSet;
use crate::severity::Metric;
use crate::trace::decode::Progress;
use crate::trace::management::{Pass, management};
use crate::trace::{RegionClass, Shard, Trace};
use crate::waits::interval;
use crate::{Error, Result};

/// Limits of a timeline, and the classes of call paths.
#[derive(Clone, Debug)]
pub struct Request {
    /// The class of each call path, less than `classes`.
    pub class_of: Vec<u8>,
    /// Number of classes; waiting is one more.
    pub classes: u8,
    /// The class of managing teams of threads.
    pub management: u8,
    /// Metrics whose wait states count as waiting.
    pub waiting: Vec<Metric>,
    /// Cells of a level.
    pub cells: usize,
    /// Region instances: all, or none if there are more.
    pub calls: usize,
    /// Limit of wait states, of messages, of transfers, of tasks, and of the times in which locks are owned.
    pub most: usize,
}

/// Shares of classes in bins of time.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Level {
    /// Neighboring locations of a row.
    pub merged: usize,
    /// Rows.
    pub rows: usize,
    /// Bins of a row.
    pub bins: usize,
    /// Ticks of a bin.
    pub width: i64,
    /// Shares by class, row and bin; 255 is the whole bin on all locations of the row.
    pub shares: Vec<u8>,
}

/// A message, a transfer, or a task that starts on another thread; times in ticks.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Encode, Decode)]
pub struct Arrow {
    /// Location of the source.
    pub from: LocationId,
    /// Location of the destination.
    pub to: LocationId,
    /// Begin: the record of the send, the start of the transfer, or the creation of the task.
    pub start: i64,
    /// End: the record of the receive, the end of the transfer, or the start of the task.
    pub end: i64,
    /// Bytes.
    pub bytes: u64,
    /// Ticks that one side waited for the other.
    pub waiting: i64,
}

/// A selected wait state, or one of the parts between which its thread runs tasks.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Encode, Decode)]
pub struct Wait {
    /// Index of the wait state in the analysis.
    pub number: u32,
    /// When the waiting began, ticks.
    pub begin: i64,
    /// When it ended, ticks.
    pub end: i64,
}

/// A selection of rows.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Chosen<T> {
    /// The selected rows.
    pub rows: Vec<T>,
    /// How many rows there were to select from.
    pub total: u64,
}

/// A run over time.
#[derive(Clone, Debug)]
pub struct Timeline {
    /// Levels: at least one.
    pub levels: Vec<Level>,
    /// All calls, if there are few.
    pub calls: Calls,
    /// Wait states, the longest first.
    pub waits: Chosen<Wait>,
    /// Messages, by the time that one side waited for them, then by duration, longest first.
    pub messages: Chosen<Arrow>,
    /// One-sided transfers, the longest first.
    pub transfers: Chosen<Arrow>,
    /// Tasks that start on another thread than the one that created them, those that started latest first.
    pub tasks: Chosen<Arrow>,
    /// When threads own the locks that others wait for, the longest first.
    pub locks: Chosen<Owned>,
}

/// Rows that a picture can show.
const ROWS: usize = 512;
/// Rows of the level for zooming in on a few locations.
const MANY_ROWS: usize = 16384;
/// Rows of the level for zooming in on a short time.
const FEW_ROWS: usize = 32;
const BINS: usize = 32768;
/// Bins that suffice if all calls are included.
const BINS_BESIDE_CALLS: usize = 4096;

/// Builds a timeline. Collective.
pub fn build(analysis: &Analysis, request: &Request, progress: &Progress) -> Result<Timeline> {
    let trace = &analysis.trace;
    let calls = calls::all(trace, request.calls)?;
    let mut levels = levels(trace, request, trace.exchange.any(!calls.rows.is_empty())?);
    let base = analysis.rows_before()?;
    let counts = Metric::marked(request.waiting.iter().copied());
    let of_shard = |(i, shard): (usize, &Shard)| {
        let (first, waits) = analysis.waits.of(i);
        let mut longest = longest(request.most);
        let mut lost = Vec::new();
        interval::each_stretch(trace, waits, |i, time| {
            let wait = &waits[i];
            if counts[wait.kind as usize] {
                longest.push(Wait { number: base + (first + i) as u32, begin: time.start, end: time.end });
                // A host that waits for a busy device loses nothing: its time remains that of its call.
                if wait.kind != Metric::GpuHostWait {
                    lost.push((wait.location, time));
                }
            }
        });
        (Waiting::new(shard, lost.into_iter()), longest.cut())
    };
    let (waiting, of_shards): (Vec<_>, Vec<_>) = trace.par_shards().enumerate().map(of_shard).unzip();
    for level in &mut levels {
        fill(trace, request, &waiting, level, progress)?;
    }
    let waits = longest(request.most).all(&trace.exchange, of_shards)?;
    let messages = messages(trace, request.most)?;
    let transfers = transfers(analysis, request.most)?;
    let tasks = tasks(trace, request.most)?;
    let locks = owned(trace, request.most)?;
    Ok(Timeline { levels, calls, waits, messages, transfers, tasks, locks })
}

/// The largest rows by a unique key, in bounded memory.
struct Largest<T, K> {
    rows: Vec<T>,
    most: usize,
    key: fn(&T) -> K,
    /// Smaller rows are not among the largest.
    least: Option<K>,
    total: u64,
}

impl<T, K: Ord + Copy> Largest<T, K> {
    /// Keeps at most this many rows.
    fn new(most: usize, key: fn(&T) -> K) -> Self {
        Self { rows: Vec::new(), most, key, least: None, total: 0 }
    }

    fn push(&mut self, row: T) {
        self.total += 1;
        if self.least.is_some_and(|least| (self.key)(&row) < least) {
            return;
        }
        self.rows.push(row);
        if self.rows.len() >= 4 * self.most.max(1024) {
            self.drop_small();
        }
    }

    fn drop_small(&mut self) {
        let key = self.key;
        if self.rows.len() > self.most {
            self.rows.select_nth_unstable_by_key(self.most, |row| Reverse(key(row)));
            self.rows.truncate(self.most);
            self.least = self.rows.iter().map(key).min();
        }
    }

    /// The same without memory that is not needed any more.
    fn cut(mut self) -> Self {
        self.drop_small();
        self.rows.shrink_to_fit();
        self
    }

    /// The largest of these rows and of several parts, of all processes, in the order of the key. Collective.
    fn all(self, exchange: &Exchange, parts: Vec<Self>) -> Result<Chosen<T>>
    where
        T: Row,
    {
        let own = self.total + parts.iter().map(|part| part.total).sum::<u64>();
        let total = exchange.gather(own)?.into_iter().sum();
        let put_together = |mut all: Self, part: Self| {
            all.rows.extend(part.rows);
            all
        };
        let mut all = parts.into_iter().fold(self, put_together).cut();
        all.rows = exchange.gatherv(all.rows)?;
        all.drop_small();
        let key = all.key;
        all.rows.sort_unstable_by_key(|row| Reverse(key(row)));
        Ok(Chosen { rows: all.rows, total })
    }
}

/// Levels without their shares.
fn levels(trace: &Trace, request: &Request, has_calls: bool) -> Vec<Level> {
    let locations = trace.definitions.locations.len().max(1);
    let length = trace.span().map_or(0, |(first, last)| last - first).max(1);
    let merged_to = |rows: usize| locations.div_ceil(rows).next_power_of_two();
    let mut merges = vec![merged_to(ROWS)];
    if merges[0] > 1 {
        merges.extend([merged_to(MANY_ROWS), merged_to(FEW_ROWS)]);
        merges.dedup();
    }
    let most = if has_calls { BINS_BESIDE_CALLS } else { BINS };
    let level = |merged: usize| {
        let rows = locations.div_ceil(merged);
        let width = length.unsigned_abs().div_ceil((request.cells / rows).clamp(1, most) as u64);
        let bins = length.unsigned_abs().div_ceil(width) as usize;
        let width = width as i64;
        Level { merged, rows, bins, width, shares: Vec::new() }
    };
    merges.into_iter().map(level).collect()
}

/// When the locations of a shard wait: sorted, disjoint stretches of all locations in one vector, with offsets by
/// location.
struct Waiting {
    stretches: Vec<Range<i64>>,
    offsets: Vec<usize>,
}

impl Waiting {
    /// The times of waits, which are in the order of locations.
    fn new(shard: &Shard, times: impl Iterator<Item = (LocationId, Range<i64>)>) -> Self {
        let mut found = Self { stretches: Vec::new(), offsets: vec![0] };
        let mut of_location = Vec::new();
        let mut times = times.peekable();
        for location in shard.locations {
            of_location
                .extend(iter::from_fn(|| times.next_if(|(waiter, _)| *waiter == location)).map(|(_, time)| time));
            of_location.sort_unstable_by_key(|time| (time.start, time.end));
            let first = found.stretches.len();
            for time in of_location.drain(..) {
                match found.stretches[first..].last_mut() {
                    Some(last) if time.start <= last.end => last.end = last.end.max(time.end),
                    _ => found.stretches.push(time),
                }
            }
            found.offsets.push(found.stretches.len());
        }
        found
    }

    /// Those of the i-th location.
    fn of(&self, i: usize) -> &[Range<i64>] {
        &self.stretches[self.offsets[i]..self.offsets[i + 1]]
    }
}

fn fill(trace: &Trace, request: &Request, waiting: &[Waiting], level: &mut Level, progress: &Progress) -> Result<()> {
    let planes = usize::from(request.classes) + 1;
    let begin = trace.span().map_or(0, |(first, _)| first);
    let locations = trace.definitions.locations.len();
    let members = |row: usize| row * level.merged..((row + 1) * level.merged).min(locations);
    let shares = |row: usize, cells: &[i64]| -> Vec<u8> {
        let whole = i128::from(level.width) * members(row).len().max(1) as i128;
        let share = |ticks: i64| ((i128::from(ticks) * 255 + whole / 2) / whole).min(255) as u8;
        // Most cells are empty, and the division takes longer than all else here.
        cells.iter().map(|&ticks| if ticks == 0 { 0 } else { share(ticks) }).collect()
    };
    let first = trace.shards.first().map_or(0, |shard| shard.locations.start.index());
    let end = trace.shards.last().map_or(0, |shard| shard.locations.end.index());
    // The ticks of a row that other processes share, or its finished shares.
    let row = |row: usize| {
        if progress.is_cancelled() {
            return Err(Error::Interrupted);
        }
        let mut bins = Bins::new(planes, level.bins, begin, level.width);
        for location in members(row).filter(|location| (first..end).contains(location)) {
            bins.rewind();
            let location = LocationId::at(location);
            add(trace, request, &waiting[trace.position(location)], location, &mut bins);
        }
        let cells = bins.finish();
        let is_own = first <= members(row).start && members(row).end <= end;
        Ok(if is_own { (row, Vec::new(), shares(row, &cells)) } else { (row, cells, Vec::new()) })
    };
    let own = if first < end { first / level.merged..end.div_ceil(level.merged) } else { 0..0 };
    let rows: Vec<(usize, Vec<i64>, Vec<u8>)> = own.into_par_iter().map(row).collect::<Result<_>>()?;
    let mut rows = trace.exchange.gatherv(rows)?;
    rows.dedup_by(|(next, more, _), (row, ticks, _)| {
        let same = next == row;
        if same {
            ticks.iter_mut().zip(more).for_each(|(ticks, more)| *ticks += *more);
        }
        same
    });
    let finish =
        |(row, cells, own): (usize, Vec<i64>, Vec<u8>)| (row, if cells.is_empty() { own } else { shares(row, &cells) });
    let rows: Vec<(usize, Vec<u8>)> = rows.into_par_iter().map(finish).collect();
    level.shares = vec![0; planes * level.rows * level.bins];
    for (number, cells) in rows {
        for (bin, shares) in cells.chunks_exact(planes).enumerate() {
            for (plane, &share) in shares.iter().enumerate() {
                level.shares[(plane * level.rows + number) * level.bins + bin] = share;
            }
        }
    }
    Ok(())
}

/// The bins of a row, and the current one.
struct Bins {
    /// Ticks by bin and class.
    cells: Vec<i64>,
    /// By bin and class, how many more stretches cover the whole bin than the previous bin.
    whole: Vec<i64>,
    planes: usize,
    width: i64,
    /// Begin of the first bin.
    begin: i64,
    bin: usize,
    /// End of the current bin.
    end: i64,
}

impl Bins {
    fn new(planes: usize, bins: usize, begin: i64, width: i64) -> Self {
        let cells = vec![0; planes * bins];
        Self { whole: cells.clone(), cells, planes, width, begin, bin: 0, end: begin + width }
    }

    /// Returns to the first bin, for the next location.
    fn rewind(&mut self) {
        self.bin = 0;
        self.end = self.begin + self.width;
    }

    /// Adds a stretch of time; stretches must be added in order of their begin.
    #[inline]
    fn add(&mut self, class: usize, from: i64, to: i64) {
        if from >= to {
            return;
        }
        if from >= self.end {
            self.go_to(from);
        }
        if to <= self.end {
            self.cells[self.bin * self.planes + class] += to - from;
            return;
        }
        self.cells[self.bin * self.planes + class] += self.end - from;
        let first = self.bin + 1;
        self.go_to(to - 1);
        self.cells[self.bin * self.planes + class] += to - (self.end - self.width);
        self.whole[first * self.planes + class] += 1;
        self.whole[self.bin * self.planes + class] -= 1;
    }

    fn go_to(&mut self, time: i64) {
        self.bin = ((time - self.begin) / self.width) as usize;
        self.end = self.begin + (self.bin as i64 + 1) * self.width;
    }

    /// Ticks by bin and class.
    fn finish(mut self) -> Vec<i64> {
        for at in self.planes..self.whole.len() {
            self.whole[at] += self.whole[at - self.planes];
        }
        for (cell, whole) in self.cells.iter_mut().zip(&self.whole) {
            *cell += whole * self.width;
        }
        self.cells
    }
}

/// Adds what a location did.
fn add(trace: &Trace, request: &Request, waiting: &Waiting, location: LocationId, bins: &mut Bins) {
    let shard: &Shard = trace.shard(location);
    let i = shard.local(location);
    let mut row = Painted { waits: waiting.of(i), wait_class: usize::from(request.classes), bins };
    let management = management(shard, location);
    let mut managed = Pass::new(&management);
    let mut pass = |during: CallPathId, mut from: i64, to: i64| {
        if !managed.is_done_until(to) {
            managed.take(during, from..to, |part, _| {
                if during.is_some() {
                    row.paint(request.class_of[during], from, part.start);
                }
                row.paint(request.management, part.start, part.end);
                from = part.end;
            });
        }
        if during.is_some() {
            row.paint(request.class_of[during], from, to);
        }
    };
    let (mut from, last) = trace.span().unwrap_or_default();
    let mut depth = 0u32;
    let mut callpath = CallPathId::NONE;
    for position in shard.event_offsets[i]..shard.event_offsets[i + 1] {
        let time = shard.events.time[position as usize];
        if time > from {
            pass(if depth > 0 { callpath } else { CallPathId::NONE }, from, time);
        }
        from = time;
        callpath = shard.events.callpath(position);
        if shard.events.is_leave(position) {
            depth -= 1;
            callpath = shard.events.running_after(&trace.tree, position);
        } else {
            depth += 1;
        }
    }
    pass(CallPathId::NONE, from, last);
}

/// The bins of a location, in which waiting replaces classes.
struct Painted<'a> {
    /// The waits that have not been passed.
    waits: &'a [Range<i64>],
    wait_class: usize,
    bins: &'a mut Bins,
}

impl Painted<'_> {
    /// Adds a stretch of a class; stretches must be added in order of their begin.
    #[inline]
    fn paint(&mut self, class: u8, mut from: i64, to: i64) {
        while from < to {
            match self.waits.first() {
                Some(wait) if wait.end <= from => self.waits = &self.waits[1..],
                Some(&Range { start, end }) if start < to => {
                    self.bins.add(usize::from(class), from, start);
                    let end = end.min(to);
                    self.bins.add(self.wait_class, from.max(start), end);
                    from = end;
                }
                _ => {
                    self.bins.add(usize::from(class), from, to);
                    from = to;
                }
            }
        }
    }
}

fn messages(trace: &Trace, most: usize) -> Result<Chosen<Arrow>> {
    let (found, _) = messages::match_all(trace, |_, shard, matches| {
        let mut chosen = costliest(most);
        for location in shard.locations {
            let i = shard.local(location);
            for row in shard.receives.range(i) {
                let Some(send) = matches.send(row) else { continue };
                let receive = &shard.receives.rows[row];
                let enter = shard.enter(receive.instance);
                let late_sender = if trace.class(shard, receive.instance) == RegionClass::Test {
                    0
                } else {
                    send.enter.min(shard.leave(receive.instance)) - enter
                };
                let posted = shard.enter(receive.request);
                let late_receiver =
                    if posted < send.complete_leave { posted.saturating_sub(send.complete_enter) } else { 0 };
                chosen.push(Arrow {
                    from: send.location,
                    to: location,
                    start: send.time,
                    end: receive.time,
                    bytes: send.bytes,
                    waiting: late_sender.max(late_receiver).max(0),
                });
            }
        }
        chosen.cut()
    })?;
    costliest(most).all(&trace.exchange, found)
}

fn transfers(analysis: &Analysis, most: usize) -> Result<Chosen<Arrow>> {
    let found = transfers::of_shards(&analysis.trace, &analysis.epochs, |transfers| {
        let mut chosen = costliest(most);
        for transfer in transfers {
            match transfer.end {
                None => chosen.total += 1,
                Some(end) => chosen.push(Arrow {
                    from: transfer.source,
                    to: transfer.destination,
                    start: transfer.time,
                    end,
                    bytes: transfer.bytes,
                    waiting: 0,
                }),
            }
        }
        chosen.cut()
    })?;
    costliest(most).all(&analysis.trace.exchange, found)
}

fn tasks(trace: &Trace, most: usize) -> Result<Chosen<Arrow>> {
    let of_shard = |shard: &Shard| {
        let mut chosen = costliest(most);
        threads::each_started_elsewhere(shard, |task| {
            chosen.push(Arrow {
                from: task.creator.0,
                to: task.runner.0,
                start: task.created,
                end: task.started,
                bytes: 0,
                waiting: 0,
            });
        });
        chosen.cut()
    };
    costliest(most).all(&trace.exchange, trace.par_shards().map(of_shard).collect())
}

fn owned(trace: &Trace, most: usize) -> Result<Chosen<Owned>> {
    let longest = || Largest::new(most, |own: &Owned| (own.end - own.begin, -own.begin, own.location, own.lock));
    let of_shard = |shard: &Shard| {
        let mut chosen = longest();
        for process in shard.processes {
            threads::each_owned(trace, shard, process, |own| chosen.push(own));
        }
        chosen.cut()
    };
    longest().all(&trace.exchange, trace.par_shards().map(of_shard).collect())
}

/// The longest waits; the rest of the key only makes the order unique.
fn longest(most: usize) -> Largest<Wait, (i64, i64, u32)> {
    Largest::new(most, |wait| (wait.end - wait.begin, -wait.begin, wait.number))
}

/// Costly first; the rest of the key only makes the order unique.
type ArrowKey = (i64, i64, i64, LocationId, LocationId, u64);

/// The most costly arrows.
fn costliest(most: usize) -> Largest<Arrow, ArrowKey> {
    Largest::new(most, |arrow| {
        (arrow.waiting, arrow.end - arrow.start, -arrow.start, arrow.from, arrow.to, arrow.bytes)
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn all(parts: Vec<Largest<u32, u32>>) -> Chosen<u32> {
        Largest::new(3, |&n: &u32| n).all(&Exchange::new(None, &[1], &[]), parts).unwrap()
    }

    #[test]
    fn time_is_spread_over_bins() {
        let mut bins = Bins::new(2, 5, 100, 10);
        bins.add(0, 100, 103);
        bins.add(1, 103, 125);
        bins.add(0, 138, 140);
        bins.rewind();
        bins.add(1, 105, 150);
        assert_eq!(bins.finish(), [3, 7 + 5, 0, 10 + 10, 0, 5 + 10, 2, 10, 0, 10]);
    }

    #[test]
    fn the_largest_come_in_order() {
        let of = |rows: &[u32]| {
            let mut largest = Largest::new(3, |&n: &u32| n);
            for &row in rows {
                largest.push(row);
            }
            largest.cut()
        };
        let found = all(vec![of(&[3, 9, 1]), of(&[7, 5])]);
        assert_eq!((found.rows, found.total), (vec![9, 7, 5], 5));
        assert_eq!(all(vec![of(&[3, 9])]).rows, [9, 3]);
        assert_eq!(all(vec![of(&[])]).rows, []);
        let many: Vec<u32> = (0..20_000).map(|n| n * 7_919 % 20_000).collect();
        let found = all(vec![of(&many[..9_000]), of(&many[9_000..])]);
        assert_eq!((found.rows, found.total), (vec![19_999, 19_998, 19_997], 20_000));
    }
}
