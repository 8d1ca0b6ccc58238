//! Samples of counters: booked at once, or kept if the counter covers several locations.

use whywait_otf2::records::TypedValue;

use super::Decoder;
use crate::diagnostics::DiagnosticKind;
use crate::trace::counter_book::Ran;
use crate::trace::counters::{Fault, Position};

impl Decoder<'_> {
    #[inline(always)]
    pub(super) fn sample(&mut self, time: i64, metric: u32, values: &[TypedValue]) {
        let position = self.position();
        if !self.book.take(metric, values, (time, position), &self.shard.events) {
            self.sample_slowly(time, metric, values);
        }
    }

    /// Where the events stand.
    #[inline(always)]
    fn position(&self) -> Position {
        let (callpath, depth) = (self.state.top.callpath, self.state.outer.len() as u32);
        Position { events: self.shard.events.len() as u32, callpath, depth }
    }

    // Takes no position as an argument: it would go through memory, and reading it back stalls every record.
    #[inline(never)]
    fn sample_slowly(&mut self, time: i64, metric: u32, values: &[TypedValue]) {
        let position = self.position();
        let ran = Ran { events: &self.shard.events, tree: &self.shard.tree };
        let samples = &mut self.shard.samples;
        let kind = match self.book.record(self.state.index, (metric, values), (time, position), ran, samples) {
            Ok(()) => return,
            Err(Fault::Unknown) => DiagnosticKind::Metric,
            Err(Fault::NotANumber) => DiagnosticKind::MetricNotANumber,
            Err(Fault::Reset) => DiagnosticKind::MetricReset,
            Err(Fault::Missing) => DiagnosticKind::MetricMissing,
        };
        self.note(kind, time);
    }
}
