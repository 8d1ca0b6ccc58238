//! Synchronization points of hosts and devices: launches, and calls that await kernels.
//!
//! | wait | the waiting point | the causing point | time of the calls after the synchronization |
//! |---|---|---|---|
//! | of a host for a device | Leave of the call | behind the kernel | all that is not waiting; nothing |
//! | of a device for a host | ahead of the kernel | behind the Enter of the launch | all of both |
//!
//! A kernel that began with its launch, without queueing behind another, synchronizes stream and host even if the
//! device was not idle: the work of the host before the launch cannot cause later waits. A kernel that began when a
//! kernel on another stream ended synchronizes the two streams: what it waited since its launch passes the costs of
//! later waits on, but has none itself, because the device is busy.
//!
//! Kernels that wait for those of other devices are pairs, too; if there are any, the costs of all of these are those of local
//! chains.
//!
//! *Source*: accelerators.md.

use super::awaited;
use super::points::SyncPoints;
use super::points::{Anchor, Place, Relation, SyncPoint};
use super::states::States;
use crate::ids::CommId;
use crate::schema::Class;
use crate::severity::Metric;
use crate::trace::{NONE, Shard};
use crate::waits::device::{Devices, Kernel, Span, StartCause};

/// `relation` is that of hosts and devices: where devices of any rank wait for each other, what a rank waits for inside is a link
/// of its chain.
pub(super) fn collect(
    shard: &Shard,
    (devices, relation): (&Devices, Relation),
    states: &mut States,
    sync_points: &mut SyncPoints,
) {
    for kernel in &devices.kernels {
        let begun = match kernel.start_cause {
            StartCause::Unknown => continue,
            StartCause::Launched => kernel.launch.map(|launch| {
                let state = states.find(Metric::GpuDeviceStarved, kernel.run.instance);
                (Class::GpuDevice, kernel.starved, state, anchor(&launch, Place::Begin), launch.enter)
            }),
            StartCause::After(other) => {
                let other = &devices.kernels[other as usize].run;
                let is_other = other.location != kernel.run.location;
                is_other.then(|| (Class::GpuTurn, kernel.turn, NONE, anchor(other, Place::Behind), other.leave))
            }
        };
        if let Some((class, waiting, state, cause, since)) = begun {
            sync_points.pairs.push(SyncPoint {
                class,
                relation,
                comm: CommId::NONE,
                waiter: anchor(&kernel.run, Place::Ahead),
                cause,
                waiting,
                held: since - kernel.run.enter,
                completion: 0,
                cause_completion: (shard.leave(cause.instance) - since).max(0),
                state,
            });
        }
    }
    for synchronization in &devices.synchronizations {
        let Some(Kernel { run, .. }) = synchronization.kernel.map(|kernel| &devices.kernels[kernel as usize]) else {
            continue;
        };
        let number = sync_points.pairs.len() as u32;
        awaited::of_call(shard, devices, synchronization).for_each(|work| sync_points.awaited.push(number, work));
        sync_points.pairs.push(SyncPoint {
            class: Class::GpuHost,
            relation,
            comm: CommId::NONE,
            waiter: anchor(&synchronization.call, Place::Leave),
            cause: anchor(run, Place::Behind),
            waiting: synchronization.waiting,
            held: synchronization.waiting,
            completion: synchronization.completion,
            cause_completion: 0,
            state: states.find(Metric::GpuHostWait, synchronization.call.instance),
        });
    }
    for part in devices.parts.iter().filter(|part| part.waiting > 0) {
        sync_points.pairs.push(SyncPoint {
            class: Class::Ccl,
            relation,
            comm: CommId::NONE,
            waiter: Anchor::new(part.kernel, Place::Leave),
            cause: Anchor::new(part.cause, Place::Begin),
            waiting: part.waiting,
            held: part.waiting,
            completion: 0,
            cause_completion: 0,
            state: states.find(part.kind, part.kernel.1),
        });
    }
}

fn anchor(span: &Span, place: Place) -> Anchor {
    let instance = if place == Place::Behind { span.last } else { span.instance };
    Anchor::new((span.location, instance), place)
}
