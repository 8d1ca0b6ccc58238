//! Tables of a result, column by column: those that are stored and those that methods return.
//!
//! `tests/test_schema.py` checks every table against these rows; the schemas in Python and docs/tables.md are generated
//! from them.

/// Type of a column.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Type {
    /// True or false.
    Bool,
    /// A signed number.
    Int32,
    /// A signed number of 64 bits.
    Int64,
    /// An index of a row, or a count.
    UInt32,
    /// A count of 64 bits.
    UInt64,
    /// A real number.
    Double,
    /// A text with few distinct values, stored as a dictionary.
    Name,
    /// A text.
    Text,
    /// The names of a call path from the root down.
    Path,
    /// Numbers, such as ranks.
    Numbers,
    /// The axes of a topology: `name`, `size` and `periodic` of each.
    Axes,
    /// Places in a topology: `location`, and where it is `at` on each axis.
    Coordinates,
}

impl Type {
    /// Name of the type in Arrow and in the manifest of a result.
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
            Self::Numbers => "list<int32>",
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
    /// Unit: `s`, `bytes`, or empty.
    pub unit: &'static str,
    /// Whether the file of a stored table lacks it, because it follows from another column by a join.
    pub is_joined: bool,
    /// What it means.
    pub meaning: &'static str,
}

/// A table.
#[derive(Clone, Copy, Debug)]
pub struct Table {
    /// Name of its file, or of the method that returns it.
    pub name: &'static str,
    /// Whether it is stored in the dataset.
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
            $($column:literal $kind:ident $($joined:ident)? $($unit:literal)?: $meaning:literal,)+
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
                is_joined: tables!(@is $($joined)?),
                meaning: $meaning,
            }),+],
        }),+];
    };
    (@stored) => { true };
    (@returned) => { false };
    (@is) => { false };
    (@is joined) => { true };
}

tables! {
    "severities" stored ["severities"] "a nonzero value of a stored metric in a call path on a location" {
        "metric" Name: "the metric, by its unique name",
        "callpath" Path joined: "the call path, by names",
        "callpath_id" UInt32: "the same as a row of `callpaths`",
        "location" UInt32: "the location, a row of `locations`",
        "rank" Int32 joined: "its rank; -1 if it belongs to no process",
        "thread" Int32 joined: "its thread",
        "value" Double: "the value, in the unit of the metric (seconds, occurrences, or bytes)",
    }
    "derived" stored ["derived_severities"] "a nonzero value of a metric derived from stored ones, in a call path on a location; not needed to load a result" {
        "metric" Name: "the metric, by its unique name",
        "callpath" Path joined: "the call path, by names",
        "callpath_id" UInt32: "the same as a row of `callpaths`",
        "location" UInt32: "the location, a row of `locations`",
        "rank" Int32 joined: "its rank; -1 if it belongs to no process",
        "thread" Int32 joined: "its thread",
        "value" Double: "the value, in the unit of the metric (seconds, occurrences, or bytes)",
    }
    "focus" stored [] "a value as in `severities`, restricted to the times, wait states, and critical path in the focus; only if the run has one" {
        "metric" Name: "the metric, by its unique name",
        "callpath_id" UInt32: "the call path, a row of `callpaths`",
        "location" UInt32: "the location, a row of `locations`",
        "value" Double: "the value, in the unit of the metric (seconds, occurrences, or bytes)",
    }
    "focus_costs" stored [] "a value as in `severities`, for delay costs of the waits in the focus; only if there are other waits" {
        "metric" Name: "the metric, by its unique name",
        "callpath_id" UInt32: "the call path, a row of `callpaths`",
        "location" UInt32: "the location, a row of `locations`",
        "value" Double: "the value, in the unit of the metric (seconds, occurrences, or bytes)",
    }
    "account" stored [] "a part of the CPU time in the focus: each moment of each CPU location belongs to one row" {
        "row" Name: "what the time is, such as `transfer.needed`, or `wait.KIND` by the metric of a wait state",
        "group" Name: "the group of rows that it belongs to",
        "callpath" Path joined: "the call path, by names, or that of the master of an idle thread; null if there is none",
        "callpath_id" UInt32: "the same as a row of `callpaths`",
        "location" UInt32: "the location, a row of `locations`",
        "rank" Int32 joined: "its rank; -1 if it belongs to no process",
        "thread" Int32 joined: "its thread",
        "time" Double "s": "the time",
        "excess" Double "s": "the part of it beyond what the fastest 5% of such calls take",
        "calls" UInt64: "number of calls, or of waits; 0 for time outside of calls",
    }
    "device_account" stored ["device_account"] "a part of the time of a device in the focus: each moment of it belongs to one row; only with devices" {
        "device" Text: "the name of the device, or of its first stream",
        "row" Name: "what it does, or why it is idle, such as `busy.kernel` or `starved.host`",
        "callpath" Path joined: "what the host is in meanwhile, by names; null if that does not matter or is not known",
        "callpath_id" UInt32: "the same as a row of `callpaths`",
        "time" Double "s": "the time",
    }
    "io" stored ["io"] "what was done with a file in a call path on a location; only with I/O" {
        "file" Text: "the file, by name; null if it is not defined",
        "paradigm" Text: "the I/O paradigm, such as `POSIX I/O` or `MPI-IO`; null if it is not defined",
        "operation" Name: "`read`, `write`, `flush`, `open`, `close`, `duplicate`, `seek`, `delete`, `lock`, or `status`",
        "nested" Bool: "whether it belongs to an operation of another paradigm, whose row counts it already",
        "callpath" Path joined: "the call path where it begins, by names; null outside of all",
        "callpath_id" UInt32: "the same as a row of `callpaths`",
        "location" UInt32: "the location, a row of `locations`",
        "rank" Int32 joined: "its rank; -1 if it belongs to no process",
        "thread" Int32 joined: "its thread",
        "count" UInt64: "the number of operations",
        "incomplete" UInt64: "those that were canceled or never completed",
        "bytes" UInt64 "bytes": "the sum of the bytes read or written",
        "time" Double "s": "their time from begin to completion, summed",
        "in_calls" Double "s": "the part of it in the calls that begin and complete them; less than `time` if they do not block",
    }
    "findings" stored [] "a reason why time is lost in the focus, the largest loss first" {
        "number" UInt32: "its number, from 1",
        "rule" Text: "the rule that found it",
        "title" Text: "what that rule finds, in a few words",
        "sentence" Text: "what happens, where, and what follows",
        "advice" Text: "what to do about it; null if that is not known",
        "loss" Double "s": "the lost time that it explains",
        "share" Double: "the same as a share of the CPU time of the focus, or of the time of all devices; of what is not lost, the share of the run that it takes",
        "base" Text: "`cpu`, `device` or `run`: what it is a share of",
        "callpath" Path: "the call path that is to blame, by names; null if it is none",
        "callpath_id" UInt32: "the same as a row of `callpaths`",
        "ranks" Numbers: "the ranks that are to blame; empty if these are all",
        "values" Text: "the figures and names in the sentence, the advice and the remarks, as JSON: `name`, `value`, `unit`, `meaning` and `words` of each",
        "evidence" Text: "the numbers that the sentence rests on, as JSON",
        "merged" Numbers: "the call paths whose losses are part of it, as rows of `callpaths`; empty if that is only its own",
        "remarks" Text: "what other rules add to it, as sentences; null if nothing",
        "shown" Bool: "whether it is one of those to show first",
    }
    "prices" stored [] "what a change would save of the focus, by simulation; only if the prices of findings were simulated" {
        "finding" UInt32: "the number of the finding; null for the changes of the first findings together, and for the ideal network",
        "rule" Text: "its rule, or null",
        "callpath_id" UInt32: "its call path, a row of `callpaths`, or null",
        "what" Text: "the change",
        "label" Text: "the same in a word or two",
        "then" Text: "the same at the begin of a sentence",
        "option" Text: "the options of `whywait whatif` that simulate it; null if there are none",
        "saved" Double "s": "the time by which the focus becomes shorter, negative if it becomes longer; null if it was not simulated",
        "bound" Bool: "whether nobody can make this change: it bounds what others can save",
        "about" Bool: "whether assumptions of the simulation concern more than a fifth of the time",
        "reason" Text: "why it was not simulated, or null",
    }
    "network" stored [] "what calls that are compared with each other need: same region, size, node, number of members, and waiting or not" {
        "region" Text: "the region that is called",
        "bytes_from" UInt64 "bytes": "the fewest bytes that they send, receive or complete",
        "bytes_below" UInt64 "bytes": "the end of the range, exclusive",
        "local" Bool: "whether all processes that they communicate with are on their node",
        "members" UInt32: "members of the communicator of a collective operation, rounded up to a power of two; 0 for other calls",
        "exposed" Bool: "whether they waited, or what they wait for had not been there for as long as the others need",
        "calls" UInt64: "their number in the run",
        "floor" Double "s": "what such a call needs; null if there is nothing to compare it with",
        "median" Double "s": "the median of their time without waits",
        "q95" Double "s": "the time without waits that 95% of them do not exceed",
        "needed" Double "s": "the time that they need, in the focus",
        "excess" Double "s": "the time beyond that, in the focus",
        "basis" Name: "where the floor comes from: `quantile` (5%, of 20 calls or more), `few` (the shortest of 5 to 19), `nearest` (the floor of the nearest size), `none`, or `clocks` (5%, but the clocks disagree)",
    }
    "wait_states" stored ["wait_states"] "a wait state; with `--counters`, there is also a column `counter:NAME` for each strict counter" {
        "kind" Name: "the metric that it adds to",
        "part_of" Name: "null if the row counts as waiting; otherwise the wait state that it is part of, `completion`, or `idle` for idle devices",
        "path" Name joined: "the call path as one string, for grouping",
        "callpath" Path joined: "the waiting call, by names",
        "callpath_id" UInt32: "the same as a row of `callpaths`",
        "location" UInt32: "the waiting location, a row of `locations`",
        "rank" Int32 joined: "its rank; -1 if it belongs to no process",
        "thread" Int32 joined: "its thread",
        "enter" Double "s": "Enter of the call",
        "leave" Double "s": "Leave of the call",
        "waiting" Double "s": "the waiting time",
        "hidden" Double "s": "for kernels that communicate: what they waited besides, while their device computed; null for others",
        "cause_callpath" Path joined: "the call that was waited for, by names; all columns of the cause are null if it is unknown",
        "cause_callpath_id" UInt32: "the same as a row of `callpaths`",
        "cause_location" UInt32: "the location that was waited for, a row of `locations`",
        "cause_rank" Int32 joined: "its rank",
        "cause_thread" Int32 joined: "its thread",
        "cause_time" Double "s": "Enter of the call that was waited for",
        "last" Name: "for calls that waited for a lock or for progress: the later of the two, `contention` or `progress`",
        "inferred" Bool: "whether it is inferred who held the lock before (from the order of releases), or which call completes a send",
        "direct" Double "s": "the part of `waiting` that excess work of the causing process explains; null without a cause",
        "indirect" Double "s": "the part that earlier waiting of the causing process explains",
        "propagating" Double "s": "the part that made others wait later",
        "caused" Double "s": "waiting that it caused elsewhere, directly or through other waits",
    }
    "critical_path" stored ["critical_path"] "a segment of the critical path, in order of time; only with causes; with `--counters`, there are also columns `counter:NAME`" {
        "location" UInt32: "the location on the path, a row of `locations`",
        "rank" Int32 joined: "its rank; -1 if it belongs to no process",
        "thread" Int32 joined: "its thread",
        "from" Double "s": "start",
        "to" Double "s": "end",
        "callpath" Path joined: "the call path with the largest part of the segment, by names",
        "callpath_id" UInt32: "the same as a row of `callpaths`",
        "callpath_time" Double "s": "the length of that part",
        "hop" Name: "the class of the wait through which the path came here from another location; null at its start",
    }
    "intervals" stored [] "a wait with a known cause, and the two synchronization intervals that the cost model compares; only with causes, not under MPI, for the longest waits or all" {
        "wait" UInt32: "the row in `wait_states`",
        "contention" Bool: "whether it waited for something to end rather than to begin",
        "waiter_location" UInt32: "the waiting location, a row of `locations`",
        "waiter_begin" Double "s": "start of its interval",
        "waiter_end" Double "s": "end of its interval",
        "waiter_sync_callpath" Int64: "the call in which the two last synchronized, a row of `callpaths`; null if they never did",
        "waiter_sync_time" Double "s": "its Enter",
        "waiter_completion" Double "s": "how long that call took after the synchronization",
        "cause_location" UInt32: "the location that it waits for, a row of `locations`",
        "cause_begin" Double "s": "start of its interval",
        "cause_end" Double "s": "end of its interval",
        "cause_sync_callpath" Int64: "the call in which the two last synchronized, a row of `callpaths`; null if they never did",
        "cause_sync_time" Double "s": "its Enter",
        "cause_completion" Double "s": "how long that call took after the synchronization",
        "delay" Double "s": "the sum of the delays that share the wait",
        "cause_waiting" Double "s": "the waiting of the cause that shares the wait",
        "unexplained" Double "s": "the time by which the wait exceeds both",
    }
    "factors" stored [] "a factor that explains part of such a wait" {
        "wait" UInt32: "the row in `wait_states`",
        "kind" Name: "`delay`, `completion`, `wait`, or `unattributed` if nothing explains the wait",
        "location" UInt32: "the location of the cause, a row of `locations`",
        "callpath" UInt32: "the call path, a row of `callpaths`",
        "time" Double "s": "time of the cause in this call path",
        "waiter_time" Double "s": "time of the waiter in this call path",
        "earlier" Int64: "the row in `wait_states` of the earlier wait that is the factor, or null",
        "share" Double "s": "the part of the wait that it explains; the shares of a wait add up to it",
    }
    "iterations" stored [] "an iteration of the main loop on all ranks; there is also a column for each wait state that occurs, summed over all locations" {
        "iteration" UInt32: "its number, from 0",
        "begin" Double "s": "when the first rank begins it",
        "end" Double "s": "when the last rank ends it",
        "ranks" UInt32: "the number of ranks that execute it",
        "duration" Double "s": "the time by which the run goes on in it: from the latest begin on any rank to that of the next iteration; they add up",
        "pace_rank" Int32: "the rank that begins it last, and so sets the pace",
        "lead" Double "s": "how much earlier the ranks begin it on average",
        "longest" Double "s": "the longest duration on any rank",
        "shortest" Double "s": "the shortest duration on any rank",
        "computation" Double "s": "the mean computation per rank, summed over threads",
        "slowest_rank" Int32: "the rank that computes longest, or whose device others wait for longest",
        "slowest_computation" Double "s": "the longest computation",
        "waiting" Double "s": "waiting on all locations, with no time counted twice",
        "critical_path" Double "s": "the length of the critical path in the iteration",
        "critical_rank" Int32: "the rank with the largest part of it; null if there is none",
        "parallel_efficiency" Double: "average computation / (duration times threads, or the greatest computation if that is more); null if nothing takes time",
        "load_balance" Double: "average / greatest computation; null if no rank computes",
        "communication_efficiency" Double: "greatest computation / the same; null if nothing takes time",
        "computing_time" Double "s": "computation of all threads; this column and the next seven add up to the time of all threads from the begin of the iteration on their rank to that of the next",
        "waiting_time" Double "s": "wait states",
        "transfer_time" Double "s": "calls of communication libraries, without their waits",
        "thread_time" Double "s": "the runtime of threads, without their waits",
        "idle_time" Double "s": "threads without work",
        "io_time" Double "s": "reading and writing files",
        "device_time" Double "s": "hosts in calls that concern devices, with their waits",
        "other_time" Double "s": "measurement, and time of which nothing is known",
        "periodic" Text: "the collective operations that only every k-th iteration has and this one has, by name; null if none",
        "callpath_id" UInt32: "the call path where each iteration begins, a row of `callpaths`",
        "parameter" Name: "the parameter that marks the iterations; null if a call path marks them",
        "value" Text: "its value; null if ranks have different values",
    }
    "communication" stored ["communication"] "a pair of ranks, or of blocks of ranks, that communicate or wait for each other" {
        "rank" Int32: "the rank that sends, or that waits; the first of a block",
        "last_rank" Int32: "the last of them",
        "peer" Int32: "the rank that receives, or that is waited for; the first of a block",
        "last_peer" Int32: "the last of them",
        "messages" UInt64: "number of point-to-point messages",
        "bytes" UInt64 "bytes": "the sum of their bytes",
        "time" Double "s": "time from send to receive, summed over messages",
        "transfers" UInt64: "number of one-sided transfers",
        "transfer_bytes" UInt64 "bytes": "the sum of their bytes",
        "transfer_time" Double "s": "time from start to end, summed over transfers",
        "waiting" Double "s": "the time that `rank` waits for `peer`",
    }
    "message_sizes" stored ["message_sizes"] "a kind of communication and a range of sizes" {
        "kind" Name: "`message`, `put`, `get` or `atomic`",
        "least" UInt64 "bytes": "the smallest size of the range",
        "below" UInt64 "bytes": "the end of the range, exclusive",
        "count" UInt64: "the number of messages or operations",
        "bytes" UInt64 "bytes": "the sum of their bytes",
        "time" Double "s": "their time in flight, summed",
    }
    "transfers" stored ["transfers"] "a one-sided transfer; written only with `--transfers`" {
        "kind" Name: "`put`, `get` or `atomic`",
        "epoch" Name: "the kind of its epoch: `fence`, `access`, or `lock`; null if none is open",
        "window" UInt32: "the window, by its id in OTF2",
        "bytes" UInt64 "bytes": "its size in bytes (for MPI atomics recorded by Score-P, in elements)",
        "origin_callpath" Path joined: "the call that issued it, by names",
        "origin_callpath_id" UInt32: "the same as a row of `callpaths`",
        "origin_location" UInt32: "the location that issued it, a row of `locations`",
        "origin_rank" Int32 joined: "its rank",
        "origin" Double "s": "when it was issued",
        "source_location" UInt32: "the location that the data comes from, a row of `locations`",
        "source_rank" Int32 joined: "its rank",
        "start" Double "s": "when the transfer starts",
        "destination_location" UInt32: "the location that the data goes to, a row of `locations`",
        "destination_rank" Int32 joined: "its rank",
        "end" Double "s": "when the transfer is known to be complete; null if no call completes it",
    }
    "samples" stored ["samples"] "a sample of the call path; only if the trace has samples" {
        "time" Double "s": "when it was taken",
        "location" UInt32: "the location, a row of `locations`",
        "rank" Int32 joined: "its rank",
        "thread" Int32 joined: "its thread",
        "callpath" Path joined: "the call path that it saw, by names",
        "callpath_id" UInt32: "the same as a row of `callpaths`; null outside of all calls",
        "recorded_callpath" Path joined: "the call path that the events say was running, by names: usually that one, or one above it",
        "recorded_callpath_id" UInt32: "the same as a row of `callpaths`",
        "kind" Name: "what triggered it: `time`, or a `count` of something else, such as page faults",
        "in_call" Bool: "whether it was in a call of a communication library",
        "weight" Double "s": "the time that it stands for; null if a count triggered it",
        "user_only" Bool: "whether its clock stands still in the system and without a core",
        "address" Text: "in a call, the function of the library that ran, or its file and the place in that; null if unknown",
        "line" UInt32: "the line of source that ran; null if unknown",
        "system_time" Double "s": "processor time in the system since the sample before",
        "minor_faults" UInt64: "page faults since then that needed no input",
        "major_faults" UInt64: "page faults since then that read from a disk",
        "voluntary_switches" UInt64: "how often the thread waited for something since then",
        "involuntary_switches" UInt64: "how often another thread took the core since then",
    }
    "profile" stored ["functions"] "the time of a sampled call path on a location, in the focus; only if the trace has samples" {
        "location" UInt32: "the location, a row of `locations`",
        "rank" Int32 joined: "its rank",
        "thread" Int32 joined: "its thread",
        "recorded_callpath" Path joined: "the call path that the events say was running, by names",
        "recorded_callpath_id" UInt32: "the same as a row of `callpaths`",
        "callpath" Path joined: "the call path that samples saw, by names: usually that one, or one below it; null for time in the system or without a core, where samples tell it from the rest",
        "callpath_id" UInt32: "the same as a row of `callpaths`, or null",
        "time" Double "s": "how long it ran: the time of its recorded call path, divided by samples",
        "low" Double "s": "the lower end of the interval at 95%",
        "high" Double "s": "the upper end",
        "deviation" Double "s": "the standard deviation of the time",
        "inclusive_deviation" Double "s": "that of the time with what the call path calls",
        "samples" UInt64: "the number of samples in it",
        "critical" Double "s": "its time on the critical path",
        "inclusive_critical_deviation" Double "s": "the standard deviation of that with what the call path calls",
        "unresolved" Double "s": "the part of the time that there were too few samples to divide; at the recorded call path itself",
        "system_time" Double "s": "processor time in the system from sample to sample; at the recorded call path itself, like the next three",
        "faults" UInt64: "page faults then",
        "voluntary_switches" UInt64: "how often the thread waited for something then",
        "involuntary_switches" UInt64: "how often another thread took the core then",
        "doubtful" Bool: "whether functions may be wrong on this location: it was sampled at the ticks of the kernel, and others used its core",
    }
    "delay_functions" stored ["delay_functions"] "the cost of a sampled call path at the location that makes others wait, in the focus; only if the trace has samples" {
        "location" UInt32: "the location, a row of `locations`",
        "rank" Int32 joined: "its rank",
        "thread" Int32 joined: "its thread",
        "recorded_callpath" Path joined: "the call path that has the delay cost, by names",
        "recorded_callpath_id" UInt32: "the same as a row of `callpaths`",
        "callpath" Path joined: "the call path that samples saw, by names: usually that one, or one below it; null for time in the system or without a core, where samples tell it from the rest",
        "callpath_id" UInt32: "the same as a row of `callpaths`, or null",
        "cost" Double "s": "its part of the delay cost; negative if the location spends less time in it than those that wait",
        "deviation" Double "s": "the standard deviation of the cost",
        "inclusive_deviation" Double "s": "that of the cost with what the call path calls",
        "samples" UInt64: "the number of samples of the location that it rests on",
        "waiter_samples" UInt64: "those of the locations that wait",
    }
    "counters" stored [] "a counter of the trace; only if the trace has counters" {
        "counter" UInt32: "its number",
        "name" Text: "its name",
        "description" Text: "its description",
        "unit" Text: "the unit of its values",
        "type" Name: "its origin, as in OTF2",
        "mode" Name: "the mode of its values, as in OTF2",
        "occurrence" Name: "when it is sampled, as in OTF2",
        "kind" Name: "`total` or `level`",
        "integer" Bool: "whether its values are whole numbers",
        "factor" Double: "the factor applied to recorded values",
    }
    "counter_cells" stored [] "the value of a counter in a call path on a location; with `counters`" {
        "counter" UInt32: "the row in `counters`",
        "callpath_id" UInt32: "the call path, a row of `callpaths`; null outside all regions",
        "location" UInt32: "the location, a row of `locations`",
        "amount" Double: "the increment of a total, or the time integral of a level",
        "seconds" Double "s": "the time during which a level is known",
        "sampled" Double: "the sum of the samples",
        "samples" UInt64: "the number of samples",
        "minimum" Double: "the smallest value; infinite if there is none",
        "maximum" Double: "the largest value; infinite if there is none",
    }
    "queue_levels" stored ["queue_levels"] "a queue of messages or requests of a process or of the run; only with `--queues`" {
        "metric" Name: "the quantity",
        "location" Int64: "the master thread of the process, a row of `locations`; null for the run",
        "rank" Int32: "its rank",
        "thread" Int32: "its thread",
        "maximum" Int64: "the highest level",
        "time" Double "s": "when it was first reached",
        "mean" Double: "the mean over time",
        "unit" Name: "the unit of the level",
    }
    "queue_series" returned ["queue_series"] "a queue of messages or requests in a time bin" {
        "metric" Name: "the quantity",
        "location" Int64: "the master thread of the process, a row of `locations`; null for the run",
        "rank" Int32: "its rank",
        "thread" Int32: "its thread",
        "bin" UInt32: "the bin, from 0",
        "begin" Double "s": "its start",
        "mean" Double: "the mean level in the bin",
        "maximum" Int64: "the highest level in the bin",
        "unit" Name: "the unit of the level",
    }
    "timeline" stored [] "the nonzero share of a class of activity in a time bin on neighboring locations; only with `--html`, not under MPI" {
        "level" UInt32: "the resolution, from 0; each level covers the whole run",
        "location" UInt32: "the first of the locations, a row of `locations`",
        "last_location" UInt32: "the last of them",
        "begin" Double "s": "start of the bin",
        "end" Double "s": "its end; the last bin can extend beyond the run",
        "class" Name: "`work`, `overhead`, `devices`, `io`, `threads`, `p2p`, `collective`, `onesided`, `library` (other communication), or `waiting`; the other classes exclude waiting",
        "share" Double: "the share of the bin on all these locations, rounded to 1/255; if the shares of all classes add up to less than 1, the rest is time outside any call",
    }
    "timeline_calls" stored [] "a call, or the time in which a thread creates or joins a team; with `timeline`, all calls if there are few, otherwise none" {
        "location" UInt32: "the location, a row of `locations`",
        "callpath" UInt32: "the call path, or that of the team's parallel region, a row of `callpaths`",
        "enter" Double "s": "its begin",
        "leave" Double "s": "its end",
        "is_management" Bool: "whether the thread creates or joins the team",
    }
    "timeline_waits" stored [] "a wait state, or a part of it between tasks that its thread runs; with `timeline`, only the longest" {
        "wait" UInt32: "the row in `wait_states`",
        "begin" Double "s": "when the waiting begins",
        "end" Double "s": "when it ends",
    }
    "timeline_messages" stored [] "a message, a one-sided transfer, or a task that starts on another thread than its creator; with `timeline`, those with the longest waits and the longest ones" {
        "kind" Name: "`message`, `transfer`, or `task`",
        "from_location" UInt32: "the location of the sender or the creator, a row of `locations`",
        "to_location" UInt32: "the location of the receiver, or on which the task starts, a row of `locations`",
        "start" Double "s": "the send, the start of the transfer, or the creation of the task",
        "end" Double "s": "the receive, the end of the transfer, or the start of the task",
        "bytes" UInt64 "bytes": "its size",
        "waiting" Double "s": "how long one side waits for the other",
    }
    "timeline_locks" stored [] "the time in which a thread owns a lock that others wait for; with `timeline`, only the longest" {
        "location" UInt32: "the thread, a row of `locations`",
        "lock" UInt32: "the number of the lock among those of its process",
        "callpath" UInt32: "where it is acquired, a row of `callpaths`; null if that is not recorded",
        "begin" Double "s": "the acquisition",
        "end" Double "s": "the release",
    }
    "timeline_counters" stored [] "the value of a counter in a time bin on neighboring locations, if known; with `timeline`, if the trace has counters" {
        "counter" UInt32: "the row in `counters`",
        "location" UInt32: "the first of the locations, a row of `locations`",
        "last_location" UInt32: "the last of them",
        "begin" Double "s": "start of the bin",
        "end" Double "s": "its end",
        "value" Double: "the mean over the bin and the locations, of a level or of the rate of a total per second",
    }
    "metrics" stored [] "a metric, in the order of the metric tree" {
        "metric" Text: "its unique name",
        "display_name" Text: "the display name, shown below that of its parent",
        "parent" Text: "the metric that it is a part of; null at a root",
        "unit" Text: "`sec`, `occ` (occurrences), `bytes` or `elements`",
        "stored" Bool: "whether it is in `severities`; otherwise it derives from other metrics",
        "formula" Text: "the formula",
        "description" Text: "the description",
    }
    "callpaths" stored [] "a call path" {
        "callpath" UInt32: "its number",
        "parent" UInt32: "the caller, a row of this table; null at a root",
        "region" UInt32: "the region that is called, a row of `regions`",
        "path" Text: "its names from the root down, joined by `/`",
    }
    "callpaths_by_name" returned ["callpaths"] "a call path, in the order of the call tree" {
        "callpath" Path: "its names from the root down",
        "callpath_id" UInt32: "its number",
        "path" Text: "the same as one string",
        "parent_id" UInt32: "the number of the caller; null at a root",
        "name" Text: "the name of the region",
        "paradigm" Text: "the paradigm of the region",
        "role" Text: "the role of the region",
        "file" Text: "source file; empty if unknown",
        "begin_line" UInt32: "first line; 0 if unknown",
        "end_line" UInt32: "last line; 0 if unknown",
    }
    "regions" stored [] "a region of the call tree" {
        "region" UInt32: "its number",
        "name" Text: "its name",
        "canonical_name" Text: "mangled or full name",
        "paradigm" Name: "the programming model, as in OTF2",
        "role" Name: "its role, as in OTF2",
        "file" Text: "source file; empty if unknown",
        "begin_line" UInt32: "first line; 0 if unknown",
        "end_line" UInt32: "last line; 0 if unknown",
    }
    "locations" stored [] "a location (stream of events)" {
        "location" UInt32: "its number",
        "id" UInt64: "its id in OTF2",
        "name" Text: "its name",
        "type" Name: "`CPU_THREAD`, `ACCELERATOR_STREAM` or `METRIC`",
        "group" UInt32: "the location group, by its id in OTF2",
        "rank" Int32: "its rank; -1 if it belongs to no process",
        "thread" Int32: "its position in the process",
        "events" UInt64: "the number of its events",
    }
    "system" stored [] "a machine, node, location group, or location; parents come first" {
        "parent" UInt32: "the parent, a row of this table; null at a root",
        "kind" Name: "`node`, `group` or `location`",
        "class" Name: "`machine`, `process`, `thread`, ...",
        "name" Text: "its name",
        "rank" Int32: "the rank of a location group",
        "location" UInt32: "for a location, its row of `locations`",
    }
    "topologies" stored [] "a Cartesian topology" {
        "name" Text: "its name",
        "axes" Axes: "its axes",
        "coordinates" Coordinates: "the coordinates of each location",
    }
    "inconsistencies" stored ["inconsistencies"] "a position of a warning, at most 10,000 per kind" {
        "kind" Name: "the kind of warning",
        "location" UInt32: "the location, a row of `locations`",
        "time" Double "s": "the time",
        "detail" Text: "further details",
    }
    "clock_violations" stored ["clock_violations"] "a kind of constraint between two processes that the times as they were read violate, the worst first, at most 10,000; only if something is violated" {
        "kind" Name: "the kind of constraint: clocks.md",
        "from_rank" Int32: "the rank that must be earlier",
        "to_rank" Int32: "the rank that must be later",
        "checked" UInt64: "number of constraints",
        "violated" UInt64: "how many are violated",
        "sum" Double "s": "the sum of the amounts by which they are violated",
        "worst" Double "s": "the largest amount",
        "worst_location" UInt32: "the later location there, a row of `locations`",
        "worst_time" Double "s": "its time",
        "first_time" Double "s": "the time of the first violation",
        "last_time" Double "s": "the time of the last violation",
    }
    "clock_course" stored ["clock_course"] "a kind of constraint in one of 100 equal parts of the run; only if something is violated" {
        "kind" Name: "the kind, as in `clock_violations`",
        "bin" UInt32: "the number of the part",
        "begin" Double "s": "its begin",
        "checked" UInt64: "number of constraints",
        "violated" UInt64: "how many are violated",
        "worst" Double "s": "the largest amount",
        "left" UInt64: "how many are violated in the times of the result",
    }
    "clock_moves" stored ["clock_moves"] "what the clock of a process or device is moved by, at 101 times of the run, for the 200 processes that are moved most and 200 devices; only if something is violated" {
        "location" UInt32: "the first location with the clock, a row of `locations`",
        "rank" Int32: "its rank",
        "time" Double "s": "the time",
        "moved" Double "s": "what the correction adds to it",
    }
    "clock_processes" stored ["clock_processes"] "the clock of a process; only if something is violated" {
        "rank" Int32: "the rank",
        "node" Text: "its node",
        "measured_begin" Double "s": "the measured clock offset at the begin of the run; null if none was measured",
        "measured_end" Double "s": "the measured clock offset at its end",
        "moved_begin" Double "s": "what the correction adds to its first time",
        "moved_end" Double "s": "what the correction adds to its last time",
        "moved_max" Double "s": "what the correction adds, where that is largest in size",
        "violated" UInt64: "violations that it takes part in, in the times as they were read",
        "domain" UInt32: "its clock domain, a row of `clock_domains`",
        "pieces" UInt32: "number of pieces of its line; 0 if no lines were fitted",
        "drift" Double "ppm": "what its line adds more from the begin to the end of the run, per time; null if no lines were fitted",
        "uncertainty" Double "s": "how far its line may be from the truth; null if nothing says so",
    }
    "clock_domains" stored ["clock_domains"] "a clock domain: locations that read one clock, such as the processes of a node or the streams of a device; only if something is violated" {
        "domain" UInt32: "its number",
        "rank" Int32: "the lowest rank",
        "location" UInt32: "its first location, a row of `locations`",
        "locations" UInt32: "the number of its locations",
        "device" Bool: "whether it is a device",
        "reference" UInt32: "the domain whose clock its line is relative to; its own if it has none",
        "pieces" UInt32: "number of pieces of its line; 0 if no lines were fitted",
        "offset_begin" Double "s": "what its line adds at the begin of the run; null if no lines were fitted",
        "offset_end" Double "s": "what it adds at the end",
        "drift" Double "ppm": "the difference of both per time",
        "uncertainty" Double "s": "how far its line may be from the truth; null if nothing says so",
    }
    "clock_pairs" stored ["clock_pairs"] "a pair of clock domains whose difference is bounded from both sides, of each domain those known best, at most 16; only if lines were fitted" {
        "first" UInt32: "a domain, a row of `clock_domains`",
        "second" UInt32: "another one",
        "lower_bounds" UInt64: "number of lower bounds of their difference",
        "upper_bounds" UInt64: "number of upper bounds",
        "offset" Double "s": "what must be added to the clock of the second at the begin of the run, by the line of the largest margin",
        "drift" Double "ppm": "its drift",
        "margin" Double "s": "its least distance to a bound; negative if no line satisfies all",
        "lowest_begin" Double "s": "the smallest offset at the begin of the run of all lines that satisfy all bounds; null if there are none",
        "highest_begin" Double "s": "the largest one",
        "lowest_end" Double "s": "the smallest offset at the end of the run",
        "highest_end" Double "s": "the largest one",
        "uncertainty" Double "s": "the larger half of these ranges; null if there are none",
    }
    "delay_costs" returned ["delay_costs"] "the delay costs of a call path on a location, for a class of waits" {
        "class" Name: "the class of waits; `unattributed` if nothing explains them",
        "callpath" Path: "the call path that causes the waits, by names",
        "callpath_id" UInt32: "the same as a row of `callpaths`",
        "location" UInt32: "the location, a row of `locations`",
        "rank" Int32: "its rank; -1 if it belongs to no process",
        "thread" Int32: "its thread",
        "short_term" Double "s": "waiting that it caused directly",
        "long_term" Double "s": "waiting that it caused through other waits",
    }
    "locks" returned ["locks"] "a lock of threads in a process, or an ordered construct; the one that threads wait for longest first" {
        "rank" Int32: "the rank of the process",
        "paradigm" Name: "the programming model of the lock, as in OTF2",
        "lock" UInt32: "its number there; null for an ordered construct",
        "callpath" Path: "the call path that waits for it longest, or acquires it most often, by names",
        "callpath_id" UInt32: "the same as a row of `callpaths`",
        "acquisitions" UInt64: "the number of acquisitions",
        "contended" UInt64: "those that waited for another thread",
        "waiting" Double "s": "waiting for the lock",
        "longest_queue" UInt32: "the largest number of threads that waited at the same time",
        "holding" Double "s": "the time in which threads owned the lock",
        "gap" Double "s": "time from a release to the acquisition by a thread that waited",
        "critical" Double "s": "the part of the critical path in which its thread owned the lock",
        "critical_acquisitions" UInt64: "acquisitions whose ownership is on the critical path",
        "critical_contended" UInt64: "those of them that waited",
    }
    "tasks" returned ["tasks"] "a task construct in a process; the one whose tasks run longest first" {
        "rank" Int32: "the rank of the process",
        "callpath" Path: "the call path of the tasks, by names",
        "callpath_id" UInt32: "the same as a row of `callpaths`",
        "tasks" UInt64: "the number of tasks",
        "elsewhere" UInt64: "those that began on another thread than the one that created them",
        "migrations" UInt64: "how often a suspended task went on on another thread",
        "execution" Double "s": "the time in which they ran, with their waits",
        "median" Double "s": "that of the median task",
        "shortest" Double "s": "that of the shortest one",
        "longest" Double "s": "that of the longest one",
        "creation" Double "s": "the time to create them",
        "median_creation" Double "s": "that of the median task",
        "median_delay" Double "s": "time from when a task could run to its start, of the median one of those that idle threads start; 0 if there are none",
    }
    "task_lengths" returned ["task_lengths"] "the tasks of a construct in a process that run about equally long, from the shortest on; in the order of `tasks`" {
        "rank" Int32: "the rank of the process",
        "callpath" Path: "the call path of the tasks, by names",
        "callpath_id" UInt32: "the same as a row of `callpaths`",
        "from" Double "s": "they run at least so long",
        "to" Double "s": "and less than this, which is twice as long",
        "tasks" UInt64: "their number",
    }
    "task_regions" returned ["work_span"] "a parallel region with tasks in a process; the one with most work first" {
        "rank" Int32: "the rank of the process",
        "callpath" Path: "the call path of the region, by names",
        "callpath_id" UInt32: "the same as a row of `callpaths`",
        "instances" UInt64: "the number of its instances",
        "threads" UInt64: "the threads of the largest team",
        "elapsed" Double "s": "the time from the first Enter to the last Leave, summed over instances",
        "work" Double "s": "the time of all threads without waits and without the calls in which they run tasks",
        "span" Double "s": "the longest chain of that work which cannot run in parallel",
        "burdened_span" Double "s": "the longest such chain if each task also takes the median time from when one of its construct could run to its start on an idle thread",
    }
    "loops" returned ["loops"] "a worksharing construct in a process (a loop, sections, a single block); the one that loses most first" {
        "rank" Int32: "the rank of the process",
        "callpath" Path: "the call path of the construct, by names",
        "callpath_id" UInt32: "the same as a row of `callpaths`",
        "instances" UInt64: "the number of its instances",
        "threads" UInt64: "the most threads of an instance",
        "mean" Double "s": "the mean time of a thread in an instance, without waits and the barrier at its end, summed over instances",
        "longest" Double "s": "that of the thread which takes longest in each instance",
        "loss" Double "s": "the difference: what an even distribution saves at most",
        "late_start" Double "s": "waiting in the barriers behind it because the last thread entered the construct later",
        "uneven" Double "s": "the rest of that waiting, which is due to the construct",
        "distribution" Name: "`tiny`: the work takes less than ten times as long as to fork and join; `persistent`: the same thread is last in at least 80% of the instances; `tail`: the last thread is late by less than a tenth of its time; `alternating`: another thread is last each time; `few`: fewer than five instances",
        "last_thread" Int32: "the thread that is last most often",
        "last_count" UInt64: "in how many instances it is",
        "without_section" UInt64: "threads without a section, summed over instances; 0 for other constructs",
    }
    "statistics" returned ["statistics"] "the distribution of the waits of a kind" {
        "metric" Text: "the metric that they add to",
        "count" Int64: "the number of waits",
        "sum" Double "s": "the sum of their lengths",
        "mean" Double "s": "the mean of their lengths",
        "variance" Double "s^2": "the variance of their lengths",
        "minimum" Double "s": "the shortest",
        "quartile25" Double "s": "the first quartile",
        "median" Double "s": "the median",
        "quartile75" Double "s": "the third quartile",
        "maximum" Double "s": "the longest",
    }
}
