//! Where samples belong: between which events, and below which call path.
//!
//! A sample belongs to the *recorded* call path: what the events say was running. Its own is the *sampled* one, usually below
//! that. Sampled call paths without events continue the call tree, which itself stays as the events made it.

use std::ops::AddAssign;

use rustc_hash::FxHashMap;

use crate::Result;
use crate::ids::{CallPathId, RegionKey};
use crate::parallel::iter::prelude::*;
use crate::trace::call_samples::CallSample;
use crate::trace::regions::Regions;
use crate::trace::{CallPath, CallTree, Shard, Trace};

/// Where a sample belongs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Placed {
    /// The call path that the events say was running; none outside of all regions.
    pub recorded: CallPathId,
    /// The call path that the sample saw, which may be one that only samples have.
    pub sampled: CallPathId,
    /// The event at the end of its interval; one past the last of the location after all.
    pub event: u32,
}

/// The samples of a run.
#[derive(Debug, Default)]
pub struct Sampling {
    /// Call paths that only samples have, in the order of their first occurrence; their numbers follow those of the
    /// tree, and callers come first.
    pub nodes: Vec<CallPath>,
    /// For each shard of this process and each of its samples.
    pub placed: Vec<Vec<Placed>>,
    /// Number of samples of all processes.
    pub count: u64,
}

impl Sampling {
    /// Sums over sampled call paths and what they call, by call path, for those below a recorded one. `parts` are what the
    /// sampled call paths have themselves.
    pub(super) fn inclusive<T: AddAssign + Default + Copy>(
        &self,
        tree: &CallTree,
        recorded: CallPathId,
        parts: impl Iterator<Item = (CallPathId, T)>,
    ) -> Vec<(CallPathId, T)> {
        let mut sums: FxHashMap<CallPathId, T> = FxHashMap::default();
        for (mut callpath, part) in parts {
            // What contains the recorded call path as well stands for nothing but itself.
            loop {
                *sums.entry(callpath).or_default() += part;
                let around = self.parent(tree, callpath);
                if contains(tree, callpath, recorded) || around.is_none() || contains(tree, around, recorded) {
                    break;
                }
                callpath = around;
            }
        }
        let mut sums: Vec<(CallPathId, T)> = sums.into_iter().collect();
        sums.sort_unstable_by_key(|&(callpath, _)| callpath);
        sums
    }

    fn parent(&self, tree: &CallTree, callpath: CallPathId) -> CallPathId {
        match callpath.index().checked_sub(tree.len()) {
            Some(number) => self.nodes[number].parent,
            None => tree.parent(callpath),
        }
    }

    /// Places all samples. Collective.
    pub(crate) fn find(trace: &Trace) -> Result<Self> {
        let found: Vec<OfShard<'_>> = trace.par_shards().map(|shard| OfShard::find(trace, shard)).collect();
        let mut own = Extension::new(trace);
        let mut placed: Vec<(Vec<Placed>, Vec<CallPathId>)> = Vec::with_capacity(found.len());
        for of_shard in found {
            let here = own.merge(&of_shard.extension.nodes);
            placed.push((of_shard.placed, here));
        }
        let of_processes = trace.exchange.allgather(own.nodes)?;
        let mut all = Extension::new(trace);
        let here: Vec<Vec<CallPathId>> = of_processes.iter().map(|nodes| all.merge(nodes)).collect();
        let here = &here[trace.exchange.rank()];
        let recorded = trace.tree.len();
        let placed = placed.into_par_iter().map(|(mut placed, in_process)| {
            for sample in &mut placed {
                if let Some(number) = sample.sampled.index().checked_sub(recorded)
                    && sample.sampled.is_some()
                {
                    sample.sampled = here[in_process[number].index() - recorded];
                }
            }
            placed
        });
        let placed: Vec<Vec<Placed>> = placed.collect();
        let own: u64 = placed.iter().map(|placed| placed.len() as u64).sum();
        let count = trace.exchange.allgather(own)?.into_iter().sum();
        Ok(Self { nodes: all.nodes, placed, count })
    }
}

/// Whether a recorded call path is another one or lies below it.
fn contains(tree: &CallTree, callpath: CallPathId, mut recorded: CallPathId) -> bool {
    if callpath.index() >= tree.len() {
        return false;
    }
    while recorded.is_some() && recorded != callpath {
        recorded = tree.parent(recorded);
    }
    recorded.is_some()
}

/// Call paths beyond those of the tree.
struct Extension<'a> {
    tree: &'a CallTree,
    nodes: Vec<CallPath>,
    children: FxHashMap<CallPath, CallPathId>,
}

impl<'a> Extension<'a> {
    fn new(trace: &'a Trace) -> Self {
        Self { tree: &trace.tree, nodes: Vec::new(), children: FxHashMap::default() }
    }

    fn child(&mut self, node: CallPath) -> CallPathId {
        if let Some(known) = self.tree.known_child(node.parent, node.region) {
            return known;
        }
        let next = CallPathId::at(self.tree.len() + self.nodes.len());
        let child = *self.children.entry(node).or_insert(next);
        if child == next {
            self.nodes.push(node);
        }
        child
    }

    /// Adds the call paths of another extension; returns the number here of each.
    fn merge(&mut self, other: &[CallPath]) -> Vec<CallPathId> {
        let mut here: Vec<CallPathId> = Vec::with_capacity(other.len());
        for node in other {
            let parent = match node.parent.index().checked_sub(self.tree.len()) {
                Some(number) if node.parent.is_some() => here[number],
                _ => node.parent,
            };
            here.push(self.child(CallPath { parent, ..*node }));
        }
        here
    }
}

/// The samples of a shard.
struct OfShard<'a> {
    extension: Extension<'a>,
    placed: Vec<Placed>,
}

impl<'a> OfShard<'a> {
    fn find(trace: &'a Trace, shard: &Shard) -> Self {
        let mut found = Self { extension: Extension::new(trace), placed: Vec::new() };
        let mut known: FxHashMap<(CallPathId, u32, u32), CallPathId> = FxHashMap::default();
        let mut path = Vec::new();
        for i in 0..shard.locations.len() {
            let samples = shard.call_samples.of(i);
            let has_events = shard.has_calls(shard.location(i));
            let mut running = Running::new(trace, shard, i);
            for sample in samples {
                let recorded = running.at(sample);
                if recorded.is_none() && has_events {
                    // Before the first call or after the last one.
                    found.placed.push(Placed { recorded, sampled: recorded, event: running.next });
                    continue;
                }
                let sampled = *known.entry((recorded, running.depth, sample.context)).or_insert_with(|| {
                    found.extension.path(trace, (recorded, running.depth), sample.context, &mut path)
                });
                found.placed.push(Placed { recorded, sampled, event: running.next });
            }
        }
        found
    }
}

impl Extension<'_> {
    /// The call path of a calling context on a location where the innermost `depth` calls of the recorded one are its own.
    fn path(
        &mut self,
        trace: &Trace,
        (recorded, depth): (CallPathId, u32),
        context: u32,
        path: &mut Vec<RegionKey>,
    ) -> CallPathId {
        let definitions = trace.records();
        path.clear();
        let mut next = context;
        while let Some(node) = definitions.calling_context(next) {
            path.push(trace.regions.key(node.region));
            // A longer path than there are contexts is a circle.
            if path.len() > definitions.calling_contexts.len() {
                return recorded;
            }
            next = node.parent;
        }
        // Calling contexts contain neither the program region at the root nor the calls of the thread that forked this one.
        let mut root = recorded;
        for _ in 0..depth {
            if root.is_none() || Regions::is_program(trace.tree.region(root)) {
                break;
            }
            root = trace.tree.parent(root);
        }
        path.iter().rev().fold(root, |parent, &region| self.child(CallPath { parent, region }))
    }
}

/// What runs on a location, followed from event to event.
pub(super) struct Running<'a> {
    trace: &'a Trace,
    shard: &'a Shard,
    /// The first event of the location, the next one, and the one after the last.
    first: u32,
    next: u32,
    end: u32,
    /// Number of open calls.
    depth: u32,
}

impl<'a> Running<'a> {
    pub(super) fn new(trace: &'a Trace, shard: &'a Shard, i: usize) -> Self {
        let (first, end) = (shard.event_offsets[i], shard.event_offsets[i + 1]);
        Self { trace, shard, first, next: first, end, depth: 0 }
    }

    /// Passes the next event; returns it.
    pub(super) fn advance(&mut self) -> u32 {
        let leaves = self.shard.events.is_leave(self.next);
        self.depth = if leaves { self.depth.saturating_sub(1) } else { self.depth + 1 };
        self.next += 1;
        self.next - 1
    }

    /// The call path that runs now.
    pub(super) fn callpath(&self) -> CallPathId {
        if self.next == self.first {
            return CallPathId::NONE;
        }
        self.shard.runs_after(&self.trace.tree, self.next - 1, self.depth)
    }

    /// The call path that runs at a sample, which is after that of the call before.
    pub(super) fn at(&mut self, sample: &CallSample) -> CallPathId {
        while self.is_before(sample) {
            self.advance();
        }
        self.callpath()
    }

    /// Whether the next event is before a sample: callers are left at their last event once the next one is read.
    pub(super) fn is_before(&self, sample: &CallSample) -> bool {
        let next = self.next;
        next < self.end && (next < sample.events || self.shard.events.time[next as usize] < sample.time)
    }
}
