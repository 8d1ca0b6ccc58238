//! Accelerators: waiting of hosts for devices, and of devices for hosts.
//!
//! [`super`] says what stands in a row.

macro_rules! devices {
    ([$next:ident $($rest:ident)*] $($before:tt)*) => { $next! { [$($rest)*] $($before)*
        /// Time a call waited for a kernel or a copy of a device to end.
        GpuHostWait = "gpu_host_wait" {
            display_name: "Host Waits for Device",
            below: "gpu_host",
            waits_for: "for a device to end what it runs",
            look_at: "The kernels that the call awaits, and what the host could do while they run.",
            paradigm: Paradigm::Gpu,
            class: Some(Class::GpuHost),
            document: "gpu",
            source: "accelerators.md; D. Eberius 2020, chapter 2 (CASITA): idle host",
            ..WAIT
        },
        /// Time in calls that wait for devices after what they await had ended.
        GpuHostCompletion = "gpu_host_completion" {
            display_name: "Completion",
            below: "gpu_host",
            waits_for: "for calls that synchronize with a device to return",
            look_at: "How often the host synchronizes: each call costs, even if the device has nothing to do.",
            paradigm: Paradigm::Gpu,
            position: Position::End,
            is_balanced_away: false,
            document: "gpu",
            source: "accelerators.md",
            ..WAIT
        },
        /// Time before kernels in which their device had nothing to run.
        GpuDeviceIdle = "gpu_device_idle",
        /// Time a device had nothing to run because the host had not launched its next kernel yet.
        GpuDeviceStarved = "gpu_device_starved" {
            display_name: "Device Starved",
            below: "gpu_device_idle",
            waits_for: "for the host to launch the next kernel",
            look_at: "What the host does before the launch: whether it could come later, or the launch earlier.",
            paradigm: Paradigm::Gpu,
            class: Some(Class::GpuDevice),
            position: Position::AheadOfLatency,
            document: "gpu",
            source: "accelerators.md; D. Eberius 2020, chapter 2 (CASITA): idle device",
            ..WAIT
        },
        /// The part of Device Starved in which the host waited for other processes in MPI.
        GpuMpiStarved = "gpu_mpi_starved" {
            display_name: "While the Host Waits in MPI",
            below: "gpu_device_starved",
            paradigm: Paradigm::Gpu,
            part_of: Some(Metric::GpuDeviceStarved),
            position: Position::BeginOfWhole,
            document: "gpu",
            source: "accelerators.md",
            ..PART
        },
        /// Time from the launch of a kernel to its begin while its device had nothing to run.
        GpuLaunchLatency = "gpu_launch_latency" {
            display_name: "Launch Latency",
            below: "gpu_device_idle",
            waits_for: "for launched kernels to begin",
            look_at: "How long kernels are: short ones are not worth their launch. Launch several at once, as a graph or a larger kernel.",
            paradigm: Paradigm::Gpu,
            position: Position::Ahead,
            is_balanced_away: false,
            document: "gpu",
            source: "accelerators.md",
            ..WAIT
        },
        /// Time from the launch of kernels to their begin while their device ran others.
        GpuQueue = "gpu_queue",
    } };
}
