//! Wait states in one-sided communication: one file per family of patterns.
//!
//! All times are Enter and Leave of calls, never time stamps of records: most records repeat the stamp before them.
//!
//! *Source*: specification.md#one-sided-communication; thesis, chapter 3. Where the definitions leave a choice,
//! docs/one-sided.md says how it is made.

pub(crate) mod activities;
pub mod fence;
pub mod gats;
pub mod lock;
pub mod notification;
mod operations;
pub mod progress;
mod shard_waits;
mod typical;
pub mod wait_until;

use crate::Result;
use crate::diagnostics::Diagnostics;
use crate::matching::epochs::Epochs;
use crate::parallel::iter::prelude::*;
use crate::trace::Trace;
use crate::waits::Findings;
use crate::waits::collective_sync::CollectiveSync;
use shard_waits::Waits;

/// The findings in one-sided communication; one entry per shard.
#[derive(Debug, Default)]
pub struct OneSided {
    /// Wait states, severities, inconsistencies.
    pub findings: Vec<Findings>,
    /// Epochs.
    pub epochs: Vec<Epochs>,
    /// Synchronizations in collective operations on windows.
    pub collective_syncs: Vec<Vec<CollectiveSync>>,
}

/// Detects all wait states of one-sided communication, given its epochs and the findings in messages, and on request
/// the synchronizations of collective calls. With `thesis_pairs`, needed pairs of fences count in both directions, and
/// MPI calls that synchronize with passive targets have pairs, as in the thesis.
pub fn detect(
    trace: &Trace,
    mut epochs: Vec<Epochs>,
    messages: &[Findings],
    (with_meetings, thesis_pairs): (bool, bool),
) -> Result<(OneSided, Diagnostics)> {
    let mut diagnostics = Diagnostics::default();
    for epochs in &mut epochs {
        diagnostics.merge(std::mem::take(&mut epochs.diagnostics));
    }
    let mut waits: Vec<Waits> = trace.shards.iter().map(|_| Waits::default()).collect();
    diagnostics.merge(fence::detect(trace, &epochs, &mut waits, (with_meetings, thesis_pairs))?);
    gats::detect(trace, &epochs, &mut waits)?;
    let (contentions, lock_notes) = lock::detect(trace, &epochs)?;
    diagnostics.merge(lock_notes);
    progress::detect(trace, &epochs, &contentions, messages, &mut waits)?;
    wait_until::detect(trace, &epochs, &mut waits)?;
    notification::detect(trace, &epochs, &mut waits)?;
    for ((shard, epochs), waits) in trace.shards.iter().zip(&epochs).zip(&mut waits) {
        waits.count_passive_syncs(trace, shard, epochs, thesis_pairs);
    }
    let collective_syncs = waits.iter_mut().map(|waits| std::mem::take(&mut waits.collective_syncs)).collect();
    let findings = trace.par_shards().zip(waits).map(|(shard, waits)| waits.book(trace, shard)).collect();
    Ok((OneSided { findings, epochs, collective_syncs }, diagnostics))
}
