//! How a wait is divided: the parts of the two chains since the latest operation that both pass and that ties the two ranks.
//!
//! An N-to-N operation or a barrier ties all of its members; others tie two of which one waited for the other. An operation that
//! only one chain passes ends nothing: nobody waited for it.

use rustc_hash::FxHashMap;

use super::links::{self, Links, Node, Tie};
use super::places::Stretch;
use super::profile::{self, Profile, Profiles};
use super::segments::Segment;
use crate::Result;
use crate::causes::{CostModel, past};
use crate::ids::{CallPathId, InstanceId, LocationId};
use crate::parallel::per_shard::PerShard;
use crate::trace::Trace;
use crate::waits::WaitState;
use crate::waits::device::Devices;

/// The kernels of all ranks that communicate, and what delayed each.
#[derive(Debug, Default)]
pub(crate) struct Chains {
    pub(super) nodes: Vec<Node>,
    /// What their links consist of.
    pub(super) segments: Vec<Segment>,
    /// The position of each kernel.
    pub(super) number: FxHashMap<(LocationId, InstanceId), u32>,
    /// The waits in the order in which their costs are booked.
    pub(super) order: Vec<u32>,
}

/// What a wait is distributed over.
pub(super) struct Division {
    /// What it waited for.
    pub cause: u32,
    /// The excess of the cause.
    pub delays: Vec<Delay>,
    /// By how much the part of the cause begins later, ticks.
    pub completion: i64,
    /// The kernels of the waiter and of the cause in the operation that ties the two.
    pub tied: Option<(u32, u32)>,
    /// Where the parts of the two begin, ticks.
    pub begins: (i64, i64),
    /// The waits of kernels on the part of the cause, and how long they are, ticks.
    pub kernels: Vec<(u32, i64)>,
    /// The links of the part on which hosts wait in MPI: the last segment, and the time since when they count.
    pub links: Vec<(u32, i64)>,
    /// Sum of the excess and of `completion`, ticks.
    pub delay: i64,
    /// Sum of all these waits, ticks.
    pub waiting: i64,
}

impl Division {
    /// Share of each tick of excess and of waiting in a wait of this length.
    pub(super) fn rate(&self, waiting: i64, model: CostModel) -> f64 {
        match self.delay + self.waiting {
            0 => 0.0,
            all if model == CostModel::Bounded => 1.0 / all.max(waiting) as f64,
            all => 1.0 / all as f64,
        }
    }
}

/// A call path in which the cause spent more time than the waiter.
pub(super) struct Delay {
    pub location: LocationId,
    pub callpath: CallPathId,
    /// Of the cause, and of the waiter.
    pub ticks: i64,
    pub waiter_ticks: i64,
}

impl Chains {
    /// Follows what delayed the kernels of all ranks; `devices` are those of the shards. Collective.
    pub(crate) fn find(trace: &Trace, devices: &[Devices], waits: &PerShard<WaitState>) -> Result<Self> {
        if !trace.definitions.has_streams {
            return Ok(Self::default());
        }
        let mut all = Links::default();
        trace
            .exchange
            .allgather(links::of_shards(trace, devices, waits))?
            .into_iter()
            .for_each(|links| all.append(links));
        let Links { nodes, segments } = all;
        let number = nodes.iter().map(|node| node.kernel).zip(0..).collect();
        let mut chains = Self { nodes, segments, number, order: Vec::new() };
        chains.order = chains.order();
        Ok(chains)
    }

    /// Whether no devices communicate.
    pub(crate) fn is_empty(&self) -> bool {
        self.nodes.is_empty()
    }

    /// The waits in an order in which what costs depend on comes first: mostly from the latest to the earliest.
    fn order(&self) -> Vec<u32> {
        let mut waits: Vec<u32> =
            (0..self.nodes.len() as u32).filter(|&number| self.nodes[number as usize].waiting > 0).collect();
        waits.sort_unstable_by_key(|&number| {
            let node = &self.nodes[number as usize];
            (node.begin + node.waiting, number)
        });
        let mut is_known = vec![false; self.nodes.len()];
        let mut order = Vec::with_capacity(waits.len());
        // Waits whose earlier ones are not all in order yet, and these.
        let mut open: Vec<(u32, Vec<u32>)> = Vec::new();
        for wait in waits {
            let mut next = Some(wait);
            loop {
                if let Some(wait) = next.filter(|&wait| !std::mem::replace(&mut is_known[wait as usize], true)) {
                    open.push((wait, self.compare(wait).map_or_else(Vec::new, |compared| compared.earlier())));
                }
                let Some((wait, earlier)) = open.last_mut() else { break };
                next = earlier.pop();
                if next.is_none() {
                    order.push(*wait);
                    open.pop();
                }
            }
        }
        order.reverse();
        order
    }

    /// Compares the chains of the waiter and of its cause, back to the operation that ties the two; `None` if the cause is not
    /// known.
    fn compare(&self, waiter: u32) -> Option<Compared<'_>> {
        let node = &self.nodes[waiter as usize];
        let &cause = self.number.get(&node.cause).filter(|_| node.waiting > 0)?;
        let (mut own, mut other) = (Walk::new(self, waiter), Walk::new(self, cause));
        let mut tied = None;
        while tied.is_none() {
            let turn = match (own.next(), other.next()) {
                (None, None) => break,
                (Some(a), Some(b)) => a >= b,
                (a, _) => a.is_some(),
            };
            let (moving, waiting) = if turn { (&mut own, &other) } else { (&mut other, &own) };
            let Some(reached) = moving.advance() else { break };
            if let Some(met) = waiting.tied_with(reached) {
                let here = moving.passed.len() - 1;
                tied = Some(if turn { (here, met) } else { (met, here) });
            }
        }
        Some(Compared { own, other, tied })
    }

    /// Divides the wait of a kernel; `None` if its cause is not known.
    pub(super) fn divide(&self, waiter: u32, profiles: &mut Profiles) -> Option<Division> {
        let Compared { own, other, tied } = self.compare(waiter)?;
        let cause = other.from;
        let kernels = tied.map(|(i, j)| (own.passed[i], other.passed[j]));
        let (i, j) = tied.unwrap_or((own.passed.len(), other.passed.len()));
        let own = own.part(i, i64::MIN, profiles);
        // What only one of the two recorded is no excess.
        let other = other.part(j, if tied.is_none() { own.since } else { i64::MIN }, profiles);
        let completion = (other.since - own.since).max(0);
        let of_waiter = past::by_callpath(&own.profile.work);
        let delay = |(callpath, ticks, location): (CallPathId, i64, LocationId)| {
            let position = of_waiter.binary_search_by_key(&callpath, |&(callpath, ..)| callpath);
            let waiter_ticks = position.map_or(0, |position| of_waiter[position].1);
            (ticks > waiter_ticks).then_some(Delay { location, callpath, ticks, waiter_ticks })
        };
        let delays: Vec<Delay> = past::by_callpath(&other.profile.work).into_iter().filter_map(delay).collect();
        let excess: i64 = delays.iter().map(|delay| delay.ticks - delay.waiter_ticks).sum();
        let waiting = other.kernels.iter().map(|&(_, ticks)| ticks).sum::<i64>() + other.profile.waiting;
        Some(Division {
            cause,
            delays,
            completion,
            tied: kernels,
            begins: (own.since, other.since),
            kernels: other.kernels,
            links: other.links,
            delay: excess + completion,
            waiting,
        })
    }

    /// The waits of hosts in MPI on a link since a time; `segment` is its last one.
    pub(super) fn waits_of_hosts(&self, segment: u32, first: i64) -> impl Iterator<Item = Stretch> {
        let segments = profile::path(&self.segments, segment, first).map(|number| &self.segments[number]);
        segments.flat_map(move |segment| segment.stretches_after(first)).filter(|stretch| stretch.wait.is_some())
    }
}

/// The chains of a waiter and of its cause.
struct Compared<'a> {
    own: Walk<'a>,
    other: Walk<'a>,
    /// How many kernels before the operation that ties the two are on each.
    tied: Option<(usize, usize)>,
}

impl Compared<'_> {
    /// The kernels that waited on the part of the cause.
    fn earlier(&self) -> Vec<u32> {
        let passed = &self.other.passed[..self.tied.map_or(self.other.passed.len(), |(_, count)| count)];
        let waited = passed.iter().filter(|&&number| self.other.chains.nodes[number as usize].waiting > 0);
        waited.copied().collect()
    }
}

/// A chain that is followed backwards.
struct Walk<'a> {
    chains: &'a Chains,
    from: u32,
    /// The kernels that it passes, the latest first.
    passed: Vec<u32>,
    position: FxHashMap<u32, usize>,
    ties: FxHashMap<Tie, usize>,
    /// Of those that waited, what they waited for.
    awaited: FxHashMap<(LocationId, InstanceId), usize>,
}

/// A part of a chain, from its begin to the kernel that it is the chain of.
#[derive(Default)]
struct Part {
    since: i64,
    profile: Profile,
    /// The kernels that waited, and how long, ticks.
    kernels: Vec<(u32, i64)>,
    /// The links on which hosts waited.
    links: Vec<(u32, i64)>,
}

impl<'a> Walk<'a> {
    fn new(chains: &'a Chains, from: u32) -> Self {
        Self {
            chains,
            from,
            passed: Vec::new(),
            position: FxHashMap::default(),
            ties: FxHashMap::default(),
            awaited: FxHashMap::default(),
        }
    }

    fn last(&self) -> u32 {
        self.passed.last().copied().unwrap_or(self.from)
    }

    /// The end of the next kernel that it passes.
    fn next(&self) -> Option<i64> {
        let link = &self.chains.nodes[self.last() as usize].link;
        link.before.filter(|before| self.chains.number.contains_key(before)).map(|_| link.since)
    }

    /// Goes on to the next kernel.
    fn advance(&mut self) -> Option<u32> {
        let before = self.chains.nodes[self.last() as usize].link.before?;
        let &number = self.chains.number.get(&before)?;
        let position = self.passed.len();
        let node = &self.chains.nodes[number as usize];
        self.passed.push(number);
        self.position.insert(number, position);
        if let Some(tie) = node.tie {
            self.ties.entry(tie).or_insert(position);
        }
        if node.waiting > 0 {
            self.awaited.entry(node.cause).or_insert(position);
        }
        Some(number)
    }

    /// The position of a kernel that an operation ties with one of another rank.
    fn tied_with(&self, number: u32) -> Option<usize> {
        let node = &self.chains.nodes[number as usize];
        let of_tie = node.tie.and_then(|tie| self.ties.get(&tie));
        let cause = || self.chains.number.get(&node.cause).filter(|_| node.waiting > 0);
        let found = of_tie.or_else(|| self.position.get(cause()?)).or_else(|| self.awaited.get(&node.kernel));
        found.copied()
    }

    /// The part behind the `count`-th kernel that it passes, or all of it, and not before a time.
    fn part(&self, count: usize, first: i64, profiles: &mut Profiles) -> Part {
        let mut part = Part::default();
        for number in std::iter::once(self.from).chain(self.passed[..count].iter().copied()) {
            let node = &self.chains.nodes[number as usize];
            if number != self.from {
                // It ended at the latest when the next one began.
                let transfer = part.since.min(node.end) - (node.begin + node.waiting).max(first);
                if transfer > 0 {
                    part.profile.add((node.callpath, node.kernel.0), transfer);
                }
                let waiting = node.begin + node.waiting - node.begin.max(first);
                if node.waiting > 0 && waiting > 0 {
                    part.kernels.push((number, waiting));
                }
            }
            let waiting = part.profile.waiting;
            profiles.add(&self.chains.segments, node.link.segment, first, &mut part.profile);
            if part.profile.waiting > waiting {
                part.links.push((node.link.segment, first));
            }
            part.since = node.link.since.max(first);
            if node.link.since <= first {
                break;
            }
        }
        part
    }
}
