//! Estimates when a message arrives, from other messages of its class.
//!
//! For a call that completes receives, let Z be the latest start of a transfer: s for an eager message, max(s, q) for
//! rendezvous. The lower median of `L - Z` over the calls with `Z > E` is the time from the start of a transfer to the
//! Leave, by class of message (locality, size, protocol). The minimum of `L - E` over the calls with `Z <= E` is the
//! overhead of a call, by class of call (kind, number and size of messages). The difference is the transfer time.
//!
//! *Source*: whatif.md#how-it-works; counters.md#counters-of-messages-and-queues.

use rustc_hash::FxHashMap;

use super::message::{Message, calls, posted};
use crate::Result;
use crate::ids::{InstanceId, RegionKey};
use crate::matching::protocol::Limits;
use crate::parallel::iter::prelude::*;
use crate::trace::{Shard, Trace};

/// Classes with fewer samples give no estimate.
const SAMPLES: usize = 5;

/// Locality and protocol (two bits), size.
type TransferClass = u16;
/// Number of classes: sizes are powers of two, and 0.
const TRANSFER_CLASSES: usize = (u64::BITS as usize + 1) << 2;
/// Region, number of messages, largest size.
type CallClass = (RegionKey, u16, u16);

/// Numbers and sizes by power of two, and 0.
fn power(number: u64) -> u16 {
    (u64::BITS - number.leading_zeros()) as u16
}

fn transfer_class(message: &Message, is_eager: bool) -> TransferClass {
    (power(message.bytes) << 2) | (u16::from(message.is_local) << 1) | u16::from(is_eager)
}

/// The class of a call by the receives that it completes; `None` if none of them is matched.
fn call_class(trace: &Trace, shard: &Shard, call: InstanceId, completed: &[Option<Message>]) -> Option<CallClass> {
    let (mut number, mut largest) = (0, 0);
    for message in completed.iter().flatten() {
        (number, largest) = (number + 1, largest.max(message.bytes));
    }
    (number > 0).then(|| (trace.tree.region(shard.callpath(call)), power(number), power(largest)))
}

/// Samples of one shard, or of all.
struct Samples {
    /// By class.
    transfers: Vec<Vec<i64>>,
    /// Number of samples, and the minimum.
    calls: FxHashMap<CallClass, (usize, i64)>,
    /// Cache of the latest class, which is usually that of the next call.
    latest: Option<(CallClass, (usize, i64))>,
}

/// The same, on its way to other processes.
type Encoded = (Vec<(TransferClass, Vec<i64>)>, Vec<(CallClass, (usize, i64))>);

impl Samples {
    fn new() -> Self {
        Self { transfers: vec![Vec::new(); TRANSFER_CLASSES], calls: FxHashMap::default(), latest: None }
    }

    fn calls(&mut self, class: CallClass, (number, least): (usize, i64)) {
        let samples = self.calls.entry(class).or_insert((0, i64::MAX));
        samples.0 += number;
        samples.1 = samples.1.min(least);
    }

    /// Adds a call.
    #[inline]
    fn call(&mut self, class: CallClass, length: i64) {
        match &mut self.latest {
            Some((latest, (number, least))) if *latest == class => {
                *number += 1;
                *least = (*least).min(length);
            }
            latest => {
                if let Some((class, samples)) = latest.replace((class, (1, length))) {
                    self.calls(class, samples);
                }
            }
        }
    }

    /// Adds the samples of a shard's calls.
    fn of_shard(trace: &Trace, shard: &Shard, messages: &[Option<Message>], limits: Limits) -> Self {
        let mut samples = Self::new();
        for i in 0..shard.locations.len() {
            for (call, rows) in calls(shard, i) {
                let Some(class) = call_class(trace, shard, call, &messages[rows.clone()]) else { continue };
                // On a tie, the first one.
                let mut latest = (i64::MIN, 0);
                for (row, request) in posted(shard, rows) {
                    let Some(message) = &messages[row] else { continue };
                    let is_eager = message.is_eager(limits);
                    let start = if is_eager { message.sent } else { message.sent.max(shard.enter(request)) };
                    if start > latest.0 {
                        latest = (start, transfer_class(message, is_eager));
                    }
                }
                let (enter, leave) = (shard.enter(call), shard.leave(call));
                let (start, of_latest) = latest;
                if start > enter {
                    samples.transfers[usize::from(of_latest)].push((leave - start).max(0));
                } else {
                    samples.call(class, leave - enter);
                }
            }
        }
        samples
    }

    fn encode(mut self) -> Encoded {
        if let Some((class, samples)) = self.latest.take() {
            self.calls(class, samples);
        }
        let transfers = (0..).zip(self.transfers).filter(|(_, samples)| !samples.is_empty());
        (transfers.collect(), self.calls.into_iter().collect())
    }
}

/// Overhead of calls of a class, if known.
pub(super) type OfCalls = (CallClass, Option<i64>);

/// Estimated transfer times.
pub(super) struct Estimate {
    /// Until the receive is left, by class of the message.
    transfers: Vec<Option<i64>>,
    /// Overhead of calls, by class.
    calls: FxHashMap<CallClass, i64>,
}

impl Estimate {
    /// Estimates times from the messages of all shards.
    pub(super) fn new(trace: &Trace, messages: &[Vec<Option<Message>>], limits: Limits) -> Result<Self> {
        let of_shards = messages.par_iter().zip(trace.par_shards());
        let of_shards = of_shards.map(|(messages, shard)| Samples::of_shard(trace, shard, messages, limits).encode());
        let mut all = Samples::new();
        for (transfers, calls) in trace.exchange.allgather(of_shards.collect::<Vec<_>>())?.into_iter().flatten() {
            for (class, samples) in transfers {
                all.transfers[usize::from(class)].extend(samples);
            }
            for (class, samples) in calls {
                all.calls(class, samples);
            }
        }
        let calls = all.calls.into_iter().filter(|(_, (number, _))| *number >= SAMPLES);
        Ok(Self {
            transfers: all.transfers.into_par_iter().map(median).collect(),
            calls: calls.map(|(class, (_, least))| (class, least)).collect(),
        })
    }

    /// Overhead of a call that completes receives, if known; `latest` is the result for the previous call.
    #[inline]
    pub(super) fn of_call(
        &self,
        (trace, shard): (&Trace, &Shard),
        call: InstanceId,
        completed: &[Option<Message>],
        latest: &mut Option<OfCalls>,
    ) -> Option<i64> {
        let class = call_class(trace, shard, call, completed)?;
        match latest {
            Some((of, least)) if *of == class => *least,
            _ => {
                let least = self.calls.get(&class).copied();
                *latest = Some((class, least));
                least
            }
        }
    }

    /// Transfer time of a message, completed by a call with the overhead `least`.
    #[inline]
    pub(super) fn of_message(&self, message: &Message, is_eager: bool, least: Option<i64>) -> i64 {
        match (self.transfers[usize::from(transfer_class(message, is_eager))], least) {
            (Some(median), Some(least)) => (median - least).max(0),
            _ => 0,
        }
    }
}

fn median(mut samples: Vec<i64>) -> Option<i64> {
    let middle = samples.len().checked_sub(1)? / 2;
    (samples.len() >= SAMPLES).then(|| *samples.select_nth_unstable(middle).1)
}
