//! What targets did while calls may have waited for them: their outermost library calls, in which they make progress.

use std::ops::Range;

use bitcode::{Decode, Encode};
use rustc_hash::FxHashMap;

use crate::galloping_search::partition_point_near;
use crate::ids::{InstanceId, LocationId, ProcessId, WindowId};
use crate::parallel::exchange::{Inbox, Outbox};
use crate::trace::columns::ALL;
use crate::trace::{NONE, Shard, Trace};
use crate::waits::interval::union;

/// The question of a call when a target made progress.
#[derive(Clone, Copy, Encode, Decode)]
pub(super) struct Request {
    /// Shard and region instance of the call.
    pub from: (u32, InstanceId),
    /// Index of the process, or [`ALL`] for the last process of the window to make progress.
    pub target: ProcessId,
    /// Whether it asks for a lock.
    pub is_lock: bool,
    /// Index of the window, and the process that asks.
    pub window: WindowId,
    pub origin: ProcessId,
    pub enter: i64,
    pub leave: i64,
    /// Release of a lock within the call, ticks; `i64::MIN` without one.
    pub released: i64,
}

/// The answer: a target's activities within the call that asked.
#[derive(Clone, Copy, Encode, Decode)]
pub(super) struct Activity {
    /// Region instance of the call that asked.
    pub asked: InstanceId,
    /// Location and region instance of the first activity, which may have made progress.
    pub call: (LocationId, InstanceId),
    pub process: ProcessId,
    pub enter: i64,
    pub leave: i64,
    /// Location and region instance of the last activity that begins within the call, and its Enter.
    pub last: (LocationId, InstanceId),
    pub last_enter: i64,
    /// Leave of the activity before that, ticks; [`i64::MIN`] without one.
    pub before: i64,
    /// Time from the begin of the call to that Enter that the target spent outside its libraries, ticks.
    pub away: i64,
}

/// Answers requests with the activities of a shard's locations.
///
/// Requests are visited by target and time, so that consecutive searches are close together; answers are sent in the
/// order of the requests.
pub(super) fn answers(trace: &Trace, requests: &Inbox<Request>, calls: &mut LibraryCalls) -> Outbox<Activity> {
    let requests: Vec<&Request> = requests.rows().collect();
    let mut order: Vec<u32> = (0..requests.len() as u32).collect();
    order.sort_unstable_by_key(|&i| (requests[i as usize].target, requests[i as usize].enter));
    let mut activities = vec![None; requests.len()];
    for i in order {
        let request = requests[i as usize];
        activities[i as usize] = match (request.target, request.is_lock) {
            (ALL, _) => calls.last_grant(request),
            (_, true) => calls.grant(request),
            (_, false) => calls.activity(request),
        };
    }
    let mut outbox = trace.exchange.outbox();
    for (request, activity) in requests.iter().zip(activities) {
        if let Some(activity) = activity {
            outbox.push(request.from.0, activity);
        }
    }
    outbox
}

/// The outermost library calls of a shard's locations, computed on first use.
pub(crate) struct LibraryCalls<'a> {
    trace: &'a Trace,
    shard: &'a Shard,
    /// The calls of a location, and the position of the last hit: the requests of a process arrive in order of time.
    by_location: FxHashMap<LocationId, (Vec<InstanceId>, usize)>,
    /// When the process of the last request was inside its libraries.
    inside: Option<(ProcessId, Inside)>,
    /// Enter, location and region instance of the calls of all locations, if requested.
    by_enter: Option<Vec<(i64, LocationId, InstanceId)>>,
}

impl<'a> LibraryCalls<'a> {
    /// The library calls of a shard.
    pub(crate) fn new(trace: &'a Trace, shard: &'a Shard) -> Self {
        Self { trace, shard, by_location: FxHashMap::default(), inside: None, by_enter: None }
    }

    /// Location and region instance of the first call of `target` that can make progress from `enter` on, if it begins
    /// before `leave`.
    pub(crate) fn serving(&mut self, target: ProcessId, enter: i64, leave: i64) -> Option<(LocationId, InstanceId)> {
        let request = Request {
            from: (NONE, InstanceId::NONE),
            target,
            is_lock: false,
            window: WindowId::NONE,
            origin: ProcessId::NONE,
            enter,
            leave,
            released: i64::MIN,
        };
        self.first(&request).map(|(call, ..)| call)
    }

    /// The target's activities for a call, on any of its threads: the one that makes progress, and the last one.
    fn activity(&mut self, request: &Request) -> Option<Activity> {
        let (call, enter, leave) = self.first(request)?;
        let since = request.enter.max(request.released);
        let (last, last_enter, before) = self.last(request)?;
        // What the target did before its first activity helped nobody.
        let inside = self.inside(request.target);
        let active = inside.between(since.max(enter), last_enter);
        let away = if last_enter > since { last_enter - since - active } else { 0 };
        let (asked, process) = (request.from.1, request.target);
        Some(Activity { asked, call, process, enter, leave, last, last_enter, before, away })
    }

    /// The first activity of a target for a call.
    fn first(&mut self, request: &Request) -> Option<((LocationId, InstanceId), i64, i64)> {
        let mut found: Option<((LocationId, InstanceId), i64, i64)> = None;
        let (trace, shard) = (self.trace, self.shard);
        for location in trace.definitions.processes[request.target].locations {
            let (calls, last) =
                self.by_location.entry(location).or_insert_with(|| (outermost(trace, shard, location), 0));
            *last = if request.released == i64::MIN {
                partition_point_near(calls, *last, |&call| shard.leave(call) < request.enter)
            } else {
                partition_point_near(calls, *last, |&call| shard.enter(call) <= request.released)
            };
            let Some(&call) = calls.get(*last) else { continue };
            let enter = shard.enter(call);
            if enter < request.leave && found.is_none_or(|(_, first, _)| enter < first) {
                found = Some(((location, call), enter, shard.leave(call)));
            }
        }
        found
    }

    /// The target's last activity that begins before the call ends, its Enter, and the end of all before it.
    fn last(&self, request: &Request) -> Option<((LocationId, InstanceId), i64, i64)> {
        let (trace, shard) = (self.trace, self.shard);
        let (mut found, mut before) = (None::<((LocationId, InstanceId), i64, i64)>, i64::MIN);
        for location in trace.definitions.processes[request.target].locations {
            let Some((calls, first)) = self.by_location.get(&location) else { continue };
            let end = partition_point_near(calls, *first, |&call| shard.enter(call) < request.leave);
            let Some(&call) = calls[..end].last() else { continue };
            if let Some(&earlier) = calls[..end - 1].last() {
                before = before.max(shard.leave(earlier));
            }
            let (enter, leave) = (shard.enter(call), shard.leave(call));
            match found {
                Some((_, last, _)) if enter <= last => before = before.max(leave),
                _ => {
                    before = before.max(found.map_or(i64::MIN, |(.., leave)| leave));
                    found = Some(((location, call), enter, leave));
                }
            }
        }
        found.map(|(call, enter, _)| (call, enter, before))
    }

    /// When a process is inside its libraries, on any thread.
    fn inside(&mut self, process: ProcessId) -> &Inside {
        let (trace, shard, by_location) = (self.trace, self.shard, &self.by_location);
        if self.inside.as_ref().is_none_or(|&(of, _)| of != process) {
            let locations = trace.definitions.processes[process].locations;
            let calls = locations.filter_map(|location| by_location.get(&location)).flat_map(|(calls, _)| calls);
            let calls = calls.map(|&call| shard.enter(call)..shard.leave(call)).collect();
            self.inside = None;
            return &self.inside.insert((process, Inside::new(calls))).1;
        }
        &self.inside.as_ref().expect("it was found").1
    }

    /// The target's activity that granted a lock: the last that begins within the call, since the call returns with the
    /// lock. After contention, or if the target was already in its library, the activity that makes progress.
    fn grant(&mut self, request: &Request) -> Option<Activity> {
        let first = self.activity(request)?;
        if request.released != i64::MIN || first.enter <= request.enter {
            return Some(first);
        }
        let (enter, leave) = (first.last_enter, self.shard.leave(first.last.1));
        Some(Activity { call: first.last, enter, leave, away: enter - request.enter, ..first })
    }

    /// The last grant among the window's processes in this shard, searched backwards from the end of the call.
    fn last_grant(&mut self, request: &Request) -> Option<Activity> {
        let by_enter = self.by_enter.take().unwrap_or_else(|| by_enter(self.trace, self.shard));
        let comm = self.trace.definitions.window_comm(request.window);
        let end = by_enter.partition_point(|&(enter, ..)| enter < request.leave);
        let since = request.enter.max(request.released);
        let mut last: Option<Activity> = None;
        let mut served = Vec::new();
        for &(enter, location, instance) in by_enter[..end].iter().rev() {
            if enter <= since || last.is_some_and(|last| enter < last.enter) {
                break;
            }
            let target = self.trace.definitions.locations[location].process;
            let is_member = target != request.origin && comm.is_some_and(|comm| comm.rank(target).is_some());
            if !is_member || served.contains(&target) {
                continue;
            }
            let grant = self.grant(&Request { target, ..*request });
            let grant = grant.filter(|grant| grant.call == (location, instance));
            if grant.is_none() && request.released == i64::MIN {
                served.push(target);
            }
            last = match (last, grant) {
                (Some(last), Some(grant)) if grant.process > last.process => Some(last),
                (last, grant) => grant.or(last),
            };
        }
        self.by_enter = Some(by_enter);
        last
    }
}

/// Enter, location and region instance of all outermost library calls of a shard, by Enter.
fn by_enter(trace: &Trace, shard: &Shard) -> Vec<(i64, LocationId, InstanceId)> {
    let calls = |location| outermost(trace, shard, location).into_iter().map(move |call| (location, call));
    let locations = shard.locations;
    let mut calls: Vec<_> =
        locations.flat_map(calls).map(|(location, call)| (shard.enter(call), location, call)).collect();
    calls.sort_unstable();
    calls
}

/// Region instances of the outermost library calls of a location, in order.
fn outermost(trace: &Trace, shard: &Shard, location: LocationId) -> Vec<InstanceId> {
    let mut end = None;
    let mut calls = Vec::new();
    for instance in shard.instances_of(location) {
        let enter = shard.instances.enter[instance];
        if trace.class(shard, instance).library().is_some() && end.is_none_or(|end| enter > end) {
            end = Some(shard.instances.leave[instance]);
            calls.push(instance);
        }
    }
    calls
}

/// When a process is inside its libraries: disjoint stretches of time in order, and the sums of their lengths.
struct Inside {
    stretches: Vec<Range<i64>>,
    /// The time in all stretches before each, ticks.
    sums: Vec<i64>,
}

impl Inside {
    fn new(calls: Vec<Range<i64>>) -> Self {
        let stretches = union(calls);
        let mut sum = 0;
        let before = |stretch: &Range<i64>| {
            let before = sum;
            sum += stretch.end - stretch.start;
            before
        };
        let sums = stretches.iter().map(before).collect();
        Self { stretches, sums }
    }

    /// The time inside from one tick to another.
    fn between(&self, begin: i64, end: i64) -> i64 {
        self.until(end) - self.until(begin)
    }

    fn until(&self, time: i64) -> i64 {
        let after = self.stretches.partition_point(|stretch| stretch.start < time);
        let Some(last) = self.stretches[..after].last() else { return 0 };
        self.sums[after - 1] + last.end.min(time) - last.start
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn calls_that_overlap_count_once() {
        let inside = Inside::new(vec![10..30, 50..60, 20..40]);
        assert_eq!(inside.between(0, 100), 40);
        assert_eq!(inside.between(35, 55), 5 + 5);
        assert_eq!(inside.between(41, 49), 0);
        assert_eq!(inside.between(10, 20), 10);
    }
}
