//! What a host does while its device is idle.

use super::activities::Activity;
use super::device_rows::DeviceRow;
use super::sweep::CallPaths;
use crate::ids::CallPathId;
use crate::trace::Trace;
use crate::trace::device_calls::DeviceCall;

/// Begins of names that tell what own code does, and parts of them, in small letters.
const LOADING: [&str; 3] = ["dataloader", "torch/utils/data/", "prefetch_batch"];
const GARBAGE: [&str; 4] = ["gc_collect", "gc.collect", "gc_callback", "function collect>"];
const COMPILE: [&str; 9] = [
    "torch/_dynamo/",
    "torch/_inductor/",
    "triton/compiler/",
    "(dynamo_timed)",
    "triton_compile",
    "torchdynamo",
    "driver compiler",
    "lazy function loading",
    "module loading",
];
/// Ends of the names of device calls behind the prefix of their library: what allocates, and what loads code.
const ALLOCATES: [&str; 7] = ["Malloc", "Free", "HostAlloc", "HostMalloc", "HostFree", "MemAlloc", "MemFree"];
const LOADS_CODE: [&str; 4] = ["ModuleLoad", "LibraryLoad", "GraphInstantiate", "LinkCreate"];

/// What a host does to its devices in each call path, by the innermost region that tells.
pub(super) struct Reasons(Vec<DeviceRow>);

impl Reasons {
    pub(super) fn new(trace: &Trace, callpaths: &CallPaths) -> Self {
        let tree = &trace.tree;
        let mut rows: Vec<DeviceRow> = Vec::with_capacity(tree.nodes().len());
        for (number, node) in tree.nodes().iter().enumerate() {
            let callpath = CallPathId::at(number);
            let parent = tree.parent(callpath);
            let name = trace.regions.get(node.region).map_or("", |region| region.name.as_str());
            let row = match callpaths.activities[callpath] {
                Activity::Own | Activity::Unknown => Self::of_code(name)
                    .or_else(|| parent.is_some().then(|| rows[parent.index()]).filter(|row| is_of_code(*row)))
                    .unwrap_or(DeviceRow::Host),
                Activity::Measurement => Self::of_code(name).unwrap_or(DeviceRow::Profiler),
                Activity::Device => Self::of_call(name),
                _ => DeviceRow::Library,
            };
            rows.push(row);
        }
        Self(rows)
    }

    /// What a host that is in a call path without waiting does.
    #[inline]
    pub(super) fn of(&self, callpath: CallPathId) -> DeviceRow {
        self.0[callpath.index()]
    }

    fn of_code(name: &str) -> Option<DeviceRow> {
        let name = name.to_ascii_lowercase();
        let has = |parts: &[&str]| parts.iter().any(|part| name.contains(part));
        let found =
            [(&LOADING[..], DeviceRow::Loading), (&GARBAGE, DeviceRow::Garbage), (&COMPILE, DeviceRow::Compile)];
        found.into_iter().find(|(parts, _)| has(parts)).map(|(_, row)| row)
    }

    fn of_call(name: &str) -> DeviceRow {
        let begins = |calls: &[&str]| {
            let call = ["hip", "cuda", "cu", "cl"].iter().find_map(|prefix| name.strip_prefix(prefix));
            call.is_some_and(|call| calls.iter().any(|known| call.starts_with(known)))
        };
        if begins(&LOADS_CODE) {
            DeviceRow::Compile
        } else if begins(&ALLOCATES) {
            DeviceRow::Allocation
        } else if DeviceCall::of(name).is_some_and(DeviceCall::is_synchronization) {
            DeviceRow::Synchronization
        } else {
            DeviceRow::DeviceCall
        }
    }
}

/// Whether it tells what own code of a host does.
fn is_of_code(row: DeviceRow) -> bool {
    matches!(row, DeviceRow::Loading | DeviceRow::Garbage | DeviceRow::Compile)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_tell_what_hosts_do() {
        for (name, row) in [
            ("enumerate(DataLoader)#_SingleProcessDataLoaderIter.__next__", DeviceRow::Loading),
            ("torch/utils/data/dataloader.py(701): __next__", DeviceRow::Loading),
            ("<built-in function gc_collect>", DeviceRow::Garbage),
            ("<built-in function collect>", DeviceRow::Garbage),
            ("torch/_dynamo/eval_frame.py(574): fn", DeviceRow::Compile),
            ("_compile.compile_inner (dynamo_timed)", DeviceRow::Compile),
            ("Lazy Function Loading", DeviceRow::Compile),
        ] {
            assert_eq!(Reasons::of_code(name), Some(row), "{name}");
        }
        for name in ["aten::gather", "collect_gradients", "compile", "load"] {
            assert_eq!(Reasons::of_code(name), None, "{name}");
        }
        for (name, row) in [
            ("cudaMalloc", DeviceRow::Allocation),
            ("cudaFreeAsync", DeviceRow::Allocation),
            ("hipHostMalloc", DeviceRow::Allocation),
            ("cuMemAlloc_v2", DeviceRow::Allocation),
            ("cuModuleLoadData", DeviceRow::Compile),
            ("cudaGraphInstantiate", DeviceRow::Compile),
            ("cudaStreamSynchronize", DeviceRow::Synchronization),
            ("cudaMemcpyAsync", DeviceRow::DeviceCall),
            ("cudaLaunchKernel", DeviceRow::DeviceCall),
        ] {
            assert_eq!(Reasons::of_call(name), row, "{name}");
        }
    }
}
