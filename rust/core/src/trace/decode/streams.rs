//! Streams of devices: kernels that cross each other, copies, and records from before the run.
//!
//! ```text
//!  recorded   [ a        ]             [ copy: put ... complete ]
//!                  [ b        ]
//!  decoded    [ a  [ a/b ][ b ]        [ copy to host           ]
//! ```
//!
//! The columns hold nested regions. A kernel that goes on when the kernel around it ends is left and entered again;
//! [`continued`](crate::trace::Shard::continued) says so. One-sided operations on a stream are copies: regions from the
//! operation to its completion. Records from before the process ran are left out: drivers write a time of 0 where they
//! know none.

use std::ops::RangeInclusive;

use whywait_otf2::Event;

use super::decoder::Decoder;
use super::frames::Frame;
use crate::diagnostics::DiagnosticKind;
use crate::ids::{CallPathId, InstanceId, LocationId, ProcessId, RegionKey};
use crate::trace::bounds::Bounds;
use crate::trace::columns::Copied;
use crate::trace::definition_index::{DefinitionIndex, Members};
use crate::trace::shard::Shard;

/// A device runs at most this many kernels at once; more that are open are damage.
const MOST_AT_ONCE: usize = 128;

/// A device's clock may differ from that of its host by this part of the run of its process.
const TOLERANCE: i64 = 10;

/// The times that records of the streams of a process can have, by what its threads recorded, and when that began.
pub(crate) fn times_of_streams(
    index: &DefinitionIndex,
    shard: &Shard,
    process: ProcessId,
    bounds: Bounds,
) -> RangeInclusive<i64> {
    let process = index.processes.get(process.index());
    let locations = process.into_iter().flat_map(|process| process.locations);
    let threads = locations.filter(|&location| index.locations[location].is_thread());
    let before = shard.locations.start.index();
    let spans = threads.filter_map(|thread| shard.spans.get(thread.index().checked_sub(before)?));
    let spans = spans.map(|span| (span.first, span.last)).filter(|(first, last)| first <= last);
    match spans.reduce(|a, b| (a.0.min(b.0), a.1.max(b.1))) {
        Some((first, last)) => {
            let begin = process.and_then(|process| process.recorded.0).map_or(first, |begin| begin.min(first));
            begin.min(first - (last - first) / TOLERANCE).max(bounds.first)..=bounds.last
        }
        None => bounds.range(),
    }
}

impl Decoder<'_> {
    /// The times that records of the streams of the current process can have.
    pub(super) fn times_of_streams(&self) -> RangeInclusive<i64> {
        times_of_streams(self.index, &self.shard, self.state.process, self.bounds)
    }

    /// Sets the times that records of the current stream can have.
    pub(crate) fn limit_stream(&mut self, times: RangeInclusive<i64>) {
        if let Some(stream) = &mut self.state.stream {
            stream.times = times;
        }
    }

    /// Number of records of the current location that were left out.
    pub(crate) fn skipped(&self) -> u64 {
        self.state.stream.as_ref().map_or(0, |stream| stream.skipped)
    }

    /// Whether a record of the current stream is left out for its time.
    pub(super) fn leave_out(&mut self, time: i64) -> bool {
        let Some(stream) = &mut self.state.stream else { return false };
        if stream.times.contains(&time) {
            return false;
        }
        stream.skipped += 1;
        let at = self.state.now.max(*stream.times.start());
        self.note(DiagnosticKind::DeviceTime, at);
        true
    }

    /// The next work on the current stream was launched from a calling context: its call path begins there.
    pub(super) fn launch_from(&mut self, context: u32) {
        if self.state.stream.is_some() {
            self.state.root = self.path_of_context(context);
        }
    }

    /// The call path of a calling context, or none if the context is unknown.
    fn path_of_context(&mut self, context: u32) -> CallPathId {
        if let Some(&known) = self.launch_paths.get(&context) {
            return known;
        }
        let mut regions = Vec::new();
        let mut next = context;
        while let Some(node) = self.definitions.calling_context(next)
            && regions.len() <= self.definitions.calling_contexts.len()
        {
            regions.push(self.regions.key(node.region));
            next = node.parent;
        }
        let tree = &mut self.shard.tree;
        let path = regions.into_iter().rev().fold(CallPathId::NONE, |caller, region| tree.child(caller, region));
        self.launch_paths.insert(context, path);
        path
    }

    #[inline(never)]
    pub(super) fn enter_on_stream(&mut self, time: i64, region: u32) {
        if self.leave_out(time) {
            if let Some(stream) = &mut self.state.stream {
                stream.left_out.push(region);
            }
            self.state.root = CallPathId::NONE;
            return;
        }
        let key = self.regions.key(region);
        self.enter_key(time, key);
        let root = std::mem::replace(&mut self.state.root, CallPathId::NONE);
        if self.state.outer.len() > 1
            && let Some(stream) = &mut self.state.stream
        {
            stream.roots.insert(key, root);
        }
    }

    #[inline(never)]
    pub(super) fn leave_on_stream(&mut self, time: i64, region: u32) {
        let key = self.regions.key(region);
        let is_open = self.open_on_stream(key).is_some();
        let Some(stream) = &mut self.state.stream else { return };
        let is_outside = !stream.times.contains(&time);
        let left_out = stream.left_out.iter().rposition(|&open| open == region);
        if let Some(position) = left_out.filter(|_| is_outside || !is_open) {
            stream.left_out.swap_remove(position);
            stream.skipped += 1;
        } else if is_outside {
            self.leave_out(time);
            // When it ended is unknown.
            if let Some(instance) = self.open_on_stream(key) {
                self.shard.left_out.insert(instance);
                self.end_on_stream(self.state.now, key);
            }
        } else {
            self.end_on_stream(time, key);
        }
    }

    /// Reads a record of a copy; whether it is one.
    pub(super) fn copy(&mut self, time: i64, record: &Event<'_>) -> bool {
        let ((win, remote, bytes, id), is_put) = match *record {
            Event::RmaPut { win, remote, bytes, matching_id } => ((win, remote, bytes, matching_id), true),
            Event::RmaGet { win, remote, bytes, matching_id } => ((win, remote, bytes, matching_id), false),
            Event::RmaOpCompleteBlocking { matching_id, .. }
            | Event::RmaOpCompleteNonBlocking { matching_id, .. }
            | Event::RmaOpCompleteRemote { matching_id, .. } => {
                let stream = self.state.stream.as_mut();
                let open = stream.and_then(|stream| stream.copies.get_mut(&matching_id)?.pop_front());
                match open {
                    Some(key) => self.end_on_stream(time, key),
                    // A copy that completes at the other side as well has ended.
                    None => self.state.records += 1,
                }
                return true;
            }
            _ => return false,
        };
        let Some((key, remote)) = self.copy_region(time, win, remote, is_put) else {
            self.state.records += 1;
            return true;
        };
        self.enter_key(time, key);
        if let Some(instance) = self.instance() {
            self.shard.copies.push(Copied { instance, bytes, remote });
        }
        if let Some(stream) = &mut self.state.stream {
            stream.copies.entry(id).or_default().push_back(key);
        }
        true
    }

    /// The region of a copy, and the other side if it is known; `None` if the window is unknown.
    fn copy_region(&mut self, time: i64, win: u32, remote: u32, is_put: bool) -> Option<(RegionKey, LocationId)> {
        let comm = self.known_window(win).and_then(|(_, comm)| self.index.comms.get(comm.index()));
        let (Some(comm), Some(copies)) = (comm, self.regions.copies()) else {
            self.note(DiagnosticKind::UnknownCommunicator, time);
            return None;
        };
        let other = match &*comm.members {
            Members::Locations(members) => members.get(remote as usize).copied(),
            _ => None,
        };
        let Some(other) = other else {
            self.note(DiagnosticKind::UnknownPeer, time);
            return Some((if is_put { copies.to_host } else { copies.to_device }, LocationId::NONE));
        };
        let (here, there) = (&self.index.locations[self.state.index], &self.index.locations[other]);
        let key = match (there.is_stream(), is_put) {
            (false, true) => copies.to_host,
            (false, false) => copies.to_device,
            (true, _) if here.group == there.group => copies.on_device,
            (true, _) => copies.between_devices,
        };
        Some((key, other))
    }

    /// The kernel that a record about communication belongs to: others may have begun on the stream since. Of one that was left
    /// and entered again, its first instance.
    pub(super) fn communicating_kernel(&mut self) -> Option<InstanceId> {
        let is_one = |frame: &Frame| self.regions.class(frame.key).is_device_communication();
        let instance = if is_one(&self.state.top) {
            self.instance()
        } else {
            match self.state.outer.iter().rposition(is_one) {
                None => self.instance(),
                Some(depth) => {
                    let frame = &mut self.state.outer[depth];
                    if frame.instance.is_none() {
                        frame.instance = self.shard.instances.open(frame.enter);
                    }
                    Some(frame.instance)
                }
            }
        };
        let stream = self.state.stream.as_ref()?;
        instance.map(|instance| stream.first.get(&instance).copied().unwrap_or(instance))
    }

    /// The latest open instance of a region.
    fn open_on_stream(&self, key: RegionKey) -> Option<InstanceId> {
        let mut open =
            self.state.outer.iter().skip(1).chain([&self.state.top]).filter(|frame| frame.callpath.is_some());
        open.rfind(|frame| frame.key == key).map(|frame| frame.instance)
    }

    /// Leaves a region of a stream; those that were entered after it go on.
    fn end_on_stream(&mut self, time: i64, key: RegionKey) {
        let before = self.shard.events.len();
        self.end_region(time, key);
        // The path from which a kernel was launched does not run behind it.
        let events = &self.shard.events;
        if self.state.outer.is_empty()
            && events.len() > before
            && self.shard.tree.parent(events.callpath(events.len() as u32 - 1)).is_some()
        {
            self.shard.events.resume(CallPathId::NONE);
        }
    }

    fn end_region(&mut self, time: i64, key: RegionKey) {
        let depth = self.state.outer.iter().skip(1).rposition(|frame| frame.key == key);
        let above = depth.map_or(0, |depth| self.state.outer.len() - 1 - depth);
        if self.state.top.key == key || above == 0 || above > MOST_AT_ONCE {
            return self.leave_key(time, key);
        }
        let time = self.advance(time);
        let open: Vec<(RegionKey, InstanceId)> = (0..above)
            .map(|_| {
                let open = (self.state.top.key, self.state.top.instance);
                self.pop(time);
                open
            })
            .collect();
        self.pop(time);
        for (key, before) in open.into_iter().rev() {
            let stream = self.state.stream.as_ref();
            self.state.root = stream.and_then(|stream| stream.roots.get(&key).copied()).unwrap_or(CallPathId::NONE);
            self.push(time, key);
            self.state.root = CallPathId::NONE;
            if let Some(instance) = self.instance() {
                self.shard.continued.insert(before, instance);
                if let Some(stream) = &mut self.state.stream {
                    let first = stream.first.get(&before).copied().unwrap_or(before);
                    stream.first.insert(instance, first);
                }
            }
            // It is the same visit.
            let callpath = self.state.top.callpath;
            if let Some(total) = self.totals.get_mut(callpath.index()) {
                total.visits -= 1;
            }
        }
    }
}
