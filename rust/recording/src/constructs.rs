//! The constructs of OpenMP in a program: what tells them apart, and the regions that stand for them.

use rustc_hash::FxHashMap;
use whywait_otf2::enums::RegionRole;

use crate::format::Call;
use crate::functions::{FUNCTIONS, Function};

/// What the constructs of a process are in the archive.
#[derive(Debug, Default)]
pub(crate) struct Constructs {
    /// The region of each construct: by function of the table and address.
    pub(crate) regions: FxHashMap<(u16, u64), u32>,
    /// The communicator of each team, and its threads.
    pub(crate) teams: FxHashMap<u32, (u32, Vec<u32>)>,
}

/// Constructs that have no place in the program: calls of functions.
pub(crate) fn is_call(name: &str) -> bool {
    name.ends_with("_lock")
}

/// What tells the regions of a construct apart. A task, and the barrier at the end of a parallel region, are where that is.
pub(crate) fn keys(call: &Call) -> impl Iterator<Item = (u16, u64)> {
    let name = FUNCTIONS[usize::from(call.function)].name;
    let code = if is_call(name) { 0 } else { call.received };
    let further = match name {
        "omp_create_task" => Some("omp_task"),
        "omp_parallel" => Some("omp_implicit_barrier"),
        _ => None,
    };
    let own = !matches!(name, "omp_fork" | "omp_task");
    own.then_some((call.function, code)).into_iter().chain(further.map(|name| (number(name), code)))
}

fn number(name: &str) -> u16 {
    FUNCTIONS.iter().position(|function| function.name == name).unwrap_or(0) as u16
}

/// The name of a construct's region at a place such as `heat.c:16`.
pub(crate) fn region_name(function: &Function, place: &str) -> String {
    if is_call(function.name) {
        return function.name.to_owned();
    }
    let name = function.name.strip_prefix("omp_").unwrap_or(function.name).replace('_', " ");
    if place.is_empty() { format!("!$omp {name}") } else { format!("!$omp {name} @{place}") }
}

/// The role of a construct's region.
pub(crate) fn role(name: &str) -> RegionRole {
    match name {
        "omp_parallel" => RegionRole::PARALLEL,
        "omp_barrier" => RegionRole::BARRIER,
        "omp_implicit_barrier" => RegionRole::IMPLICIT_BARRIER,
        "omp_taskwait" | "omp_taskgroup" => RegionRole::TASK_WAIT,
        "omp_for" => RegionRole::LOOP,
        "omp_sections" => RegionRole::SECTIONS,
        "omp_single" => RegionRole::SINGLE,
        "omp_single_sblock" => RegionRole::SINGLE_SBLOCK,
        "omp_master" => RegionRole::MASTER,
        "omp_critical" => RegionRole::CRITICAL,
        "omp_critical_sblock" => RegionRole::CRITICAL_SBLOCK,
        "omp_create_task" => RegionRole::TASK_CREATE,
        "omp_task" => RegionRole::TASK,
        _ => RegionRole::WRAPPER,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn regions_are_named_as_with_score_p() {
        let named = |name: &str| FUNCTIONS.iter().find(|function| function.name == name).unwrap();
        assert_eq!(region_name(named("omp_implicit_barrier"), "heat.c:16"), "!$omp implicit barrier @heat.c:16");
        assert_eq!(region_name(named("omp_set_lock"), "heat.c:16"), "omp_set_lock");
        let call = Call { function: number("omp_create_task"), received: 7, ..Call::default() };
        // The task that it makes has a region as well.
        assert_eq!(keys(&call).collect::<Vec<_>>(), [(number("omp_create_task"), 7), (number("omp_task"), 7)]);
    }
}
