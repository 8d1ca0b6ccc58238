//! Who waits for whom: arcs to the Leave of a call, or to a place between two events.
//!
//! *Rule R* (WHATIF 4.2): with measured sources x of a call [E, L] there is a remainder
//! `rho = L - max(E, min(x, L))`, and in the changed run `L' = max(E', x' + min(0, L - x)) + rho`. Here a call has its
//! `own` time and each arc a weight, `L' = max(E' + own, x' + weight)`: both are `rho`, unless a refinement says more
//! ([`super::messages`]). E is the time of the last event before L, which for a call without calls inside is its Enter.
//! One term equals L where all sources are as measured, and no other exceeds it: so a run without changes stays the same,
//! whatever the arcs.

use std::ops::Range;

use rayon::prelude::*;
use rustc_hash::FxHashMap;

use crate::ids::{InstanceId, LocationId};
use crate::trace::{NONE, Shard, Trace};
use crate::{Error, Result};

/// A moment whose new time the simulation finds: Enter and Leave of each region instance, then meetings and points.
pub(super) type Node = u32;

/// Stands for the begin of the own last segment.
pub(super) const OWN: Node = NONE;

/// No network of given numbers says what an arc takes.
pub(super) const MEASURED: i64 = i64::MIN;

/// The message of an arc belongs to no class of transfers.
pub(super) const NO_CLASS: u16 = u16::MAX;

/// An arc as it is found, before its weight is known.
#[derive(Clone, Copy, Debug)]
pub(super) struct Raw {
    /// What waits: a region instance, or a stop behind all instances.
    pub target: u32,
    /// What it waits for; [`OWN`] for itself.
    pub source: Node,
    /// Measured time from which a transfer runs, ticks: that of the source, or of the later of two.
    pub since: i64,
    /// Class of the transfer.
    pub class: u16,
    /// Whether the run has it.
    pub measured: bool,
    /// Whether the changed run has it.
    pub kept: bool,
    /// What it takes on a network of given numbers, ticks; [`MEASURED`] if the measured run says.
    pub cost: i64,
}

impl Raw {
    /// What a call takes by itself on a network of given numbers.
    pub(super) fn own(target: u32, cost: i64) -> Self {
        Self { measured: false, cost, ..Self::new(target, OWN, i64::MIN) }
    }

    /// An arc of both runs that rule R judges.
    pub(super) fn new(target: u32, source: Node, time: i64) -> Self {
        Self { target, source, since: time, class: NO_CLASS, measured: true, kept: true, cost: MEASURED }
    }
}

/// What happens at a stop.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum StopKind {
    /// Others wait for it.
    Point,
    /// It waits for others.
    Gate,
    /// A thread of a team begins: the distance to the fork stays, not that to what the thread did before.
    Begin,
}

/// A place between two events of a location.
#[derive(Clone, Copy, Debug)]
pub(super) struct Stop {
    /// The location.
    pub location: LocationId,
    /// Position of the event that follows it.
    pub position: u32,
    /// Measured time, ticks.
    pub time: i64,
    /// Number in the order in which stops were found.
    pub number: u32,
    /// What happens there.
    pub kind: StopKind,
}

/// Several that wait for the latest of others, or of the first few of them.
#[derive(Clone, Debug)]
pub(super) struct Meeting {
    /// Its members among those of all meetings.
    pub members: Range<u32>,
    /// Its checkpoints among those of all meetings.
    pub checkpoints: Range<u32>,
}

/// The graph of a run.
#[derive(Debug)]
pub(super) struct Graph {
    /// Number of the first instance of each shard, and of all instances.
    first: Vec<u32>,
    /// End of the arcs of each target, with a leading 0; the first of a target is its own time.
    offsets: Vec<u32>,
    sources: Vec<Node>,
    weights: Vec<i64>,
    /// Members of meetings, each in the order in which they count.
    pub members: Vec<Node>,
    /// How many members a checkpoint needs; its node follows those of instances in the same order.
    pub checkpoints: Vec<u32>,
    /// All meetings.
    pub meetings: Vec<Meeting>,
    /// The meeting of each checkpoint.
    pub meeting_of: Vec<u32>,
    /// Places between events, by location and time.
    stops: Vec<Stop>,
    /// End of the stops of each location, with a leading 0; empty without stops.
    stop_offsets: Vec<u32>,
    /// Node of each stop by its number, behind those of checkpoints.
    stop_nodes: u32,
    /// Instances by their Enters, of those locations that have them in another order.
    orders: FxHashMap<LocationId, Vec<InstanceId>>,
}

/// The region instances of a location by their Enters.
#[derive(Clone, Copy)]
pub(super) struct Order<'a> {
    first: InstanceId,
    sorted: Option<&'a [InstanceId]>,
}

impl Order<'_> {
    /// The instance with a number between those of the first and the last instance of the location.
    #[inline]
    pub(super) fn get(&self, number: InstanceId) -> InstanceId {
        self.sorted.map_or(number, |sorted| sorted[number.index() - self.first.index()])
    }
}

impl Graph {
    /// Number of a region instance of all shards.
    #[inline]
    pub(super) fn instance(&self, shard: usize, instance: InstanceId) -> u32 {
        self.first[shard] + instance.number()
    }

    /// The instances of a location by their Enters: a region becomes one when something in it asks for it, which may be
    /// after a call in it.
    pub(super) fn order(&self, shard: &Shard, location: LocationId) -> Order<'_> {
        let first = shard.instances_of(location).start;
        Order { first, sorted: self.orders.get(&location).map(Vec::as_slice) }
    }

    /// Number of nodes.
    pub(super) fn nodes(&self) -> usize {
        self.stop_nodes as usize + self.stops.len()
    }

    /// Node of a checkpoint, as position among all checkpoints, if it is one.
    #[inline]
    pub(super) fn checkpoint(&self, node: Node) -> Option<usize> {
        let position = (node as usize).checked_sub(2 * self.instances() as usize)?;
        (position < self.checkpoints.len()).then_some(position)
    }

    /// Node of a position among checkpoints.
    #[inline]
    pub(super) fn checkpoint_node(&self, position: usize) -> Node {
        2 * self.instances() + position as u32
    }

    /// Node of a stop.
    #[inline]
    pub(super) fn stop_node(&self, stop: &Stop) -> Node {
        self.stop_nodes + stop.number
    }

    fn instances(&self) -> u32 {
        self.first[self.first.len() - 1]
    }

    /// Positions of the arcs to a target; none if it waits for nobody. The first is its own time.
    #[inline]
    pub(super) fn arcs(&self, target: u32) -> Range<usize> {
        self.offsets[target as usize] as usize..self.offsets[target as usize + 1] as usize
    }

    /// Positions of the arcs to a stop.
    #[inline]
    pub(super) fn arcs_of_stop(&self, stop: &Stop) -> Range<usize> {
        self.arcs(self.instances() + stop.number)
    }

    /// Source and weight of an arc.
    #[inline]
    pub(super) fn arc(&self, arc: usize) -> (Node, i64) {
        (self.sources[arc], self.weights[arc])
    }

    /// Number of arcs, own times left out.
    pub(super) fn len(&self) -> usize {
        self.sources.iter().filter(|&&source| source != OWN).count()
    }

    /// The stops of a location.
    #[inline]
    pub(super) fn stops(&self, location: LocationId) -> &[Stop] {
        match self.stop_offsets.get(location.index() + 1) {
            Some(&end) => &self.stops[self.stop_offsets[location] as usize..end as usize],
            None => &[],
        }
    }

    /// Ticks of the segment before an event that are no waiting; `leave` is the number of the instance that the event
    /// leaves, if it is one that is remembered.
    pub(super) fn base(&self, shard: &Shard, stops: &[Stop], position: u32, leave: Option<u32>) -> i64 {
        let time = &shard.events.time;
        let mut since = time[position as usize - 1];
        let mut base = 0;
        for stop in stops {
            base += self.own_of_stop(stop, since);
            since = stop.time;
        }
        base + self.own(leave, time[position as usize] - since)
    }

    /// Ticks from the last place to a stop that are no waiting.
    #[inline]
    pub(super) fn own_of_stop(&self, stop: &Stop, since: i64) -> i64 {
        match self.arcs_of_stop(stop) {
            arcs if arcs.is_empty() => stop.time - since,
            arcs => self.weights[arcs.start],
        }
    }

    /// Ticks of the `length` before the Leave of an instance that are no waiting.
    #[inline]
    pub(super) fn own(&self, leave: Option<u32>, length: i64) -> i64 {
        match leave.map(|instance| self.arcs(instance)) {
            Some(arcs) if !arcs.is_empty() => self.weights[arcs.start],
            _ => length,
        }
    }
}

/// Collects what the graph is made of.
#[derive(Debug)]
pub(super) struct Builder {
    first: Vec<u32>,
    pub raws: Vec<Raw>,
    pub stops: Vec<Stop>,
    members: Vec<Node>,
    checkpoints: Vec<u32>,
    meetings: Vec<Meeting>,
    meeting_of: Vec<u32>,
}

impl Builder {
    /// Begins the graph of a trace.
    pub(super) fn new(trace: &Trace) -> Result<Self> {
        let mut first = vec![0u32];
        for shard in &trace.shards {
            let next = u64::from(first[first.len() - 1]) + shard.instances.enter.len() as u64;
            // Two nodes for each, and as many again for meetings and points.
            if next > u64::from(u32::MAX / 4) {
                return Err(Error::Trace("more than 2^30 calls: too many to simulate".into()));
            }
            first.push(next as u32);
        }
        Ok(Self {
            first,
            raws: Vec::new(),
            stops: Vec::new(),
            members: Vec::new(),
            checkpoints: Vec::new(),
            meetings: Vec::new(),
            meeting_of: Vec::new(),
        })
    }

    /// Number of all instances.
    pub(super) fn instances(&self) -> u32 {
        self.first[self.first.len() - 1]
    }

    /// Number of a region instance of a location.
    pub(super) fn instance(&self, trace: &Trace, (location, instance): (LocationId, InstanceId)) -> u32 {
        self.first[trace.position(location)] + instance.number()
    }

    /// Number of the first instance of a shard.
    pub(super) fn first_of(&self, shard: usize) -> u32 {
        self.first[shard]
    }

    /// Shard and region instance of a number.
    pub(super) fn place(&self, number: u32) -> (usize, InstanceId) {
        let shard = self.first.partition_point(|&first| first <= number) - 1;
        (shard, InstanceId::new(number - self.first[shard]))
    }

    /// The instance whose Enter or Leave a node is.
    pub(super) fn call_of(&self, node: Node) -> Option<u32> {
        (node < 2 * self.instances()).then_some(node / 2)
    }

    /// The stop that a target is.
    pub(super) fn stop_of(&self, target: u32) -> Option<&Stop> {
        self.stops.get(target.checked_sub(self.instances())? as usize)
    }

    /// A meeting of members in the order in which they count, each with its node and measured time; an arc to each of
    /// `waiting`, given with the number of members that it waits for, sorted by this number. `cost` is what the operation
    /// takes on a network of given numbers.
    pub(super) fn meet(&mut self, members: &[(Node, i64)], waiting: &[(u32, u32)], cost: i64) {
        let first_member = self.members.len() as u32;
        let first_checkpoint = self.checkpoints.len() as u32;
        let mut latest = i64::MIN;
        let mut counted = 0;
        for &(target, count) in waiting.iter().filter(|(_, count)| *count > 0) {
            for &(_, time) in &members[counted..count as usize] {
                latest = latest.max(time);
            }
            if counted < count as usize || self.checkpoints.len() as u32 == first_checkpoint {
                self.checkpoints.push(count);
                self.meeting_of.push(self.meetings.len() as u32);
            }
            counted = count as usize;
            let source = 2 * self.instances() + self.checkpoints.len() as u32 - 1;
            self.raws.push(Raw { cost, ..Raw::new(target, source, latest) });
        }
        if self.checkpoints.len() as u32 > first_checkpoint {
            self.members.extend(members[..counted].iter().map(|&(node, _)| node));
            self.meetings.push(Meeting {
                members: first_member..self.members.len() as u32,
                checkpoints: first_checkpoint..self.checkpoints.len() as u32,
            });
        }
    }

    /// A new stop; returns its number.
    pub(super) fn stop(&mut self, location: LocationId, position: u32, time: i64, kind: StopKind) -> u32 {
        let number = self.stops.len() as u32;
        self.stops.push(Stop { location, position, time, number, kind });
        number
    }

    /// What a stop is as a target of arcs.
    pub(super) fn stop_target(&self, number: u32) -> u32 {
        self.instances() + number
    }

    /// Brings the arcs of each target together.
    pub(super) fn sort(&mut self) {
        self.raws.par_sort_unstable_by_key(|raw| (raw.target, raw.source, raw.since));
    }

    /// The graph, once the arcs are sorted; `weigh` gives the weights of the arcs to a call from its arcs, the begin of its last segment and its
    /// Leave, own time first.
    pub(super) fn finish(mut self, trace: &Trace, weigh: &(impl Fn(&[Raw], i64, i64, &mut [i64]) + Sync)) -> Graph {
        // Arcs from stops were found before it was known how many checkpoints there are.
        let stop_nodes = 2 * self.instances() + self.checkpoints.len() as u32;
        self.stops.par_sort_unstable_by_key(|stop| (stop.location, stop.position, stop.time, stop.number));
        let mut stop_offsets = Vec::new();
        if !self.stops.is_empty() {
            stop_offsets = vec![0; trace.definitions.locations.len() + 1];
            for stop in &self.stops {
                stop_offsets[stop.location.index() + 1] += 1;
            }
            (1..stop_offsets.len()).for_each(|i| stop_offsets[i] += stop_offsets[i - 1]);
        }
        let mut since_of_stop = vec![(0, 0); self.stops.len()];
        for (i, stop) in self.stops.iter().enumerate() {
            let before = i.checked_sub(1).map(|i| &self.stops[i]);
            let before = before.filter(|before| (before.location, before.position) == (stop.location, stop.position));
            let shard = trace.shard(stop.location);
            let is_first = stop.position == shard.event_offsets[shard.local(stop.location)];
            let event = || if is_first { stop.time } else { shard.events.time[stop.position as usize - 1] };
            since_of_stop[stop.number as usize] = (before.map_or_else(event, |before| before.time), stop.time);
        }
        let begins: Vec<bool> = {
            let mut begins = vec![false; self.stops.len()];
            self.stops.iter().for_each(|stop| begins[stop.number as usize] = stop.kind == StopKind::Begin);
            begins
        };
        let targets = self.instances() as usize + self.stops.len();
        let mut offsets = vec![0u32; targets + 1];
        let groups: Vec<&[Raw]> = self.raws.chunk_by(|a, b| a.target == b.target).collect();
        for group in &groups {
            let arcs = group.iter().filter(|raw| raw.kept && raw.source != OWN).count();
            offsets[group[0].target as usize + 1] = arcs as u32 + 1;
        }
        (0..targets).for_each(|i| offsets[i + 1] += offsets[i]);
        let mut sources = Vec::with_capacity(offsets[targets] as usize);
        let mut weights = Vec::with_capacity(offsets[targets] as usize);
        let mut shard = 0;
        let mut of_group = Vec::new();
        for group in groups {
            let target = group[0].target;
            of_group.clear();
            of_group.resize(group.len() + 1, 0);
            if let Some(stop) = target.checked_sub(self.instances()) {
                let (since, time) = since_of_stop[stop as usize];
                if begins[stop as usize] {
                    group.iter().zip(&mut of_group[1..]).for_each(|(raw, weight)| *weight = time - raw.since);
                } else {
                    weigh(group, since, time, &mut of_group);
                }
            } else {
                while self.first[shard + 1] <= target {
                    shard += 1;
                }
                let of = &trace.shards[shard];
                let leave = of.instances.leave[(target - self.first[shard]) as usize] as usize;
                weigh(group, of.events.time[leave - 1], of.events.time[leave], &mut of_group);
            }
            sources.push(OWN);
            weights.push(of_group[0]);
            for (raw, weight) in group.iter().zip(&of_group[1..]).filter(|(raw, _)| raw.kept && raw.source != OWN) {
                let is_stop = raw.source >= STOP;
                sources.push(if is_stop { stop_nodes + (raw.source - STOP) } else { raw.source });
                weights.push(*weight);
            }
        }
        Graph {
            first: self.first,
            offsets,
            sources,
            weights,
            members: self.members.into_iter().map(|n| if n >= STOP { stop_nodes + (n - STOP) } else { n }).collect(),
            checkpoints: self.checkpoints,
            meetings: self.meetings,
            meeting_of: self.meeting_of,
            stops: self.stops,
            stop_offsets,
            stop_nodes,
            orders: orders(trace),
        }
    }
}

/// The instances by their Enters, of locations that have them in another order.
fn orders(trace: &Trace) -> FxHashMap<LocationId, Vec<InstanceId>> {
    let of_shard = |shard: &Shard| {
        let enter = &shard.instances.enter;
        let sorted = |location| {
            let instances = shard.instances_of(location);
            if enter[instances.range()].is_sorted() {
                return None;
            }
            let mut order: Vec<InstanceId> = instances.collect();
            order.sort_unstable_by_key(|&instance| enter[instance]);
            Some((location, order))
        };
        shard.locations.filter_map(sorted).collect::<Vec<_>>()
    };
    trace.shards.par_iter().flat_map_iter(of_shard).collect()
}

/// Stands for the node of the stop number 0, until it is known which one that is.
const STOP: Node = 3 << 30;

/// The node of the Enter of an instance.
pub(super) fn enter(instance: u32) -> Node {
    2 * instance
}

/// The node of the Leave of an instance.
pub(super) fn leave(instance: u32) -> Node {
    2 * instance + 1
}

/// The node of a stop.
pub(super) fn stop(number: u32) -> Node {
    STOP + number
}
