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
//! *Source*: accelerators.md.

use super::points::SyncPoints;
use super::points::{Anchor, Place, Relation, SyncPoint};
use super::states::States;
use crate::ids::CommId;
use crate::schema::Class;
use crate::severity::Metric;
use crate::trace::{NONE, Shard};
use crate::waits::device::{Devices, Kernel, Span, StartCause};

pub(super) fn collect(shard: &Shard, devices: &Devices, states: &mut States, sync_points: &mut SyncPoints) {
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
                relation: Relation::Device,
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
        sync_points.pairs.push(SyncPoint {
            class: Class::GpuHost,
            relation: Relation::Device,
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
}

fn anchor(span: &Span, place: Place) -> Anchor {
    let instance = if place == Place::Behind { span.last } else { span.instance };
    Anchor::new((span.location, instance), place)
}
