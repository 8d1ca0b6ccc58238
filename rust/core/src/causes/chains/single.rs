//! The factors of single waits: the costs, wait by wait.

use std::collections::BTreeMap;

use super::division::{Chains, Division};
use super::links::Node;
use super::profile::Profiles;
use crate::causes::CostModel;
use crate::causes::factors::{Factor, FactorKind, Side, WaitIntervals};
use crate::ids::{CallPathId, InstanceId, LocationId};
use crate::parallel::per_shard::PerShard;
use crate::schema::Pattern;
use crate::trace::{NONE, Trace};
use crate::waits::WaitState;

impl Chains {
    /// The factors of a wait, and its intervals; nothing if it is not known.
    pub(crate) fn factors(
        &self,
        trace: &Trace,
        (waits, base): (&PerShard<WaitState>, u32),
        (wait, row): (&WaitState, u32),
        model: CostModel,
        profiles: &mut Profiles,
    ) -> (Vec<Factor>, Option<WaitIntervals>) {
        let Some(&number) = self.number.get(&(wait.location, wait.instance)) else { return (Vec::new(), None) };
        let waiter = &self.nodes[number as usize];
        let Some(division) = self.divide(number, profiles) else { return (Vec::new(), None) };
        let rate = division.rate(waiter.waiting, model);
        let Division { cause, delays, completion, tied, begins, kernels, links, delay, waiting } = division;
        let share = |ticks: i64| wait.waiting as f64 * ticks as f64 * rate;
        let factor = |kind, location, callpath, ticks, waiter_ticks, share| Factor {
            wait: row,
            kind,
            location,
            callpath,
            ticks,
            waiter_ticks,
            earlier: NONE,
            share,
        };
        let mut factors: Vec<Factor> = delays
            .iter()
            .map(|delay| {
                let share = share(delay.ticks - delay.waiter_ticks);
                if delay.callpath.is_none() {
                    return factor(FactorKind::Unattributed, wait.location, waiter.callpath, 0, 0, share);
                }
                factor(FactorKind::Delay, delay.location, delay.callpath, delay.ticks, delay.waiter_ticks, share)
            })
            .collect();
        if completion > 0 {
            factors.push(match tied {
                Some((_, of_cause)) => {
                    let node = &self.nodes[of_cause as usize];
                    let (location, callpath) = (node.kernel.0, node.callpath);
                    factor(FactorKind::Completion, location, callpath, completion, 0, share(completion))
                }
                None => factor(FactorKind::Unattributed, wait.location, waiter.callpath, 0, 0, share(completion)),
            });
        }
        let of_kernels = kernels.iter().map(|&(number, ticks)| {
            let node = &self.nodes[number as usize];
            (node.kernel, (node.callpath, ticks))
        });
        let mut of_hosts: BTreeMap<(LocationId, InstanceId), (CallPathId, i64)> = BTreeMap::new();
        for stretch in links.iter().flat_map(|&(segment, first)| self.waits_of_hosts(segment, first)) {
            of_hosts.entry((stretch.location, stretch.wait)).or_insert((stretch.callpath, 0)).1 += stretch.ticks;
        }
        factors.extend(of_kernels.chain(of_hosts).map(|(call, (callpath, ticks))| {
            let of_wait = factor(FactorKind::Wait, call.0, callpath, ticks, 0, share(ticks));
            Factor { earlier: row_of(trace, waits, call).map_or(NONE, |row| base + row), ..of_wait }
        }));
        let rest = 1.0 - (delay + waiting) as f64 * rate;
        if rest > f64::EPSILON {
            let rest = wait.waiting as f64 * rest;
            factors.push(factor(FactorKind::Unattributed, wait.location, waiter.callpath, 0, 0, rest));
        }
        factors.sort_by(|a, b| a.kind.cmp(&b.kind).then(b.share.total_cmp(&a.share)));
        let cause = &self.nodes[cause as usize];
        let side = |node: &Node, begin, tie: Option<u32>| {
            let tie = tie.map(|tie| &self.nodes[tie as usize]);
            let last_sync = tie.map(|tie| (tie.callpath, tie.begin));
            Side { location: node.kernel.0, begin, end: node.begin.max(begin), last_sync, completion: 0 }
        };
        let intervals = WaitIntervals {
            wait: row,
            is_contention: false,
            waiter: side(waiter, begins.0, tied.map(|tied| tied.0)),
            cause: side(cause, begins.1, tied.map(|tied| tied.1)),
            delay,
            waiting,
            unexplained: (wait.waiting - delay - waiting).max(0),
        };
        (factors, Some(intervals))
    }
}

/// The position of the wait state of a kernel, or of a call that waits in MPI, of this process.
pub(in crate::causes) fn row_of(
    trace: &Trace,
    waits: &PerShard<WaitState>,
    (location, instance): (LocationId, InstanceId),
) -> Option<u32> {
    if !trace.owns(location) {
        return None;
    }
    let (first, of_shard) = waits.of(trace.position(location));
    let shard = trace.shard(location);
    let key = |wait: &WaitState| (wait.location, shard.instances.enter[wait.instance]);
    let at = of_shard.partition_point(|wait| key(wait) < (location, shard.instances.enter[instance]));
    let of_call = of_shard[at..].iter().take_while(|wait| (wait.location, wait.instance) == (location, instance));
    // A kernel also waits for its host.
    let is_stream = trace.definitions.locations[location].is_stream();
    let has_cost = |wait: &WaitState| {
        if is_stream {
            wait.is_of_devices()
        } else {
            wait.cause_instance.is_some() && Pattern::class_of(wait.kind).is_some()
        }
    };
    let found = (at..).zip(of_call).find(|(_, wait)| has_cost(wait))?;
    Some((first + found.0) as u32)
}
