//! Calls that ask whether something has come: Extrae records the one that finds something, and of those before it only when
//! the first one began, how many they were, and how long they took.
//!
//! ```text
//!  50000304 0 ......... nothing else ......... 50000305 ticks  50000304 calls  50000003 39 ... 0
//!  first test                                  the test that finds something
//! ```
//!
//! A thread that does little else meanwhile waits. Then they are one call, from the begin of the first one on, by the name
//! that whywait's recorder gives it.

/// Types of events: numbers of calls that found nothing, each followed by that of their time.
const FIRST: u32 = 50_000_300;
const LAST: u32 = 50_000_307;
/// Calls that have one pair of these types: `MPI_Iprobe`, `MPI_Request_get_status`, those that test, and `MPI_Improbe`.
const CALLS: [&[i64]; 4] = [&[62], &[153], &[39, 125, 126, 128], &[191]];
/// Who does something else for longer than one second divided by this between two calls does not wait ...
const BETWEEN: i64 = 10_000;
/// ... unless that is less than one part in so many of the time.
const NEGLIGIBLE: i64 = 10;

pub(crate) const fn is_counter(kind: u32) -> bool {
    kind >= FIRST && kind <= LAST
}

/// Calls that found nothing, before one that does.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(crate) struct Run {
    /// When the first one began.
    pub(crate) begin: i64,
    pub(crate) count: i64,
    /// How long they took.
    inside: i64,
}

impl Run {
    /// Whether a thread that finds something at a time did little else before; `second` is the number of ticks of one.
    pub(crate) fn waits(&self, until: i64, second: i64) -> bool {
        let all = until - self.begin;
        let others = all.saturating_sub(self.inside);
        self.inside >= 0 && (others <= (second / BETWEEN).saturating_mul(self.count) || others < all / NEGLIGIBLE)
    }
}

/// The runs of a thread, one for each pair of types.
#[derive(Debug, Default)]
pub(crate) struct Polls {
    runs: [Option<Run>; CALLS.len()],
}

impl Polls {
    /// Notes the value of a counter.
    pub(crate) fn note(&mut self, time: i64, kind: u32, value: i64) {
        let run = &mut self.runs[((kind - FIRST) / 2) as usize];
        match run {
            _ if (kind - FIRST).is_multiple_of(2) && value == 0 => *run = Some(Run { begin: time, ..Run::default() }),
            Some(run) if (kind - FIRST).is_multiple_of(2) => run.count = value,
            Some(run) => run.inside = value,
            None => {}
        }
    }

    /// Ends the run before a call that finds something.
    pub(crate) fn end(&mut self, call: i64) -> Option<Run> {
        let at = CALLS.iter().position(|calls| calls.contains(&call))?;
        self.runs[at].take_if(|run| run.count > 0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn who_does_little_else_waits() {
        let mut polls = Polls::default();
        // The first events are those of a run that began before the trace.
        for (time, kind, value) in [(5, 304, 7), (10, 304, 0), (50, 305, 30), (50, 304, 2)] {
            polls.note(time, 50_000_000 + kind, value);
        }
        assert_eq!((polls.end(62), polls.end(1)), (None, None));
        let run = polls.end(39).unwrap();
        assert_eq!((run, polls.end(39)), (Run { begin: 10, count: 2, inside: 30 }, None));
        for (second, waits) in [(50_000, true), (40_000, false)] {
            assert_eq!(run.waits(50, second), waits);
        }
        assert!(Run { inside: 37, ..run }.waits(50, 0));
        assert!(!Run { inside: -1, ..run }.waits(50, 1 << 40));
    }
}
