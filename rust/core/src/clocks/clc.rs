//! The controlled logical clock: moves what comes too early, and spreads the move over its surroundings.
//!
//! *Forward*: a target moves behind its sources; the shift of a clock then decays slowly, so that intervals shrink by at most
//! [`DECAY`]. *Backward*: what came before such a jump is moved towards it with a slope of 1 / [`SLOPE`], but sources no
//! further than their targets allow.
//!
//! All threads of a process share one clock, so that nothing within it is turned around, unless they contradict each other.
//! Hence all events of a clock at one time move alike.
//!
//! *Source*: clocks.md#clc; R. Rabenseifner: The controlled logical clock, Euromicro PDP 1997; D. Becker et al.: Scalable
//! timestamp synchronization for event traces of message-passing applications, Parallel Computing 35(12), 2009.

use std::collections::BTreeMap;

use bitcode::{Decode, Encode};
use rayon::prelude::*;

use super::constraints::{Constraints, Part};
use super::domains::Clocks;

/// A shift shrinks by one tick in so many.
const DECAY: i64 = 100_000;
/// A move before a jump grows by one tick in so many.
const SLOPE: i64 = 100;
/// How often shifts may travel between processes after the first pass. Only constraints that no times can satisfy need more.
const ROUNDS: usize = 200;

/// Times of jumps, and the shifts there, ticks.
type Jumps = Vec<(i64, i64)>;

/// What is added to a clock, ticks.
#[derive(Clone, Debug, Default, PartialEq, Encode, Decode)]
pub(super) struct Logical {
    jumps: Jumps,
    /// Shifted times, and what is added until and from there; linear between them, and nothing outside.
    knots: Vec<(i64, i64, i64)>,
}

impl Logical {
    /// Whether it adds nothing.
    pub(super) fn is_zero(&self) -> bool {
        self.jumps.is_empty()
    }

    /// The corrected time of a time, ticks.
    pub(super) fn apply(&self, time: i64) -> i64 {
        let time = time + shift(&self.jumps, time);
        let next = self.knots.partition_point(|knot| knot.0 < time);
        time + match (next.checked_sub(1).map(|before| self.knots[before]), self.knots.get(next)) {
            (_, Some(&(at, until, _))) if at == time => until,
            (Some(before), Some(&next)) => between(before, next, time),
            _ => 0,
        }
    }

    /// The steepest growth of what is added before a jump, and the time in which it grows by more than [`SLOPE`] allows,
    /// ticks.
    pub(super) fn stretch(&self) -> (f64, i64) {
        let (mut steepest, mut stretched): (f64, i64) = (0.0, 0);
        for pair in self.knots.windows(2) {
            let (grown, length) = (pair[1].1 - pair[0].2, pair[1].0 - pair[0].0);
            steepest = steepest.max(grown as f64 / length as f64);
            // A tick is rounding.
            if (grown - 1).saturating_mul(SLOPE) > length {
                stretched += length;
            }
        }
        (steepest, stretched)
    }
}

/// The shift at a time: that of the last jump, decayed.
fn shift(jumps: &[(i64, i64)], time: i64) -> i64 {
    let before = jumps.partition_point(|jump| jump.0 <= time);
    before.checked_sub(1).map_or(0, |last| decayed(jumps[last], time))
}

fn decayed((at, shift): (i64, i64), time: i64) -> i64 {
    (shift - (time - at) / DECAY).max(0)
}

/// The value between two knots, rounded down.
fn between((begin, _, from): (i64, i64, i64), (end, to, _): (i64, i64, i64), at: i64) -> i64 {
    from + (i128::from(to - from) * i128::from(at - begin)).div_euclid(i128::from(end - begin)) as i64
}

/// What a place has to do with others.
#[derive(Clone, Copy, Debug)]
enum Link {
    /// Another place, and whether it belongs to the same process.
    Place { place: u32, is_local: bool },
    /// A member of an operation of many.
    Member { instance: u32, number: u32 },
}

/// Lists of links by place.
struct Links {
    begins: Vec<u32>,
    links: Vec<Link>,
}

impl Links {
    fn new(places: usize, of: &[(u32, Link)]) -> Self {
        let mut begins = vec![0u32; places + 1];
        for (place, _) in of {
            begins[*place as usize + 1] += 1;
        }
        for place in 0..places {
            begins[place + 1] += begins[place];
        }
        let mut next = begins.clone();
        let mut links = vec![Link::Place { place: 0, is_local: false }; of.len()];
        for &(place, link) in of {
            links[next[place as usize] as usize] = link;
            next[place as usize] += 1;
        }
        Self { begins, links }
    }

    fn of(&self, place: usize) -> &[Link] {
        &self.links[self.begins[place] as usize..self.begins[place + 1] as usize]
    }
}

/// A member of an instance: the place of its begin, if others wait for it, and that of its end.
#[derive(Clone, Copy)]
struct Member {
    source: Option<u32>,
    end: u32,
    /// Whether it waits for others.
    is_target: bool,
    clock: u32,
}

struct Instance {
    members: Vec<Member>,
    is_prefix: bool,
    /// Whether all members belong to one process.
    is_local: bool,
}

/// The places of all clocks at which they meet, and who meets whom.
struct Net {
    /// The first place of each clock, and the number of places.
    first: Vec<usize>,
    /// Time of each place, ticks; increasing within a clock.
    times: Vec<i64>,
    clock: Vec<u32>,
    sources: Links,
    targets: Links,
    instances: Vec<Instance>,
    latency: i64,
}

impl Net {
    fn new(constraints: &Constraints, clocks: &Clocks, latency: i64) -> Self {
        let clock_of = |location| clocks.of(location) as usize;
        let mut moments: Vec<Vec<i64>> = vec![Vec::new(); clocks.count()];
        let mut see = |location, time: i64| moments[clock_of(location)].push(time);
        for link in constraints.links() {
            see(link.source.location, link.source.time);
            see(link.target.location, link.target.time);
        }
        for part in constraints.instances().flatten() {
            see(part.location, part.begin);
            see(part.location, part.end);
        }
        moments.par_iter_mut().for_each(|moments| {
            moments.sort_unstable();
            moments.dedup();
        });
        let mut first = vec![0];
        first.extend(moments.iter().scan(0, |places, moments| {
            *places += moments.len();
            Some(*places)
        }));
        let place = |location, time: i64| {
            let clock = clock_of(location);
            (first[clock] + moments[clock].partition_point(|&at| at < time)) as u32
        };
        let (mut into, mut out) = (Vec::new(), Vec::new());
        for link in constraints.links() {
            let (source, target) = (link.source, link.target);
            if clock_of(source.location) != clock_of(target.location) {
                let (from, to) = (place(source.location, source.time), place(target.location, target.time));
                let is_local = link.kind.is_within_a_process();
                into.push((to, Link::Place { place: from, is_local }));
                out.push((from, Link::Place { place: to, is_local }));
            }
        }
        let mut instances = Vec::new();
        for parts in constraints.instances() {
            let instance = instances.len() as u32;
            let member = |(number, part): (usize, &Part)| {
                let link = Link::Member { instance, number: number as u32 };
                let source = part.is_source.then(|| place(part.location, part.begin));
                let end = place(part.location, part.end);
                out.extend(source.map(|source| (source, link)));
                if part.is_target {
                    into.push((end, link));
                }
                Member { source, end, is_target: part.is_target, clock: clocks.of(part.location) }
            };
            let members = parts.iter().enumerate().map(member).collect();
            let is_local = parts[0].kind.is_within_a_process();
            instances.push(Instance { members, is_prefix: parts[0].is_prefix, is_local });
        }
        let clock = moments.iter().zip(0..).flat_map(|(moments, clock)| moments.iter().map(move |_| clock));
        let clock: Vec<u32> = clock.collect();
        let places = clock.len();
        let (sources, targets) = (Links::new(places, &into), Links::new(places, &out));
        Self { first, times: moments.concat(), clock, sources, targets, instances, latency }
    }

    fn places(&self, clock: usize) -> std::ops::Range<usize> {
        self.first[clock]..self.first[clock + 1]
    }

    /// The least time between the ends of a link.
    fn latency(&self, link: Link) -> i64 {
        let is_local = match link {
            Link::Place { is_local, .. } => is_local,
            Link::Member { instance, .. } => self.instances[instance as usize].is_local,
        };
        if is_local { 0 } else { self.latency }
    }
}

/// What is known of an instance while shifts are found.
#[derive(Clone, Default)]
struct Progress {
    /// Number of sources whose shift is unknown.
    unknown: u32,
    /// Of prefix operations, the number of first members whose sources are known.
    known: u32,
    /// The latest shifted time of known sources; of prefix operations, by member.
    latest: Vec<i64>,
}

/// The first pass: each clock advances from place to place, and waits where a source is not known yet.
struct Forward<'a> {
    net: &'a Net,
    /// The shifted time of each place that is known.
    shifted: Vec<i64>,
    progress: Vec<Progress>,
    /// The next place of each clock, and its jumps.
    next: Vec<usize>,
    jumps: Vec<Jumps>,
    is_queued: Vec<bool>,
    queue: Vec<u32>,
    /// Whether a place went on without all of its sources, because they wait for it.
    is_circular: bool,
}

const UNKNOWN: i64 = i64::MIN;

impl<'a> Forward<'a> {
    fn new(net: &'a Net) -> Self {
        let clocks = net.first.len() - 1;
        let progress = net.instances.iter().map(|instance| Progress {
            unknown: instance.members.iter().filter(|member| member.source.is_some()).count() as u32,
            known: 0,
            latest: vec![UNKNOWN; if instance.is_prefix { instance.members.len() } else { 1 }],
        });
        Self {
            net,
            shifted: vec![UNKNOWN; net.times.len()],
            progress: progress.collect(),
            next: net.first[..clocks].to_vec(),
            jumps: vec![Vec::new(); clocks],
            is_queued: vec![true; clocks],
            queue: (0..clocks as u32).rev().collect(),
            is_circular: false,
        }
    }

    fn run(&mut self) {
        loop {
            while let Some(clock) = self.queue.pop() {
                self.is_queued[clock as usize] = false;
                self.advance(clock as usize, false);
            }
            // Places of the same time, or wrong matches, can wait for each other: the earliest goes on with what is known.
            let waiting = (0..self.next.len()).filter(|&clock| self.next[clock] < self.net.first[clock + 1]);
            let Some(earliest) = waiting.min_by_key(|&clock| (self.net.times[self.next[clock]], clock)) else {
                return;
            };
            self.is_circular = true;
            self.advance(earliest, true);
        }
    }

    fn advance(&mut self, clock: usize, mut is_forced: bool) {
        while self.next[clock] < self.net.first[clock + 1] {
            let place = self.next[clock];
            let Some(required) = self.required(place, std::mem::take(&mut is_forced)) else { return };
            let time = self.net.times[place];
            let jumps = &mut self.jumps[clock];
            let own = jumps.last().map_or(0, |&last| decayed(last, time));
            let needed = if required == UNKNOWN { own } else { required - time };
            if needed > own {
                jumps.push((time, needed));
            }
            self.shifted[place] = time + needed.max(own);
            self.next[clock] += 1;
            self.announce(place);
        }
    }

    /// The earliest time at which a place may be; `None` if not all of its sources are known.
    fn required(&self, place: usize, is_forced: bool) -> Option<i64> {
        let mut latest = UNKNOWN;
        for &link in self.net.sources.of(place) {
            let (is_known, source) = match link {
                Link::Place { place: from, .. } => {
                    (self.shifted[from as usize] != UNKNOWN, self.shifted[from as usize])
                }
                Link::Member { instance, number } => {
                    let progress = &self.progress[instance as usize];
                    if self.net.instances[instance as usize].is_prefix {
                        let before = (number as usize).checked_sub(1);
                        (progress.known >= number, before.map_or(UNKNOWN, |before| progress.latest[before]))
                    } else {
                        (progress.unknown == 0, progress.latest[0])
                    }
                }
            };
            if !is_known && !is_forced {
                return None;
            }
            if source != UNKNOWN {
                latest = latest.max(source + self.net.latency(link));
            }
        }
        Some(latest)
    }

    /// Tells the targets of a place that it is known.
    fn announce(&mut self, place: usize) {
        let shifted = self.shifted[place];
        let net = self.net;
        for &link in net.targets.of(place) {
            match link {
                Link::Place { place: to, .. } => self.wake(net.clock[to as usize]),
                Link::Member { instance, number } => {
                    let of = &net.instances[instance as usize];
                    let progress = &mut self.progress[instance as usize];
                    progress.unknown -= 1;
                    if of.is_prefix {
                        progress.latest[number as usize] = shifted;
                        while let Some(member) = of.members.get(progress.known as usize) {
                            let own = progress.latest[progress.known as usize];
                            if member.source.is_some() && own == UNKNOWN {
                                break;
                            }
                            if let Some(before) = (progress.known as usize).checked_sub(1) {
                                let before = progress.latest[before];
                                progress.latest[progress.known as usize] = own.max(before);
                            }
                            progress.known += 1;
                        }
                    } else {
                        progress.latest[0] = progress.latest[0].max(shifted);
                    }
                    if of.is_prefix || self.progress[instance as usize].unknown == 0 {
                        of.members.iter().for_each(|member| self.wake(member.clock));
                    }
                }
            }
        }
    }

    fn wake(&mut self, clock: u32) {
        if !std::mem::replace(&mut self.is_queued[clock as usize], true) {
            self.queue.push(clock);
        }
    }

    /// Repeats with all shifts known until nothing changes, if places waited for each other; returns whether it does not.
    /// If no times satisfy all constraints, the shifts of the first pass stay: they satisfy all but those without which
    /// it went on.
    fn settle(&mut self) -> bool {
        if !self.is_circular {
            return true;
        }
        let first = (self.shifted.clone(), self.jumps.clone());
        for _ in 0..ROUNDS {
            let latest: Vec<Vec<i64>> = self.net.instances.par_iter().map(|instance| self.latest(instance)).collect();
            let net = self.net;
            let shifted = &self.shifted;
            let again = (0..self.jumps.len()).into_par_iter().map(|clock| {
                let mut jumps = Jumps::new();
                let times = net.places(clock).map(|place| {
                    let time = net.times[place];
                    let own = jumps.last().map_or(0, |&last| decayed(last, time));
                    let required = net.sources.of(place).iter().filter_map(|&link| {
                        let source = match link {
                            Link::Place { place: from, .. } => shifted[from as usize],
                            Link::Member { instance, number } => {
                                let latest = &latest[instance as usize];
                                if net.instances[instance as usize].is_prefix {
                                    (number as usize).checked_sub(1).map_or(UNKNOWN, |before| latest[before])
                                } else {
                                    latest[0]
                                }
                            }
                        };
                        (source != UNKNOWN).then(|| source + net.latency(link))
                    });
                    let needed = required.max().map_or(own, |required| required - time);
                    if needed > own {
                        jumps.push((time, needed));
                    }
                    time + needed.max(own)
                });
                let times: Vec<i64> = times.collect();
                (times, jumps)
            });
            let (times, jumps): (Vec<Vec<i64>>, Vec<Jumps>) = again.unzip();
            let times = times.concat();
            let is_settled = times == self.shifted;
            (self.shifted, self.jumps) = (times, jumps);
            if is_settled {
                return true;
            }
        }
        (self.shifted, self.jumps) = first;
        false
    }

    fn latest(&self, instance: &Instance) -> Vec<i64> {
        let sources =
            instance.members.iter().map(|member| member.source.map_or(UNKNOWN, |at| self.shifted[at as usize]));
        if instance.is_prefix {
            let running = sources.scan(UNKNOWN, |latest, source| {
                *latest = source.max(*latest);
                Some(*latest)
            });
            return running.collect();
        }
        vec![sources.max().unwrap_or(UNKNOWN)]
    }

    /// How far each place may move without getting behind its targets; `i64::MAX` if it has none.
    fn caps(&self) -> Vec<i64> {
        let mut earliest = vec![i64::MAX; self.shifted.len()];
        for (place, earliest) in earliest.iter_mut().enumerate() {
            for &link in self.net.targets.of(place) {
                if let Link::Place { place: to, .. } = link {
                    *earliest = (*earliest).min(self.shifted[to as usize] - self.net.latency(link));
                }
            }
        }
        for instance in &self.net.instances {
            let latency = if instance.is_local { 0 } else { self.net.latency };
            let end = |member: &Member| self.shifted[member.end as usize] - latency;
            let first_end = |members: &[Member]| members.iter().filter(|member| member.is_target).map(end).min();
            let of_all = first_end(&instance.members).unwrap_or(i64::MAX);
            let mut of_later = i64::MAX;
            for member in instance.members.iter().rev() {
                if let Some(source) = member.source {
                    // Its own end, too: what it does before must not squeeze its own part.
                    let limit = end(member).min(if instance.is_prefix { of_later } else { of_all });
                    let earliest = &mut earliest[source as usize];
                    *earliest = (*earliest).min(limit);
                }
                if member.is_target {
                    of_later = of_later.min(end(member));
                }
            }
        }
        let cap = |(&earliest, &shifted): (&i64, &i64)| match earliest {
            i64::MAX => i64::MAX,
            earliest => (earliest - shifted).max(0),
        };
        earliest.iter().zip(&self.shifted).map(cap).collect()
    }
}

/// What is added to each of some clocks, and whether no times can satisfy some constraints. `begins` has the time of each
/// clock's first event.
pub(super) fn find(constraints: &Constraints, clocks: &Clocks, begins: &[i64], latency: i64) -> (Vec<Logical>, bool) {
    let net = Net::new(constraints, clocks, latency);
    let mut forward = Forward::new(&net);
    forward.run();
    let is_settled = forward.settle();
    let caps = forward.caps();
    let clocks = (0..begins.len()).into_par_iter().map(|clock| {
        let places = net.places(clock);
        let jumps = &forward.jumps[clock];
        let knots = backward(jumps, begins[clock], &forward.shifted[places.clone()], &caps[places]);
        Logical { jumps: jumps.clone(), knots }
    });
    (clocks.collect(), !is_settled)
}

/// What is added before each jump of a clock: see [`Logical::knots`]. `shifted` has the times of its places, and `caps` how
/// far they may move.
fn backward(jumps: &[(i64, i64)], begin: i64, shifted: &[i64], caps: &[i64]) -> Vec<(i64, i64, i64)> {
    let mut added: BTreeMap<i64, (i64, i64)> = BTreeMap::new();
    let mut before: Option<(i64, i64)> = None;
    let first = begin;
    let begin = first + shift(jumps, first);
    for &(time, shift) in jumps {
        let own = before.map_or(0, |last| decayed(last, time));
        before = Some((time, shift));
        if time <= first {
            continue;
        }
        let (jump, right) = (shift - own, time + own);
        let left = right - jump.saturating_mul(SLOPE);
        let mut points = Vec::new();
        if left < begin {
            points.push((begin, jump - (right - begin) / SLOPE));
        } else {
            points.push((left, 0));
        }
        let first = points[0].0;
        let within = shifted.partition_point(|&at| at < first)..shifted.partition_point(|&at| at < right);
        for (&at, &cap) in shifted[within.clone()].iter().zip(&caps[within]).filter(|(_, cap)| **cap < i64::MAX) {
            points.push((at, (cap - value(&added, at)).max(0)));
        }
        points.push((right, jump));
        // What is added never decreases, so a limit holds for all that is before it.
        for number in (1..points.len()).rev() {
            points[number - 1].1 = points[number - 1].1.min(points[number].1);
        }
        add(&mut added, &lower_hull(points), left < begin);
    }
    added.into_iter().map(|(at, (until, from))| (at, until, from)).collect()
}

/// The value at a time: that until there, if it is a knot.
fn value(added: &BTreeMap<i64, (i64, i64)>, at: i64) -> i64 {
    match (added.range(..at).next_back(), added.range(at..).next()) {
        (_, Some((&next, &(until, _)))) if next == at => until,
        (Some((&begin, &(_, from))), Some((&end, &(to, _)))) => between((begin, 0, from), (end, to, 0), at),
        _ => 0,
    }
}

/// Adds a hull of points to what is added. If it `begins_there`, nothing is before its first point.
fn add(added: &mut BTreeMap<i64, (i64, i64)>, hull: &[(i64, i64)], begins_there: bool) {
    let (first, last) = (hull[0].0, hull[hull.len() - 1].0);
    for &(at, _) in hull {
        if !added.contains_key(&at) {
            let now = value(added, at);
            added.insert(at, (now, now));
        }
    }
    let mut edge = 0;
    for (&at, (until, from)) in added.range_mut(first..=last) {
        while edge + 2 < hull.len() && hull[edge + 1].0 < at {
            edge += 1;
        }
        let more = if hull.len() == 1 {
            hull[0].1
        } else {
            let ((begin, low), (end, high)) = (hull[edge], hull[edge + 1]);
            between((begin, 0, low), (end, high, 0), at)
        };
        if at > first || begins_there {
            *until += more;
        }
        if at < last {
            *from += more;
        }
    }
}

/// The lower convex hull of points by time; of several at one time, the lowest counts.
fn lower_hull(points: Vec<(i64, i64)>) -> Vec<(i64, i64)> {
    let mut hull: Vec<(i64, i64)> = Vec::with_capacity(points.len());
    for point in points {
        if hull.last().is_some_and(|last| last.0 == point.0) {
            // Not the jump itself, which is the highest.
            continue;
        }
        while let [.., a, b] = hull[..] {
            let turn =
                i128::from(b.0 - a.0) * i128::from(point.1 - a.1) - i128::from(point.0 - a.0) * i128::from(b.1 - a.1);
            if turn > 0 {
                break;
            }
            hull.pop();
        }
        hull.push(point);
    }
    hull
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::super::census::Census;
    use super::super::constraints::Found;
    use super::super::domains;
    use super::super::kind::Kind;
    use super::*;
    use crate::ids::{LocationId, ProcessId};
    use crate::parallel::exchange::Exchange;

    const PROCESSES: usize = 6;

    /// Messages between clocks that are wrong by an offset each, as (clock, time) of source and target.
    type Messages = Vec<((usize, i64), (usize, i64))>;

    fn messages() -> impl Strategy<Value = Messages> {
        let message = (0..PROCESSES, 0..PROCESSES, 0..50_000_000i64, 0..2_000i64);
        let offsets = prop::collection::vec(-300_000..300_000i64, PROCESSES);
        (prop::collection::vec(message, 1..30), offsets).prop_map(|(all, offsets)| {
            let different = all.into_iter().filter(|(from, to, ..)| from != to);
            let skewed = |clock: usize, time: i64| (clock, 1_000_000 + time + offsets[clock]);
            different.map(|(from, to, time, transit)| (skewed(from, time), skewed(to, time + transit + 1))).collect()
        })
    }

    fn constraints(messages: &Messages) -> Constraints {
        let at = |(clock, time): (usize, i64)| (LocationId::at(clock), time);
        let mut found = Found::default();
        for &(source, target) in messages {
            found.link(Kind::Message, at(source), at(target));
        }
        Constraints::new(found, (0..PROCESSES).map(ProcessId::at).collect(), Vec::new())
    }

    /// The shift of every moment, by the definition: all are 0 at first, and grow until nothing changes.
    fn naive(messages: &Messages, latency: i64) -> BTreeMap<(usize, i64), i64> {
        let moments = messages.iter().flat_map(|&(source, target)| [source, target]);
        let mut shifts: BTreeMap<(usize, i64), i64> = moments.map(|moment| (moment, 0)).collect();
        loop {
            let before = shifts.clone();
            for clock in 0..PROCESSES {
                let mut last: Option<(i64, i64)> = None;
                for (&(_, time), shift) in shifts.range_mut((clock, i64::MIN)..(clock + 1, i64::MIN)) {
                    let own = last.map_or(0, |(at, jump)| (jump - (time - at) / DECAY).max(0));
                    let sources = messages.iter().filter(|(_, target)| *target == (clock, time));
                    let required = sources.map(|(source, _)| source.1 + before[source] + latency - time).max();
                    *shift = required.map_or(own, |required| required.max(own));
                    if *shift > own {
                        last = Some((time, *shift));
                    }
                }
            }
            if shifts == before {
                return shifts;
            }
        }
    }

    proptest! {
        /// The pass that visits each place once finds what iterating finds. Behind the second pass nothing is violated, time
        /// does not run backwards, and an interval shrinks by no more than shifts decay.
        #[test]
        fn the_passes_keep_their_promises(messages in messages(), latency in prop::sample::select(vec![0, 1])) {
            let constraints = constraints(&messages);
            let clocks = domains::logical(&constraints, &Census::default(), &Exchange::new(None, &[], &[]))
                .expect("one process exchanges nothing");
            let net = Net::new(&constraints, &clocks, latency);
            let mut forward = Forward::new(&net);
            forward.run();
            prop_assert!(forward.settle());
            for (&(clock, time), shift) in &naive(&messages, latency) {
                let places = net.places(clock);
                let place = places.start + net.times[places].partition_point(|&at| at < time);
                prop_assert_eq!(forward.shifted[place], time + shift);
            }
            let (found, is_impossible) = find(&constraints, &clocks, &[0; PROCESSES], latency);
            prop_assert!(!is_impossible);
            let time = |(clock, time): (usize, i64)| found[clock].apply(time);
            for &(source, target) in &messages {
                prop_assert!(time(target) >= time(source) + latency);
            }
            let mut moments: Vec<(usize, i64)> = messages.iter().flat_map(|&(source, target)| [source, target]).collect();
            moments.sort_unstable();
            for pair in moments.windows(2).filter(|pair| pair[0].0 == pair[1].0) {
                let (before, after) = (pair[1].1 - pair[0].1, time(pair[1]) - time(pair[0]));
                prop_assert!(after >= 0 && after >= before - before / DECAY - 2, "{before} became {after}");
            }
        }
    }
}
