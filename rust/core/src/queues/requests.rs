//! Requests: from the call that begins them to the Leave of the one that completes them.

use rustc_hash::FxHashMap;

use super::QueueMetric;
use super::ledger::Ledger;
use super::levels::{Level, Quantity, follow, sort_by_time};
use crate::ids::{CallPathId, InstanceId};
use crate::trace::columns::RequestOf;
use crate::trace::{Shard, Trace};

/// One-sided operations with a request; others are completed by synchronizations.
const ONE_SIDED: [&str; 4] = ["mpi_rput", "mpi_rget", "mpi_raccumulate", "mpi_rget_accumulate"];

/// When requests begin, and when they end.
#[derive(Default)]
struct Times {
    begins: Vec<i64>,
    ends: Vec<i64>,
}

/// Follows the requests of all processes of a shard, and counts those that are never completed.
pub(super) fn replay(trace: &Trace, shard: &Shard, ledger: &mut Ledger, bins: usize) -> Vec<Level> {
    let Some(run) = trace.span() else { return Vec::new() };
    let mut levels = Vec::new();
    let mut one_sided = OneSided { trace, known: FxHashMap::default() };
    let [mut sends, mut receives, mut all] = [const { Times { begins: Vec::new(), ends: Vec::new() } }; 3];
    for process in shard.processes {
        for i in shard.local_locations(trace.definitions.processes[process].locations) {
            let mut request = |times: &mut Times, begin: InstanceId, end: InstanceId| {
                times.begins.push(shard.enter(begin));
                if end.is_none() {
                    ledger.add(QueueMetric::RequestsLeaked, shard.callpath(begin), || shard.enter(begin));
                } else {
                    times.ends.push(shard.leave(end));
                }
            };
            for send in shard.sends.of(i).iter().filter(|send| send.complete != send.instance && !send.cancelled) {
                request(&mut sends, send.instance, send.complete);
            }
            for receive in shard.receives.of(i).iter().filter(|receive| receive.request != receive.instance) {
                request(&mut receives, receive.request, receive.instance);
            }
            for other in shard.requests.of(i) {
                let times = match other.of {
                    RequestOf::Send => &mut sends,
                    RequestOf::Receive => &mut receives,
                    RequestOf::Collective => &mut all,
                };
                request(times, other.begin, other.end);
            }
            for collective in shard.nonblocking.of(i) {
                request(&mut all, collective.post, collective.complete);
            }
            for operation in shard.operations.of(i) {
                if one_sided.has_request(shard.callpath(operation.instance)) {
                    let end = [operation.done_local, operation.done_remote].into_iter().find(|done| done.is_some());
                    request(&mut all, operation.instance, end.unwrap_or(InstanceId::NONE));
                }
            }
            ledger.end_location(shard.location(i));
        }
        let location = trace.definitions.master(process);
        for times in [&mut sends, &mut receives] {
            sort_by_time(&mut times.begins, |time| *time);
            sort_by_time(&mut times.ends, |time| *time);
            all.begins.extend(&times.begins);
            all.ends.extend(&times.ends);
        }
        for times in [&mut all.begins, &mut all.ends] {
            // A stable sort finds the parts that are sorted already.
            times.sort_by_key(|&time| time);
        }
        let quantities = [Quantity::SendRequests, Quantity::ReceiveRequests, Quantity::Requests];
        for (quantity, times) in quantities.into_iter().zip([&mut sends, &mut receives, &mut all]) {
            let changes = [&times.begins, &times.ends].map(|times| times.iter().map(|&time| (time, 1)));
            levels.extend(follow(quantity, location, changes.into(), run, bins));
            times.begins.clear();
            times.ends.clear();
        }
    }
    levels
}

/// Which one-sided operations have a request.
struct OneSided<'a> {
    trace: &'a Trace,
    /// By call path.
    known: FxHashMap<CallPathId, bool>,
}

impl OneSided<'_> {
    fn has_request(&mut self, callpath: CallPathId) -> bool {
        let Self { trace, known } = self;
        *known.entry(callpath).or_insert_with(|| {
            let region = trace.regions.get(trace.tree.region(callpath));
            region.is_some_and(|region| ONE_SIDED.iter().any(|name| region.name.eq_ignore_ascii_case(name)))
        })
    }
}
