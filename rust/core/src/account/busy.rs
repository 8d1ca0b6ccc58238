//! When the devices that a call awaits are busy.

use std::ops::Range;

use rustc_hash::FxHashMap;

use crate::Result;
use crate::ids::{InstanceId, LocationId};
use crate::parallel::exchange::Exchange;
use crate::waits::device::Devices;
use crate::waits::interval::{overlap, union};

/// The devices that each call awaits, and when they are busy.
#[derive(Debug, Default)]
pub(super) struct BusyWaits {
    /// Numbers of devices.
    awaited: FxHashMap<(LocationId, InstanceId), Vec<u32>>,
    /// When each device is busy: disjoint spans in the order of time.
    busy: FxHashMap<u32, Vec<Range<i64>>>,
}

impl BusyWaits {
    pub(super) fn new(devices: &[Devices]) -> Self {
        let mut awaited: FxHashMap<(LocationId, InstanceId), Vec<u32>> = FxHashMap::default();
        let mut runs: FxHashMap<u32, Vec<Range<i64>>> = FxHashMap::default();
        for devices in devices {
            let last = (0..).zip(&devices.synchronizations).filter_map(|(call, of_call)| Some((call, of_call.kernel?)));
            for (call, kernel) in devices.awaited.iter().copied().chain(last) {
                let call = devices.synchronizations[call as usize].call;
                let device = devices.kernels[kernel as usize].device;
                let of_call = awaited.entry((call.location, call.instance)).or_default();
                if !of_call.contains(&device) {
                    of_call.push(device);
                }
            }
            for kernel in &devices.kernels {
                runs.entry(kernel.device).or_default().push(kernel.run.enter..kernel.run.leave);
            }
        }
        let busy = runs.into_iter().map(|(device, runs)| (device, union(runs))).collect();
        Self { awaited, busy }
    }

    /// When a device is busy: disjoint spans in the order of time.
    pub(super) fn of(&self, device: u32) -> &[Range<i64>] {
        self.busy.get(&device).map_or(&[], Vec::as_slice)
    }

    /// When any device of the run is busy: disjoint spans in the order of time. Collective.
    pub(super) fn any(&self, exchange: &Exchange) -> Result<Vec<Range<i64>>> {
        let own = union(self.busy.values().flatten().cloned().collect());
        let own: Vec<(i64, i64)> = own.into_iter().map(|span| (span.start, span.end)).collect();
        let all = exchange.allgather(own)?;
        Ok(union(all.into_iter().flatten().map(|(start, end)| start..end).collect()))
    }

    /// The ticks of a span in which a device that a call awaits is busy.
    pub(super) fn ticks(&self, call: (LocationId, InstanceId), span: &Range<i64>) -> i64 {
        let near = |device: &u32| {
            let busy = self.of(*device);
            let first = busy.partition_point(|busy| busy.end <= span.start);
            busy[first..].iter().take_while(|busy| busy.start < span.end)
        };
        match self.awaited.get(&call).map_or(&[][..], Vec::as_slice) {
            [device] => near(device).map(|busy| overlap(span, busy.clone())).sum(),
            devices => {
                let all = union(devices.iter().flat_map(near).cloned().collect());
                all.into_iter().map(|busy| overlap(span, busy)).sum()
            }
        }
    }
}
