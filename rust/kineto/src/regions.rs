//! The regions of one file: distinct names with what they are.

use rustc_hash::FxHashMap;
use whywait_otf2::enums::{Paradigm, RegionFlag, RegionRole};

use crate::columns::{Category, Task};
use crate::kinds::Kind;
use crate::names::{Meaning, Names, short_kernel, without_addresses, without_instance};
use crate::options::Paths;

/// What is defined of a region.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub(crate) struct Region {
    pub(crate) name: String,
    pub(crate) paradigm: Paradigm,
    pub(crate) role: RegionRole,
    pub(crate) flags: RegionFlag,
}

/// Whose devices a process has.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Vendor {
    Nvidia,
    Amd,
}

impl Vendor {
    pub(crate) const fn paradigm(self) -> Paradigm {
        match self {
            Self::Nvidia => Paradigm::CUDA,
            Self::Amd => Paradigm::HIP,
        }
    }
}

/// What a name stands for: a region of its own for each.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
enum Use {
    User,
    Call,
    Issue(Option<Kind>),
    Kernel(Option<Kind>),
    Copy,
}

/// The regions of one file by number.
#[derive(Debug)]
pub(crate) struct Regions {
    paths: Paths,
    vendor: Vendor,
    pub(crate) list: Vec<Region>,
    by_region: FxHashMap<Region, u32>,
    by_name: FxHashMap<(Use, u32), u32>,
}

impl Regions {
    pub(crate) fn new(paths: Paths, vendor: Vendor) -> Self {
        Self { paths, vendor, list: Vec::new(), by_region: FxHashMap::default(), by_name: FxHashMap::default() }
    }

    pub(crate) fn add(&mut self, region: Region) -> u32 {
        let next = self.list.len() as u32;
        *self.by_region.entry(region).or_insert_with_key(|region| {
            self.list.push(region.clone());
            next
        })
    }

    fn user(&mut self, name: String) -> u32 {
        self.add(Region { name, paradigm: Paradigm::USER, role: RegionRole::FUNCTION, flags: RegionFlag::NONE })
    }

    /// What wraps the operators of the backward pass.
    pub(crate) fn backward(&mut self) -> u32 {
        self.user("backward".to_owned())
    }

    /// The wait for an operation of a library for CPUs.
    pub(crate) fn wait(&mut self, kind: Kind) -> u32 {
        let name = format!("wait ({})", kind.name().replace('_', ""));
        self.add(Region { name, paradigm: Paradigm::MPI, role: kind.role(), flags: RegionFlag::NONE })
    }

    /// The call that issues an operation of a library for CPUs.
    pub(crate) fn issue(&mut self, name: &str, kind: Kind) -> u32 {
        let (name, paradigm) = (name.to_owned(), Paradigm::MPI);
        self.add(Region { name, paradigm, role: kind.role(), flags: RegionFlag::NONE })
    }

    fn cached(&mut self, key: (Use, u32), make: impl FnOnce(&mut Self) -> u32) -> u32 {
        if let Some(region) = self.by_name.get(&key) {
            return *region;
        }
        let region = make(self);
        self.by_name.insert(key, region);
        region
    }

    /// The region of a span of the host.
    pub(crate) fn of_host(&mut self, names: &Names, name: u32, category: Category) -> u32 {
        if matches!(category, Category::Call | Category::DriverCall) {
            return self.cached((Use::Call, name), |regions| {
                let paradigm = regions.vendor.paradigm();
                let name = match names.get(name) {
                    // The profiling interface of 2022 to 2023 did not know the call that launches kernels of NCCL.
                    "INVALID" => "cudaLaunchKernelExC".to_owned(),
                    name => without_addresses(name),
                };
                regions.add(Region { name, paradigm, role: RegionRole::FUNCTION, flags: RegionFlag::NONE })
            });
        }
        let meaning = names.meaning(name);
        if meaning == Meaning::Issue {
            let kind = names.get(name).strip_prefix("c10d::").and_then(Kind::of_operation);
            return self.cached((Use::Issue(kind), name), |regions| regions.user(names.get(name).to_owned()));
        }
        self.cached((Use::User, name), |regions| {
            if matches!(meaning, Meaning::Step(_)) {
                let flags = RegionFlag(RegionFlag::DYNAMIC.0 | RegionFlag::PHASE.0);
                let (name, paradigm) = ("ProfilerStep".to_owned(), Paradigm::USER);
                return regions.add(Region { name, paradigm, role: RegionRole::FUNCTION, flags });
            }
            let name = names.get(name);
            let name = match meaning {
                Meaning::Module if regions.paths == Paths::Module => without_instance(name),
                _ if name.starts_with(LOADING) => "DataLoader.__next__",
                _ => name.strip_prefix(EVALUATED).unwrap_or(name),
            };
            regions.user(without_addresses(name))
        })
    }

    /// The region of work on a stream.
    pub(crate) fn of_work(&mut self, names: &Names, name: u32, task: Task, kind: Option<Kind>) -> u32 {
        let paradigm = self.vendor.paradigm();
        let flags = RegionFlag::NONE;
        match task {
            Task::Kernel => self.cached((Use::Kernel(kind), name), |regions| {
                let text = names.get(name);
                let name = if regions.paths == Paths::All { text.to_owned() } else { short_kernel(text) };
                let role = kind.map_or(RegionRole::KERNEL, Kind::role);
                regions.add(Region { name: without_addresses(&name), paradigm, role, flags })
            }),
            Task::Copy => self.cached((Use::Copy, name), |regions| {
                let name = direction(names.get(name)).to_owned();
                regions.add(Region { name, paradigm, role: RegionRole::DATA_TRANSFER, flags })
            }),
            Task::Memset => {
                self.add(Region { name: "Memset".to_owned(), paradigm, role: RegionRole::DATA_TRANSFER, flags })
            }
        }
    }
}

/// The begin of the names that data loaders give to fetching the next batch.
const LOADING: &str = "enumerate(DataLoader)#";

/// What precedes the name of an operator of the backward pass where the engine runs it.
pub(crate) const EVALUATED: &str = "autograd::engine::evaluate_function: ";

/// The direction of a copy, in the words of all other formats.
fn direction(name: &str) -> &'static str {
    let has = |parts: [&str; 2]| parts.iter().any(|part| name.contains(part));
    if has(["DtoH", "DeviceToHost"]) || has(["HtoH", "HostToHost"]) {
        "copy to host"
    } else if has(["HtoD", "HostToDevice"]) {
        "copy to device"
    } else if has(["PtoP", "PeerToPeer"]) {
        "copy between devices"
    } else {
        "copy on device"
    }
}
