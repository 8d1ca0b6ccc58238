//! Collects details of calls on the way to the decoder.

use whywait_otf2::records::TypedValue;
use whywait_otf2::{Attributes, Event, EventSink};

use super::decoder::Decoder;
use crate::trace::call_details::{Call, CallDetail, DetailIds};

/// Collects the details of a location, and passes its events on to the decoder.
pub(in crate::trace) struct DetailCollector<'a, 'b> {
    ids: &'a DetailIds,
    decoder: &'a mut Decoder<'b>,
    /// Details of the next call: attributes precede its Enter.
    next: CallDetail,
    /// Region, Enter and details of each open call.
    open: Vec<(u32, i64, CallDetail)>,
    found: Vec<(Call, CallDetail)>,
}

impl<'a, 'b> DetailCollector<'a, 'b> {
    pub(in crate::trace) fn new(ids: &'a DetailIds, decoder: &'a mut Decoder<'b>) -> Self {
        Self { ids, decoder, next: CallDetail::default(), open: Vec::new(), found: Vec::new() }
    }

    /// What was found.
    pub(in crate::trace) fn finish(self) -> Vec<(Call, CallDetail)> {
        self.found
    }
}

impl EventSink for DetailCollector<'_, '_> {
    fn enter(&mut self, time: i64, region: u32) {
        self.decoder.enter(time, region);
        self.open.push((region, time, std::mem::take(&mut self.next)));
    }

    fn leave(&mut self, time: i64, region: u32) {
        self.decoder.leave(time, region);
        self.next = CallDetail::default();
        // Kernels of a stream may cross each other.
        let open = self.open.iter().rposition(|&(open, ..)| open == region);
        if let Some((_, enter, detail)) = open.map(|open| self.open.remove(open))
            && detail != CallDetail::default()
        {
            self.found.push(((enter, time), detail));
        }
    }

    fn attributed(&mut self, attributes: &Attributes<'_>) {
        self.decoder.attributed(attributes);
        let value = |ids: &[u32]| {
            let named = attributes.into_iter().find(|named| ids.contains(&named.id));
            named.map(|named| named.value.bits)
        };
        let DetailIds { sites: _, streams, events, kernels, correlations, launch_paths } = self.ids;
        let [stream, event, kernel, correlation] = [streams, events, kernels, correlations].map(|ids| value(ids));
        self.next = CallDetail { site: None, stream, event, kernel, correlation };
        if let Some(context) = value(launch_paths) {
            self.decoder.launch_from(context as u32);
        }
    }

    fn record(&mut self, time: i64, record: &Event<'_>, attributes: &Attributes<'_>) {
        self.decoder.record(time, record, attributes);
        if let Event::ParameterUnsignedInt { parameter, value } = *record
            && self.ids.sites.contains(&parameter)
            && let Some((.., detail)) = self.open.last_mut()
        {
            detail.site = Some(value);
        }
    }

    fn metric(&mut self, time: i64, metric: u32, values: &[TypedValue]) {
        self.decoder.metric(time, metric, values);
    }

    fn end_chunk(&mut self) {
        self.decoder.end_chunk();
    }
}
