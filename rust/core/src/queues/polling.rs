//! When a receiver looks for messages: an MPI without a thread of its own sees them only in calls that make progress.
//!
//! Calls that only begin something (`MPI_Isend`, `MPI_Start`), and those that only ask or describe (`MPI_Comm_rank`,
//! `MPI_Type_vector`), look for nothing.
//!
//! *Source*: counters.md#when-a-message-arrives.

use std::sync::LazyLock;

use regex_lite::Regex;

use crate::ids::ProcessId;
use crate::trace::regions::mpi_call;
use crate::trace::{Shard, Trace};

/// Calls of MPI that look for no messages, in lower case and without the prefix.
static BLIND: LazyLock<Option<Regex>> = LazyLock::new(|| Regex::new(&format!("^({})$", BLIND_CALLS.join("|"))).ok());

const BLIND_CALLS: &[&str] = &[
    // Begin or prepare something.
    "i[bsr]?send|isendrecv(_replace)?|im?recv|start(all)?|(p|[bsr]?)send_init|p?recv_init|pready(_range|_list)?",
    // Ask about groups, communicators and topologies.
    "group_.*|comm_(compare|group|rank|size|test_inter|remote_(group|size)|get_.*|set_.*|call_errhandler|delete_attr)",
    "comm_(create_(errhandler|keyval)|free_keyval|attach_buffer)|cart_(coords|get|map|rank|shift)|cartdim_get|dims_create",
    "graph_(get|map|neighbors(_count)?)|graphdims_get|dist_graph_neighbors(_count)?|topo_test",
    // Describe data, errors, windows and files.
    "type_.*|pack.*|unpack.*|op_.*|reduce_local|register_datarep|status_.*|test_cancelled|address|get_(address|count)",
    "get_elements(_x)?|alloc_mem|free_mem|buffer_attach|info_.*|attr_.*|keyval_.*|err.*|(add|remove)_error_.*",
    "win_(get_.*|set_.*|shared_query|create_(errhandler|keyval)|delete_attr|free_keyval|call_errhandler)",
    "file_(get|set|call|create)_errhandler",
    // Ask about the library.
    "abort|pcontrol|init|init_thread|initialized|finalized|is_thread_main|query_thread|wtime|wtick|get_version",
    "get_(library_version|processor_name|hw_resource_info)|abi_.*|grequest_.*",
    "session_(init|get_.*|set_.*|attach_buffer|call_errhandler|create_errhandler)",
];

/// Whether calls of each call path look for messages.
pub(super) fn looking(trace: &Trace) -> Vec<bool> {
    let looks = |name: &str, paradigm| match mpi_call(name, paradigm) {
        Some(call) => !BLIND.as_ref().is_some_and(|blind| blind.is_match(&call)),
        None => false,
    };
    let of_region = |key| {
        trace.regions.get(key).is_some_and(|region| match trace.regions.class(key) {
            class if class.is_mpi() => looks(&region.name, region.paradigm),
            // Other libraries stand on the same transport.
            class => class.library().is_some(),
        })
    };
    trace.tree.nodes().iter().map(|node| of_region(node.region)).collect()
}

/// The time that a process spends in calls that look for messages.
pub(super) struct Looks {
    /// Begin and end of each stretch, in order and apart from each other, ticks.
    stretches: Vec<(i64, i64)>,
}

impl Looks {
    /// Collects the calls of all threads of a process; `looking` is that of [`looking`].
    pub(super) fn new(trace: &Trace, shard: &Shard, process: ProcessId, looking: &[bool]) -> Self {
        let mut stretches = Vec::new();
        let locations = shard.local_locations(trace.definitions.processes[process].locations);
        let is_threaded = locations.len() > 1;
        for i in locations {
            let (mut depth, mut begin) = (0_u32, 0);
            for position in shard.events_of(shard.location(i)) {
                let callpath = shard.events.callpath(position as u32);
                if !looking[callpath] {
                    continue;
                }
                let time = shard.events.time[position];
                if !shard.events.is_leave(position as u32) {
                    begin = if depth == 0 { time } else { begin };
                    depth += 1;
                } else if depth > 0 {
                    depth -= 1;
                    if depth == 0 {
                        stretches.push((begin, time));
                    }
                }
            }
        }
        if is_threaded {
            stretches.sort_unstable();
            stretches.dedup_by(|next, last| {
                let overlaps = next.0 <= last.1;
                last.1 = if overlaps { last.1.max(next.1) } else { last.1 };
                overlaps
            });
        }
        Self { stretches }
    }

    /// When the process first looks after a time; [`i64::MAX`] if it never does.
    pub(super) fn after(&self, time: i64) -> i64 {
        let next = self.stretches.partition_point(|&(_, end)| end <= time);
        self.stretches.get(next).map_or(i64::MAX, |&(begin, _)| begin.max(time))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::fs;

    /// The recorder's table of functions, which has each with its group.
    fn functions() -> Vec<(String, String)> {
        let text = fs::read_to_string(concat!(env!("CARGO_MANIFEST_DIR"), "/../record/mpi.toml")).unwrap();
        let value = |line: &str, key: &str| {
            let (_, rest) = line.split_once(&format!("{key} = \""))?;
            Some(rest.split('"').next()?.to_lowercase())
        };
        let of_line = |line: &str| Some((value(line, "name")?.strip_prefix("mpi_")?.to_owned(), value(line, "group")?));
        text.lines().filter_map(of_line).collect()
    }

    #[test]
    fn calls_that_ask_look_for_no_messages() {
        // They wait for others, or for what is on the way.
        let waits = ["finalize", "comm_create_from_group", "intercomm_create_from_groups", "session_finalize"];
        let begins = ["isend", "irecv", "start", "imrecv", "send_init", "psend_init", "isendrecv", "pready"];
        let functions = functions();
        assert!(functions.len() > 400);
        for (call, group) in functions {
            let asks = ["env", "cg_query", "misc"].contains(&group.as_str()) || call.ends_with("_set_name");
            let flushes = ["flush", "detach"].iter().any(|word| call.contains(word));
            let looks = !BLIND.as_ref().unwrap().is_match(&call);
            if group == "p2p" {
                let begins = begins.iter().any(|begin| call.starts_with(begin))
                    || call.ends_with("send_init")
                    || call.ends_with("recv_init")
                    || ["ibsend", "irsend", "issend"].contains(&call.as_str());
                assert_eq!(looks, !begins, "{call}");
            } else {
                assert_eq!(looks, !asks || flushes || waits.contains(&call.as_str()), "{call} ({group})");
            }
        }
    }

    #[test]
    fn the_next_look_may_be_under_way() {
        let looks = Looks { stretches: vec![(2, 4), (7, 8)] };
        assert_eq!([1, 2, 3, 4, 7, 8].map(|time| looks.after(time)), [2, 2, 3, 7, 7, i64::MAX]);
    }
}
