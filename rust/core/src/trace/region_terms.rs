//! Paradigm and role of a region, in the terms of Score-P and Cube: what derived metrics and reports ask for.
//!
//! Tools other than Score-P record library calls as plain functions. Their names tell the library, and the role that
//! Score-P would give them. The paradigm of a call of an unknown library is its name ([`super::unknown_libraries`]).

use std::sync::LazyLock;

use regex_lite::Regex;
use whywait_otf2::enums::Paradigm;

use super::device_calls::DeviceCall;
use super::regions::{bare, construct, mpi_call};
use super::unknown_libraries::library_of;

/// Paradigm and role of a region; texts in OTF2's terms (any case) or in those of Cube.
///
/// ```
/// use whywait_core::trace::region_terms::terms;
///
/// assert_eq!(terms("MPI_Bcast", "USER", "FUNCTION"), ("mpi".to_owned(), "one2all".to_owned()));
/// assert_eq!(terms("main", "COMPILER", "FUNCTION"), ("compiler".to_owned(), "function".to_owned()));
/// assert_eq!(terms("upcxx::barrier()", "COMPILER", "FUNCTION"), ("upcxx".to_owned(), "function".to_owned()));
/// ```
pub fn terms(name: &str, paradigm: &str, role: &str) -> (String, String) {
    let (paradigm, role) = (paradigm.to_lowercase(), role.to_lowercase());
    let bare = bare(name);
    let (paradigm, role) = recognized(bare, paradigm, role);
    let is_pgas = PGAS.contains(&paradigm.as_str());
    let recorded = if paradigm == "mpi" { Paradigm::MPI } else { Paradigm::UNKNOWN };
    let (paradigm, call) = if let Some(call) = mpi_call(name, recorded) {
        ("mpi", call)
    } else if let Some(call) = bare.strip_prefix('P').unwrap_or(bare).strip_prefix("ARMCI_")
        && paradigm != "compiler"
    {
        ("armci", call.to_lowercase())
    } else if !matches!(paradigm.as_str(), "shmem" | "gaspi" | "upc")
        && let Some(library) = library_of(bare)
    {
        (library, String::new())
    } else {
        let call = bare.split_once('_').map_or("", |(_, call)| call).to_lowercase();
        (if paradigm == "measurement_system" { "measurement" } else { &paradigm }, call)
    };
    // Kernels that communicate are calls of a library of their own.
    let library = paradigm;
    let paradigm = if is_pgas { "pgas" } else { paradigm };
    let paradigm = if DEVICES.contains(&paradigm) && COMMUNICATION.contains(&role.as_str()) { "ccl" } else { paradigm };
    let role = match role.as_str() {
        "coll_one2all" => "one2all",
        "coll_all2one" => "all2one",
        "coll_all2all" => "all2all",
        "coll_other" => "other collective",
        "task_wait" => "taskwait",
        "unknown" | "function" | "wrapper" => {
            let known = ROLES.iter().filter(|(known, _)| *known == library).flat_map(|(_, roles)| roles.iter());
            known.clone().find(|(_, calls)| calls.is_match(&call)).map_or(role.as_str(), |(role, _)| role)
        }
        "file_io" | "file io" | "file_io_metadata" | "file io metadata" if !LIBRARIES.contains(&paradigm) => {
            return ("io".to_owned(), role.replace('_', " "));
        }
        role => return (paradigm.to_owned(), role.replace('_', " ")),
    };
    (paradigm.to_owned(), role.to_owned())
}

/// Paradigm and role by the name, where no library is recorded.
fn recognized(name: &str, paradigm: String, role: String) -> (String, String) {
    if !matches!(paradigm.as_str(), "user" | "unknown" | "") {
        return (paradigm, role);
    }
    let lower = |name: Option<&str>| name.unwrap_or_default().to_lowercase();
    if let Some(of_construct) = construct(name) {
        (lower(Paradigm::OPENMP.name()), lower(of_construct.name()))
    } else if name.starts_with("pthread_") {
        (lower(Paradigm::PTHREAD.name()), role)
    } else if let Some(of_call) = DeviceCall::paradigm(name) {
        (lower(of_call.name()), role)
    } else {
        (paradigm, role)
    }
}

/// Paradigms that are one programming model.
const PGAS: [&str; 2] = ["gaspi", "upc"];

/// Paradigms of devices.
const DEVICES: [&str; 3] = ["cuda", "hip", "opencl"];

/// Roles of what communicates.
const COMMUNICATION: [&str; 6] =
    ["barrier", "point2point", "coll_one2all", "coll_all2one", "coll_all2all", "coll_other"];

/// Libraries whose I/O is theirs.
const LIBRARIES: [&str; 2] = ["mpi", "shmem"];

/// The calls of each role, by library.
type Roles = Vec<(&'static str, Vec<(&'static str, Regex)>)>;

static ROLES: LazyLock<Roles> = LazyLock::new(|| {
    let compile = |(library, roles): (&'static str, &[(&'static str, &str)])| {
        let compiled =
            roles.iter().filter_map(|&(role, calls)| Some((role, Regex::new(&format!("^(?:{calls})$")).ok()?)));
        (library, compiled.collect())
    };
    [("mpi", MPI), ("shmem", SHMEM), ("armci", ARMCI), ("gaspi", GASPI), ("upc", UPC)]
        .into_iter()
        .map(compile)
        .collect()
});

/// Calls of MPI without the prefix, in lower case.
const MPI: &[(&str, &str)] = &[
    ("point2point", "i?([brs]?send|recv)|[bprs]?send_init|p?recv_init|i?sendrecv(_replace)?|i?m?probe|i?mrecv"),
    ("barrier", "i?barrier(_init)?"),
    ("one2all", "i?(bcast|scatterv?)(_init)?"),
    ("all2one", "i?(reduce|gatherv?)(_init)?"),
    ("all2all", "i?(allreduce|reduce_scatter(_block)?|(neighbor_)?(allgatherv?|alltoall[vw]?))(_init)?"),
    ("other collective", "i?(ex)?scan(_init)?"),
    ("rma", "r?(put|get)"),
    ("atomic", "r?(get_)?accumulate|fetch_and_op|compare_and_swap"),
];

/// Calls of OpenSHMEM.
const SHMEM: &[(&str, &str)] = &[
    ("barrier", "(team_)?(barrier|sync)(_all)?"),
    ("one2all", r"\w*broadcast\w*"),
    ("all2all", r"(\w+_)?(f?collect|alltoalls?)(\d+|mem)?|\w+_to_all|\w+_reduce"),
    ("rma", r"(\w+_)?(ib?)?(put|get)(\d+|mem)?(_signal)?(_nbi)?|(\w+_)?[pg](_nbi)?"),
    ("atomic", r"(\w+_)?(f?add|f?inc|c?swap|atomic_\w+|fetch|set)"),
];

/// Calls of ARMCI.
const ARMCI: &[(&str, &str)] = &[
    ("barrier", "barrier"),
    ("one2all", "bcast"),
    ("rma", r"(nb)?(put|get)(s|v|s_flag(_dir)?|_flag)?|(nb)?putvalue\w+|getvalue\w+"),
    ("atomic", "(nb)?acc(s|v)?|rmw"),
];

/// Calls of GASPI.
const GASPI: &[(&str, &str)] = &[
    ("barrier", "barrier"),
    ("all2all", "allreduce(_user)?"),
    ("point2point", "passive_(send|receive)"),
    ("rma", r"(write|read)(_list)?(_notify)?"),
    ("atomic", r"atomic_\w+"),
];

/// Calls of UPC.
const UPC: &[(&str, &str)] = &[
    ("barrier", "barrier|notify|wait"),
    ("one2all", r"all_(broadcast|scatter)\w*"),
    ("all2one", r"all_(gather|reduce\w*)"),
    ("all2all", r"all_(gather_all|exchange|permute|sort)"),
    ("other collective", r"all_prefix_reduce\w*"),
    ("rma", r"mem(put|get|set|cpy)\w*"),
    ("atomic", r"atomic_\w+"),
];

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_pattern_compiles() {
        for (library, roles) in [("mpi", MPI), ("shmem", SHMEM), ("armci", ARMCI), ("gaspi", GASPI), ("upc", UPC)] {
            let (_, compiled) = ROLES.iter().find(|(one, _)| *one == library).unwrap();
            assert_eq!(compiled.len(), roles.len(), "{library}");
        }
    }

    #[test]
    fn names_tell_what_a_tool_did_not_record() {
        let of = |name, paradigm, role| {
            let (paradigm, role) = terms(name, paradigm, role);
            format!("{paradigm} {role}")
        };
        assert_eq!(of("MPI_Irecv", "USER", "FUNCTION"), "mpi point2point");
        assert_eq!(of("MPI_Allreduce_c()", "USER", "WRAPPER"), "mpi all2all");
        assert_eq!(of("MPI_Iprobe (polling)", "USER", "FUNCTION"), "mpi point2point");
        assert_eq!(of("MPI_Bcast (unrecorded peers)", "USER", "FUNCTION"), "mpi one2all");
        assert_eq!(of("mpi_win_create_", "COMPILER", "FUNCTION"), "mpi function");
        assert_eq!(of("PARMCI_NbGetS", "UNKNOWN", "UNKNOWN"), "armci rma");
        // Frames on the stack.
        assert_eq!(of("gaspi_wait", "COMPILER", "FUNCTION"), "gaspi function");
        assert_eq!(of("ARMCI_Barrier", "COMPILER", "FUNCTION"), "compiler function");
        assert_eq!(of("shmem_int_p", "SHMEM", "FUNCTION"), "shmem rma");
        assert_eq!(of("gaspi_write_notify", "GASPI", "FUNCTION"), "pgas rma");
        assert_eq!(of("pgaspi_atomic_fetch_add", "GASPI", "FUNCTION"), "pgas atomic");
        assert_eq!(of("gaspi_notify", "GASPI", "FUNCTION"), "pgas function");
        assert_eq!(of("upc_notify", "UPC", "FUNCTION"), "pgas barrier");
        assert_eq!(of("upc_all_gather_all", "UPC", "FUNCTION"), "pgas all2all");
        assert_eq!(of("upc_memput_nbi", "UPC", "FUNCTION"), "pgas rma");
        assert_eq!(of("shmem_barrier_all", "SHMEM", "BARRIER"), "shmem barrier");
        assert_eq!(of("parallel", "OPENMP", "IMPLICIT_BARRIER"), "openmp implicit barrier");
        assert_eq!(of("MEASUREMENT", "MEASUREMENT_SYSTEM", "ARTIFICIAL"), "measurement artificial");
        assert_eq!(of("put", "USER", "FUNCTION"), "user function");
        assert_eq!(of("OpenMP implicit barrier", "USER", "FUNCTION"), "openmp implicit barrier");
        assert_eq!(of("OpenMP Task wait", "UNKNOWN", "UNKNOWN"), "openmp taskwait");
        assert_eq!(of("cudaLaunchKernel", "USER", "FUNCTION"), "cuda function");
        assert_eq!(of("hipStreamSynchronize", "", "FUNCTION"), "hip function");
        assert_eq!(of("pthread_mutex_lock", "USER", "FUNCTION"), "pthread function");
        assert_eq!(of("hipster", "USER", "FUNCTION"), "user function");
        assert_eq!(of("read", "NONE", "FILE_IO"), "io file io");
        assert_eq!(of("open", "UNKNOWN", "FILE_IO_METADATA"), "io file io metadata");
        assert_eq!(of("MPI_File_read", "MPI", "FILE_IO"), "mpi file io");
    }
}
