//! Late Receiver: a sender blocks because the receive has not been posted yet.
//!
//! ```text
//!  sender    ---[ Ssend  |       ]----
//!  receiver  ------------[ Recv  ]----
//!               |--------|  waiting
//! ```
//!
//! *Definition*: waiting = Enter(receive request) − Enter(k), with k the call that completes the send (the send itself
//! if it blocks); only if the receive is posted before k is left, and if positive. Booked on k, caused by the call that
//! posted the receive.
//!
//! *Guards*: k must be `MPI_Send`, `MPI_Ssend`, `MPI_Wait` or `MPI_Waitany`. `MPI_Waitall` and `MPI_Waitsome` count one
//! wait, for the latest receiver (on a tie, the first that was sent to), and none if one of their receives had a late
//! sender. An `MPI_Wait` on the request of an `MPI_Isendrecv` with a late sender has none either.
//!
//! Where the recorder does not write which call completes a non-blocking send ([`INFERRED_COMPLETIONS`]), the wait is inferred.
//!
//! *Source*: specification.md#late-receiver; thesis, section 2.3, figure 2.5.

use rustc_hash::FxHashMap;

use super::device_part::DevicePart;
use super::findings::Findings;
use super::late_sender::LateReceiver;
use super::wait_state::WaitState;
use crate::diagnostics::DiagnosticKind;
use crate::ids::InstanceId;
use crate::severity::{Accumulator, Metric};
use crate::trace::{RegionClass, Shard, Trace};

/// The property of an archive whose reader inferred which calls complete non-blocking sends.
pub const INFERRED_COMPLETIONS: &str = "WHYWAIT::INFERRED_COMPLETIONS";

/// Decides which possible Late Receivers of a shard's sends count.
///
/// `is_candidate` tells whether one of the receives of a call had a late sender.
#[must_use]
pub fn detect(
    trace: &Trace,
    shard: &Shard,
    mut possible: Vec<LateReceiver>,
    is_candidate: impl Fn(InstanceId) -> bool,
) -> Findings {
    possible.sort_unstable_by_key(|late| late.row);
    let mut counting: Vec<LateReceiver> = Vec::with_capacity(possible.len());
    let mut latest: FxHashMap<InstanceId, usize> = FxHashMap::default();
    let mut findings = Findings::default();
    for late in possible {
        let complete = shard.sends.rows[late.row as usize].complete;
        match trace.regions.class(trace.tree.region(shard.callpath(complete))) {
            RegionClass::DeviceMessage => {
                let kernel = (shard.location_of(&shard.sends, late.row), complete);
                let cause = (late.location, late.instance);
                let bytes = shard.sends.rows[late.row as usize].bytes;
                let part = DevicePart::of_message(Metric::CclLateReceiver, kernel, late.waiting, cause, bytes);
                findings.device_parts.push(part);
            }
            _ if late.waiting == 0 => {}
            RegionClass::BlockingSend => counting.push(late),
            RegionClass::Wait if !is_candidate(complete) => counting.push(late),
            RegionClass::WaitMany if !is_candidate(complete) => {
                let position = *latest.entry(complete).or_insert(counting.len());
                match counting.get_mut(position) {
                    None => counting.push(late),
                    Some(best) if best.waiting < late.waiting => *best = late,
                    Some(_) => {}
                }
            }
            _ => {}
        }
    }
    counting.sort_unstable_by_key(|late| late.row);

    let mut cells = Accumulator::new(&trace.tree);
    let mut location = None;
    let properties = &trace.recording().anchor().properties;
    let has_inferred = properties.iter().any(|(name, _)| name == INFERRED_COMPLETIONS);
    for late in counting {
        let send = &shard.sends.rows[late.row as usize];
        let here = shard.owner(shard.location_of(&shard.sends, late.row), send.complete);
        if let Some(before) = location.replace(here)
            && before != here
        {
            cells.end_location(before);
        }
        let callpath = shard.callpath(send.complete);
        cells.add(Metric::LateReceiver, callpath, late.waiting);
        let count = if send.bytes == 0 { Metric::LateReceiverSyncs } else { Metric::LateReceiverComms };
        cells.add(count, callpath, 1);
        let cause = (late.location, late.instance);
        let wait = WaitState::new(Metric::LateReceiver, (here, send.complete), late.waiting, cause);
        let is_inferred = has_inferred && send.complete != send.instance;
        findings.waits.push(WaitState { is_inferred, ..wait });
        if is_inferred {
            let kind = DiagnosticKind::InferredCompletion;
            findings.diagnostics.add(kind, here, shard.enter(send.complete));
            findings.diagnostics.assume(kind, late.waiting);
        }
    }
    if let Some(location) = location {
        cells.end_location(location);
    }
    findings.severities = cells.finish();
    findings
}
