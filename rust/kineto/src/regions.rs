//! The regions of one file: distinct names with what they are.

use rustc_hash::FxHashMap;
use whywait_devices::{Copy, Kind, Region};
use whywait_otf2::enums::{Paradigm, RegionFlag, RegionRole};

use crate::columns::{Category, Task};
use crate::names::{Meaning, Names, PART_OF_STEP, short_kernel, without_addresses, without_instance};
use crate::options::Paths;

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
    Overhead,
    Kernel(Option<Kind>),
    Copy,
}

/// The regions of one file by number.
#[derive(Debug)]
pub(crate) struct Regions {
    paths: Paths,
    vendor: Vendor,
    all: whywait_devices::Regions,
    by_name: FxHashMap<(Use, u32), u32>,
}

impl Regions {
    pub(crate) fn new(paths: Paths, vendor: Vendor) -> Self {
        Self { paths, vendor, all: whywait_devices::Regions::default(), by_name: FxHashMap::default() }
    }

    pub(crate) fn name(&self, region: u32) -> &str {
        &self.all.list[region as usize].name
    }

    /// All of them, by number.
    pub(crate) fn finish(self) -> Vec<Region> {
        self.all.list
    }

    fn add(&mut self, region: Region) -> u32 {
        self.all.add(region)
    }

    fn user(&mut self, name: String) -> u32 {
        self.add(Region::user(name))
    }

    /// What wraps the operators of the backward pass.
    pub(crate) fn backward(&mut self) -> u32 {
        self.user("backward".to_owned())
    }

    /// The wait for an operation of a library for CPUs.
    pub(crate) fn wait(&mut self, kind: Kind) -> u32 {
        let name = format!("wait ({})", kind.name().replace('_', ""));
        self.add(Region::new(name, Paradigm::MPI, kind.role()))
    }

    /// The call that issues an operation of a library for CPUs.
    pub(crate) fn issue(&mut self, name: &str, kind: Kind) -> u32 {
        self.add(Region::new(name.to_owned(), Paradigm::MPI, kind.role()))
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
                regions.add(Region::new(name, paradigm, RegionRole::FUNCTION))
            });
        }
        if category == Category::Overhead {
            return self.cached((Use::Overhead, name), |regions| {
                let (name, role, flags) = (names.get(name).to_owned(), RegionRole::ARTIFICIAL, RegionFlag::NONE);
                regions.add(Region { name, paradigm: Paradigm::MEASUREMENT_SYSTEM, role, flags })
            });
        }
        let meaning = names.meaning(name);
        if meaning == Meaning::Issue {
            let kind = names.get(name).strip_prefix("c10d::").and_then(Kind::of_operation);
            return self.cached((Use::Issue(kind), name), |regions| regions.user(names.get(name).to_owned()));
        }
        self.cached((Use::User, name), |regions| {
            if matches!(meaning, Meaning::Step(_) | Meaning::PartOfStep) {
                let flags = RegionFlag(RegionFlag::DYNAMIC.0 | RegionFlag::PHASE.0);
                let (name, paradigm) = (PART_OF_STEP.to_owned(), Paradigm::USER);
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
        match task {
            Task::Kernel => self.cached((Use::Kernel(kind), name), |regions| {
                let text = names.get(name);
                let name = if regions.paths == Paths::All { text.to_owned() } else { short_kernel(text) };
                let role = kind.map_or(RegionRole::KERNEL, Kind::role);
                regions.add(Region::new(without_addresses(&name), paradigm, role))
            }),
            Task::Copy => self.cached((Use::Copy, name), |regions| {
                let name = direction(names.get(name)).name().to_owned();
                regions.add(Region::new(name, paradigm, RegionRole::DATA_TRANSFER))
            }),
            Task::Memset => self.add(Region::new("Memset".to_owned(), paradigm, RegionRole::DATA_TRANSFER)),
        }
    }
}

/// The begin of the names that data loaders give to fetching the next batch.
const LOADING: &str = "enumerate(DataLoader)#";

/// What precedes the name of an operator of the backward pass where the engine runs it.
pub(crate) const EVALUATED: &str = "autograd::engine::evaluate_function: ";

/// The direction of a copy, by its name.
fn direction(name: &str) -> Copy {
    let has = |parts: [&str; 2]| parts.iter().any(|part| name.contains(part));
    if has(["DtoH", "DeviceToHost"]) || has(["HtoH", "HostToHost"]) {
        Copy::ToHost
    } else if has(["HtoD", "HostToDevice"]) {
        Copy::ToDevice
    } else if has(["PtoP", "PeerToPeer"]) {
        Copy::Between
    } else {
        Copy::Within
    }
}
