//! Late Sender: a receiver waits for a message that has not been sent yet.
//!
//! ```text
//!  sender    ------------[ Send ]-----
//!  receiver  ---[ Recv   |       ]----
//!               |--------|  waiting
//! ```
//!
//! *Definition*: waiting = min(Enter(send), Leave(receive)) − Enter(receive), if positive; booked on the call that
//! completes the receive, caused by the send call.
//!
//! *Guards*: `MPI_Test*` never waits. `MPI_Waitall` and `MPI_Waitsome` count one wait, for the latest sender (on a tie,
//! the first that was received). Clamping at the Leave of the receive keeps clock errors from making a wait longer than
//! its call.
//!
//! *Messages in Wrong Order*: a Late Sender whose message was sent after one that is received later. Its whole waiting
//! time counts, once. Each location keeps its most recent Late Senders (100 by default) to find these.
//!
//! *Late Sender at Probe*: likewise for `MPI_Probe` and `MPI_Mprobe`, with the send of the message that was probed. Of
//! `MPI_Probe`, this is inferred: it is the message of the next receive that the same call path posts.
//!
//! Sources are compared as processes, not as ranks of a communicator.
//!
//! *Source*: specification.md#late-sender, specification.md#messages-in-wrong-order; thesis, equation 2.1.

use bitcode::{Decode, Encode};

use std::collections::VecDeque;

use rustc_hash::FxHashMap;

use super::device_part::DevicePart;
use super::findings::Findings;
use super::wait_state::WaitState;
use crate::diagnostics::DiagnosticKind;
use crate::ids::{InstanceId, LocationId, ProcessId};
use crate::matching::messages::{Matches, Need, Needs};
use crate::matching::protocol::{Proofs, Protocol, ProtocolClassifier};
use crate::matching::send_info::SendInfo;
use crate::severity::{Accumulator, Metric, volume};
use crate::trace::columns::Received;
use crate::trace::{RegionClass, Shard, Trace};

/// A sender that waited for its receiver if its call can wait; sent to the shard of the sender.
#[derive(Clone, Copy, Debug, Encode, Decode)]
pub struct LateReceiver {
    /// Shard of the sender.
    pub shard: u32,
    /// Row of the send in that shard.
    pub row: u32,
    /// Waiting time, ticks.
    pub waiting: i64,
    /// Index of the receiving location.
    pub location: LocationId,
    /// Region instance that posted the receive.
    pub instance: InstanceId,
    /// What is known of the protocol.
    pub protocol: Protocol,
    /// Whether both processes are on one node.
    pub is_local: bool,
}

/// Calls that may complete a send as well and had a late sender, with the time that they waited for it, ticks.
pub type Candidates = FxHashMap<InstanceId, i64>;

/// The findings of the receiving side.
#[derive(Debug, Default)]
pub struct Detected {
    /// Late Senders, messages in wrong order, counts of receives.
    pub findings: Findings,
    /// Possible Late Receivers; the senders decide whether they count.
    pub late_receivers: Vec<LateReceiver>,
    /// Calls that may complete a send as well, and had a late sender.
    pub candidates: Candidates,
    /// What the messages prove about protocols.
    pub proofs: Proofs,
    /// For each receive, [`Received::lead`].
    pub leads: Vec<u32>,
}

/// A Late Sender that a later receive may turn into wrong order.
#[derive(Clone, Copy)]
struct Instance {
    /// Time of the send record, which decides about wrong order (not the Enter).
    sent: i64,
    waiting: i64,
    bytes: u64,
    /// Sending process.
    source: ProcessId,
    /// Region instance of the receive.
    call: InstanceId,
    cause: (LocationId, InstanceId),
}

/// Detects the Late Senders of a shard from its matched receives.
pub fn detect(
    trace: &Trace,
    shard: &Shard,
    matches: &Matches,
    classifier: &ProtocolClassifier,
    window: usize,
) -> Detected {
    let mut detector = Detector {
        trace,
        shard,
        classifier,
        cells: Accumulator::new(&trace.tree),
        detected: Detected::default(),
        location: LocationId::NONE,
        recent: Recent { instances: VecDeque::with_capacity(window), window, latest: i64::MIN },
    };
    let needs = Needs::new(trace, shard, matches);
    for i in 0..shard.locations.len() {
        detector.location = shard.location(i);
        detector.recent.clear();
        let location = &trace.definitions.locations[detector.location];
        let is_alone = location.thread == 0 || location.is_stream();
        let range = shard.receives.range(i);
        let silent = range.is_empty() && shard.sends.range(i).is_empty() && shard.collectives.range(i).is_empty();
        if !is_alone && !silent {
            detector.detected.findings.diagnostics.add(
                DiagnosticKind::MpiOnThread,
                detector.location,
                shard.spans[i].first,
            );
        }
        let mut latest: Option<Instance> = None;
        for row in range {
            let receive = &shard.receives.rows[row];
            let lead = matches.send(row).map(|send| shard.enter(receive.instance) - send.enter);
            detector.detected.leads.push(lead.and_then(|lead| lead.try_into().ok()).unwrap_or(u32::MAX));
            for need in needs.of(row).skip(1).filter(|need| need.is_last) {
                detector.look(&need);
            }
            if latest.is_some_and(|latest| latest.call != receive.instance) {
                detector.book(latest.take());
            }
            if let Some(late) = detector.judge(receive, matches.send(row)) {
                if detector.class(receive.instance) == RegionClass::WaitMany {
                    detector.note_candidate(receive.instance, late.waiting);
                    latest = Some(latest.filter(|latest| latest.waiting >= late.waiting).unwrap_or(late));
                } else {
                    if detector.class(receive.request) == RegionClass::SendAndReceive {
                        detector.note_candidate(receive.instance, late.waiting);
                    }
                    detector.book(Some(late));
                }
            }
        }
        detector.book(latest);
        detector.cells.end_location(detector.location);
    }
    detector.detected.findings.severities = detector.cells.finish();
    detector.detected
}

struct Detector<'a> {
    trace: &'a Trace,
    shard: &'a Shard,
    classifier: &'a ProtocolClassifier,
    cells: Accumulator,
    detected: Detected,
    location: LocationId,
    recent: Recent,
}

impl Detector<'_> {
    fn class(&self, instance: InstanceId) -> RegionClass {
        self.trace.regions.class(self.trace.tree.region(self.shard.callpath(instance)))
    }

    /// Counts a receive and returns its Late Sender, if any: thesis, equation 2.1.
    fn judge(&mut self, receive: &Received, send: Option<&SendInfo>) -> Option<Instance> {
        let class = self.class(receive.instance);
        let callpath = self.shard.callpath(receive.instance);
        let bytes = send.map_or(receive.bytes, |send| send.bytes);
        if class != RegionClass::DeviceMessage {
            let metric = if bytes == 0 { Metric::SyncsReceive } else { Metric::CommsReceive };
            self.cells.add(metric, callpath, 1);
            self.cells.add(Metric::BytesReceived, callpath, volume(bytes));
        }

        let send = send?;
        if send.time > receive.time {
            self.detected.findings.diagnostics.add(DiagnosticKind::ClockViolationMessage, self.location, receive.time);
        }
        self.settle_wrong_order(send);
        if !class.is_mpi() && class != RegionClass::DeviceMessage {
            return None;
        }
        self.notify_sender(receive, send);
        if class == RegionClass::Test {
            return None;
        }
        let enter = self.shard.enter(receive.instance);
        let waiting = send.enter.min(self.shard.leave(receive.instance)) - enter;
        if class == RegionClass::DeviceMessage {
            let (kernel, cause) = ((self.location, receive.instance), (send.location, send.instance));
            let part = DevicePart::of_message(Metric::CclLateSender, kernel, waiting, cause, bytes);
            self.detected.findings.device_parts.push(part);
            return None;
        }
        (waiting > 0).then_some(Instance {
            sent: send.time,
            waiting,
            bytes,
            source: send.source,
            call: receive.instance,
            cause: (send.location, send.instance),
        })
    }

    /// Books the wait of a call that looked for a message.
    fn look(&mut self, need: &Need) {
        let Some(metric) = need.reason.wait(self.class(need.call)) else { return };
        let waiting = need.enter.min(self.shard.leave(need.call)) - self.shard.enter(need.call);
        if waiting > 0 {
            self.cells.add(metric, self.shard.callpath(need.call), waiting);
            let call = (self.location, need.call);
            let wait = WaitState::new(metric, call, waiting, need.sender);
            self.detected.findings.waits.push(WaitState { is_inferred: need.is_inferred(), ..wait });
        }
    }

    fn note_candidate(&mut self, call: InstanceId, waiting: i64) {
        let longest = self.detected.candidates.entry(call).or_insert(waiting);
        *longest = waiting.max(*longest);
    }

    /// Tells the sender how long its call lasted before the receive was posted ([`super::late_receiver`]).
    fn notify_sender(&mut self, receive: &Received, send: &SendInfo) {
        let posted = self.shard.enter(receive.request);
        let (protocol, is_local) = self.classifier.count(send, posted, &mut self.detected.proofs);
        let is_late = posted > send.complete_enter && posted < send.complete_leave;
        // Devices also say that somebody received what they sent.
        if is_late || self.class(receive.instance) == RegionClass::DeviceMessage {
            self.detected.late_receivers.push(LateReceiver {
                shard: self.trace.shard_of[send.location],
                row: send.row,
                waiting: if is_late { posted - send.complete_enter } else { 0 },
                location: self.shard.owner(self.location, receive.request),
                instance: receive.request,
                protocol,
                is_local,
            });
        }
    }

    fn book(&mut self, late: Option<Instance>) {
        let Some(late) = late else { return };
        let callpath = self.shard.callpath(late.call);
        self.cells.add(Metric::LateSender, callpath, late.waiting);
        let count = if late.bytes == 0 { Metric::LateSenderSyncs } else { Metric::LateSenderComms };
        self.cells.add(count, callpath, 1);
        self.wait(Metric::LateSender, &late);
        self.recent.push(late);
    }

    /// Turns a recent Late Sender into wrong order if this message, received only now, was sent before it.
    fn settle_wrong_order(&mut self, send: &SendInfo) {
        while let Some(late) = self.recent.take_later_than(send.time) {
            let callpath = self.shard.callpath(late.call);
            let kind = if late.source == send.source { Metric::WrongOrderSame } else { Metric::WrongOrderDifferent };
            self.cells.add(Metric::WrongOrder, callpath, late.waiting);
            self.cells.add(kind, callpath, late.waiting);
            let count = if late.bytes == 0 { Metric::WrongOrderSyncs } else { Metric::WrongOrderComms };
            self.cells.add(count, callpath, 1);
            self.wait(kind, &late);
        }
    }

    fn wait(&mut self, kind: Metric, late: &Instance) {
        let call = (self.location, late.call);
        self.detected.findings.waits.push(WaitState::new(kind, call, late.waiting, late.cause));
    }
}

/// The most recent Late Senders of a location.
struct Recent {
    instances: VecDeque<Instance>,
    window: usize,
    /// Upper bound of their send times, so that most receives need no search.
    latest: i64,
}

impl Recent {
    fn clear(&mut self) {
        self.instances.clear();
        self.latest = i64::MIN;
    }

    fn push(&mut self, late: Instance) {
        if self.window == 0 {
            return;
        }
        if self.instances.len() == self.window {
            self.instances.pop_front();
        }
        self.latest = self.latest.max(late.sent);
        self.instances.push_back(late);
    }

    /// Removes the oldest instance whose message was sent later than `sent`.
    fn take_later_than(&mut self, sent: i64) -> Option<Instance> {
        if self.latest <= sent {
            return None;
        }
        let found = self.instances.iter().position(|late| late.sent > sent).and_then(|i| self.instances.remove(i));
        if found.is_none() {
            self.latest = self.instances.iter().map(|late| late.sent).max().unwrap_or(i64::MIN);
        }
        found
    }
}
