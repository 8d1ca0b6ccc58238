//! When each location waits.

use std::ops::Range;

use rustc_hash::FxHashMap;

use crate::analysis::Analysis;
use crate::ids::LocationId;
use crate::schema::Pattern;
use crate::trace::Shard;
use crate::waits::interval;

/// When each location waits, in order and without overlaps.
pub(super) type Waits = FxHashMap<LocationId, Vec<Range<i64>>>;

/// The waits of a shard's locations.
pub(super) fn waits(analysis: &Analysis, shard: &Shard) -> Waits {
    let mut waits = Waits::default();
    let (_, all) = analysis.waits.of(analysis.trace.position(shard.location(0)));
    interval::each_stretch(&analysis.trace, all, |number, time| {
        let wait = &all[number];
        if Pattern::class_of(wait.kind).is_some() {
            waits.entry(wait.location).or_default().push(time);
        }
    });
    #[expect(clippy::iter_over_hash_type, reason = "each is put in order for itself")]
    for of_location in waits.values_mut() {
        of_location.sort_by_key(|wait| wait.start);
        let mut last = i64::MIN;
        for wait in of_location.iter_mut() {
            wait.start = wait.start.max(last);
            last = last.max(wait.end);
        }
        of_location.retain(|wait| !wait.is_empty());
    }
    waits
}

/// The length of the waits in a stretch of time, ticks.
pub(super) fn waited(waits: &[Range<i64>], time: &Range<i64>) -> i64 {
    let first = waits.partition_point(|wait| wait.end <= time.start);
    let inside = waits[first..].iter().take_while(|wait| wait.start < time.end);
    inside.map(|wait| wait.end.min(time.end) - wait.start.max(time.start)).sum()
}
