//! The tables of an export, by their names: what each version has is seen from the file, never from its version.

use crate::sqlite::{Database, Table};

/// Tables of which an export has at least one.
const TELLING: [&str; 3] = ["META_DATA_EXPORT", "EXPORT_META_DATA", "CUPTI_ACTIVITY_KIND_RUNTIME"];
/// The table of names, without which nothing can be read.
pub(crate) const NAMES: &str = "StringIds";

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

/// The name of a table without its version.
pub(crate) fn base(name: &str) -> &str {
    match name.rsplit_once("_V") {
        Some((base, version)) if version.bytes().all(|byte| byte.is_ascii_digit()) => base,
        _ => name,
    }
}
