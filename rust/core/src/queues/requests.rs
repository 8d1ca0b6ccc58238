//! Requests of point-to-point messages: from the call that begins them to the Leave of the one that completes them.

use super::levels::{Level, Quantity, follow, sort_by_time};
use super::{Counts, QueueMetric};
use crate::ids::InstanceId;
use crate::trace::{Shard, Trace};

/// Follows the requests of all processes of a shard, and counts those that are never completed.
pub(super) fn replay(trace: &Trace, shard: &Shard, counts: &mut Counts, bins: usize) -> Vec<Level> {
    let Some(run) = trace.span() else { return Vec::new() };
    let mut levels = Vec::new();
    // Of sends, of receives: when they begin, when they end.
    let mut times: [[Vec<i64>; 2]; 2] = Default::default();
    for process in shard.processes {
        for i in shard.local_locations(trace.definitions.processes[process].locations) {
            let mut request = |is_send: bool, begin: InstanceId, end: InstanceId| {
                let [begins, ends] = &mut times[usize::from(!is_send)];
                begins.push(shard.enter(begin));
                if end.is_none() {
                    counts.add(QueueMetric::RequestsLeaked, shard.callpath(begin), 1);
                } else {
                    ends.push(shard.leave(end));
                }
            };
            for send in shard.sends.of(i).iter().filter(|send| send.complete != send.instance && !send.cancelled) {
                request(true, send.instance, send.complete);
            }
            for receive in shard.receives.of(i).iter().filter(|receive| receive.request != receive.instance) {
                request(false, receive.request, receive.instance);
            }
            for other in shard.requests.of(i) {
                request(other.is_send, other.begin, other.end);
            }
            counts.end_location(shard.location(i));
        }
        let location = trace.definitions.master(process);
        for (quantity, of_kind) in [Quantity::SendRequests, Quantity::ReceiveRequests].into_iter().zip(&mut times) {
            for times in &mut *of_kind {
                sort_by_time(times, |time| *time);
            }
            let [begins, ends] = of_kind.each_ref().map(|times| times.iter().map(|&time| (time, 1)));
            levels.extend(follow(quantity, location, (begins, ends), run, bins));
            of_kind.iter_mut().for_each(Vec::clear);
        }
    }
    levels
}
