//! Constructs of OpenMP as its runtime told of them, in the records that Score-P writes.
//!
//! A thread of a team may learn late, or early, that the barrier at the end of a parallel region is over. It is over when the
//! thread that forked goes on: then the region ends for all.

use rustc_hash::FxHashMap;
use whywait_otf2::Event;
use whywait_otf2::enums::{Paradigm, RegionRole};

use crate::constructs::{Constructs, is_call, role};
use crate::format::{BEGINS, Call, NONE};
use crate::functions::FUNCTIONS;
use crate::model::Regions;
use crate::thread::{Construct, Thread};

/// A team whose parallel region is over, and when its barrier was.
pub(crate) type Ended = (u32, u64);

/// Constructs of a process under way.
#[derive(Debug)]
pub(crate) struct OpenMp<'a> {
    known: &'a Constructs,
    /// Where tasks were made that are not complete.
    tasks: FxHashMap<u64, u64>,
}

/// In the number of a task: bits of its number among those of the thread that made it.
const GENERATION: u32 = 40;

impl<'a> OpenMp<'a> {
    pub(crate) fn new(known: &'a Constructs) -> Self {
        Self { known, tasks: FxHashMap::default() }
    }

    fn region(&self, call: &Call, code: u64) -> Option<u32> {
        self.known.regions.get(&(call.function, code)).copied()
    }

    /// A moment: a construct begins or ends. Returns the team whose region is over, which ends for its other threads too.
    pub(crate) fn moment(&mut self, thread: &mut Thread<'_>, call: &Call, regions: &Regions) -> Option<Ended> {
        let name = FUNCTIONS[usize::from(call.function)].name;
        let (time, begins) = (call.enter, call.peer == BEGINS);
        if name == "omp_parallel" && !begins {
            return self.end_of_team(thread, time, regions);
        }
        thread.end_barrier(regions);
        match (name, begins) {
            ("omp_fork", true) => {
                thread.follow_path(call.node, time, regions);
                let number_of_requested_threads = call.tag.cast_unsigned();
                thread.out.put(time, &Event::ThreadFork { model: Paradigm::OPENMP, number_of_requested_threads });
            }
            ("omp_fork", false) => thread.out.put(time, &Event::ThreadJoin { model: Paradigm::OPENMP }),
            ("omp_set_lock", false) => {
                lock(thread, call, true);
                // Of a lock that was only tested, there is no call.
                if call.tag == 0 && thread.constructs.last().is_some_and(|last| last.name == name) {
                    thread.close(time, regions);
                }
            }
            ("omp_unset_lock", _) => {
                let region = self.region(call, 0)?;
                thread.follow_path(call.node, time, regions);
                thread.out.enter(time, region);
                lock(thread, call, false);
                thread.out.leave(time, region);
            }
            ("omp_create_task", _) => {
                self.tasks.insert(call.id, call.received);
                let region = self.region(call, call.received)?;
                thread.follow_path(call.node, time, regions);
                thread.out.enter(time, region);
                if let Some((thread_team, creating_thread, generation_number)) = self.task(thread, call.id) {
                    let event = Event::ThreadTaskCreate { thread_team, creating_thread, generation_number };
                    thread.out.put(time, &event);
                }
                thread.out.leave(time, region);
            }
            ("omp_task", true) => {
                let code = self.tasks.get(&call.id).copied().unwrap_or(0);
                let region = self.region(call, code)?;
                thread.resumes = None;
                self.switch(thread, time, call.id);
                thread.open(Construct { task: call.id, ..construct(name, region) }, call.node, time, regions);
            }
            ("omp_task", false) => {
                self.tasks.remove(&call.id);
                if !thread.constructs.iter().any(|one| one.task == call.id) {
                    return None;
                }
                let team = self.task(thread, call.id);
                while thread.close(time, regions).is_some_and(|closed| closed.task != call.id) {}
                if let Some((thread_team, creating_thread, generation_number)) = team {
                    let event = Event::ThreadTaskComplete { thread_team, creating_thread, generation_number };
                    thread.out.put(time, &event);
                }
                // What is around it goes on once it has nothing more to wait for.
                thread.resumes = Some(
                    thread.constructs.iter().rev().find_map(|one| (one.task != 0).then_some(one.task)).unwrap_or(0),
                );
            }
            (_, true) => {
                let mut code = if is_call(name) { 0 } else { call.received };
                if code == 0 && name == "omp_implicit_barrier" {
                    // Only the thread that forked knows where its region ends.
                    code = thread.constructs.iter().rev().find(|one| one.team != NONE).map_or(0, |region| region.code);
                }
                let region = self.region(call, code)?;
                if name == "omp_critical_sblock" {
                    lock(thread, call, true);
                }
                let team = if name == "omp_parallel" { call.object } else { NONE };
                if let Some((thread_team, _)) = self.known.teams.get(&team) {
                    // Functions around it are those of the thread that forked.
                    thread.follow_path(call.node, time, regions);
                    thread.out.put(time, &Event::ThreadTeamBegin { thread_team: *thread_team });
                }
                thread.open(Construct { code, team, ..construct(name, region) }, call.node, time, regions);
            }
            (_, false) => self.end(thread, call, name, regions),
        }
        None
    }

    /// A construct other than a parallel region or a task ends.
    fn end(&self, thread: &mut Thread<'_>, call: &Call, name: &'static str, regions: &Regions) {
        let time = call.enter;
        let Some(at) = thread.constructs.iter().rposition(|one| one.name == name) else { return };
        // Not across the border of a region or a task.
        if thread.constructs[at + 1..].iter().any(|one| one.team != NONE || one.task != 0) {
            return;
        }
        while thread.constructs.len() > at + 1 {
            thread.close(time, regions);
        }
        if let Some(task) = thread.resumes.take_if(|_| {
            matches!(role(name), RegionRole::TASK_WAIT | RegionRole::BARRIER | RegionRole::IMPLICIT_BARRIER)
        }) {
            self.switch(thread, time, task);
        }
        let is_last = at > 0 && thread.constructs[at - 1].team != NONE;
        if name == "omp_implicit_barrier" && is_last {
            // Perhaps that at the end of the region.
            thread.barrier_end = Some(time);
            return;
        }
        thread.close(time, regions);
        if name == "omp_critical_sblock" {
            lock(thread, call, false);
            if thread.constructs.last().is_some_and(|last| last.name == "omp_critical") {
                thread.close(time, regions);
            }
        }
    }

    /// A thread leaves its parallel region: the one that forked, for all of them.
    fn end_of_team(&self, thread: &mut Thread<'_>, time: u64, regions: &Regions) -> Option<Ended> {
        let team = thread.constructs.iter().rev().find(|one| one.team != NONE)?.team;
        if team >> 8 != thread.number {
            return None;
        }
        let barrier = thread.barrier_end.take().unwrap_or(time);
        self.close_team(thread, team, barrier, regions);
        Some((team, barrier))
    }

    /// Ends the parallel region of a team for a thread that is in it.
    pub(crate) fn close_team(&self, thread: &mut Thread<'_>, team: u32, time: u64, regions: &Regions) {
        if !thread.constructs.iter().any(|one| one.team == team) {
            return;
        }
        thread.barrier_end = None;
        thread.resumes = None;
        while thread.close(time, regions).is_some_and(|closed| closed.team != team) {}
        if let Some((thread_team, _)) = self.known.teams.get(&team) {
            thread.out.put(time, &Event::ThreadTeamEnd { thread_team: *thread_team });
        }
    }

    /// The thread runs another task from now on.
    fn switch(&self, thread: &mut Thread<'_>, time: u64, task: u64) {
        if let Some((thread_team, creating_thread, generation_number)) = self.task(thread, task) {
            thread.out.put(time, &Event::ThreadTaskSwitch { thread_team, creating_thread, generation_number });
        }
    }

    /// A task as OTF2 names it: its team, which of its threads made it, and its number; 0 is what a thread of the team does itself.
    fn task(&self, thread: &Thread<'_>, task: u64) -> Option<(u32, u32, u32)> {
        let team = thread.constructs.iter().rev().find(|one| one.team != NONE)?.team;
        let (comm, threads) = self.known.teams.get(&team)?;
        let maker = if task == 0 { thread.number } else { ((task >> GENERATION) as u32).checked_sub(1)? };
        let creating = threads.iter().position(|thread| *thread == maker)? as u32;
        Some((*comm, creating, (task & ((1 << GENERATION) - 1)) as u32))
    }
}

fn construct(name: &'static str, region: u32) -> Construct {
    Construct { name, region, code: 0, team: NONE, task: 0, around: Vec::new(), outer: Vec::new() }
}

/// A thread has or gives up a lock.
fn lock(thread: &mut Thread<'_>, call: &Call, acquires: bool) {
    let (model, lock_id, acquisition_order) = (Paradigm::OPENMP, call.object, call.bytes);
    if acquisition_order == 0 {
        return;
    }
    if acquires {
        thread.out.put(call.enter, &Event::ThreadAcquireLock { model, lock_id, acquisition_order });
    } else {
        thread.out.put(call.enter, &Event::ThreadReleaseLock { model, lock_id, acquisition_order });
    }
}

impl Thread<'_> {
    /// Opens a construct at a call path.
    fn open(&mut self, mut construct: Construct, node: u32, time: u64, regions: &Regions) {
        self.follow_path(node, time, regions);
        construct.around = match self.constructs.last() {
            Some(last) => last.around.iter().chain(&self.inside).copied().collect(),
            None => self.chain(self.node),
        };
        construct.outer = std::mem::take(&mut self.inside);
        self.out.enter(time, construct.region);
        self.constructs.push(construct);
    }

    /// Leaves the innermost construct and the functions in it.
    pub(crate) fn close(&mut self, time: u64, regions: &Regions) -> Option<Construct> {
        let mut construct = self.constructs.pop()?;
        for function in self.inside.iter().rev() {
            self.out.leave(time, regions.functions + function);
        }
        self.inside = std::mem::take(&mut construct.outer);
        self.out.leave(time, construct.region);
        Some(construct)
    }

    /// Writes the end of a barrier that was not the last one of its region.
    pub(crate) fn end_barrier(&mut self, regions: &Regions) {
        if let Some(time) = self.barrier_end.take() {
            self.close(time, regions);
        }
    }

    /// Leaves and enters functions until those of the path are open. In constructs, only what is inside of the innermost one.
    pub(crate) fn follow_path(&mut self, path: u32, time: u64, regions: &Regions) {
        let Some(construct) = self.constructs.last() else {
            if self.node != path {
                self.follow(path, time, regions);
            }
            return;
        };
        let chain = self.chain(path);
        // Whatever the unwinder found: a construct is left by its own end only.
        let wanted = chain.strip_prefix(&construct.around[..]).unwrap_or_default();
        let same = self.inside.iter().zip(wanted).take_while(|(a, b)| a == b).count();
        let last = self.out.last();
        for function in self.inside.drain(same..).rev() {
            self.out.leave(last, regions.functions + function);
        }
        self.out.count(&self.before, crate::format::Extension::CountersEnter);
        for function in &wanted[same..] {
            self.out.open(time, regions.functions + function);
            self.inside.push(*function);
        }
    }
}
