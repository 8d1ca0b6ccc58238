//! Programs as sequences of steps: messages, collective operations, and active-target synchronization.
//!
//! No call depends on the order of others, so the order in which ranks are simulated does not matter: each advances
//! until it needs a step of another rank that has not been simulated yet, and ranks take turns until all have finished.

use std::collections::{HashMap, VecDeque};

use whywait_otf2::{Event, Result};

use crate::collective::{CALL, Collective, Departure, GAP, Kind};
use crate::definitions::Region;
use crate::event_writer::EventWriter;
use crate::gats::Epoch;
use crate::late_senders::RecentLateSenders;
use crate::messages::{receive, received, send};
use crate::{Schedule, Start};

/// A step of a rank.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Step {
    /// Calls a function.
    Enter(Region),
    /// Returns from it.
    Leave,
    /// Calls a function that works as long as [`Script::work`] says.
    Work(Region),
    /// Works as long in the function that is open.
    Pause,
    /// Creates, frees or fences a window, or meets all ranks otherwise.
    Collective(Kind),
    /// Exposes a window to a group of origins.
    Post(Epoch),
    /// Opens a window of a group of targets.
    Start(Epoch),
    Put {
        window: u32,
        target: u32,
        bytes: u64,
    },
    /// Ends the access.
    Complete(Epoch),
    /// Ends the exposure.
    Wait(Epoch),
    Send {
        receiver: u32,
        bytes: u64,
    },
    Receive {
        sender: u32,
        bytes: u64,
    },
}

/// Where an origin waits for its targets' posts.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Blocking {
    /// In start, for all of them.
    Start,
    /// In each put, for that of its own target.
    Put,
}

/// Ticks that calls take if they do not wait.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Costs {
    /// Calls that synchronize.
    pub(crate) call: i64,
    pub(crate) put: i64,
    /// Additional time of a fence compared with other collective calls.
    pub(crate) fence: i64,
}

impl Default for Costs {
    fn default() -> Self {
        Self { call: CALL, put: CALL, fence: 0 }
    }
}

/// A program.
pub(crate) struct Script<'a> {
    pub(crate) windows: u32,
    /// Sorted sets of ranks.
    pub(crate) groups: Vec<Vec<u32>>,
    /// Steps of each rank before its main loop, in each iteration, and after the last; those of the last lack `work`.
    pub(crate) first: Vec<Vec<Step>>,
    pub(crate) body: Vec<Vec<Step>>,
    pub(crate) last: Vec<Vec<Step>>,
    /// Ticks of a rank's work, by iteration and by position of the step in it.
    pub(crate) work: Box<dyn Fn(u32, usize, usize) -> i64 + Sync + 'a>,
    pub(crate) blocking: Blocking,
    /// How ranks leave barriers.
    pub(crate) barrier: Departure,
    pub(crate) costs: Costs,
}

impl Script<'_> {
    fn step(&self, rank: u32, number: usize, iterations: usize) -> Option<(Step, i64)> {
        let [first, body, last] = [&self.first, &self.body, &self.last].map(|steps| &steps[rank as usize]);
        if let Some(&step) = first.get(number) {
            return Some((step, 0));
        }
        let number = number - first.len();
        if number >= body.len() * iterations {
            return last.get(number - body.len() * iterations).map(|&step| (step, 0));
        }
        let (iteration, position) = (number / body.len(), number % body.len());
        let step = body[position];
        let ticks =
            if matches!(step, Step::Work(_) | Step::Pause) { (self.work)(rank, iteration, position) } else { 0 };
        Some((step, ticks))
    }

    fn group(&self, epoch: Epoch) -> &[u32] {
        &self.groups[epoch.group as usize]
    }
}

/// The result of a call that may wait: its Leave, and its waiting time.
#[derive(Clone, Copy, Debug)]
struct Outcome {
    leave: i64,
    /// Late Post of start and put; Early Wait and Late Complete; time of the last put before a fence; begin of a send.
    about: [i64; 2],
}

/// A simulated program.
pub(crate) struct Simulated<'a> {
    start: &'a Start,
    script: Script<'a>,
    collectives: Vec<Collective>,
    outcomes: Vec<Vec<Outcome>>,
    ends: Vec<i64>,
}

/// Where a rank is.
#[derive(Default)]
struct Cursor {
    number: usize,
    /// When it does its next step.
    now: i64,
    collectives: usize,
    is_done: bool,
    access: Access,
}

/// An access epoch.
#[derive(Default)]
struct Access {
    /// By target, the Enter of its post and the Leave of the last put to it.
    targets: Vec<(u32, i64, i64)>,
    has_waited: bool,
}

struct Simulation<'a> {
    start: &'a Start,
    script: &'a Script<'a>,
    cursors: Vec<Cursor>,
    outcomes: Vec<Vec<Outcome>>,
    collectives: Vec<Collective>,
    /// Enters of the ranks that have arrived at the next collective call.
    arrived: Vec<Option<i64>>,
    missing: usize,
    /// By window and target, the Leave of the last put since the last fence.
    last_put: Vec<Vec<i64>>,
    /// Posts by window, origin and target; completes, with the Leave of the last put, by window, target and origin.
    posts: HashMap<(u32, u32, u32), VecDeque<i64>>,
    completes: HashMap<(u32, u32, u32), VecDeque<(i64, i64)>>,
    /// Begins of sends by sender and receiver.
    messages: HashMap<(u32, u32), VecDeque<i64>>,
}

impl<'a> Simulated<'a> {
    pub(crate) fn new(start: &'a Start, script: Script<'a>) -> Self {
        let ranks = start.ranks as usize;
        let cursor = |rank| Cursor { now: start.end(rank), ..Cursor::default() };
        let mut simulation = Simulation {
            start,
            script: &script,
            cursors: (0..start.ranks).map(cursor).collect(),
            outcomes: vec![Vec::new(); ranks],
            collectives: Vec::new(),
            arrived: vec![None; ranks],
            missing: ranks,
            last_put: vec![vec![i64::MIN; ranks]; script.windows as usize],
            posts: HashMap::new(),
            completes: HashMap::new(),
            messages: HashMap::new(),
        };
        // `count` gives every rank its turn, unlike `any`.
        while (0..start.ranks).filter(|&rank| simulation.proceed(rank)).count() > 0 {}
        debug_assert!(simulation.cursors.iter().all(|cursor| cursor.is_done), "a program is locked up");
        let ends = simulation.cursors.iter().map(|cursor| cursor.now).collect();
        let Simulation { outcomes, collectives, .. } = simulation;
        Self { start, script, collectives, outcomes, ends }
    }
}

impl Simulation<'_> {
    /// Advances a rank as far as possible; returns whether it made a step.
    fn proceed(&mut self, rank: u32) -> bool {
        let begin = self.cursors[rank as usize].number;
        loop {
            let number = self.cursors[rank as usize].number;
            let Some((step, work)) = self.script.step(rank, number, self.start.spec.iterations as usize) else {
                self.cursors[rank as usize].is_done = true;
                break;
            };
            let now = self.cursors[rank as usize].now;
            let Some(leave) = self.act(rank, step, work, now) else { break };
            let cursor = &mut self.cursors[rank as usize];
            cursor.now = leave + GAP;
            cursor.number += 1;
        }
        self.cursors[rank as usize].number > begin
    }

    /// Simulates a step; returns its end, or `None` if it needs a step of another rank first.
    fn act(&mut self, rank: u32, step: Step, work: i64, now: i64) -> Option<i64> {
        match step {
            Step::Enter(_) | Step::Leave => Some(now),
            Step::Work(_) | Step::Pause => Some(now + work),
            Step::Collective(kind) => self.enter_collective(rank, kind, now),
            Step::Post(epoch) => {
                for &origin in self.script.group(epoch) {
                    self.posts.entry((epoch.window, origin, rank)).or_default().push_back(now);
                }
                Some(now + self.script.costs.call)
            }
            Step::Start(epoch) => self.open(rank, epoch, now),
            Step::Put { window, target, .. } => Some(self.put(rank, (window, target), now)),
            Step::Complete(epoch) => {
                for (target, _, last_put) in std::mem::take(&mut self.cursors[rank as usize].access.targets) {
                    self.completes.entry((epoch.window, target, rank)).or_default().push_back((now, last_put));
                }
                Some(now + self.script.costs.call)
            }
            Step::Wait(epoch) => self.close(rank, epoch, now),
            Step::Send { receiver, .. } => {
                self.messages.entry((rank, receiver)).or_default().push_back(now);
                Some(now + CALL)
            }
            Step::Receive { sender, .. } => {
                let sent = self.messages.get_mut(&(sender, rank))?.pop_front()?;
                Some(self.record_outcome(rank, received(now, sent), [sent, 0]))
            }
        }
    }

    fn record_outcome(&mut self, rank: u32, leave: i64, about: [i64; 2]) -> i64 {
        self.outcomes[rank as usize].push(Outcome { leave, about });
        leave
    }

    fn enter_collective(&mut self, rank: u32, kind: Kind, now: i64) -> Option<i64> {
        let cursor = &mut self.cursors[rank as usize];
        if let Some(collective) = self.collectives.get(cursor.collectives) {
            cursor.collectives += 1;
            return Some(collective.leave(rank));
        }
        if self.arrived[rank as usize].replace(now).is_none() {
            self.missing -= 1;
        }
        if self.missing > 0 {
            return None;
        }
        let enters: Vec<i64> = self.arrived.iter_mut().filter_map(Option::take).collect();
        self.missing = enters.len();
        let departure = match () {
            () if kind.is_barrier() => self.script.barrier,
            () if kind.is_fence() => Departure { all: self.script.costs.fence, ..Departure::default() },
            () => Departure::default(),
        };
        let number = self.collectives.len();
        let collective = self.start.collective_with_departure(number, departure, |rank| enters[rank as usize]);
        let last_put = &mut self.last_put[kind.window() as usize];
        for (rank, outcomes) in (0..).zip(&mut self.outcomes) {
            let put =
                if kind.is_fence() { std::mem::replace(&mut last_put[rank as usize], i64::MIN) } else { i64::MIN };
            outcomes.push(Outcome { leave: collective.leave(rank), about: [put, 0] });
        }
        self.collectives.push(collective);
        self.enter_collective(rank, kind, now)
    }

    /// Start. It knows all posts, which are made before the access ends in any case.
    fn open(&mut self, rank: u32, epoch: Epoch, now: i64) -> Option<i64> {
        let group = self.script.group(epoch);
        let key = |target| (epoch.window, rank, target);
        if !group.iter().all(|&target| self.posts.get(&key(target)).is_some_and(|posts| !posts.is_empty())) {
            return None;
        }
        let posts = group.iter().filter_map(|&target| Some((target, self.posts.get_mut(&key(target))?.pop_front()?)));
        let targets: Vec<(u32, i64, i64)> = posts.map(|(target, post)| (target, post, i64::MIN)).collect();
        let last = targets.iter().map(|target| target.1).max().unwrap_or(now);
        let leave = match self.script.blocking {
            Blocking::Start => now.max(last) + self.script.costs.call,
            Blocking::Put => now + self.script.costs.call,
        };
        let has_waited = now < last && last <= leave;
        self.cursors[rank as usize].access = Access { targets, has_waited };
        Some(self.record_outcome(rank, leave, [if has_waited { last - now } else { 0 }, 0]))
    }

    fn put(&mut self, rank: u32, (window, target): (u32, u32), now: i64) -> i64 {
        let cost = self.script.costs.put;
        let access = &mut self.cursors[rank as usize].access;
        let Some(own) = access.targets.iter_mut().find(|own| own.0 == target) else {
            // Between fences.
            let last = &mut self.last_put[window as usize][target as usize];
            *last = (*last).max(now + cost);
            return self.record_outcome(rank, now + cost, [0, 0]);
        };
        let leave = now.max(own.1) + cost;
        own.2 = leave;
        // An epoch waits once.
        let waiting = if access.has_waited { 0 } else { own.1 - now };
        access.has_waited |= waiting > 0;
        self.record_outcome(rank, leave, [waiting, 0])
    }

    fn close(&mut self, rank: u32, epoch: Epoch, now: i64) -> Option<i64> {
        let group = self.script.group(epoch);
        let key = |origin| (epoch.window, rank, origin);
        if !group.iter().all(|&origin| self.completes.get(&key(origin)).is_some_and(|done| !done.is_empty())) {
            return None;
        }
        let done = group.iter().filter_map(|&origin| self.completes.get_mut(&key(origin))?.pop_front());
        let (complete, put) = done.fold((now, now), |most, own| (most.0.max(own.0), most.1.max(own.1)));
        Some(self.record_outcome(rank, complete + self.script.costs.call, [complete - now, complete - put]))
    }
}

/// The state of a rank while its steps are written.
#[derive(Default)]
struct Writing {
    recent: RecentLateSenders,
    collectives: usize,
    /// Operations that are not complete, as a range of ids.
    operations: std::ops::Range<u64>,
}

impl Simulated<'_> {
    fn write(
        &self,
        writer: &mut EventWriter<'_>,
        rank: u32,
        step: Step,
        now: i64,
        outcomes: &[Outcome],
        to: &mut Writing,
    ) -> Result<()> {
        let call = self.script.costs.call;
        let Outcome { leave, about } =
            outcomes.first().copied().unwrap_or(Outcome { leave: now + CALL, about: [0, 0] });
        match step {
            Step::Enter(region) => writer.enter(now, region),
            Step::Leave => writer.leave(now),
            Step::Pause | Step::Work(_) => Ok(()),
            Step::Collective(kind) => {
                let collective = &self.collectives[to.collectives];
                to.collectives += 1;
                let done = to.operations.start..if kind.is_fence() { to.operations.end } else { to.operations.start };
                to.operations.start = done.end;
                collective.write_with(writer, &kind, rank, now, done.rev().map(|put| (put, false)), |writer| {
                    writer.book("mpi_rma_early_fence", about[0].saturating_sub(now));
                })
            }
            Step::Post(epoch) => epoch.post(writer, (now, now + call)),
            Step::Start(epoch) => epoch.start(writer, (now, leave), about[0]),
            Step::Put { window: win, target: remote, bytes } => {
                let matching_id = to.operations.end;
                to.operations.end += 1;
                writer.enter(now, Region::Put)?;
                writer.record(now + 20, &Event::RmaPut { win, remote, bytes, matching_id })?;
                writer.book("mpi_rma_comm_late_post", about[0]);
                writer.leave(leave)
            }
            Step::Complete(epoch) => {
                let operations = to.operations.end..to.operations.end;
                epoch.complete(writer, (now, now + call), std::mem::replace(&mut to.operations, operations))
            }
            Step::Wait(epoch) => epoch.wait(writer, (now, leave), about[0], about[1]),
            Step::Send { receiver, bytes } => send(writer, now, receiver, bytes),
            Step::Receive { sender, bytes } => receive(writer, &mut to.recent, now, (sender, about[0]), bytes),
        }
    }
}

impl Step {
    /// Whether an [`Outcome`] says when it is over.
    fn has_outcome(self) -> bool {
        matches!(self, Self::Collective(_) | Self::Start(_) | Self::Put { .. } | Self::Wait(_) | Self::Receive { .. })
    }
}

impl Schedule for Simulated<'_> {
    fn groups(&self) -> Vec<Vec<u64>> {
        let members = |group: &Vec<u32>| group.iter().map(|&rank| u64::from(rank)).collect();
        self.script.groups.iter().map(members).collect()
    }

    fn windows(&self) -> u32 {
        self.script.windows
    }

    fn write(&self, writer: &mut EventWriter<'_>, rank: u32) -> Result<()> {
        let mut outcomes = self.outcomes[rank as usize].as_slice();
        let (mut now, mut writing) = (self.start.end(rank), Writing::default());
        for number in 0.. {
            let Some((step, work)) = self.script.step(rank, number, self.start.spec.iterations as usize) else { break };
            if let Step::Work(region) = step {
                writer.enter(now, region)?;
                writer.leave(now + work)?;
            }
            self.write(writer, rank, step, now, outcomes, &mut writing)?;
            now = GAP
                + match step {
                    Step::Enter(_) | Step::Leave => now,
                    Step::Work(_) | Step::Pause => now + work,
                    _ if step.has_outcome() => {
                        let leave = outcomes[0].leave;
                        outcomes = &outcomes[1..];
                        leave
                    }
                    Step::Send { .. } => now + CALL,
                    _ => now + self.script.costs.call,
                };
        }
        Ok(())
    }

    fn end(&self, rank: u32) -> i64 {
        self.ends[rank as usize]
    }
}
