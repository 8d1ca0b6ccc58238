//! Samples of counters: booked at once, or kept if the counter is of several locations.

use whywait_otf2::records::MetricValues;

use super::Decoder;
use crate::diagnostics::DiagnosticKind;
use crate::ids::CallPathId;
use crate::trace::counter_book::{Fault, Position};

impl Decoder<'_> {
    pub(super) fn sample(&mut self, time: i64, metric: u32, values: MetricValues<'_>) {
        let state = &self.state;
        let counters = &self.index.counters;
        if !counters.is_of_recorder(&self.index.locations, metric, state.index) {
            let at = (time, state.index);
            let kept = self.book.keep(counters, (metric, values), at, &mut self.shard.samples);
            return self.note_fault(kept, time);
        }
        let events = &self.shard.events;
        let (callpath, depth) = (state.top.callpath, state.outer.len() as u32);
        let position = Position { events: events.len() as u32, callpath, depth };
        let parent = |callpath: CallPathId| self.shard.tree.nodes()[callpath].parent;
        let booked = self.book.sample(counters, (metric, values), (time, position), events, parent);
        self.note_fault(booked, time);
    }

    fn note_fault(&mut self, result: Result<(), Fault>, time: i64) {
        let kind = match result {
            Ok(()) => return,
            Err(Fault::Unknown) => DiagnosticKind::Metric,
            Err(Fault::NotANumber) => DiagnosticKind::MetricNotANumber,
            Err(Fault::Reset) => DiagnosticKind::MetricReset,
        };
        self.note(kind, time);
    }
}
