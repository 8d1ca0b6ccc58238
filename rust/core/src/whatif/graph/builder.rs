//! Collects arcs, and builds the graph from them.
//!
//! *Rule R* (whatif.md#how-it-works): with measured sources x of a call [E, L] there is a remainder `rho = L - max(E,
//! min(x, L))`, and in the changed run `L' = max(E', x' + min(0, L - x)) + rho`. Here a call has its `own` time and
//! each arc a weight, `L' = max(E' + own, x' + weight)`: both are `rho`, unless a refinement says more
//! ([`crate::whatif::arcs::messages`]). E is the time of the last event before L, which for a call without calls inside
//! is its Enter. One term equals L where all sources are as measured, and no other exceeds it: so a run without changes
//! stays the same, whatever the arcs.

use std::ops::Range;
use std::sync::OnceLock;

use bitcode::{Decode, Encode};
use rayon::slice::ParallelSliceMut as _;
use rustc_hash::FxHashMap;

use super::border::Border;
use super::steps::{Graph, Kind, Meeting, Step};
use crate::ids::{InstanceId, LocationId, RegionKey};
use crate::parallel::exchange::Exchange;
use crate::parallel::iter::prelude::*;
use crate::trace::{NONE, Shard, Trace};
use crate::{Error, Result};

/// An item whose new time the simulation computes: Enter and Leave of each region instance, then meetings and stops.
/// Those of all processes of the analysis are numbered through, stops when all are known.
pub(in crate::whatif) type Node = u32;

/// Stands for the begin of the target's own last segment.
pub(in crate::whatif) const OWN: Node = NONE;

/// The measured run determines the cost of an arc.
pub(in crate::whatif) const MEASURED: i64 = i64::MIN;

/// The message of an arc belongs to no class of transfers.
pub(in crate::whatif) const NO_CLASS: u16 = u16::MAX;

/// An arc before its weight is known.
#[derive(Clone, Copy, Debug, Encode, Decode)]
pub(in crate::whatif) struct Raw {
    /// The waiting side: a region instance, or a stop (numbered after all instances).
    pub target: u32,
    /// The node it waits for; [`OWN`] for its own time.
    pub source: Node,
    /// Measured begin of the transfer, ticks: the time of the source, or of the later of two.
    pub since: i64,
    /// Class of the transfer.
    pub class: u16,
    /// For the arc from a message's send, the region of the call that it ends; otherwise none.
    pub region: RegionKey,
    /// Whether the run has it.
    pub measured: bool,
    /// Whether the changed run has it.
    pub kept: bool,
    /// Its cost on a given network, ticks; [`MEASURED`] to use the measured run.
    pub cost: i64,
}

impl Raw {
    /// The own time of a call on a given network.
    pub(in crate::whatif) fn own(target: u32, cost: i64) -> Self {
        Self { measured: false, cost, ..Self::new(target, OWN, i64::MIN) }
    }

    /// An arc of both runs, weighted by rule R.
    pub(in crate::whatif) fn new(target: u32, source: Node, time: i64) -> Self {
        Self {
            target,
            source,
            since: time,
            class: NO_CLASS,
            region: RegionKey::NONE,
            measured: true,
            kept: true,
            cost: MEASURED,
        }
    }
}

/// A place between two events of a location.
#[derive(Clone, Copy, Debug)]
pub(in crate::whatif) struct Stop {
    /// The location.
    pub location: LocationId,
    /// Position of the event that follows it.
    pub position: u32,
    /// Measured time, ticks.
    pub time: i64,
    /// Number in the order in which stops were found.
    pub number: u32,
    /// What happens there.
    pub kind: Kind,
}

/// Collects the arcs, stops and meetings of a graph.
#[derive(Debug)]
pub(in crate::whatif) struct Builder {
    /// Number of the first instance of each shard, those of other processes of the analysis included, and of all.
    first: Vec<u32>,
    exchange: Exchange,
    /// Number of the first checkpoint of each process of the analysis, and of all.
    first_checkpoint: Vec<u32>,
    /// The same for stops, which begin at [`STOP`].
    first_stop: Vec<Node>,
    pub raws: Vec<Raw>,
    pub stops: Vec<Stop>,
    members: Vec<Node>,
    checkpoints: Vec<u32>,
    checkpoint_times: Vec<i64>,
    meetings: Vec<Meeting>,
    meeting_of: Vec<u32>,
    /// Two epochs of one lock in a row: the Enters of their lock calls, the Leave of the first one's release, and the
    /// Enter of the call of the second one that waits for it.
    pub turns: Vec<[Node; 4]>,
    /// By target, the begin and the end that its arcs are weighed with if they are not those of the target itself.
    pub judged: FxHashMap<u32, (i64, i64)>,
}

impl Builder {
    /// Begins the graph of a trace. Collective.
    pub(in crate::whatif) fn new(trace: &Trace) -> Result<Self> {
        let own: Vec<usize> = trace.shards.iter().map(|shard| shard.instances.enter.len()).collect();
        let mut first = vec![0u32];
        for instances in trace.exchange.allgather(own)?.into_iter().flatten() {
            let next = u64::from(first[first.len() - 1]) + instances as u64;
            // Two nodes for each, and as many again for meetings and stops.
            if next > u64::from(u32::MAX / 4) {
                return Err(Error::Trace("more than 2^30 calls: too many to simulate".into()));
            }
            first.push(next as u32);
        }
        Ok(Self {
            first,
            exchange: trace.exchange.clone(),
            first_checkpoint: Vec::new(),
            first_stop: Vec::new(),
            raws: Vec::new(),
            stops: Vec::new(),
            members: Vec::new(),
            checkpoints: Vec::new(),
            checkpoint_times: Vec::new(),
            meetings: Vec::new(),
            meeting_of: Vec::new(),
            turns: Vec::new(),
            judged: FxHashMap::default(),
        })
    }

    /// Number of all instances.
    pub(in crate::whatif) fn instances(&self) -> u32 {
        self.first[self.first.len() - 1]
    }

    /// Numbers of the instances of this process of the analysis.
    pub(in crate::whatif) fn own(&self) -> Range<u32> {
        let shards = self.exchange.own();
        self.first[shards.start as usize]..self.first[shards.end as usize]
    }

    /// Number of a region instance of any shard.
    pub(in crate::whatif) fn number(&self, shard: u32, instance: InstanceId) -> u32 {
        self.first[shard as usize] + instance.number()
    }

    /// Number of a region instance of any location.
    pub(in crate::whatif) fn instance(&self, trace: &Trace, (location, instance): (LocationId, InstanceId)) -> u32 {
        self.number(trace.shard_of[location], instance)
    }

    /// Number of the first instance of the i-th shard of this process.
    pub(in crate::whatif) fn first_of(&self, i: usize) -> u32 {
        self.first[self.exchange.own().start as usize + i]
    }

    /// Position of the shard of a number among those of this process, and the region instance there.
    pub(in crate::whatif) fn place(&self, number: u32) -> (usize, InstanceId) {
        let shard = self.shard_of(number);
        let instance = InstanceId::new(number - self.first[shard as usize]);
        (self.exchange.position(shard), instance)
    }

    /// The shard of a number, of any process.
    pub(in crate::whatif) fn shard_of(&self, number: u32) -> u32 {
        self.first.partition_point(|&first| first <= number) as u32 - 1
    }

    /// The instance whose Enter or Leave a node is.
    pub(in crate::whatif) fn call_of(&self, node: Node) -> Option<u32> {
        (node < 2 * self.instances()).then_some(node / 2)
    }

    /// The stop of a target, if it is one.
    pub(in crate::whatif) fn stop_of(&self, target: u32) -> Option<&Stop> {
        self.stops.get(target.checked_sub(self.instances())? as usize)
    }

    /// Adds a meeting of ordered members, each with its node and measured time, and an arc to each of `waiting`, which
    /// has the number of members that it waits for, sorted by that number. `cost` is the cost of the operation on a
    /// given network.
    pub(in crate::whatif) fn meet(&mut self, members: &[(Node, i64)], waiting: &[(u32, u32)], cost: i64) {
        self.meeting(members, waiting, cost, false);
    }

    /// The same for calls that, due to clock errors, were left before these members arrived: each gets the largest
    /// shift of the members.
    pub(in crate::whatif) fn meet_late(&mut self, members: &[(Node, i64)], waiting: &[(u32, u32)]) {
        self.meeting(members, waiting, MEASURED, true);
    }

    fn meeting(&mut self, members: &[(Node, i64)], waiting: &[(u32, u32)], cost: i64, is_late: bool) {
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
                self.checkpoint_times.push(latest);
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
                is_late,
            });
        }
    }

    /// A new stop; returns its number.
    pub(in crate::whatif) fn stop(&mut self, location: LocationId, position: u32, time: i64, kind: Kind) -> u32 {
        let number = self.stops.len() as u32;
        self.stops.push(Stop { location, position, time, number, kind });
        number
    }

    /// The number of a stop as a target of arcs.
    pub(in crate::whatif) fn stop_target(&self, number: u32) -> u32 {
        self.instances() + number
    }

    /// Numbers the checkpoints of all processes of the analysis, and sends each arc to the process of its target; then
    /// sorts the arcs by target. Collective.
    pub(in crate::whatif) fn deal(&mut self) -> Result<()> {
        let exchange = self.exchange.clone();
        let mut first = 2 * self.instances();
        self.first_checkpoint = vec![first];
        for checkpoints in exchange.allgather(self.checkpoints.len() as u32)? {
            first = first.checked_add(checkpoints).filter(|&first| first < STOP).ok_or_else(too_many)?;
            self.first_checkpoint.push(first);
        }
        if exchange.processes() > 1 {
            let offset = self.first_checkpoint[exchange.rank()] - self.first_checkpoint[0];
            let (own, meetings) = (self.own(), self.first_checkpoint[0]..STOP);
            let (first, instances) = (std::mem::take(&mut self.first), meetings.start / 2);
            let shard_of = |target: u32| first.partition_point(|&first| first <= target) as u32 - 1;
            let mut outgoing: Vec<Vec<Raw>> = (0..exchange.processes()).map(|_| Vec::new()).collect();
            self.raws.retain_mut(|raw| {
                if meetings.contains(&raw.source) {
                    raw.source += offset;
                }
                let stays = own.contains(&raw.target) || raw.target >= instances;
                if !stays {
                    outgoing[exchange.process_of(shard_of(raw.target))].push(*raw);
                }
                stays
            });
            self.first = first;
            for mut arrived in exchange.alltoall(outgoing)? {
                self.raws.append(&mut arrived);
            }
        }
        self.sort();
        Ok(())
    }

    /// Numbers the stops of all processes of the analysis, to which no more are added. Collective.
    pub(in crate::whatif) fn number_stops(&mut self) -> Result<()> {
        let mut next = STOP;
        self.first_stop = vec![next];
        for stops in self.exchange.allgather(self.stops.len() as u32)? {
            next = next.checked_add(stops).filter(|&next| next < OWN).ok_or_else(too_many)?;
            self.first_stop.push(next);
        }
        let offset = self.first_stop[self.exchange.rank()] - STOP;
        for raw in self.raws.iter_mut().filter(|raw| raw.source != OWN && raw.source >= STOP) {
            raw.source += offset;
        }
        Ok(())
    }

    /// Gives some arcs the stop that stands for their source, if there is one: `stop_for` has the numbers of those of this
    /// process. Collective.
    pub(in crate::whatif) fn redirect(
        &mut self,
        concerns: impl Fn(&Raw) -> bool,
        stop_for: impl Fn(Node) -> Option<u32>,
    ) -> Result<()> {
        let calls = 2 * self.instances();
        let concerns = |raw: &Raw| raw.source < calls && concerns(raw);
        let mut raws = std::mem::take(&mut self.raws);
        let concerned = raws.iter().filter(|raw| concerns(raw));
        let mut foreign: Vec<Node> = concerned.map(|raw| raw.source).filter(|&node| !self.is_own(node)).collect();
        foreign.sort_unstable();
        foreign.dedup();
        let stop_of = |node| stop_for(node).map(|number| self.stop_node(number));
        let told = self.exchange.ask(&foreign, |&node| self.shard_of(node / 2), |&node| stop_of(node))?;
        for raw in raws.iter_mut().filter(|raw| concerns(raw)) {
            let stop = if self.is_own(raw.source) {
                stop_of(raw.source)
            } else {
                foreign.binary_search(&raw.source).ok().and_then(|i| told[i])
            };
            raw.source = stop.unwrap_or(raw.source);
        }
        self.raws = raws;
        Ok(())
    }

    /// Sorts the arcs by target.
    pub(in crate::whatif) fn sort(&mut self) {
        self.raws.par_sort_unstable_by_key(|raw| (raw.target, raw.source, raw.since));
    }

    /// Builds the graph from sorted arcs; stops are numbered. `weigh` computes the weights of the arcs to a place, own time first, from the
    /// arcs, the time of the previous place, and its own time. Collective.
    pub(in crate::whatif) fn finish(
        mut self,
        trace: &Trace,
        weigh: &(impl Fn(&[Raw], i64, i64, &mut [i64]) + Sync),
    ) -> Result<Graph> {
        self.stops.par_sort_unstable_by_key(|stop| (stop.location, stop.position, stop.time, stop.number));
        let groups = self.groups();
        let foreign = self.foreign();
        let asked = self.exchange.alltoall(self.by_process(&foreign))?;
        let needed = self.needed(&asked);
        let drafts: Vec<Vec<Draft>> =
            trace.par_shards().enumerate().map(|(i, shard)| self.drafts(i, shard, &needed, &groups)).collect();
        drop(needed);
        let times: Vec<i64> = drafts.par_iter().flatten().map(|draft| draft.time).collect();
        let kinds = drafts.par_iter().flatten().map(|draft| draft.kind(&groups)).collect();
        let mut offsets = Vec::with_capacity(trace.definitions.locations.len() + 1);
        offsets.push(0);
        let mut places = vec![NONE; 2 * self.own().len() + self.stops.len()];
        for (place, draft) in (0..).zip(drafts.iter().flatten()) {
            if draft.node != NONE {
                places[self.position(draft.node)] = place;
            }
            if draft.is_last {
                offsets.resize(draft.location.index() + 1, offsets[offsets.len() - 1]);
                offsets.push(place + 1);
            }
        }
        offsets.resize(trace.definitions.locations.len() + 1, times.len() as u32);
        let own_steps = times.len();
        let own_places = (own_steps + self.checkpoints.len()) as u32;
        let place = |node: Node| match self.checkpoint(node) {
            Some(checkpoint) => own_steps as u32 + checkpoint,
            None if self.is_own(node) => places[self.position(node)],
            None => own_places + foreign.partition_point(|&of| of < node) as u32,
        };
        let own_time = |place: u32| match times.get(place as usize) {
            Some(time) => *time,
            None => self.checkpoint_times[place as usize - own_steps],
        };
        let asked: Vec<Vec<u32>> = asked.into_iter().map(|nodes| nodes.into_iter().map(place).collect()).collect();
        let told = asked.iter().map(|places| places.iter().map(|&place| own_time(place)).collect()).collect();
        let border = Border::new(
            &asked,
            foreign.iter().map(|&node| self.process_of(node)),
            own_places,
            &self.exchange.alltoall(told)?,
        );
        let time = |place: u32| match place.checked_sub(own_places) {
            Some(foreign) => border.times[foreign as usize],
            None => own_time(place),
        };
        let weighed = drafts.par_iter().map(|drafts| self.weigh(drafts, &groups, (&place, &time), weigh));
        let weighed: Vec<Weighed> = weighed.collect();
        let members = self.members.par_iter().map(|&node| place(node)).collect();
        let turns = self.turns.iter().map(|nodes| nodes.map(place)).collect();
        let stops = (0..self.stops.len() as u32).map(|number| place(self.stop_node(number))).collect();
        let arcs = weighed.iter().map(|of| of.sources.len()).sum();
        let (mut sources, mut slacks) = (Vec::with_capacity(arcs), Vec::with_capacity(arcs));
        let mut steps = Vec::with_capacity(times.len());
        for of in weighed {
            let before = sources.len() as u32;
            steps.extend(of.steps.into_iter().map(|step| Step { arcs: before + step.arcs, ..step }));
            sources.extend(of.sources);
            slacks.extend(of.slacks);
        }
        Ok(Graph {
            steps,
            times,
            kinds,
            offsets,
            sources,
            slacks,
            members,
            checkpoints: self.checkpoints,
            checkpoint_times: self.checkpoint_times,
            meetings: self.meetings,
            meeting_of: self.meeting_of,
            turns,
            stops,
            border,
            references: OnceLock::new(),
        })
    }

    /// Begin of the arcs of each target of this process, and the end of the last one.
    fn groups(&self) -> Vec<u32> {
        let mut groups = vec![0u32; self.own().len() + self.stops.len() + 1];
        for raw in &self.raws {
            groups[self.slot(raw.target) + 1] += 1;
        }
        (1..groups.len()).for_each(|i| groups[i] += groups[i - 1]);
        groups
    }

    /// Position of a target of this process among all that it has.
    fn slot(&self, target: u32) -> usize {
        let own = self.own();
        let slot =
            if target < self.instances() { target - own.start } else { target - self.instances() + own.len() as u32 };
        slot as usize
    }

    /// The nodes of other processes whose times this one needs, sorted.
    fn foreign(&self) -> Vec<Node> {
        if self.exchange.processes() == 1 {
            return Vec::new();
        }
        let sources = self.raws.iter().filter(|raw| raw.kept && raw.source != OWN).map(|raw| raw.source);
        let all = sources.chain(self.members.iter().copied()).chain(self.turns.iter().flatten().copied());
        let mut foreign: Vec<Node> = all.filter(|&node| !self.is_own(node)).collect();
        foreign.par_sort_unstable();
        foreign.dedup();
        foreign
    }

    /// Nodes by the process of the analysis that has them.
    fn by_process(&self, nodes: &[Node]) -> Vec<Vec<Node>> {
        let mut of = vec![Vec::new(); self.exchange.processes()];
        for &node in nodes {
            of[self.process_of(node)].push(node);
        }
        of
    }

    /// The process of the analysis that has a node.
    fn process_of(&self, node: Node) -> usize {
        match self.call_of(node) {
            Some(call) => self.exchange.process_of(self.shard_of(call)),
            None if node >= STOP => self.first_stop.partition_point(|&first| first <= node) - 1,
            None => self.first_checkpoint.partition_point(|&first| first <= node) - 1,
        }
    }

    /// Whether this process of the analysis has a node.
    fn is_own(&self, node: Node) -> bool {
        match self.call_of(node) {
            Some(call) => self.own().contains(&call),
            None => self.own_stops().contains(&node) || self.checkpoint(node).is_some(),
        }
    }

    /// The Enters and Leaves of this process that others wait for, or whose times are of interest; `asked` is what other
    /// processes of the analysis need.
    fn needed(&self, asked: &[Vec<Node>]) -> Vec<bool> {
        let own = self.own();
        let mut needed = vec![false; 2 * own.len()];
        let sources = self.raws.iter().filter(|raw| raw.kept).map(|raw| raw.source);
        let observed = self.turns.iter().flatten().chain(asked.iter().flatten());
        for node in sources.chain(self.members.iter().chain(observed).copied()) {
            if let Some(needed) = node.checked_sub(2 * own.start).and_then(|of| needed.get_mut(of as usize)) {
                *needed = true;
            }
        }
        needed
    }

    /// The steps of a shard's locations in order, without their arcs.
    fn drafts(&self, i: usize, shard: &Shard, needed: &[bool], groups: &[u32]) -> Vec<Draft> {
        let mut all: Vec<Draft> = Vec::new();
        let first_of_shard = self.first_of(i);
        let slot_of = |target: u32| self.slot(target) as u32;
        let is_waiting = |slot: u32| groups[slot as usize] < groups[slot as usize + 1];
        let time = &shard.events.time;
        for (i, location) in shard.locations.enumerate() {
            let (begin, end) = (shard.event_offsets[i], shard.event_offsets[i + 1]);
            let first = all.len();
            let mut draft = |position: u32, time: i64, stop: Option<Kind>, slot: u32, node: Node| {
                all.push(Draft { position, time, stop, since: time, slot, node, location, is_last: false });
            };
            for instance in shard.instances_of(location) {
                let target = first_of_shard + instance.number();
                let slot = slot_of(target);
                if needed[enter(slot) as usize] {
                    let position = shard.instances.enter[instance];
                    draft(position, time[position as usize], None, NONE, enter(target));
                }
                if is_waiting(slot) || needed[leave(slot) as usize] {
                    let position = shard.instances.leave[instance];
                    draft(position, time[position as usize], None, slot, leave(target));
                }
            }
            let from = self.stops.partition_point(|stop| stop.location < location);
            for stop in self.stops[from..].iter().take_while(|stop| stop.location == location) {
                let slot = slot_of(self.stop_target(stop.number));
                draft(stop.position, stop.time, Some(stop.kind), slot, self.stop_node(stop.number));
                // The time between it and the event is known there.
                if stop.position < end {
                    draft(stop.position, time[stop.position as usize], None, NONE, NONE);
                }
            }
            // At one position, the stops come first, in order, and then the event once.
            all[first..].sort_by_key(|draft| {
                let at = draft.stop.map_or(i64::MAX, |_| draft.time);
                (draft.position, draft.stop.is_none(), at, draft.node)
            });
            let mut last = NONE;
            let mut behind = first;
            for next in first..all.len() {
                let Draft { position, stop, .. } = all[next];
                if stop.is_some() || position != last {
                    all[behind] = all[next];
                    behind += 1;
                }
                last = if stop.is_none() { position } else { NONE };
            }
            all.truncate(behind);
            for next in first..all.len() {
                let position = all[next].position;
                all[next].since = match all[..next].last() {
                    Some(before) if next > first && before.position == position => before.time,
                    _ if position == begin => all[next].time,
                    _ => time[position as usize - 1],
                };
            }
            if let Some(last) = all[first..].last_mut() {
                last.is_last = true;
            }
        }
        all
    }

    /// The arcs to the steps of a shard; `place` maps a node to its place, `time` to its measured time.
    fn weigh(
        &self,
        drafts: &[Draft],
        groups: &[u32],
        (place, time): (&impl Fn(Node) -> u32, &impl Fn(u32) -> i64),
        weigh: &impl Fn(&[Raw], i64, i64, &mut [i64]),
    ) -> Weighed {
        let mut all = Weighed::default();
        let mut weights = Vec::new();
        for draft in drafts {
            let step = Step { slack: 0, position: draft.position, arcs: all.sources.len() as u32 };
            let group = &self.raws[draft.group(groups)];
            if group.is_empty() {
                all.steps.push(step);
                continue;
            }
            let at = draft.time;
            weights.clear();
            weights.resize(group.len() + 1, 0);
            if draft.stop == Some(Kind::Begin) {
                // It keeps its distance to the latest of what it begins after.
                let latest = group.iter().map(|raw| raw.since).max().unwrap_or(at);
                weights[1..].fill(at - latest);
            } else {
                let (since, end) = self.judged.get(&group[0].target).copied().unwrap_or((draft.since, at));
                weigh(group, since, end, &mut weights);
            }
            all.steps.push(Step { slack: draft.since + weights[0] - at, ..step });
            for (raw, weight) in group.iter().zip(&weights[1..]).filter(|(raw, _)| raw.kept && raw.source != OWN) {
                let source = place(raw.source);
                all.sources.push(source);
                all.slacks.push(time(source) + weight - at);
            }
        }
        all
    }

    /// The nodes of the stops of this process.
    fn own_stops(&self) -> Range<Node> {
        let rank = self.exchange.rank();
        self.first_stop[rank]..self.first_stop[rank + 1]
    }

    /// The node of a stop of this process, when all are numbered.
    fn stop_node(&self, number: u32) -> Node {
        self.own_stops().start + number
    }

    /// Index of a node of this process among all of these that are not checkpoints.
    fn position(&self, node: Node) -> usize {
        let own = self.own();
        let index =
            if node >= STOP { 2 * (own.end - own.start) + node - self.own_stops().start } else { node - 2 * own.start };
        index as usize
    }

    /// The number of a node among the checkpoints of this process, if it is one.
    fn checkpoint(&self, node: Node) -> Option<u32> {
        let rank = self.exchange.rank();
        let own = self.first_checkpoint[rank]..self.first_checkpoint[rank + 1];
        own.contains(&node).then(|| node - own.start)
    }
}

fn too_many() -> Error {
    Error::Trace("more than 2^30 operations of several processes: too many to simulate".into())
}

/// A step without its arcs.
#[derive(Clone, Copy)]
struct Draft {
    position: u32,
    time: i64,
    stop: Option<Kind>,
    /// Time of the place before it.
    since: i64,
    /// Position of the target of its arcs, or [`NONE`].
    slot: u32,
    /// Its node as a source of arcs, or [`NONE`].
    node: Node,
    location: LocationId,
    /// Whether it is the last of its location.
    is_last: bool,
}

impl Draft {
    /// Its arcs.
    fn group(&self, groups: &[u32]) -> Range<usize> {
        match self.slot {
            NONE => 0..0,
            slot => groups[slot as usize] as usize..groups[slot as usize + 1] as usize,
        }
    }

    fn kind(&self, groups: &[u32]) -> Kind {
        let event = if self.group(groups).is_empty() { Kind::Event } else { Kind::Judged };
        self.stop.unwrap_or(event)
    }
}

/// The arcs to the steps of a shard.
#[derive(Default)]
struct Weighed {
    sources: Vec<u32>,
    slacks: Vec<i64>,
    /// All steps; their arcs begin from here.
    steps: Vec<Step>,
}

/// The node of the first stop.
const STOP: Node = 3 << 30;

/// The node of the Enter of an instance.
pub(in crate::whatif) fn enter(instance: u32) -> Node {
    2 * instance
}

/// The node of the Leave of an instance.
pub(in crate::whatif) fn leave(instance: u32) -> Node {
    2 * instance + 1
}

/// The node of a stop, until all are numbered.
pub(in crate::whatif) fn stop(number: u32) -> Node {
    STOP + number
}
