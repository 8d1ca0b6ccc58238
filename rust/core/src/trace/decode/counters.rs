//! Samples of counters: booked at once, or kept if the counter covers several locations.

use whywait_otf2::records::TypedValue;

use super::decoder::Decoder;
use crate::diagnostics::DiagnosticKind;
use crate::trace::counters::book::LocationHistory;
use crate::trace::counters::{Fault, Position};

impl Decoder<'_> {
    #[inline(always)]
    pub(super) fn sample(&mut self, time: i64, metric: u32, values: &[TypedValue]) {
        let position = self.position();
        if !self.book.book_fast(metric, values, (time, position), &self.shard.events) {
            self.sample_on_slow_path(time, metric, values);
        }
    }

    /// Position among the events of the shard.
    #[inline(always)]
    fn position(&self) -> Position {
        let (callpath, depth) = (self.state.top.callpath, self.state.outer.len() as u32);
        Position { events: self.shard.events.len() as u32, callpath, depth }
    }

    // Takes no position as an argument: it would go through memory, and reading it back stalls every record.
    #[inline(never)]
    fn sample_on_slow_path(&mut self, time: i64, metric: u32, values: &[TypedValue]) {
        let position = self.position();
        let history = LocationHistory { events: &self.shard.events, tree: &self.shard.tree };
        let samples = &mut self.shard.samples;
        let kind = match self.book.book_record(self.state.index, (metric, values), (time, position), history, samples) {
            Ok(()) => return,
            Err(Fault::Unknown) => DiagnosticKind::Metric,
            Err(Fault::NotANumber) => DiagnosticKind::MetricNotANumber,
            Err(Fault::Reset) => DiagnosticKind::MetricReset,
            Err(Fault::Missing) => DiagnosticKind::MetricMissing,
        };
        self.note(kind, time);
    }
}
