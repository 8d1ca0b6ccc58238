//! Requests that one thread of a process begins and another one completes.

use std::collections::BTreeMap;

use crate::ids::{InstanceId, LocationId};

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
