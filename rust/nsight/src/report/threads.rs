//! What threads do besides calls of MPI and CUDA: other programming models, samples, scheduling, and what the profiler does.

use rustc_hash::FxHashMap;
use whywait_devices::NONE;

use super::{LATEST, Reader, THREAD, times};
use crate::Result;
use crate::constructs::{TABLES, Table, completes};
use crate::rows::{ABSENT, Kind, NO_DETAIL, OpenMpRow};
use crate::samples::{Stacks, is_start};

/// The table of functions of samples.
const FRAMES: &str = "SAMPLING_CALLCHAINS";
/// Tables of UCX: what MPI does inside, and what programs call themselves.
pub(super) const UCX: [&str; 3] = ["UCP_EVENTS", "UCP_SUBMIT_EVENTS", "UCP_PROGRESS_EVENTS"];

impl Reader {
    pub(super) fn openmp(&mut self) -> Result<()> {
        let mut has_synchronizations = false;
        for Table { name, object, construct } in TABLES {
            if name.ends_with("_SYNC_REGION_WAIT") && has_synchronizations {
                continue;
            }
            let [task, status] = ["priorTaskId", "priorTaskStatus"];
            let columns = ["start", "end", "globalTid", "nameId", "parallelId", "kind", object, task, status];
            let mut rows = 0;
            self.scan(name, &columns, |reader, row| {
                let (Some((begin, end)), Some(thread)) = (times(row), row.integer(2)) else {
                    return row.leave_out();
                };
                let (text, kind) = (row.integer(3), row.integer(5));
                let Some(construct) = construct(kind) else { return };
                let name = reader.report.names.of(text);
                let completes = completes(row.integer(8));
                let [parallel, object, prior] = [4, 6, 7].map(|column| row.integer(column).unwrap_or(ABSENT));
                let completed = if completes { prior } else { ABSENT };
                let (end, own) = (end.unwrap_or(begin), thread & THREAD);
                reader.process(thread).openmp.push(OpenMpRow {
                    begin,
                    end,
                    thread: own,
                    parallel,
                    object,
                    completed,
                    name,
                    construct,
                });
                let thread = reader.thread(thread);
                thread.until = thread.until.max(end);
                rows += 1;
            })?;
            has_synchronizations |= rows > 0 && name.ends_with("_SYNC_REGION");
        }
        Ok(())
    }

    /// Constructs of `OpenACC`, with their places in the program.
    pub(super) fn openacc(&mut self) -> Result<()> {
        let mut known: FxHashMap<(u32, u32, i64), u32> = FxHashMap::default();
        for table in [
            "CUPTI_ACTIVITY_KIND_OPENACC_OTHER",
            "CUPTI_ACTIVITY_KIND_OPENACC_LAUNCH",
            "CUPTI_ACTIVITY_KIND_OPENACC_DATA",
        ] {
            self.scan(table, &["start", "end", "globalTid", "nameId", "srcFile", "lineNo"], |reader, row| {
                let thread = row.integer(2);
                let [name, file] = [3, 4].map(|column| row.integer(column));
                let names = &mut reader.report.names;
                let (name, file, line) = (names.of(name), names.of(file), row.integer(5).unwrap_or(0));
                let name = *known.entry((name, file, line)).or_insert_with(|| {
                    let (construct, path) = (names.get(name), names.get(file));
                    let file = path.rsplit(['/', '\\']).next().unwrap_or(path);
                    let construct = if construct.is_empty() { "OpenACC" } else { construct };
                    let text =
                        if file.is_empty() { construct.to_owned() } else { format!("{construct}@{file}:{line}") };
                    names.add(&text)
                });
                reader.span(row, thread, (name, Kind::OpenAcc, NO_DETAIL));
            })?;
        }
        Ok(())
    }

    /// Calls of UCX, if they are asked for: MPI has many.
    pub(super) fn ucx(&mut self) -> Result<()> {
        let is_wanted = self.all_names;
        for table in UCX.into_iter().filter(|_| is_wanted) {
            self.scan(table, &["start", "end", "globalTid", "textId"], |reader, row| {
                let (thread, text) = (row.integer(2), row.integer(3));
                let name = reader.report.names.of(text);
                reader.span(row, thread, (name, Kind::Ucx, NO_DETAIL));
            })?;
        }
        Ok(())
    }

    /// Samples of call paths, and the functions on these.
    pub(super) fn samples(&mut self) -> Result<()> {
        let columns = ["start", "id", "globalTid", "cpuCycles"];
        let has_samples = self.scan("COMPOSITE_EVENTS", &columns, |reader, row| {
            let begin = row.integer(0).filter(|begin| (-LATEST..LATEST).contains(begin));
            let (Some(begin), Some(sample), Some(thread)) = (begin, row.integer(1), row.integer(2)) else {
                return row.leave_out();
            };
            // A thread may also be looked at when it stops running.
            let runs = row.integer(3) != Some(0);
            if let Some(place) = reader.threads.get(&thread).filter(|_| runs) {
                let process = reader.report.processes.entry(thread & !THREAD).or_default();
                process.threads[*place].samples.push((begin, sample));
            }
        })?;
        if !has_samples {
            return Ok(());
        }
        let mut stacks = Stacks::default();
        let (noted, read) = (self.report.oddities.len(), self.report.read.len());
        self.frames(|sample, depth, function| stacks.add(sample, depth, function))?;
        stacks.end();
        if stacks.are_mixed {
            // Nothing says that functions of one sample follow each other: they do, but where rows were moved.
            self.report.oddities.truncate(noted);
            self.report.read.truncate(read);
            stacks = Stacks::default();
            let mut all = Vec::new();
            self.frames(|sample, depth, function| all.push((sample, depth, function)))?;
            all.sort_unstable();
            for (sample, depth, function) in all {
                stacks.add(sample, depth, function);
            }
            stacks.end();
        }
        self.report.stacks = stacks;
        Ok(())
    }

    /// Sends the functions of samples: the sample, how far the function is from the innermost one, and its name.
    fn frames(&mut self, mut each: impl FnMut(i64, i64, u32)) -> Result<()> {
        let mut known: FxHashMap<(u32, u32), u32> = FxHashMap::default();
        self.scan(FRAMES, &["id", "symbol", "stackDepth", "module", "unresolved"], |reader, row| {
            let (Some(sample), Some(depth)) = (row.integer(0), row.integer(2)) else { return row.leave_out() };
            let (symbol, module, unresolved) = (row.integer(1), row.integer(3), row.integer(4));
            let names = &mut reader.report.names;
            let symbol = if matches!(unresolved, None | Some(0)) { names.of(symbol) } else { NONE };
            let module = if symbol == NONE { names.of(module) } else { NONE };
            let function = *known.entry((symbol, module)).or_insert_with(|| {
                let path = names.get(module);
                match names.get(symbol) {
                    start if is_start(start) => NONE,
                    "" => {
                        let file = path.rsplit('/').next().unwrap_or(path);
                        let text = format!("[{}]", if file.is_empty() { "unknown" } else { file });
                        names.add(&text)
                    }
                    _ => symbol,
                }
            });
            each(sample, depth, function);
        })?;
        Ok(())
    }

    /// When threads get a core, and lose it.
    pub(super) fn scheduling(&mut self) -> Result<()> {
        self.scan("SCHED_EVENTS", &["start", "isSchedIn", "globalTid"], |reader, row| {
            let time = row.integer(0).filter(|time| (-LATEST..LATEST).contains(time));
            let (Some(time), Some(gets), Some(thread)) = (time, row.integer(1), row.integer(2)) else {
                return row.leave_out();
            };
            if let Some(place) = reader.threads.get(&thread) {
                let process = reader.report.processes.entry(thread & !THREAD).or_default();
                process.threads[*place].switches.push((time, gets != 0));
            }
        })?;
        Ok(())
    }

    /// What the profiler does in the threads of the program.
    pub(super) fn overhead(&mut self) -> Result<()> {
        for table in ["PROFILER_OVERHEAD", "CUPTI_ACTIVITY_KIND_OVERHEAD"] {
            self.scan(table, &["start", "end", "globalTid"], |reader, row| {
                let thread = row.integer(2);
                if thread.is_some_and(|thread| reader.threads.contains_key(&thread)) {
                    reader.span(row, thread, (NONE, Kind::Overhead, NO_DETAIL));
                }
            })?;
        }
        Ok(())
    }
}
