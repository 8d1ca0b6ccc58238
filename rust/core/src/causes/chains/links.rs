//! What delayed the begin of each kernel that communicates, back to the kernel before it on its chain that does: its link.
//!
//! Where a host runs ahead of its device and never waits, all links lead to the begin of the program. So what links have in
//! common is kept once: they are paths in a forest of segments ([`super::segments`]).

use std::ops::Range;

use bitcode::{Decode, Encode};
use rustc_hash::FxHashMap;

use super::places::Rank;
use super::segments::{Forest, Link, Segment};
use crate::ids::{CallPathId, CommId, InstanceId, LocationId};
use crate::parallel::iter::prelude::*;
use crate::parallel::per_shard::PerShard;
use crate::severity::Metric;
use crate::trace::{Shard, Trace};
use crate::waits::WaitState;
use crate::waits::device::{DevicePart, Devices, Kernel};

/// An operation of which each member needs all others.
pub(super) type Tie = (CommId, u32);

/// A kernel that communicates.
#[derive(Clone, Debug, Encode, Decode)]
pub(super) struct Node {
    /// Location and region instance.
    pub kernel: (LocationId, InstanceId),
    pub callpath: CallPathId,
    /// Begin and end, ticks.
    pub begin: i64,
    pub end: i64,
    /// From its begin until all that it needs had begun, and what of this is exposed, ticks.
    pub waiting: i64,
    pub exposed: i64,
    /// The metric of its wait; `None` if it is no part of an operation.
    pub kind: Option<Metric>,
    /// What it waits for.
    pub cause: (LocationId, InstanceId),
    pub tie: Option<Tie>,
    pub link: Link,
}

/// Nodes and their links.
#[derive(Debug, Default, Encode, Decode)]
pub(super) struct Links {
    pub nodes: Vec<Node>,
    pub segments: Vec<Segment>,
}

impl Links {
    /// Adds those of others.
    pub(super) fn append(&mut self, others: Self) {
        let first = self.segments.len() as u32;
        self.nodes.extend(others.nodes.into_iter().map(|mut node| {
            node.link.segment += first;
            node
        }));
        self.segments.extend(others.segments.into_iter().map(|segment| segment.moved(first)));
    }
}

/// The nodes of the shards of this process, and their links.
pub(super) fn of_shards(trace: &Trace, devices: &[Devices], waits: &PerShard<WaitState>) -> Links {
    let pairs: Vec<(&Shard, &Devices, &[WaitState])> = trace
        .shards
        .iter()
        .zip(devices)
        .zip(0..)
        .map(|((shard, devices), i)| (shard, devices, waits.of(i).1))
        .collect();
    let of_shards = pairs.par_iter().map(|&(shard, devices, waits)| {
        let parts: FxHashMap<_, &DevicePart> = devices.parts.iter().map(|part| (part.kernel, part)).collect();
        let process = |kernel: &Kernel| trace.definitions.locations[kernel.run.location].process;
        let of_processes = devices.kernels.chunk_by(|a, b| process(a) == process(b));
        let mut links = Links::default();
        let mut first = 0;
        for kernels in of_processes {
            let numbers = first..first + kernels.len() as u32;
            first = numbers.end;
            if kernels.iter().any(|kernel| kernel.communicates) {
                let rank = Rank::new(trace, shard, (devices, waits), kernels);
                links.append(of_rank(&rank, numbers, &parts));
            }
        }
        links
    });
    let mut all = Links::default();
    of_shards.collect::<Vec<_>>().into_iter().for_each(|links| all.append(links));
    all
}

/// The nodes and links of a rank, whose kernels have these numbers.
fn of_rank(rank: &Rank, numbers: Range<u32>, parts: &FxHashMap<(LocationId, InstanceId), &DevicePart>) -> Links {
    let mut forest = Forest::default();
    let communicating = numbers.filter(|&number| rank.kernel(number).communicates);
    let found: Vec<(u32, u32)> = communicating.map(|number| (number, forest.chain(rank, number))).collect();
    let (segments, links) = forest.finish(found.iter().map(|&(_, place)| place), |before| parts.contains_key(&before));
    let nodes = found.iter().zip(links).map(|(&(number, _), link)| {
        let run = &rank.kernel(number).run;
        let key = (run.location, run.instance);
        let part = parts.get(&key);
        Node {
            kernel: key,
            callpath: run.callpath,
            begin: run.enter,
            end: run.leave,
            waiting: part.map_or(0, |part| part.waiting),
            exposed: part.map_or(0, |part| part.exposed),
            kind: part.map(|part| part.kind),
            cause: part.map_or((LocationId::NONE, InstanceId::NONE), |part| part.cause),
            tie: part.and_then(|part| part.tie),
            link,
        }
    });
    Links { nodes: nodes.collect(), segments }
}
