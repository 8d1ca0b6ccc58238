//! Times of the calls that wait states refer to, including those in other processes of the analysis.

use bitcode::{Decode, Encode};

use super::wait_state::WaitState;
use crate::Result;
use crate::ids::{CallPathId, InstanceId, LocationId};
use crate::parallel::per_shard::PerShard;
use crate::trace::Trace;
use crate::trace::columns::Instances;

/// The properties of a call that the waiting side needs.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Encode, Decode)]
pub struct Call {
    /// Enter, ticks.
    pub enter: i64,
    /// Leave, ticks.
    pub leave: i64,
    /// Call path.
    pub callpath: CallPathId,
}

/// A shard and a region instance in it.
type Name = (u32, InstanceId);

impl Call {
    // Inlined, a caller that needs one of the times does not fetch the other: each is far away in memory.
    #[inline]
    fn of(trace: &Trace, (shard, instance): Name) -> Self {
        let shard = &trace.shards[trace.exchange.position(shard)];
        Self { enter: shard.enter(instance), leave: shard.leave(instance), callpath: shard.callpath(instance) }
    }
}

/// Calls of other processes of the analysis.
#[derive(Debug, Default)]
pub struct RemoteCalls {
    /// First call of each shard, and the number of calls at the end.
    first: Vec<usize>,
    /// Their region instances, sorted within each shard.
    instances: Vec<InstanceId>,
    times: Vec<Call>,
    /// Calls of this process that others have requested.
    asked: Vec<Name>,
}

impl RemoteCalls {
    /// Requests the calls that cause waits of this process from the others.
    pub fn fetch(trace: &Trace, waits: &PerShard<WaitState>) -> Result<Self> {
        let exchange = &trace.exchange;
        // A process alone has all calls itself.
        if exchange.processes() == 1 {
            return Ok(Self::default());
        }
        let mut questions: Vec<Vec<Name>> = vec![Vec::new(); exchange.processes()];
        for wait in waits.iter().filter(|wait| wait.cause_instance.is_some() && !trace.owns(wait.cause_location)) {
            let shard = trace.shard_of[wait.cause_location];
            questions[exchange.process_of(shard)].push((shard, wait.cause_instance));
        }
        for names in &mut questions {
            names.sort_unstable();
            names.dedup();
        }
        let names = questions.concat();
        let asked = exchange.alltoall(questions)?;
        let answer = |names: &Vec<Name>| names.iter().map(|&name| Call::of(trace, name)).collect();
        let answers: Vec<Vec<Call>> = exchange.alltoall(asked.iter().map(answer).collect())?;
        let first = (0..=exchange.shards() as u32).map(|shard| names.partition_point(|name| name.0 < shard)).collect();
        let instances = names.into_iter().map(|(_, instance)| instance).collect();
        Ok(Self { first, instances, times: answers.concat(), asked: asked.concat() })
    }

    /// Gathers at the first process all calls of other processes that wait or cause a wait; the others keep theirs.
    pub fn gather(self, trace: &Trace, waits: &PerShard<WaitState>) -> Result<Self> {
        let exchange = &trace.exchange;
        let names = if exchange.is_root() { Vec::new() } else { self.named(trace, waits) };
        let counts =
            |shard| names.partition_point(|name| name.0 <= shard) - names.partition_point(|name| name.0 < shard);
        let counts: Vec<Vec<usize>> = exchange.gather(exchange.own().map(counts).collect())?;
        let mut first = vec![0];
        first.extend(counts.iter().flatten().scan(0, |before, count| {
            *before += count;
            Some(*before)
        }));
        let instances = exchange.gatherv(names.iter().map(|&(_, instance)| instance))?;
        let times = exchange.gatherv(names.iter().map(|&name| Call::of(trace, name)))?;
        if !exchange.is_root() {
            return Ok(self);
        }
        Ok(Self { first, instances, times, asked: Vec::new() })
    }

    /// The sorted calls of this process that wait or cause a wait anywhere.
    fn named(&self, trace: &Trace, waits: &PerShard<WaitState>) -> Vec<Name> {
        let own = trace.exchange.own();
        let mut is_named: Vec<Vec<bool>> =
            trace.shards.iter().map(|shard| vec![false; shard.instances.enter.len()]).collect();
        let mut name = |(shard, instance): Name| is_named[(shard - own.start) as usize][instance] = true;
        for wait in waits {
            name((trace.shard_of[wait.location], wait.instance));
            if wait.cause_instance.is_some() && trace.owns(wait.cause_location) {
                name((trace.shard_of[wait.cause_location], wait.cause_instance));
            }
        }
        self.asked.iter().copied().for_each(name);
        let of_shard = |(shard, is_named): (u32, Vec<bool>)| {
            is_named
                .into_iter()
                .enumerate()
                .filter_map(move |(i, is_named)| is_named.then_some((shard, InstanceId::at(i))))
        };
        own.clone().zip(is_named).flat_map(of_shard).collect()
    }

    /// Replaces `times` by Enter and Leave of calls that are known in this process, given by location and region
    /// instance.
    ///
    /// Calls are scattered over memory: taking each step for all of them lets the memory serve many accesses at a time.
    pub fn times(
        &self,
        trace: &Trace,
        names: impl Iterator<Item = (LocationId, InstanceId)> + Clone,
        times: &mut Vec<(i64, i64)>,
    ) {
        times.clear();
        // First the positions of both events of local calls.
        times.extend(names.clone().map(|(location, instance)| {
            if trace.owns(location) {
                let Instances { enter, leave } = &trace.shard(location).instances;
                return (i64::from(enter[instance]), i64::from(leave[instance]));
            }
            let Call { enter, leave, .. } = self.get(trace, (location, instance));
            (enter, leave)
        }));
        for ((enter, leave), (location, _)) in times.iter_mut().zip(names) {
            if trace.owns(location) {
                let time = &trace.shard(location).events.time;
                (*enter, *leave) = (time[*enter as usize], time[*leave as usize]);
            }
        }
    }

    /// Replaces `enters` by time and call path of the Enters of calls that are known in this process, given like those of
    /// [`Self::times`]; `None` without a region instance.
    pub fn enters(
        &self,
        trace: &Trace,
        names: impl Iterator<Item = (LocationId, InstanceId)> + Clone,
        enters: &mut Vec<Option<(i64, CallPathId)>>,
    ) {
        enters.clear();
        enters.extend(names.clone().map(|(location, instance)| {
            if instance.is_none() {
                return None;
            }
            if trace.owns(location) {
                let position = trace.shard(location).instances.enter[instance];
                return Some((i64::from(position), CallPathId::NONE));
            }
            let Call { enter, callpath, .. } = self.get(trace, (location, instance));
            Some((enter, callpath))
        }));
        for (enter, (location, _)) in enters.iter_mut().zip(names) {
            if let Some((time, callpath)) = enter
                && trace.owns(location)
            {
                let events = &trace.shard(location).events;
                let position = *time as u32;
                (*time, *callpath) = (events.time[position as usize], events.callpath(position));
            }
        }
    }

    /// A call that is known in this process, by location and region instance.
    #[inline]
    pub fn get(&self, trace: &Trace, (location, instance): (LocationId, InstanceId)) -> Call {
        let shard = trace.shard_of[location];
        if trace.owns(location) {
            return Call::of(trace, (shard, instance));
        }
        let (from, to) = (self.first[shard as usize], self.first[shard as usize + 1]);
        let position = from + self.instances[from..to].partition_point(|&other| other < instance);
        debug_assert_eq!(self.instances[position], instance);
        self.times[position]
    }
}
