//! Molecular dynamics with the forces on a device: in each iteration, every rank runs a kernel as long as its load, and
//! an Allreduce.
//!
//! The host computes a little, launches the kernel, waits for it, and enters the Allreduce. Then the device waits for
//! the host, which waited for the rank with the largest load.
//!
//! ```text
//! load(rank) = work (1 + imbalance x^2), x = rank / (ranks - 1)       length of a kernel = load, up to whole waves
//! ```
//!
//! A device runs its blocks in waves. The last wave leaves multiprocessors idle, so the share of active ones (the
//! efficiency) drops: length x efficiency = load x efficiency of a warp.
//!
//! *Source*: D. Eberius, *Providing Insight into the Performance of Distributed Applications Through Low-Level
//! Metrics*, dissertation, University of Tennessee, 2020, chapter 4: `CoMD` over RAJA with one process per device.

use whywait_otf2::enums::Type;
use whywait_otf2::records::{MetricValues, TypedValue};
use whywait_otf2::{Event, Result};

use crate::collective::{CALL, Collective, GAP, Kind};
use crate::definitions::{EFFICIENCY, Region};
use crate::event_writer::EventWriter;
use crate::{Schedule, Start};

/// Ticks from the Enter of a launch to the begin of its kernel.
const LATENCY: i64 = 900;
/// Ticks from the end of a kernel to the Leave of the call that awaits it.
const COMPLETION: i64 = 200;
/// The host computes `1 / HOST` of the work before its kernel.
const HOST: i64 = 8;
/// Ticks of a wave of blocks.
const WAVE: i64 = 100_000;
/// Threads of a warp that are active, percent.
const WARP: f64 = 87.5;

pub(crate) struct Comd<'a> {
    start: &'a Start,
    /// The Allreduce at the end of each iteration.
    allreduces: Vec<Collective>,
}

/// The schedule of a rank in an iteration.
struct Times {
    begin: i64,
    /// Enter of the launch.
    launch: i64,
    /// Begin and end of the kernel.
    kernel: (i64, i64),
    /// Enter of the call that awaits it.
    await_it: i64,
    /// Enter of the Allreduce.
    collective: i64,
}

impl<'a> Comd<'a> {
    pub(crate) fn new(start: &'a Start) -> Self {
        let mut comd = Self { start, allreduces: Vec::new() };
        for number in 0..start.spec.iterations as usize {
            let allreduce = start.collective_in_loop(number, |rank| comd.times(rank, number).collective);
            comd.allreduces.push(allreduce);
        }
        comd
    }

    /// How long a kernel would run if all of its waves were full.
    fn load(&self, rank: u32) -> i64 {
        let place = f64::from(rank) / f64::from(self.start.ranks - 1);
        let work = f64::from(self.start.spec.work);
        (work * (1.0 + self.start.spec.imbalance * place * place)).round() as i64
    }

    /// How long a kernel runs.
    fn length(&self, rank: u32) -> i64 {
        (self.load(rank) + WAVE - 1) / WAVE * WAVE
    }

    fn begin(&self, rank: u32, number: usize) -> i64 {
        match number.checked_sub(1) {
            Some(before) => self.allreduces[before].leave(rank) + GAP,
            None => self.start.end(rank),
        }
    }

    fn times(&self, rank: u32, number: usize) -> Times {
        let begin = self.begin(rank, number);
        let launch = begin + i64::from(self.start.spec.work) / HOST + GAP;
        let kernel = (launch + LATENCY, launch + LATENCY + self.length(rank));
        Times { begin, launch, kernel, await_it: launch + CALL + GAP, collective: kernel.1 + COMPLETION + GAP }
    }
}

impl Schedule for Comd<'_> {
    fn write(&self, writer: &mut EventWriter<'_>, rank: u32) -> Result<()> {
        for (number, allreduce) in self.allreduces.iter().enumerate() {
            let times = self.times(rank, number);
            writer.enter(times.begin, Region::Compute)?;
            writer.leave(times.launch - GAP)?;
            writer.enter(times.launch, Region::Launch)?;
            writer.leave(times.launch + CALL)?;
            writer.enter(times.await_it, Region::DeviceSynchronize)?;
            writer.book("gpu_host_wait", times.kernel.1 - times.await_it);
            writer.book("gpu_host_completion", COMPLETION);
            writer.leave(times.kernel.1 + COMPLETION)?;
            allreduce.write(writer, &Kind::ALLREDUCE, rank, times.collective)?;
        }
        Ok(())
    }

    fn end(&self, rank: u32) -> i64 {
        self.begin(rank, self.allreduces.len()) - GAP
    }

    fn has_devices(&self) -> bool {
        true
    }

    fn write_device(&self, writer: &mut EventWriter<'_>, rank: u32) -> Result<()> {
        for number in 0..self.allreduces.len() {
            let Times { launch, kernel, .. } = self.times(rank, number);
            sample(writer, kernel.0, [0.0, 0.0])?;
            writer.enter(kernel.0, Region::Force)?;
            writer.book("gpu_launch_latency", LATENCY);
            // Before its first kernel a device is idle from the launch on.
            let before = number.checked_sub(1).map(|before| (self.times(rank, before), self.allreduces[before]));
            let idle_since = before.as_ref().map_or(launch, |(times, _)| times.kernel.1);
            writer.book("gpu_device_idle", kernel.0 - idle_since);
            writer.book("gpu_device_starved", launch - idle_since);
            if let Some((times, allreduce)) = before {
                writer.book("gpu_mpi_starved", allreduce.latest() - times.collective);
            }
            writer.leave(kernel.1)?;
            let active = 100.0 * self.load(rank) as f64 / self.length(rank) as f64;
            sample(writer, kernel.1, [active, WARP])?;
        }
        Ok(())
    }
}

/// Records the efficiencies since the last sample, percent.
fn sample(writer: &mut EventWriter<'_>, time: i64, values: [f64; 2]) -> Result<()> {
    let values = values.map(|value| TypedValue { kind: Type::DOUBLE, bits: value.to_bits() });
    writer.record(time, &Event::Metric { metric: EFFICIENCY, values: MetricValues::new(&values) })
}
