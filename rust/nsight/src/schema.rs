//! The tables of an export, by their names: what each version has is seen from the file, never from its version.

use whywait_otf2::OddityKind;

use crate::sqlite::{Database, Table};

/// Tables of which an export has at least one.
const TELLING: [&str; 3] = ["META_DATA_EXPORT", "EXPORT_META_DATA", "CUPTI_ACTIVITY_KIND_RUNTIME"];
/// The table of names, without which nothing can be read.
pub(crate) const NAMES: &str = "StringIds";
/// What follows if a table has not a column.
const NAMELESS: &str = "which calls its rows are is not known";
const ONE_COMMUNICATOR: &str = "all its calls are taken as on one communicator";
const NO_REQUESTS: &str = "which calls complete which others is not known, so nobody waits in them";
const NO_MESSAGES: &str = "which messages there are is not known";
const NO_LAUNCHES: &str = "which call launched what is known by order only";

/// Whether a database is an export of Nsight Systems.
pub(crate) fn is_export(database: &Database) -> bool {
    TELLING.iter().any(|name| find(database, name).is_some())
}

/// The table with a name, or else with the highest version of it: `NAME_V3`.
pub(crate) fn find<'a>(database: &'a Database, name: &str) -> Option<&'a Table> {
    let same = |table: &&Table| table.name.eq_ignore_ascii_case(name);
    let version = |table: &Table| -> Option<u32> {
        let (front, version) = table.name.split_at_checked(name.len())?;
        let version = version.strip_prefix("_V").or_else(|| version.strip_prefix("_v"))?;
        if front.eq_ignore_ascii_case(name) { version.parse().ok() } else { None }
    };
    let versions = database.tables.iter().filter_map(|table| Some((version(table)?, table)));
    database.tables.iter().find(same).or_else(|| versions.max_by_key(|(version, _)| *version).map(|(_, table)| table))
}

/// A column that a table has not, and what follows.
pub(crate) struct Lacking {
    pub(crate) column: &'static str,
    pub(crate) kind: OddityKind,
    pub(crate) consequence: &'static str,
}

/// The columns that a table has not and that matter, unless all of its rows are left out without them.
pub(crate) fn lacking(table: &Table) -> impl Iterator<Item = Lacking> {
    let (guessed, missing) = (OddityKind::Guessed, OddityKind::Missing);
    let of_table: &[_] = match base(&table.name) {
        "MPI_P2P_EVENTS" => &[
            ("textId", missing, NAMELESS),
            ("commHandle", guessed, ONE_COMMUNICATOR),
            ("requestHandle", missing, NO_REQUESTS),
            ("remoteRank", missing, NO_MESSAGES),
            ("tag", missing, NO_MESSAGES),
        ],
        "MPI_COLLECTIVES_EVENTS" => &[
            ("textId", missing, NAMELESS),
            ("commHandle", guessed, ONE_COMMUNICATOR),
            ("requestHandle", missing, NO_REQUESTS),
        ],
        "MPI_START_WAIT_EVENTS" => &[("textId", missing, NAMELESS), ("requestHandle", missing, NO_REQUESTS)],
        "NVTX_EVENTS" => &[("textId", missing, "names that are registered are not known")],
        name => match name.strip_prefix("CUPTI_ACTIVITY_KIND_") {
            Some("RUNTIME" | "KERNEL" | "MEMCPY" | "MEMSET" | "GRAPH_TRACE" | "SYNCHRONIZATION" | "CUDA_EVENT") => {
                &[("correlationId", missing, NO_LAUNCHES)]
            }
            _ => &[],
        },
    };
    let columns: Vec<_> = of_table.iter().copied().filter(|(column, ..)| table.column(column).is_none()).collect();
    columns.into_iter().map(|(column, kind, consequence)| Lacking { column, kind, consequence })
}

/// The name of a table without its version.
pub(crate) fn base(name: &str) -> &str {
    match name.rsplit_once("_V") {
        Some((base, version)) if version.bytes().all(|byte| byte.is_ascii_digit()) => base,
        _ => name,
    }
}
