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
//! | counter | counter track below the thread or the process it belongs to |
//! | replayed queue, requests, bytes in flight of a process | counter track below the process |
//! | threads that wait for locks, tasks that are ready or run, collectives in flight | counter tracks below the process |
//! | ranks that wait, bytes in flight | two counter tracks of the whole run |
//!
//! Times are ns since the begin of the trace. A flow must begin before it ends; flows that do not, because of clock
//! errors, are omitted and counted. Slices that begin or end at the same time keep their order in the file, so
//! transfers and calls are written before the waits that they cause.
//!
//! The file is written as a stream; only flows are held in memory.

mod counters;
mod flows;
mod levels;
mod packets;
mod protobuf;
mod selection;
mod threads;
mod tracks;
mod written;

use std::io::Write;

use rayon::prelude::*;
use rustc_hash::FxHashMap;

use crate::Result;
use crate::analysis::Analysis;
use crate::ids::RegionKey;
use crate::queues::{Quantity, Queues};
use crate::severity::Metric;
use crate::trace::Trace;
use crate::trace::decode::Progress;
use flows::Flows;
use packets::{Name, Packets, Track};
pub use selection::Selection;
use selection::WrittenEvents;
use tracks::Writer;
pub use written::Written;

/// Replayed queues, and the display name of each level.
pub type Labelled<'a> = (&'a Queues, &'a dyn Fn(Quantity) -> String);

/// Writes a trace for Perfetto; `label` gives the display name of a wait state, `queues` are to have their steps.
pub fn write(
    analysis: &Analysis,
    label: &dyn Fn(Metric) -> String,
    queues: Option<Labelled>,
    selection: &Selection,
    out: impl Write,
    progress: &Progress,
) -> Result<Written> {
    let (trace, definitions) = (&analysis.trace, analysis.trace.records());
    let kept: Vec<WrittenEvents> = trace.par_shards().map(|shard| WrittenEvents::of(trace, shard, selection)).collect();
    let stretches = analysis.stretches();
    let transfers = analysis.transfers()?;
    let mut flows = Flows::new(trace, selection, &kept);
    flows.of_messages()?;
    flows.of_causes(&analysis.waits, &stretches);
    flows.of_transfers(&transfers);
    flows.of_tasks();
    flows.sort();
    let Flows { ends, caused, transferred, sent, mut written, .. } = flows;

    let regions: FxHashMap<RegionKey, Name> =
        trace.tree.nodes().iter().fold(FxHashMap::default(), |mut names, node| {
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
        first_id: first_id(trace),
        next_track: 1 + (trace.definitions.locations.len() + trace.definitions.processes.len() + 1) as Track,
        introduced: vec![false; trace.tree.len()],
        progress,
        written: &mut written,
    };
    writer.tracks()?;
    writer.transfers(&transfers, &transferred)?;
    for (s, shard) in trace.shards.iter().enumerate() {
        writer.calls(shard, &kept[s], &ends[s])?;
    }
    writer.waits(analysis, &stretches, &caused)?;
    writer.locks()?;
    writer.operations(&label(Metric::NonblockingHidden))?;
    if let Some(causes) = &analysis.causes {
        writer.critical_path(&causes.path)?;
    }
    writer.counters(&analysis.counters)?;
    if let Some((queues, label)) = queues {
        writer.queues(queues, label)?;
    }
    writer.lock_queues(analysis, &stretches)?;
    writer.task_levels()?;
    writer.ranks_waiting(analysis, &stretches)?;
    writer.bytes_in_flight(sent, &transfers)?;
    let bytes = writer.packets.finish()?;
    written.bytes = bytes;
    Ok(written)
}

/// A power of ten that is larger than every rank and every index of a location.
fn first_id(trace: &Trace) -> u32 {
    let ranks = trace.definitions.processes.iter().map(|process| process.rank);
    let most = ranks.chain([trace.definitions.locations.len() as u32]).max().unwrap_or(1);
    10u32.saturating_pow(most.max(1).ilog10() + 1)
}
