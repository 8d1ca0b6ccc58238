//! Requests of receives that are cut.
//!
//! One record starts a request, another one completes it with its message. Only the latter tells which message it is,
//! so the records of a location are read once before they are written.

use rustc_hash::{FxHashMap, FxHashSet};
use whywait_otf2::{Attributes, Event, EventSink};

use crate::trace::decode::Decoder;

/// Finds the records that start a request whose receive vanishes.
pub(super) struct Requests<'a> {
    decoder: Decoder<'a>,
    /// For each receive, whether it vanishes.
    gone: &'a [bool],
    /// Number of records that have started a request so far, and for each request the number of its record.
    started: u32,
    open: FxHashMap<u64, u32>,
    found: FxHashSet<u32>,
}

impl<'a> Requests<'a> {
    /// Begins a location; `gone` tells which of its receives vanish.
    pub(super) fn new(decoder: Decoder<'a>, gone: &'a [bool]) -> Self {
        Self { decoder, gone, started: 0, open: FxHashMap::default(), found: FxHashSet::default() }
    }

    /// The numbers of the records, among those that start the request of a receive.
    pub(super) fn found(self) -> FxHashSet<u32> {
        self.found
    }
}

/// The request of a receive that a record starts.
pub(super) fn started(record: &Event<'_>) -> Option<u64> {
    match record {
        Event::MpiIrecvRequest { request_id } | Event::MpiImrecvRequest { request_id, .. } => Some(*request_id),
        _ => None,
    }
}

impl EventSink for Requests<'_> {
    fn enter(&mut self, time: i64, region: u32) {
        self.decoder.enter(time, region);
    }

    fn leave(&mut self, time: i64, region: u32) {
        self.decoder.leave(time, region);
    }

    fn record(&mut self, time: i64, record: &Event<'_>, attributes: &Attributes<'_>) {
        let (_, before) = self.decoder.messages();
        self.decoder.record(time, record, attributes);
        if let Some(request) = started(record) {
            self.open.insert(request, self.started);
            self.started += 1;
        }
        if let Event::MpiIrecv { request_id, .. } | Event::MpiImrecv { request_id, .. } = record
            && let Some(number) = self.open.remove(request_id)
            && self.decoder.messages().1 > before
            && self.gone.get(before) == Some(&true)
        {
            self.found.insert(number);
        }
    }
}
