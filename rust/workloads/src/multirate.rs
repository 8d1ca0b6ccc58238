//! Windows of messages from the threads of a process to those of another one, thread by thread.
//!
//! In each window the threads of a sender take turns with `MPI_Isend`, or in some rounds call it all at once: then
//! the order in which their messages left is unknown. The threads of a receiver post their windows one after the
//! other. So posted receives and messages of one communicator are in different orders, and each search goes through
//! those of other threads. In three windows of four all receives are posted before the first message is sent, in the
//! fourth all messages lie there before the first receive is posted.
//!
//! *Source*: D. Eberius, *Providing Insight into the Performance of Distributed Applications Through Low-Level
//! Metrics*, dissertation, University of Tennessee, 2020, section 3.9 and table 3.4: `multirate`, pairwise.

use rayon::prelude::*;
use whywait_otf2::Event;
use whywait_otf2::Result;

use crate::collective::{CALL, Collective, GAP, JITTER, Kind, TRANSFER};
use crate::definitions::{Region, WORLD};
use crate::event_writer::EventWriter;
use crate::messages::{barrier_metric, most, size_metric};
use crate::{Schedule, Start, Stream};

/// The last of this many windows is received late.
const LATE: usize = 4;
/// Ticks from the begin of a call of a thread to the begin of the next one.
const STEP: i64 = CALL + GAP;

pub(crate) struct Multirate<'a> {
    start: &'a Start,
    stream: Stream,
    /// Whether each pair of threads has a communicator of its own.
    has_communicators: bool,
    /// The barrier at the end of each window.
    barriers: Vec<Collective>,
}

/// The role of a process.
#[derive(Clone, Copy)]
enum Role {
    /// Sends to another one.
    Sends(u32),
    /// Receives from another one.
    Receives(u32),
    /// The last one of an odd number.
    Idle,
}

impl<'a> Multirate<'a> {
    pub(crate) fn new(start: &'a Start, has_communicators: bool) -> Self {
        let mut own = Self { start, stream: start.spec.stream, has_communicators, barriers: Vec::new() };
        for number in 0..start.spec.iterations as usize {
            let barrier = start.collective_in_loop(number, |rank| own.joined(rank, number) + GAP);
            own.barriers.push(barrier);
        }
        own
    }

    fn role(&self, rank: u32) -> Role {
        match rank {
            _ if rank % 2 == 1 => Role::Receives(rank - 1),
            _ if rank + 1 == self.start.ranks => Role::Idle,
            _ => Role::Sends(rank + 1),
        }
    }

    /// Calls of all threads in a window.
    fn calls(&self) -> i64 {
        i64::from(self.stream.window) * i64::from(self.stream.threads)
    }

    /// Whether all messages of a window are there before they are received.
    fn is_late(number: usize) -> bool {
        number % LATE == LATE - 1
    }

    /// Whether the threads send their n-th messages of a window at once.
    fn overlaps(&self, number: usize, n: u32) -> bool {
        let round = number as f64 * f64::from(self.stream.window) + f64::from(n);
        let upto = |rounds: f64| (rounds * self.stream.overlap).floor();
        self.stream.threads > 1 && upto(round + 1.0) > upto(round)
    }

    // --- times
    // ---------------------------------------------------------------------------------------------------------

    fn begin(&self, rank: u32, number: usize) -> i64 {
        match number.checked_sub(1) {
            Some(before) => self.barriers[before].leave(rank) + GAP,
            None => self.start.end(rank),
        }
    }

    /// When a process is done with its work; the later side works so long that the other one is done with its calls.
    fn ready(&self, rank: u32, number: usize) -> i64 {
        let works = match self.role(rank) {
            Role::Sends(_) => !Self::is_late(number),
            Role::Receives(_) => Self::is_late(number),
            Role::Idle => false,
        };
        let work = if works { self.calls() * STEP + 2 * JITTER + self.start.work(rank, number as u64) } else { 0 };
        self.begin(rank, number) + work
    }

    /// When the first call of a window begins.
    fn first(&self, rank: u32, number: usize) -> i64 {
        self.ready(rank, number) + 2 * GAP
    }

    fn send(&self, rank: u32, number: usize, thread: u32, n: u32) -> i64 {
        let turn = if self.overlaps(number, n) { 0 } else { thread };
        self.first(rank, number) + (i64::from(n) * i64::from(self.stream.threads) + i64::from(turn)) * STEP
    }

    fn post(&self, rank: u32, number: usize, thread: u32, n: u32) -> i64 {
        self.first(rank, number) + (i64::from(thread) * i64::from(self.stream.window) + i64::from(n)) * STEP
    }

    /// Enter and Leave of a thread's `MPI_Waitall`, and how long it waits for its last message.
    fn waitall(&self, rank: u32, number: usize, thread: u32) -> (i64, i64, i64) {
        let window = self.stream.window;
        if let Role::Receives(from) = self.role(rank) {
            let enter = self.post(rank, number, thread, window);
            let sent = self.send(from, number, thread, window - 1);
            (enter, enter.max(sent + TRANSFER) + CALL, sent - enter)
        } else {
            let enter = self.first(rank, number) + self.calls() * STEP;
            (enter, enter + CALL, 0)
        }
    }

    /// When the threads of a process are one again.
    fn joined(&self, rank: u32, number: usize) -> i64 {
        match self.role(rank) {
            Role::Idle => self.begin(rank, number),
            _ => {
                (0..self.stream.threads).map(|thread| self.waitall(rank, number, thread).1).max().unwrap_or(0) + 2 * GAP
            }
        }
    }

    // --- events
    // --------------------------------------------------------------------------------------------------------

    /// The calls of a thread in a window.
    fn write_window(&self, writer: &mut EventWriter<'_>, rank: u32, number: usize, thread: u32) -> Result<()> {
        let parallel = self.stream.threads > 1;
        if parallel {
            writer.begin_team(self.first(rank, number) - GAP, rank)?;
        }
        let leave = self.waitall(rank, number, thread).1;
        match self.role(rank) {
            Role::Sends(to) => self.write_sends(writer, (rank, to), number, thread)?,
            Role::Receives(from) => self.write_receives(writer, (from, rank), number, thread)?,
            Role::Idle => {}
        }
        if parallel {
            writer.end_team(leave + GAP, rank)?;
        }
        Ok(())
    }

    /// Communicator of a pair of threads.
    fn communicator(&self, thread: u32) -> u32 {
        if self.has_communicators { WORLD + thread } else { WORLD }
    }

    /// Requests of a thread in a window.
    fn requests(&self, number: usize, thread: u32) -> std::ops::Range<u64> {
        let window = u64::from(self.stream.window);
        let first = (number as u64 * u64::from(self.stream.threads) + u64::from(thread)) * window;
        first..first + window
    }

    fn write_sends(
        &self,
        writer: &mut EventWriter<'_>,
        (rank, receiver): (u32, u32),
        number: usize,
        thread: u32,
    ) -> Result<()> {
        let (communicator, msg_length) = (self.communicator(thread), u64::from(self.stream.bytes));
        for (n, request_id) in (0..).zip(self.requests(number, thread)) {
            let enter = self.send(rank, number, thread, n);
            let event = Event::MpiIsend { receiver, communicator, msg_tag: thread, msg_length, request_id };
            writer.call(Region::Isend, enter, enter + CALL, &event)?;
            // A send that is over before its receive is posted was eager; else nothing proves that.
            let [messages, bytes] = if Self::is_late(number) {
                ["mpi_eager", "mpi_eager_bytes"]
            } else {
                ["mpi_protocol_unknown", "mpi_protocol_unknown_bytes"]
            };
            writer.count(Region::Isend, messages, 1);
            writer.count(Region::Isend, bytes, i64::from(self.stream.bytes));
            writer.count(Region::Isend, size_metric(msg_length), 1);
            if self.overlaps(number, n) && !self.has_communicators {
                writer.count(Region::Isend, "mpi_oos_possible", 1);
            }
        }
        let (enter, leave, _) = self.waitall(rank, number, thread);
        writer.enter(enter, Region::Waitall)?;
        for request_id in self.requests(number, thread) {
            writer.record(leave - CALL / 2, &Event::MpiIsendComplete { request_id })?;
        }
        writer.leave(leave)
    }

    fn write_receives(
        &self,
        writer: &mut EventWriter<'_>,
        (sender, rank): (u32, u32),
        number: usize,
        thread: u32,
    ) -> Result<()> {
        for (n, request_id) in (0..).zip(self.requests(number, thread)) {
            let enter = self.post(rank, number, thread, n);
            writer.call(Region::Irecv, enter, enter + CALL, &Event::MpiIrecvRequest { request_id })?;
            let since = enter - self.send(sender, number, thread, n);
            let unexpected = i64::from(since > 0);
            let of = [
                ("mpi_unexpected", unexpected),
                ("mpi_unexpected_possible", unexpected),
                ("mpi_unexpected_at_least", i64::from(self.is_proven(number, thread, n))),
                ("mpi_unexpected_bytes", unexpected * i64::from(self.stream.bytes)),
                ("mpi_unexpected_time", since.max(0)),
                ("mpi_posted_time", (-since).max(0)),
                ("mpi_match_attempts", 1 + self.others(number, thread, n)),
                ("mpi_overtaken", i64::from(self.is_overtaken(thread, n))),
            ];
            for (metric, value) in of {
                writer.count(Region::Irecv, metric, value);
            }
        }
        let (enter, leave, waiting) = self.waitall(rank, number, thread);
        writer.enter(enter, Region::Waitall)?;
        for request_id in self.requests(number, thread) {
            let (communicator, msg_length) = (self.communicator(thread), u64::from(self.stream.bytes));
            let event = Event::MpiIrecv { sender, communicator, msg_tag: thread, msg_length, request_id };
            writer.record(leave - CALL / 2, &event)?;
        }
        writer.book("mpi_latesender", waiting);
        writer.leave(leave)
    }

    /// Entries of other threads that the search for a message passes: receives posted earlier whose messages arrive
    /// later, or messages that arrived earlier whose receives are posted later.
    fn others(&self, number: usize, thread: u32, n: u32) -> i64 {
        let Stream { threads, window, .. } = self.stream;
        match self.has_communicators {
            true => 0,
            false if Self::is_late(number) => i64::from(threads - 1 - thread) * i64::from(n),
            false => i64::from(thread) * i64::from(window - 1 - n),
        }
    }

    /// Whether a message that is sent later has a receive that is posted earlier.
    fn is_overtaken(&self, thread: u32, n: u32) -> bool {
        !self.has_communicators && thread > 0 && n + 1 < self.stream.window
    }

    /// Whether another thread's message of a late window that was sent later is complete before this one is received: the
    /// thread before is done only when the first receive of this one is posted.
    fn is_proven(&self, number: usize, thread: u32, n: u32) -> bool {
        Self::is_late(number) && self.is_overtaken(thread, n) && (thread > 1 || n > 0)
    }

    /// The most messages of a window that are sent and not yet completed.
    fn in_flight(&self, sender: u32, rank: u32, number: usize) -> i64 {
        let of_thread = |thread: u32| {
            let completed = self.waitall(rank, number, thread).1;
            (0..self.stream.window).map(move |n| (self.send(sender, number, thread, n), completed))
        };
        most((0..self.stream.threads).flat_map(of_thread))
    }

    /// The most there is in queues of a process at a time.
    fn levels(&self, writer: &mut EventWriter<'_>, rank: u32) {
        match self.role(rank) {
            Role::Sends(_) => {
                writer.level("mpi_send_requests", self.calls());
                writer.level("mpi_requests", self.calls());
            }
            Role::Receives(from) => {
                let late = if self.barriers.len() >= LATE { self.calls() } else { 0 };
                writer.level("mpi_posted_queue", self.calls());
                writer.level("mpi_receive_requests", self.calls());
                writer.level("mpi_requests", self.calls());
                writer.level("mpi_unexpected_queue", late);
                writer.level("mpi_unexpected_data", late * i64::from(self.stream.bytes));
                let in_flight =
                    (0..self.barriers.len()).into_par_iter().map(|number| self.in_flight(from, rank, number));
                writer.level("mpi_bytes_in_flight", in_flight.max().unwrap_or(0) * i64::from(self.stream.bytes));
            }
            Role::Idle => {}
        }
    }
}

impl Schedule for Multirate<'_> {
    fn threads(&self) -> u32 {
        self.stream.threads
    }

    fn communicators(&self) -> u32 {
        if self.has_communicators { self.stream.threads } else { 1 }
    }

    fn write(&self, writer: &mut EventWriter<'_>, rank: u32) -> Result<()> {
        let is_idle = matches!(self.role(rank), Role::Idle);
        let forks = !is_idle && self.stream.threads > 1;
        for (number, barrier) in self.barriers.iter().enumerate() {
            let (begin, ready) = (self.begin(rank, number), self.ready(rank, number));
            if begin < ready {
                writer.enter(begin, Region::Compute)?;
                writer.leave(ready)?;
            }
            if forks {
                writer.fork(ready, self.stream.threads)?;
            }
            if !is_idle {
                self.write_window(writer, rank, number, 0)?;
            }
            if forks {
                writer.join(self.joined(rank, number))?;
            }
            barrier.write(writer, &Kind::BARRIER, rank, self.joined(rank, number) + GAP)?;
            writer.count(Region::Barrier, barrier_metric(self.start.ranks), 1);
        }
        self.levels(writer, rank);
        Ok(())
    }

    fn write_thread(&self, writer: &mut EventWriter<'_>, rank: u32, thread: u32) -> Result<()> {
        if !matches!(self.role(rank), Role::Idle) {
            for number in 0..self.barriers.len() {
                self.write_window(writer, rank, number, thread)?;
            }
        }
        Ok(())
    }

    fn end(&self, rank: u32) -> i64 {
        self.begin(rank, self.barriers.len()) - GAP
    }
}
