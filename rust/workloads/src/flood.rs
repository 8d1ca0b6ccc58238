//! A flood of messages to a rank that receives late: while it computes, all others send, so their messages queue up.
//!
//! *Source*: D. Eberius, *Providing Insight into the Performance of Distributed Applications Through Low-Level
//! Metrics*, dissertation, University of Tennessee, 2020, sections 3.5 and 3.9: queues of unexpected messages.

use rayon::prelude::*;
use whywait_otf2::Result;

use crate::collective::{CALL, Collective, GAP, Kind};
use crate::definitions::Region;
use crate::event_writer::EventWriter;
use crate::late_senders::RecentLateSenders;
use crate::messages::{barrier_metric, most, receive, received, send, size_metric};
use crate::{Schedule, Start};

/// Messages of a sender in an iteration.
const MESSAGES: i64 = 8;
/// Bytes of a message.
const BYTES: u64 = 512;
/// The rank that receives.
const RECEIVER: u32 = 0;

pub(crate) struct Flood<'a> {
    start: &'a Start,
    /// The barrier at the end of each iteration.
    barriers: Vec<Collective>,
}

/// When a message is sent and its receive is posted: its source, s and q.
type Message = (u32, i64, i64);

impl<'a> Flood<'a> {
    pub(crate) fn new(start: &'a Start) -> Self {
        let mut flood = Self { start, barriers: Vec::new() };
        for number in 0..start.spec.iterations as usize {
            let received = flood.messages(number).last().map_or(0, |&(_, sent, posted)| received(posted, sent));
            let barrier = start.collective_in_loop(number, |rank| match rank {
                RECEIVER => received + GAP,
                _ => flood.sent(rank, number, MESSAGES),
            });
            flood.barriers.push(barrier);
        }
        flood
    }

    fn begin(&self, rank: u32, number: usize) -> i64 {
        match number.checked_sub(1) {
            Some(before) => self.barriers[before].leave(rank) + GAP,
            None => self.start.end(rank),
        }
    }

    /// When a rank begins to send its n-th message.
    fn sent(&self, rank: u32, number: usize, n: i64) -> i64 {
        self.begin(rank, number) + n * (CALL + GAP)
    }

    /// How long the receiver computes.
    fn work(&self, number: usize) -> i64 {
        self.start.work(RECEIVER, number as u64)
    }

    /// The messages of an iteration, in the order in which they are received: one sender after the other.
    fn messages(&self, number: usize) -> Vec<Message> {
        let mut enter = self.begin(RECEIVER, number) + self.work(number) + GAP;
        let senders = (0..self.start.ranks).filter(|&rank| rank != RECEIVER);
        let of_sender = |sender: u32| (0..MESSAGES).map(move |n| (sender, n));
        let mut messages = Vec::new();
        for (sender, n) in senders.flat_map(of_sender) {
            let sent = self.sent(sender, number, n);
            messages.push((sender, sent, enter));
            enter = received(enter, sent) + GAP;
        }
        messages
    }

    fn flood(&self, writer: &mut EventWriter<'_>, rank: u32, number: usize) -> Result<()> {
        for n in 0..MESSAGES {
            send(writer, self.sent(rank, number, n), RECEIVER, BYTES)?;
            writer.count(Region::Bsend, "mpi_eager", 1);
            writer.count(Region::Bsend, "mpi_eager_bytes", BYTES as i64);
            writer.count(Region::Bsend, size_metric(BYTES), 1);
        }
        Ok(())
    }

    fn receive(&self, writer: &mut EventWriter<'_>, recent: &mut RecentLateSenders, number: usize) -> Result<()> {
        let begin = self.begin(RECEIVER, number);
        writer.enter(begin, Region::Compute)?;
        writer.leave(begin + self.work(number))?;
        for (sender, sent, posted) in self.messages(number) {
            receive(writer, recent, posted, (sender, sent), BYTES)?;
            let of = [
                ("mpi_unexpected", i64::from(sent < posted)),
                ("mpi_unexpected_possible", i64::from(sent < posted)),
                ("mpi_unexpected_bytes", if sent < posted { BYTES as i64 } else { 0 }),
                ("mpi_unexpected_time", (posted - sent).max(0)),
                ("mpi_posted_time", (sent - posted).max(0)),
                // Messages of a pair are received as they were sent: each is found at once, by the second to come.
                ("mpi_match_attempts", 1),
            ];
            for (metric, value) in of {
                writer.count(Region::Recv, metric, value);
            }
        }
        Ok(())
    }

    /// The maximum of a level, to which messages belong in an interval given by s and q.
    fn most(&self, interval: impl Fn(i64, i64) -> (i64, i64) + Sync) -> i64 {
        // The barrier follows all receives, so nothing is left between iterations.
        let of_iteration =
            |number: usize| most(self.messages(number).into_iter().map(|(_, sent, posted)| interval(sent, posted)));
        (0..self.barriers.len()).into_par_iter().map(of_iteration).max().unwrap_or(0)
    }
}

impl Schedule for Flood<'_> {
    fn write(&self, writer: &mut EventWriter<'_>, rank: u32) -> Result<()> {
        let mut recent = RecentLateSenders::default();
        for (number, barrier) in self.barriers.iter().enumerate() {
            let enter = if rank == RECEIVER {
                self.receive(writer, &mut recent, number)?;
                self.messages(number).last().map_or(0, |&(_, sent, posted)| received(posted, sent)) + GAP
            } else {
                self.flood(writer, rank, number)?;
                self.sent(rank, number, MESSAGES)
            };
            barrier.write(writer, &Kind::BARRIER, rank, enter)?;
            writer.count(Region::Barrier, barrier_metric(self.start.ranks), 1);
        }
        if rank == RECEIVER {
            let longest = self.most(|sent, posted| (sent, posted));
            writer.level("mpi_unexpected_queue", longest);
            writer.level("mpi_unexpected_data", longest * BYTES as i64);
            writer.level("mpi_posted_queue", self.most(|sent, posted| (posted, sent)));
            let in_flight = self.most(|sent, posted| (sent, received(posted, sent)));
            writer.level("mpi_bytes_in_flight", in_flight * BYTES as i64);
        }
        Ok(())
    }

    fn end(&self, rank: u32) -> i64 {
        self.begin(rank, self.barriers.len()) - GAP
    }
}
