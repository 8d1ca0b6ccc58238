//! When a message arrives, as others of its class tell.
//!
//! Of a call that completes receives, Z is the latest start of a transfer: s of an eager message, max(s, q) of one that
//! goes by rendezvous. The lower median of `L - Z` over the calls with `Z > E` says how long a message of a class
//! (locality, size, protocol) lasts until its receive is left; the minimum of `L - E` over those with `Z <= E` what a
//! call of a class (kind, number and size of messages) takes anyway. The difference is the transfer.
//!
//! *Source*: whatif.md#how-it-works; counters.md#counters-of-messages-and-queues.

use rayon::prelude::*;
use rustc_hash::FxHashMap;

use super::Message;
use crate::Result;
use crate::ids::RegionKey;
use crate::trace::{Shard, Trace};

/// Classes with fewer samples say nothing.
const SAMPLES: usize = 5;

/// Locality and protocol (two bits), size.
type TransferClass = u16;
/// Region, number of messages, largest size.
type CallClass = (RegionKey, u16, u16);

/// Numbers and sizes by power of two, and 0.
fn power(number: u64) -> u16 {
    (u64::BITS - number.leading_zeros()) as u16
}

fn transfer_class(message: &Message, eager: bool) -> TransferClass {
    (power(message.bytes) << 2) | (u16::from(message.is_local) << 1) | u16::from(eager)
}

/// Samples of one shard, or of all.
#[derive(Default)]
struct Samples {
    transfers: FxHashMap<TransferClass, Vec<i64>>,
    /// Number, and the least.
    calls: FxHashMap<CallClass, (usize, i64)>,
}

/// The same, on its way to other processes.
type Encoded = (Vec<(TransferClass, Vec<i64>)>, Vec<(CallClass, (usize, i64))>);

impl Samples {
    fn transfers(&mut self, class: TransferClass, samples: Vec<i64>) {
        self.transfers.entry(class).or_default().extend(samples);
    }

    fn calls(&mut self, class: CallClass, (number, least): (usize, i64)) {
        let samples = self.calls.entry(class).or_insert((0, i64::MAX));
        samples.0 += number;
        samples.1 = samples.1.min(least);
    }
}

/// Sets the arrivals of all messages.
pub(super) fn estimate(
    trace: &Trace,
    messages: &mut [Vec<Message>],
    is_eager: impl Fn(&Message) -> bool + Sync,
) -> Result<()> {
    let of_shards = messages.par_iter().zip(&trace.shards).map(|(messages, shard)| {
        let mut samples = Samples::default();
        for call in messages.chunk_by(|a, b| a.instance == b.instance) {
            sample(trace, shard, call, &is_eager, &mut samples);
        }
        (samples.transfers.into_iter().collect(), samples.calls.into_iter().collect())
    });
    let mut all = Samples::default();
    for (transfers, calls) in trace.exchange.allgather(of_shards.collect::<Vec<Encoded>>())?.into_iter().flatten() {
        for (class, samples) in transfers {
            all.transfers(class, samples);
        }
        for (class, samples) in calls {
            all.calls(class, samples);
        }
    }
    let medians: FxHashMap<TransferClass, i64> = all.transfers.into_iter().filter_map(median).collect();
    messages.par_iter_mut().zip(&trace.shards).for_each(|(messages, shard)| {
        for call in messages.chunk_by_mut(|a, b| a.instance == b.instance) {
            let least = all.calls.get(&call_class(trace, shard, call)).filter(|(number, _)| *number >= SAMPLES);
            for message in call {
                if let (Some((_, least)), Some(median)) =
                    (least, medians.get(&transfer_class(message, is_eager(message))))
                {
                    message.arrival = (message.sent + (median - least).max(0)).min(message.completed.1);
                }
            }
        }
    });
    Ok(())
}

fn median((class, mut samples): (TransferClass, Vec<i64>)) -> Option<(TransferClass, i64)> {
    let middle = samples.len().checked_sub(1)? / 2;
    (samples.len() >= SAMPLES).then(|| (class, *samples.select_nth_unstable(middle).1))
}

fn call_class(trace: &Trace, shard: &Shard, call: &[Message]) -> CallClass {
    let region = trace.tree.region(shard.callpath(call[0].instance));
    let largest = call.iter().map(|message| power(message.bytes)).max().unwrap_or(0);
    (region, power(call.len() as u64), largest)
}

/// Takes the sample of a call that completes receives.
fn sample(trace: &Trace, shard: &Shard, call: &[Message], is_eager: impl Fn(&Message) -> bool, samples: &mut Samples) {
    let (enter, leave) = call[0].completed;
    let start = |message: &Message| message.sent.max(if is_eager(message) { i64::MIN } else { message.posted });
    // Of equally late ones the first.
    let Some(latest) = call.iter().rev().max_by_key(|message| start(message)) else { return };
    let since = start(latest);
    if since > enter {
        samples.transfers.entry(transfer_class(latest, is_eager(latest))).or_default().push((leave - since).max(0));
    } else {
        samples.calls(call_class(trace, shard, call), (1, leave - enter));
    }
}
