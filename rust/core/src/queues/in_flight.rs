//! Bytes in flight over the whole run.
//!
//! Each shard processes a slice of the run, for which it receives the changes of all receivers.

use bitcode::{Decode, Encode};

use super::levels::{Course, Detail, Level, Quantity, sort_by_time};
use crate::Result;
use crate::ids::LocationId;
use crate::parallel::exchange::{Exchange, Outbox};
use crate::parallel::iter::prelude::*;

/// A change, sent to the shard of its slice.
#[derive(Clone, Copy, Debug, Encode, Decode)]
pub(super) struct Step {
    pub(super) time: i64,
    /// Bytes sent less bytes received.
    pub(super) by: i64,
}

impl Step {
    /// Adds a change that is not before the last step; all changes of one time make one step.
    #[inline]
    pub(super) fn add(steps: &mut Vec<Self>, time: i64, by: i64) {
        match steps.last_mut() {
            Some(last) if last.time == time => last.by = last.by.saturating_add(by),
            _ => steps.push(Self { time, by }),
        }
    }
}

/// The run in slices of equal length, one for each shard.
#[derive(Clone, Copy)]
pub(super) struct Slices {
    run: (i64, i64),
    length: i64,
}

impl Slices {
    /// Slices of a run from first to last tick.
    pub(super) fn new(run: (i64, i64), exchange: &Exchange) -> Self {
        Self { run, length: (run.1 - run.0) / (exchange.shards() as i64).max(1) + 1 }
    }

    /// Begin and end of a slice.
    fn bounds(self, slice: u32) -> (i64, i64) {
        let begin = self.run.0 + i64::from(slice) * self.length;
        (begin.min(self.run.1), begin.saturating_add(self.length).min(self.run.1))
    }

    /// Sends steps, in order of time, to the shards of their slices.
    pub(super) fn post(self, steps: &[Step], outbox: &mut Outbox<Step>) {
        let (mut slice, mut end) = (0, i64::MIN);
        for &Step { time, by } in steps {
            let time = time.clamp(self.run.0, self.run.1);
            if time >= end {
                slice = ((time - self.run.0) / self.length) as u32;
                end = self.run.0 + (i64::from(slice) + 1) * self.length;
            }
            outbox.push(slice, Step { time, by });
        }
    }

    /// Processes the slices of this process. Returns the level of the whole run at the first process; `None` at the
    /// others, or if nothing is ever in flight.
    pub(super) fn follow(
        self,
        outgoing: Vec<Outbox<Step>>,
        exchange: &Exchange,
        detail: Detail,
    ) -> Result<Option<Level>> {
        let of_slice = exchange.alltoallv(outgoing)?.into_par_iter().map(|inbox| {
            let mut steps: Vec<Step> = inbox.into_vec();
            sort_by_time(&mut steps, |step| step.time);
            steps
        });
        let of_slice: Vec<Vec<Step>> = of_slice.collect();
        let net = |steps: &Vec<Step>| steps.iter().fold(0i64, |sum, step| sum.saturating_add(step.by));
        let nets: Vec<(bool, i64)> = of_slice.iter().map(|steps| (!steps.is_empty(), net(steps))).collect();
        let nets: Vec<(bool, i64)> = exchange.allgather(nets)?.into_iter().flatten().collect();
        let own = exchange.own();
        let level_at = |slice: u32| nets[..slice as usize].iter().fold(0i64, |sum, (_, net)| sum.saturating_add(*net));
        let followed = own.into_par_iter().zip(of_slice).map(|(slice, steps)| {
            let (begin, end) = self.bounds(slice);
            let start = (begin, level_at(slice));
            let mut course = Course::new(Quantity::InFlight, LocationId::NONE, self.run, detail, start);
            for Step { time, by } in steps {
                course.change(time, by);
            }
            course.end(end)
        });
        let of_process = followed.collect::<Vec<_>>().into_iter().reduce(|a, b| a.join(&b));
        let of_run = exchange.gather(of_process)?.into_iter().flatten().reduce(|a, b| a.join(&b));
        Ok(of_run.filter(|_| nets.iter().any(|(changes, _)| *changes)))
    }
}
