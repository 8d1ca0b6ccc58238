//! Look-up of a shard's wait states by call, mostly in order.

use crate::galloping_search::partition_point_near;
use crate::ids::InstanceId;
use crate::severity::Metric;
use crate::trace::{NONE, Shard};
use crate::waits::WaitState;

/// The wait states of a shard, by call.
pub(super) struct States<'a> {
    shard: &'a Shard,
    /// In the order of the calls.
    waits: &'a [WaitState],
    /// Position of the first among all.
    first: usize,
    /// The first at or behind the call that was asked for last.
    next: usize,
}

impl<'a> States<'a> {
    pub(super) fn new(shard: &'a Shard, waits: &'a [WaitState], first: usize) -> Self {
        Self { shard, waits, first, next: 0 }
    }

    /// The wait state of a kind at a call, as position among all.
    pub(super) fn find(&mut self, kind: Metric, instance: InstanceId) -> u32 {
        let enter = |instance: InstanceId| self.shard.instances.enter[instance];
        let wanted = enter(instance);
        // Most queries are for the next one.
        self.next = partition_point_near(self.waits, self.next, |wait| enter(wait.instance) < wanted);
        let of_call = self.waits[self.next..].iter().take_while(|wait| wait.instance == instance);
        let found = of_call.zip(self.first + self.next..).find(|(wait, _)| wait.kind == kind);
        found.map_or(NONE, |(_, position)| position as u32)
    }
}
