//! The controlled logical clock: moves what comes too early, and spreads the move over its surroundings.
//!
//! *Forward*: a target moves behind its sources; the shift of a clock then decays slowly. *Backward*: what came before such a
//! jump is moved towards it with a slope, but sources no further than their targets allow.
//!
//! All threads of a process share one clock, so that nothing within it is turned around, unless they contradict each other.
//! Hence all events of a clock at one time move alike.
//!
//! *Source*: clocks.md#clc; R. Rabenseifner: The controlled logical clock, Euromicro PDP 1997; D. Becker et al.: Scalable
//! timestamp synchronization for event traces of message-passing applications, Parallel Computing 35(12), 2009.

mod backward;
mod deal;
mod forward;
mod limits;
mod logical;
mod net;

use super::constraints::Constraints;
use super::domains::Clocks;
use crate::parallel::iter::prelude::*;
use crate::{Error, Result};
use backward::backward;
use deal::{NEVER, tell};
use forward::Forward;
use net::Net;

pub(super) use deal::Deal;
pub(super) use logical::{Logical, Near};

/// How often the processes of an analysis may tell each other what they shift. Constraints that no times satisfy never end.
const ROUNDS: usize = 100;

/// What is added to each of some clocks, and whether some times satisfy all constraints; the same for all processes of the
/// analysis. Each has the constraints whose targets are at its own clocks, and some operations; `begins` has the time of
/// each clock's first event.
pub(super) fn find(
    constraints: &Constraints,
    clocks: &Clocks,
    begins: &[i64],
    latency: i64,
    deal: &Deal,
) -> Result<(Vec<Logical>, bool)> {
    if let Some(found) = dealt(constraints, clocks, begins, latency, deal)? {
        return Ok((found, true));
    }
    // Which constraints do not count depends on all of them.
    let all = constraints.gather(|_, time| time, deal.exchange)?;
    let found = deal.exchange.is_root().then(|| {
        let alone = Deal { owners: vec![0; clocks.count()], exchange: &deal.exchange.alone() };
        let net = Net::new(&all, clocks, latency, &alone)?;
        let forward = Forward::pass(&net, &net.remote);
        Ok::<_, Error>((logical(&net, &forward, begins, &alone)?, forward.is_possible))
    });
    let found = found.transpose()?;
    deal.exchange.broadcast(|| found.unwrap_or_default())
}

/// What is added to each clock; `None` if no times satisfy all constraints, or if the processes do not come to an end.
fn dealt(
    constraints: &Constraints,
    clocks: &Clocks,
    begins: &[i64],
    latency: i64,
    deal: &Deal,
) -> Result<Option<Vec<Logical>>> {
    let net = Net::new(constraints, clocks, latency, deal)?;
    let mut remote = net.remote.clone();
    let mut forward = Forward::pass(&net, &remote);
    let before = |node: u32| net.times.get(node as usize).copied().unwrap_or(NEVER);
    let mut told = net.exports.iter().map(|nodes| nodes.iter().copied().map(before).collect()).collect();
    for _ in 0..ROUNDS {
        if deal.exchange.any(!forward.is_possible)? {
            return Ok(None);
        }
        let mut is_new = false;
        let shifted = |node: u32| forward.shifted[node as usize];
        let is_settled = !tell(deal.exchange, (&net.exports, &net.imports), &mut told, shifted, |node, time| {
            remote[node as usize - net.remote().start] = time;
            is_new = true;
        })?;
        if is_settled {
            return logical(&net, &forward, begins, deal).map(Some);
        }
        if is_new {
            forward = Forward::pass(&net, &remote);
        }
    }
    Ok(None)
}

/// What is added to each clock, from the jumps of the first pass.
fn logical(net: &Net, forward: &Forward, begins: &[i64], Deal { owners, exchange }: &Deal) -> Result<Vec<Logical>> {
    let caps = limits::caps(net, &forward.shifted, exchange)?;
    let rank = exchange.rank() as u32;
    let own = (0..begins.len()).into_par_iter().filter(|&clock| owners[clock] == rank).map(|clock| {
        let places = net.places(clock);
        let jumps = &forward.jumps[clock];
        let knots = backward(jumps, begins[clock], &forward.shifted[places.clone()], &caps[places]);
        Logical { jumps: jumps.clone(), knots }
    });
    let mut found: Vec<_> = exchange.allgather(own.collect::<Vec<_>>())?.into_iter().map(Vec::into_iter).collect();
    Ok(owners.iter().map(|&owner| found[owner as usize].next().unwrap_or_default()).collect())
}

#[cfg(test)]
mod tests {
    use std::collections::{BTreeMap, BTreeSet};
    use std::sync::Arc;
    use std::sync::atomic::{AtomicUsize, Ordering};

    use bytes::Bytes;
    use proptest::prelude::*;

    use super::super::census::Census;
    use super::super::constraints::{Found, Member};
    use super::super::domains;
    use super::super::kind::Kind;
    use super::logical::{DECAY, SLOPE, decayed, shift};
    use super::*;
    use crate::ids::{LocationId, ProcessId};
    use crate::parallel::exchange::{Exchange, Transport, threads};

    const PROCESSES: usize = 6;
    /// A clock and a time.
    type Moment = (usize, i64);

    /// An operation: who bounds whom, the root, and begin and end of each clock's part, if it has one.
    #[derive(Clone, Debug)]
    struct Operation {
        kind: Kind,
        root: usize,
        parts: Vec<Option<(i64, i64)>>,
    }

    impl Operation {
        fn members(&self) -> impl Iterator<Item = Member> {
            let members = self.parts.iter().enumerate().filter_map(|(clock, part)| Some((clock, (*part)?)));
            members.map(|(clock, times)| Member {
                location: LocationId::at(clock),
                times,
                is_source: self.kind != Kind::OneToAll || clock == self.root,
                is_target: self.kind != Kind::AllToOne || clock == self.root,
            })
        }

        /// Who waits for whom; a member also ends after its own begin, unless it is alone.
        fn pairs(&self) -> Vec<(Moment, Moment)> {
            let mut pairs = Vec::new();
            if self.members().count() < 2 {
                return pairs;
            }
            for source in self.members().filter(|member| member.is_source) {
                for target in self.members().filter(|member| member.is_target) {
                    if self.kind != Kind::Prefix || source.location < target.location {
                        let (from, to) = (source.location.index(), target.location.index());
                        pairs.push(((from, source.times.0), (to, target.times.1)));
                    }
                }
            }
            pairs
        }
    }

    /// Messages and operations of clocks that are wrong by an offset each.
    #[derive(Clone, Debug)]
    struct Run {
        messages: Vec<(Moment, Moment)>,
        operations: Vec<Operation>,
    }

    impl Run {
        /// The constraints of some messages and operations, by number.
        fn constraints(
            &self,
            has_message: impl Fn(Moment) -> bool,
            has_operation: impl Fn(usize) -> bool,
        ) -> Constraints {
            let at = |(clock, time): Moment| (LocationId::at(clock), time);
            let mut found = Found::default();
            for &(source, target) in self.messages.iter().filter(|(_, target)| has_message(*target)) {
                found.link(Kind::Message, at(source), at(target));
            }
            for (number, operation) in self.operations.iter().enumerate() {
                if has_operation(number) {
                    found.instance(operation.kind, operation.kind == Kind::Prefix, operation.members());
                }
            }
            Constraints::new(found, (0..PROCESSES).map(ProcessId::at).collect(), Vec::new())
        }

        fn pairs(&self) -> Vec<(Moment, Moment)> {
            let of_operations = self.operations.iter().flat_map(Operation::pairs);
            self.messages.iter().copied().chain(of_operations).collect()
        }
    }

    /// Runs of a length; transits and parts take no longer than a share of it.
    fn runs(length: i64, share: i64, skew: i64) -> impl Strategy<Value = Run> {
        let message = (0..PROCESSES, 0..PROCESSES, 0..length, 0..=length / share);
        let part = prop::option::weighted(0.8, (0..=length / share, 0..=length / share));
        let kind = prop::sample::select(vec![Kind::Barrier, Kind::Prefix, Kind::OneToAll, Kind::AllToOne]);
        let operation = (kind, 0..PROCESSES, 0..length, prop::collection::vec(part, PROCESSES));
        let offsets = prop::collection::vec(-skew..=skew, PROCESSES);
        let all = (prop::collection::vec(message, 0..30), prop::collection::vec(operation, 0..4), offsets);
        all.prop_map(|(messages, operations, offsets)| {
            let skewed = |clock: usize, time: i64| 1_000_000 + time + offsets[clock];
            let messages = messages.into_iter().filter(|(from, to, ..)| from != to);
            let messages = messages
                .map(|(from, to, time, transit)| ((from, skewed(from, time)), (to, skewed(to, time + transit))));
            let operation = |(kind, root, time, parts): (_, _, i64, Vec<Option<(i64, i64)>>)| {
                let parts = parts.into_iter().enumerate().map(|(clock, part)| {
                    part.map(|(late, takes)| (skewed(clock, time + late), skewed(clock, time + late + takes)))
                });
                Operation { kind, root, parts: parts.collect() }
            };
            Run { messages: messages.collect(), operations: operations.into_iter().map(operation).collect() }
        })
    }

    /// Long runs, and short ones in which much happens at one time.
    fn all_runs() -> impl Strategy<Value = Run> {
        prop_oneof![runs(50_000_000, 25_000, 300_000), runs(40, 20, 1), runs(12, 12, 0)]
    }

    fn clocks(constraints: &Constraints) -> Clocks {
        domains::logical(constraints, &Census::default(), &Exchange::new(None, &[], &[])).unwrap()
    }

    /// The shift of every moment, by the definition: all are 0 at first, and grow until nothing changes; `None` if this never ends.
    fn naive(run: &Run, latency: i64) -> Option<BTreeMap<Moment, i64>> {
        let pairs = run.pairs();
        let moments = pairs.iter().flat_map(|&(source, target)| [source, target]);
        let mut shifts: BTreeMap<Moment, i64> = moments.map(|moment| (moment, 0)).collect();
        // A shift spreads along no place twice, unless it spreads in circles.
        for _ in 0..shifts.len() + 2 {
            let before = shifts.clone();
            for clock in 0..PROCESSES {
                let mut last: Option<(i64, i64)> = None;
                for (&(_, time), shift) in shifts.range_mut((clock, i64::MIN)..(clock + 1, i64::MIN)) {
                    let own = last.map_or(0, |(at, jump)| (jump - (time - at) / DECAY).max(0));
                    let sources = pairs.iter().filter(|(_, target)| *target == (clock, time));
                    let required = sources.map(|(source, _)| source.1 + before[source] + latency - time).max();
                    *shift = required.map_or(own, |required| required.max(own));
                    if *shift > own {
                        last = Some((time, *shift));
                    }
                }
            }
            if shifts == before {
                return Some(shifts);
            }
        }
        None
    }

    proptest! {
        /// The pass that visits each place once finds what iterating finds. Behind the second pass nothing is violated, time
        /// does not run backwards, and an interval shrinks by no more than shifts decay.
        #[test]
        fn the_passes_keep_their_promises(run in all_runs(), latency in prop::sample::select(vec![0, 1])) {
            let constraints = run.constraints(|_| true, |_| true);
            let (clocks, exchange) = (clocks(&constraints), Exchange::new(None, &[], &[]));
            let deal = Deal { owners: vec![0; PROCESSES], exchange: &exchange };
            let (found, is_possible) = find(&constraints, &clocks, &[0; PROCESSES], latency, &deal).unwrap();
            let shifts = naive(&run, latency);
            prop_assert_eq!(is_possible, shifts.is_some());
            let Some(shifts) = shifts else { return Ok(()) };
            let net = Net::new(&constraints, &clocks, latency, &deal).unwrap();
            let forward = Forward::pass(&net, &net.remote);
            for (&(clock, time), shift) in &shifts {
                let places = net.places(clock);
                let place = places.start + net.times[places].partition_point(|&at| at < time);
                prop_assert_eq!(forward.shifted[place], time + shift);
            }
            let time = |(clock, time): Moment| found[clock].apply(time);
            for &(source, target) in &run.pairs() {
                prop_assert!(time(target) >= time(source) + latency);
            }
            for pair in shifts.keys().collect::<Vec<_>>().windows(2).filter(|pair| pair[0].0 == pair[1].0) {
                let (before, after) = (pair[1].1 - pair[0].1, time(*pair[1]) - time(*pair[0]));
                prop_assert!(after >= 0 && after >= before - before / DECAY - 2, "{before} became {after}");
            }
        }

        /// Before a jump, a clock advances by the convex hull of how far its places may move: by 1 in [`SLOPE`], unless a
        /// target limits it.
        #[test]
        fn the_second_pass_follows_hulls(run in all_runs(), latency in prop::sample::select(vec![0, 1])) {
            const BEGIN: i64 = 690_000;
            let constraints = run.constraints(|_| true, |_| true);
            let (clocks, exchange) = (clocks(&constraints), Exchange::new(None, &[], &[]));
            let deal = Deal { owners: vec![0; PROCESSES], exchange: &exchange };
            let (found, is_possible) = find(&constraints, &clocks, &[BEGIN; PROCESSES], latency, &deal).unwrap();
            if !is_possible {
                return Ok(());
            }
            let shifted = |(clock, time): Moment| time + shift(&found[clock].jumps, time);
            let parts = run.operations.iter().filter(|operation| operation.members().count() > 1).flat_map(Operation::members);
            let parts = parts.filter(|member| member.is_source).map(|member| {
                let clock = member.location.index();
                ((clock, member.times.0), (clock, member.times.1))
            });
            let limits: Vec<(Moment, Moment)> = run.pairs().into_iter().chain(parts).collect();
            let cap = |moment: Moment| {
                let targets = limits.iter().filter(|(source, _)| *source == moment);
                targets.map(|(_, target)| (shifted(*target) - latency - shifted(moment)).max(0) as f64).reduce(f64::min)
            };
            for (clock, logical) in found.iter().enumerate() {
                let places = limits.iter().flat_map(|&(source, target)| [source, target]);
                let places: BTreeSet<Moment> = places.filter(|moment| moment.0 == clock).collect();
                let mut advances = vec![0.0; places.len()];
                let mut hulls = 0.0;
                for &(time, shift) in &logical.jumps {
                    let own = (logical.jumps.iter().rev().find(|jump| jump.0 < time)).map_or(0, |&last| decayed(last, time));
                    let (jump, right) = ((shift - own) as f64, time + own);
                    let left = right - (shift - own) * SLOPE;
                    let begin = if left < BEGIN { (BEGIN, jump - ((right - BEGIN) / SLOPE) as f64) } else { (left, 0.0) };
                    let mut points = vec![begin];
                    for (&place, advance) in places.iter().zip(&advances) {
                        let at = shifted(place);
                        if at >= begin.0 && at < right {
                            points.extend(cap(place).map(|cap| (at, (cap - advance).max(0.0))));
                        }
                    }
                    points.push((right, jump));
                    let least = |from: usize| points[from..].iter().map(|point| point.1).fold(f64::INFINITY, f64::min);
                    let points: Vec<(i64, f64)> = (0..points.len()).map(|number| (points[number].0, least(number))).collect();
                    hulls += 1.0;
                    for (number, &place) in places.iter().enumerate() {
                        let at = shifted(place);
                        if at < begin.0 || at >= right {
                            continue;
                        }
                        let chords = points.iter().filter(|a| a.0 <= at).flat_map(|&a| {
                            let later = points.iter().filter(|b| b.0 > at);
                            later.map(move |&b| a.1 + (b.1 - a.1) * (at - a.0) as f64 / (b.0 - a.0) as f64)
                        });
                        advances[number] += chords.fold(f64::INFINITY, f64::min);
                    }
                }
                for (number, &place) in places.iter().enumerate() {
                    let moved = (logical.apply(place.1) - shifted(place)) as f64;
                    prop_assert!((moved - advances[number]).abs() <= hulls + 1.0, "{place:?}: {moved}, not {}", advances[number]);
                }
            }
        }

        /// Whichever process of the analysis has a clock or finds an operation, the result is that of one process.
        #[test]
        fn several_processes_find_what_one_finds(
            run in all_runs(),
            latency in prop::sample::select(vec![0, 1]),
            owners in prop::collection::vec(0u32..4, PROCESSES),
            processes in 2usize..5,
        ) {
            let constraints = run.constraints(|_| true, |_| true);
            let clocks = clocks(&constraints);
            let begins = [690_000; PROCESSES];
            let exchange = Exchange::new(None, &[], &[]);
            let alone = Deal { owners: vec![0; PROCESSES], exchange: &exchange };
            let expected = find(&constraints, &clocks, &begins, latency, &alone).unwrap();
            let owners: Vec<u32> = owners.into_iter().map(|owner| owner % processes as u32).collect();
            let found = threads::run(processes, |transport| {
                let exchange = Exchange::new(Some(transport), &[], &[]);
                let rank = exchange.rank();
                let is_own = |(clock, _): Moment| owners[clock] as usize == rank;
                let own = run.constraints(is_own, |number| number % processes == rank);
                let deal = Deal { owners: owners.clone(), exchange: &exchange };
                find(&own, &clocks, &begins, latency, &deal).unwrap()
            });
            for of_process in found {
                prop_assert_eq!(&of_process, &expected);
            }
        }
    }

    /// Counts the exchanges of a process.
    #[derive(Debug)]
    struct Counting {
        transport: Arc<dyn Transport>,
        exchanges: AtomicUsize,
    }

    impl Transport for Counting {
        fn size(&self) -> usize {
            self.transport.size()
        }

        fn rank(&self) -> usize {
            self.transport.rank()
        }

        fn deliver(&self, outgoing: Vec<Bytes>) -> Result<Vec<Bytes>> {
            self.exchanges.fetch_add(1, Ordering::Relaxed);
            self.transport.deliver(outgoing)
        }
    }

    /// Shifts spread along chains of processes, not along the iterations of a program: neighbors exchange messages 200 times,
    /// then all meet. Two exchanges are a round, and some are no rounds.
    #[test]
    fn constant_skews_take_few_rounds() {
        const ALL: usize = 64;
        let skew = |clock: usize| (clock as i64 * 7_919) % 2_001 * 1_000 - 1_000_000;
        let at = |clock: usize, time: i64| (LocationId::at(clock), 10_000_000 + time + skew(clock));
        let constraints = |rank: Option<usize>| {
            let mut found = Found::default();
            for iteration in 0..200i64 {
                let time = iteration * 1_000_000;
                for clock in 0..ALL {
                    for to in [(clock + 1) % ALL, (clock + ALL - 1) % ALL] {
                        if rank.is_none_or(|rank| rank == to) {
                            let sent = time + (clock as i64 * 37 + iteration * 11) % 100_000;
                            found.link(Kind::Message, at(clock, sent), at(to, time + 120_000 + clock as i64));
                        }
                    }
                }
                if iteration % 20 == 0 && rank.is_none_or(|rank| rank == iteration as usize % ALL) {
                    found.meeting(
                        Kind::Barrier,
                        (0..ALL).map(|clock| {
                            let (location, begin) = at(clock, time + 500_000 + (clock as i64 * 53) % 1_000);
                            (location, (begin, begin + 2_000))
                        }),
                    );
                }
            }
            Constraints::new(found, (0..ALL).map(ProcessId::at).collect(), Vec::new())
        };
        let all = constraints(None);
        let clocks = clocks(&all);
        let exchange = Exchange::new(None, &[], &[]);
        let alone = Deal { owners: vec![0; ALL], exchange: &exchange };
        let expected = find(&all, &clocks, &[9_000_000; ALL], 0, &alone).unwrap();
        assert!(expected.1 && expected.0.iter().filter(|logical| !logical.is_zero()).count() > ALL / 2);
        let exchanges = threads::run(ALL, |transport| {
            let counting = Arc::new(Counting { transport, exchanges: AtomicUsize::new(0) });
            let exchange = Exchange::new(Some(counting.clone()), &[], &[]);
            let own = constraints(Some(exchange.rank()));
            let deal = Deal { owners: (0..ALL as u32).collect(), exchange: &exchange };
            assert_eq!(find(&own, &clocks, &[9_000_000; ALL], 0, &deal).unwrap(), expected);
            counting.exchanges.load(Ordering::Relaxed)
        });
        assert!(exchanges.iter().all(|&exchanges| exchanges <= 2 * 20), "{exchanges:?}");
    }
}
