//! The records of calls that are moved or split: what stands in the place of a call, and the waits that come later.
//!
//! A blocking call becomes one that starts its communication, without length; its wait is entered where the time before it
//! ends, and left when the simulation says. An existing wait takes its records along. What is started has a request of
//! its own.

use whywait_otf2::{Attributes, Event, EventSink};

use crate::ids::LocationId;
use crate::trace::Trace;
use crate::whatif::changes::moves::{Becomes, Move};
use crate::whatif::simulator::{Simulation, Simulator};

/// Requests that the run does not have begin with this number.
const REQUESTS: u64 = 1 << 62;

/// The calls that a run may get, in the order of their ids in [`Inserted::regions`].
pub(in crate::whatif) const CALLS: [&str; 7] =
    ["MPI_Isend", "MPI_Irecv", "MPI_Wait", "MPI_Waitall", "MPI_Send", "MPI_Recv", "MPI_Issend"];
const ISEND: usize = 0;
const IRECV: usize = 1;
const WAIT: usize = 2;
const WAITALL: usize = 3;
const SEND: usize = 4;
const RECV: usize = 5;
const ISSEND: usize = 6;

/// Enter and Leave of a wait in its new place, ticks; for a split, twice the time between its parts.
pub(in crate::whatif) fn wait_times(
    trace: &Trace,
    (simulator, simulation): (&Simulator, &Simulation),
    events: &[Vec<i64>],
    location: LocationId,
    of: &Move,
) -> (i64, i64) {
    let graph = &simulator.graph;
    let new = |place: usize| graph.times[place] + simulation.times.shift(place);
    let place = graph.stops[of.stop as usize] as usize;
    let is_first = place == graph.steps_of(location).start || graph.steps[place - 1].position != of.before;
    let before = if is_first { events[trace.position(location)][of.before as usize - 1] } else { new(place - 1) };
    let end = new(place);
    if of.becomes == Becomes::SendThenReceive { (end, end) } else { (before, end) }
}

/// What is inserted at a location, and how far its records have been read.
pub(in crate::whatif) struct Inserted<'a> {
    moves: &'a [Move],
    /// Enter and Leave of each wait.
    times: Vec<(i64, i64)>,
    /// The moves in the order of their waits.
    order: Vec<usize>,
    /// The ids of the regions of [`CALLS`].
    regions: [u32; 7],
    /// Position of the first event of the location.
    first: u32,
    /// Number of moved calls so far, and of waits.
    called: usize,
    waited: usize,
    /// The moved call that is open, and whether its second part has begun.
    open: Option<usize>,
    second: bool,
    /// For each move, the region and the records of its wait.
    held: Vec<(u32, Vec<Event<'static>>)>,
}

/// A record at its time.
pub(in crate::whatif) type At = (i64, Item);

/// A record that is inserted.
#[derive(Clone, Copy)]
pub(in crate::whatif) enum Item {
    Enter(u32),
    Leave(u32),
    Record(Event<'static>),
}

impl Item {
    /// Passes it on.
    pub(in crate::whatif) fn send(&self, time: i64, to: &mut dyn EventSink) {
        match self {
            Self::Enter(region) => to.enter(time, *region),
            Self::Leave(region) => to.leave(time, *region),
            Self::Record(record) => to.record(time, record, &Attributes::new(&[])),
        }
    }
}

impl<'a> Inserted<'a> {
    /// Begins a location, whose first event has a position.
    pub(in crate::whatif) fn new(moves: &'a [Move], times: Vec<(i64, i64)>, regions: [u32; 7], first: u32) -> Self {
        let mut order: Vec<usize> = (0..moves.len()).filter(|&i| !Self::is_split(&moves[i])).collect();
        order.sort_by_key(|&i| (moves[i].before, !moves[i].is_behind, i));
        let held = vec![(0, Vec::new()); moves.len()];
        Self { moves, times, order, regions, first, called: 0, waited: 0, open: None, second: false, held }
    }

    fn is_split(of: &Move) -> bool {
        of.becomes == Becomes::SendThenReceive
    }

    /// The waits before an event that have not come yet: `behind` is the number of events before it; with `is_sent`, only
    /// those right behind the last of these.
    pub(in crate::whatif) fn waits(&mut self, behind: usize, is_sent: bool) -> Vec<At> {
        let position = self.first + behind as u32;
        let mut all = Vec::new();
        while let Some(&next) = self.order.get(self.waited) {
            let of = &self.moves[next];
            if of.before > position || (of.before == position && is_sent && !of.is_behind) {
                break;
            }
            self.waited += 1;
            let (region, records) = std::mem::take(&mut self.held[next]);
            let (begin, end) = self.times[next];
            all.push((begin, Item::Enter(region)));
            all.extend(records.into_iter().map(|record| (end, Item::Record(record))));
            all.push((end, Item::Leave(region)));
        }
        all
    }

    /// What stands for the Enter of a region, at its new time, if it is a moved call; `behind` counts the events with it.
    pub(in crate::whatif) fn enter(&mut self, behind: usize, time: i64, region: u32) -> Option<Vec<At>> {
        let next = self.moves.get(self.called).filter(|of| of.enter + 1 == self.first + behind as u32)?;
        self.open = Some(self.called);
        self.called += 1;
        self.second = false;
        let call = match next.becomes {
            Becomes::Later => {
                self.held[self.called - 1].0 = region;
                return Some(Vec::new());
            }
            Becomes::Isend | Becomes::Both => ISEND,
            Becomes::Issend => ISSEND,
            Becomes::Irecv => IRECV,
            Becomes::SendThenReceive => SEND,
        };
        let wait = if next.becomes == Becomes::Both { WAITALL } else { WAIT };
        self.held[self.called - 1].0 = self.regions[wait];
        Some(vec![(time, Item::Enter(self.regions[call]))])
    }

    /// What stands for the Leave of a region, at its new time, if a moved call is open.
    pub(in crate::whatif) fn leave(&mut self, time: i64) -> Option<Vec<At>> {
        let open = self.open?;
        let becomes = self.moves[open].becomes;
        if becomes == Becomes::Later {
            self.open = None;
            return Some(Vec::new());
        }
        let mut all = self.turn(open);
        self.open = None;
        let call = match becomes {
            Becomes::Isend => ISEND,
            Becomes::Issend => ISSEND,
            Becomes::SendThenReceive => RECV,
            _ => IRECV,
        };
        all.push((time, Item::Leave(self.regions[call])));
        Some(all)
    }

    /// The second part of a call that sends and receives begins, if it has not yet.
    fn turn(&mut self, open: usize) -> Vec<At> {
        let (first, second) = match self.moves[open].becomes {
            Becomes::Both if !self.second => (ISEND, IRECV),
            Becomes::SendThenReceive if !self.second => (SEND, RECV),
            _ => return Vec::new(),
        };
        self.second = true;
        // Starts take no time.
        let time = if second == RECV { self.times[open].1 } else { i64::MIN };
        vec![(time, Item::Leave(self.regions[first])), (time, Item::Enter(self.regions[second]))]
    }

    /// What stands for a record, at its new time, if a moved call is open and it concerns its communication.
    pub(in crate::whatif) fn record(&mut self, time: i64, record: &Event<'_>) -> Option<Vec<At>> {
        let open = self.open?;
        let becomes = self.moves[open].becomes;
        let (send, receive) = (REQUESTS + 2 * open as u64, REQUESTS + 2 * open as u64 + 1);
        let held = &mut self.held[open].1;
        match *record {
            Event::MpiSend { .. } if becomes == Becomes::SendThenReceive => None,
            Event::MpiRecv { sender, communicator, msg_tag, msg_length } => {
                if becomes == Becomes::SendThenReceive {
                    let record = Event::MpiRecv { sender, communicator, msg_tag, msg_length };
                    let mut all = self.turn(open);
                    all.push((time, Item::Record(record)));
                    return Some(all);
                }
                held.push(Event::MpiIrecv { sender, communicator, msg_tag, msg_length, request_id: receive });
                let mut all = self.turn(open);
                all.push((i64::MIN, Item::Record(Event::MpiIrecvRequest { request_id: receive })));
                Some(all)
            }
            Event::MpiSend { receiver, communicator, msg_tag, msg_length } => {
                held.push(Event::MpiIsendComplete { request_id: send });
                let record = Event::MpiIsend { receiver, communicator, msg_tag, msg_length, request_id: send };
                Some(vec![(i64::MIN, Item::Record(record))])
            }
            _ if becomes == Becomes::Later => {
                held.push(completion(record)?);
                Some(Vec::new())
            }
            _ => None,
        }
    }
}

/// A record of a completion, on its own.
fn completion(record: &Event<'_>) -> Option<Event<'static>> {
    Some(match *record {
        Event::MpiIrecv { sender, communicator, msg_tag, msg_length, request_id } => {
            Event::MpiIrecv { sender, communicator, msg_tag, msg_length, request_id }
        }
        Event::MpiImrecv { request_id, msg_length } => Event::MpiImrecv { request_id, msg_length },
        Event::MpiIsendComplete { request_id } => Event::MpiIsendComplete { request_id },
        Event::MpiRequestCancelled { request_id } => Event::MpiRequestCancelled { request_id },
        Event::MpiRequestTest { request_id } => Event::MpiRequestTest { request_id },
        Event::NonBlockingCollectiveComplete {
            collective_op,
            communicator,
            root,
            size_sent,
            size_received,
            request_id,
        } => Event::NonBlockingCollectiveComplete {
            collective_op,
            communicator,
            root,
            size_sent,
            size_received,
            request_id,
        },
        Event::RmaOpCompleteNonBlocking { win, matching_id } => Event::RmaOpCompleteNonBlocking { win, matching_id },
        _ => return None,
    })
}
