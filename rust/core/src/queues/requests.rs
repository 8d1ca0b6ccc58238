//! Requests of point-to-point messages: from the call that begins them to the Leave of the one that completes them.

use super::levels::{Level, Quantity, follow};
use super::{QueueMetric, Sums};
use crate::ids::InstanceId;
use crate::trace::{Shard, Trace};

/// Follows the requests of all processes of a shard, and counts those that are never completed.
pub(super) fn replay(trace: &Trace, shard: &Shard, sums: &mut Sums, bins: usize) -> Vec<Level> {
    let Some(span) = trace.span() else { return Vec::new() };
    let mut levels = Vec::new();
    for process in shard.processes {
        // Those of sends, those of receives.
        let mut changes = [Vec::new(), Vec::new()];
        for i in shard.local_locations(trace.definitions.processes[process].locations) {
            let location = shard.location(i);
            let mut request = |is_send: bool, begin: InstanceId, end: InstanceId| {
                let changes = &mut changes[usize::from(!is_send)];
                changes.push((shard.enter(begin), 1));
                if end.is_none() {
                    sums.add(QueueMetric::RequestsLeaked, (shard.callpath(begin), location), 1);
                } else {
                    changes.push((shard.leave(end), -1));
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
        }
        let location = trace.definitions.master(process);
        for (quantity, changes) in [Quantity::SendRequests, Quantity::ReceiveRequests].into_iter().zip(changes) {
            levels.extend(follow(quantity, location, changes, span, bins));
        }
    }
    levels
}
