//! Requests that one thread of a process begins and another one completes, and messages in partitions, which others make ready.

use std::collections::BTreeMap;

use rustc_hash::FxHashMap;
use whywait_otf2::{Attributes, Definitions};

use crate::diagnostics::{DiagnosticKind, Diagnostics};
use crate::ids::{InstanceId, LocationId};
use crate::trace::columns::Partitions;
use crate::trace::{NONE, Shard};

/// What a request is of.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum StrayKind {
    /// A send.
    Send,
    /// A receive.
    Receive,
}

/// A request of which one thread has only the begin, or only the end.
#[derive(Clone, Copy, Debug)]
pub(super) struct Stray {
    /// The request: its kind and id.
    pub(super) request: (StrayKind, u64),
    /// Time of the record, ticks.
    pub(super) time: i64,
    /// The thread.
    pub(super) location: LocationId,
    /// The call.
    pub(super) instance: InstanceId,
    /// Row of the message: of the send that begins, or of the receive that ends.
    pub(super) row: u32,
    /// Row of the open request, for a receive that begins.
    pub(super) open: u32,
}

/// Requests of a process that its threads have not completed themselves, and completions of requests that are not
/// theirs.
#[derive(Default)]
pub(super) struct Strays {
    pub(super) begun: Vec<Stray>,
    pub(super) ended: Vec<Stray>,
}

impl Strays {
    /// Passes begins and ends of the same request to `join`; what is left has only one of them.
    ///
    /// Ids are used again, so an end belongs to the latest begin before it.
    pub(super) fn join(&mut self, mut join: impl FnMut(&Stray, &Stray)) {
        if self.begun.is_empty() || self.ended.is_empty() {
            return;
        }
        let mut begun: BTreeMap<(StrayKind, u64), Vec<Stray>> = BTreeMap::new();
        self.begun.sort_by_key(|stray| stray.time);
        for stray in self.begun.drain(..) {
            begun.entry(stray.request).or_default().push(stray);
        }
        self.ended.sort_by_key(|stray| stray.time);
        self.ended.retain(|end| {
            let Some(of_request) = begun.get_mut(&end.request) else { return true };
            let before = of_request.partition_point(|begin| begin.time <= end.time);
            if before == 0 {
                return true;
            }
            join(&of_request.remove(before - 1), end);
            false
        });
        self.begun.extend(begun.into_values().flatten());
    }
}

/// The messages in partitions of a process. What one thread has begun, others make ready, so both are joined at the end.
pub(super) struct Partitioned {
    /// Ids of the attributes that say how many partitions a message has, and which ones a call is about: the first and the
    /// last.
    attributes: Option<[u32; 3]>,
    /// By request and the call that begins it.
    begun: FxHashMap<(u64, InstanceId), Begun>,
    touched: Vec<Touched>,
}

/// A message in partitions.
#[derive(Clone, Copy)]
pub(super) struct Begun {
    /// Time of the record, ticks.
    pub(super) time: i64,
    /// Number of its partitions.
    pub(super) count: u32,
    /// Whether it is a send.
    pub(super) sends: bool,
    /// Row of the message; of a receive once it is complete.
    pub(super) row: u32,
}

/// Partitions that a call makes ready, or has found.
#[derive(Clone, Copy)]
pub(super) struct Touched {
    /// The request.
    pub(super) request: u64,
    /// Time of the record, ticks.
    pub(super) time: i64,
    /// The thread.
    pub(super) location: LocationId,
    /// The call.
    pub(super) instance: InstanceId,
    /// The first and the last one.
    pub(super) range: (u32, u32),
}

impl Partitioned {
    /// Knows how messages in partitions are recorded.
    pub(super) fn new(definitions: &Definitions) -> Self {
        let id = |name| {
            let found = definitions.attributes.iter().find(|attribute| definitions.string(attribute.name) == name);
            found.map(|attribute| attribute.id)
        };
        let attributes = id("partitions").zip(id("first partition")).zip(id("last partition"));
        let attributes = attributes.map(|((count, first), last)| [count, first, last]);
        Self { attributes, begun: FxHashMap::default(), touched: Vec::new() }
    }

    /// How many partitions the message has that a record begins; none if it is an ordinary one.
    #[inline]
    pub(super) fn count(&self, attributes: &Attributes<'_>) -> Option<u32> {
        self.value(0, attributes)
    }

    /// The first and the last partition that a record is about.
    #[inline]
    pub(super) fn range(&self, attributes: &Attributes<'_>) -> Option<(u32, u32)> {
        self.value(1, attributes).zip(self.value(2, attributes))
    }

    #[inline]
    fn value(&self, i: usize, attributes: &Attributes<'_>) -> Option<u32> {
        let id = self.attributes?[i];
        let found = attributes.into_iter().find(|named| named.id == id)?;
        found.value.bits.try_into().ok()
    }

    /// A call begins a message.
    pub(super) fn begin(&mut self, request: u64, instance: InstanceId, message: Begun) {
        self.begun.insert((request, instance), message);
    }

    /// A call makes partitions ready, or has found them.
    pub(super) fn touch(&mut self, touched: Touched) {
        self.touched.push(touched);
    }

    /// A receive is complete.
    pub(super) fn received(&mut self, request: u64, posted: InstanceId, row: u32) {
        if let Some(message) = self.begun.get_mut(&(request, posted)) {
            message.row = row;
        }
    }

    /// Joins the messages of a process with the calls that its threads made for them: of the messages with a request, the
    /// latest that has begun.
    pub(super) fn settle(&mut self, shard: &mut Shard, diagnostics: &mut Diagnostics) {
        let mut begun: Vec<((u64, InstanceId), Begun)> = self.begun.drain().collect();
        begun.sort_unstable_by_key(|&((request, instance), message)| (request, message.time, instance));
        let mut touched = std::mem::take(&mut self.touched);
        touched.sort_by_key(|touched| (touched.request, touched.time));
        let from = [shard.ready.len(), shard.arrived.len()];
        for Touched { request, time, location, instance, range: (first, last) } in touched {
            let behind = begun.partition_point(|&((begun, _), message)| (begun, message.time) <= (request, time));
            match begun[..behind].last() {
                Some(&((begun, _), Begun { count, sends, row, .. })) if begun == request => {
                    let to = if sends { &mut shard.ready } else { &mut shard.arrived };
                    if row != NONE {
                        to.push(Partitions { row, instance, first, last, count });
                    }
                }
                _ => diagnostics.add(DiagnosticKind::UnknownRequest, location, time),
            }
        }
        let Shard { ready, arrived, events, instances, .. } = shard;
        let enter = |instance| events.time[instances.enter[instance] as usize];
        let order = |partitions: &Partitions| (partitions.row, enter(partitions.instance));
        ready[from[0]..].sort_by_key(order);
        arrived[from[1]..].sort_by_key(order);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_end_belongs_to_the_latest_begin_before_it() {
        let stray = |id, time| Stray {
            request: (StrayKind::Send, id),
            time,
            location: LocationId::new(0),
            instance: InstanceId::NONE,
            row: 0,
            open: 0,
        };
        let begun = vec![stray(1, 5), stray(1, 1), stray(2, 9)];
        let ended = vec![stray(1, 6), stray(1, 7), stray(1, 8), stray(2, 3)];
        let mut strays = Strays { begun, ended };
        let mut joined = Vec::new();
        strays.join(|begin, end| joined.push((begin.time, end.time)));
        assert_eq!(joined, [(5, 6), (1, 7)]);
        let times = |strays: &[Stray]| strays.iter().map(|stray| stray.time).collect::<Vec<_>>();
        assert_eq!((times(&strays.begun), times(&strays.ended)), (vec![9], vec![3, 8]));
    }
}
