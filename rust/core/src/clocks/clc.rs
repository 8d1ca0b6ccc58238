//! The controlled logical clock: moves what comes too early, and spreads the move over its surroundings.
//!
//! *Forward*: a target moves behind its sources; the shift of a clock then decays slowly, so that intervals shrink by at most
//! [`DECAY`]. *Backward*: what came before such a jump is moved towards it with a slope of 1 / [`SLOPE`], but sources no
//! further than their targets allow.
//!
//! All locations of a process share one function of time, so that nothing within it is turned around. Hence all events of a
//! process at one time move alike.
//!
//! *Source*: clocks.md#clc; R. Rabenseifner: The controlled logical clock, Euromicro PDP 1997; D. Becker et al.: Scalable
//! timestamp synchronization for event traces of message-passing applications, Parallel Computing 35(12), 2009.

use std::collections::BTreeMap;

use bitcode::{Decode, Encode};
use rayon::prelude::*;

use super::constraints::{Constraints, Kind, Message};

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

    /// The steepest growth of what is added before a jump.
    pub(super) fn stretch(&self) -> f64 {
        let slopes = self.knots.windows(2).map(|pair| (pair[1].1 - pair[0].2) as f64 / (pair[1].0 - pair[0].0) as f64);
        slopes.fold(0.0, f64::max)
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
    /// The other end of a message.
    Message(u32),
    /// A member of an instance of a collective operation.
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
        let mut links = vec![Link::Message(0); of.len()];
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

/// A member of an instance: the places of its begin and end, where these count.
#[derive(Clone, Copy)]
struct Member {
    source: Option<u32>,
    target: Option<u32>,
    process: u32,
}

struct Instance {
    members: Vec<Member>,
    is_prefix: bool,
}

/// The places of all processes at which clocks meet, and who meets whom.
struct Net {
    /// The first place of each process, and the number of places.
    first: Vec<usize>,
    /// Time of each place, ticks; increasing within a process.
    times: Vec<i64>,
    process: Vec<u32>,
    sources: Links,
    targets: Links,
    instances: Vec<Instance>,
    latency: i64,
}

impl Net {
    fn new(constraints: &Constraints, processes: usize, latency: i64) -> Self {
        let process_of = |location| constraints.process(location).index();
        let mut moments: Vec<Vec<i64>> = vec![Vec::new(); processes];
        let mut see = |location, time: i64| {
            if let Some(moments) = moments.get_mut(process_of(location)) {
                moments.push(time);
            }
        };
        for Message { sent, received } in &constraints.messages {
            see(sent.location, sent.time);
            see(received.location, received.time);
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
            let process = process_of(location);
            let within = moments.get(process)?.binary_search(&time).ok()?;
            Some((first[process] + within) as u32)
        };
        let (mut into, mut out) = (Vec::new(), Vec::new());
        for Message { sent, received } in &constraints.messages {
            let ends = (place(sent.location, sent.time), place(received.location, received.time));
            if process_of(sent.location) != process_of(received.location)
                && let (Some(from), Some(to)) = ends
            {
                into.push((to, Link::Message(from)));
                out.push((from, Link::Message(to)));
            }
        }
        let mut instances = Vec::new();
        for parts in constraints.instances() {
            let instance = instances.len() as u32;
            let member = |(number, part): (usize, &super::constraints::Part)| {
                let link = Link::Member { instance, number: number as u32 };
                let source = place(part.location, part.begin).filter(|_| part.is_source);
                let target = place(part.location, part.end).filter(|_| part.is_target);
                out.extend(source.map(|source| (source, link)));
                into.extend(target.map(|target| (target, link)));
                Member { source, target, process: process_of(part.location) as u32 }
            };
            let members = parts.iter().enumerate().map(member).collect();
            instances.push(Instance { members, is_prefix: parts[0].kind == Kind::Prefix });
        }
        let process = moments.iter().zip(0..).flat_map(|(moments, process)| moments.iter().map(move |_| process));
        let process: Vec<u32> = process.collect();
        let places = process.len();
        let (sources, targets) = (Links::new(places, &into), Links::new(places, &out));
        Self { first, times: moments.concat(), process, sources, targets, instances, latency }
    }

    fn places(&self, process: usize) -> std::ops::Range<usize> {
        self.first[process]..self.first[process + 1]
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

/// The first pass: each process advances from place to place, and waits where a source is not known yet.
struct Forward<'a> {
    net: &'a Net,
    /// The shifted time of each place that is known.
    shifted: Vec<i64>,
    progress: Vec<Progress>,
    /// The next place of each process, and its jumps.
    next: Vec<usize>,
    jumps: Vec<Jumps>,
    is_queued: Vec<bool>,
    queue: Vec<u32>,
}

const UNKNOWN: i64 = i64::MIN;

impl<'a> Forward<'a> {
    fn new(net: &'a Net) -> Self {
        let processes = net.first.len() - 1;
        let progress = net.instances.iter().map(|instance| Progress {
            unknown: instance.members.iter().filter(|member| member.source.is_some()).count() as u32,
            known: 0,
            latest: vec![UNKNOWN; if instance.is_prefix { instance.members.len() } else { 1 }],
        });
        Self {
            net,
            shifted: vec![UNKNOWN; net.times.len()],
            progress: progress.collect(),
            next: net.first[..processes].to_vec(),
            jumps: vec![Vec::new(); processes],
            is_queued: vec![true; processes],
            queue: (0..processes as u32).rev().collect(),
        }
    }

    fn run(&mut self) {
        loop {
            while let Some(process) = self.queue.pop() {
                self.is_queued[process as usize] = false;
                self.advance(process as usize, false);
            }
            // Places of the same time, or wrong matches, can wait for each other: the earliest goes on with what is known.
            let waiting = (0..self.next.len()).filter(|&process| self.next[process] < self.net.first[process + 1]);
            let Some(earliest) = waiting.min_by_key(|&process| (self.net.times[self.next[process]], process)) else {
                return;
            };
            self.advance(earliest, true);
        }
    }

    fn advance(&mut self, process: usize, mut is_forced: bool) {
        while self.next[process] < self.net.first[process + 1] {
            let place = self.next[process];
            let Some(required) = self.required(place, std::mem::take(&mut is_forced)) else { return };
            let time = self.net.times[place];
            let jumps = &mut self.jumps[process];
            let own = jumps.last().map_or(0, |&last| decayed(last, time));
            let needed = if required == UNKNOWN { own } else { required - time };
            if needed > own {
                jumps.push((time, needed));
            }
            self.shifted[place] = time + needed.max(own);
            self.next[process] += 1;
            self.announce(place);
        }
    }

    /// The earliest time at which a place may be; `None` if not all of its sources are known.
    fn required(&self, place: usize, is_forced: bool) -> Option<i64> {
        let mut latest = UNKNOWN;
        for &link in self.net.sources.of(place) {
            let (is_known, source) = match link {
                Link::Message(from) => (self.shifted[from as usize] != UNKNOWN, self.shifted[from as usize]),
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
            latest = latest.max(source);
        }
        Some(if latest == UNKNOWN { UNKNOWN } else { latest + self.net.latency })
    }

    /// Tells the targets of a place that it is known.
    fn announce(&mut self, place: usize) {
        let shifted = self.shifted[place];
        let net = self.net;
        for &link in net.targets.of(place) {
            match link {
                Link::Message(to) => self.wake(net.process[to as usize]),
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
                        of.members.iter().for_each(|member| self.wake(member.process));
                    }
                }
            }
        }
    }

    fn wake(&mut self, process: u32) {
        if !std::mem::replace(&mut self.is_queued[process as usize], true) {
            self.queue.push(process);
        }
    }

    /// Repeats with all shifts known until nothing changes; returns whether it does not.
    fn settle(&mut self) -> bool {
        for _ in 0..ROUNDS {
            let latest: Vec<Vec<i64>> = self.net.instances.par_iter().map(|instance| self.latest(instance)).collect();
            let net = self.net;
            let shifted = &self.shifted;
            let again = (0..self.jumps.len()).into_par_iter().map(|process| {
                let mut jumps = Jumps::new();
                let times = net.places(process).map(|place| {
                    let time = net.times[place];
                    let own = jumps.last().map_or(0, |&last| decayed(last, time));
                    let required = net.sources.of(place).iter().map(|&link| match link {
                        Link::Message(from) => shifted[from as usize],
                        Link::Member { instance, number } => {
                            let latest = &latest[instance as usize];
                            if net.instances[instance as usize].is_prefix {
                                (number as usize).checked_sub(1).map_or(UNKNOWN, |before| latest[before])
                            } else {
                                latest[0]
                            }
                        }
                    });
                    let needed = match required.max() {
                        None | Some(UNKNOWN) => own,
                        Some(required) => required + net.latency - time,
                    };
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
                if let Link::Message(to) = link {
                    *earliest = (*earliest).min(self.shifted[to as usize]);
                }
            }
        }
        for instance in &self.net.instances {
            // Its own end moves with it, so what counts is the earliest end of another process.
            let mut ends: [(i64, u32); 2] = [(i64::MAX, u32::MAX); 2];
            let see = |ends: &mut [(i64, u32); 2], member: &Member| {
                if let Some(target) = member.target {
                    let end = (self.shifted[target as usize], member.process);
                    if end < ends[0] {
                        *ends = [end, if ends[0].1 == end.1 { ends[1] } else { ends[0] }];
                    } else if end.1 != ends[0].1 && end < ends[1] {
                        ends[1] = end;
                    }
                }
            };
            let limit = |ends: &[(i64, u32); 2], member: &Member| {
                if ends[0].1 == member.process { ends[1].0 } else { ends[0].0 }
            };
            if instance.is_prefix {
                for member in instance.members.iter().rev() {
                    if let Some(source) = member.source {
                        let earliest = &mut earliest[source as usize];
                        *earliest = (*earliest).min(limit(&ends, member));
                    }
                    see(&mut ends, member);
                }
            } else {
                instance.members.iter().for_each(|member| see(&mut ends, member));
                for member in &instance.members {
                    if let Some(source) = member.source {
                        let earliest = &mut earliest[source as usize];
                        *earliest = (*earliest).min(limit(&ends, member));
                    }
                }
            }
        }
        let cap = |(&earliest, &shifted): (&i64, &i64)| match earliest {
            i64::MAX => i64::MAX,
            earliest => (earliest - self.net.latency - shifted).max(0),
        };
        earliest.iter().zip(&self.shifted).map(cap).collect()
    }
}

/// The controlled logical clock of each process, and whether some constraints cannot be satisfied by any times. `begins`
/// has the time of each process's first event.
pub(super) fn clocks(constraints: &Constraints, begins: &[i64], latency: i64) -> (Vec<Logical>, bool) {
    let net = Net::new(constraints, begins.len(), latency);
    let mut forward = Forward::new(&net);
    forward.run();
    let is_settled = forward.settle();
    let caps = forward.caps();
    let clocks = (0..begins.len()).into_par_iter().map(|process| {
        let places = net.places(process);
        let jumps = &forward.jumps[process];
        let knots = backward(jumps, begins[process], &forward.shifted[places.clone()], &caps[places]);
        Logical { jumps: jumps.clone(), knots }
    });
    (clocks.collect(), !is_settled)
}

/// What is added before each jump of a process: see [`Logical::knots`]. `shifted` has the times of its places, and `caps` how
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
