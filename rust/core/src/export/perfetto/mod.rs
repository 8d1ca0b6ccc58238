//! Writes a run as a trace for Perfetto, a timeline viewer.
//!
//! | in the run | in the file |
//! |---|---|
//! | process, location | process, thread |
//! | region instance | slice of the thread |
//! | wait state | slice of a track below the thread, as long as the waiting; more than one such track where waits overlap |
//! | message | flow from the call that sends to the call that completes the receive |
//! | cause of a wait | flow from the call that caused it to the slice of the wait |
//! | one-sided transfer | instant on a track of the source, and a flow to the call after which the data have arrived |
//! | task that starts on another thread | flow from the call that creates it to the task |
//! | lock that threads wait for | slices of its owners, on the tracks *Locks* of the process |
//! | non-blocking collective operation | slice of the tracks *Non-blocking collectives* of the process, its hidden part within |
//! | critical path | slices of a track of their own |
//! | sample of the call path | instant on the track *Samples* below the thread |
//! | counter | counter track below the thread or the process it belongs to |
//! | replayed queue, requests, bytes in flight of a process | counter track below the process |
//! | threads that wait for locks, tasks that are ready or run, collectives in flight | counter tracks below the process |
//! | ranks that wait, bytes in flight | two counter tracks of the whole run |
//!
//! Times are ns since the begin of the trace. A flow must begin before it ends; flows that do not, because of clock
//! errors, are omitted and counted. Slices that begin or end at the same time keep their order in the file, so
//! transfers and calls are written before the waits that they cause.
//!
//! The file is written as a stream by the first process of the analysis; each makes the packets of its calls. Only flows
//! are held in memory.

mod counters;
mod flows;
mod levels;
mod packets;
mod protobuf;
mod samples;
mod threads;
mod tracks;
mod written;

use std::io::Write;
use std::sync::atomic::Ordering;

use rustc_hash::FxHashMap;

use crate::analysis::Analysis;
use crate::export::clock::Clock;
use crate::export::selection::{Selection, WrittenEvents};
use crate::ids::{LocationId, RegionKey};
use crate::parallel::iter::prelude::*;
use crate::queues::{Quantity, Queues};
use crate::severity::Metric;
use crate::trace::decode::Progress;
use crate::trace::{CallPath, Trace};
use crate::{Error, Result};
use flows::Flows;
use packets::{Name, Packets, Track};
use threads::{Threads, operations_of_all};
use tracks::{Piece, Writer};
pub use written::Written;

/// Events of a process of the analysis that are made into packets at a time.
const TURN: usize = 1 << 19;
/// Locations whose counters are read at a time.
const COUNTED: usize = 64;

/// Replayed queues, and the display name of each level.
pub type Labelled<'a> = (&'a Queues, &'a dyn Fn(Quantity) -> String);

/// Writes a trace for Perfetto to `out`, which the first process has; `label` gives the display name of a wait state,
/// `queues` are to have their steps. Returns what was written, at the first process. Collective.
pub fn write(
    analysis: &Analysis,
    label: &dyn Fn(Metric) -> String,
    queues: Option<Labelled>,
    selection: &Selection,
    out: Option<impl Write>,
    progress: &Progress,
) -> Result<Written> {
    let (trace, definitions) = (&analysis.trace, analysis.trace.records());
    let kept: Vec<WrittenEvents> = trace.par_shards().map(|shard| WrittenEvents::of(trace, shard, selection)).collect();
    let stretches = analysis.stretches()?;
    let transfers = analysis.transfers()?;
    let operations = operations_of_all(trace)?;
    let mut flows = Flows::new(trace, selection, &kept);
    flows.of_messages()?;
    flows.of_causes(analysis, &stretches)?;
    flows.of_transfers(&transfers)?;
    flows.of_tasks()?;
    flows.sort();
    let Flows { ends, caused, transferred, sent, mut written, .. } = flows;

    let callpaths: Vec<CallPath> = analysis.sampling.callpaths(&trace.tree).collect();
    let (names, name_of) = names(trace, &callpaths, label);
    let first_metric = (names.len() - Metric::ALL.len()) as Name + 1;
    let of_locations = trace.definitions.locations.len() + trace.definitions.processes.len() + 1;
    let mut writer = match out {
        None => None,
        Some(out) => Some(Writer {
            packets: Packets::new(out, &names)?,
            trace,
            definitions,
            selection,
            names,
            callpaths: &callpaths,
            name_of: &name_of,
            first_metric,
            clock: Clock::of(trace),
            first_id: first_id(trace),
            next_track: 1 + of_locations as Track,
            introduced: vec![false; callpaths.len()],
            progress,
            written: Written::default(),
        }),
    };
    if let Some(writer) = &mut writer {
        writer.tracks()?;
        writer.transfers(&transfers, &transferred)?;
    }
    let pieces = Piece::all(trace);
    let turns = turns(&pieces);
    let packets = |turn: usize| {
        if progress.is_cancelled() {
            return Err(Error::Interrupted);
        }
        let made = turns[turn].par_iter().map(|piece| piece.packets(trace, &name_of, &kept, &ends));
        let made: Vec<(Vec<u8>, u64)> = made.collect::<Result<_>>()?;
        let events: usize = turns[turn].iter().map(Piece::len).sum();
        progress.events.fetch_add(events as u64, Ordering::Relaxed);
        Ok(made)
    };
    trace.exchange.gather_in_turn(turns.len(), packets, |made| {
        let Some(writer) = &mut writer else { return Ok(()) };
        for (packets, calls) in made {
            writer.packets.append(&packets)?;
            writer.written.calls += calls;
        }
        Ok(())
    })?;
    let threads = trace.par_shards().flat_map(|shard| Threads::of_shard(trace, selection, shard));
    let threads = trace.exchange.gatherv(threads.collect::<Vec<_>>())?;
    if let Some(writer) = &mut writer {
        writer.waits(analysis, &stretches, &caused)?;
        writer.locks(&threads)?;
        writer.operations(&operations, &label(Metric::NonblockingHidden))?;
        if let Some(causes) = &analysis.causes {
            writer.critical_path(&causes.path)?;
        }
    }
    if analysis.sampling.count > 0 {
        let samples = analysis.sampling.rows(trace)?;
        if let Some(writer) = &mut writer {
            writer.samples(&samples)?;
        }
    }
    let kinds = &analysis.counters.kinds;
    let locations: Vec<LocationId> = trace.own_locations().map(LocationId::at).filter(|_| !kinds.is_empty()).collect();
    let locations: Vec<&[LocationId]> = locations.chunks(COUNTED).collect();
    let courses = |turn: usize| {
        let of_location = |&location: &LocationId| counters::of_location(trace, kinds, selection, location);
        Ok(locations[turn].par_iter().flat_map(of_location).collect::<Vec<_>>())
    };
    trace.exchange.gather_in_turn(locations.len(), courses, |courses| {
        let Some(writer) = &mut writer else { return Ok(()) };
        writer.look_up()?;
        courses.iter().try_for_each(|course| writer.counter(course, kinds))
    })?;
    if let Some(mut writer) = writer {
        if let Some((queues, label)) = queues {
            writer.queues(queues, label)?;
        }
        writer.lock_queues(analysis, &stretches)?;
        writer.task_levels(threads)?;
        writer.ranks_waiting(analysis, &stretches)?;
        writer.bytes_in_flight(sent, &transfers)?;
        written = written.plus(Written { bytes: writer.packets.finish()?, ..writer.written });
    }
    let all = trace.exchange.gather(written)?;
    Ok(all.into_iter().fold(Written::default(), Written::plus))
}

/// The interned names: regions, then metrics; and that of each call path.
fn names(trace: &Trace, callpaths: &[CallPath], label: &dyn Fn(Metric) -> String) -> (Vec<String>, Vec<Name>) {
    let regions: FxHashMap<RegionKey, Name> = callpaths.iter().fold(FxHashMap::default(), |mut names, node| {
        let next = names.len() as u64 + 1;
        names.entry(node.region).or_insert(next);
        names
    });
    let name = |&key: &RegionKey| trace.regions.name(trace.records(), key).to_owned();
    let mut named: Vec<(Name, String)> = regions.iter().map(|(key, &number)| (number, name(key))).collect();
    named.sort_unstable();
    let mut names: Vec<String> = named.into_iter().map(|(_, name)| name).collect();
    names.extend(Metric::ALL.iter().map(|&metric| label(metric)));
    (names, callpaths.iter().map(|node| regions[&node.region]).collect())
}

/// What is made and passed on at a time.
fn turns(mut pieces: &[Piece]) -> Vec<&[Piece]> {
    let mut turns = Vec::new();
    while !pieces.is_empty() {
        let mut events = 0;
        let fits = |piece: &&Piece| {
            events += piece.len();
            events <= TURN
        };
        let turn;
        (turn, pieces) = pieces.split_at(pieces.iter().take_while(fits).count().max(1));
        turns.push(turn);
    }
    turns
}

/// A power of ten that is larger than every rank and every index of a location.
fn first_id(trace: &Trace) -> u32 {
    let ranks = trace.definitions.processes.iter().map(|process| process.rank);
    let most = ranks.chain([trace.definitions.locations.len() as u32]).max().unwrap_or(1);
    10u32.saturating_pow(most.max(1).ilog10() + 1)
}
