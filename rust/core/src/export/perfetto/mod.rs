//! A run as a trace for Perfetto, the browser of timelines.
//!
//! | in the run | in the file |
//! |---|---|
//! | process, location | process, thread |
//! | region instance | slice of the thread |
//! | wait state | slice of a track below the thread, as long as the waiting; more than one such track where waits overlap |
//! | message | flow from the call that sends to the call that completes the receive |
//! | cause of a wait | flow from the call that caused it to the slice of the wait |
//! | one-sided transfer | moment on a track of the source, and a flow to the call after which the data are there |
//! | critical path | slices of a track of their own |
//!
//! Times are ns since the begin of the trace. A flow needs its begin before its end: where clocks disagree so much that
//! it has not, it is left out and counted. Of slices that begin or end at the same time, what stands first in the file
//! comes first: so transfers and calls come before the waits that they cause.
//!
//! Everything goes into the file as it comes: only flows are held in memory.

mod packets;
mod protobuf;

use std::cmp::Reverse;
use std::io::Write;
use std::sync::atomic::Ordering;

use rayon::prelude::*;
use rustc_hash::FxHashMap;
use whywait_otf2::Definitions;

use crate::analysis::Analysis;
use crate::matching::messages;
use crate::per_shard::PerShard;
use crate::severity::Metric;
use crate::trace::columns::OperationKind;
use crate::trace::decode::Progress;
use crate::trace::{NO_CALLPATH, NONE, Shard, Trace};
use crate::transfers::Transfer;
use crate::waits::WaitState;
use crate::{Error, Result};
use packets::{Category, Key, Name, Packets, Track};

/// What is written.
#[derive(Clone, Debug)]
pub struct Selection {
    /// Of each process whether it is; all, and what belongs to none, if not given.
    pub processes: Option<Vec<bool>>,
    /// What lies in this time at least in part, ticks.
    pub window: (i64, i64),
    /// What takes so long at least, ticks: calls, waits, transfers, stretches of the critical path.
    pub shortest: i64,
}

/// What was written.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Written {
    /// Locations.
    pub threads: u64,
    /// Region instances.
    pub calls: u64,
    /// Wait states.
    pub wait_states: u64,
    /// Flows of messages.
    pub messages: u64,
    /// Flows from causes to waits.
    pub causes: u64,
    /// One-sided transfers.
    pub transfers: u64,
    /// Flows of one-sided transfers.
    pub transfer_flows: u64,
    /// Stretches of the critical path.
    pub critical_path: u64,
    /// Flows that would go backwards in time.
    pub backwards: u64,
    /// Bytes of the file.
    pub bytes: u64,
}

/// Writes a trace for Perfetto; `label` gives the name of a wait state that people read.
pub fn write(
    analysis: &Analysis,
    definitions: &Definitions,
    label: &dyn Fn(Metric) -> String,
    selection: &Selection,
    out: impl Write,
    progress: &Progress,
) -> Result<Written> {
    let trace = &analysis.trace;
    if trace.exchange.processes() > 1 {
        let text =
            "several processes share this analysis, each with only a part of the events: write timelines without MPI";
        return Err(Error::Usage(text.to_owned()));
    }
    let kept: Vec<Kept> = trace.shards.par_iter().map(|shard| Kept::of(trace, shard, selection)).collect();
    let begins = analysis.begins();
    let transfers = analysis.transfers()?;
    let mut flows = Flows::new(trace, selection, &kept);
    flows.of_messages()?;
    flows.of_causes(&analysis.waits, &begins);
    flows.of_transfers(&transfers);
    let Flows { starts, ends, caused, transferred, mut written, .. } = flows;

    let regions: FxHashMap<u32, Name> = trace.tree.nodes().iter().fold(FxHashMap::default(), |mut names, node| {
        let next = names.len() as u64 + 1;
        names.entry(node.region).or_insert(next);
        names
    });
    let mut named: Vec<(Name, String)> =
        regions.iter().map(|(&key, &name)| (name, trace.regions.name(definitions, key).to_owned())).collect();
    named.sort_unstable();
    let mut names: Vec<String> = named.into_iter().map(|(_, name)| name).collect();
    let first_metric = names.len() as Name + 1;
    names.extend(Metric::ALL.iter().map(|&metric| label(metric)));
    let mut writer = Writer {
        packets: Packets::new(out, &names)?,
        trace,
        definitions,
        selection,
        name_of: trace.tree.nodes().iter().map(|node| regions[&node.region]).collect(),
        names,
        first_metric,
        begin: trace.span().map_or(0, |(first, _)| first),
        first_id: 10u32.saturating_pow(trace.definitions.locations.len().max(1).ilog10() + 1),
        next_track: 1 + (trace.definitions.locations.len() + trace.definitions.processes.len() + 1) as Track,
        introduced: vec![false; trace.tree.len()],
        progress,
        written: &mut written,
    };
    writer.tracks()?;
    writer.transfers(&transfers, &transferred)?;
    for (s, shard) in trace.shards.iter().enumerate() {
        writer.calls(shard, &kept[s], &starts[s], &ends[s])?;
    }
    writer.waits(analysis, &begins, &caused)?;
    if let Some(causes) = &analysis.causes {
        writer.critical_path(&causes.path)?;
    }
    let bytes = writer.packets.finish()?;
    written.bytes = bytes;
    Ok(written)
}

impl Selection {
    fn has(&self, trace: &Trace, location: u32) -> bool {
        let process = trace.definitions.locations[location as usize].process;
        self.processes.as_ref().is_none_or(|chosen| chosen.get(process as usize).copied().unwrap_or(false))
    }

    fn lasts(&self, from: i64, to: i64) -> bool {
        from <= self.window.1 && to >= self.window.0 && to - from >= self.shortest
    }
}

/// Of each Enter and Leave of a shard, whether it is written.
struct Kept(Vec<bool>);

impl Kept {
    fn of(trace: &Trace, shard: &Shard, selection: &Selection) -> Self {
        let mut kept = vec![false; shard.events.len()];
        let mut open: Vec<u32> = Vec::new();
        for (i, location) in shard.locations.clone().enumerate() {
            if !selection.has(trace, location) {
                continue;
            }
            for position in shard.event_offsets[i]..shard.event_offsets[i + 1] {
                if !shard.events.is_leave(position) {
                    open.push(position);
                } else if let Some(enter) = open.pop() {
                    let time = |position: u32| shard.events.time[position as usize];
                    if selection.lasts(time(enter), time(position)) {
                        kept[enter as usize] = true;
                        kept[position as usize] = true;
                    }
                }
            }
            open.clear();
        }
        Self(kept)
    }

    fn has(&self, position: u32) -> bool {
        self.0.get(position as usize).copied().unwrap_or(false)
    }
}

/// An end of a flow at an Enter or Leave of a shard.
#[derive(Clone, Copy)]
struct End {
    position: u32,
    flow: u64,
    /// Bytes of a message.
    bytes: u64,
}

/// The flows between what is written.
struct Flows<'a> {
    trace: &'a Trace,
    selection: &'a Selection,
    kept: &'a [Kept],
    /// By shard.
    starts: Vec<Vec<End>>,
    ends: Vec<Vec<End>>,
    /// Of each wait the flow from its cause, or 0.
    caused: Vec<u64>,
    /// Of each transfer its flow, or 0.
    transferred: Vec<u64>,
    last: u64,
    written: Written,
}

impl<'a> Flows<'a> {
    fn new(trace: &'a Trace, selection: &'a Selection, kept: &'a [Kept]) -> Self {
        let none = || trace.shards.iter().map(|_| Vec::new()).collect();
        Self {
            trace,
            selection,
            kept,
            starts: none(),
            ends: none(),
            caused: Vec::new(),
            transferred: Vec::new(),
            last: 0,
            written: Written::default(),
        }
    }

    fn next(&mut self) -> u64 {
        self.last += 1;
        self.last
    }

    fn of_messages(&mut self) -> Result<()> {
        let (trace, kept) = (self.trace, self.kept);
        // Of each message its sender and the position of the Leave that completes the receive.
        let (found, _) = messages::match_all(trace, |index, shard, matches| {
            let receives = shard.receives.rows.iter().enumerate();
            let found = receives.filter_map(|(row, receive)| {
                let send = matches.send(row)?;
                let from = trace.shard_of[send.location as usize];
                let enter = trace.shards[from as usize].instances.enter[send.instance as usize];
                let leave = shard.instances.leave[receive.instance as usize];
                (kept[from as usize].has(enter) && kept[index].has(leave)).then_some((from, enter, send.bytes, leave))
            });
            found.collect::<Vec<_>>()
        })?;
        for (to, found) in found.into_iter().enumerate() {
            for (from, enter, bytes, leave) in found {
                let sent = trace.shards[from as usize].events.time[enter as usize];
                if sent >= trace.shards[to].events.time[leave as usize] {
                    self.written.backwards += 1;
                    continue;
                }
                let flow = self.next();
                self.starts[from as usize].push(End { position: enter, flow, bytes });
                self.ends[to].push(End { position: leave, flow, bytes });
                self.written.messages += 1;
            }
        }
        Ok(())
    }

    fn of_causes(&mut self, waits: &PerShard<WaitState>, begins: &[i64]) {
        self.caused = vec![0; waits.len()];
        for (number, (wait, &begin)) in waits.iter().zip(begins).enumerate() {
            if wait.cause_instance == NONE || !self.shows(wait, begin) {
                continue;
            }
            let from = self.trace.shard_of[wait.cause_location as usize] as usize;
            let enter = self.trace.shards[from].instances.enter[wait.cause_instance as usize];
            if !self.kept[from].has(enter) {
                continue;
            }
            if self.trace.shards[from].events.time[enter as usize] > begin + wait.waiting {
                self.written.backwards += 1;
                continue;
            }
            let flow = self.next();
            self.caused[number] = flow;
            self.starts[from].push(End { position: enter, flow, bytes: 0 });
            self.written.causes += 1;
        }
    }

    fn shows(&self, wait: &WaitState, begin: i64) -> bool {
        self.selection.has(self.trace, wait.location) && self.selection.lasts(begin, begin + wait.waiting)
    }

    fn of_transfers(&mut self, transfers: &[Transfer]) {
        self.transferred = vec![0; transfers.len()];
        for (number, transfer) in transfers.iter().enumerate() {
            let Some(end) = transfer.end else { continue };
            if !is_shown(self.trace, self.selection, transfer) {
                continue;
            }
            // A call of the destination, or one of the origin if that is where a target's data are known to be there.
            let places = [transfer.destination, transfer.origin.0];
            let call = places.into_iter().find_map(|place| Some((place, self.leave_at(place, end)?)));
            let Some((place, leave)) = call else { continue };
            let to = self.trace.shard_of[place as usize] as usize;
            if end < transfer.time {
                self.written.backwards += 1;
                continue;
            }
            let flow = self.next();
            self.transferred[number] = flow;
            self.ends[to].push(End { position: leave, flow, bytes: 0 });
            self.written.transfer_flows += 1;
        }
        for ends in self.starts.iter_mut().chain(&mut self.ends) {
            ends.par_sort_unstable_by_key(|end| (end.position, end.flow));
        }
    }

    /// The innermost call of a location that is written and is left at a time.
    fn leave_at(&self, location: u32, time: i64) -> Option<u32> {
        let shard = self.trace.shard(location);
        let kept = &self.kept[self.trace.shard_of[location as usize] as usize];
        let i = (location - shard.locations.start) as usize;
        let (start, end) = (shard.event_offsets[i], shard.event_offsets[i + 1]);
        let times = &shard.events.time[start as usize..end as usize];
        let first = start + times.partition_point(|&event| event < time) as u32;
        (first..end)
            .take_while(|&position| shard.events.time[position as usize] == time)
            .find(|&position| shard.events.is_leave(position) && kept.has(position))
    }
}

/// Whether a transfer is written: at its source.
fn is_shown(trace: &Trace, selection: &Selection, transfer: &Transfer) -> bool {
    let end = transfer.end.map_or(transfer.time, |end| end.max(transfer.time));
    selection.has(trace, transfer.source) && selection.lasts(transfer.time, end)
}

struct Writer<'a, W> {
    packets: Packets<W>,
    trace: &'a Trace,
    definitions: &'a Definitions,
    selection: &'a Selection,
    names: Vec<String>,
    /// Names of the regions of all call paths.
    name_of: Vec<Name>,
    first_metric: Name,
    begin: i64,
    /// Perfetto knows no process 0; of numbers that begin here the last digits are the index of the location.
    first_id: u32,
    next_track: Track,
    /// Call paths that arguments can have.
    introduced: Vec<bool>,
    progress: &'a Progress,
    written: &'a mut Written,
}

impl<W: Write> Writer<'_, W> {
    fn nanoseconds(&self, time: i64) -> u64 {
        let since = i128::from(time) - i128::from(self.begin);
        let resolution = i128::from(self.trace.resolution);
        let rounded = if resolution == 1_000_000_000 {
            since
        } else {
            (since * 1_000_000_000 + resolution / 2).div_euclid(resolution)
        };
        rounded.clamp(0, i128::from(u64::MAX)) as u64
    }

    fn seconds(&self, ticks: i64) -> f64 {
        ticks as f64 / self.trace.resolution as f64
    }

    fn thread_track(location: u32) -> Track {
        1 + Track::from(location)
    }

    fn new_track(&mut self, above: Option<Track>, name: &str) -> Result<Track> {
        let track = self.next_track;
        self.next_track += 1;
        self.packets.track(track, above, name)?;
        Ok(track)
    }

    fn rank_and_thread(&self, location: u32) -> (i64, i64) {
        let location = &self.trace.definitions.locations[location as usize];
        let process = self.trace.definitions.processes.get(location.process as usize);
        (process.map_or(-1, |process| i64::from(process.rank)), i64::from(location.thread))
    }

    fn tracks(&mut self) -> Result<()> {
        let definitions = &self.trace.definitions;
        let mut process = None;
        for (index, location) in (0u32..).zip(&definitions.locations) {
            if !self.selection.has(self.trace, index) {
                continue;
            }
            let number = (location.process as usize).min(definitions.processes.len());
            let track = 1 + (definitions.locations.len() + number) as Track;
            let id = self.first_id + definitions.processes.get(number).map_or(self.first_id, |one| one.locations.start);
            if process.replace(number) != Some(number) {
                let name = match definitions.processes.get(number) {
                    Some(process) => format!("Rank {}", process.rank),
                    None => "No process".to_owned(),
                };
                self.packets.process(track, id, &name, number as u32)?;
            }
            let name = self.definitions.string(location.name);
            self.packets.thread(Self::thread_track(index), (track, id), self.first_id + index, name)?;
            self.written.threads += 1;
        }
        Ok(())
    }

    /// Moments at the sources of one-sided transfers.
    fn transfers(&mut self, transfers: &[Transfer], flows: &[u64]) -> Result<()> {
        let mut tracks: FxHashMap<u32, Track> = FxHashMap::default();
        for (transfer, &flow) in transfers.iter().zip(flows) {
            if !is_shown(self.trace, self.selection, transfer) {
                continue;
            }
            let track = match tracks.get(&transfer.source) {
                Some(&track) => track,
                None => self.new_track(Some(Self::thread_track(transfer.source)), "One-sided transfers")?,
            };
            tracks.insert(transfer.source, track);
            let time = self.nanoseconds(transfer.time);
            let destination = self.rank_and_thread(transfer.destination).0;
            let window = &self.trace.definitions.windows[transfer.window as usize];
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

    /// The region instances of a shard, with the flows that begin or end at them.
    fn calls(&mut self, shard: &Shard, kept: &Kept, starts: &[End], ends: &[End]) -> Result<()> {
        let (mut starts, mut ends) = (Ends(starts), Ends(ends));
        for (i, location) in shard.locations.clone().enumerate() {
            self.look_up()?;
            let track = Self::thread_track(location);
            for position in shard.event_offsets[i]..shard.event_offsets[i + 1] {
                if !kept.has(position) {
                    continue;
                }
                let time = self.nanoseconds(shard.events.time[position as usize]);
                if shard.events.is_leave(position) {
                    let ends = ends.at(position);
                    self.packets.end(time, track, |event| {
                        for end in ends {
                            event.receives(end.flow);
                        }
                        let bytes = ends.iter().map(|end| end.bytes).fold(0, u64::saturating_add);
                        if bytes > 0 {
                            event.number(Key::BytesReceived, bytes as i64);
                        }
                    })?;
                } else {
                    let name = self.name_of[shard.events.callpath(position) as usize];
                    let starts = starts.at(position);
                    self.packets.begin(time, track, |event| {
                        event.named(name, Category::Region);
                        for start in starts {
                            event.starts(start.flow);
                        }
                        let bytes = starts.iter().map(|start| start.bytes).fold(0, u64::saturating_add);
                        if bytes > 0 {
                            event.number(Key::BytesSent, bytes as i64);
                        }
                    })?;
                    self.written.calls += 1;
                }
            }
            let events = u64::from(shard.event_offsets[i + 1] - shard.event_offsets[i]);
            self.progress.events.fetch_add(events, Ordering::Relaxed);
        }
        Ok(())
    }

    fn look_up(&self) -> Result<()> {
        if self.progress.is_cancelled() { Err(Error::Interrupted) } else { Ok(()) }
    }

    /// The number of a call path among the texts that arguments can have.
    fn callpath(&mut self, callpath: u32) -> Result<u64> {
        let number = u64::from(callpath) + 1;
        if !std::mem::replace(&mut self.introduced[callpath as usize], true) {
            let mut names = Vec::new();
            let mut at = callpath;
            while at != NO_CALLPATH {
                names.push(self.names[self.name_of[at as usize] as usize - 1].as_str());
                at = self.trace.tree.nodes()[at as usize].parent;
            }
            names.reverse();
            let text = names.join("/");
            self.packets.intern(number, &text)?;
        }
        Ok(number)
    }

    /// Wait states on tracks below their threads.
    fn waits(&mut self, analysis: &Analysis, begins: &[i64], flows: &[u64]) -> Result<()> {
        let mut order: Vec<usize> = Vec::new();
        let mut start = 0;
        let of_shards = analysis.waits.of_shards();
        for of_location in of_shards.flat_map(|waits| waits.chunk_by(|a, b| a.location == b.location)) {
            self.look_up()?;
            let location = of_location[0].location;
            let end = |number: usize| begins[number] + analysis.waits[number].waiting;
            if self.selection.has(self.trace, location) {
                order.clear();
                order.extend(start..start + of_location.len());
                order.retain(|&number| self.selection.lasts(begins[number], end(number)));
                order.sort_by_key(|&number| (begins[number], Reverse(end(number))));
                let above = Self::thread_track(location);
                let slices = order.iter().map(|&number| (number, begins[number], end(number)));
                self.nested("Wait states", Some(above), slices, |writer, time, track, number| match time {
                    Time::Begin(time) => writer.wait(analysis, number, time, track),
                    Time::End(time) => writer.packets.end(time, track, |event| {
                        if flows[number] != 0 {
                            event.receives(flows[number]);
                        }
                    }),
                })?;
                self.written.wait_states += order.len() as u64;
            }
            start += of_location.len();
        }
        Ok(())
    }

    fn wait(&mut self, analysis: &Analysis, number: usize, time: u64, track: Track) -> Result<()> {
        let wait = &analysis.waits[number];
        let callpath = self.trace.shard(wait.location).callpath(wait.instance);
        let callpath = self.callpath(callpath)?;
        let mut cause = None;
        if wait.cause_instance != NONE {
            let shard = self.trace.shard(wait.cause_location);
            let callpath = self.callpath(shard.callpath(wait.cause_instance))?;
            cause = Some((callpath, self.seconds(shard.enter(wait.cause_instance) - self.begin)));
        }
        let of_cause = (wait.cause_location != NONE).then(|| self.rank_and_thread(wait.cause_location));
        let explanation =
            analysis.causes.as_ref().and_then(|causes| causes.explanations.get(number).copied().flatten());
        let resolution = self.trace.resolution as f64;
        let name = self.first_metric + wait.kind as Name;
        let waiting = self.seconds(wait.waiting);
        self.packets.begin(time, track, |event| {
            event.named(name, Category::WaitState);
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

    fn critical_path(&mut self, path: &[crate::critical_path::Segment]) -> Result<()> {
        let is_shown = |segment: &crate::critical_path::Segment| {
            self.selection.has(self.trace, segment.location) && self.selection.lasts(segment.from, segment.to)
        };
        let mut order: Vec<usize> = (0..path.len()).filter(|&number| is_shown(&path[number])).collect();
        order.sort_by_key(|&number| (path[number].from, Reverse(path[number].to)));
        let slices = order.iter().map(|&number| (number, path[number].from, path[number].to));
        self.nested("Critical path", None, slices, |writer, time, track, number| {
            let segment = &path[number];
            let time = match time {
                Time::End(time) => return writer.packets.end(time, track, |_| {}),
                Time::Begin(time) => time,
            };
            let (rank, thread) = writer.rank_and_thread(segment.location);
            let mut name = format!("Rank {rank}");
            let mut callpath = None;
            if segment.callpath != NO_CALLPATH {
                let region = writer.name_of[segment.callpath as usize];
                name = name + ": " + &writer.names[region as usize - 1];
                callpath = Some(writer.callpath(segment.callpath)?);
            }
            let of_callpath = writer.seconds(segment.ticks);
            writer.packets.begin(time, track, |event| {
                event.called(&name, Category::CriticalPath);
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
        })?;
        self.written.critical_path += order.len() as u64;
        Ok(())
    }

    /// Slices, given with begin and end in the order of their begins, the longest first; on as few tracks as they need to
    /// lie side by side or one in the other.
    fn nested(
        &mut self,
        name: &str,
        above: Option<Track>,
        slices: impl Iterator<Item = (usize, i64, i64)>,
        mut write: impl FnMut(&mut Self, Time, Track, usize) -> Result<()>,
    ) -> Result<()> {
        let mut lanes: Vec<(Track, Vec<(usize, i64)>)> = Vec::new();
        for (number, begin, end) in slices {
            let mut free = None;
            for (lane, (track, open)) in lanes.iter_mut().enumerate() {
                while let Some(&(inner, ended)) = open.last()
                    && ended <= begin
                {
                    let time = self.nanoseconds(ended);
                    write(self, Time::End(time), *track, inner)?;
                    open.pop();
                }
                if open.last().is_none_or(|&(_, outer)| end <= outer) {
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
            let time = self.nanoseconds(begin);
            write(self, Time::Begin(time), *track, number)?;
            open.push((number, end));
        }
        for (track, mut open) in lanes {
            while let Some((number, ended)) = open.pop() {
                let time = self.nanoseconds(ended);
                write(self, Time::End(time), track, number)?;
            }
        }
        Ok(())
    }
}

/// Where a slice begins or ends, ns.
enum Time {
    Begin(u64),
    End(u64),
}

/// Ends of flows in the order of their positions.
struct Ends<'a>(&'a [End]);

impl<'a> Ends<'a> {
    /// Those at a position; positions are asked for in their order.
    #[inline]
    fn at(&mut self, position: u32) -> &'a [End] {
        let rest = self.0;
        let from = rest.iter().take_while(|end| end.position < position).count();
        let count = rest[from..].iter().take_while(|end| end.position == position).count();
        self.0 = &rest[from + count..];
        &rest[from..from + count]
    }
}
