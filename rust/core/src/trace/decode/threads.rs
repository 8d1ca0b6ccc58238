//! Teams of threads, their tasks and their locks.

use rustc_hash::FxHashMap;

use super::decoder::Decoder;
use crate::diagnostics::DiagnosticKind;
use crate::ids::{CallPathId, CommId, InstanceId};
use crate::trace::NONE;
use crate::trace::columns::{Lock, Team, Thread, ThreadStep};

impl Decoder<'_> {
    pub(super) fn begin_team(&mut self, time: i64, communicator: u32) {
        let comm = self.index.comm(communicator).unwrap_or(CommId::NONE);
        let begun = self.state.forks.last().copied().filter(|fork| {
            // A fork belongs to the first team that its thread begins; deeper teams have forks of their own.
            !self.state.teams.iter().any(|&team| self.shard.teams.rows[team as usize].fork == *fork)
        });
        let fork = match begun {
            Some(fork) => {
                self.forks.entry(comm).or_default().push(fork);
                fork
            }
            None => self.next_fork(comm, time),
        };
        if fork == NONE {
            self.note(DiagnosticKind::UnknownTeam, time);
        } else if self.state.outer.is_empty() {
            self.state.root = self.shard.forks.rows[fork as usize].callpath;
        }
        self.host_team();
        self.state.teams.push(self.shard.teams.rows.len() as u32);
        self.state.first_barriers.push(self.state.barriers.len() as u32);
        self.state.first_taskwaits.push(self.state.taskwaits.len() as u32);
        self.shard.teams.rows.push(Team { comm, fork, ..Team::EMPTY });
    }

    /// The fork of a team that the thread begins: the first one behind those before that is not yet joined. The same team
    /// may have fewer threads in between.
    fn next_fork(&mut self, comm: CommId, time: i64) -> u32 {
        let forks = self.forks.get(&comm).map_or(&[][..], Vec::as_slice);
        let next = self.state.parts.entry(comm).or_insert(0);
        let is_open = |fork: u32| {
            let join = self.shard.forks.rows[fork as usize].join;
            join == i64::MIN || join > time
        };
        while let Some(&fork) = forks.get(*next as usize) {
            *next += 1;
            if is_open(fork) {
                return fork;
            }
        }
        NONE
    }

    pub(super) fn end_team(&mut self) {
        if let Some(team) = self.state.teams.pop() {
            self.leave_team(self.state.now);
            let team = &mut self.shard.teams.rows[team as usize];
            // Those of deeper teams went with these teams.
            let state = &mut self.state;
            let first = state.first_barriers.pop().unwrap_or(0) as usize;
            (team.barriers, team.barriers_end) = self.shard.barriers.append(state.barriers.drain(first..));
            let first = state.first_taskwaits.pop().unwrap_or(0) as usize;
            (team.taskwaits, team.taskwaits_end) = self.shard.taskwaits.append(state.taskwaits.drain(first..));
        }
        if self.state.teams.is_empty() {
            self.state.root = CallPathId::NONE;
        }
    }

    pub(super) fn lock(&mut self, time: i64, paradigm: u8, lock: u32, order: u32, acquired: bool) {
        let instance = self.instance().unwrap_or(InstanceId::NONE);
        self.shard.locks.rows.push(Lock { time, instance, lock, order, paradigm, acquired });
    }

    pub(super) fn thread(&mut self, time: i64, thread: (u32, u64), step: ThreadStep) {
        let is_inside = matches!(step, ThreadStep::Create | ThreadStep::Wait);
        let instance = self.instance().filter(|_| is_inside).unwrap_or(InstanceId::NONE);
        self.shard.threads.rows.push(Thread { time, thread, instance, step });
    }

    /// At the end of a location, finds the first function behind the begin of each of its threads, and the last one
    /// before the end.
    pub(super) fn end_threads(&mut self) {
        let rows = self.shard.threads.current();
        let is_outside = |row: &Thread| matches!(row.step, ThreadStep::Begin | ThreadStep::End);
        if !self.shard.threads.rows[rows.clone()].iter().any(is_outside) {
            return;
        }
        let events = &self.shard.events;
        let first = self.shard.event_offsets.last().copied().unwrap_or(0);
        let mut outermost: Vec<(u32, u32)> = Vec::new();
        let (mut depth, mut enter) = (0u32, first);
        for event in first..events.len() as u32 {
            if events.is_leave(event) {
                depth = depth.saturating_sub(1);
                if depth == 0 {
                    outermost.push((enter, event));
                }
            } else {
                if depth == 0 {
                    enter = event;
                }
                depth += 1;
            }
        }
        let mut found: Vec<(usize, (u32, u32))> = Vec::new();
        for row in rows {
            let Thread { time, step, .. } = self.shard.threads.rows[row];
            let time_of = |event: u32| self.shard.events.time[event as usize];
            let call = match step {
                ThreadStep::Begin => outermost.get(outermost.partition_point(|&(enter, _)| time_of(enter) < time)),
                ThreadStep::End => {
                    let after = outermost.partition_point(|&(_, leave)| time_of(leave) <= time);
                    after.checked_sub(1).map(|last| &outermost[last])
                }
                ThreadStep::Create | ThreadStep::Wait => None,
            };
            found.extend(call.map(|&call| (row, call)));
        }
        let mut instances: FxHashMap<u32, InstanceId> =
            found.iter().map(|&(_, (enter, _))| (enter, InstanceId::NONE)).collect();
        let first = self.shard.instance_offsets.last().copied().unwrap_or(0) as usize;
        for (i, enter) in self.shard.instances.enter[first..].iter().enumerate() {
            if let Some(instance) = instances.get_mut(enter) {
                *instance = InstanceId::at(first + i);
            }
        }
        for (row, (enter, leave)) in found {
            let instance = instances.entry(enter).or_insert(InstanceId::NONE);
            if instance.is_none() {
                *instance = self.shard.instances.open(enter);
                self.shard.instances.leave[*instance] = leave;
            }
            self.shard.threads.rows[row].instance = *instance;
        }
    }
}
