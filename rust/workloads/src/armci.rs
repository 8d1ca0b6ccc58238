//! Programs of one-sided ARMCI operations, whose targets make progress only inside the library.
//!
//! Ranks are simulated in order of their calls. An operation that needs its target completes while the target is in any
//! library call, never while it computes.

use std::cmp::Reverse;
use std::collections::{BinaryHeap, VecDeque};

use whywait_otf2::enums::RmaAtomicType;
use whywait_otf2::{Event, Result};

use crate::collective::{CALL, Collective, GAP, Kind};
use crate::definitions::{Region, WINDOW};
use crate::event_writer::EventWriter;
use crate::{Schedule, Start};

/// A step of a rank.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Call {
    /// Computes in a function, or in the open one.
    Work(Option<Region>, i64),
    /// `ARMCI_Get`, `ARMCI_Acc` or `ARMCI_Rmw`: takes `ticks` once its target answers, if it `needs` that.
    Blocking {
        region: Region,
        target: u32,
        bytes: u64,
        ticks: i64,
        needs: bool,
    },
    /// `ARMCI_NbGet`.
    Begin {
        target: u32,
        bytes: u64,
        ticks: i64,
    },
    /// `ARMCI_Wait` for the oldest pending get.
    Wait,
    /// `ARMCI_AllFence`, which takes its time.
    AllFence(i64),
    Collective(Kind),
}

/// The program of each rank.
pub(crate) trait Program: Sync {
    /// The step of a rank by its number.
    fn call(&self, rank: u32, number: usize) -> Option<Call>;
}

/// The result of a call that may wait.
#[derive(Clone, Copy, Debug)]
struct Outcome {
    leave: i64,
    waiting: i64,
}

pub(crate) struct Armci<'a, P> {
    start: &'a Start,
    program: P,
    collectives: Vec<Collective>,
    outcomes: Vec<Vec<Outcome>>,
    ends: Vec<i64>,
}

/// The position of a rank.
struct Cursor {
    number: usize,
    /// End of its current library call, as far as known.
    leave: i64,
    /// When it enters the library next.
    next: i64,
    /// Pending gets: when the data arrive, and their source.
    gets: VecDeque<(i64, u32)>,
}

impl<'a, P: Program> Armci<'a, P> {
    pub(crate) fn new(start: &'a Start, program: P) -> Self {
        let cursor = |rank| {
            let begin = start.end(rank);
            Cursor { number: 0, leave: begin - GAP, next: begin, gets: VecDeque::new() }
        };
        let mut armci = Self {
            start,
            program,
            collectives: Vec::new(),
            outcomes: vec![Vec::new(); start.ranks as usize],
            ends: Vec::new(),
        };
        let mut cursors: Vec<Cursor> = (0..start.ranks).map(cursor).collect();
        let mut agenda = BinaryHeap::new();
        for rank in 0..start.ranks {
            armci.schedule(rank, &mut cursors, &mut agenda);
        }
        let mut arrived: Vec<(u32, i64)> = Vec::new();
        while let Some(Reverse((time, rank))) = agenda.pop() {
            let Some(call) = armci.program.call(rank, cursors[rank as usize].number) else { continue };
            // From now on the rank is in the library and serves every origin.
            cursors[rank as usize].leave = i64::MAX;
            if let Call::Collective(_) = call {
                arrived.push((rank, time));
                if arrived.len() == start.ranks as usize {
                    arrived.sort_unstable();
                    let collective = start.collective_in_loop(armci.collectives.len(), |rank| arrived[rank as usize].1);
                    for (rank, _) in arrived.drain(..) {
                        armci.leave(
                            rank,
                            Outcome { leave: collective.leave(rank), waiting: 0 },
                            &mut cursors,
                            &mut agenda,
                        );
                    }
                    armci.collectives.push(collective);
                }
                continue;
            }
            let outcome = act(rank, call, time, &mut cursors);
            armci.leave(rank, outcome, &mut cursors, &mut agenda);
        }
        armci.ends = cursors.iter().map(|cursor| cursor.next).collect();
        armci
    }

    fn leave(&mut self, rank: u32, outcome: Outcome, cursors: &mut [Cursor], agenda: &mut Agenda) {
        self.outcomes[rank as usize].push(outcome);
        let cursor = &mut cursors[rank as usize];
        cursor.leave = outcome.leave;
        cursor.next = outcome.leave + GAP;
        cursor.number += 1;
        self.schedule(rank, cursors, agenda);
    }

    /// Computes until the next call.
    fn schedule(&self, rank: u32, cursors: &mut [Cursor], agenda: &mut Agenda) {
        let cursor = &mut cursors[rank as usize];
        while let Some(Call::Work(_, ticks)) = self.program.call(rank, cursor.number) {
            cursor.next += ticks + GAP;
            cursor.number += 1;
        }
        agenda.push(Reverse((cursor.next, rank)));
    }
}

type Agenda = BinaryHeap<Reverse<(i64, u32)>>;

/// Performs a call other than a collective.
fn act(rank: u32, call: Call, time: i64, cursors: &mut [Cursor]) -> Outcome {
    // When a target is in the library, from now on.
    let present = |target: u32| {
        let Cursor { leave, next, .. } = cursors[target as usize];
        if target == rank || leave >= time { time } else { next }
    };
    // A target that enters the library during the transfer counts as the one that made progress.
    let waiting = |target: u32, leave: i64| if present(target) < leave { present(target) - time } else { 0 };
    match call {
        Call::Blocking { target, ticks, needs, .. } => {
            let leave = if needs { present(target) } else { time } + ticks;
            Outcome { leave, waiting: waiting(target, leave) }
        }
        Call::Begin { target, ticks, .. } => {
            let ready = present(target) + ticks;
            cursors[rank as usize].gets.push_back((ready, target));
            Outcome { leave: time + CALL, waiting: 0 }
        }
        Call::Wait => {
            let (ready, target) = cursors[rank as usize].gets.front().copied().unwrap_or((time, rank));
            let leave = time.max(ready) + CALL;
            let waiting = waiting(target, leave);
            cursors[rank as usize].gets.pop_front();
            Outcome { leave, waiting }
        }
        Call::AllFence(ticks) => Outcome { leave: time + ticks, waiting: 0 },
        Call::Work(..) | Call::Collective(_) => Outcome { leave: time, waiting: 0 },
    }
}

/// Books a wait for progress, of which one target is the cause.
fn book(writer: &mut EventWriter<'_>, metrics: [&'static str; 2], waiting: i64) {
    for metric in metrics {
        writer.book(metric, waiting);
    }
}

const COMMUNICATION: [&str; 2] = ["armci_rma_comm_wait_for_progress", "armci_rma_comm_wait_for_progress_last_call"];
const SYNCHRONIZATION: [&str; 2] = ["armci_rma_sync_wait_for_progress", "armci_rma_sync_wait_for_progress_last_call"];

impl<P: Program> Schedule for Armci<'_, P> {
    fn write(&self, writer: &mut EventWriter<'_>, rank: u32) -> Result<()> {
        let win = WINDOW;
        let (mut now, mut ids, mut collectives) = (self.start.end(rank), 0..0, self.collectives.iter());
        let mut outcomes = self.outcomes[rank as usize].iter();
        for number in 0.. {
            let Some(call) = self.program.call(rank, number) else { break };
            if let Call::Work(region, ticks) = call {
                if let Some(region) = region {
                    writer.enter(now, region)?;
                    writer.leave(now + ticks)?;
                }
                now += ticks + GAP;
                continue;
            }
            let Some(&Outcome { leave, waiting }) = outcomes.next() else { break };
            match call {
                Call::Work(..) => {}
                Call::Blocking { region, target: remote, bytes, .. } => {
                    let matching_id = ids.end;
                    ids = ids.end + 1..ids.end + 1;
                    let atomic = |atomic_type, bytes_received| Event::RmaAtomic {
                        win,
                        remote,
                        atomic_type,
                        bytes_sent: bytes,
                        bytes_received,
                        matching_id,
                    };
                    let event = match region {
                        Region::ArmciAcc => atomic(RmaAtomicType::ACCUMULATE, 0),
                        Region::ArmciRmw => atomic(RmaAtomicType::FETCH_AND_ADD, bytes),
                        _ => Event::RmaGet { win, remote, bytes, matching_id },
                    };
                    writer.enter(now, region)?;
                    writer.record(now + 20, &event)?;
                    writer.record(leave - 20, &Event::RmaOpCompleteBlocking { win, matching_id })?;
                    book(writer, COMMUNICATION, waiting);
                    writer.leave(leave)?;
                }
                Call::Begin { target: remote, bytes, .. } => {
                    let get = Event::RmaGet { win, remote, bytes, matching_id: ids.end };
                    ids.end += 1;
                    writer.call(Region::ArmciNbGet, now, leave, &get)?;
                }
                Call::Wait => {
                    let done = Event::RmaOpCompleteNonBlocking { win, matching_id: ids.start };
                    ids.start += 1;
                    writer.enter(now, Region::ArmciWait)?;
                    writer.record(leave - 20, &done)?;
                    book(writer, SYNCHRONIZATION, waiting);
                    writer.leave(leave)?;
                }
                Call::AllFence(_) => {
                    writer.enter(now, Region::ArmciAllFence)?;
                    writer.leave(leave)?;
                }
                Call::Collective(kind) => {
                    if let Some(collective) = collectives.next() {
                        collective.write(writer, &kind, rank, now)?;
                    }
                }
            }
            now = leave + GAP;
        }
        Ok(())
    }

    fn end(&self, rank: u32) -> i64 {
        self.ends[rank as usize]
    }
}
