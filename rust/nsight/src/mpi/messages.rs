//! Which send and which receive are of one message.
//!
//! In a channel (communicator, sender, receiver, tag), the n-th send meets the n-th receive, in the order of posting. An
//! analysis counts them in the order of records, where a receive stands at its completion. Where that is another order, the
//! messages of a channel get tags of their own.

use std::cmp::Reverse;
use std::collections::{BTreeMap, BinaryHeap, VecDeque};

use rustc_hash::FxHashMap;
use whywait_devices::{GroupFacts, NONE};
use whywait_otf2::Event;

use super::align::{Clocks, Lists, Need, Pair, Span};
use super::communicators::{Communicators, Meaning};
use super::names::{Act, Mode, act};
use super::{Counts, Known, Moment, Records};
use crate::rows::ABSENT;

/// Tags from here on are made up.
const OWN_TAGS: u32 = 1 << 24;
/// A receive without a message that takes no longer is one from nobody, ns. What a call takes that does more says nothing.
const FROM_NOBODY: i64 = 10_000;

/// A send or a receive. There are as many as calls, so that it has no more than its queue does not say.
#[derive(Debug, Clone, Copy)]
struct Posted {
    size: i64,
    place: u32,
    call: u32,
    /// Its request, or [`NONE`].
    request: u32,
    /// Order among those of its call.
    order: u32,
    /// The call that completes it, or [`NONE`] if that is not traced.
    done: u32,
}

impl Posted {
    fn begin(&self, known: &[Known<'_>]) -> i64 {
        known[self.place as usize].side.program.calls[self.call as usize].begin
    }

    /// When the call that completes it is over.
    fn end(&self, known: &[Known<'_>]) -> i64 {
        known[self.place as usize].side.program.calls.get(self.done as usize).map_or(i64::MAX, |call| call.end)
    }

    /// When it begins, and when it is complete. A call that does something else besides may end later.
    fn span(&self, known: &[Known<'_>]) -> Span {
        let side = known[self.place as usize].side;
        let begin = self.begin(known);
        let Some(done) = self.done() else { return Span { begin, end: begin, is_alone: false } };
        let call = &side.program.calls[done as usize];
        let is_both = matches!(act(side.names.get(call.name)), Some((Act::SendReceive, _)));
        Span { begin, end: call.end, is_alone: !is_both && side.program.rows(done).len() == 1 }
    }

    fn request(&self) -> Option<u32> {
        (self.request != NONE).then_some(self.request)
    }

    fn done(&self) -> Option<u32> {
        (self.done != NONE).then_some(self.done)
    }
}

/// A receive from any source or with any tag.
#[derive(Debug, Clone, Copy)]
struct Wildcard {
    posted: Posted,
    comm: u32,
    peer: i64,
    tag: i64,
}

/// Communicator, sender, receiver, and tag.
type Channel = (u32, u32, u32, i64);

/// The sends and receives of a channel, in the order of posting.
#[derive(Debug, Default)]
struct Queue {
    sends: VecDeque<Posted>,
    receives: VecDeque<Posted>,
}

impl Queue {
    /// Leaves out what comes before the first message that both sides have, as times and sizes tell; how much that is.
    fn align(&mut self, known: &[Known<'_>], clocks: Clocks, settled: i64) -> u64 {
        if self.sends.is_empty() || self.receives.is_empty() {
            return 0;
        }
        let pair = |send: usize, receive: usize| {
            let (send, receive) = (&self.sends[send], &self.receives[receive]);
            let is_known = send.size != ABSENT && receive.size != ABSENT;
            let must = if receive.done().is_some() { Need::Must } else { Need::No };
            Pair {
                first: send.span(known),
                second: receive.span(known),
                needs: (if send.done().is_some() { Need::May } else { Need::No }, must),
                // A receive may have room for more than what comes.
                is_alike: !is_known || send.size <= receive.size,
                has_same_size: send.size == receive.size,
            }
        };
        let counts = (self.sends.len(), self.receives.len());
        let found = Lists { counts, clocks, settled, pair }.shift();
        let Some(shift) = found else {
            let all = self.sends.len() + self.receives.len();
            self.sends.clear();
            self.receives.clear();
            return all as u64;
        };
        let skipped = |shift: i64, list: &VecDeque<Posted>| usize::try_from(shift).unwrap_or(0).min(list.len());
        let (sends, receives) = (skipped(-shift, &self.sends), skipped(shift, &self.receives));
        self.sends.drain(..sends);
        self.receives.drain(..receives);
        (sends + receives) as u64
    }
}

/// Whether a receive without a message took so long that it is not one from nobody.
const fn is_of_somebody(span: &Span) -> bool {
    span.is_alone && span.end - span.begin > FROM_NOBODY
}

/// What processes post.
#[derive(Default)]
struct All {
    channels: BTreeMap<Channel, Queue>,
    /// Receives from any source or with any tag, by receiver.
    wildcards: Vec<Wildcard>,
    /// The rank of nobody: only receives name other negative ones.
    nobody: Option<i64>,
}

/// Finds the messages of processes, and adds their records.
pub(super) fn find(
    known: &[Known<'_>],
    communicators: &Communicators,
    records: &mut [Records],
    (counts, groups): (&mut Counts, &mut [GroupFacts]),
) {
    // Nothing says which of two rows of a call sends: that the first does is inferred.
    let unpaired_if = |second_sends| unpaired(&collect(known, communicators, second_sends, &mut Counts::default()));
    let rest = unpaired_if(false);
    counts.second_sends = rest > 0 && unpaired_if(true) < rest;
    let mut all = collect(known, communicators, counts.second_sends, counts);
    let wildcards = std::mem::take(&mut all.wildcards);
    // What meets by its number, and what receives from any source or with any tag take of the rest.
    let mut numbered: BTreeMap<Channel, Queue> = BTreeMap::new();
    let mut taken: BTreeMap<Channel, Vec<(Posted, Posted)>> = BTreeMap::new();
    for (channel, queue) in &mut all.channels {
        let (sender, receiver) = (&known[channel.1 as usize], &known[channel.2 as usize]);
        if !sender.is_whole() || !receiver.is_whole() {
            // The first ones of each side need not be the same.
            counts.message_unmatched += queue.align(known, Clocks::of(sender.side, receiver.side), receiver.settled);
            counts.message_aligned += queue.sends.len().min(queue.receives.len()) as u64;
        }
        let count = queue.sends.len().min(queue.receives.len());
        let rest = Queue { sends: queue.sends.split_off(count), receives: queue.receives.split_off(count) };
        numbered.insert(*channel, std::mem::replace(queue, rest));
    }
    let mut heads = Heads::default();
    for wildcard in wildcards {
        let source = communicators.list[wildcard.comm as usize].place(wildcard.peer);
        let posted = wildcard.posted;
        if let Some((channel, send)) = heads.take(known, &mut all.channels, &wildcard, source) {
            taken.entry(channel).or_default().push((send, posted));
            counts.wildcard_inferred += 1;
        } else if wildcard.peer >= 0 || is_of_somebody(&posted.span(known)) {
            counts.message_unmatched += 1;
        }
    }
    let mut tags = OWN_TAGS;
    for (channel, Queue { sends, receives }) in numbered {
        let rest = &all.channels[&channel];
        counts.message_unmatched += (rest.sends.len() + rest.receives.len()) as u64;
        let is_one_clock = known[channel.1 as usize].side.clock == known[channel.2 as usize].side.clock;
        // Nobody has a message before it is sent: something between is not recorded.
        let is_possible = |(send, receive): &(Posted, Posted)| !is_one_clock || send.begin(known) <= receive.end(known);
        let pairs = || sends.iter().copied().zip(receives.iter().copied());
        let excluded = pairs().filter(|pair| !is_possible(pair)).count();
        counts.message_unmatched += 2 * excluded as u64;
        let is_complete = rest.sends.is_empty() && rest.receives.is_empty() && excluded == 0;
        let mut taken = taken.remove(&channel).unwrap_or_default();
        let posting = |(send, _): &(Posted, Posted)| (send.begin(known), send.call, send.order);
        let pairs = || pairs().filter(is_possible);
        if !taken.is_empty() {
            taken.extend(pairs());
            taken.sort_by_key(posting);
        }
        // Sends are in the order of posting as long as there are no others.
        let pairs = || taken.iter().copied().chain(pairs().filter(|_| taken.is_empty()));
        let received = |(_, receive): (Posted, Posted)| (receive.end(known), receive.done, receive.order);
        let is_in_order = pairs().map(received).is_sorted_by(|a, b| a < b);
        let real = u32::try_from(channel.3).ok().filter(|tag| is_complete && is_in_order && *tag < OWN_TAGS);
        for (send, receive) in pairs() {
            let tag = real.unwrap_or_else(|| {
                tags += 1;
                tags - 1
            });
            counts.size_odd += u64::from(receive.size != ABSENT && receive.size < send.size);
            groups[channel.0 as usize].messages += 1;
            let comm = &communicators.list[channel.0 as usize];
            let (Some(sender), Some(receiver)) = (comm.among(channel.1), comm.among(channel.2)) else { continue };
            let bytes = u64::try_from(send.size).unwrap_or(0);
            let ends = Ends { communicator: channel.0, sender, receiver, tag, bytes };
            ends.send(known, &send, &receive, &mut records[send.place as usize]);
            ends.receive(known, &receive, &send, &mut records[receive.place as usize]);
        }
    }
}

/// The first sends of the channels that a receive can take one from: communicator, receiver, and sender and tag if it names them.
type Choice = (u32, u32, Option<u32>, Option<i64>);

/// The first sends of channels by their begins, for each choice that receives have. What another choice took is dropped late.
#[derive(Default)]
struct Heads(FxHashMap<Choice, BinaryHeap<Reverse<(i64, Channel)>>>);

impl Heads {
    /// Takes the first send that a receive from any source or with any tag can have got.
    fn take(
        &mut self,
        known: &[Known<'_>],
        channels: &mut BTreeMap<Channel, Queue>,
        &Wildcard { posted: receive, comm, peer, tag }: &Wildcard,
        source: Option<u32>,
    ) -> Option<(Channel, Posted)> {
        let is_any = peer < 0;
        let choice = (comm, receive.place, source.filter(|_| !is_any), (tag >= 0).then_some(tag));
        if !is_any && source.is_none() {
            return None;
        }
        let heap = self.0.entry(choice).or_insert_with(|| {
            let (comm, receiver, sender, tag) = choice;
            let fits = |channel: &Channel| {
                (channel.0, channel.2) == (comm, receiver)
                    && sender.is_none_or(|sender| sender == channel.1)
                    && tag.is_none_or(|tag| tag == channel.3)
            };
            let heads = channels.iter().filter(|(channel, _)| fits(channel));
            heads.filter_map(|(channel, queue)| Some(Reverse((queue.sends.front()?.begin(known), *channel)))).collect()
        });
        while let Some(Reverse((begin, channel))) = heap.peek().copied() {
            let queue = channels.get_mut(&channel)?;
            let first = queue.sends.front().map(|send| send.begin(known));
            if first == Some(begin) && begin >= receive.end(known) {
                return None;
            }
            heap.pop();
            let send = if first == Some(begin) { queue.sends.pop_front() } else { None };
            heap.extend(queue.sends.front().map(|send| Reverse((send.begin(known), channel))));
            if let Some(send) = send {
                return Some((channel, send));
            }
        }
        None
    }
}

/// The number of sends and receives without the other one.
fn unpaired(all: &All) -> usize {
    let wildcards = all.wildcards.len();
    let rest = |queue: &Queue| queue.sends.len().abs_diff(queue.receives.len());
    all.channels.values().map(rest).sum::<usize>().abs_diff(wildcards)
}

/// The call that posts, the order in it, the call and row that say what, and the request or [`NONE`].
type Posting = (u32, u32, (u32, u32), u32);

/// Collects what processes post.
fn collect(known: &[Known<'_>], communicators: &Communicators, second_sends: bool, counts: &mut Counts) -> All {
    let mut all = All::default();
    for (place, process) in (0..).zip(known) {
        let Known { side, requests, by_row, order, .. } = process;
        let calls = &side.program.calls;
        let mut posting: Vec<Posting> = Vec::with_capacity(calls.len());
        for call in order {
            for row in 0..side.program.rows(*call).len() as u32 {
                match by_row.get(&(*call, row)) {
                    Some(own) => posting.extend(own.iter().map(|request| {
                        let posted = requests[*request as usize].call;
                        (posted, *request, (*call, row), *request)
                    })),
                    None => posting.push((*call, row, (*call, row), NONE)),
                }
            }
        }
        posting.sort_unstable_by_key(|(call, order, ..)| (calls[*call as usize].begin, *call, *order));
        for (call, order, (defining, row), request) in posting {
            let rows = side.program.rows(defining);
            let said = &rows[row as usize];
            let Some((act, mode)) = act(side.names.get(said.name)) else { continue };
            if request == NONE && mode != Mode::Blocking {
                continue;
            }
            let comm = match communicators.of(place, said, calls[defining as usize].begin) {
                Meaning::Comm(comm) if communicators.list[comm as usize].among(place).is_some() => comm,
                Meaning::Alone => continue,
                _ => {
                    counts.communicator_unknown += 1;
                    continue;
                }
            };
            let done = match request {
                NONE => call,
                request => requests[request as usize].completed.unwrap_or(NONE),
            };
            let posted = Posted { size: said.size, place, call, request, order, done };
            let posted = Wildcard { posted, comm, peer: said.peer, tag: said.tag };
            let (sends, receives) = match act {
                Act::Send => (true, false),
                Act::Receive => (false, true),
                Act::SendReceive if rows.len() == 1 => (true, true),
                Act::SendReceive => ((row == 0) != second_sends, (row == 0) == second_sends),
            };
            if sends {
                all.add(communicators, posted, true, counts);
            }
            if receives {
                all.add(communicators, posted, false, counts);
            }
        }
    }
    let nobody = all.nobody;
    all.wildcards.retain(|wildcard| nobody.is_none() || Some(wildcard.peer) != nobody);
    all
}

impl All {
    fn add(&mut self, communicators: &Communicators, all: Wildcard, is_send: bool, counts: &mut Counts) {
        let Wildcard { posted, comm, peer, tag } = all;
        if !is_send && (peer < 0 || tag < 0) {
            if peer != ABSENT && tag != ABSENT {
                self.wildcards.push(all);
            }
            return;
        }
        // A send to a negative rank is one to nobody.
        if peer < 0 {
            self.nobody = Some(peer).filter(|peer| *peer != ABSENT).or(self.nobody);
            return;
        }
        let Some(peer) = communicators.list[comm as usize].place(peer) else {
            counts.partner_missing += 1;
            return;
        };
        let (sender, receiver) = if is_send { (posted.place, peer) } else { (peer, posted.place) };
        let queue = self.channels.entry((comm, sender, receiver, tag)).or_default();
        if is_send { queue.sends.push_back(posted) } else { queue.receives.push_back(posted) }
    }
}

/// What both records of a message say.
struct Ends {
    communicator: u32,
    sender: u32,
    receiver: u32,
    tag: u32,
    bytes: u64,
}

impl Ends {
    fn send(&self, known: &[Known<'_>], send: &Posted, receive: &Posted, records: &mut Records) {
        let Self { communicator, receiver, tag: msg_tag, bytes: msg_length, .. } = *self;
        let Some(request) = send.request() else {
            let event = Event::MpiSend { receiver, communicator, msg_tag, msg_length };
            records.push((send.call, Moment::Begin, send.order, event));
            return;
        };
        let request_id = request.into();
        let event = Event::MpiIsend { receiver, communicator, msg_tag, msg_length, request_id };
        records.push((send.call, Moment::Begin, send.order, event));
        complete(known, send, receive.begin(known), Event::MpiIsendComplete { request_id }, records);
    }

    fn receive(&self, known: &[Known<'_>], receive: &Posted, send: &Posted, records: &mut Records) {
        let Self { communicator, sender, tag: msg_tag, bytes: msg_length, .. } = *self;
        let Some(request) = receive.request() else {
            let event = Event::MpiRecv { sender, communicator, msg_tag, msg_length };
            records.push((receive.call, Moment::End, receive.order, event));
            return;
        };
        let request_id = request.into();
        records.push((receive.call, Moment::Begin, receive.order, Event::MpiIrecvRequest { request_id }));
        let event = Event::MpiIrecv { sender, communicator, msg_tag, msg_length, request_id };
        complete(known, receive, send.begin(known), event, records);
    }
}

/// Adds the record of a completion: where the call that completes ends, or, if that is not traced, where the next call begins
/// after the partner did its part, so that nobody waits.
pub(super) fn complete_request(
    known: &Known<'_>,
    (call, done): (u32, Option<u32>),
    (order, partner): (u32, i64),
    event: Event<'static>,
    records: &mut Records,
) {
    match done {
        Some(done) => records.push((done, Moment::End, order, event)),
        None => {
            if let Some(next) = known.next_call(call, partner) {
                records.push((next, Moment::Before, order, event));
            }
        }
    }
}

fn complete(known: &[Known<'_>], posted: &Posted, partner: i64, event: Event<'static>, records: &mut Records) {
    let own = &known[posted.place as usize];
    complete_request(own, (posted.call, posted.done()), (posted.order, partner), event, records);
}
