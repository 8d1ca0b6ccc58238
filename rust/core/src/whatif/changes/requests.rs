//! Requests that are cut.
//!
//! One record starts the request of a receive, another completes it with its message. Only the latter tells which
//! message it is, so the records of a location are read once before they are written. This also finds the calls that
//! vanish since they do nothing but test requests that are cut.

use std::ops::RangeInclusive;

use rustc_hash::{FxHashMap, FxHashSet};
use whywait_otf2::{Attributes, Event, EventSink, ReadSummary};

use super::cut::{Cut, Gone};
use super::side::{Side, side};
use crate::Result;
use crate::ids::{Ids, LocationId};
use crate::parallel::iter::prelude::*;
use crate::trace::decode::{Decoder, times_of_streams};
use crate::trace::{CallPath, RegionClass, Reread, Shard, Trace};

/// The calls of this process's locations that do nothing but test requests that vanish, as ranges of events.
pub(in crate::whatif) fn idle_tests(
    again: Reread<'_>,
    cut: &Cut,
) -> Result<Vec<(LocationId, Vec<RangeInclusive<u32>>)>> {
    if !asks_in_vain(again.trace) {
        return Ok(Vec::new());
    }
    let find = |location: LocationId| {
        let gone = Gone::new(cut, again.trace, location);
        let mut requests = Requests::new(counter(again.trace, location), gone);
        if !gone.is_empty() {
            complete_records(again.location(location, &mut requests))?;
        }
        Ok((location, requests.idle_tests()))
    };
    again.trace.own_locations().into_par_iter().map(LocationId::at).map(find).collect()
}

/// Whether calls of this process may test requests that they do not complete.
fn asks_in_vain(trace: &Trace) -> bool {
    let tests = |path: &CallPath| trace.regions.class(path.region) == RegionClass::Test;
    trace.tree.nodes().iter().any(tests) || trace.shards.iter().any(|shard| !shard.requests.rows.is_empty())
}

/// Accepts what was read of a damaged file: the records before its end.
pub(in crate::whatif) fn complete_records(
    read: whywait_otf2::Result<ReadSummary>,
) -> std::result::Result<(), whywait_otf2::Error> {
    match read {
        Ok(_) | Err(whywait_otf2::Error::Malformed { .. }) => Ok(()),
        Err(error) => Err(error),
    }
}

/// A decoder that counts the events of a location as the analysis does.
pub(in crate::whatif) fn counter(trace: &Trace, location: LocationId) -> Decoder<'_> {
    let process = trace.definitions.locations[location].process;
    let shard = Shard {
        locations: Ids { start: location, end: LocationId::at(location.index() + 1) },
        processes: Ids { start: process, end: process },
        task_stacks: trace.shard(location).task_stacks.clone(),
        ..Shard::default()
    };
    let mut decoder = Decoder::new(trace.records(), &trace.regions, &trace.definitions, trace.bounds(), shard);
    decoder.begin_location(location);
    decoder.limit_stream(times_of_streams(&trace.definitions, trace.shard(location), process, trace.bounds()));
    decoder
}

/// Finds the records that start a request whose receive vanishes, and the calls that only test vanished requests.
pub(in crate::whatif) struct Requests<'a> {
    decoder: Decoder<'a>,
    gone: Gone<'a>,
    /// Number of records that have started the request of a receive so far.
    started: u32,
    open: FxHashMap<u64, Request>,
    /// The numbers of the receives that vanish.
    receives: FxHashSet<u32>,
    /// The regions that the location is in.
    calls: Vec<Call>,
    /// Calls that do nothing but test requests, and the first events of those that test one that stays.
    tests: Vec<RangeInclusive<u32>>,
    useful: FxHashSet<u32>,
    /// Calls that test requests of receives, by their first events, and the numbers of these receives.
    asked: Vec<(u32, u32)>,
}

/// An open request.
#[derive(Clone, Copy)]
enum Request {
    /// Of a send, and whether it vanishes.
    Send(bool),
    /// Of a receive, by its number.
    Receive(u32),
}

/// A region that has been entered.
struct Call {
    /// Position of its Enter.
    enter: u32,
    /// Whether it tests requests that are not complete, and whether it does anything else.
    asks: bool,
    serves: bool,
}

impl<'a> Requests<'a> {
    /// Begins a location, of which `gone` vanishes.
    pub(in crate::whatif) fn new(decoder: Decoder<'a>, gone: Gone<'a>) -> Self {
        Self {
            decoder,
            gone,
            started: 0,
            open: FxHashMap::default(),
            receives: FxHashSet::default(),
            calls: Vec::new(),
            tests: Vec::new(),
            useful: FxHashSet::default(),
            asked: Vec::new(),
        }
    }

    /// The numbers of the records that vanish, among those that start the request of a receive.
    pub(in crate::whatif) fn receives(self) -> FxHashSet<u32> {
        self.receives
    }

    /// The calls that do nothing but test requests that vanish, by their events.
    pub(in crate::whatif) fn idle_tests(mut self) -> Vec<RangeInclusive<u32>> {
        let stay = self.asked.iter().filter(|(_, receive)| !self.receives.contains(receive));
        self.useful.extend(stay.map(|&(call, _)| call));
        self.tests.retain(|call| !self.useful.contains(call.start()));
        self.tests
    }

    /// Position of the last event so far.
    fn position(&self) -> u32 {
        self.gone.first + self.decoder.positions() as u32 - 1
    }

    /// Records that the current call tests a request.
    fn ask(&mut self, request: Option<Request>) {
        let Some(call) = self.calls.last_mut() else { return };
        call.asks = true;
        match request {
            Some(Request::Send(true)) => {}
            Some(Request::Receive(number)) => self.asked.push((call.enter, number)),
            Some(Request::Send(false)) | None => {
                self.useful.insert(call.enter);
            }
        }
    }
}

/// The request of a receive that a record starts.
pub(in crate::whatif) fn started(record: &Event<'_>) -> Option<u64> {
    match record {
        Event::MpiIrecvRequest { request_id } | Event::MpiImrecvRequest { request_id, .. } => Some(*request_id),
        _ => None,
    }
}

impl EventSink for Requests<'_> {
    fn enter(&mut self, time: i64, region: u32) {
        let before = self.decoder.positions();
        self.decoder.enter(time, region);
        if self.decoder.positions() > before {
            self.calls.push(Call { enter: self.position(), asks: false, serves: false });
        }
    }

    fn leave(&mut self, time: i64, region: u32) {
        let before = self.decoder.positions();
        self.decoder.leave(time, region);
        if self.decoder.positions() > before
            && let Some(call) = self.calls.pop()
            && call.asks
            && !call.serves
        {
            self.tests.push(call.enter..=self.position());
        }
    }

    fn record(&mut self, time: i64, record: &Event<'_>, attributes: &Attributes<'_>) {
        let before = self.decoder.messages();
        self.decoder.record(time, record, attributes);
        let (sends, receives) = self.decoder.messages();
        let is_gone = |rows: &[bool], before: usize, now: usize| now > before && rows.get(before) == Some(&true);
        match record {
            Event::MpiRequestTest { request_id } => self.ask(self.open.get(request_id).copied()),
            Event::MpiRequestCancelled { request_id } => {
                let request = self.open.remove(request_id);
                self.ask(request);
            }
            _ if side(record) != Side::Both => {
                if let Some(call) = self.calls.last_mut() {
                    call.serves = true;
                }
            }
            _ => {}
        }
        if let Some(request) = started(record) {
            self.open.insert(request, Request::Receive(self.started));
            // One that never completes vanishes only with what starts it.
            if self.gone.record(self.decoder.positions(), record) {
                self.receives.insert(self.started);
            }
            self.started += 1;
        }
        match record {
            Event::MpiIsend { request_id, .. } => {
                self.open.insert(*request_id, Request::Send(is_gone(self.gone.sends, before.0, sends)));
            }
            Event::MpiIsendComplete { request_id } => {
                self.open.remove(request_id);
            }
            Event::MpiIrecv { request_id, .. } | Event::MpiImrecv { request_id, .. } => {
                if let Some(Request::Receive(number)) = self.open.remove(request_id)
                    && is_gone(self.gone.receives, before.1, receives)
                {
                    self.receives.insert(number);
                }
            }
            _ => {}
        }
    }
}
