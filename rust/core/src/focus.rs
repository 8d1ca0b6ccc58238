//! The focus: the run without start-up and shutdown.
//!
//! It lasts from the last Leave of `MPI_Init` to the first Enter of `MPI_Finalize`, or the same calls of OpenSHMEM and
//! ARMCI.

use rayon::prelude::*;
use whywait_otf2::enums::Paradigm;

use crate::Result;
use crate::trace::regions::{Region, RegionClass};
use crate::trace::{Shard, Trace};

/// Whether a call path starts or shuts down a communication library.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Phase {
    /// Starts it.
    Start,
    /// Ends it.
    End,
}

/// First and last tick of the focus; `None` if nothing starts or ends, or the end comes first.
pub(crate) fn bounds(trace: &Trace) -> Result<Option<(i64, i64)>> {
    let phases: Vec<Option<Phase>> = trace
        .tree
        .nodes()
        .iter()
        .map(|node| {
            let region = node.region;
            phase(trace.regions.class(region), trace.regions.get(region))
        })
        .collect();
    let own = trace.par_shards().map(|shard| of_shard(shard, &phases)).reduce(|| (None, None), merge);
    let (begin, end) = trace.exchange.allgather(own)?.into_iter().fold((None, None), merge);
    let (first, last) = trace.span().unwrap_or_default();
    let focus = (begin.unwrap_or(first), end.unwrap_or(last));
    Ok(((begin.is_some() || end.is_some()) && focus.0 < focus.1).then_some(focus))
}

/// The latest start and the earliest end.
fn merge(a: (Option<i64>, Option<i64>), b: (Option<i64>, Option<i64>)) -> (Option<i64>, Option<i64>) {
    (a.0.max(b.0), a.1.into_iter().chain(b.1).min())
}

fn of_shard(shard: &Shard, phases: &[Option<Phase>]) -> (Option<i64>, Option<i64>) {
    let events = &shard.events;
    let mut found = (None, None);
    for position in 0..events.time.len() as u32 {
        let Some(phase) = phases[events.callpath(position).index()] else { continue };
        let time = events.time[position as usize];
        match (phase, events.is_leave(position)) {
            (Phase::Start, true) => found = merge(found, (Some(time), None)),
            (Phase::End, false) => found = merge(found, (None, Some(time))),
            _ => {}
        }
    }
    found
}

fn phase(class: RegionClass, region: Option<&Region>) -> Option<Phase> {
    match class {
        RegionClass::Init => return Some(Phase::Start),
        RegionClass::Finalize => return Some(Phase::End),
        _ => {}
    }
    let region = region?;
    let name = region.name.trim_end_matches("()");
    match name {
        "start_pes" | "shmem_init" | "shmem_init_thread" if region.paradigm == Paradigm::SHMEM => Some(Phase::Start),
        "shmem_finalize" if region.paradigm == Paradigm::SHMEM => Some(Phase::End),
        "ARMCI_Init" | "ARMCI_Init_args" | "PARMCI_Init" | "PARMCI_Init_args" => Some(Phase::Start),
        "ARMCI_Finalize" | "PARMCI_Finalize" => Some(Phase::End),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use whywait_otf2::enums::RegionRole;

    use super::*;

    #[test]
    fn calls_start_and_end_libraries() {
        let of = |name: &str, paradigm| {
            let region = Region {
                name: name.to_owned(),
                canonical_name: String::new(),
                paradigm,
                role: RegionRole::FUNCTION,
                file: String::new(),
                begin_line: 0,
                end_line: 0,
                is_dynamic: false,
            };
            phase(RegionClass::Other, Some(&region))
        };
        for name in ["start_pes", "shmem_init", "shmem_init_thread", "shmem_init()"] {
            assert_eq!(of(name, Paradigm::SHMEM), Some(Phase::Start), "{name}");
            assert_eq!(of(name, Paradigm::USER), None, "{name}");
        }
        assert_eq!(of("shmem_finalize", Paradigm::SHMEM), Some(Phase::End));
        assert_eq!(of("ARMCI_Init_args", Paradigm::UNKNOWN), Some(Phase::Start));
        assert_eq!(of("PARMCI_Finalize", Paradigm::UNKNOWN), Some(Phase::End));
        assert_eq!(of("main", Paradigm::USER), None);
        assert_eq!(phase(RegionClass::Init, None), Some(Phase::Start));
        assert_eq!(phase(RegionClass::Finalize, None), Some(Phase::End));
    }

    #[test]
    fn the_latest_start_and_the_earliest_end_count() {
        let all = [(Some(2), Some(9)), (Some(5), None), (None, Some(7))];
        assert_eq!(all.into_iter().fold((None, None), merge), (Some(5), Some(7)));
    }
}
