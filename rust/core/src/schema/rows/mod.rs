//! The rows of the schema: each metric that the analysis counts or measures, each wait state with all that is said of it.
//!
//! ```text
//! /// What it is, in a sentence: the description of a wait state in reports and documents.
//! Name = "unique_name" in Count,        counted in events: Count, Bytes, or nothing for a time
//! Name = "unique_name" { fields },      a wait state: the fields of a Pattern, what is not given from WAIT, PART or BOUND
//! ```
//!
//! An enum wants all of its variants in one place. So each file is a macro that hands its rows, behind those before, to
//! the next macro of a list; the last one makes of them what it is for ([`super::metrics`], [`super::patterns`]). The order
//! of the rows is the order of metrics in tables, and of wait states below the same metric in the tree.

#[macro_use]
mod counts;
#[macro_use]
mod mpi;
#[macro_use]
mod threads;
#[macro_use]
mod one_sided;
#[macro_use]
mod shmem;
#[macro_use]
mod armci;
#[macro_use]
mod devices;

/// Hands all rows to a macro.
macro_rules! with_rows {
    ($last:ident) => {
        calls! { [mpi threads messages one_sided shmem armci devices critical_path $last] }
    };
}
