//! What a location does in a call path, for the account.

use whywait_otf2::enums::{Paradigm, RegionRole};

use crate::ids::RegionKey;
use crate::trace::regions::{Library, Region, Regions, mpi_call};
use crate::trace::{RegionClass, Trace};

/// What a location does while a call path is the innermost.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Activity {
    /// It runs the program's own code.
    Own,
    /// The program records own code elsewhere, but not here.
    Unknown,
    /// It is in a call that moves data or synchronizes.
    Transfer,
    /// It asks for a message, and waits for it if it has to.
    Probe,
    /// It is in another call of a communication library.
    Library,
    /// It reads or writes files.
    Io,
    /// It creates or joins threads.
    ForkJoin,
    /// It is in a barrier of threads.
    Barrier,
    /// It is in another construct or call of a threading library.
    Runtime,
    /// It is in a call that concerns devices.
    Device,
    /// The measurement system runs.
    Measurement,
}

impl Activity {
    /// Whether each call is looked at by itself: it can wait, or it is compared with others of its kind.
    #[inline]
    pub(super) fn has_calls(self) -> bool {
        !matches!(self, Self::Own | Self::Unknown | Self::Measurement)
    }

    /// Whether it is a call of a communication library, or I/O.
    pub(super) fn is_library(self) -> bool {
        matches!(self, Self::Transfer | Self::Probe | Self::Library | Self::Io)
    }
}

/// The activities of all call paths.
///
/// A trace that records own code at all does not record it where only the program is open; otherwise the program itself
/// is the own code.
pub(super) fn of_tree(trace: &Trace) -> Vec<Activity> {
    let of_region = |key: RegionKey| {
        if Regions::is_program(key) {
            return Activity::Unknown;
        }
        if Regions::is_pause(key) {
            return Activity::Measurement;
        }
        trace.regions.get(key).map_or(Activity::Own, |region| of_region(region, trace.regions.class(key)))
    };
    let mut of_nodes: Vec<Activity> = trace.tree.nodes().iter().map(|node| of_region(node.region)).collect();
    if !of_nodes.contains(&Activity::Own) {
        for (activity, node) in of_nodes.iter_mut().zip(trace.tree.nodes()) {
            if Regions::is_program(node.region) {
                *activity = Activity::Own;
            }
        }
    }
    of_nodes
}

/// Whether each call path is a collective operation with a root.
pub(super) fn rooted(trace: &Trace) -> Vec<bool> {
    let is_rooted = |key: RegionKey| {
        let call = trace.regions.get(key).and_then(|region| mpi_call(&region.name, region.paradigm));
        call.is_some_and(|call| ROOTED.contains(&call.as_str()))
    };
    trace.tree.nodes().iter().map(|node| is_rooted(node.region)).collect()
}

fn of_region(region: &Region, class: RegionClass) -> Activity {
    let name = region.name.strip_suffix("()").unwrap_or(&region.name);
    let paradigm = region.paradigm;
    if matches!(region.role, RegionRole::FILE_IO | RegionRole::FILE_IO_METADATA) {
        return Activity::Io;
    }
    if class == RegionClass::Unrecorded {
        return Activity::Unknown;
    }
    if let RegionClass::Device(_) = class {
        return Activity::Device;
    }
    if class.library().is_some_and(|library| library != Library::Mpi) {
        let is_call = |calls: &[&str], prefixes: &[&str]| {
            let call = name.trim_start_matches("shmem_").trim_start_matches('P').trim_start_matches("ARMCI_");
            let call = call.trim_start_matches('p').trim_start_matches("gaspi_").trim_start_matches("upc_");
            calls.contains(&call) || prefixes.iter().any(|prefix| call.starts_with(prefix))
        };
        let manages = matches!(class, RegionClass::ShmemAllocate | RegionClass::ShmemFree | RegionClass::ShmemFinalize)
            || matches!(class, RegionClass::ArmciFinalize | RegionClass::GaspiFinalize)
            || class.is_test()
            || is_call(&MANAGING, &MANAGING_PREFIXES);
        return if manages { Activity::Library } else { Activity::Transfer };
    }
    if class == RegionClass::UnknownLibrary {
        return Activity::Library;
    }
    if let Some(call) = mpi_call(name, paradigm).filter(|_| name != "PARALLEL") {
        return match call.as_str() {
            "probe" | "mprobe" => Activity::Probe,
            call if call.starts_with("file_") => Activity::Io,
            call if TRANSFERS.contains(&call) => Activity::Transfer,
            call if call.strip_prefix("neighbor_").is_some_and(|call| TRANSFERS.contains(&call)) => Activity::Transfer,
            _ => Activity::Library,
        };
    }
    match paradigm {
        // It waits for what no record tells.
        Paradigm::USER if region.role == RegionRole::THREAD_WAIT => Activity::Unknown,
        Paradigm::OPENMP => match region.role {
            RegionRole::BARRIER | RegionRole::IMPLICIT_BARRIER => Activity::Barrier,
            // A recorded block inside a construct is the program's own.
            _ if name.contains(" sblock") => Activity::Own,
            RegionRole::CRITICAL
            | RegionRole::ATOMIC
            | RegionRole::ORDERED
            | RegionRole::TASK_WAIT
            | RegionRole::FLUSH => Activity::Runtime,
            _ if name.starts_with("omp_") || name.ends_with(" Lock") => Activity::Runtime,
            _ => Activity::Own,
        },
        Paradigm::PTHREAD => match name {
            "pthread_create" | "pthread_join" | "pthread_cancel" | "pthread_detach" | "pthread_exit" => {
                Activity::ForkJoin
            }
            _ => Activity::Runtime,
        },
        Paradigm::CUDA | Paradigm::HIP | Paradigm::OPENCL | Paradigm::OPENACC => {
            if region.role == RegionRole::KERNEL {
                Activity::Own
            } else if name == "BUFFER FLUSH" {
                Activity::Measurement
            } else {
                Activity::Device
            }
        }
        Paradigm::MEASUREMENT_SYSTEM if is_overhead(name) => Activity::Measurement,
        _ => Activity::Own,
    }
}

/// Whether the measurement system, or nothing, runs: as recorded by Score-P, by the states of Paraver traces, or by the
/// profiling interface of CUDA.
fn is_overhead(name: &str) -> bool {
    matches!(name, "TRACE BUFFER FLUSH" | "TRACING" | "not created" | "tracing disabled" | "flush" | "idle")
        || name == "profiler overhead"
        || matches!(name, "Activity Buffer Request" | "Buffer Flush" | "Instrumentation" | "Resource")
        || matches!(name, "Command Buffer Full" | "Driver Compiler" | "Lazy Function Loading")
        || matches!(name, "Runtime Triggered Module Loading")
        || name.starts_with("state: ")
}

/// MPI calls that move data or synchronize, and those that complete such operations.
const TRANSFERS: [&str; 56] = [
    "send",
    "bsend",
    "ssend",
    "rsend",
    "recv",
    "mrecv",
    "sendrecv",
    "sendrecv_replace",
    "wait",
    "waitall",
    "waitany",
    "waitsome",
    "barrier",
    "bcast",
    "gather",
    "gatherv",
    "scatter",
    "scatterv",
    "allgather",
    "allgatherv",
    "alltoall",
    "alltoallv",
    "alltoallw",
    "reduce",
    "allreduce",
    "reduce_scatter",
    "reduce_scatter_block",
    "scan",
    "exscan",
    "put",
    "get",
    "accumulate",
    "get_accumulate",
    "fetch_and_op",
    "compare_and_swap",
    "rput",
    "rget",
    "raccumulate",
    "rget_accumulate",
    "win_fence",
    "win_post",
    "win_start",
    "win_complete",
    "win_wait",
    "win_lock",
    "win_lock_all",
    "win_unlock",
    "win_unlock_all",
    "win_flush",
    "win_flush_all",
    "win_flush_local",
    "win_flush_local_all",
    "win_sync",
    "parrived",
    "pready",
    "pready_range",
];

/// Collective operations with a root.
const ROOTED: [&str; 6] = ["bcast", "gather", "gatherv", "scatter", "scatterv", "reduce"];

/// Calls of other libraries than MPI, without their prefix, that only manage the library or ask it something.
const MANAGING: [&str; 23] = [
    "init",
    "init_thread",
    "global_exit",
    "query_thread",
    "my_pe",
    "_my_pe",
    "n_pes",
    "num_pes",
    "_num_pes",
    "ptr",
    "pcontrol",
    "Init",
    "Init_args",
    "Cleanup",
    "Error",
    "Malloc",
    "Free",
    "Memget",
    "Memat",
    "Memctl",
    "Uses_shm",
    "Same_node",
    "Absolute_id",
];
const MANAGING_PREFIXES: [&str; 30] = [
    "proc_",
    "segment_",
    "group_",
    "config_",
    "queue_",
    "connect",
    "disconnect",
    "state_vec",
    "notify_reset",
    "all_alloc",
    "all_free",
    "all_lock_",
    "lock_",
    "info_get",
    "addr_accessible",
    "pe_accessible",
    "team_split",
    "team_destroy",
    "team_my",
    "team_n",
    "team_translate",
    "ctx_create",
    "ctx_destroy",
    "ctx_get",
    "Group",
    "Domain",
    "Create_mutexes",
    "Destroy_mutexes",
    "Malloc_",
    "Free_",
];

#[cfg(test)]
mod tests {
    use super::*;

    fn activity(name: &str, paradigm: Paradigm, role: RegionRole) -> Activity {
        let region = Region {
            name: name.to_owned(),
            canonical_name: String::new(),
            paradigm,
            role,
            file: String::new(),
            begin_line: 0,
            end_line: 0,
            is_dynamic: false,
        };
        of_region(&region, RegionClass::of(name, paradigm, role))
    }

    #[test]
    fn calls_are_told_by_their_names() {
        let is = |paradigm, names: &[&str], expected| {
            for name in names {
                assert_eq!(activity(name, paradigm, RegionRole::FUNCTION), expected, "{name}");
            }
        };
        let transfers =
            ["MPI_Send", "mpi_waitall_", "MPI_Allreduce", "MPI_Neighbor_alltoallv", "MPI_Put", "MPI_Win_fence"];
        is(Paradigm::MPI, &transfers, Activity::Transfer);
        let others =
            ["MPI_Isend", "MPI_Start", "MPI_Test", "MPI_Iprobe", "MPI_Comm_dup", "MPI_Iallreduce", "MPI_Finalize"];
        is(Paradigm::MPI, &others, Activity::Library);
        is(Paradigm::MPI, &["MPI_Probe", "MPI_Mprobe", "MPI_Iprobe (polling)"], Activity::Probe);
        is(Paradigm::MPI, &["MPI_Test (polling)", "MPI_Win_test (polling)"], Activity::Transfer);
        is(Paradigm::MPI, &["MPI_Recv (unrecorded peers)"], Activity::Unknown);
        is(Paradigm::MPI, &["MPI_File_write_at", "MPI_File_open"], Activity::Io);
        is(
            Paradigm::SHMEM,
            &["shmem_barrier_all", "shmem_double_put", "shmem_quiet", "shmem_set_lock"],
            Activity::Transfer,
        );
        is(Paradigm::SHMEM, &["shmem_init", "shmem_malloc", "shmem_my_pe", "shmem_int_test"], Activity::Library);
        is(Paradigm::UNKNOWN, &["ARMCI_Put", "ARMCI_AllFence", "PARMCI_Get"], Activity::Transfer);
        is(Paradigm::UNKNOWN, &["ARMCI_Malloc", "ARMCI_Init", "PARMCI_Test"], Activity::Library);
        is(Paradigm::COMPILER, &["upcxx::barrier", "gasnet_AMPoll"], Activity::Library);
        is(Paradigm::GASPI, &["gaspi_write_notify", "gaspi_wait", "pgaspi_barrier"], Activity::Transfer);
        is(Paradigm::GASPI, &["gaspi_proc_init", "gaspi_proc_term", "gaspi_segment_create"], Activity::Library);
        is(Paradigm::UPC, &["upc_barrier", "upc_lock", "upc_memget", "upc_all_broadcast"], Activity::Transfer);
        is(Paradigm::UPC, &["upc_all_alloc", "upc_lock_attempt", "upc_all_lock_alloc"], Activity::Library);
        is(Paradigm::PTHREAD, &["pthread_create", "pthread_join"], Activity::ForkJoin);
        is(Paradigm::PTHREAD, &["pthread_mutex_lock"], Activity::Runtime);
        is(Paradigm::HIP, &["hipMalloc", "hipMemcpyAsync", "hipLaunchKernel"], Activity::Device);
        is(Paradigm::USER, &["main", "MPI_phase", "hipster"], Activity::Own);
        is(Paradigm::OPENMP, &["omp_set_lock"], Activity::Runtime);
    }

    #[test]
    fn constructs_are_told_by_their_roles() {
        for (role, expected) in [
            (RegionRole::PARALLEL, Activity::Own),
            (RegionRole::LOOP, Activity::Own),
            (RegionRole::IMPLICIT_BARRIER, Activity::Barrier),
            (RegionRole::CRITICAL, Activity::Runtime),
            (RegionRole::CRITICAL_SBLOCK, Activity::Own),
            (RegionRole::TASK_WAIT, Activity::Runtime),
            (RegionRole::FILE_IO, Activity::Io),
        ] {
            assert_eq!(activity("!$omp it", Paradigm::OPENMP, role), expected, "{role:?}");
        }
        assert_eq!(activity("poll", Paradigm::USER, RegionRole::THREAD_WAIT), Activity::Unknown);
    }
}
