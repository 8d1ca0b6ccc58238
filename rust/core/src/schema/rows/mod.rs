//! The rows of the schema: each integer metric, and each wait state with its properties.
//!
//! ```text
//! /// One sentence: the description of a wait state in reports and documents.
//! Name = "unique_name" in Count,        a count: Count, Bytes, or nothing for a time
//! Name = "unique_name" { fields },      a wait state: fields of a Pattern, with defaults from WAIT, PART, BOUND or CCL
//! ```
//!
//! An enum needs all of its variants in one place. So each file is a macro that appends its rows to those it receives
//! and passes them on to the next macro of a list; the last one consumes them ([`super::metrics`],
//! [`super::patterns`]). The order of the rows is the order of metrics in tables, and of wait states below the same
//! metric in the tree.

#[macro_use]
mod counts;
#[macro_use]
mod mpi;
#[macro_use]
mod threads;
#[macro_use]
mod one_sided;
#[macro_use]
mod one_sided_library;
#[macro_use]
mod shmem;
#[macro_use]
mod armci;
#[macro_use]
mod pgas;
#[macro_use]
mod devices;
#[macro_use]
mod ccl;

/// Calls a macro with all rows.
macro_rules! with_rows {
    ($last:ident) => {
        calls! { [mpi threads messages one_sided shmem armci pgas devices ccl critical_path $last] }
    };
}
