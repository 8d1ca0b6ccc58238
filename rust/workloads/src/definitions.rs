//! The definitions of an archive, as Score-P would write them.

use whywait_otf2::ArchiveWriter;
use whywait_otf2::enums::{
    Base, CommFlag, GroupFlag, GroupType, GroupTypePre12, LocationGroupType, LocationType, MetricMode,
    MetricOccurrence, MetricType, Paradigm, RecorderKind, RegionFlag, RegionRole, RegionType, RmaWinFlag,
    SystemTreeDomain, Type,
};
use whywait_otf2::records::{
    ClockProperties, Comm, Group, Location, LocationGroup, MetricClass, MetricMember, Region as RegionRecord, RmaWin,
    SystemTreeNode, SystemTreeNodeDomain, Text, UNDEFINED,
};

macro_rules! regions {
    ($($region:ident $name:literal $role:ident $paradigm:ident)*) => {
        /// Regions of all workloads; the number is the id.
        #[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
        #[repr(u32)]
        pub(crate) enum Region {
            $(#[doc = concat!("`", $name, "`.")] $region,)*
        }

        impl Region {
            const ALL: &[(Self, RegionRole, Paradigm)] =
                &[$((Self::$region, RegionRole::$role, Paradigm::$paradigm),)*];

            pub(crate) fn name(self) -> &'static str {
                match self { $(Self::$region => $name,)* }
            }

            /// Id of the string that is its name.
            pub(crate) fn string(self) -> u32 {
                self as u32
            }
        }
    };
}

regions! {
    Program "workload" ARTIFICIAL MEASUREMENT_SYSTEM
    Main "main" FUNCTION COMPILER
    Compute "compute" FUNCTION COMPILER
    Exchange "exchange" FUNCTION COMPILER
    SolveX "solve_x" FUNCTION COMPILER
    SolveY "solve_y" FUNCTION COMPILER
    SolveZ "solve_z" FUNCTION COMPILER
    Init "MPI_Init" FUNCTION MPI
    Finalize "MPI_Finalize" FUNCTION MPI
    Irecv "MPI_Irecv" POINT2POINT MPI
    Isend "MPI_Isend" POINT2POINT MPI
    Wait "MPI_Wait" POINT2POINT MPI
    Waitall "MPI_Waitall" POINT2POINT MPI
    Allreduce "MPI_Allreduce" COLL_ALL2ALL MPI
    Barrier "MPI_Barrier" BARRIER MPI
    WinCreate "MPI_Win_create" FUNCTION MPI
    WinFree "MPI_Win_free" FUNCTION MPI
    WinFence "MPI_Win_fence" FUNCTION MPI
    WinPost "MPI_Win_post" FUNCTION MPI
    WinStart "MPI_Win_start" FUNCTION MPI
    WinComplete "MPI_Win_complete" FUNCTION MPI
    WinWait "MPI_Win_wait" FUNCTION MPI
    WinLock "MPI_Win_lock" FUNCTION MPI
    WinUnlock "MPI_Win_unlock" FUNCTION MPI
    WinLockAll "MPI_Win_lock_all" FUNCTION MPI
    WinUnlockAll "MPI_Win_unlock_all" FUNCTION MPI
    WinFlush "MPI_Win_flush" FUNCTION MPI
    WinFlushAll "MPI_Win_flush_all" FUNCTION MPI
    WinFlushLocal "MPI_Win_flush_local" FUNCTION MPI
    WinFlushLocalAll "MPI_Win_flush_local_all" FUNCTION MPI
    Put "MPI_Put" RMA MPI
    Get "MPI_Get" RMA MPI
    Accumulate "MPI_Accumulate" ATOMIC MPI
    GetAccumulate "MPI_Get_accumulate" ATOMIC MPI
    FetchAndOp "MPI_Fetch_and_op" ATOMIC MPI
    ArmciMalloc "ARMCI_Malloc" FUNCTION UNKNOWN
    ArmciGet "ARMCI_Get" FUNCTION UNKNOWN
    ArmciBarrier "ARMCI_Barrier" FUNCTION UNKNOWN
    ArmciFree "ARMCI_Free" FUNCTION UNKNOWN
    Foo "foo" FUNCTION COMPILER
    Bar "bar" FUNCTION COMPILER
    Bsend "MPI_Bsend" POINT2POINT MPI
    Recv "MPI_Recv" POINT2POINT MPI
    CopyFaces "copy_faces" FUNCTION COMPILER
    Esolver "solver.esolver" FUNCTION COMPILER
    Pcg "pcg_chrongear_linear" FUNCTION COMPILER
    Matvec "matrix_mod_matvec" FUNCTION COMPILER
    ArmciNbGet "ARMCI_NbGet" FUNCTION UNKNOWN
    ArmciWait "ARMCI_Wait" FUNCTION UNKNOWN
    ArmciAcc "ARMCI_Acc" FUNCTION UNKNOWN
    ArmciRmw "ARMCI_Rmw" FUNCTION UNKNOWN
    ArmciAllFence "ARMCI_AllFence" FUNCTION UNKNOWN
    Launch "hipLaunchKernel" WRAPPER HIP
    DeviceSynchronize "hipDeviceSynchronize" WRAPPER HIP
    Force "force_kernel" KERNEL HIP
    Parallel "!$omp parallel @workload.c:1" PARALLEL OPENMP
    Scatter "ewdscatter2" FUNCTION COMPILER
    Gather "ewdgather1" FUNCTION COMPILER
    ImplicitBarrier "!$omp implicit barrier @workload.c:9" IMPLICIT_BARRIER OPENMP
    Critical "!$omp critical @workload.c:5" CRITICAL OPENMP
    CreateTask "!$omp create task @workload.c:4" TASK_CREATE OPENMP
    Task "!$omp task @workload.c:4" TASK OPENMP
    Taskwait "!$omp taskwait @workload.c:8" TASK_WAIT OPENMP
    Iallreduce "MPI_Iallreduce" COLL_ALL2ALL MPI
}

/// Ticks a second.
pub(crate) const RESOLUTION: u64 = 1_000_000_000;
/// The communicator of all ranks.
pub(crate) const WORLD: u32 = 0;
/// The window, or the address space that all share.
pub(crate) const WINDOW: u32 = 0;
/// Group of all locations, group of all ranks.
const LOCATIONS: u32 = 0;
const EVERYBODY: u32 = 1;
/// The first group of [`define`]'s `groups`.
pub(crate) const FIRST_GROUP: u32 = 2;
/// Processes on a node.
const NODE: u32 = 64;

/// Definitions in addition to ranks, each of which is a thread.
pub(crate) struct Kinds {
    pub(crate) windows: u32,
    /// Communicators of all ranks.
    pub(crate) communicators: u32,
    /// Threads of a rank.
    pub(crate) threads: u32,
    /// Whether each rank has a device, with one stream and its counters.
    pub(crate) has_devices: bool,
    /// Sets of ranks.
    pub(crate) groups: Vec<Vec<u64>>,
}

/// Id of the location of a rank's stream, where ranks have devices.
pub(crate) fn stream(ranks: u32, rank: u32) -> u64 {
    u64::from(ranks) + u64::from(rank)
}

/// Id of the location of a rank's thread, where ranks have several.
pub(crate) fn thread(ranks: u32, threads: u32, rank: u32, thread: u32) -> u64 {
    match thread.checked_sub(1) {
        Some(other) => u64::from(ranks) + u64::from(rank) * u64::from(threads - 1) + u64::from(other),
        None => u64::from(rank),
    }
}

/// Metric of the efficiency of kernels on a stream: shares of multiprocessors and of the threads of warps.
pub(crate) const EFFICIENCY: u32 = 0;

/// Writes all definitions; `length` ticks of events begin at `begin`.
pub(crate) fn define(to: &ArchiveWriter, ranks: u32, (begin, length): (i64, i64), kinds: &Kinds) {
    let &Kinds { windows, communicators, threads, has_devices, ref groups } = kinds;
    to.define(ClockProperties {
        timer_resolution: RESOLUTION,
        global_offset: begin as u64,
        trace_length: length as u64,
        realtime_timestamp: u64::MAX,
    });
    let mut strings = 0;
    let mut text = |string: String| {
        to.define(Text { id: strings, string });
        strings += 1;
        strings - 1
    };
    for region in Region::ALL {
        text(region.0.name().to_owned());
    }
    let none = text(String::new());
    let [machine, node_class, master, definitions, window_name] =
        ["machine", "node", "Master thread", "MPI_COMM_WORLD", "window"].map(|name| text(name.to_owned()));
    to.define(SystemTreeNode { id: 0, name: machine, class_name: machine, parent: UNDEFINED });
    for node in 0..ranks.div_ceil(NODE) {
        let name = text(format!("node{node}"));
        to.define(SystemTreeNode { id: node + 1, name, class_name: node_class, parent: 0 });
    }
    for rank in 0..ranks {
        to.define(LocationGroup {
            id: rank,
            name: text(format!("MPI Rank {rank}")),
            location_group_type: LocationGroupType::PROCESS,
            system_tree_parent: 1 + rank / NODE,
            creating_location_group: UNDEFINED,
        });
        to.define(Location {
            id: u64::from(rank),
            name: master,
            location_type: LocationType::CPU_THREAD,
            number_of_events: 0,
            location_group: rank,
        });
    }
    for number in 1..threads {
        let name = text(format!("OMP thread {number}"));
        for rank in 0..ranks {
            to.define(Location {
                id: thread(ranks, threads, rank, number),
                name,
                location_type: LocationType::CPU_THREAD,
                number_of_events: 0,
                location_group: rank,
            });
        }
    }
    if has_devices {
        let [class_name, percent] = ["device", "%"].map(|name| text(name.to_owned()));
        for (id, name) in (0..).zip(["sm_efficiency", "warp_execution_efficiency"]) {
            to.define(MetricMember {
                id,
                name: text(name.to_owned()),
                description: none,
                metric_type: MetricType::OTHER,
                metric_mode: MetricMode::ABSOLUTE_LAST,
                value_type: Type::DOUBLE,
                base: Base::DECIMAL,
                exponent: 0,
                unit: percent,
            });
        }
        to.define(MetricClass {
            id: EFFICIENCY,
            metric_members: vec![0, 1],
            metric_occurrence: MetricOccurrence::SYNCHRONOUS,
            recorder_kind: RecorderKind::GPU,
        });
        for rank in 0..ranks {
            let (id, name) = (1 + ranks.div_ceil(NODE) + rank, text(rank.to_string()));
            to.define(SystemTreeNode { id, name, class_name, parent: 1 + rank / NODE });
            to.define(SystemTreeNodeDomain {
                system_tree_node: id,
                system_tree_domain: SystemTreeDomain::ACCELERATOR_DEVICE,
            });
            to.define(LocationGroup {
                id: ranks + rank,
                name: text(format!("HIP Context {rank}")),
                location_group_type: LocationGroupType::ACCELERATOR,
                system_tree_parent: id,
                creating_location_group: rank,
            });
            to.define(Location {
                id: stream(ranks, rank),
                name: text(format!("HIP[{rank}:0]")),
                location_type: LocationType::ACCELERATOR_STREAM,
                number_of_events: 0,
                location_group: ranks + rank,
            });
        }
    }
    for &(region, region_role, paradigm) in Region::ALL {
        let name = region.string();
        let region_flags = RegionFlag::NONE;
        to.define(RegionRecord {
            id: region as u32,
            name,
            description: none,
            region_type: RegionType::of(region_role, paradigm, region_flags),
            source_file: none,
            begin_line_number: 0,
            end_line_number: 0,
            canonical_name: name,
            region_role,
            paradigm,
            region_flags,
        });
    }
    let group = |id, group_type, paradigm, members| {
        let group_flags = GroupFlag::NONE;
        let group_type_pre12 = GroupTypePre12::of(group_type, paradigm, group_flags);
        to.define(Group { id, name: none, group_type_pre12, members, group_type, paradigm, group_flags });
    };
    let mpi = |id, group_type, members| group(id, group_type, Paradigm::MPI, members);
    mpi(LOCATIONS, GroupType::COMM_LOCATIONS, (0..u64::from(ranks)).collect());
    mpi(EVERYBODY, GroupType::COMM_GROUP, (0..u64::from(ranks)).collect());
    for (id, members) in (FIRST_GROUP..).zip(groups) {
        mpi(id, GroupType::COMM_GROUP, members.clone());
    }
    let comm = |id, group| to.define(Comm { id, name: definitions, group, parent: UNDEFINED, flags: CommFlag::NONE });
    (WORLD..WORLD + communicators).for_each(|id| comm(id, EVERYBODY));
    if threads > 1 {
        let first = FIRST_GROUP + groups.len() as u32;
        let everywhere = (0..u64::from(ranks) * u64::from(threads)).collect();
        group(first, GroupType::COMM_LOCATIONS, Paradigm::OPENMP, everywhere);
        for rank in 0..ranks {
            let team = (0..threads).map(|number| thread(ranks, threads, rank, number)).collect();
            group(first + 1 + rank, GroupType::COMM_GROUP, Paradigm::OPENMP, team);
            comm(WORLD + communicators + rank, first + 1 + rank);
        }
    }
    for id in WINDOW..WINDOW + windows {
        to.define(RmaWin { id, name: window_name, comm: WORLD, flags: RmaWinFlag::CREATE_DESTROY_EVENTS });
    }
}
