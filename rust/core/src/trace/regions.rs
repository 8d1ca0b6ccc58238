//! Regions: one key for each distinct region, and the class that the wait-state patterns ask for.
//!
//! Some measurement tools define the same region once per process; here such definitions are one region, so that all
//! processes share call paths.

use std::sync::LazyLock;

use bitcode::{Decode, Encode};
use rustc_hash::{FxHashMap, FxHashSet};
use whywait_otf2::Definitions;
use whywait_otf2::enums::{LocationType, Paradigm, RegionFlag, RegionRole};
use whywait_otf2::records::Location;

use super::device_calls::DeviceCall;
use super::unknown_libraries::library_of;
use crate::ids::RegionKey;

/// What a region is to the patterns (specification.md#region-classes).
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub enum RegionClass {
    /// Nothing special.
    #[default]
    Other,
    /// `MPI_Init`, `MPI_Init_thread`.
    Init,
    /// `MPI_Finalize`.
    Finalize,
    /// `MPI_Session_init`: starts the library without synchronizing anybody.
    SessionInit,
    /// `MPI_Session_finalize`.
    SessionFinalize,
    /// `MPI_Send`, `MPI_Ssend`: sends that can block for their receiver.
    BlockingSend,
    /// `MPI_Sendrecv`, `MPI_Isendrecv`: one call sends and receives, and completes both.
    SendAndReceive,
    /// `MPI_Wait`, `MPI_Waitany`: complete at most one request.
    Wait,
    /// `MPI_Waitall`, `MPI_Waitsome`: complete several requests.
    WaitMany,
    /// `MPI_Test*`, `MPI_Parrived`: never wait.
    Test,
    /// `MPI_Win_start`.
    Start,
    /// `MPI_Win_complete`.
    Complete,
    /// `MPI_Win_post`.
    Post,
    /// `MPI_Win_wait`.
    WinWait,
    /// `MPI_Win_test`.
    WinTest,
    /// `MPI_Win_flush_all`.
    FlushAll,
    /// `MPI_Probe`: waits for a message that a later call receives.
    Probe,
    /// MPI calls that synchronize processes and leave no record: those that make communicators, windows and files.
    Create,
    /// MPI calls that start a non-blocking collective operation: `MPI_Ibarrier`, `MPI_Iallreduce`, ...
    StartCollective,
    /// MPI calls that start one with the neighbors in a topology: `MPI_Ineighbor_allgather`, ...
    StartNeighborhood,
    /// MPI calls that exchange data with the neighbors in a topology: `MPI_Neighbor_allgather`, ...
    Neighborhood,
    /// MPI calls with processes of which nothing was recorded: for what they wait is not known.
    Unrecorded,
    /// Any other MPI call.
    Mpi,
    /// OpenSHMEM calls that allocate memory or start the library: they synchronize all PEs and leave no record.
    ShmemAllocate,
    /// OpenSHMEM calls that free memory.
    ShmemFree,
    /// `shmem_finalize`.
    ShmemFinalize,
    /// `shmem_quiet`: completes all operations of its PE and leaves no record.
    ShmemQuiet,
    /// `shmem_test_lock`: never waits.
    ShmemTestLock,
    /// `shmem_test` and its variants.
    ShmemTest,
    /// Any other OpenSHMEM call.
    Shmem,
    /// `ARMCI_AllFence`.
    ArmciAllFence,
    /// `ARMCI_Finalize`.
    ArmciFinalize,
    /// Any other ARMCI call.
    Armci,
    /// `ARMCI_Test`.
    ArmciTest,
    /// A call of a communication library whose waiting is not known.
    UnknownLibrary,
    /// `gaspi_proc_term`.
    GaspiFinalize,
    /// Any other call of GASPI.
    Gaspi,
    /// `upc_lock_attempt`: never waits.
    UpcTest,
    /// Any other call of UPC.
    Upc,
    /// OpenMP parallel region.
    Parallel,
    /// Explicit OpenMP barrier.
    ExplicitBarrier,
    /// Implicit OpenMP barrier.
    ImplicitBarrier,
    /// OpenMP critical construct.
    Critical,
    /// OpenMP ordered construct: from the wait for the thread before to the end of the block.
    Ordered,
    /// The block of an ordered construct.
    OrderedBlock,
    /// A task runs.
    Task,
    /// A task is created.
    TaskCreate,
    /// The taskwait construct.
    TaskWait,
    /// The taskgroup construct: its block, and the wait for the tasks created in it.
    TaskGroup,
    /// Another OpenMP construct or call.
    OpenMp,
    /// `pthread_mutex_lock`, `pthread_mutex_trylock`.
    MutexLock,
    /// `pthread_rwlock_rdlock` and its variants: others can own the lock at the same time.
    ReadLock,
    /// `pthread_rwlock_wrlock` and its variants.
    WriteLock,
    /// `pthread_spin_lock`, `pthread_spin_trylock`.
    SpinLock,
    /// `pthread_cond_wait`.
    ConditionWait,
    /// `pthread_cond_timedwait`, which ends without a signal as well.
    TimedConditionWait,
    /// `pthread_cond_signal`: wakes one thread.
    Signal,
    /// `pthread_cond_broadcast`: wakes all threads that wait.
    Broadcast,
    /// `pthread_barrier_wait`.
    ThreadBarrier,
    /// A call to an accelerator.
    Device(DeviceCall),
    /// A kernel that takes part in a collective operation of devices.
    DeviceCollective,
    /// A kernel that sends or receives messages of devices.
    DeviceMessage,
}

impl RegionClass {
    /// Whether the region is a call of the MPI library.
    pub fn is_mpi(self) -> bool {
        self.library() == Some(Library::Mpi)
    }

    /// The communication library that the region is a call of.
    #[expect(clippy::match_same_arms, reason = "one line a family of calls")]
    pub fn library(self) -> Option<Library> {
        use RegionClass as Class;
        match self {
            Class::Init | Class::Finalize | Class::FlushAll | Class::Probe | Class::Create | Class::Mpi => {
                Some(Library::Mpi)
            }
            Class::SessionInit | Class::SessionFinalize => Some(Library::Mpi),
            Class::BlockingSend | Class::SendAndReceive | Class::Wait | Class::WaitMany | Class::Test => {
                Some(Library::Mpi)
            }
            Class::StartCollective | Class::StartNeighborhood | Class::Neighborhood | Class::Unrecorded => {
                Some(Library::Mpi)
            }
            Class::Start | Class::Complete | Class::Post | Class::WinWait | Class::WinTest => Some(Library::Mpi),
            Class::ShmemAllocate | Class::ShmemFree | Class::ShmemQuiet | Class::Shmem => Some(Library::Shmem),
            Class::ShmemFinalize | Class::ShmemTestLock | Class::ShmemTest => Some(Library::Shmem),
            Class::ArmciAllFence | Class::ArmciFinalize | Class::Armci | Class::ArmciTest => Some(Library::Armci),
            Class::GaspiFinalize | Class::Gaspi | Class::UpcTest | Class::Upc => Some(Library::Pgas),
            _ => None,
        }
    }

    /// Whether it is a kernel that communicates with other devices.
    pub fn is_device_communication(self) -> bool {
        matches!(self, Self::DeviceCollective | Self::DeviceMessage)
    }

    /// Whether the call asks whether something is done, and returns at once.
    pub fn is_test(self) -> bool {
        matches!(self, Self::Test | Self::WinTest | Self::ShmemTestLock | Self::ShmemTest | Self::ArmciTest)
            || self == Self::UpcTest
    }

    /// Whether the call starts or shuts down MPI.
    pub fn is_start_or_end(self) -> bool {
        matches!(self, Self::Init | Self::Finalize | Self::SessionInit | Self::SessionFinalize)
    }

    /// Whether the call shuts a communication library down.
    pub fn is_shutdown(self) -> bool {
        matches!(self, Self::Finalize | Self::SessionFinalize | Self::ShmemFinalize | Self::ArmciFinalize)
            || self == Self::GaspiFinalize
    }

    /// Whether each operation on data may wait for its target, even if it only puts data: MPI and GASPI do so when operations
    /// complete, and where they return data.
    pub fn waits_in_operations(self) -> bool {
        !matches!(self, Self::Gaspi | Self::GaspiFinalize)
            && self.library().is_some_and(|library| library != Library::Mpi)
    }

    /// Whether an instance of the region matters even if nothing is recorded inside.
    #[inline]
    pub fn is_remembered(self) -> bool {
        use RegionClass::{Broadcast, ShmemAllocate, ShmemFree, ShmemQuiet, Signal, ThreadBarrier};
        use RegionClass::{Create, ExplicitBarrier, ImplicitBarrier, Init, Ordered, OrderedBlock, Parallel, Probe};
        matches!(
            self,
            Init | Probe
                | Create
                | Self::Neighborhood
                | Parallel
                | ExplicitBarrier
                | ImplicitBarrier
                | Ordered
                | OrderedBlock
        ) || matches!(self, Signal | Broadcast | ThreadBarrier | Self::Task | Self::TaskWait | Self::TaskGroup)
            || matches!(self, ShmemAllocate | ShmemFree | ShmemQuiet)
            || self.is_shutdown()
    }

    pub(crate) fn of(name: &str, paradigm: Paradigm, role: RegionRole) -> Self {
        if let Some(call) = mpi_call(name, paradigm) {
            return match call.as_str() {
                _ if name.ends_with(UNRECORDED) => Self::Unrecorded,
                "init" | "init_thread" => Self::Init,
                "finalize" => Self::Finalize,
                "session_init" => Self::SessionInit,
                "session_finalize" => Self::SessionFinalize,
                "send" | "ssend" => Self::BlockingSend,
                "wait" | "waitany" => Self::Wait,
                "waitall" | "waitsome" => Self::WaitMany,
                "win_start" => Self::Start,
                "win_complete" => Self::Complete,
                "win_post" => Self::Post,
                "win_wait" => Self::WinWait,
                "win_test" => Self::WinTest,
                "win_flush_all" => Self::FlushAll,
                "sendrecv" | "sendrecv_replace" | "isendrecv" | "isendrecv_replace" => Self::SendAndReceive,
                "probe" | "mprobe" => Self::Probe,
                _ if CREATORS.contains(&call.as_str()) => Self::Create,
                _ if STARTS.contains(&call.as_str()) => Self::StartCollective,
                _ if call.starts_with("ineighbor_") => Self::StartNeighborhood,
                _ if call.strip_prefix("neighbor_").is_some_and(|call| !call.ends_with("_init")) => Self::Neighborhood,
                "parrived" => Self::Test,
                _ if ["test", "request_get_status"].iter().any(|test| call.starts_with(test)) => Self::Test,
                _ => Self::Mpi,
            };
        }
        let (polls, name) = (name.ends_with(POLLING), bare(name));
        // OTF2 has no paradigm for ARMCI. But what an unwinder named is a frame around other calls, of which nobody knows
        // when it began and ended.
        if let Some(call) = name.strip_prefix("ARMCI_").or_else(|| name.strip_prefix("PARMCI_"))
            && paradigm != Paradigm::COMPILER
        {
            return match call {
                "AllFence" => Self::ArmciAllFence,
                "Finalize" => Self::ArmciFinalize,
                "Test" => Self::ArmciTest,
                _ => Self::Armci,
            };
        }
        if !matches!(paradigm, Paradigm::SHMEM | Paradigm::GASPI | Paradigm::UPC) && library_of(name).is_some() {
            return Self::UnknownLibrary;
        }
        match paradigm {
            Paradigm::GASPI => match name.strip_prefix('p').unwrap_or(name) {
                "gaspi_proc_term" => Self::GaspiFinalize,
                _ => Self::Gaspi,
            },
            Paradigm::UPC => match name {
                "upc_lock_attempt" => Self::UpcTest,
                _ => Self::Upc,
            },
            Paradigm::SHMEM => match name {
                "start_pes"
                | "shmem_init"
                | "shmem_init_thread"
                | "shmalloc"
                | "shmemalign"
                | "shrealloc"
                | "shmem_malloc"
                | "shmem_align"
                | "shmem_realloc"
                | "shmem_calloc"
                | "shmem_malloc_with_hints"
                | "shpalloc"
                | "shpclmove" => Self::ShmemAllocate,
                "shfree" | "shpdeallc" | "shmem_free" => Self::ShmemFree,
                "shmem_finalize" => Self::ShmemFinalize,
                "shmem_quiet" | "shmem_ctx_quiet" | "shmem_pe_quiet" => Self::ShmemQuiet,
                "shmem_test_lock" => Self::ShmemTestLock,
                _ if is_shmem_test(name) && !polls => Self::ShmemTest,
                _ => Self::Shmem,
            },
            Paradigm::OPENMP => match role {
                RegionRole::PARALLEL => Self::Parallel,
                RegionRole::BARRIER => Self::ExplicitBarrier,
                RegionRole::IMPLICIT_BARRIER => Self::ImplicitBarrier,
                RegionRole::CRITICAL | RegionRole::CRITICAL_SBLOCK => Self::Critical,
                RegionRole::ORDERED => Self::Ordered,
                RegionRole::ORDERED_SBLOCK => Self::OrderedBlock,
                RegionRole::TASK | RegionRole::TASK_UNTIED => Self::Task,
                RegionRole::TASK_CREATE => Self::TaskCreate,
                // OTF2 has no role for it.
                _ if name.to_ascii_lowercase().replace(' ', "").contains("taskgroup") => Self::TaskGroup,
                RegionRole::TASK_WAIT => Self::TaskWait,
                _ => DeviceCall::of(name).map_or(Self::OpenMp, Self::Device),
            },
            Paradigm::PTHREAD => match name {
                "pthread_mutex_lock" | "pthread_mutex_trylock" => Self::MutexLock,
                "pthread_rwlock_rdlock" | "pthread_rwlock_tryrdlock" | "pthread_rwlock_timedrdlock" => Self::ReadLock,
                "pthread_rwlock_wrlock" | "pthread_rwlock_trywrlock" | "pthread_rwlock_timedwrlock" => Self::WriteLock,
                "pthread_spin_lock" | "pthread_spin_trylock" => Self::SpinLock,
                "pthread_cond_wait" => Self::ConditionWait,
                "pthread_cond_timedwait" | "pthread_cond_clockwait" => Self::TimedConditionWait,
                "pthread_cond_signal" => Self::Signal,
                "pthread_cond_broadcast" => Self::Broadcast,
                "pthread_barrier_wait" => Self::ThreadBarrier,
                _ => Self::Other,
            },
            Paradigm::CUDA | Paradigm::HIP | Paradigm::OPENCL if is_collective(role) => Self::DeviceCollective,
            Paradigm::CUDA | Paradigm::HIP | Paradigm::OPENCL if role == RegionRole::POINT2POINT => Self::DeviceMessage,
            _ => DeviceCall::of(name).map_or(Self::Other, Self::Device),
        }
    }
}

/// Whether all members of a group take part in what has this role.
fn is_collective(role: RegionRole) -> bool {
    matches!(
        role,
        RegionRole::BARRIER
            | RegionRole::COLL_ALL2ALL
            | RegionRole::COLL_ALL2ONE
            | RegionRole::COLL_ONE2ALL
            | RegionRole::COLL_OTHER
    )
}

/// Calls of MPI that are collective over a communicator.
const CREATORS: [&str; 21] = [
    "comm_split",
    "comm_split_type",
    "comm_dup",
    "comm_dup_with_info",
    "comm_create",
    "comm_spawn",
    "cart_create",
    "cart_sub",
    "graph_create",
    "dist_graph_create",
    "dist_graph_create_adjacent",
    "intercomm_create",
    "intercomm_merge",
    "win_create",
    "win_create_dynamic",
    "win_allocate",
    "win_allocate_shared",
    "win_free",
    "file_open",
    "file_close",
    "file_set_view",
];

/// Calls of MPI that start a collective operation of all members.
const STARTS: [&str; 17] = [
    "ibarrier",
    "ibcast",
    "igather",
    "igatherv",
    "iscatter",
    "iscatterv",
    "iallgather",
    "iallgatherv",
    "ialltoall",
    "ialltoallv",
    "ialltoallw",
    "ireduce",
    "iallreduce",
    "ireduce_scatter",
    "ireduce_scatter_block",
    "iscan",
    "iexscan",
];

/// Whether an OpenSHMEM call asks for the value of a variable: `shmem_int_test`, `shmem_test_any`, ...
fn is_shmem_test(name: &str) -> bool {
    let name = ["_all", "_any", "_some"]
        .iter()
        .fold(name.strip_suffix("_vector").unwrap_or(name), |name, ending| name.strip_suffix(ending).unwrap_or(name));
    name.starts_with("shmem_") && name.ends_with("_test")
}

/// Some tools (TAU) write a call with the parentheses of its arguments.
const ARGUMENTS: &str = "()";

/// What the recorder adds to the name of a call that stands for tests one after the other, of which the last was successful.
pub(crate) const POLLING: &str = " (polling)";

/// What the recorder adds to the name of a call with processes of which it recorded nothing.
const UNRECORDED: &str = " (unrecorded peers)";

/// The name of a call without what tools add.
pub(super) fn bare(name: &str) -> &str {
    [ARGUMENTS, POLLING, UNRECORDED].iter().find_map(|ending| name.strip_suffix(ending)).unwrap_or(name)
}

/// The call of MPI that waits for what another one tests.
fn waiting(test: &str) -> String {
    match test {
        "iprobe" => "probe".to_owned(),
        "improbe" => "mprobe".to_owned(),
        "parrived" | "request_get_status" => "wait".to_owned(),
        _ => match test.strip_prefix("request_get_status_") {
            Some(which) => format!("wait{which}"),
            None => test.replacen("test", "wait", 1),
        },
    }
}

/// The calls of MPI 4.1 that Fortran has.
static FORTRAN_CALLS: LazyLock<FxHashSet<&str>> =
    LazyLock::new(|| include_str!("mpi_calls.txt").split_whitespace().collect());

/// The MPI call that a region is, in lower case and without what distinguishes variants: the prefix, the suffix of
/// large counts, and the underscores of Fortran compilers.
///
/// Not every tool records that an MPI call belongs to the paradigm MPI. Names in the form of the standard are reserved;
/// names in lower case, as Fortran compilers write them, are MPI calls only if they are in the standard.
pub(crate) fn mpi_call(name: &str, paradigm: Paradigm) -> Option<String> {
    let (polls, name) = (name.ends_with(POLLING), bare(name));
    let reserved = name.strip_prefix("MPI_").is_some_and(|call| call.starts_with(|c: char| c.is_ascii_uppercase()));
    let fortran = || {
        let call = name.strip_prefix("mpi_").filter(|call| call.ends_with('_'));
        call.is_some_and(|call| FORTRAN_CALLS.contains(call.trim_end_matches('_')))
    };
    if paradigm != Paradigm::MPI && !reserved && !fortran() {
        return None;
    }
    let name = name.to_ascii_lowercase();
    let call = name.strip_prefix("mpi_").unwrap_or(&name).trim_end_matches('_');
    let call = call.strip_suffix("_c").unwrap_or(call);
    Some(if polls { waiting(call) } else { call.to_owned() })
}

/// The role of an OpenMP construct or call by the name that `EZTrace` gives it.
pub(super) fn construct(name: &str) -> Option<RegionRole> {
    Some(match name.strip_prefix("OpenMP ")? {
        "Parallel" => RegionRole::PARALLEL,
        "For" => RegionRole::LOOP,
        "Section" => RegionRole::SECTION,
        "Workshare" => RegionRole::WORKSHARE,
        "Ordered" => RegionRole::ORDERED,
        "critical" => RegionRole::CRITICAL,
        "barrier" => RegionRole::BARRIER,
        "implicit barrier" => RegionRole::IMPLICIT_BARRIER,
        "Task create" | "Untied Task create" => RegionRole::TASK_CREATE,
        "Task run" | "Untied  Task run" => RegionRole::TASK,
        "Task wait" => RegionRole::TASK_WAIT,
        lock if lock.ends_with(" Lock") => RegionRole::FUNCTION,
        _ => return None,
    })
}

/// Communication libraries.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Encode, Decode)]
pub enum Library {
    /// The Message Passing Interface.
    Mpi,
    /// OpenSHMEM.
    Shmem,
    /// The Aggregate Remote Memory Copy Interface.
    Armci,
    /// Partitioned global address spaces: GASPI and UPC.
    Pgas,
}

impl Library {
    /// Number of libraries.
    pub(crate) const COUNT: usize = 4;
}

/// One distinct region.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Region {
    /// Display name.
    pub name: String,
    /// Mangled or full name.
    pub canonical_name: String,
    /// Paradigm.
    pub paradigm: Paradigm,
    /// Role.
    pub role: RegionRole,
    /// Source file, empty if unknown.
    pub file: String,
    /// First line, 0 if unknown.
    pub begin_line: u32,
    /// Last line, 0 if unknown.
    pub end_line: u32,
    /// Whether the program declares that each instance counts by itself: a dynamic region, or a phase.
    pub is_dynamic: bool,
}

impl Region {
    /// Whether it is a call that reads, writes or manages files.
    pub fn is_io(&self) -> bool {
        matches!(self.role, RegionRole::FILE_IO | RegionRole::FILE_IO_METADATA)
    }

    /// The region with paradigm and role taken from its name where the tool did not record them.
    fn recognized(mut self) -> Self {
        if mpi_call(&self.name, self.paradigm).is_some() {
            self.paradigm = Paradigm::MPI;
        } else if matches!(self.paradigm, Paradigm::USER | Paradigm::UNKNOWN) {
            if let Some(role) = construct(&self.name) {
                (self.paradigm, self.role) = (Paradigm::OPENMP, role);
            } else if self.name.starts_with("pthread_") {
                self.paradigm = Paradigm::PTHREAD;
            } else if let Some(paradigm) = DeviceCall::paradigm(&self.name) {
                self.paradigm = paradigm;
            }
        }
        self
    }

    fn artificial(name: &str, paradigm: Paradigm) -> Self {
        Self {
            name: name.to_owned(),
            canonical_name: name.to_owned(),
            paradigm,
            role: RegionRole::ARTIFICIAL,
            file: String::new(),
            begin_line: 0,
            end_line: 0,
            is_dynamic: false,
        }
    }
}

/// All regions of a run. A *key* identifies one: its number, or the marked string id of a program's name.
#[derive(Clone, Debug)]
pub struct Regions {
    all: Vec<Region>,
    classes: Vec<RegionClass>,
    /// Key by region id, for the dense part of the ids.
    dense: Vec<RegionKey>,
    sparse: FxHashMap<u32, RegionKey>,
    copies: Option<CopyRegions>,
}

/// Keys of the copies that streams of devices make, by direction.
#[derive(Clone, Copy, Debug)]
pub struct CopyRegions {
    /// From a device to a host.
    pub to_host: RegionKey,
    /// From a host to a device.
    pub to_device: RegionKey,
    /// Within a device.
    pub on_device: RegionKey,
    /// From one device to another.
    pub between_devices: RegionKey,
}

impl CopyRegions {
    /// Their names.
    const NAMES: [&str; 4] = ["copy to host", "copy to device", "copy on device", "copy between devices"];

    /// Whether a key is one of them.
    pub fn contains(&self, key: RegionKey) -> bool {
        [self.to_host, self.to_device, self.on_device, self.between_devices].contains(&key)
    }
}

/// Region ids below this are looked up in a table, whatever the number of regions.
const DENSE_IDS: usize = 1 << 16;

impl Regions {
    /// Marks the key of a program: the rest of the key is the string id of its name.
    const PROGRAM: u32 = 1 << 31;
    /// Key of regions that an event refers to but that are not defined.
    pub const UNDEFINED: RegionKey = RegionKey::new(0);
    /// Key of the time in which the measurement system flushed its buffer.
    pub const BUFFER_FLUSH: RegionKey = RegionKey::new(1);
    /// Key of the time in which the measurement was switched off.
    pub const MEASUREMENT_OFF: RegionKey = RegionKey::new(2);
    /// Key of I/O that is recorded outside of any call for I/O.
    pub const IO: RegionKey = RegionKey::new(3);

    /// Whether a region is time of the measurement system, without records of the program.
    pub fn is_pause(key: RegionKey) -> bool {
        key == Self::BUFFER_FLUSH || key == Self::MEASUREMENT_OFF
    }

    /// Collects the regions that the archive defines.
    pub fn new(definitions: &Definitions) -> Self {
        let mut regions = vec![
            Region::artificial("UNDEFINED REGION", Paradigm::UNKNOWN),
            Region::artificial("TRACE BUFFER FLUSH", Paradigm::MEASUREMENT_SYSTEM),
            Region::artificial("MEASUREMENT OFF", Paradigm::MEASUREMENT_SYSTEM),
            Region { role: RegionRole::FILE_IO, ..Region::artificial("I/O", Paradigm::NONE) },
        ];
        let mut keys: FxHashMap<Region, RegionKey> = FxHashMap::default();
        let mut dense = Vec::new();
        let mut sparse = FxHashMap::default();
        for definition in &definitions.regions {
            let string = |id| definitions.string(id).to_owned();
            let region = Region {
                name: string(definition.name),
                canonical_name: string(definition.canonical_name),
                paradigm: definition.paradigm,
                role: definition.region_role,
                file: string(definition.source_file),
                begin_line: definition.begin_line_number,
                end_line: definition.end_line_number,
                is_dynamic: definition.region_flags != RegionFlag::NONE,
            }
            .recognized();
            let key = *keys.entry(region).or_insert_with_key(|region| {
                regions.push(region.clone());
                RegionKey::at(regions.len() - 1)
            });
            let id = definition.id as usize;
            if id < DENSE_IDS.max(4 * definitions.regions.len()) {
                if dense.len() <= id {
                    dense.resize(id + 1, Self::UNDEFINED);
                }
                if dense[id] == Self::UNDEFINED {
                    dense[id] = key;
                }
            } else {
                sparse.entry(definition.id).or_insert(key);
            }
        }
        let copies = has_copies(definitions).then(|| {
            let devices = [Paradigm::CUDA, Paradigm::HIP, Paradigm::OPENCL, Paradigm::OPENACC];
            let paradigm = regions.iter().map(|region| region.paradigm).find(|paradigm| devices.contains(paradigm));
            let mut add = |name: &str| {
                let copy = Region::artificial(name, paradigm.unwrap_or(Paradigm::UNKNOWN));
                regions.push(Region { role: RegionRole::DATA_TRANSFER, ..copy });
                RegionKey::at(regions.len() - 1)
            };
            let [to_host, to_device, on_device, between_devices] = CopyRegions::NAMES.map(&mut add);
            CopyRegions { to_host, to_device, on_device, between_devices }
        });
        let classes =
            regions.iter().map(|region| RegionClass::of(&region.name, region.paradigm, region.role)).collect();
        Self { all: regions, classes, dense, sparse, copies }
    }

    /// The copies that streams of devices make, if the run has both streams and windows.
    pub fn copies(&self) -> Option<CopyRegions> {
        self.copies
    }

    /// The key of a region id.
    #[inline]
    pub fn key(&self, id: u32) -> RegionKey {
        match self.dense.get(id as usize) {
            Some(&key) => key,
            None => self.sparse.get(&id).copied().unwrap_or(Self::UNDEFINED),
        }
    }

    /// The class of a region.
    #[inline]
    pub fn class(&self, key: RegionKey) -> RegionClass {
        self.classes.get(key.index()).copied().unwrap_or_default()
    }

    /// Whether a region is a call that reads, writes or manages files.
    pub fn is_io(&self, key: RegionKey) -> bool {
        self.get(key).is_some_and(Region::is_io)
    }

    /// Whether any region has a class.
    pub fn has(&self, class: RegionClass) -> bool {
        self.classes.contains(&class)
    }

    /// The region with a key; `None` for programs.
    pub fn get(&self, key: RegionKey) -> Option<&Region> {
        self.all.get(key.index())
    }

    /// The region with a key.
    pub fn region(&self, definitions: &Definitions, key: RegionKey) -> Region {
        let program = || Region::artificial(self.name(definitions, key), Paradigm::MEASUREMENT_SYSTEM);
        self.get(key).cloned().unwrap_or_else(program)
    }

    /// The name of the region with a key.
    pub fn name<'a>(&'a self, definitions: &'a Definitions, key: RegionKey) -> &'a str {
        match self.get(key) {
            Some(region) => &region.name,
            None => Self::program_name(definitions.string(key.number() & !Self::PROGRAM)),
        }
    }

    /// The key of a program, by the string id of its path.
    pub fn program(path: u32) -> RegionKey {
        RegionKey::new(Self::PROGRAM | path)
    }

    /// Whether a key is that of a program.
    pub fn is_program(key: RegionKey) -> bool {
        key.number() & Self::PROGRAM != 0
    }

    /// The last part of its path.
    fn program_name(path: &str) -> &str {
        path.rsplit('/').find(|part| !part.is_empty()).unwrap_or(path)
    }
}

/// Whether streams of devices can have one-sided operations.
fn has_copies(definitions: &Definitions) -> bool {
    let is_stream = |location: &Location| location.location_type == LocationType::ACCELERATOR_STREAM;
    !definitions.rma_wins.is_empty() && definitions.locations.iter().any(is_stream)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn variants_of_a_call_are_of_its_class() {
        let of = |name, paradigm| RegionClass::of(name, paradigm, RegionRole::FUNCTION);
        for name in ["MPI_Ssend", "MPI_Ssend_c", "MPI_SSEND", "mpi_ssend_", "mpi_ssend__", "MPI_Ssend()"] {
            for paradigm in [Paradigm::MPI, Paradigm::USER] {
                assert_eq!(of(name, paradigm), RegionClass::BlockingSend, "{name}");
            }
        }
        assert_eq!(of("shmem_quiet()", Paradigm::SHMEM), RegionClass::ShmemQuiet);
        assert_eq!(of("MPI_Waitall", Paradigm::USER), RegionClass::WaitMany);
        assert_eq!(of("MPI_Comm_f2c", Paradigm::MPI), RegionClass::Mpi);
        assert_eq!(of("PARMCI_Put", Paradigm::UNKNOWN), RegionClass::Armci);
        assert_eq!(of("shmem_pe_quiet", Paradigm::SHMEM), RegionClass::ShmemQuiet);
    }

    #[test]
    fn tests_are_known_in_every_library() {
        for (name, paradigm) in [
            ("MPI_Testsome", Paradigm::MPI),
            ("MPI_Win_test", Paradigm::MPI),
            ("MPI_Request_get_status_any", Paradigm::MPI),
            ("shmem_test_lock", Paradigm::SHMEM),
            ("shmem_int_test", Paradigm::SHMEM),
            ("shmem_long_test_some_vector", Paradigm::SHMEM),
            ("shmem_test_any", Paradigm::SHMEM),
            ("ARMCI_Test", Paradigm::UNKNOWN),
            ("PARMCI_Test", Paradigm::UNKNOWN),
            ("upc_lock_attempt", Paradigm::UPC),
        ] {
            assert!(RegionClass::of(name, paradigm, RegionRole::FUNCTION).is_test(), "{name}");
        }
        assert!(!RegionClass::of("shmem_wait_until", Paradigm::SHMEM, RegionRole::FUNCTION).is_test());
    }

    #[test]
    fn polling_is_waiting() {
        for (polls, waits, paradigm) in [
            ("MPI_Test", "MPI_Wait", Paradigm::MPI),
            ("MPI_Testsome", "MPI_Waitsome", Paradigm::MPI),
            ("MPI_Request_get_status", "MPI_Wait", Paradigm::MPI),
            ("MPI_Request_get_status_all", "MPI_Waitall", Paradigm::MPI),
            ("MPI_Win_test", "MPI_Win_wait", Paradigm::MPI),
            ("MPI_Iprobe", "MPI_Probe", Paradigm::MPI),
            ("MPI_Improbe", "MPI_Mprobe", Paradigm::MPI),
            ("MPI_Parrived", "MPI_Wait", Paradigm::MPI),
            ("shmem_long_test", "shmem_long_wait_until", Paradigm::SHMEM),
        ] {
            let of = |name: &str| RegionClass::of(name, paradigm, RegionRole::FUNCTION);
            assert_eq!(of(&format!("{polls}{POLLING}")), of(waits), "{polls}");
        }
    }

    #[test]
    fn calls_with_processes_that_were_not_recorded_are_of_their_own_class() {
        for name in ["MPI_Recv", "MPI_Barrier", "MPI_Wait"] {
            let class = RegionClass::of(&format!("{name}{UNRECORDED}"), Paradigm::MPI, RegionRole::FUNCTION);
            assert!(class == RegionClass::Unrecorded && class.is_mpi(), "{name}");
        }
    }

    #[test]
    fn names_tell_what_the_tool_does_not() {
        let recognized = |name| {
            let region = Region { name: String::from(name), ..Region::artificial("", Paradigm::USER) }.recognized();
            (region.paradigm, region.role)
        };
        assert_eq!(recognized("mpi_bcast_"), (Paradigm::MPI, RegionRole::ARTIFICIAL));
        assert_eq!(recognized("OpenMP implicit barrier"), (Paradigm::OPENMP, RegionRole::IMPLICIT_BARRIER));
        assert_eq!(recognized("OpenMP Set Lock"), (Paradigm::OPENMP, RegionRole::FUNCTION));
        assert_eq!(recognized("pthread_mutex_lock"), (Paradigm::PTHREAD, RegionRole::ARTIFICIAL));
        assert_eq!(recognized("OpenMP phase"), (Paradigm::USER, RegionRole::ARTIFICIAL));
    }

    #[test]
    fn calls_of_unknown_libraries_are_told_by_name() {
        let is_unknown = |name, paradigm| {
            let class = RegionClass::of(name, paradigm, RegionRole::FUNCTION);
            class == RegionClass::UnknownLibrary && class.library().is_none()
        };
        assert!(is_unknown("upcxx::rput", Paradigm::COMPILER));
        assert!(is_unknown("ucp_worker_progress()", Paradigm::USER));
        assert!(is_unknown("gaspi_wait", Paradigm::COMPILER));
        assert!(!is_unknown("gaspi_wait", Paradigm::GASPI));
        assert!(!is_unknown("nvshmem_barrier", Paradigm::SHMEM));
        assert!(!is_unknown("compute", Paradigm::COMPILER));
    }

    #[test]
    fn a_frame_is_no_call() {
        for name in ["ARMCI_Barrier", "PARMCI_Finalize", "ARMCI_Init"] {
            assert_eq!(RegionClass::of(name, Paradigm::COMPILER, RegionRole::FUNCTION), RegionClass::Other, "{name}");
        }
    }

    #[test]
    fn a_region_of_the_user_is_no_call() {
        for name in ["MPI_phase", "mpi_send_all", "mpi_send_all_", "mpi_send", "MPI", "MPI_", "compute"] {
            assert_eq!(RegionClass::of(name, Paradigm::USER, RegionRole::FUNCTION), RegionClass::Other, "{name}");
        }
    }
}
