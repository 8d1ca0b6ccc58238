//! The benchmarks of load balance of M.-A. Hermanns, Jül-4297 (2008), 5.1: `foo`, whose time depends on the rank,
//! `bar`, whose time does not, and then communication.
//!
//! LB-COLL has an Allreduce (figure 5.1). LB-P2P has a transfer between ranks of equal parity, in which none is late,
//! and one between even and odd ranks, in which the even ones are (figure 5.3).

use rayon::prelude::*;
use whywait_otf2::Result;

use crate::collective::{CALL, Collective, GAP, Kind};
use crate::definitions::Region;
use crate::event_writer::EventWriter;
use crate::late_senders::RecentLateSenders;
use crate::messages::{receive, received, send};
use crate::{Schedule, Start, mean};

/// Bytes of a transfer.
const BYTES: u64 = 4096;
/// The bit in which the ranks of partners differ: the first transfer is between ranks of equal parity.
const PARTNERS: [u32; 2] = [2, 1];

/// LB-COLL.
pub(crate) struct Coll<'a> {
    start: &'a Start,
    /// For each iteration, the time of all ranks in `foo`, and the Allreduce.
    iterations: Vec<(i64, Collective)>,
}

impl<'a> Coll<'a> {
    pub(crate) fn new(start: &'a Start) -> Self {
        let mut coll = Self { start, iterations: Vec::new() };
        for number in 0..start.spec.iterations as usize {
            let sum = start.work_of_all(number as u64);
            let enter = |rank| coll.ready(rank, number, sum);
            let allreduce = start.collective_in_loop(number, enter);
            coll.iterations.push((sum, allreduce));
        }
        coll
    }

    fn foo(&self, rank: u32, number: usize, sum: i64) -> i64 {
        self.start.work_or_mean(rank, number as u64, sum)
    }

    fn begin(&self, rank: u32, number: usize) -> i64 {
        let before = number.checked_sub(1).map(|before| self.iterations[before].1.leave(rank) + GAP);
        before.unwrap_or_else(|| self.start.end(rank))
    }

    /// When a rank enters the Allreduce.
    fn ready(&self, rank: u32, number: usize, sum: i64) -> i64 {
        self.begin(rank, number) + self.foo(rank, number, sum) + GAP + i64::from(self.start.spec.work) + GAP
    }
}

impl Schedule for Coll<'_> {
    fn write(&self, writer: &mut EventWriter<'_>, rank: u32) -> Result<()> {
        for (number, (sum, allreduce)) in self.iterations.iter().enumerate() {
            let begin = self.begin(rank, number);
            write_work(writer, begin, self.foo(rank, number, *sum), i64::from(self.start.spec.work))?;
            allreduce.write(writer, &Kind::ALLREDUCE, rank, self.ready(rank, number, *sum))?;
        }
        Ok(())
    }

    fn end(&self, rank: u32) -> i64 {
        self.begin(rank, self.iterations.len()) - GAP
    }
}

/// `foo`, whose time depends on the rank, and `bar`, whose time does not.
fn write_work(writer: &mut EventWriter<'_>, begin: i64, uneven: i64, even: i64) -> Result<()> {
    writer.enter(begin, Region::Foo)?;
    writer.leave(begin + uneven)?;
    writer.enter(begin + uneven + GAP, Region::Bar)?;
    writer.leave(begin + uneven + GAP + even)
}

/// LB-P2P.
pub(crate) struct P2p<'a> {
    start: &'a Start,
    /// For each iteration and transfer, when each rank begins it; last, when it begins the next iteration.
    begins: Vec<[Vec<i64>; 2]>,
    ends: Vec<Vec<i64>>,
}

impl<'a> P2p<'a> {
    pub(crate) fn new(start: &'a Start) -> Self {
        let mut p2p = Self { start, begins: Vec::new(), ends: Vec::new() };
        for number in 0..start.spec.iterations as usize {
            let ranks = || (0..start.ranks).into_par_iter();
            let first: Vec<i64> = ranks().map(|rank| p2p.begin(rank, number) + p2p.work(rank) + GAP).collect();
            let second: Vec<i64> = ranks().map(|rank| p2p.after(rank, 0, &first)).collect();
            p2p.ends.push(ranks().map(|rank| p2p.after(rank, 1, &second)).collect());
            p2p.begins.push([first, second]);
        }
        p2p
    }

    /// Time in `foo`: that of even ranks is longer by the imbalance.
    fn foo(&self, rank: u32) -> i64 {
        let spec = &self.start.spec;
        let work = i64::from(spec.work);
        let more = (work as f64 * spec.imbalance) as i64;
        if spec.balanced {
            let even = i64::from(self.start.ranks.div_ceil(2));
            mean(work * i64::from(self.start.ranks) + more * even, self.start.ranks, rank)
        } else if rank.is_multiple_of(2) {
            work + more
        } else {
            work
        }
    }

    fn bar(&self) -> i64 {
        i64::from(self.start.spec.work) / 2
    }

    fn work(&self, rank: u32) -> i64 {
        self.foo(rank) + GAP + self.bar()
    }

    fn begin(&self, rank: u32, number: usize) -> i64 {
        number.checked_sub(1).map_or_else(|| self.start.end(rank), |before| self.ends[before][rank as usize])
    }

    fn partner(&self, rank: u32, transfer: usize) -> Option<u32> {
        Some(rank ^ PARTNERS[transfer]).filter(|&partner| partner < self.start.ranks)
    }

    /// When a rank finishes a transfer.
    fn after(&self, rank: u32, transfer: usize, begins: &[i64]) -> i64 {
        let begin = begins[rank as usize];
        match self.partner(rank, transfer) {
            Some(partner) => received(begin + CALL + GAP, begins[partner as usize]) + GAP,
            None => begin,
        }
    }
}

impl Schedule for P2p<'_> {
    fn write(&self, writer: &mut EventWriter<'_>, rank: u32) -> Result<()> {
        let mut recent = RecentLateSenders::default();
        for (number, begins) in self.begins.iter().enumerate() {
            write_work(writer, self.begin(rank, number), self.foo(rank), self.bar())?;
            for (transfer, begins) in begins.iter().enumerate() {
                let Some(partner) = self.partner(rank, transfer) else { continue };
                let begin = begins[rank as usize];
                send(writer, begin, partner, BYTES)?;
                receive(writer, &mut recent, begin + CALL + GAP, (partner, begins[partner as usize]), BYTES)?;
            }
        }
        Ok(())
    }

    fn end(&self, rank: u32) -> i64 {
        self.begin(rank, self.ends.len())
    }
}
