//! Events that versions of Extrae number otherwise, as those that the rest of this crate knows.
//!
//! | recorded | as |
//! |---|---|
//! | 60002: a fork | 60000001 |
//! | 60002: the inside of a parallel region, on each thread | nothing: 60011 says the same |
//! | 60003: worksharing | 60000002; without requests for the next chunk |
//! | 60004: barrier, join | 60000005, 60000016; critical sections are locks as well, and others say nothing of who waits |
//! | 60005, 60006: a lock and its address | 60000006, 60000032 |
//! | 60011: the body of a parallel region | 60000018 |
//! | 61000001 to 61000013: calls of POSIX threads, with addresses | 61000000, 60000032 |
//!
//! What a value means is told by its label, and without one by its number.

use crate::labels::Labels;
use crate::openmp::{ASKS, BARRIER, GIVES, HAS, JOIN, LOCK, LOCK_ADDRESS, OUTLINED, PARALLEL, WORKSHARING};
use crate::pthreads::{self, EXIT};

const NEW_PARALLEL: u32 = 60_002;
const NEW_WORKSHARING: u32 = 60_003;
const SYNCHRONIZATION: u32 = 60_004;
const NEW_LOCK: u32 = 60_005;
const NEW_LOCK_ADDRESS: u32 = 60_006;
/// The body of a parallel region.
pub(crate) const NEW_OUTLINED: u32 = 60_011;

/// Values without labels.
const NEXT_CHUNK: i64 = 9;
const JOINS: std::ops::RangeInclusive<i64> = 27..=28;
const OTHER_SYNCHRONIZATION: std::ops::RangeInclusive<i64> = 29..=36;
const OBTAINING: i64 = 37;
const TAKEN: i64 = 38;
const RELEASING: i64 = 39;

/// Reads the events of a thread, in order.
#[derive(Debug)]
pub(crate) struct Versions<'a> {
    labels: &'a Labels,
    /// Whether one type of events says which call of POSIX threads it is, whatever others say.
    has_pthread_calls: bool,
    /// Whether each open region of a type is shown.
    parallel: Vec<bool>,
    worksharing: Vec<bool>,
    /// What the open synchronization is shown as.
    synchronization: Option<u32>,
}

/// A type and a value.
type Event = (u32, i64);

impl<'a> Versions<'a> {
    /// For a thread with events of such types.
    pub(crate) fn new(labels: &'a Labels, mut kinds: impl Iterator<Item = u32>) -> Self {
        let has_pthread_calls = kinds.any(|kind| kind == pthreads::CALLS);
        Self {
            labels,
            has_pthread_calls,
            parallel: Vec::new(),
            worksharing: Vec::new(),
            synchronization: Some(BARRIER),
        }
    }

    /// What an event stands for, and what it says of it: the address of a lock.
    #[inline]
    pub(crate) fn events(&mut self, kind: u32, value: i64) -> [Option<Event>; 2] {
        match kind {
            NEW_PARALLEL..=NEW_OUTLINED => [self.openmp(kind, value), None],
            pthreads::CALLS => [(value != EXIT).then_some((kind, value)), None],
            _ if pthreads::is_pthread(kind) => self.pthread(kind, value),
            _ => [Some((kind, value)), None],
        }
    }

    fn openmp(&mut self, kind: u32, value: i64) -> Option<Event> {
        let label = self.labels.of_value(kind, value);
        match kind {
            NEW_PARALLEL => {
                let forks = label.map_or(value % 2 != 0, |label| label.contains("Fork"));
                nested(&mut self.parallel, value, forks).then_some((PARALLEL, value))
            }
            NEW_WORKSHARING => {
                let is_chunk = label.map_or(value == NEXT_CHUNK, |label| label.starts_with("NEXT CHUNK"));
                nested(&mut self.worksharing, value, !is_chunk).then_some((WORKSHARING, value))
            }
            SYNCHRONIZATION => {
                if value != 0 {
                    self.synchronization = match label {
                        Some(label) if label.starts_with("BARRIER") => Some(BARRIER),
                        Some(label) if label.starts_with("JOIN") => Some(JOIN),
                        None if JOINS.contains(&value) => Some(JOIN),
                        None if !OTHER_SYNCHRONIZATION.contains(&value) => Some(BARRIER),
                        _ => None,
                    };
                }
                self.synchronization.map(|kind| (kind, value))
            }
            NEW_LOCK => {
                let value = match label {
                    Some(label) if label.ends_with("Obtaining") => ASKS,
                    Some(label) if label.ends_with("Taken") => HAS,
                    Some(label) if label.ends_with("Releasing") => GIVES,
                    _ => match value {
                        OBTAINING => ASKS,
                        TAKEN => HAS,
                        RELEASING => GIVES,
                        value => value,
                    },
                };
                Some((LOCK, value))
            }
            NEW_LOCK_ADDRESS => Some((LOCK_ADDRESS, value)),
            NEW_OUTLINED => Some((OUTLINED, value)),
            _ => None,
        }
    }

    fn pthread(&self, kind: u32, value: i64) -> [Option<Event>; 2] {
        let Some(number) = pthreads::number(kind, self.labels.of_type(kind)) else {
            return [Some((kind, value)), None];
        };
        let is_known = self.has_pthread_calls || number == EXIT;
        let call = (!is_known).then_some((pthreads::CALLS, if value == 0 { 0 } else { number }));
        [call, pthreads::is_for_lock(number).then_some((LOCK_ADDRESS, value))]
    }
}

/// Whether an event of nested regions is shown: the begin of one that is, or its end.
fn nested(open: &mut Vec<bool>, value: i64, is_shown: bool) -> bool {
    if value == 0 {
        return open.pop().unwrap_or(true);
    }
    open.push(is_shown);
    is_shown
}

#[cfg(test)]
mod tests {
    use super::*;

    fn all(labels: &Labels, events: &[Event]) -> Vec<Event> {
        let mut versions = Versions::new(labels, events.iter().map(|event| event.0));
        events.iter().flat_map(|(kind, value)| versions.events(*kind, *value)).flatten().collect()
    }

    #[test]
    fn newer_numbers_of_openmp_are_those_of_older_ones() {
        let labels = Labels::default();
        let events = [
            (60_002, 3),
            (60_002, 4),
            (60_011, 77),
            (60_003, 11),
            (60_003, 9),
            (60_003, 0),
            (60_003, 0),
            (60_004, 30),
            (60_005, 37),
            (60_005, 38),
            (60_006, 16),
            (60_004, 0),
            (60_005, 39),
            (60_005, 0),
            (60_004, 26),
            (60_004, 0),
            (60_004, 28),
            (60_004, 0),
            (60_011, 0),
            (60_002, 0),
            (60_002, 0),
            (42, 7),
        ];
        let expected = [
            (PARALLEL, 3),
            (OUTLINED, 77),
            (WORKSHARING, 11),
            (WORKSHARING, 0),
            (LOCK, ASKS),
            (LOCK, HAS),
            (LOCK_ADDRESS, 16),
            (LOCK, GIVES),
            (LOCK, 0),
            (BARRIER, 26),
            (BARRIER, 0),
            (JOIN, 28),
            (JOIN, 0),
            (OUTLINED, 0),
            (PARALLEL, 0),
            (42, 7),
        ];
        assert_eq!(all(&labels, &events), expected);
    }

    #[test]
    fn labels_decide() {
        let labels = Labels::read(
            "EVENT_TYPE\n0 60002 OpenMP Parallel\nVALUES\n1 PARALLEL REGION\n2 PARALLEL REGION Fork/Join\n\n\
             EVENT_TYPE\n0 60004 OpenMP Synchronization\nVALUES\n26 TASKWAIT\n30 BARRIER\n\n\
             EVENT_TYPE\n0 60005 OpenMP Lock Status\nVALUES\n1 LOCK: Obtaining\n2 LOCK: Taken\n\n\
             EVENT_TYPE\n0 61000003 pthread_mutex_lock\n",
        );
        let events = [
            (60_002, 2),
            (60_002, 1),
            (60_004, 26),
            (60_004, 0),
            (60_004, 30),
            (60_005, 1),
            (60_005, 2),
            (61_000_003, 16),
            (61_000_003, 0),
        ];
        let expected = [
            (PARALLEL, 2),
            (BARRIER, 30),
            (LOCK, ASKS),
            (LOCK, HAS),
            (pthreads::CALLS, 8),
            (LOCK_ADDRESS, 16),
            (pthreads::CALLS, 0),
            (LOCK_ADDRESS, 0),
        ];
        assert_eq!(all(&labels, &events), expected);
    }

    #[test]
    fn calls_of_posix_threads_are_of_one_type() {
        let labels = Labels::default();
        let older = [(61_000_008, 16), (61_000_008, 0), (61_000_001, 1), (60_000_020, 5)];
        let calls =
            [(pthreads::CALLS, 8), (LOCK_ADDRESS, 16), (pthreads::CALLS, 0), (LOCK_ADDRESS, 0), (60_000_020, 5)];
        assert_eq!(all(&labels, &older), calls);
        let both = [(pthreads::CALLS, 8), (61_000_008, 16), (pthreads::CALLS, 1)];
        assert_eq!(all(&labels, &both), [(pthreads::CALLS, 8), (LOCK_ADDRESS, 16)]);
    }
}
