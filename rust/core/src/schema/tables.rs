//! Tables: what a result is on disk and what its methods return, column by column.
//!
//! Whoever makes a table is checked against these rows (`tests/test_schema.py`); the schemas of Python and docs/tables.md
//! are made from them.

/// What stands in a column.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Type {
    /// True or false.
    Bool,
    /// A number that can be negative.
    Int32,
    /// The same, of any size.
    Int64,
    /// A number that refers to a row, or counts.
    UInt32,
    /// The same, of any size.
    UInt64,
    /// A real number.
    Double,
    /// A text of few that occur.
    Name,
    /// A text.
    Text,
    /// The names of a call path from the root down.
    Path,
    /// The axes of a topology: `name`, `size` and `periodic` of each.
    Axes,
    /// Places in a topology: `location`, and where it is `at` on each axis.
    Coordinates,
}

impl Type {
    /// Name in the manifest of a result, in the words of Arrow.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::Bool => "bool",
            Self::Int32 => "int32",
            Self::Int64 => "int64",
            Self::UInt32 => "uint32",
            Self::UInt64 => "uint64",
            Self::Double => "double",
            Self::Name | Self::Text => "string",
            Self::Path => "list<string>",
            Self::Axes => "list<struct<name: string, size: uint32, periodic: bool>>",
            Self::Coordinates => "list<struct<location: uint32, at: list<uint32>>>",
        }
    }
}

/// A column.
#[derive(Clone, Copy, Debug)]
pub struct Column {
    /// Its name.
    pub name: &'static str,
    /// What stands in it.
    pub kind: Type,
    /// What it is measured in: `s`, `bytes`, or nothing.
    pub unit: &'static str,
    /// What it means.
    pub meaning: &'static str,
}

/// A table.
#[derive(Clone, Copy, Debug)]
pub struct Table {
    /// Its name: that of its file, or of the method that returns it.
    pub name: &'static str,
    /// Whether it is part of the dataset that is written.
    pub is_stored: bool,
    /// Methods of `whywait.Result` that return it.
    pub methods: &'static [&'static str],
    /// What one row is.
    pub row: &'static str,
    /// Its columns, in their order.
    pub columns: &'static [Column],
}

impl Table {
    /// All tables.
    pub const ALL: &[Self] = TABLES;
}

macro_rules! tables {
    ($(
        $name:literal $stored:ident [$($method:literal)*] $row:literal {
            $($column:literal $kind:ident $($unit:literal)?: $meaning:literal,)+
        }
    )+) => {
        const TABLES: &[Table] = &[$(Table {
            name: $name,
            is_stored: tables!(@$stored),
            methods: &[$($method),*],
            row: $row,
            columns: &[$(Column {
                name: $column,
                kind: Type::$kind,
                unit: concat!("" $(, $unit)?),
                meaning: $meaning,
            }),+],
        }),+];
    };
    (@stored) => { true };
    (@returned) => { false };
}

tables! {
    "severities" stored ["severities"] "a stored metric at a call path on a location, if not zero" {
        "metric" Name: "the metric, by its unique name",
        "callpath" Path: "where, by names",
        "callpath_id" UInt32: "the same, a row of `callpaths`",
        "location" UInt32: "whose, a row of `locations`",
        "rank" Int32: "its rank, -1 if of no process",
        "thread" Int32: "its thread",
        "value" Double: "seconds, occurrences or bytes, as the unit of the metric is",
    }
    "derived" stored ["derived_severities"] "the same of a metric that follows from stored ones; not needed to load a result" {
        "metric" Name: "the metric, by its unique name",
        "callpath" Path: "where, by names",
        "callpath_id" UInt32: "the same, a row of `callpaths`",
        "location" UInt32: "whose, a row of `locations`",
        "rank" Int32: "its rank, -1 if of no process",
        "thread" Int32: "its thread",
        "value" Double: "seconds, occurrences or bytes, as the unit of the metric is",
    }
    "focus" stored [] "the same as in `severities`, of the times, wait states and critical path that lie in the focus; only if the run has one" {
        "metric" Name: "the metric, by its unique name",
        "callpath" Path: "where, by names",
        "callpath_id" UInt32: "the same, a row of `callpaths`",
        "location" UInt32: "whose, a row of `locations`",
        "rank" Int32: "its rank, -1 if of no process",
        "thread" Int32: "its thread",
        "value" Double: "seconds, occurrences or bytes, as the unit of the metric is",
    }
    "focus_costs" stored [] "the same as in `severities`, of delay costs of the waits in the focus; only if there are other waits" {
        "metric" Name: "the metric, by its unique name",
        "callpath" Path: "where, by names",
        "callpath_id" UInt32: "the same, a row of `callpaths`",
        "location" UInt32: "whose, a row of `locations`",
        "rank" Int32: "its rank, -1 if of no process",
        "thread" Int32: "its thread",
        "value" Double: "seconds, occurrences or bytes, as the unit of the metric is",
    }
    "wait_states" stored ["wait_states"] "a wait state; with `--counters` also `counter:NAME` of each strict counter" {
        "kind" Name: "the metric that it is booked on",
        "part_of" Name: "the wait state whose time it is a part of, `completion`, or `idle` for devices with nothing to run; null for waiting, each time once",
        "path" Name: "the call path as one text, to group by",
        "callpath" Path: "the call that waits, by names",
        "callpath_id" UInt32: "the same, a row of `callpaths`",
        "location" UInt32: "who waits, a row of `locations`",
        "rank" Int32: "its rank, -1 if of no process",
        "thread" Int32: "its thread",
        "enter" Double "s": "Enter of the call",
        "leave" Double "s": "Leave of the call",
        "waiting" Double "s": "how long it waits",
        "cause_callpath" Path: "the call that was waited for, by names; null where unknown, as all of the cause",
        "cause_callpath_id" UInt32: "the same, a row of `callpaths`",
        "cause_location" UInt32: "who was waited for, a row of `locations`",
        "cause_rank" Int32: "its rank",
        "cause_thread" Int32: "its thread",
        "cause_time" Double "s": "Enter of the call that was waited for",
        "last" Name: "what a call waited for last that waited for a lock or for progress: `contention` or `progress`",
        "direct" Double "s": "the part of `waiting` that excess work of the causing process explains; null without a cause",
        "indirect" Double "s": "the part that its own earlier waiting explains",
        "propagating" Double "s": "the part that made others wait later",
        "caused" Double "s": "waiting that it caused elsewhere, through any number of others",
    }
    "critical_path" stored ["critical_path"] "a segment of the critical path, in the order of time; only with causes; with `--counters` also `counter:NAME`" {
        "location" UInt32: "who is on it, a row of `locations`",
        "rank" Int32: "its rank, -1 if of no process",
        "thread" Int32: "its thread",
        "from" Double "s": "begin",
        "to" Double "s": "end",
        "callpath" Path: "the call path with most of it, by names",
        "callpath_id" UInt32: "the same, a row of `callpaths`",
        "callpath_time" Double "s": "how much of it that has",
        "hop" Name: "the class of the wait by which the path came here from another location; null at its begin",
    }
    "intervals" stored [] "a wait with a known cause, and the two synchronization intervals that are compared; only with causes, not under MPI, of the longest waits or all" {
        "wait" UInt32: "the row in `wait_states`",
        "contention" Bool: "whether it waited for an end, not for a begin",
        "waiter_location" UInt32: "who waits, a row of `locations`",
        "waiter_begin" Double "s": "begin of its interval",
        "waiter_end" Double "s": "end of its interval",
        "waiter_sync_callpath" Int64: "the call in which the two last synchronized, a row of `callpaths`; null if they never have",
        "waiter_sync_time" Double "s": "its Enter",
        "waiter_completion" Double "s": "how long that took afterwards",
        "cause_location" UInt32: "whom it waits for, likewise",
        "cause_begin" Double "s": "begin of its interval",
        "cause_end" Double "s": "end of its interval",
        "cause_sync_callpath" Int64: "the call in which the two last synchronized, a row of `callpaths`; null if they never have",
        "cause_sync_time" Double "s": "its Enter",
        "cause_completion" Double "s": "how long that took afterwards",
        "delay" Double "s": "the delays that the wait is shared out among",
        "cause_waiting" Double "s": "the waiting of the cause that it is shared out among",
        "unexplained" Double "s": "by how much the wait exceeds both",
    }
    "factors" stored [] "what explains a part of such a wait: an edge to who causes it" {
        "wait" UInt32: "the row in `wait_states`",
        "kind" Name: "`delay`, `completion`, `wait`, or `unattributed` where nobody is charged",
        "location" UInt32: "who pays, a row of `locations`",
        "callpath" UInt32: "where, a row of `callpaths`",
        "time" Double "s": "time of the cause there",
        "waiter_time" Double "s": "time of the waiter there",
        "earlier" Int64: "the row in `wait_states` of the wait it goes back to, or null",
        "share" Double "s": "what it explains; those of a wait add up to it",
    }
    "iterations" stored [] "an iteration of the main loop, on all ranks together; one more column has each wait state that occurs, of all locations" {
        "iteration" UInt32: "its number, from 0",
        "begin" Double "s": "when the first rank begins it",
        "end" Double "s": "when the last rank ends it",
        "ranks" UInt32: "how many have it",
        "duration" Double "s": "the longest that it takes on a rank",
        "shortest" Double "s": "the shortest that it takes on a rank",
        "computation" Double "s": "of a rank, in the mean, threads added up",
        "slowest_rank" Int32: "the rank that computes longest",
        "slowest_computation" Double "s": "how long that computes",
        "waiting" Double "s": "of all locations, each time once",
        "critical_path" Double "s": "how much of the critical path lies in it",
        "critical_rank" Int32: "the rank with most of that; null if it has none",
        "parallel_efficiency" Double: "average computation over the greatest duration times threads; null if nothing takes time",
        "load_balance" Double: "average over greatest computation; null if nobody computes",
        "communication_efficiency" Double: "greatest computation over the greatest duration times threads; null if nothing takes time",
        "callpath_id" UInt32: "where each begins, a row of `callpaths`",
        "parameter" Name: "the parameter whose values tell the iterations; null if a call path does",
        "value" Text: "its value; null if ranks have different ones",
    }
    "communication" stored ["communication"] "a pair of ranks, or of blocks of ranks, that communicate or wait for each other" {
        "rank" Int32: "the first rank of those that data leave, or that wait",
        "last_rank" Int32: "the last of them",
        "peer" Int32: "the first rank of those where data arrive, or that are waited for",
        "last_peer" Int32: "the last of them",
        "messages" UInt64: "messages between two processes",
        "bytes" UInt64 "bytes": "of all of them",
        "time" Double "s": "from send to receive, of all of them",
        "transfers" UInt64: "one-sided transfers",
        "transfer_bytes" UInt64 "bytes": "of all of them",
        "transfer_time" Double "s": "from start to end, of all of them",
        "waiting" Double "s": "how long the rank waits for the peer",
    }
    "message_sizes" stored ["message_sizes"] "a kind of communication and a class of sizes" {
        "kind" Name: "`message`, `put`, `get` or `atomic`",
        "least" UInt64 "bytes": "the class begins here",
        "below" UInt64 "bytes": "and ends below this",
        "count" UInt64: "how many there are",
        "bytes" UInt64 "bytes": "of all of them",
        "time" Double "s": "in flight, of all of them",
    }
    "transfers" stored ["transfers"] "a one-sided transfer; written only with `--transfers`" {
        "kind" Name: "`put`, `get` or `atomic`",
        "epoch" Name: "what kind of epoch it is in: `fence`, `access` or `lock`; null if in none",
        "window" UInt32: "the window, by its id in OTF2",
        "bytes" UInt64 "bytes": "its size (of atomics with Score-P and MPI elements)",
        "origin_callpath" Path: "the call that asked for it, by names",
        "origin_callpath_id" UInt32: "the same, a row of `callpaths`",
        "origin_location" UInt32: "who asked for it, a row of `locations`",
        "origin_rank" Int32: "its rank",
        "origin" Double "s": "when",
        "source_location" UInt32: "where the data come from, a row of `locations`",
        "source_rank" Int32: "its rank",
        "start" Double "s": "when they leave",
        "destination_location" UInt32: "where they go to, a row of `locations`",
        "destination_rank" Int32: "its rank",
        "end" Double "s": "when they are known to be there; null if no call completes it",
    }
    "counters" stored [] "a counter of the trace; only if the trace has some" {
        "counter" UInt32: "its number",
        "name" Text: "its name",
        "description" Text: "what it counts",
        "unit" Text: "of its values",
        "type" Name: "where it comes from, as OTF2 has it",
        "mode" Name: "what a value says, as OTF2 has it",
        "occurrence" Name: "when it is sampled, as OTF2 has it",
        "kind" Name: "`total` or `level`",
        "integer" Bool: "whether its values are whole numbers",
        "factor" Double: "what recorded values were multiplied with",
    }
    "counter_cells" stored [] "what a counter comes to at a call path on a location; with `counters`" {
        "counter" UInt32: "the row in `counters`",
        "callpath" Path: "where, by names; null outside of all regions",
        "callpath_id" UInt32: "the same, a row of `callpaths`",
        "location" UInt32: "whose, a row of `locations`",
        "rank" Int32: "its rank, -1 if of no process",
        "thread" Int32: "its thread",
        "amount" Double: "growth of a total, integral of a level over seconds",
        "seconds" Double "s": "in which a level is known",
        "sampled" Double: "sum of the samples",
        "samples" UInt64: "their number",
        "minimum" Double: "the smallest value; infinite without one",
        "maximum" Double: "the largest value; infinite without one",
    }
    "queue_levels" stored ["queue_levels"] "a queue of messages or requests at a process, or in the run; only with `--queues`" {
        "metric" Name: "the quantity",
        "location" Int64: "the master thread of the process, a row of `locations`; null: the run",
        "rank" Int32: "its rank",
        "thread" Int32: "its thread",
        "maximum" Int64: "the highest level",
        "time" Double "s": "when it was first reached",
        "mean" Double: "the mean over time",
        "unit" Name: "of the level",
    }
    "queue_series" returned ["queue_series"] "the same in a bin of time" {
        "metric" Name: "the quantity",
        "location" Int64: "the master thread of the process, a row of `locations`; null: the run",
        "rank" Int32: "its rank",
        "thread" Int32: "its thread",
        "bin" UInt32: "the bin, from 0",
        "begin" Double "s": "its begin",
        "mean" Double: "the mean level in it",
        "maximum" Int64: "the highest level in it",
        "unit" Name: "of the level",
    }
    "timeline" stored [] "what a class of activity has of a bin of time on neighbouring locations, if not nothing; only with `--html`, not under MPI" {
        "level" UInt32: "the resolution, from 0: each level has all of the run",
        "location" UInt32: "the first of the locations, a row of `locations`",
        "last_location" UInt32: "the last of them",
        "begin" Double "s": "begin of the bin",
        "end" Double "s": "its end; that of the last can lie behind the run",
        "class" Name: "`work`, `overhead`, `devices`, `threads`, `p2p`, `collective`, `onesided`, `library` (other communication) or `waiting`, which the others are without",
        "share" Double: "of the bin on all these locations, rounded to 1/255; what those of all classes lack to 1 is time without a call",
    }
    "timeline_calls" stored [] "a call; with `timeline`, all calls if there are few, else none" {
        "location" UInt32: "whose, a row of `locations`",
        "callpath" UInt32: "which, a row of `callpaths`",
        "enter" Double "s": "its Enter",
        "leave" Double "s": "its Leave",
    }
    "timeline_waits" stored [] "a wait state; with `timeline`, the longest" {
        "wait" UInt32: "the row in `wait_states`",
        "begin" Double "s": "when the waiting begins; it lasts for `waiting`",
    }
    "timeline_messages" stored [] "a message or a one-sided transfer; with `timeline`, those that somebody waited for or that took longest" {
        "kind" Name: "`message` or `transfer`",
        "from_location" UInt32: "where it comes from, a row of `locations`",
        "to_location" UInt32: "where it goes to, a row of `locations`",
        "start" Double "s": "the send, or the start of the transfer",
        "end" Double "s": "the receive, or the end of the transfer",
        "bytes" UInt64 "bytes": "its size",
        "waiting" Double "s": "how long one of both sides waits for the other",
    }
    "timeline_counters" stored [] "what a counter is in a bin of time on neighboring locations, if anything is known of it; with `timeline`, if the trace has counters" {
        "counter" UInt32: "the row in `counters`",
        "location" UInt32: "the first of the locations, a row of `locations`",
        "last_location" UInt32: "the last of them",
        "begin" Double "s": "begin of the bin",
        "end" Double "s": "its end",
        "value" Double: "mean over the bin and the locations: of a level, or of what a total grows by in a second",
    }
    "metrics" stored [] "a metric, in the order of the metric tree" {
        "metric" Text: "its unique name",
        "display_name" Text: "the name that people read below that of its parent",
        "parent" Text: "the metric that it is a part of; null at a root",
        "unit" Text: "`sec`, `occ` (occurrences), `bytes` or `elements`",
        "stored" Bool: "whether it stands in `severities`; else it follows from others",
        "formula" Text: "how",
        "description" Text: "what it means",
    }
    "callpaths" stored [] "a call path" {
        "callpath" UInt32: "its number",
        "parent" UInt32: "the caller, a row of this table; null at a root",
        "region" UInt32: "what is called, a row of `regions`",
    }
    "callpaths_by_name" returned ["callpaths"] "a call path, in the order of the call tree" {
        "callpath" Path: "its names from the root down",
        "callpath_id" UInt32: "its number",
        "path" Text: "the same as one text",
        "parent_id" UInt32: "the number of the caller; null at a root",
        "name" Text: "the name of the region",
        "paradigm" Text: "of the region",
        "role" Text: "of the region",
        "file" Text: "source file; empty if unknown",
        "begin_line" UInt32: "first line; 0 if unknown",
        "end_line" UInt32: "last line; 0 if unknown",
    }
    "regions" stored [] "a region of the call tree" {
        "region" UInt32: "its number",
        "name" Text: "its name",
        "canonical_name" Text: "mangled or full name",
        "paradigm" Name: "the programming model, as OTF2 has it",
        "role" Name: "what it is there, as OTF2 has it",
        "file" Text: "source file; empty if unknown",
        "begin_line" UInt32: "first line; 0 if unknown",
        "end_line" UInt32: "last line; 0 if unknown",
    }
    "locations" stored [] "a stream of events" {
        "location" UInt32: "its number",
        "id" UInt64: "its id in OTF2",
        "name" Text: "its name",
        "type" Name: "`CPU_THREAD`, `ACCELERATOR_STREAM` or `METRIC`",
        "group" UInt32: "the location group, by its id in OTF2",
        "rank" Int32: "its rank, -1 if of no process",
        "thread" Int32: "its position in the process",
        "events" UInt64: "how many it has",
    }
    "system" stored [] "a machine, node, group of locations or location, each after the one it is in" {
        "parent" UInt32: "what it is in, a row of this table; null at a root",
        "kind" Name: "`node`, `group` or `location`",
        "class" Name: "`machine`, `process`, `thread`, ...",
        "name" Text: "its name",
        "rank" Int32: "of a group",
        "location" UInt32: "of a location, a row of `locations`",
    }
    "topologies" stored [] "a Cartesian topology" {
        "name" Text: "its name",
        "axes" Axes: "its axes",
        "coordinates" Coordinates: "who is where",
    }
    "inconsistencies" stored ["inconsistencies"] "a place of a warning, at most 10,000 of a kind" {
        "kind" Name: "the kind of warning",
        "location" UInt32: "where, a row of `locations`",
        "time" Double "s": "when",
        "detail" Text: "what else is known",
    }
    "delay_costs" returned ["delay_costs"] "who pays for waiting: a call path on a location, for a class of waits" {
        "class" Name: "the kind of waits that are paid for; `unattributed` where nobody can be blamed",
        "callpath" Path: "what pays, by names",
        "callpath_id" UInt32: "the same, a row of `callpaths`",
        "location" UInt32: "whose, a row of `locations`",
        "rank" Int32: "its rank, -1 if of no process",
        "thread" Int32: "its thread",
        "short_term" Double "s": "waits that it caused itself",
        "long_term" Double "s": "waits that it caused through others",
    }
    "statistics" returned ["statistics"] "the waits of a kind" {
        "metric" Text: "the metric that they are booked on",
        "count" Int64: "how many",
        "sum" Double "s": "of their lengths",
        "mean" Double "s": "of their lengths",
        "variance" Double "s^2": "of their lengths",
        "minimum" Double "s": "the shortest",
        "quartile25" Double "s": "a quarter is shorter",
        "median" Double "s": "half is shorter",
        "quartile75" Double "s": "three quarters are shorter",
        "maximum" Double "s": "the longest",
    }
}
