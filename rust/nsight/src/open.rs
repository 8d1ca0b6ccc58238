//! Opens the reports of a run as one recording.

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};

use whywait_devices::{
    DeviceRecording, Facts as RunFacts, GroupFacts, RANK_PATTERNS, RankFacts, Source, file_name, in_parallel, numbers,
};
use whywait_otf2::{Oddity, OddityKind, error::Place};

use crate::build::{Built, build};
use crate::clocks::{self, Begins};
use crate::detect::detect;
use crate::facts::{Facts, ReportFacts};
use crate::mpi::{self, Communication, Counts, Side};
use crate::nccl;
use crate::options::Options;
use crate::report::{NcclDefects, Report};
use crate::rows::CommRow;
use crate::{Error, Result};

/// More ranks than any run has.
const MOST_RANKS: i64 = 1 << 20;
/// The last number of a name stands for the rank if nothing else does: `report.3.sqlite`.
const NUMBER: &str = r"^(?:.*[^0-9])?";
/// Programming models that no recorded file was at hand of, with begin and end of the names of their tables.
const UNTESTED: [(&str, &str, &str); 4] = [
    ("MPI", "MPI_", "_EVENTS"),
    ("OpenMP", "OPENMP_", ""),
    ("OpenACC", "CUPTI_ACTIVITY_KIND_OPENACC", ""),
    ("UCX", "UCP_", "_EVENTS"),
];

/// The reports of a run.
#[derive(Debug)]
pub struct Opened {
    /// Its ranks.
    pub recording: DeviceRecording,
    /// What is known of the reports besides.
    pub facts: Facts,
}

/// A process of a report.
struct Process {
    report: usize,
    built: Built,
}

/// Opens the reports of a run: files, or directories with files.
pub fn open(paths: &[PathBuf], options: &Options) -> Result<Opened> {
    let mut files: Vec<PathBuf> = paths.iter().flat_map(|path| detect(path)).collect();
    let given = paths.first().cloned().unwrap_or_default();
    if files.is_empty() {
        return Err(Error::no_trace(&given, "no SQLite exports of Nsight Systems (*.sqlite)"));
    }
    files.sort();
    files.dedup();
    let read = in_parallel(&files, |file| {
        let mut report = Report::read(file, options)?;
        let mut rows = std::mem::take(&mut report.processes);
        rows.retain(|_, rows| rows.is_of_program());
        let has_others = rows.values().filter(|rows| !rows.works.is_empty()).count() > 1;
        let known = (&report.names, &report.stacks);
        let build = |(process, rows)| build(known, &report.devices_of(process, has_others), rows, options);
        let built: Vec<Built> = rows.into_iter().map(build).collect();
        Ok((report, built))
    })?;
    let mut reports = Vec::with_capacity(read.len());
    let mut processes = Vec::new();
    for (place, (report, built)) in read.into_iter().enumerate() {
        reports.push(report);
        processes.extend(built.into_iter().map(|built| Process { report: place, built }));
    }
    if processes.is_empty() {
        let why = "no process has calls of MPI or CUDA, ranges of NVTX, or work on a device: record with nsys profile \
                   --trace=mpi,cuda,nvtx";
        return Err(Error::no_trace(&files[0], why));
    }
    let mut oddities: Vec<Oddity> =
        reports.iter_mut().flat_map(|report| std::mem::take(&mut report.oddities)).collect();
    let begins = clocks::begins(&reports);
    for process in &mut processes {
        process.built.shift(begins.bases[process.report]);
    }
    is_one_run(&reports, &processes)?;
    number(&reports, &mut processes, &mut oddities)?;
    processes.sort_by_key(|process| process.built.rank.number);
    for process in &mut processes {
        process.built.rank.host.clone_from(&reports[process.report].host);
        process.built.rank.clock = Some(begins.clocks[process.report]);
    }
    note(&reports, &processes, &begins, &mut oddities);
    let (mut run, mut facts) = (of_run(&reports, &processes), of_reports(&reports, &processes, &begins));
    let unlaunched = processes.iter().map(|process| process.built.unlaunched).sum();
    facts.note("works on devices without the call that launched them", unlaunched);
    let communication = communicate(&reports, &processes, &begins, run.world_size);
    said(&communication.counts, &mut facts);
    without_mpi(&processes, &mut facts);
    facts.untraced.clone_from(&communication.untraced);
    run.groups = communication.groups;
    for (process, calls) in processes.iter_mut().zip(communication.calls) {
        process.built.record(calls);
    }
    let said_of_nccl: Vec<nccl::Said> = processes.iter().map(|process| process.built.nccl.clone()).collect();
    let mut ranks: Vec<_> = processes.into_iter().map(|process| process.built.rank).collect();
    let inferred = nccl::complete(&mut ranks, &said_of_nccl);
    facts.note(
        "roots and peers of NCCL, by the order of ranks: the making of their communicators is not recorded",
        inferred.partners,
    );
    facts.note(
        "kernels of NCCL whose communicator is not used: which ranks it has is not recorded, and some ranks say nothing",
        inferred.forgotten,
    );
    let (path, name) = identity(&given);
    let source = Source { path, name, creator: "Nsight Systems", tool: "NSIGHT" };
    let recording = DeviceRecording::new(source, ranks, communication.comms, run, oddities);
    are_related(&reports, &facts, &recording)?;
    Ok(Opened { recording, facts })
}

/// The path of a run, and its name.
fn identity(given: &Path) -> (PathBuf, String) {
    let absolute = given.canonicalize().unwrap_or_else(|_| given.to_owned());
    let name = if given.is_file() { absolute.file_stem() } else { absolute.file_name() };
    (given.to_owned(), name.map_or_else(|| "traces".to_owned(), |name| name.to_string_lossy().into_owned()))
}

/// Refuses reports that cannot be of one run: those of some end before those of others begin.
fn is_one_run(reports: &[Report], processes: &[Process]) -> Result<()> {
    let mut windows: BTreeMap<usize, (i64, i64)> = BTreeMap::new();
    for Process { report, built } in processes.iter().filter(|process| has_time(&reports[process.report])) {
        let own = built.rank.window;
        let window = windows.entry(*report).or_insert(own);
        *window = (window.0.min(own.0), window.1.max(own.1));
    }
    let mut windows: Vec<((i64, i64), usize)> = windows.into_iter().map(|(report, window)| (window, report)).collect();
    windows.sort_unstable();
    let mut last: Option<(i64, usize)> = None;
    for ((begin, end), report) in windows {
        if let Some((ended, before)) = last
            && ended < begin
        {
            let names = [before, report].map(|report| file_name(&reports[report].path));
            let why = format!(
                "the reports are of different runs: {} ends {:.3} s before {} begins. Give those of one run",
                names[0],
                (begin - ended) as f64 / 1e9,
                names[1]
            );
            return Err(Error::no_trace(reports[report].path.parent().unwrap_or(&reports[report].path), why));
        }
        last = last.max(Some((end, report)));
    }
    Ok(())
}

/// Whether it is known when a report is from: without the begin of its session, nobody knows.
const fn has_time(report: &Report) -> bool {
    report.clock.is_normalized || report.clock.utc.is_some()
}

/// Refuses reports whose times nothing relates to those of others: no begin of a session, and no operation.
fn are_related(reports: &[Report], facts: &Facts, recording: &DeviceRecording) -> Result<()> {
    for (report, own) in reports.iter().zip(&facts.reports).filter(|(report, _)| !has_time(report)) {
        let relates = |group: &GroupFacts| {
            let is_own = |rank: &u32| own.ranks.contains(rank);
            let is_of_another =
                |rank: &u32| facts.reports.iter().any(|other| other.ranks.contains(rank)) && !is_own(rank);
            group.instances > 0 && group.ranks.iter().any(is_own) && group.ranks.iter().any(is_of_another)
        };
        let others = facts.reports.iter().filter(|other| other.file != own.file && !other.ranks.is_empty()).count();
        if others > 0 && !own.ranks.is_empty() && !recording.facts().groups.iter().any(relates) {
            let why = format!(
                "{} does not say when its session began, and no collective operation relates its clock to those of others: \
                 export it again with a newer nsys, or analyze it alone",
                own.file
            );
            return Err(Error::no_trace(&report.path, why));
        }
    }
    Ok(())
}

/// Gives each process its rank: as MPI says, else NCCL, else the names of files, else their order.
fn number(reports: &[Report], processes: &mut [Process], oddities: &mut Vec<Oddity>) -> Result<()> {
    let of_nccl = |built: &Built| built.nccl.made.iter().max_by_key(|made| made.size).map(|made| made.rank);
    let said: Vec<Option<u32>> =
        processes.iter().map(|process| process.built.said.or_else(|| of_nccl(&process.built))).collect();
    let mut known: BTreeMap<u32, usize> = BTreeMap::new();
    for (process, said) in processes.iter().zip(&said) {
        let Some(other) = said.and_then(|rank| known.insert(rank, process.report)) else { continue };
        let path = &reports[process.report].path;
        let names = [other, process.report].map(|report| file_name(&reports[report].path));
        let rank = said.unwrap_or_default();
        let why = format!("rank {rank} is in {} and in {}: give the reports of one run", names[0], names[1]);
        return Err(Error::no_trace(path.parent().unwrap_or(path), why));
    }
    let files: Vec<PathBuf> = processes.iter().map(|process| reports[process.report].path.clone()).collect();
    // Several processes of one report have its name in common.
    let is_one_each = files.windows(2).all(|pair| pair[0] != pair[1]);
    let patterns: Vec<&str> = RANK_PATTERNS.iter().copied().chain([NUMBER]).collect();
    let numbered = numbers(&files, &said, if is_one_each { &patterns } else { &[] });
    for (process, (number, is_guess)) in processes.iter_mut().zip(numbered) {
        process.built.rank.number = number;
        if is_guess {
            let text = format!("no rank is known of this process: {number} is a guess by the order of names");
            oddities.push(oddity(OddityKind::Guessed, &reports[process.report].path, text));
        }
    }
    Ok(())
}

fn oddity(kind: OddityKind, path: &Path, text: String) -> Oddity {
    Oddity { kind, place: Place { path: path.to_owned(), offset: 0 }, text }
}

/// Notes what is odd in processes and in what relates reports.
fn note(reports: &[Report], processes: &[Process], begins: &Begins, oddities: &mut Vec<Oddity>) {
    for Process { report, built } in processes {
        let path = &reports[*report].path;
        let mut count = |kind, number: u64, what: &str| {
            if number > 0 {
                oddities.push(oddity(kind, path, format!("{number} {what}")));
            }
        };
        count(OddityKind::Crossing, built.crossings, "spans of threads cross others, and were cut or divided");
        count(OddityKind::Crossing, built.loose, "ranges that neither nest nor end in their thread are left out");
    }
    for (place, report) in reports.iter().enumerate() {
        if reports.len() > 1 && report.clock.utc.is_none() && !report.clock.is_normalized {
            let text = "when its session began is not recorded: its clock is related to others by messages and operations only";
            oddities.push(oddity(OddityKind::ClockOffset, &report.path, text.to_owned()));
        }
        if begins.strangers.contains(&place) {
            let text =
                "its clock is that of another machine or another boot, although the name of the machine is the same";
            oddities.push(oddity(OddityKind::ClockOffset, &report.path, text.to_owned()));
        }
        if report.has_graphs {
            let text =
                "CUDA graphs are recorded as a whole, without the kernels in them: --cuda-graph-trace=node has these";
            oddities.push(oddity(OddityKind::Missing, &report.path, text.to_owned()));
        }
        let mut of_nccl = |number: u64, what: &str| {
            if number > 0 {
                oddities.push(oddity(OddityKind::Missing, &report.path, format!("{number} {what}")));
            }
        };
        let NcclDefects { without_data, unknown, joined } = report.nccl;
        of_nccl(
            without_data,
            "ranges of NCCL say nothing of their communicators: nsys export --include-blobs=true has these",
        );
        of_nccl(
            unknown,
            "ranges of NCCL have data of a form that is not known: their kernels are matched by order, or not at all",
        );
        of_nccl(joined, "ranges of NCCL have numbers (apiId) that join them to what devices do, which are not read");
    }
}

/// What processes do together by MPI.
fn communicate(reports: &[Report], processes: &[Process], begins: &Begins, world_size: u32) -> Communication {
    let sides: Vec<Side<'_>> = processes
        .iter()
        .map(|Process { report, built }| {
            let (number, names) = (built.rank.number, &reports[*report].names);
            let (clock, machine) = (begins.clocks[*report], begins.machines[*report]);
            Side { number, clock, machine, names, program: &built.program }
        })
        .collect();
    let mut comms = Vec::new();
    for (place, process) in (0..).zip(processes) {
        let own = i64::from(process.built.rank.number);
        for row in reports[process.report].communicators.iter().filter(|row| row.rank == own) {
            let time = row.time.saturating_add(begins.bases[process.report]);
            comms.push((place, CommRow { time, ..row.clone() }));
        }
    }
    mpi::find(&sides, &comms, world_size)
}

/// Says what of MPI is inferred or left out.
fn said(counts: &Counts, facts: &mut Facts) {
    for (kind, what, count) in [
        (
            "wildcard_inferred",
            "receives from any source or with any tag, by when messages were sent",
            counts.wildcard_inferred,
        ),
        ("request_unseen", "requests whose completion is not traced: nobody waits for them", counts.request_unseen),
        ("message_unmatched", "sends and receives without the other one", counts.message_unmatched),
        ("report_missing", "sends and receives whose partner has no report", counts.partner_missing),
        ("size_odd", "receives with less room than what came", counts.size_odd),
        ("communicator_unknown", "calls on communicators that are not known", counts.communicator_unknown),
        ("members_unread", "lists of members that cannot be read", counts.members_unread),
        ("collective_unmatched", "calls of operations that not all members take part in", counts.collective_unmatched),
        ("root_unknown", "operations whose root is not known", counts.root_unknown),
    ] {
        facts.find(kind, what, count);
    }
    facts.note("messages found by time, since reports begin in the midst of the run", counts.message_aligned);
    facts.note("order of the two rows of MPI_Sendrecv, of which the second sends", counts.second_sends.into());
    facts.note("processes whose MPI_COMM_WORLD is the handle that no record explains", counts.world_inferred);
    facts.note("operations on windows, which all processes call equally often", counts.window_inferred);
}

/// Says how many ranks have no call of MPI, unless that is all of them.
fn without_mpi(processes: &[Process], facts: &mut Facts) {
    let has_none = |process: &&Process| process.built.program.calls.is_empty();
    let count = processes.iter().filter(has_none).count();
    if count < processes.len() {
        let what = "ranks without calls of MPI, which others have: nsys profile --trace=mpi,cuda,nvtx";
        facts.find("mpi_missing", what, count as u64);
    }
}

/// What is known of the ranks.
fn of_run(reports: &[Report], processes: &[Process]) -> RunFacts {
    let ranks: Vec<RankFacts> =
        processes.iter().map(|Process { report, built }| built.facts(file_name(&reports[*report].path))).collect();
    let highest = processes.iter().map(|process| process.built.rank.number + 1).max().unwrap_or(0);
    let sizes = processes.iter().flat_map(|process| &process.built.nccl.made).map(|made| made.size);
    let of_mpi =
        reports.iter().flat_map(|report| &report.communicators).map(|row| row.size.clamp(0, MOST_RANKS) as u64);
    let partners = || processes.iter().filter_map(|process| process.built.program.highest_partner());
    let named = || partners().filter(|rank| (0..MOST_RANKS).contains(rank)).max().map(|rank| rank as u64 + 1);
    let largest = sizes.chain(of_mpi).max().or_else(named).and_then(|size| u32::try_from(size).ok()).unwrap_or(0);
    let mut versions = BTreeSet::new();
    for report in reports {
        let named = [("Nsight Systems", &report.product), ("schema", &report.schema)];
        versions.extend(named.into_iter().filter_map(|(name, version)| Some((name.to_owned(), version.clone()?))));
    }
    RunFacts {
        world_size: highest.max(largest),
        steps: RunFacts::shared_steps(&ranks),
        ranks,
        versions: versions.into_iter().collect(),
        cycles: 1,
        cycle: 1,
        ..RunFacts::default()
    }
}

/// What is known of the reports.
fn of_reports(reports: &[Report], processes: &[Process], begins: &Begins) -> Facts {
    let ranks = |place: usize| {
        let own = processes.iter().filter(move |process| process.report == place);
        own.map(|process| process.built.rank.number).collect()
    };
    let mut tables: BTreeMap<&str, u64> = BTreeMap::new();
    for (name, rows) in reports.iter().flat_map(|report| &report.read) {
        *tables.entry(name).or_default() += rows;
    }
    let is_read =
        |(_, begin, end): &(&str, &str, &str)| tables.keys().any(|name| name.starts_with(begin) && name.ends_with(end));
    let untested = UNTESTED.iter().filter(|model| is_read(model)).map(|(model, ..)| *model).collect();
    let unread: BTreeSet<&String> = reports.iter().flat_map(|report| &report.unread).collect();
    Facts {
        reports: (0..)
            .zip(reports)
            .map(|(place, report)| ReportFacts {
                file: file_name(&report.path),
                product: report.product.clone(),
                schema: report.schema.clone(),
                host: report.host.clone(),
                ranks: ranks(place),
            })
            .collect(),
        tables: tables.into_iter().map(|(name, rows)| (name.to_owned(), rows)).collect(),
        unread: unread.into_iter().cloned().collect(),
        clocks: begins.how,
        has_separate_clocks: begins.are_separate,
        untested,
        untraced: Vec::new(),
        notes: Vec::new(),
        findings: Vec::new(),
    }
}
