//! A wait state: who waits how long for what.

use bitcode::{Decode, Encode};

use crate::ids::{InstanceId, LocationId};
use crate::parallel::iter::prelude::*;
use crate::parallel::per_shard::PerShard;
use crate::schema::{Class, MetricSet, Pattern};
use crate::severity::Metric;

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
    /// Whether only the order of releases tells who caused it (matching/ownership.rs).
    pub is_inferred: bool,
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
    pub fn new(kind: Metric, call: (LocationId, InstanceId), waiting: i64, cause: (LocationId, InstanceId)) -> Self {
        let ((location, instance), (cause_location, cause_instance)) = (call, cause);
        let last = LimitingFactor::Only;
        Self { kind, location, instance, waiting, cause_location, cause_instance, last, is_inferred: false }
    }

    /// Whether a call waits for a message: its send, or its receive.
    pub fn is_for_message(&self) -> bool {
        Pattern::class_of(self.kind).is_some_and(Class::is_message)
    }

    /// Whether a device waits for another one.
    pub fn is_of_devices(&self) -> bool {
        Pattern::of(self.kind).is_some_and(Pattern::is_of_devices)
    }

    /// A wait without a cause (completion times).
    pub fn without_cause(kind: Metric, call: (LocationId, InstanceId), waiting: i64) -> Self {
        Self::new(kind, call, waiting, (LocationId::NONE, InstanceId::NONE))
    }
}

/// For each metric number, whether any wait state is of this kind.
pub fn kinds(waits: &PerShard<WaitState>) -> Vec<bool> {
    let shards: Vec<&[WaitState]> = waits.of_shards().collect();
    let marks = shards.into_par_iter().map(|waits| Metric::marked(waits.iter().map(|wait| wait.kind)));
    marks.reduce(|| Metric::marked([]), |a, b| a.into_iter().zip(b).map(|(a, b)| a || b).collect())
}
