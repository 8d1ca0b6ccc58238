//! Accelerators: waiting of hosts for devices, and of devices for hosts.
//!
//! [`super`] says what stands in a row.

macro_rules! devices {
    ([$next:ident $($rest:ident)*] $($before:tt)*) => { $next! { [$($rest)*] $($before)*
        /// Time a call waited for a kernel or a copy of a device to end.
        GpuHostWait = "gpu_host_wait" {
            display_name: "Host Waits for Device",
            below: "gpu_host",
            waits_for: "for a device to finish its work",
            look_at: "The kernels that the call awaits, and the work that the host could do while they run.",
            class: Some(Class::GpuHost),
            document: "gpu",
            source: "accelerators.md; D. Eberius 2020, chapter 2 (CASITA): idle host",
            ..WAIT
        },
        /// Time in calls that wait for devices, after the awaited work ended.
        GpuHostCompletion = "gpu_host_completion" {
            display_name: "Completion",
            below: "gpu_host",
            waits_for: "for calls that synchronize with a device to return",
            look_at: "How often the host synchronizes: each call takes time, even if the device is idle.",
            position: Position::End,
            is_balanced_away: false,
            document: "gpu",
            source: "accelerators.md",
            ..WAIT
        },
        /// Time before kernels in which their device was idle.
        GpuDeviceIdle = "gpu_device_idle",
        /// Time a device was idle because the host had not yet launched the next kernel.
        GpuDeviceStarved = "gpu_device_starved" {
            display_name: "Device Starved",
            below: "gpu_device_idle",
            waits_for: "for the host to launch the next kernel",
            look_at: "What the host does before the launch: can it do this later, or launch earlier?",
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
            part_of: Some(Metric::GpuDeviceStarved),
            position: Position::BeginOfWhole,
            document: "gpu",
            source: "accelerators.md",
            ..PART
        },
        /// Time from the launch of a kernel to its start while its device was idle.
        GpuLaunchLatency = "gpu_launch_latency" {
            display_name: "Launch Latency",
            below: "gpu_device_idle",
            waits_for: "for launched kernels to begin",
            look_at: "The length of kernels: short ones cost more to launch than to run. Launch several at once, as a graph, or fuse them.",
            position: Position::Ahead,
            is_balanced_away: false,
            document: "gpu",
            source: "accelerators.md",
            ..WAIT
        },
        /// Time from the launch of kernels to their start while their device ran other kernels.
        GpuQueue = "gpu_queue",
    } };
}
