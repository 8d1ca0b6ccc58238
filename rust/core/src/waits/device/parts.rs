//! Kernels that communicate: their waits for other devices, and what of them is exposed.
//!
//! ```text
//!  compute  [ head ][ body                  ][ . . . . . . ][ adam ]
//!  comm            [ a: waits   | transfer ] [ b: waits |T ]
//!                     hidden                    exposed
//! ```
//!
//! A kernel [b, e] waits until `t = max b` of those that it needs, at most until e. Of this, only the time is *exposed* in
//! which no kernel of its device runs that does not communicate, on any stream of any process; the rest costs nothing.
//!
//! *Source*: specification.md#device-collectives.

use std::cmp::Reverse;
use std::collections::BTreeMap;
use std::ops::Range;

use rustc_hash::FxHashMap;

use super::activity::Kernel;
use crate::waits::WaitState;
use crate::waits::device_part::DevicePart;
use crate::waits::interval::{overlap, union};

/// When each device computes: the union of its kernels that do not communicate, of all processes that share it.
pub(super) struct Computing(BTreeMap<u32, Vec<Range<i64>>>);

impl Computing {
    /// Collects kernels with the number of their device.
    pub(super) fn new(kernels: impl Iterator<Item = (u32, Range<i64>)>) -> Self {
        let mut of_devices: BTreeMap<u32, Vec<Range<i64>>> = BTreeMap::new();
        for (device, span) in kernels {
            of_devices.entry(device).or_default().push(span);
        }
        Self(of_devices.into_iter().map(|(device, spans)| (device, union(spans))).collect())
    }

    /// For how long a device computes in a stretch of time, ticks.
    fn within(&self, device: u32, time: &Range<i64>) -> i64 {
        let spans = self.0.get(&device).map_or(&[][..], Vec::as_slice);
        let first = spans.partition_point(|span| span.end <= time.start);
        spans[first..].iter().take_while(|span| span.start < time.end).map(|span| overlap(time, span.clone())).sum()
    }
}

/// Of the parts of each kernel the longest wait, with what of it is exposed; ordered as the kernels. A kernel with several
/// parts is like a call that completes several requests.
pub(super) fn of_kernels(kernels: &[Kernel], mut parts: Vec<DevicePart>, computing: &Computing) -> Vec<DevicePart> {
    parts.sort_by_key(|part| (part.kernel, Reverse(part.waiting), Reverse(part.tie)));
    parts.dedup_by_key(|part| part.kernel);
    let device: FxHashMap<_, _> =
        kernels.iter().map(|kernel| ((kernel.run.location, kernel.run.instance), kernel)).collect();
    parts.retain_mut(|part| {
        let Some(kernel) = device.get(&part.kernel) else { return false };
        let begin = kernel.run.enter;
        part.exposed = part.waiting - computing.within(kernel.device, &(begin..begin + part.waiting));
        true
    });
    parts
}

/// The wait states of kernels.
pub(super) fn waits(parts: &[DevicePart]) -> impl Iterator<Item = WaitState> {
    let exposed = parts.iter().filter(|part| part.exposed > 0);
    exposed.map(|part| WaitState::new(part.kind, part.kernel, part.exposed, part.cause))
}
