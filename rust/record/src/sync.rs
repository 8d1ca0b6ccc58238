//! Clocks of processes on several nodes.

use crate::process;

/// Whether the processes of the world may be on several nodes, as far as one of them can tell: launchers say how many are on its own.
pub(crate) fn several_nodes(size: i32) -> bool {
    const VARIABLES: [&str; 4] =
        ["OMPI_COMM_WORLD_LOCAL_SIZE", "MPI_LOCALNRANKS", "PMI_LOCAL_SIZE", "SLURM_NTASKS_PER_NODE"];
    process::options().is_some_and(|options| options.sync)
        && size > 1
        && !VARIABLES.iter().any(|name| std::env::var(name).is_ok_and(|value| value == size.to_string()))
}

pub(crate) fn plan(_several: bool, _rank: i32, _size: i32) {}

pub(crate) fn planned() -> bool {
    false
}

pub(crate) fn measure() {}
