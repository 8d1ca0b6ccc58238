//! Opens a trace as a recording.

use std::io::{BufRead, BufReader, Read};
use std::path::Path;

use whywait_otf2::{Oddity, OddityKind, error::Place};

use crate::calls;
use crate::collectives::{self, Operations};
use crate::detect::{find, open as open_file, read_beside, refuse};
use crate::error::{Error, Result};
use crate::facts::Facts;
use crate::header::{Header, is_trace};
use crate::labels::{Labels, Names};
use crate::messages::Messages;
use crate::openmp;
use crate::options::Options;
use crate::parallel::map;
use crate::processes::{Comms, Processes};
use crate::recording::{Content, ParaverRecording};
use crate::scan::{Places, Records, Scanned, scan};
use crate::teams;
use crate::thread::{Context, Odd, Thread};

/// A header is no longer, bytes.
const LONGEST_HEADER: u64 = 1 << 26;
/// So many types are named where none is known.
const NAMED: usize = 8;

/// Opens a trace: its file, a file beside it, or the directory with it.
pub fn open(path: &Path, options: &Options) -> Result<ParaverRecording> {
    let path = find(path)?;
    let mut input = BufReader::with_capacity(1 << 20, open_file(&path).map_err(Error::io(&path))?);
    let mut first = Vec::new();
    let read = input.by_ref().take(LONGEST_HEADER).read_until(b'\n', &mut first);
    if !is_trace(&first) {
        read.map_err(Error::io(&path))?;
        return Err(refuse(&path, &first));
    }
    let mut header = Header::read(&String::from_utf8_lossy(&first)).map_err(|why| Error::refused(&path, why))?;
    select(&mut header, options, &path)?;
    let places = Places::new(&header, options.application.is_some());
    let mut scanned = scan(input, &places).map_err(Error::io(&path))?;
    if scanned.is_cut && !options.truncated {
        let line = scanned.lines + 2;
        let name = path.display();
        let command = match path.extension() {
            Some(extension) if extension == "gz" => format!("zcat {name} | head -n {} > whole.prv", line - 1),
            _ => format!("head -n {} {name} > whole.prv", line - 1),
        };
        return Err(Error::Cut { path, line, records: scanned.records, command });
    }
    let labels = read_beside(&path, ".pcf");
    let has_labels = labels.is_some();
    let labels = Labels::read(&labels.unwrap_or_default());
    let names = Names::read(&read_beside(&path, ".row").unwrap_or_default());
    let known = Kinds::of(&scanned.threads, &options.types);
    if scanned.records > 0 && !known.has_any {
        return Err(Error::refused(&path, known.refusal(&labels)));
    }
    let mut notes = Notes { path: &path, list: Vec::new() };
    notes.lines(&scanned, &header, has_labels);
    scanned.communicators.retain(|line| options.application.is_none_or(|only| only == line.application));
    let end = header.end.max(scanned.last);
    let processes = Processes::new(&header);
    let (mut comms, wrong_comms) = Comms::new(&processes, &scanned.communicators);
    notes.count(
        OddityKind::DanglingReference,
        wrong_comms,
        "communicators with members that do not exist are left out",
    );
    let records: Vec<(u32, Records)> = (0..).zip(std::mem::take(&mut scanned.threads)).collect();
    let mut threads = map(records, |(number, records)| {
        let process = &processes.list[processes.of_threads[number as usize] as usize];
        let is_first = process.first_thread == number;
        Thread::new(records, Context { labels: &labels, types: &options.types, end, is_first })
    });
    let mut locks = Vec::with_capacity(threads.len());
    for process in &processes.list {
        let first = process.first_thread as usize;
        let of_process = &mut threads[first..first + process.threads as usize];
        teams::form(of_process);
        locks.extend(teams::locks(of_process));
    }
    threads.iter_mut().for_each(Thread::find_calls);
    let messages = Messages::new(&scanned.messages, &threads, (&processes, &mut comms), options.inference);
    let operations = collectives::find(&threads, &processes, &comms);
    notes.threads(&threads);
    notes.communication(&messages, &operations);
    let mut facts = Facts {
        tasks: header.applications.iter().map(|tasks| tasks.len() as u32).collect(),
        callers: threads.iter().map(|thread| thread.levels).max().unwrap_or(0),
        has_mpi: threads.iter().any(|thread| !thread.calls.is_empty()),
        messages: messages.list.len() as u64,
        operations: operations.count,
        inferred: messages.inferred,
        records: scanned.records,
        ..Facts::default()
    };
    facts.comments(&scanned.comments);
    let resolution = header.resolution;
    let content = Content { threads, locks, processes, comms, messages, operations, labels, names, end, resolution };
    let oddities = notes.list;
    Ok(ParaverRecording::new(path, content, facts, oddities))
}

/// Leaves out all applications but the one that is asked for.
fn select(header: &mut Header, options: &Options, path: &Path) -> Result<()> {
    let Some(application) = options.application else { return Ok(()) };
    let count = header.applications.len();
    let known = (application as usize).checked_sub(1).filter(|at| *at < count);
    let Some(at) = known else {
        let why = format!("there is no application {application}: the trace has {count}");
        return Err(Error::NoTrace { path: path.to_owned(), why });
    };
    for (other, tasks) in header.applications.iter_mut().enumerate() {
        if other != at {
            tasks.clear();
        }
    }
    Ok(())
}

/// Which types of events there are.
struct Kinds {
    has_any: bool,
    others: Vec<u32>,
}

impl Kinds {
    fn of(threads: &[Records], types: &[u32]) -> Self {
        let mut kinds = rustc_hash::FxHashSet::default();
        for records in threads {
            let mut last = 0;
            for kind in records.types.iter().copied() {
                if kind != last {
                    kinds.insert(kind);
                    last = kind;
                }
            }
        }
        let mut others: Vec<u32> = kinds.into_iter().collect();
        others.sort_unstable();
        Self {
            has_any: others.iter().any(|kind| calls::is_mpi(*kind) || openmp::is_openmp(*kind) || types.contains(kind)),
            others,
        }
    }

    fn refusal(&self, labels: &Labels) -> String {
        let name =
            |kind: &u32| labels.of_type(*kind).map_or_else(|| kind.to_string(), |label| format!("{kind} ({label})"));
        let mut names: Vec<String> = self.others.iter().take(NAMED).map(name).collect();
        if self.others.len() > NAMED {
            names.push("...".to_owned());
        }
        let types = if names.is_empty() { "none".to_owned() } else { names.join(", ") };
        format!(
            "it has no events of MPI or OpenMP, by which waiting is found; types of events: {types}. --paraver-types makes regions of some"
        )
    }
}

/// What is odd in a trace.
struct Notes<'a> {
    path: &'a Path,
    list: Vec<Oddity>,
}

impl Notes<'_> {
    fn add(&mut self, kind: OddityKind, text: String) {
        self.list.push(Oddity { kind, place: Place { path: self.path.to_owned(), offset: 0 }, text });
    }

    fn count(&mut self, kind: OddityKind, count: u64, what: &str) {
        if count > 0 {
            self.add(kind, format!("{what}: {count}"));
        }
    }

    fn lines(&mut self, scanned: &Scanned, header: &Header, has_labels: bool) {
        let odd = &scanned.odd;
        if scanned.is_cut {
            let text = format!("the file is cut off in line {}: all records before were read", scanned.lines + 2);
            self.add(OddityKind::Truncated, text);
        }
        for (kind, count) in &odd.unknown {
            let kind = char::from(*kind).escape_default();
            self.add(OddityKind::UnknownRecord, format!("unknown kind of record {kind}: {count}"));
        }
        self.count(
            OddityKind::DanglingReference,
            odd.wrong_threads,
            "records of threads that the header does not have",
        );
        self.count(OddityKind::Count, odd.no_values, "event without a value");
        let first = odd.first_unreadable + 1;
        self.count(
            OddityKind::Unreadable,
            odd.unreadable,
            &format!("lines that are no records, the first of them {first}"),
        );
        self.count(OddityKind::Range, odd.unordered, "records out of order");
        if scanned.last > header.end {
            let text = format!(
                "records behind the end of the header: the run ends at {}, not at {}",
                scanned.last, header.end
            );
            self.add(OddityKind::Range, text);
        }
        let (said, found) = (header.communicators, scanned.communicators.len() as u64);
        if said != found {
            let verb = if found == 1 { "follows" } else { "follow" };
            self.add(OddityKind::Count, format!("header announces {said} communicators, {found} {verb}"));
        }
        if !has_labels && scanned.records > 0 {
            self.add(OddityKind::Missing, "there is no .pcf: names of calls are those of Extrae's numbers".to_owned());
        }
    }

    fn threads(&mut self, threads: &[Thread]) {
        let sum = |of: fn(&Odd) -> u64| threads.iter().map(|thread| of(&thread.odd)).sum();
        self.count(OddityKind::Truncated, sum(|odd| odd.open_at_start), "call open at the start");
        self.count(OddityKind::Truncated, sum(|odd| odd.open_at_end), "call open at the end");
        self.count(OddityKind::Crossing, sum(|odd| odd.ends), "ends of calls that did not begin");
        self.count(
            OddityKind::Crossing,
            sum(|odd| odd.crossings),
            "regions that end after the one around them, and end with it",
        );
        self.count(OddityKind::Range, sum(|odd| odd.samples), "values of counters that cannot be are left out");
    }

    fn communication(&mut self, messages: &Messages, operations: &Operations) {
        let odd = &messages.odd;
        self.count(OddityKind::Missing, odd.without_message, "receive without message, whose waiting is unknown");
        self.count(OddityKind::Missing, odd.without_call, "message that no call sends or receives is left out");
        self.count(OddityKind::Range, odd.backward, "message that is received before it is sent");
        self.count(OddityKind::DanglingReference, odd.foreign, "message between applications is left out");
        let unresolved = "collective calls without those of all other members, whose waiting is unknown";
        self.count(OddityKind::Missing, operations.unresolved, unresolved);
    }
}
