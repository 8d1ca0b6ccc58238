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
//! *Late Receiver in an exchange*: such a call, and `MPI_Sendrecv`, needs its receivers as well if it sent by rendezvous. After its
//! late sender, it waits for the latest receiver.
//!
//! ```text
//!  exchange  ---[ Sendrecv: late sender | receiver |  ]---
//!  sender    ---------------------------[ Send ]----------
//!  receiver  --------------------------------------[ Recv ]---
//! ```
//!
//! Where the recorder does not write which call completes a non-blocking send ([`INFERRED_COMPLETIONS`]), the wait is inferred.
//!
//! *Source*: specification.md#late-receiver; thesis, section 2.3, figure 2.5.

use rustc_hash::FxHashMap;

use super::device_part::DevicePart;
use super::findings::Findings;
use super::late_sender::{Candidates, LateReceiver};
use super::wait_state::WaitState;
use crate::diagnostics::DiagnosticKind;
use crate::ids::{InstanceId, LocationId};
use crate::matching::protocol::{Limits, Protocol};
use crate::severity::{Accumulator, Metric};
use crate::trace::{RegionClass, Shard, Trace};

/// The property of an archive whose reader inferred which calls complete non-blocking sends.
pub const INFERRED_COMPLETIONS: &str = "WHYWAIT::INFERRED_COMPLETIONS";

/// What is said of such waits.
const INFERRED: DiagnosticKind = DiagnosticKind::InferredCompletion;

/// Decides which possible Late Receivers of a shard's sends count.
///
/// `candidates` has the time for which calls waited for the sender of one of their receives, ticks.
pub fn detect(
    trace: &Trace,
    shard: &Shard,
    mut possible: Vec<LateReceiver>,
    candidates: &Candidates,
    limits: Limits,
) -> Findings {
    possible.sort_unstable_by_key(|late| late.row);
    let mut counting: Vec<LateReceiver> = Vec::with_capacity(possible.len());
    let mut exchanges: Vec<LateReceiver> = Vec::new();
    let mut latest: FxHashMap<InstanceId, usize> = FxHashMap::default();
    let mut findings = Findings::default();
    let is_candidate = |call: InstanceId| candidates.contains_key(&call);
    for late in possible {
        let send = &shard.sends.rows[late.row as usize];
        let complete = send.complete;
        let mut keep_latest = |of: &mut Vec<LateReceiver>, late: LateReceiver| {
            let position = *latest.entry(complete).or_insert(of.len());
            match of.get_mut(position) {
                None => of.push(late),
                Some(best) if best.waiting < late.waiting => *best = late,
                Some(_) => {}
            }
        };
        match trace.regions.class(trace.tree.region(shard.callpath(complete))) {
            RegionClass::DeviceMessage => {
                let kernel = (shard.location_of(&shard.sends, late.row), complete);
                let cause = (late.location, late.instance);
                let part = DevicePart::of_message(Metric::CclLateReceiver, kernel, late.waiting, cause, send.bytes);
                findings.device_parts.push(part);
            }
            _ if late.waiting == 0 => {}
            RegionClass::BlockingSend => counting.push(late),
            RegionClass::Wait if !is_candidate(complete) => counting.push(late),
            RegionClass::WaitMany if !is_candidate(complete) => keep_latest(&mut counting, late),
            RegionClass::Wait | RegionClass::WaitMany | RegionClass::SendAndReceive => {
                let waiting = late.waiting - candidates.get(&complete).copied().unwrap_or(0);
                if waiting > 0 && !limits.is_eager(late.is_local, send.bytes, late.protocol) {
                    keep_latest(&mut exchanges, LateReceiver { waiting, ..late });
                }
            }
            _ => {}
        }
    }
    counting.sort_unstable_by_key(|late| late.row);
    exchanges.sort_unstable_by_key(|late| late.row);

    let mut cells = Accumulator::new(&trace.tree);
    let properties = &trace.recording().anchor().properties;
    let has_inferred = properties.iter().any(|(name, _)| name == INFERRED_COMPLETIONS);
    let is_completion_inferred = |late: &LateReceiver| {
        let send = &shard.sends.rows[late.row as usize];
        has_inferred && send.complete != send.instance
    };
    let location_of = |late: &LateReceiver| {
        let complete = shard.sends.rows[late.row as usize].complete;
        shard.owner(shard.location_of(&shard.sends, late.row), complete)
    };
    each_location(&mut cells, &counting, location_of, |cells, late, here| {
        let send = &shard.sends.rows[late.row as usize];
        let callpath = shard.callpath(send.complete);
        cells.add(Metric::LateReceiver, callpath, late.waiting);
        let count = if send.bytes == 0 { Metric::LateReceiverSyncs } else { Metric::LateReceiverComms };
        cells.add(count, callpath, 1);
        let cause = (late.location, late.instance);
        let wait = WaitState::new(Metric::LateReceiver, (here, send.complete), late.waiting, cause);
        let is_inferred = is_completion_inferred(late);
        findings.waits.push(WaitState { is_inferred, ..wait });
        if is_inferred {
            findings.diagnostics.add(INFERRED, here, shard.enter(send.complete));
            findings.diagnostics.assume(INFERRED, late.waiting);
        }
    });
    each_location(&mut cells, &exchanges, location_of, |cells, late, here| {
        let complete = shard.sends.rows[late.row as usize].complete;
        cells.add(Metric::ExchangeLateReceiver, shard.callpath(complete), late.waiting);
        let cause = (late.location, late.instance);
        let wait = WaitState::new(Metric::ExchangeLateReceiver, (here, complete), late.waiting, cause);
        // That it needed its receiver, or that it completed the send.
        let is_inferred = late.protocol != Protocol::Rendezvous || is_completion_inferred(late);
        findings.waits.push(WaitState { is_inferred, ..wait });
        if is_completion_inferred(late) {
            findings.diagnostics.add(INFERRED, here, shard.enter(complete));
            findings.diagnostics.assume(INFERRED, late.waiting);
        }
    });
    findings.severities = cells.finish();
    findings
}

/// Passes on what is booked on the cells of a location, location by location.
fn each_location(
    cells: &mut Accumulator,
    of: &[LateReceiver],
    location: impl Fn(&LateReceiver) -> LocationId,
    mut book: impl FnMut(&mut Accumulator, &LateReceiver, LocationId),
) {
    for of_location in of.chunk_by(|a, b| location(a) == location(b)) {
        let here = location(&of_location[0]);
        for late in of_location {
            book(cells, late, here);
        }
        cells.end_location(here);
    }
}
