//! Molecular dynamics with the forces on a device: a rank and iteration has a kernel as long as its load, and an Allreduce.
//!
//! The host computes a little, launches the kernel, waits for it, and meets the others. Then the device waits for the host,
//! which waited for the rank with the largest load.
//!
//! *Source*: D. Eberius, *Providing Insight into the Performance of Distributed Applications Through Low-Level Metrics*,
//! dissertation, University of Tennessee, 2020, chapter 4: `CoMD` over RAJA with a process a device.

use whywait_otf2::Result;

use crate::definitions::Region;
use crate::meeting::{CALL, GAP, Kind, Meeting};
use crate::tape::Tape;
use crate::{Schedule, Start};

/// Ticks from the Enter of a launch to the begin of its kernel.
const LATENCY: i64 = 900;
/// Ticks from the end of a kernel to the Leave of the call that awaits it.
const COMPLETION: i64 = 200;
/// What part of a kernel's length the host computes before it.
const HOST: i64 = 8;

pub(crate) struct Comd<'a> {
    start: &'a Start,
    /// The Allreduce at the end of each iteration.
    allreduces: Vec<Meeting>,
}

/// When a rank does what in an iteration.
struct Times {
    begin: i64,
    /// Enter of the launch.
    launch: i64,
    /// Begin and end of the kernel.
    kernel: (i64, i64),
    /// Enter of the call that awaits it.
    await_it: i64,
    /// Enter of the Allreduce.
    meet: i64,
}

impl<'a> Comd<'a> {
    pub(crate) fn new(start: &'a Start) -> Self {
        let mut comd = Self { start, allreduces: Vec::new() };
        for number in 0..start.spec.iterations as usize {
            let allreduce = start.meet_in_loop(number, |rank| comd.times(rank, number).meet);
            comd.allreduces.push(allreduce);
        }
        comd
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
        let kernel = (launch + LATENCY, launch + LATENCY + self.start.work(rank, number as u64));
        Times { begin, launch, kernel, await_it: launch + CALL + GAP, meet: kernel.1 + COMPLETION + GAP }
    }
}

impl Schedule for Comd<'_> {
    fn play(&self, tape: &mut Tape<'_>, rank: u32) -> Result<()> {
        for (number, allreduce) in self.allreduces.iter().enumerate() {
            let times = self.times(rank, number);
            tape.enter(times.begin, Region::Compute)?;
            tape.leave(times.launch - GAP)?;
            tape.enter(times.launch, Region::Launch)?;
            tape.leave(times.launch + CALL)?;
            tape.enter(times.await_it, Region::DeviceSynchronize)?;
            tape.book("gpu_host_wait", times.kernel.1 - times.await_it);
            tape.book("gpu_host_completion", COMPLETION);
            tape.leave(times.kernel.1 + COMPLETION)?;
            allreduce.play(tape, &Kind::ALLREDUCE, rank, times.meet)?;
        }
        Ok(())
    }

    fn end(&self, rank: u32) -> i64 {
        self.begin(rank, self.allreduces.len()) - GAP
    }

    fn has_devices(&self) -> bool {
        true
    }

    fn play_device(&self, tape: &mut Tape<'_>, rank: u32) -> Result<()> {
        for number in 0..self.allreduces.len() {
            let Times { launch, kernel, .. } = self.times(rank, number);
            tape.enter(kernel.0, Region::Force)?;
            tape.book("gpu_launch_latency", LATENCY);
            // Before its first kernel a device is idle from the launch on.
            let before = number.checked_sub(1).map(|before| (self.times(rank, before), self.allreduces[before]));
            let idle_since = before.as_ref().map_or(launch, |(times, _)| times.kernel.1);
            tape.book("gpu_device_idle", kernel.0 - idle_since);
            tape.book("gpu_device_starved", launch - idle_since);
            if let Some((times, allreduce)) = before {
                tape.book("gpu_mpi_starved", allreduce.latest() - times.meet);
            }
            tape.leave(kernel.1)?;
        }
        Ok(())
    }
}
