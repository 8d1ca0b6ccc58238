//! Wait states: one file per family of patterns, with the definition, formula, guards, and source of each.
//!
//! The stage that calls a family passes what it needs from other shards: matched messages ([`late_sender`],
//! [`late_receiver`]), instances of collective operations ([`collective`]), epochs ([`rma`]). Families that need only
//! their own shard are listed in [`OF_ONE_SHARD`].

pub mod collective;
pub mod collective_sync;
pub mod counts;
pub mod device;
pub mod interval;
pub mod late_receiver;
pub mod late_sender;
pub mod longest;
pub mod rma;
pub mod threads;

use bitcode::{Decode, Encode};
use rayon::prelude::*;

use crate::ids::{InstanceId, LocationId};
use crate::per_shard::PerShard;
use crate::schema::MetricSet;
use crate::severity::Metric;
use crate::trace::{Shard, Trace};

/// Detectors that need only the events of one shard.
pub const OF_ONE_SHARD: &[fn(&Trace, &Shard) -> Findings] = &[counts::book, threads::detect];

/// For each metric number, whether any wait state is of this kind.
#[must_use]
pub fn kinds(waits: &PerShard<WaitState>) -> Vec<bool> {
    let shards: Vec<&[WaitState]> = waits.of_shards().collect();
    let marks = shards.into_par_iter().map(|waits| Metric::marked(waits.iter().map(|wait| wait.kind)));
    marks.reduce(|| Metric::marked([]), |a, b| a.into_iter().zip(b).map(|(a, b)| a || b).collect())
}

/// A call in which a location idles for a remote event.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Encode, Decode)]
pub struct WaitState {
    /// The pattern, by the metric that it is booked on.
    pub kind: Metric,
    /// Index of the waiting location.
    pub location: LocationId,
    /// Region instance of the waiting call, in the shard of the location.
    pub instance: InstanceId,
    /// Waiting time, ticks.
    pub waiting: i64,
    /// The location that causes the waiting, if known.
    pub cause_location: LocationId,
    /// The region instance that causes the waiting, in the shard of that location, if known.
    pub cause_instance: InstanceId,
    /// For a call that waited for a lock or for progress: which of the two came last.
    pub last: LimitingFactor,
}

/// The last factor of a wait whose call can wait for two things in turn.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default, Encode, Decode)]
pub enum LimitingFactor {
    /// There is only one.
    #[default]
    Only,
    /// The release of a lock.
    Contention,
    /// Progress at a target.
    Progress,
}

impl LimitingFactor {
    /// Name in tables; none if there is only one.
    #[must_use]
    pub fn name(self) -> Option<&'static str> {
        match self {
            Self::Only => None,
            Self::Contention => Some("contention"),
            Self::Progress => Some("progress"),
        }
    }
}

impl WaitState {
    /// A call waits for another call, given as location and region instance.
    #[must_use]
    pub fn new(kind: Metric, call: (LocationId, InstanceId), waiting: i64, cause: (LocationId, InstanceId)) -> Self {
        let ((location, instance), (cause_location, cause_instance)) = (call, cause);
        Self { kind, location, instance, waiting, cause_location, cause_instance, last: LimitingFactor::Only }
    }

    /// A wait without a cause (completion times).
    #[must_use]
    pub fn without_cause(kind: Metric, call: (LocationId, InstanceId), waiting: i64) -> Self {
        Self::new(kind, call, waiting, (LocationId::NONE, InstanceId::NONE))
    }
}

/// The findings of a stage in one shard.
#[derive(Debug, Default)]
pub struct Findings {
    /// Contributions to severities.
    pub severities: Vec<crate::severity::Severity>,
    /// Wait states of the shard's locations.
    pub waits: Vec<WaitState>,
    /// Inconsistencies of the trace.
    pub diagnostics: crate::diagnostics::Diagnostics,
}

impl Findings {
    /// Adds the findings of a later stage.
    pub fn merge(&mut self, later: Findings) {
        append(&mut self.severities, later.severities);
        append(&mut self.waits, later.waits);
        self.diagnostics.merge(later.diagnostics);
    }
}

/// Appends rows without moving the existing ones, where possible.
fn append<T>(rows: &mut Vec<T>, mut later: Vec<T>) {
    if rows.capacity() == 0 {
        *rows = later;
    } else {
        rows.append(&mut later);
    }
}
