//! Tracks and their contents: processes and threads, calls, waits, transfers, the critical path.

use std::cmp::Reverse;
use std::io::Write;
use std::ops::Range;

use rustc_hash::FxHashMap;
use whywait_otf2::Definitions;

use super::flows::{End, Ends, is_shown};
use super::packets::{Category, Event, Key, Name, Packets, Track};
use super::written::Written;
use crate::analysis::Analysis;
use crate::export::clock::Clock;
use crate::export::selection::{Selection, WrittenEvents};
use crate::ids::{CallPathId, LocationId};
use crate::matching::transfers::Transfer;
use crate::trace::columns::OperationKind;
use crate::trace::decode::Progress;
use crate::trace::{CallPath, Shard, Trace};
use crate::{Error, Result};

/// Events of a location that are written together.
const PIECE: u32 = 1 << 15;

pub(super) struct Writer<'a, W> {
    pub(super) packets: Packets<W>,
    pub(super) trace: &'a Trace,
    pub(super) definitions: &'a Definitions,
    pub(super) selection: &'a Selection,
    pub(super) names: Vec<String>,
    /// All call paths, also those that only samples have, and the names of their regions.
    pub(super) callpaths: &'a [CallPath],
    pub(super) name_of: &'a [Name],
    pub(super) first_metric: Name,
    pub(super) clock: Clock,
    /// Offset of process ids, since Perfetto does not allow process 0; a power of ten, so that ids end with the rank.
    pub(super) first_id: u32,
    pub(super) next_track: Track,
    /// Call paths that have been interned for arguments.
    pub(super) introduced: Vec<bool>,
    pub(super) progress: &'a Progress,
    pub(super) written: Written,
}

/// Enters and Leaves of a location to be written.
pub(super) struct Piece {
    /// Position of the shard.
    shard: usize,
    location: LocationId,
    /// Positions.
    events: Range<u32>,
}

impl Piece {
    /// All events of this process of the analysis.
    pub(super) fn all(trace: &Trace) -> Vec<Self> {
        let of_shard = |(number, shard): (usize, &Shard)| {
            let mut pieces = Vec::new();
            for (i, location) in shard.locations.enumerate() {
                let mut rest = shard.event_offsets[i]..shard.event_offsets[i + 1];
                while !rest.is_empty() {
                    let end = rest.end.min(rest.start + PIECE);
                    pieces.push(Self { shard: number, location, events: rest.start..end });
                    rest.start = end;
                }
            }
            pieces
        };
        trace.shards.iter().enumerate().flat_map(of_shard).collect()
    }

    pub(super) fn len(&self) -> usize {
        self.events.len()
    }

    /// The packets of the region instances, with the flows that begin or end at them; and how many begin.
    pub(super) fn packets(
        &self,
        trace: &Trace,
        name_of: &[Name],
        kept: &[WrittenEvents],
        ends: &[Vec<End>],
    ) -> Result<(Vec<u8>, u64)> {
        let (shard, kept) = (&trace.shards[self.shard], &kept[self.shard]);
        let mut ends = Ends::from(&ends[self.shard], self.events.start);
        let (clock, track) = (Clock::of(trace), thread_track(self.location));
        let mut packets = Packets::without_names(Vec::new());
        let mut calls = 0;
        for position in self.events.clone().filter(|&position| kept.has(position)) {
            let time = clock.nanoseconds(shard.events.time[position as usize]);
            let ends = ends.at(position);
            let flows = |event: &mut Event| {
                let (mut sent, mut received) = (0u64, 0u64);
                for end in ends {
                    if end.starts {
                        event.starts(end.flow);
                        sent = sent.saturating_add(end.bytes);
                    } else {
                        event.receives(end.flow);
                        received = received.saturating_add(end.bytes);
                    }
                }
                for (key, bytes) in [(Key::BytesSent, sent), (Key::BytesReceived, received)] {
                    if bytes > 0 {
                        event.number(key, bytes as i64);
                    }
                }
            };
            if shard.events.is_leave(position) {
                packets.end(time, track, flows)?;
            } else {
                let name = name_of[shard.events.callpath(position)];
                packets.begin(time, track, |event| {
                    event.named(name, Category::Region);
                    flows(event);
                })?;
                calls += 1;
            }
        }
        Ok((packets.into_inner(), calls))
    }
}

/// The track of a location.
pub(super) fn thread_track(location: LocationId) -> Track {
    1 + Track::from(location.number())
}

impl<W: Write> Writer<'_, W> {
    pub(super) fn nanoseconds(&self, time: i64) -> u64 {
        self.clock.nanoseconds(time)
    }

    fn seconds(&self, ticks: i64) -> f64 {
        ticks as f64 / self.trace.resolution as f64
    }

    /// The track of a location's process; locations without a process share one.
    pub(super) fn process_track(&self, location: LocationId) -> Track {
        let definitions = &self.trace.definitions;
        let number = definitions.locations[location].process.index().min(definitions.processes.len());
        1 + (definitions.locations.len() + number) as Track
    }

    pub(super) fn new_track(&mut self, above: Option<Track>, name: &str) -> Result<Track> {
        let track = self.next_track;
        self.next_track += 1;
        self.packets.track(track, above, name)?;
        Ok(track)
    }

    pub(super) fn new_counter(&mut self, above: Option<Track>, named: (&str, &str), order: u32) -> Result<Track> {
        let track = self.next_track;
        self.next_track += 1;
        self.packets.counter_track(track, above, named, order)?;
        Ok(track)
    }

    pub(super) fn rank_and_thread(&self, location: LocationId) -> (i64, i64) {
        let location = &self.trace.definitions.locations[location];
        let process = self.trace.definitions.processes.get(location.process.index());
        (process.map_or(-1, |process| i64::from(process.rank)), i64::from(location.thread))
    }

    pub(super) fn tracks(&mut self) -> Result<()> {
        let definitions = &self.trace.definitions;
        let mut process = None;
        for (index, location) in definitions.locations.iter().enumerate() {
            let index = LocationId::at(index);
            if !self.selection.has(self.trace, index) {
                continue;
            }
            let number = location.process.index().min(definitions.processes.len());
            let track = self.process_track(index);
            // Locations without a process come last.
            let one = definitions.processes.get(number);
            let id = self.first_id + one.map_or(self.first_id, |one| one.rank);
            // The first thread has the id of its process, as in operating systems; others have ids of their own.
            let is_first = one.is_some_and(|one| one.locations.start == index);
            let thread = if is_first { id } else { self.first_id.saturating_mul(10).saturating_add(index.number()) };
            if process.replace(number) != Some(number) {
                let name = match definitions.processes.get(number) {
                    Some(process) => format!("Rank {}", process.rank),
                    None => "No process".to_owned(),
                };
                self.packets.process(track, id, &name, number as u32)?;
            }
            let name = self.definitions.string(location.name);
            self.packets.thread(thread_track(index), (track, id), thread, name)?;
            self.written.threads += 1;
        }
        Ok(())
    }

    /// Instants at the sources of one-sided transfers.
    pub(super) fn transfers(&mut self, transfers: &[Transfer], flows: &[u64]) -> Result<()> {
        let mut tracks: FxHashMap<LocationId, Track> = FxHashMap::default();
        for (transfer, &flow) in transfers.iter().zip(flows) {
            if !is_shown(self.trace, self.selection, transfer) {
                continue;
            }
            let track = match tracks.get(&transfer.source) {
                Some(&track) => track,
                None => self.new_track(Some(thread_track(transfer.source)), "One-sided transfers")?,
            };
            tracks.insert(transfer.source, track);
            let time = self.nanoseconds(transfer.time);
            let destination = self.rank_and_thread(transfer.destination).0;
            let window = &self.trace.definitions.windows[transfer.window];
            self.packets.instant(time, track, |event| {
                let name = match transfer.kind {
                    OperationKind::Put => "put",
                    OperationKind::Get => "get",
                    OperationKind::Atomic | OperationKind::FetchingAtomic => "atomic",
                };
                event.called(name, Category::OneSided);
                if flow != 0 {
                    event.starts(flow);
                }
                event.number(Key::Bytes, transfer.bytes as i64);
                event.number(Key::Window, i64::from(window.id));
                event.number(Key::Destination, destination);
            })?;
            self.written.transfers += 1;
        }
        Ok(())
    }

    pub(super) fn look_up(&self) -> Result<()> {
        if self.progress.is_cancelled() { Err(Error::Interrupted) } else { Ok(()) }
    }

    /// The number of a call path's interned text.
    pub(super) fn callpath(&mut self, callpath: CallPathId) -> Result<u64> {
        let number = u64::from(callpath.number()) + 1;
        if !std::mem::replace(&mut self.introduced[callpath], true) {
            let mut names = Vec::new();
            let mut at = callpath;
            while at.is_some() {
                names.push(self.names[self.name_of[at] as usize - 1].as_str());
                at = self.callpaths[at].parent;
            }
            names.reverse();
            let text = names.join("/");
            self.packets.intern(number, &text)?;
        }
        Ok(number)
    }

    /// The name of a slice of somebody in a call path, and the number of the call path's interned text; only the former
    /// without a call path.
    pub(super) fn in_region(&mut self, who: String, callpath: CallPathId) -> Result<(String, Option<u64>)> {
        if callpath.is_none() {
            return Ok((who, None));
        }
        let region = &self.names[self.name_of[callpath] as usize - 1];
        Ok((format!("{who}: {region}"), Some(self.callpath(callpath)?)))
    }

    /// Wait states on tracks below their threads, each in one or more stretches.
    pub(super) fn waits(
        &mut self,
        analysis: &Analysis,
        stretches: &[(usize, Range<i64>)],
        flows: &[u64],
    ) -> Result<()> {
        let location = |&(number, _): &(usize, Range<i64>)| analysis.waits[number].location;
        let is_last = |at: usize| stretches.get(at + 1).is_none_or(|next| next.0 != stretches[at].0);
        let mut order: Vec<usize> = Vec::new();
        let mut start = 0;
        for of_location in stretches.chunk_by(|a, b| location(a) == location(b)) {
            self.look_up()?;
            let location = location(&of_location[0]);
            if self.selection.has(self.trace, location) {
                let time = |at: usize| &stretches[at].1;
                order.clear();
                order.extend(start..start + of_location.len());
                order.retain(|&at| self.selection.lasts(time(at).start, time(at).end));
                order.sort_by_key(|&at| (time(at).start, Reverse(time(at).end)));
                let above = thread_track(location);
                let slices = order.iter().map(|&at| (at, time(at).start, time(at).end));
                let end = |event: &mut Event, at: usize| {
                    let flow = flows[stretches[at].0];
                    if flow != 0 && is_last(at) {
                        event.receives(flow);
                    }
                };
                self.slices(("Wait states", Some(above)), true, slices, end, |writer, time, track, at| {
                    writer.wait(analysis, stretches[at].0, time, track)
                })?;
                self.written.wait_states += order.iter().filter(|&&at| is_last(at)).count() as u64;
            }
            start += of_location.len();
        }
        Ok(())
    }

    fn wait(&mut self, analysis: &Analysis, number: usize, time: u64, track: Track) -> Result<()> {
        let wait = &analysis.waits[number];
        let callpath = self.callpath(analysis.call(wait).callpath)?;
        let mut cause = None;
        if let Some(call) = analysis.cause(wait) {
            cause = Some((self.callpath(call.callpath)?, self.seconds(call.enter - self.clock.begin)));
        }
        let of_cause = (wait.cause_location.is_some()).then(|| self.rank_and_thread(wait.cause_location));
        let explanation =
            analysis.causes.as_ref().and_then(|causes| causes.explanations.get(number).copied().flatten());
        let resolution = self.trace.resolution as f64;
        let name = self.first_metric + wait.kind as Name;
        let waiting = self.seconds(wait.waiting);
        self.packets.begin(time, track, |event| {
            event.named(name, Category::WaitState);
            event.like(Category::WaitState);
            event.text(Key::Metric, wait.kind.name());
            event.seconds(Key::Waiting, waiting);
            event.interned(Key::Callpath, callpath);
            if let Some((rank, thread)) = of_cause {
                event.number(Key::CauseRank, rank);
                event.number(Key::CauseThread, thread);
            }
            if let Some((callpath, time)) = cause {
                event.interned(Key::CauseCallpath, callpath);
                event.seconds(Key::CauseTime, time);
            }
            if let Some(last) = wait.last.name() {
                event.text(Key::WaitsForLast, last);
            }
            if let Some(why) = explanation {
                event.seconds(Key::Direct, (wait.waiting as f64 - why.indirect) / resolution);
                event.seconds(Key::Indirect, why.indirect / resolution);
                event.seconds(Key::Propagating, why.propagating / resolution);
                event.seconds(Key::Caused, why.caused / resolution);
            }
        })
    }

    pub(super) fn critical_path(&mut self, path: &[crate::critical_path::Segment]) -> Result<()> {
        let is_shown = |segment: &crate::critical_path::Segment| {
            self.selection.has(self.trace, segment.location) && self.selection.lasts(segment.from, segment.to)
        };
        let mut order: Vec<usize> = (0..path.len()).filter(|&number| is_shown(&path[number])).collect();
        order.sort_by_key(|&number| (path[number].from, Reverse(path[number].to)));
        let slices = order.iter().map(|&number| (number, path[number].from, path[number].to));
        self.slices(
            ("Critical path", None),
            true,
            slices,
            |_, _| {},
            |writer, time, track, number| {
                let segment = &path[number];
                let (rank, thread) = writer.rank_and_thread(segment.location);
                let (name, callpath) = writer.in_region(format!("Rank {rank}"), segment.callpath)?;
                let of_callpath = writer.seconds(segment.ticks);
                writer.packets.begin(time, track, |event| {
                    event.called(&name, Category::CriticalPath);
                    event.like(Category::CriticalPath);
                    event.number(Key::Rank, rank);
                    event.number(Key::Thread, thread);
                    if let Some(callpath) = callpath {
                        event.interned(Key::Callpath, callpath);
                        event.seconds(Key::CallpathTime, of_callpath);
                    }
                    if let Some(hop) = segment.hop {
                        event.text(Key::Hop, hop.name());
                    }
                })
            },
        )?;
        self.written.critical_path += order.len() as u64;
        Ok(())
    }

    /// Writes slices on as few tracks as possible, such that slices of a track are disjoint, or nested if they may be. They
    /// must be ordered by begin, the longest first. `begin` writes the begin of one, at its time in ns on its track; `end` says
    /// more of its end.
    pub(super) fn slices(
        &mut self,
        (name, above): (&str, Option<Track>),
        may_nest: bool,
        slices: impl Iterator<Item = (usize, i64, i64)>,
        end: impl Fn(&mut Event, usize),
        mut begin: impl FnMut(&mut Self, u64, Track, usize) -> Result<()>,
    ) -> Result<()> {
        let mut lanes: Vec<(Track, Vec<(usize, i64)>)> = Vec::new();
        for (number, from, to) in slices {
            let mut free = None;
            for (lane, (track, open)) in lanes.iter_mut().enumerate() {
                while let Some(&(inner, ended)) = open.last()
                    && ended <= from
                {
                    self.packets.end(self.nanoseconds(ended), *track, |event| end(event, inner))?;
                    open.pop();
                }
                if open.last().is_none_or(|&(_, outer)| may_nest && to <= outer) {
                    free = Some(lane);
                    break;
                }
            }
            let lane = if let Some(lane) = free {
                lane
            } else {
                lanes.push((self.new_track(above, name)?, Vec::new()));
                lanes.len() - 1
            };
            let (track, open) = &mut lanes[lane];
            begin(self, self.nanoseconds(from), *track, number)?;
            open.push((number, to));
        }
        for (track, mut open) in lanes {
            while let Some((number, ended)) = open.pop() {
                self.packets.end(self.nanoseconds(ended), track, |event| end(event, number))?;
            }
        }
        Ok(())
    }
}
