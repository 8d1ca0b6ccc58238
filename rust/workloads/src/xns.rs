//! The communication of XNS (Jül-4297, 5.2.2): every rank sends to many others in turn and receives from as many, and a
//! large part of the messages is empty. *Balanced*, it does without these. The first half of the partners is served in
//! `ewdscatter2`, the second in `ewdgather1`.

use rayon::prelude::*;
use whywait_otf2::Result;

use crate::collective::{CALL, Collective, GAP, Kind};
use crate::definitions::Region;
use crate::event_writer::EventWriter;
use crate::late_senders::RecentLateSenders;
use crate::messages::{receive, received, send};
use crate::noise::Purpose;
use crate::{Schedule, Start};

/// Partners of a rank, at most.
const PARTNERS: u32 = 16;
/// Of `OF` messages, `EMPTY` are empty.
const OF: i64 = 10;
const EMPTY: i64 = 7;
const BYTES: u64 = 4096;

pub(crate) struct Xns<'a> {
    start: &'a Start,
    rounds: u32,
    /// When each rank begins each round of the run.
    begins: Vec<Vec<i64>>,
    barrier: Collective,
}

impl<'a> Xns<'a> {
    pub(crate) fn new(start: &'a Start) -> Self {
        let rounds = PARTNERS.min(start.ranks - 1);
        let mut xns = Self { start, rounds, begins: Vec::new(), barrier: start.init };
        for step in 0..start.spec.iterations as usize * rounds as usize {
            let begin = |rank| xns.before(rank, step) + xns.work(rank, step);
            let begins: Vec<i64> = (0..start.ranks).into_par_iter().map(begin).collect();
            xns.begins.push(begins);
        }
        xns.barrier = start.collective_in_loop(0, |rank| xns.before(rank, xns.begins.len()));
        xns
    }

    /// Partners of a rank in a round: whom it sends to, and who sends to it.
    fn partners(&self, rank: u32, step: usize) -> (u32, u32) {
        let distance = step as u32 % self.rounds + 1;
        let ranks = self.start.ranks;
        ((rank + distance) % ranks, (rank + ranks - distance) % ranks)
    }

    /// Bytes of a message, if it is sent at all.
    fn bytes(&self, sender: u32, step: usize) -> Option<u64> {
        let round = step as u64 % u64::from(self.rounds);
        if self.start.noise.below(OF, Purpose::Operation, sender, round) >= EMPTY {
            Some(BYTES)
        } else {
            (!self.start.spec.balanced).then_some(0)
        }
    }

    /// Work before a round: before the first of an iteration.
    fn work(&self, rank: u32, step: usize) -> i64 {
        let is_first = step.is_multiple_of(self.rounds as usize);
        if is_first { self.start.work(rank, (step / self.rounds as usize) as u64) + GAP } else { 0 }
    }

    /// When a rank is through with the round before.
    fn before(&self, rank: u32, step: usize) -> i64 {
        let Some(before) = step.checked_sub(1) else { return self.start.end(rank) };
        let begins = &self.begins[before];
        let (_, from) = self.partners(rank, before);
        let mut now = begins[rank as usize];
        if self.bytes(rank, before).is_some() {
            now += CALL + GAP;
        }
        if self.bytes(from, before).is_some() {
            now = received(now, begins[from as usize]) + GAP;
        }
        now
    }
}

impl Schedule for Xns<'_> {
    fn write(&self, writer: &mut EventWriter<'_>, rank: u32) -> Result<()> {
        let mut recent = RecentLateSenders::default();
        for (step, begins) in self.begins.iter().enumerate() {
            let (to, from) = self.partners(rank, step);
            let mut now = begins[rank as usize];
            if step.is_multiple_of(self.rounds as usize) {
                writer.enter(self.before(rank, step), Region::Compute)?;
                writer.leave(now - GAP)?;
            }
            let part = |step: usize| step as u32 % self.rounds < self.rounds / 2;
            if step.is_multiple_of(self.rounds as usize) || part(step) != part(step - 1) {
                writer.enter(now, if part(step) { Region::Scatter } else { Region::Gather })?;
            }
            if let Some(bytes) = self.bytes(rank, step) {
                send(writer, now, to, bytes)?;
                now += CALL + GAP;
            }
            if let Some(bytes) = self.bytes(from, step) {
                receive(writer, &mut recent, now, (from, begins[from as usize]), bytes)?;
            }
            if (step + 1).is_multiple_of(self.rounds as usize) || part(step + 1) != part(step) {
                writer.leave(self.before(rank, step + 1))?;
            }
        }
        self.barrier.write(writer, &Kind::BARRIER, rank, self.before(rank, self.begins.len()))
    }

    fn end(&self, rank: u32) -> i64 {
        self.barrier.leave(rank)
    }
}
