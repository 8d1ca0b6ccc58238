//! Clocks of the processes to that of the first.

use whywait_otf2::records::ClockOffset;

use crate::spool::{Definitions, Spool, Start};

/// How the times of all processes relate.
#[derive(Debug)]
pub(crate) struct Clocks {
    /// Ticks per second of the clock of the first process.
    pub(crate) resolution: u64,
    /// Real time in ns at a time of that clock.
    pub(crate) realtime: Option<(u64, u64)>,
    reference: Option<Start>,
}

/// Two measurements closer than this (in ns) say little about a frequency.
const SHORTEST: u64 = 10_000_000;

impl Clocks {
    /// The clock of the first process of which there is anything is that of the run.
    pub(crate) fn new(spool: &Spool) -> Self {
        let first = spool.ranks.values().map(|process| &process.definitions).find(|first| first.start.is_some());
        let Some((first, start)) = first.and_then(|first| Some((first, first.start.clone()?))) else {
            return Self { resolution: 1_000_000_000, realtime: None, reference: None };
        };
        Self {
            resolution: frequency(first, &start).round() as u64,
            realtime: first.clocks.first().map(|(ticks, _, realtime)| (*ticks, *realtime)),
            reference: Some(start),
        }
    }

    /// Differences of the run's clock to that of a process, at times of its own clock, and whether they were measured as
    /// they should have been. Processes that share the clock have none.
    pub(crate) fn offsets(&self, spool: &Spool, rank: u32) -> (Vec<ClockOffset>, bool) {
        let definitions = spool.ranks.get(&rank).map(|process| &process.definitions);
        let (Some(reference), Some(own)) = (&self.reference, definitions.and_then(|own| own.start.as_ref())) else {
            return (Vec::new(), definitions.is_none());
        };
        if same_clock(own, reference) {
            return (Vec::new(), true);
        }
        let neighbours = spool.ranks.values().map(|process| &process.definitions);
        let neighbours = neighbours.filter(|other| other.start.as_ref().is_some_and(|start| same_clock(start, own)));
        // The processes of another world measured against the first of theirs.
        let world = spool.ranks.get(&rank).and_then(|process| spool.worlds.get(process.world));
        let first = world.and_then(|world| spool.ranks.get(&world.first)?.definitions.start.as_ref());
        let neighbours = neighbours.filter(|_| first.is_none_or(|first| same_clock(first, reference)));
        let mut measured: Vec<(u64, u64)> =
            neighbours.clone().flat_map(|other| &other.syncs).map(|(own, other, _)| (*own, *other)).collect();
        measured.sort_unstable();
        measured.dedup_by_key(|(own, _)| *own);
        let is_whole = measured.len() > 1;
        if measured.is_empty() {
            // What the system believes the time to be is better than nothing.
            let ratio = |definitions: &Definitions, start| self.resolution as f64 / frequency(definitions, start);
            if let (Some((ticks, realtime)), Some((own_ticks, _, own_realtime))) =
                (self.realtime, definitions.and_then(|definitions| definitions.clocks.first()))
            {
                let since = own_realtime.wrapping_sub(realtime).cast_signed() as f64 * self.resolution as f64 / 1e9;
                let at = ticks.wrapping_add_signed(since as i64);
                let rate = definitions.map_or(1.0, |definitions| ratio(definitions, own));
                measured = vec![(*own_ticks, at), second(*own_ticks, at, rate, own.frequency)];
            }
        } else if let [(ticks, at)] = measured[..] {
            let rate = definitions.map_or(1.0, |definitions| self.resolution as f64 / frequency(definitions, own));
            measured.push(second(ticks, at, rate, own.frequency));
        }
        let offsets = measured.iter().map(|(own, other)| ClockOffset {
            time: *own,
            offset: other.wrapping_sub(*own).cast_signed(),
            standard_deviation: 0.0,
        });
        (offsets.collect(), is_whole)
    }
}

/// A second measurement, a second later, if the clocks kept their rates.
fn second(own: u64, other: u64, rate: f64, frequency: u64) -> (u64, u64) {
    (own.wrapping_add(frequency), other.wrapping_add((frequency as f64 * rate).round() as u64))
}

fn same_clock(a: &Start, b: &Start) -> bool {
    (a.boot, a.namespace, a.clock) == (b.boot, b.namespace, b.clock)
}

/// Ticks per second.
fn frequency(definitions: &Definitions, start: &Start) -> f64 {
    let measured = definitions.clocks.first().zip(definitions.clocks.last()).and_then(|(first, last)| {
        let (ticks, time) = (last.0.checked_sub(first.0)?, last.1.checked_sub(first.1)?);
        (time >= SHORTEST && ticks > 0).then(|| ticks as f64 / time as f64 * 1e9)
    });
    measured.unwrap_or(start.frequency.max(1) as f64)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::spool::Process;

    fn process(boot: u8, clocks: &[(u64, u64, u64)], syncs: &[(u64, u64, u64)]) -> Process {
        let start = Start { boot: [boot; 16], frequency: 2_000_000_000, ..Start::default() };
        let definitions = Definitions {
            start: Some(start),
            clocks: clocks.to_vec(),
            syncs: syncs.to_vec(),
            ..Definitions::default()
        };
        Process { definitions, ..Process::default() }
    }

    fn spool(processes: Vec<Process>) -> Spool {
        Spool { ranks: (0..).zip(processes).collect(), ..Spool::default() }
    }

    #[test]
    fn the_frequency_is_measured_from_start_to_end() {
        let spool = spool(vec![process(1, &[(0, 0, 0), (6_000_000_000, 3_000_000_000, 0)], &[])]);
        assert_eq!(Clocks::new(&spool).resolution, 2_000_000_000);
        let short = self::spool(vec![process(1, &[(0, 0, 0), (7, 3, 0)], &[])]);
        assert_eq!(Clocks::new(&short).resolution, 2_000_000_000);
    }

    #[test]
    fn processes_of_a_node_share_its_measurements() {
        let spool = spool(vec![
            process(1, &[], &[]),
            process(1, &[], &[]),
            process(2, &[], &[(100, 1100, 5), (300, 1310, 5)]),
            process(2, &[], &[]),
        ]);
        let clocks = Clocks::new(&spool);
        assert_eq!(clocks.offsets(&spool, 1), (vec![], true));
        let expected = [(100, 1000), (300, 1010)]
            .map(|(time, offset)| ClockOffset { time, offset, standard_deviation: 0.0 })
            .to_vec();
        assert_eq!(clocks.offsets(&spool, 2), (expected.clone(), true));
        assert_eq!(clocks.offsets(&spool, 3), (expected, true));
    }

    #[test]
    fn without_measurements_the_time_of_day_must_do() {
        let spool =
            spool(vec![process(1, &[(1000, 0, 5_000_000_000)], &[]), process(2, &[(400, 0, 5_000_000_500)], &[])]);
        let (offsets, is_whole) = Clocks::new(&spool).offsets(&spool, 1);
        // 500 ns are 1000 ticks.
        assert_eq!((offsets[0].time, offsets[0].offset, is_whole), (400, 1600, false));
        assert_eq!(offsets[1].offset, 1600);
    }
}
