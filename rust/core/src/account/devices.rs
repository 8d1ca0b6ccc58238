//! The account of devices: each moment of each device in the focus is busy, about to begin, or idle for a reason.
//!
//! ```text
//!  host     [ own code ][ launch ][ own code      ][ memset         ][ own code
//!  device              latency [ kernel ] starved.host  starved.call
//! ```
//!
//! A device is idle for the first reason in [`DeviceRow`] that any of the threads that launch its kernels gives. What the own
//! code of such a thread does is told by the innermost name of its call path that says so ([`Reasons`]).
//!
//! Of a kernel that communicates, what follows its wait is transfer, as far as such a transfer needs it: the fastest 5% with this
//! kernel, as for calls ([`super::floors`]). The rest is excess; if ranks of the operation are not in the trace, it may as well be
//! a wait for them: unseen.

use std::collections::BTreeMap;
use std::ops::Range;

use bitcode::{Decode, Encode};
use rustc_hash::{FxHashMap, FxHashSet};

use super::busy::BusyWaits;
use super::device_rows::DeviceRow;
use super::rows::Row;
use super::starved::Reasons;
use super::sweep::CallPaths;
use super::transfers::Transfers;
use crate::Result;
use crate::ids::{CallPathId, CommId, InstanceId, LocationId};
use crate::parallel::iter::prelude::*;
use crate::parallel::per_shard::PerShard;
use crate::trace::Trace;
use crate::waits::WaitState;
use crate::waits::device::{DevicePart, Devices, Kernel};
use crate::waits::interval::{self, overlap, union};

/// Ticks of a row of a device, in a call path of a host.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Encode, Decode)]
pub struct DeviceCell {
    /// Number of the device, as of its kernels.
    pub device: u32,
    /// What the time is.
    pub row: DeviceRow,
    /// What the host is in meanwhile, or none.
    pub callpath: CallPathId,
    /// The time, ticks.
    pub ticks: i64,
}

/// What the kernels of a communicator of devices do whose operations begin in the focus, hidden behind computation or not.
#[derive(Clone, Copy, Debug, Encode, Decode)]
pub struct GroupTime {
    /// The communicator.
    pub comm: CommId,
    /// The kernels.
    pub kernels: u64,
    /// Their waits, ticks.
    pub waiting: i64,
    /// What of these is hidden.
    pub hidden: i64,
    /// What their transfers need, ticks.
    pub transfer: i64,
    /// What these take beyond that, ticks.
    pub excess: i64,
}

impl GroupTime {
    /// Adds those of other processes or kernels by communicator; sorted.
    pub(super) fn merged(mut all: Vec<Self>) -> Vec<Self> {
        all.sort_by_key(|one| one.comm);
        all.dedup_by(|one, kept| {
            let is_same = one.comm == kept.comm;
            if is_same {
                kept.kernels += one.kernels;
                kept.waiting += one.waiting;
                kept.hidden += one.hidden;
                kept.transfer += one.transfer;
                kept.excess += one.excess;
            }
            is_same
        });
        all
    }

    /// What a kernel of an operation does.
    fn of(kernel: &Kernel, part: &DevicePart, transfers: &Transfers<'_>) -> Self {
        let (transfer, row) = transfers.divide(kernel, part);
        let rest = kernel.run.leave - kernel.run.enter - part.waiting - transfer;
        Self {
            comm: part.comm,
            kernels: 1,
            waiting: part.waiting,
            hidden: part.waiting - part.exposed,
            transfer,
            excess: if row == DeviceRow::Excess { rest.max(0) } else { 0 },
        }
    }
}

/// What a host does while a device is idle.
#[derive(Clone, Copy, Debug)]
struct Reason {
    begin: i64,
    end: i64,
    row: DeviceRow,
    callpath: CallPathId,
}

/// Makes the account of all devices whose hosts this process owns: sorted by device, row and call path; and that of
/// communicators of devices. Collective.
pub(super) fn find(
    trace: &Trace,
    waits: &PerShard<WaitState>,
    devices: &[Devices],
    callpaths: &CallPaths,
    busy: &BusyWaits,
    focus: &Range<i64>,
) -> Result<(Vec<DeviceCell>, Vec<GroupTime>)> {
    if !trace.definitions.has_streams {
        return Ok((Vec::new(), Vec::new()));
    }
    let any_busy = busy.any(&trace.exchange)?;
    let parts: FxHashMap<_, &DevicePart> =
        devices.iter().flat_map(|devices| &devices.parts).map(|part| (part.kernel, part)).collect();
    let kernels = devices.iter().flat_map(|devices| &devices.kernels);
    let of_parts =
        kernels.filter_map(|kernel| Some((kernel, *parts.get(&(kernel.run.location, kernel.run.instance))?)));
    let of_parts: Vec<(&Kernel, &DevicePart)> = of_parts.collect();
    let transfers = Transfers::find(trace, &of_parts)?;
    let in_groups = of_parts.iter().filter(|(kernel, part)| part.comm.is_some() && focus.contains(&kernel.run.enter));
    let groups = GroupTime::merged(in_groups.map(|(kernel, part)| GroupTime::of(kernel, part, &transfers)).collect());
    let reasons = Reasons::new(trace, callpaths);
    let mut of_devices: FxHashMap<u32, Vec<&Kernel>> = FxHashMap::default();
    for kernel in devices.iter().flat_map(|devices| &devices.kernels) {
        of_devices.entry(kernel.device).or_default().push(kernel);
    }
    let mut of_devices: Vec<(u32, Vec<&Kernel>)> = of_devices.into_iter().collect();
    of_devices.sort_unstable_by_key(|&(device, _)| device);
    let of_device = |&(number, ref kernels): &(u32, Vec<&Kernel>)| {
        let device = Device {
            trace,
            waits,
            callpaths,
            reasons: &reasons,
            transfers: &transfers,
            number,
            kernels,
            parts: &parts,
            busy: busy.of(number),
            any_busy: &any_busy,
            cells: FxHashMap::default(),
        };
        device.account(focus)
    };
    Ok((of_devices.par_iter().map(of_device).flatten().collect(), groups))
}

/// The parts of disjoint ordered spans that lie in none of other such spans.
fn outside(spans: &[Range<i64>], others: &[Range<i64>]) -> Vec<Range<i64>> {
    let mut rest = Vec::new();
    let mut next = 0;
    for span in spans {
        while others.get(next).is_some_and(|other| other.end <= span.start) {
            next += 1;
        }
        let mut since = span.start;
        for other in others[next..].iter().take_while(|other| other.start < span.end) {
            if since < other.start {
                rest.push(since..other.start);
            }
            since = since.max(other.end);
        }
        if since < span.end {
            rest.push(since..span.end);
        }
    }
    rest
}

/// The length of spans within another.
fn length(spans: &[Range<i64>], within: &Range<i64>) -> i64 {
    spans.iter().map(|span| overlap(within, span.clone())).sum()
}

/// A device whose account is made.
struct Device<'a> {
    trace: &'a Trace,
    waits: &'a PerShard<WaitState>,
    callpaths: &'a CallPaths,
    reasons: &'a Reasons,
    transfers: &'a Transfers<'a>,
    number: u32,
    kernels: &'a [&'a Kernel],
    /// The parts of kernels in the communication of devices.
    parts: &'a FxHashMap<(LocationId, InstanceId), &'a DevicePart>,
    busy: &'a [Range<i64>],
    /// When any device is busy: while this one is idle, others.
    any_busy: &'a [Range<i64>],
    cells: FxHashMap<(DeviceRow, CallPathId), i64>,
}

impl Device<'_> {
    fn account(mut self, focus: &Range<i64>) -> Vec<DeviceCell> {
        let [mut kernels, mut transfers, mut copies] = <[Vec<Range<i64>>; 3]>::default();
        let [mut excess, mut unmatched, mut unseen] = <[Vec<Range<i64>>; 3]>::default();
        let mut waits: Vec<(Range<i64>, DeviceRow)> = Vec::new();
        for kernel in self.kernels {
            let Range { start, end } = kernel.run.enter..kernel.run.leave;
            let part = self.parts.get(&(kernel.run.location, kernel.run.instance));
            match part {
                _ if kernel.copy.is_some() => copies.push(start..end),
                _ if !kernel.communicates => kernels.push(start..end),
                None => unmatched.push(start..end),
                Some(part) => {
                    let begun = (start + part.waiting).min(end);
                    let (needed, row) = self.transfers.divide(kernel, part);
                    waits.push((start..begun, DeviceRow::of_wait(part.kind)));
                    transfers.push(begun..begun + needed);
                    let rest = if row == DeviceRow::Unseen { &mut unseen } else { &mut excess };
                    rest.push(begun + needed..end);
                }
            }
        }
        // A moment belongs to the first row that applies; of several waits, to that of the kernel that began first.
        waits.sort_unstable_by_key(|(span, row)| (span.start, span.end, *row));
        let mut of_waits: BTreeMap<DeviceRow, Vec<Range<i64>>> = BTreeMap::new();
        let mut until = i64::MIN;
        for (span, row) in waits.into_iter().filter(|(span, _)| span.start < span.end) {
            of_waits.entry(row).or_default().push(span.start.max(until).min(span.end)..span.end);
            until = until.max(span.end);
        }
        let rows = std::iter::once((DeviceRow::Kernel, kernels)).chain(of_waits).chain([
            (DeviceRow::Transfer, transfers),
            (DeviceRow::Excess, excess),
            (DeviceRow::Unmatched, unmatched),
            (DeviceRow::Unseen, unseen),
            (DeviceRow::Copy, copies),
        ]);
        let mut earlier: Vec<Range<i64>> = Vec::new();
        for (row, spans) in rows {
            let before = length(&earlier, focus);
            earlier = union(earlier.into_iter().chain(spans).collect());
            self.add(row, CallPathId::NONE, length(&earlier, focus) - before);
        }
        let gaps = outside(std::slice::from_ref(focus), self.busy);
        let launched = self.kernels.iter().filter_map(|kernel| Some(kernel.launch?.enter..kernel.run.enter));
        let launched = union(launched.collect());
        let idle = outside(&gaps, &launched);
        let of_gaps = length(&gaps, focus);
        self.add(DeviceRow::Latency, CallPathId::NONE, of_gaps - length(&idle, focus));
        self.idle(&idle);
        let number = self.number;
        let cells = self.cells.into_iter().filter(|(_, ticks)| *ticks > 0);
        let mut cells: Vec<DeviceCell> =
            cells.map(|((row, callpath), ticks)| DeviceCell { device: number, row, callpath, ticks }).collect();
        cells.sort_unstable_by_key(|cell| (cell.row, cell.callpath));
        debug_assert_eq!(cells.iter().map(|cell| cell.ticks).sum::<i64>(), focus.end - focus.start);
        cells
    }

    fn add(&mut self, row: DeviceRow, callpath: CallPathId, ticks: i64) {
        *self.cells.entry((row, callpath)).or_default() += ticks;
    }

    /// Books idle time by what the launching threads do meanwhile.
    fn idle(&mut self, idle: &[Range<i64>]) {
        let hosts: FxHashSet<LocationId> =
            self.kernels.iter().filter_map(|kernel| Some(kernel.launch?.location)).collect();
        let mut hosts: Vec<LocationId> = hosts.into_iter().filter(|&host| self.trace.owns(host)).collect();
        hosts.sort_unstable();
        let mut reasons: Vec<Reason> = hosts.iter().flat_map(|&host| self.reasons(host, idle)).collect();
        if hosts.len() > 1 {
            reasons = first_of_each_moment(reasons);
        }
        let launches = || self.kernels.iter().filter_map(|kernel| Some(kernel.launch?.enter));
        let (first, last) = (launches().min().unwrap_or(i64::MAX), launches().max().unwrap_or(i64::MIN));
        let explained: Vec<Range<i64>> = reasons.iter().map(|reason| reason.begin..reason.end).collect();
        for reason in reasons {
            self.add(reason.row, reason.callpath, reason.end - reason.begin);
        }
        for rest in outside(idle, &union(explained)) {
            let before = overlap(&(i64::MIN..first), rest.clone());
            let after = if last < first { 0 } else { overlap(&(last..i64::MAX), rest.clone()) };
            self.add(DeviceRow::BeforeFirst, CallPathId::NONE, before);
            self.add(DeviceRow::AfterLast, CallPathId::NONE, after);
            self.add(DeviceRow::Unknown, CallPathId::NONE, rest.end - rest.start - before - after);
        }
    }

    /// What a host does in the idle spans, in the order of time; nothing where it is in no region.
    fn reasons(&self, host: LocationId, idle: &[Range<i64>]) -> Vec<Reason> {
        let shard = self.trace.shard(host);
        let (local, tree) = (shard.local(host), &self.trace.tree);
        let waits = self.waits(host);
        let mut next_wait = 0;
        let mut reasons = Vec::new();
        let all = shard.event_offsets[local]..shard.event_offsets[local + 1];
        let time = |event: u32| shard.events.time[event as usize];
        let mut event = all.start;
        for span in idle {
            while event < all.end && time(event) <= span.start {
                event += 1;
            }
            let (mut since, mut next) = (span.start, event);
            while since < span.end {
                let until = if next < all.end { time(next).min(span.end) } else { span.end };
                // Before its first event a host is in no region, and neither is it after the last.
                if next > all.start && next < all.end && since < until {
                    let callpath = shard.events.callpath(next - 1);
                    let callpath = if shard.events.is_leave(next - 1) { tree.parent(callpath) } else { callpath };
                    if callpath.is_some() {
                        self.of_stretch(callpath, since..until, (&waits, &mut next_wait), &mut reasons);
                    }
                }
                since = until;
                next += 1;
            }
        }
        reasons
    }

    /// The waits of a host in the order of time: when, and whether it waits for a device.
    fn waits(&self, host: LocationId) -> Vec<(Range<i64>, bool)> {
        let of_shard = self.waits.of(self.trace.position(host)).1;
        let first = of_shard.partition_point(|wait| wait.location < host);
        let end = of_shard.partition_point(|wait| wait.location <= host);
        let of_host = &of_shard[first..end];
        let begins = interval::begins(self.trace, of_host);
        let spans = of_host.iter().zip(begins).filter_map(|(wait, begin)| {
            let row = Row::of_wait(wait.kind)?;
            Some((begin..begin + wait.waiting, row == Row::DeviceWaitBusy))
        });
        let mut spans: Vec<(Range<i64>, bool)> = spans.collect();
        spans.sort_unstable_by_key(|(span, is_device)| (span.start, span.end, *is_device));
        let mut until = i64::MIN;
        for (span, _) in &mut spans {
            span.start = span.start.max(until);
            until = until.max(span.end);
        }
        spans.retain(|(span, _)| span.start < span.end);
        spans
    }

    /// Divides a stretch of a host by its waits.
    fn of_stretch(
        &self,
        callpath: CallPathId,
        stretch: Range<i64>,
        (waits, next): (&[(Range<i64>, bool)], &mut usize),
        reasons: &mut Vec<Reason>,
    ) {
        let row = self.reasons.of(callpath);
        let mut add = |row, span: Range<i64>| {
            if span.start < span.end {
                reasons.push(Reason { begin: span.start, end: span.end, row, callpath });
            }
        };
        if !self.callpaths.activities[callpath].has_calls() {
            return add(row, stretch);
        }
        while waits.get(*next).is_some_and(|(wait, _)| wait.end <= stretch.start) {
            *next += 1;
        }
        let mut since = stretch.start;
        for (wait, is_device) in waits[*next..].iter().take_while(|(wait, _)| wait.start < stretch.end) {
            let span = wait.start.max(since)..wait.end.min(stretch.end);
            add(row, since..span.start);
            since = since.max(span.end);
            if *is_device {
                let first = self.any_busy.partition_point(|busy| busy.end <= span.start);
                let mut from = span.start;
                for busy in self.any_busy[first..].iter().take_while(|busy| busy.start < span.end) {
                    let (begin, end) = (busy.start.max(from), busy.end.min(span.end));
                    add(row, from..begin);
                    add(DeviceRow::OtherDevice, begin..end);
                    from = end;
                }
                add(row, from..span.end);
            } else {
                add(DeviceRow::Waits, span);
            }
        }
        add(row, since..stretch.end);
    }
}

/// Of several hosts, the first reason at each moment, and of equal ones that of the first call path.
fn first_of_each_moment(reasons: Vec<Reason>) -> Vec<Reason> {
    let mut edges: Vec<i64> = reasons.iter().flat_map(|reason| [reason.begin, reason.end]).collect();
    edges.sort_unstable();
    edges.dedup();
    let mut first: Vec<Option<(DeviceRow, CallPathId)>> = vec![None; edges.len()];
    for reason in reasons {
        let from = edges.partition_point(|&edge| edge < reason.begin);
        for (edge, first) in edges[from..].iter().zip(&mut first[from..]) {
            if *edge >= reason.end {
                break;
            }
            let own = (reason.row, reason.callpath);
            *first = Some(first.map_or(own, |other| other.min(own)));
        }
    }
    let spans = edges.windows(2).zip(&first);
    let reason = |(edge, first): (&[i64], &Option<(DeviceRow, CallPathId)>)| {
        first.map(|(row, callpath)| Reason { begin: edge[0], end: edge[1], row, callpath })
    };
    spans.filter_map(reason).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_lies_outside_of_spans_is_cut_out() {
        assert_eq!(outside(&[0..10, 12..20], &[-5..1, 3..4, 9..13, 19..30]), [1..3, 4..9, 13..19]);
        assert_eq!(outside(&[0..10, 20..21], &[]), [0..10, 20..21]);
    }

    #[test]
    fn of_several_hosts_the_first_reason_counts() {
        let reason = |begin, end, row| Reason { begin, end, row, callpath: CallPathId::new(0) };
        let both = vec![reason(0, 4, DeviceRow::Waits), reason(6, 8, DeviceRow::Waits), reason(2, 7, DeviceRow::Host)];
        let found: Vec<_> =
            first_of_each_moment(both).iter().map(|reason| (reason.begin, reason.end, reason.row)).collect();
        let expected = [
            (0, 2, DeviceRow::Waits),
            (2, 4, DeviceRow::Host),
            (4, 6, DeviceRow::Host),
            (6, 7, DeviceRow::Host),
            (7, 8, DeviceRow::Waits),
        ];
        assert_eq!(found, expected);
    }
}
