//! Requests: from the call that begins one to the Leave of the call that completes it.

use std::ops::Range;

use rustc_hash::FxHashMap;

use super::ledger::Ledger;
use super::levels::{Course, Detail, Level, Quantity, sort_by_time};
use crate::ids::{CallPathId, InstanceId, LocationId};
use crate::schema::QueueMetric;
use crate::trace::columns::RequestOf;
use crate::trace::{Shard, Trace};

/// One-sided operations with a request; others are completed by synchronizations.
const ONE_SIDED: [&str; 4] = ["mpi_rput", "mpi_rget", "mpi_raccumulate", "mpi_rget_accumulate"];

/// Kinds of requests.
#[derive(Clone, Copy)]
enum Kind {
    Send,
    Receive,
    Other,
}

/// Number of requests of each kind that begin at a time; negative if they end.
type Number = [i32; 3];

/// The requests of a process. They begin at the Enter of a call, and end at the Leave of a call.
#[derive(Default)]
struct Requests {
    /// By call of the current process: the requests that begin and that end.
    of_calls: Vec<[Number; 2]>,
    first: usize,
    steps: Vec<(i64, Number)>,
}

impl Requests {
    fn begin_process(&mut self, calls: Range<u32>) {
        self.first = calls.start as usize;
        self.of_calls.resize(calls.len(), [Number::default(); 2]);
    }

    /// Adds a request; returns whether it ends.
    #[inline]
    fn take(&mut self, kind: Kind, begin: InstanceId, end: InstanceId) -> bool {
        self.of_calls[begin.index() - self.first][0][kind as usize] += 1;
        if end.is_some() {
            self.of_calls[end.index() - self.first][1][kind as usize] -= 1;
        }
        end.is_some()
    }

    /// Finishes the calls of a process. Those of a location are ordered, so their times are too.
    fn end_process(&mut self, shard: &Shard) {
        for (call, [begin, end]) in (self.first..).zip(self.of_calls.drain(..)) {
            let call = InstanceId::at(call);
            if begin != Number::default() {
                self.steps.push((shard.enter(call), begin));
            }
            if end != Number::default() {
                self.steps.push((shard.leave(call), end));
            }
        }
    }

    /// Finishes a process; returns its levels.
    fn levels(&mut self, location: LocationId, run: (i64, i64), detail: Detail) -> impl Iterator<Item = Level> {
        sort_by_time(&mut self.steps, |step| step.0);
        let quantities = [Quantity::SendRequests, Quantity::ReceiveRequests, Quantity::Requests];
        let mut courses = quantities.map(|quantity| Course::new(quantity, location, run, detail, (run.0, 0)));
        let mut are_any = [false; 3];
        for (time, [sends, receives, others]) in self.steps.drain(..) {
            let all = i64::from(sends) + i64::from(receives) + i64::from(others);
            courses[2].change(time, all);
            are_any[2] = true;
            for (i, by) in [sends, receives].into_iter().enumerate() {
                if by != 0 {
                    courses[i].change(time, by.into());
                    are_any[i] = true;
                }
            }
        }
        courses.into_iter().zip(are_any).filter(|(_, is_any)| *is_any).map(move |(course, _)| course.end(run.1))
    }
}

/// Replays the requests of all processes of a shard, and counts those that are never completed.
pub(super) fn replay(trace: &Trace, shard: &Shard, ledger: &mut Ledger, detail: Detail) -> Vec<Level> {
    let Some(run) = trace.span() else { return Vec::new() };
    let mut levels = Vec::new();
    let mut one_sided = OneSided { trace, known: FxHashMap::default() };
    let mut requests = Requests::default();
    for process in shard.processes {
        let locations = shard.local_locations(trace.definitions.processes[process].locations);
        // One thread may complete what another one has begun.
        requests.begin_process(shard.instance_offsets[locations.start]..shard.instance_offsets[locations.end]);
        for i in locations {
            let mut request = |kind, begin, end| {
                if !requests.take(kind, begin, end) {
                    ledger.add(QueueMetric::RequestsLeaked, shard.callpath(begin), || shard.enter(begin));
                }
            };
            for send in shard.sends.of(i).iter().filter(|send| send.complete != send.instance && !send.cancelled) {
                request(Kind::Send, send.instance, send.complete);
            }
            for receive in shard.receives.of(i).iter().filter(|receive| receive.request != receive.instance) {
                request(Kind::Receive, receive.request, receive.instance);
            }
            for other in shard.requests.of(i).iter().filter(|other| other.begin.is_some()) {
                let kind = match other.of {
                    RequestOf::Send => Kind::Send,
                    RequestOf::Receive => Kind::Receive,
                    RequestOf::Collective => Kind::Other,
                };
                request(kind, other.begin, other.end);
            }
            for collective in shard.nonblocking.of(i) {
                request(Kind::Other, collective.post, collective.complete);
            }
            for operation in shard.operations.of(i) {
                if one_sided.has_request(shard.callpath(operation.instance)) {
                    let end = [operation.done_local, operation.done_remote].into_iter().find(|done| done.is_some());
                    request(Kind::Other, operation.instance, end.unwrap_or(InstanceId::NONE));
                }
            }
            ledger.end_location(shard.location(i));
        }
        requests.end_process(shard);
        levels.extend(requests.levels(trace.definitions.master(process), run, detail));
    }
    levels
}

/// Tells which one-sided operations have a request.
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
