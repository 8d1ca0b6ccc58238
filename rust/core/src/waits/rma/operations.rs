//! The calls and locations of operations.

use crate::ids::{InstanceId, LocationId};
use crate::trace::Shard;

/// The candidate with the latest time, with the lowest process on a tie.
pub(super) fn last_of<T: Copy, P: Ord>(
    candidates: impl IntoIterator<Item = T>,
    key: impl Fn(&T) -> (i64, P),
) -> Option<T> {
    candidates.into_iter().reduce(|last, candidate| {
        let ((time, process), (last_time, last_process)) = (key(&candidate), key(&last));
        if time > last_time || (time == last_time && process < last_process) { candidate } else { last }
    })
}

/// A set of region instances of a shard, as bits.
#[derive(Debug, Default)]
pub(super) struct InstanceSet(Vec<u64>);

impl InstanceSet {
    pub(super) fn new(shard: &Shard, instances: impl Iterator<Item = InstanceId>) -> Self {
        let mut bits = vec![0; shard.instances.enter.len().div_ceil(64)];
        // "No instance" is in no set.
        for instance in instances.filter(|&instance| instance.is_some()) {
            bits[instance.index() / 64] |= 1 << (instance.number() % 64);
        }
        Self(bits)
    }

    pub(super) fn contains(&self, instance: InstanceId) -> bool {
        self.0.get(instance.index() / 64).is_some_and(|bits| bits >> (instance.number() % 64) & 1 != 0)
    }
}

/// Location of an operation's origin.
pub(super) fn origin_of(shard: &Shard, row: u32) -> LocationId {
    shard.location_of(&shard.operations, row)
}
