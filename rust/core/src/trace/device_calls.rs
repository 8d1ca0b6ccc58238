//! Calls of the host to its accelerators.

use whywait_otf2::enums::Paradigm;

/// The role of a host call for the host's accelerators.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum DeviceCall {
    /// Launches a kernel.
    Launch,
    /// Records an event on a stream.
    RecordEvent,
    /// Waits for a device.
    AwaitDevice,
    /// Waits for a stream.
    AwaitStream,
    /// Waits for an event.
    AwaitEvent,
    /// Copies memory, and returns when that is done.
    Copy,
    /// Launches a copy, or sets memory.
    Transfer,
    /// Selects the device of later calls.
    Select,
}

impl DeviceCall {
    /// The role of a call, by its name in CUDA, HIP, `OpenCL` and `OpenACC`, or by that of an OpenMP construct.
    pub(crate) fn of(name: &str) -> Option<Self> {
        if name.starts_with("!$omp") {
            return name.starts_with("!$omp target submit").then_some(Self::Launch);
        }
        if let Some(call) = name.strip_prefix("acc_") {
            let is =
                |known: &str| call.strip_prefix(known).is_some_and(|rest| rest.is_empty() || rest.starts_with('@'));
            return is("launch_kernel").then_some(Self::Launch).or(is("wait").then_some(Self::AwaitDevice));
        }
        let call = ["hip", "cuda", "cu", "cl"].iter().find_map(|prefix| name.strip_prefix(prefix))?;
        if !call.starts_with(|first: char| first.is_ascii_uppercase()) {
            return None;
        }
        Some(match call {
            "EnqueueNDRangeKernel" | "EnqueueTask" => Self::Launch,
            "EventRecord" | "EventRecordWithFlags" => Self::RecordEvent,
            "Finish" | "StreamSynchronize" => Self::AwaitStream,
            "WaitForEvents" | "EventSynchronize" => Self::AwaitEvent,
            _ if call.contains("Launch") && !call.contains("HostFunc") => Self::Launch,
            "SetDevice" | "CtxSetCurrent" | "CtxPushCurrent" | "CtxPopCurrent" => Self::Select,
            _ if call.starts_with("Memset") || call.starts_with("EnqueueFill") => Self::Transfer,
            _ if call.starts_with("Memcpy") && !call.contains("Async") => Self::Copy,
            _ if call.starts_with("Memcpy") => Self::Transfer,
            "EnqueueReadBuffer" | "EnqueueWriteBuffer" | "EnqueueCopyBuffer" => Self::Transfer,
            _ if call.ends_with("Synchronize") => Self::AwaitDevice,
            _ => return None,
        })
    }

    /// The paradigm of a call to devices, by its name.
    pub(super) fn paradigm(name: &str) -> Option<Paradigm> {
        Self::of(name)?;
        let known = [
            ("hip", Paradigm::HIP),
            ("cu", Paradigm::CUDA),
            ("cl", Paradigm::OPENCL),
            ("acc_", Paradigm::OPENACC),
            ("!$omp", Paradigm::OPENMP),
        ];
        known.into_iter().find(|(prefix, _)| name.starts_with(prefix)).map(|(_, paradigm)| paradigm)
    }

    /// Whether it waits for devices.
    pub fn is_synchronization(self) -> bool {
        matches!(self, Self::AwaitDevice | Self::AwaitStream | Self::AwaitEvent | Self::Copy)
    }

    /// Whether it launches a kernel or a copy, or copies itself.
    pub fn is_launch(self) -> bool {
        matches!(self, Self::Launch | Self::Transfer | Self::Copy)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_tell_what_calls_are() {
        use DeviceCall::{AwaitDevice, AwaitEvent, AwaitStream, Copy, Launch, RecordEvent, Select, Transfer};
        for (name, call) in [
            ("hipLaunchKernel", Launch),
            ("cuLaunchKernel", Launch),
            ("hipModuleLaunchKernel", Launch),
            ("clEnqueueTask", Launch),
            ("acc_launch_kernel@solve.c:12", Launch),
            ("!$omp target submit @solve.c:12", Launch),
            ("cudaEventRecord", RecordEvent),
            ("cudaDeviceSynchronize", AwaitDevice),
            ("cuCtxSynchronize", AwaitDevice),
            ("acc_wait", AwaitDevice),
            ("clFinish", AwaitStream),
            ("hipStreamSynchronize", AwaitStream),
            ("hipEventSynchronize", AwaitEvent),
            ("hipMemcpy", Copy),
            ("cuMemcpyDtoH_v2", Copy),
            ("hipMemcpyAsync", Transfer),
            ("cuMemcpyDtoHAsync_v2", Transfer),
            ("cudaMemsetAsync", Transfer),
            ("hipSetDevice", Select),
        ] {
            assert_eq!(DeviceCall::of(name), Some(call), "{name}");
            assert!(DeviceCall::paradigm(name).is_some(), "{name}");
        }
        for name in ["cudaLaunchHostFunc", "cumulate", "main", "hipMalloc", "clear", "acc_waiting", "!$omp target"] {
            assert_eq!(DeviceCall::of(name), None, "{name}");
        }
    }
}
