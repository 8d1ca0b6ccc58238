//! Epochs of post, start, complete, wait: which exposure epoch an access epoch meets at each target, and the other way round.
//!
//! By window and pair of processes, the n-th access epoch of the origin that names the target meets the n-th exposure epoch of
//! the target that names the origin. What accesses a target needs its post, and the wait of a target needs the complete of
//! each origin: wait states, constraints of clocks, the simulator and cuts take these pairs from here.
//!
//! *Source*: thesis, section 3.3.1.

use bitcode::{Decode, Encode};

use super::epochs::{Access, Epochs, Exposure};
use super::fifo::Fifo;
use crate::Result;
use crate::ids::{InstanceId, LocationId, ProcessId, WindowId};
use crate::parallel::iter::prelude::*;
use crate::trace::{Shard, Trace};

/// An exposure epoch, for one of its origins.
#[derive(Clone, Copy, Debug, Encode, Decode)]
pub(crate) struct Posted {
    window: WindowId,
    origin: ProcessId,
    /// Process that posts.
    pub(crate) target: ProcessId,
    /// Location and region instance of the post, and its Enter, ticks.
    pub(crate) post: (LocationId, InstanceId),
    pub(crate) enter: i64,
    /// Region instance of the wait; none if it is missing.
    pub(crate) wait: InstanceId,
}

/// An access epoch, for one of its targets.
#[derive(Clone, Copy, Debug, Encode, Decode)]
pub(crate) struct Accessed {
    window: WindowId,
    target: ProcessId,
    /// Process that accesses.
    pub(crate) origin: ProcessId,
    /// Location and region instance of complete, and its Enter, ticks; the instance is none if it is missing.
    pub(crate) complete: (LocationId, InstanceId),
    pub(crate) enter: i64,
    /// Leave of the last operation on the target, ticks; `i64::MIN` without any.
    pub(crate) last_operation: i64,
}

/// For each epoch of a shard, its partner at each member of its group; none where the trace has no such epoch.
#[derive(Debug)]
pub(crate) struct Partners<T> {
    offsets: Vec<u32>,
    rows: Vec<Option<T>>,
}

impl<T: Copy> Partners<T> {
    /// Takes the partners of epochs, given by window, own process and group, in their order.
    fn new<'a>(
        mut found: Fifo<'_, (WindowId, ProcessId, ProcessId), T>,
        epochs: impl Iterator<Item = (WindowId, ProcessId, &'a [ProcessId])>,
    ) -> Self {
        let mut partners = Self { offsets: vec![0], rows: Vec::new() };
        for (window, process, group) in epochs {
            partners.rows.extend(group.iter().map(|&other| found.take(&(window, process, other)).copied()));
            partners.offsets.push(partners.rows.len() as u32);
        }
        partners
    }

    /// Those of an epoch, in the order of its group.
    pub(crate) fn of(&self, epoch: usize) -> &[Option<T>] {
        &self.rows[self.offsets[epoch] as usize..self.offsets[epoch + 1] as usize]
    }
}

/// For each access epoch the exposure epochs of its targets, by shard. Collective.
pub(crate) fn exposures(trace: &Trace, epochs: &[Epochs]) -> Result<Vec<Partners<Posted>>> {
    let post = |(shard, epochs): (&Shard, &Epochs)| {
        let mut outbox = trace.exchange.outbox();
        for exposure in &epochs.exposures {
            let Exposure { process: target, window, wait, .. } = *exposure;
            let (post, enter) = ((exposure.location, exposure.post), shard.enter(exposure.post));
            for &origin in trace.definitions.group_members(exposure.group, &exposure.process) {
                outbox.push(trace.owner(origin), Posted { window, origin, target, post, enter, wait });
            }
        }
        outbox
    };
    let posted = trace.exchange.alltoallv(trace.par_shards().zip(epochs).map(post).collect())?;
    let partners = posted.into_par_iter().zip(epochs).map(|(posted, epochs)| {
        let posted = Fifo::new(posted.rows(), |posted| (posted.window, posted.origin, posted.target));
        let accesses = epochs.accesses.iter().map(|access| {
            let group = trace.definitions.group_members(access.group, &access.process);
            (access.window, access.process, group)
        });
        Partners::new(posted, accesses)
    });
    Ok(partners.collect())
}

/// For each exposure epoch the access epochs of its origins, by shard. Collective.
pub(crate) fn accesses(trace: &Trace, epochs: &[Epochs]) -> Result<Vec<Partners<Accessed>>> {
    let end = |(shard, epochs): (&Shard, &Epochs)| {
        let mut outbox = trace.exchange.outbox();
        // Leave of the last operation on each member of the group.
        let mut last: Vec<i64> = Vec::new();
        for (position, access) in epochs.accesses.iter().enumerate() {
            let Access { process: origin, window, .. } = *access;
            let group = trace.definitions.group_members(access.group, &access.process);
            last.clear();
            last.resize(group.len(), i64::MIN);
            for &row in epochs.of_access.of(position) {
                let operation = &shard.operations.rows[row as usize];
                if let Ok(member) = group.binary_search(&operation.target) {
                    last[member] = last[member].max(shard.leave(operation.instance));
                }
            }
            let complete = (access.location, access.complete);
            let enter = if access.complete.is_none() { i64::MIN } else { shard.enter(access.complete) };
            for (&target, &last_operation) in group.iter().zip(&last) {
                let accessed = Accessed { window, target, origin, complete, enter, last_operation };
                outbox.push(trace.owner(target), accessed);
            }
        }
        outbox
    };
    let accessed = trace.exchange.alltoallv(trace.par_shards().zip(epochs).map(end).collect())?;
    let partners = accessed.into_par_iter().zip(epochs).map(|(accessed, epochs)| {
        let accessed = Fifo::new(accessed.rows(), |accessed| (accessed.window, accessed.target, accessed.origin));
        let exposures = epochs.exposures.iter().map(|exposure| {
            let group = trace.definitions.group_members(exposure.group, &exposure.process);
            (exposure.window, exposure.process, group)
        });
        Partners::new(accessed, exposures)
    });
    Ok(partners.collect())
}
