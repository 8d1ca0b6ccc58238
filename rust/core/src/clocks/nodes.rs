//! One clock per node: the processes of a node read one counter, so they share one function of clock offsets.
//!
//! On the node of rank 0, it is that of its lowest rank; elsewhere, that of the process whose offset in the middle of the
//! run is the lower median. Measurements that differ within a node contradict the machine.
//!
//! *Source*: clocks.md#nodes; S. Hunold, A. Carpen-Amarie: Hierarchical clock synchronization in MPI, IEEE Cluster 2018.

use bitcode::{Decode, Encode};
use whywait_otf2::clock::ClockCorrection;
use whywait_otf2::records::ClockOffset;

use crate::Result;
use crate::ids::{LocationId, ProcessId};
use crate::parallel::iter::prelude::*;
use crate::trace::Trace;

/// Clock offsets: local time and offset, ticks.
type Offsets = Vec<(u64, i64)>;

/// The clock offsets of all nodes whose processes differ.
#[derive(Clone, Debug, Default, Encode, Decode)]
pub(super) struct Nodes {
    /// Location ids with other offsets than before, and which of `functions` they get.
    pub(super) changed: Vec<(u64, u32)>,
    /// Clock offsets.
    functions: Vec<Offsets>,
    /// Number of nodes whose processes have different functions, of their processes, and of the functions.
    pub(super) differing: (u32, u32, u32),
    /// The clock offsets of each process.
    own: Vec<Offsets>,
    /// Measured offsets of each process at the begin and the end of the run, ticks.
    pub(super) measured: Vec<Option<(i64, i64)>>,
}

impl Nodes {
    /// Finds the offsets from the files of a run. `nodes` has the node of each process. Collective.
    pub(super) fn find(trace: &Trace, nodes: &[u32]) -> Result<Self> {
        let own: Vec<LocationId> =
            trace.shards.iter().flat_map(|shard| (0..shard.locations.len()).map(|i| shard.location(i))).collect();
        let own: Vec<Offsets> =
            own.par_iter().map(|&location| offsets(trace, trace.definitions.locations[location].id)).collect();
        let offsets = trace.exchange.gatherv(own)?;
        trace.exchange.broadcast(|| Self::choose(trace, nodes, &offsets))
    }

    /// Chooses offsets for each node; `offsets` has those of each location.
    fn choose(trace: &Trace, nodes: &[u32], offsets: &[Offsets]) -> Self {
        let (begin, end) = trace.span().unwrap_or((0, 0));
        let of_process = |process: ProcessId| offsets.get(trace.definitions.master(process).index());
        let mut by_node: Vec<(u32, Vec<ProcessId>)> = Vec::new();
        let mut order: Vec<ProcessId> = (0..nodes.len()).map(ProcessId::at).collect();
        order.sort_by_key(|&process| (nodes[process], process));
        for process in order {
            match by_node.last_mut() {
                Some((node, of_node)) if *node == nodes[process] => of_node.push(process),
                _ => by_node.push((nodes[process], vec![process])),
            }
        }
        let mut found = Self::default();
        let processes = || (0..nodes.len()).map(ProcessId::at);
        found.own = processes().map(|process| of_process(process).cloned().unwrap_or_default()).collect();
        let at = |offsets: &Offsets, time: i64| correction(offsets).cursor().correct(time as u64).wrapping_sub(time);
        found.measured = processes()
            .map(|process| {
                let offsets = of_process(process).filter(|offsets| offsets.len() > 1)?;
                Some((at(offsets, begin), at(offsets, end)))
            })
            .collect();
        for (_, processes) in by_node {
            let chosen = if processes[0].number() == 0 {
                processes[0]
            } else {
                let mut by_offset = processes.clone();
                let middle = begin + (end - begin) / 2;
                by_offset.sort_by_key(|&process| (of_process(process).map_or(0, |own| at(own, middle)), process));
                by_offset[(by_offset.len() - 1) / 2]
            };
            // One record alone corrects nothing.
            let function = of_process(chosen).filter(|offsets| offsets.len() > 1).cloned().unwrap_or_default();
            let wanted = correction(&function);
            let mut distinct: Vec<&Offsets> = Vec::new();
            for &process in &processes {
                let own = of_process(process).filter(|_| processes.len() > 1).unwrap_or(&function);
                if !distinct.iter().any(|other| correction(other) == correction(own)) {
                    distinct.push(own);
                }
                for location in trace.definitions.processes[process].locations {
                    if correction(&offsets[location.index()]) != wanted {
                        found.changed.push((trace.definitions.locations[location].id, found.functions.len() as u32));
                    }
                }
            }
            if distinct.len() > 1 {
                let (count, members, functions) = found.differing;
                found.differing = (count + 1, members + processes.len() as u32, functions + distinct.len() as u32);
            }
            found.functions.push(function);
        }
        found
    }

    /// What sharing offsets adds to a process's clock at some times as they are read, ticks; nothing if it keeps its own.
    pub(super) fn moves(&self, trace: &Trace, process: ProcessId, times: &[i64]) -> Option<Vec<i64>> {
        let master = trace.definitions.processes[process].locations.range().start;
        let id = trace.definitions.locations.get(master)?.id;
        let (_, function) = self.changed.iter().find(|(location, _)| *location == id)?;
        let (own, shared) = (correction(&self.own[process.index()]), correction(&self.functions[*function as usize]));
        // Damaged offsets may be of any size.
        let added = |of: &ClockCorrection, time: i64| of.cursor().correct(time.max(0) as u64).wrapping_sub(time);
        // Before its own offset is added, the time is earlier; one step suffices, because offsets change slowly.
        let recorded = |time: i64| time.saturating_sub(added(&own, time));
        let moved = |time: i64| added(&shared, time).saturating_sub(added(&own, time));
        Some(times.iter().map(|&time| moved(recorded(time))).collect())
    }

    /// The clock offsets that replace those of each location.
    pub(super) fn offsets(&self) -> impl Iterator<Item = (u64, Vec<ClockOffset>)> {
        self.changed.iter().map(|&(location, function)| (location, records(&self.functions[function as usize])))
    }
}

fn offsets(trace: &Trace, location: u64) -> Offsets {
    let events = trace.recording().events(location);
    events.map_or_else(|_| Vec::new(), |events| events.clock_offsets().iter().map(ClockOffset::point).collect())
}

fn records(offsets: &Offsets) -> Vec<ClockOffset> {
    let record = |&(time, offset): &(u64, i64)| ClockOffset { time, offset, standard_deviation: 0.0 };
    offsets.iter().map(record).collect()
}

fn correction(offsets: &Offsets) -> ClockCorrection {
    ClockCorrection::new(offsets.iter().copied())
}
