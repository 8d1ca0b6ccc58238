//! Opens a trace as a recording.

use std::collections::BTreeSet;
use std::io::{BufRead, BufReader, Read};
use std::path::Path;

use whywait_otf2::{Oddity, OddityKind, error::Place};

use crate::calls;
use crate::collectives::{self, Operations};
use crate::detect::{find, open as open_file, read_beside, refuse};
use crate::facts::Facts;
use crate::header::{Header, Task, is_trace};
use crate::labels::{Labels, Names};
use crate::lives::{self, Lives};
use crate::messages::Messages;
use crate::openmp;
use crate::options::Options;
use crate::parallel::map;
use crate::processes::{Comms, Processes};
use crate::pthreads;
use crate::recording::{Content, ParaverRecording};
use crate::records::Records;
use crate::scan::{Places, Scanned, is_damage, scan};
use crate::teams;
use crate::thread::{Context, Odd, Thread};
use crate::{Error, Result};

/// A header is no longer, bytes.
const LONGEST_HEADER: u64 = 1 << 26;
/// States and calls that contradict each other for less than one part in so many of the time are no matter.
const NEGLIGIBLE: i64 = 100;
/// So many types are named where none is known.
const NAMED: usize = 8;

/// Opens a trace: its file, a file beside it, or the directory with it.
pub fn open(path: &Path, options: &Options) -> Result<ParaverRecording> {
    let path = find(path)?;
    let mut input = BufReader::with_capacity(1 << 20, open_file(&path).map_err(Error::io(&path))?);
    let mut first = Vec::new();
    match input.by_ref().take(LONGEST_HEADER).read_until(b'\n', &mut first) {
        Ok(_) if is_trace(&first) => {}
        Ok(_) => return Err(refuse(&path, &first)),
        Err(error) if is_damage(&error) => {
            return Err(Error::damaged(&path, format!("not a Paraver trace: its first line is damaged: {error}")));
        }
        Err(error) => return Err(Error::io(&path)(error)),
    }
    let mut header = Header::read(&String::from_utf8_lossy(&first)).map_err(|why| Error::damaged(&path, why))?;
    let threads_of = |tasks: &Vec<Task>| tasks.iter().map(|task| task.threads as usize).sum();
    let recorded: Vec<usize> = header.applications.iter().map(threads_of).collect();
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
        let why = format!(
            "line {line} is cut off: {} whole records before it; --truncated analyzes these, or keep them with: {command}",
            scanned.records
        );
        return Err(Error::damaged(&path, why));
    }
    let labels = read_beside(&path, ".pcf");
    let has_labels = labels.is_some();
    let labels = Labels::read(&labels.unwrap_or_default());
    let mut names = Names::read(&read_beside(&path, ".row").unwrap_or_default());
    let mut notes = Notes { path: &path, list: Vec::new() };
    notes.lines(&scanned, &header, has_labels);
    if scanned.records > 0 {
        let silent = silent(&header, &scanned.threads, &options.types).map_err(|types| {
            Error::damaged(&path, format!("{} {}", refusal(&types, &labels), "--paraver-types makes regions of some"))
        })?;
        for application in &silent {
            let text =
                format!("application {application} is left out: it has no events of MPI, OpenMP or POSIX threads");
            notes.add(OddityKind::Missing, text);
        }
        leave_out(&mut header, &mut scanned, &silent);
    }
    names.keep(recorded.into_iter().zip(header.applications.iter().map(|tasks| !tasks.is_empty())));
    scanned.communicators.retain(|line| options.application.is_none_or(|only| only == line.application));
    let end = header.end.max(scanned.last);
    let processes = Processes::new(&header);
    let (mut comms, wrong_comms) = Comms::new(&processes, &scanned.communicators);
    notes.count(
        OddityKind::DanglingReference,
        "communicators with members that do not exist",
        wrong_comms,
        ", left out",
    );
    let second = header.resolution.cast_signed();
    let records: Vec<(u32, Records)> = (0..).zip(std::mem::take(&mut scanned.threads)).collect();
    let mut threads = map(records, |(number, records)| {
        let process = &processes.list[processes.of_threads[number as usize] as usize];
        let is_first = process.first_thread == number;
        Thread::new(records, Context { labels: &labels, types: &options.types, end, second, is_first })
    });
    let mut locks = Vec::with_capacity(threads.len());
    let mut lives = Lives::default();
    for process in &processes.list {
        let first = process.first_thread as usize;
        let of_process = &mut threads[first..first + process.threads as usize];
        teams::form(of_process);
        lives::find_locks(of_process);
        lives.add(lives::lives(of_process));
        locks.extend(teams::locks(of_process));
    }
    threads.iter_mut().for_each(Thread::find_calls);
    let messages =
        Messages::new(std::mem::take(&mut scanned.messages), &threads, (&processes, &mut comms), options.inference);
    let operations = collectives::find(&threads, &processes, &mut comms);
    notes.threads(&threads);
    let inferred = ", of which it is inferred which";
    notes.count(OddityKind::Missing, "call that makes or awaits a thread", lives.known, inferred);
    notes.communication(&messages, &operations, &processes);
    let mut facts = Facts {
        tasks: header.applications.iter().map(|tasks| tasks.len() as u32).filter(|tasks| *tasks > 0).collect(),
        callers: threads.iter().map(|thread| thread.levels).max().unwrap_or(0),
        has_functions: threads.iter().any(Thread::has_functions),
        has_mpi: threads.iter().any(|thread| !thread.calls.is_empty()),
        messages: messages.list.len() as u64,
        operations: operations.count,
        inferred: messages.inferred,
        records: scanned.records,
        ..Facts::default()
    };
    facts.comments(&scanned.comments);
    let resolution = header.resolution;
    let lives = lives.links;
    let content =
        Content { threads, locks, lives, processes, comms, messages, operations, labels, names, end, resolution };
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
        return Err(Error::no_trace(path, why));
    };
    for (other, tasks) in header.applications.iter_mut().enumerate() {
        if other != at {
            tasks.clear();
        }
    }
    Ok(())
}

/// The applications, from 1, of which no thread has events that say who waits; the types of all events if none has any.
fn silent(header: &Header, threads: &[Records], types: &[u32]) -> std::result::Result<Vec<u32>, Vec<u32>> {
    let is_known = |kind: &u32| {
        calls::is_mpi(*kind) || openmp::is_openmp(*kind) || pthreads::is_pthread(*kind) || types.contains(kind)
    };
    let (mut silent, mut others, mut first) = (Vec::new(), BTreeSet::new(), 0);
    let mut has_any = false;
    for (application, tasks) in (1..).zip(&header.applications) {
        let count: usize = tasks.iter().map(|task| task.threads as usize).sum();
        let kinds: BTreeSet<u32> = threads[first..first + count].iter().flat_map(Records::kinds).collect();
        first += count;
        if kinds.iter().any(is_known) {
            has_any = true;
        } else if count > 0 {
            silent.push(application);
        }
        others.extend(kinds);
    }
    if has_any { Ok(silent) } else { Err(others.into_iter().collect()) }
}

/// Takes applications out of what was read.
fn leave_out(header: &mut Header, scanned: &mut Scanned, applications: &[u32]) {
    if applications.is_empty() {
        return;
    }
    let mut places: Vec<Option<u32>> = Vec::with_capacity(scanned.threads.len());
    let mut next = 0;
    for (application, tasks) in (1..).zip(&mut header.applications) {
        let is_kept = !applications.contains(&application);
        for _ in 0..tasks.iter().map(|task| task.threads).sum() {
            places.push(is_kept.then_some(next));
            next += u32::from(is_kept);
        }
        if !is_kept {
            tasks.clear();
        }
    }
    let mut place = places.iter();
    scanned.threads.retain(|_| place.next().is_some_and(Option::is_some));
    scanned.messages.retain_mut(|message| {
        let ends = [message.sender, message.receiver].map(|thread| places[thread as usize]);
        let [Some(sender), Some(receiver)] = ends else { return false };
        (message.sender, message.receiver) = (sender, receiver);
        true
    });
    scanned.communicators.retain(|line| !applications.contains(&line.application));
}

/// Says which types there are where none is of use.
fn refusal(types: &[u32], labels: &Labels) -> String {
    let name = |kind: &u32| labels.of_type(*kind).map_or_else(|| kind.to_string(), |label| format!("{kind} ({label})"));
    let mut names: Vec<String> = types.iter().take(NAMED).map(name).collect();
    if types.len() > NAMED {
        names.push("...".to_owned());
    }
    let types = if names.is_empty() { "none".to_owned() } else { names.join(", ") };
    format!("it has no events of MPI, OpenMP or POSIX threads, by which waiting is found; types of events: {types}.")
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

    /// What there is, how often, and what follows from it.
    fn count(&mut self, kind: OddityKind, what: &str, count: u64, then: &str) {
        if count > 0 {
            self.add(kind, format!("{what}: {count}{then}"));
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
        let threads = "records of threads that the header does not have";
        self.count(OddityKind::DanglingReference, threads, odd.wrong_threads, "");
        self.count(OddityKind::Count, "event without a value", odd.no_values, "");
        let first = format!(", the first of them line {}", odd.first_unreadable + 1);
        self.count(OddityKind::Unreadable, "lines that are no records", odd.unreadable, &first);
        self.count(OddityKind::Range, "records out of order", odd.unordered, "");
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
        self.count(OddityKind::Missing, "call open at the start", sum(|odd| odd.open_at_start), "");
        self.count(OddityKind::Missing, "call open at the end", sum(|odd| odd.open_at_end), "");
        let off = "call in which recording was off";
        self.count(OddityKind::Missing, off, sum(|odd| odd.paused), ", whose waiting is unknown");
        let statistics = "event that says what calls did, instead of the calls";
        self.count(OddityKind::Missing, statistics, sum(|odd| odd.statistics), ", whose waiting is unknown");
        let states = "state of communication without a call";
        self.count(OddityKind::Missing, states, sum(|odd| odd.only_states), ", a region of its own");
        let [running, all] = [|odd: &Odd| odd.running_in_calls, |odd: &Odd| odd.with_states]
            .map(|of| threads.iter().map(|thread| of(&thread.odd)).fold(0, i64::saturating_add));
        if running > all / NEGLIGIBLE {
            let percent = (100.0 * running as f64 / all as f64).round();
            let text = format!("threads run in calls, by their states, for {percent}% of the time: calls count");
            self.add(OddityKind::Range, text);
        }
        let alone = "parallel region whose waiting is unknown";
        let forks = threads.iter().map(|thread| thread.forks_alone).sum();
        self.count(
            OddityKind::Missing,
            alone,
            forks,
            ", as another is in or around it, or threads work in its barriers",
        );
        let working = "barrier in which a thread works";
        let unknown = ", as on tasks: the waiting of its team is unknown";
        self.count(OddityKind::Missing, working, sum(|odd| odd.working_barriers), unknown);
        let unknown_locks = threads.iter().map(Thread::unknown_locks).sum();
        let locks = ", whose waiting is unknown: the trace does not say for which";
        self.count(OddityKind::Missing, "call for a lock of POSIX threads", unknown_locks, locks);
        let tests = sum(|odd| odd.tests);
        self.count(
            OddityKind::Missing,
            "call that found nothing",
            tests,
            ", while the thread did something else: not shown",
        );
        let one_sided = threads.iter().map(Thread::one_sided_calls).sum();
        let windows = ", whose waiting is unknown: such traces have no windows";
        self.count(OddityKind::Missing, "one-sided call", one_sided, windows);
        self.count(OddityKind::Crossing, "end of a call that did not begin", sum(|odd| odd.ends), "");
        let crossing = "region that would end after the one around it";
        self.count(OddityKind::Crossing, crossing, sum(|odd| odd.crossings), ", ends with it");
        self.count(OddityKind::Range, "value of a counter that cannot be", sum(|odd| odd.samples), ", left out");
    }

    fn communication(&mut self, messages: &Messages, operations: &Operations, processes: &Processes) {
        let odd = &messages.odd;
        let tasks: BTreeSet<String> =
            messages.unmatched.iter().map(|thread| processes.name(processes.of_threads[*thread as usize])).collect();
        let mut names: Vec<&str> = tasks.iter().take(NAMED).map(String::as_str).collect();
        if tasks.len() > NAMED {
            names.push("...");
        }
        let waiting = format!(", whose waiting is unknown ({})", names.join(", "));
        self.count(OddityKind::Missing, "receive without message", odd.without_message, &waiting);
        let cut = "message of a call that is not whole";
        self.count(OddityKind::Missing, cut, odd.of_cut_call, ", left out");
        self.count(OddityKind::Missing, "message that ends in no call", odd.without_call, ", left out");
        self.count(OddityKind::Range, "message received before it is sent", odd.backward, "");
        self.count(OddityKind::DanglingReference, "message between applications", odd.foreign, ", left out");
        let unresolved = "collective call without those of all other members";
        self.count(OddityKind::Missing, unresolved, operations.unresolved, ", whose waiting is unknown");
    }
}
