//! One rank: what its file holds, in order, with calls within calls and work with its launches.

use std::collections::BTreeMap;
use std::num::NonZeroU64;
use std::path::{Path, PathBuf};

use rustc_hash::FxHashMap;
use whywait_devices::{Awaits, Contexts, Detail, NONE, Rank, Stream, Thread, Work as PlacedWork, nest};

use crate::backward::forward;
use crate::columns::{Category, Columns, Counts, Span, Sync, Work};
use crate::gloo;
use crate::info::Info;
use crate::launches::Launcher;
use crate::members::{self, Material};
use crate::names::{Meaning, Names, PART_OF_STEP};
use crate::nesting::keep;
use crate::options::Options;
use crate::regions::{Regions, Vendor};
use crate::scan::Summary;
use crate::shapes::{self, Shapes};
use crate::steps::{self, Steps};
use crate::thread::Host;
use crate::window::{leave_out, shift, window};

/// What was odd, with numbers.
#[derive(Debug, Clone, Default)]
pub(crate) struct Odd {
    pub(crate) counts: Counts,
    pub(crate) crossings: u64,
    pub(crate) cut_works: u64,
    /// Works at a time that cannot be.
    pub(crate) far_works: u64,
    pub(crate) further_memory: u64,
    pub(crate) unlaunched: u64,
    pub(crate) summary: Summary,
}

/// One rank as its file has it.
#[derive(Debug)]
pub(crate) struct Traced {
    pub(crate) path: PathBuf,
    pub(crate) info: Info,
    pub(crate) rank: Rank,
    pub(crate) odd: Odd,
    /// The shapes of the inputs of each kernel, by its name.
    pub(crate) shapes: BTreeMap<String, Shapes>,
}

impl Traced {
    /// A rank of what its file holds.
    pub(crate) fn new(path: &Path, mut columns: Columns, summary: Summary, options: &Options) -> Self {
        let info = Info::read(&columns.metadata);
        let part_of_step = columns.names.id(PART_OF_STEP.as_bytes());
        columns.names.close();
        shift(&mut columns, info.base);
        let hosts = window(&columns);
        let further_memory = columns.further_memory;
        let mut odd = Odd { counts: columns.counts, summary, further_memory, ..Odd::default() };
        let (far_works, window) = leave_out(&mut columns, hosts);
        odd.far_works = far_works;
        let vendor = vendor(&columns, &info);
        let mut regions = Regions::new(options.paths, vendor);
        let Columns {
            names,
            spans,
            mut works,
            correlations,
            sequences,
            records,
            described,
            syncs,
            mut memory,
            arguments,
            dimensions,
            threads: ids,
            streams,
            ..
        } = columns;
        // If there are more samples than are read, the last ones would be missing.
        if odd.further_memory > 0 {
            odd.further_memory += std::mem::take(&mut memory).len() as u64;
        }
        memory.sort_by_key(|sample| sample.time);
        works.sort_by_key(|work| (streams[work.stream as usize], work.begin, work.end));
        if vendor == Vendor::Amd {
            odd.cut_works = cut(&mut works);
        }
        let mut launcher = Launcher {
            names: &names,
            correlations: &correlations,
            records: &records,
            launches: Vec::new(),
            by_correlation: works.iter().filter_map(|work| Some((work.correlation?, NONE))).collect(),
            contexts: Contexts::default(),
        };
        let mut threads = Vec::new();
        let mut by_thread = by_thread(spans, ids.len());
        place_overhead(&mut by_thread, &names);
        steps::add_parts(&mut by_thread, &names, part_of_step);
        let steps = Steps::new(&by_thread, &names);
        let operations = gloo::take_out(&mut by_thread, &ids, &names);
        let mut on_host = Vec::new();
        let forward = forward(&by_thread, &names, &sequences, &mut regions);
        for (number, spans) in (0..).zip(&by_thread) {
            if spans.is_empty() {
                continue;
            }
            let (mut placed, crossings) = nest(spans);
            odd.crossings += crossings;
            let mut of = keep(&mut placed, spans, &names, &mut regions, options.paths);
            let mut issuing = gloo::Builder {
                operations: &operations,
                thread: number,
                spans,
                placed: &mut placed,
                of: &mut of,
                names: &names,
                arguments: &arguments,
                info: &info,
                steps: &steps,
            };
            let (details, waits) = issuing.build(&mut regions, &mut on_host);
            let backward = forward.places(spans, &placed, &sequences);
            let host = Host {
                number,
                spans,
                placed: &placed,
                regions: &of,
                backward: &backward,
                details: &details,
                paths: &forward,
            };
            launcher.find(&host);
            let id = &ids[number as usize];
            let name = if id.name == NONE { format!("thread {}", id.thread) } else { names.get(id.name).to_owned() };
            let has_steps = spans.iter().any(|span| matches!(names.meaning(span.name), Meaning::Step(_)));
            let visits = gloo::merge(host.visits(&names, &correlations), waits);
            threads.push(Thread { id: id.thread, name, visits, has_steps, samples: Vec::new(), off: Vec::new() });
        }
        // The first thread of a process has its steps, or else most of what happens.
        threads.sort_by_key(|thread| (!thread.has_steps, std::cmp::Reverse(thread.visits.len()), thread.id));
        if let Some((_, rest)) = threads.split_first_mut() {
            rest.sort_by_key(|thread| thread.id);
        }
        let Launcher { launches, by_correlation, contexts, .. } = launcher;
        let material = Material {
            names: &names,
            works: &works,
            described: &described,
            records: &records,
            launches: &launches,
            by_correlation: &by_correlation,
            info: &info,
            steps: &steps,
            options,
        };
        let (mut members, member_of) = members::find(&material);
        let mut placed = Vec::with_capacity(works.len());
        for (work, member) in works.iter().zip(member_of) {
            let kind = members.get(member as usize).map(|member| member.kind);
            let launch = material.launch(work);
            odd.unlaunched += u64::from(launch.is_none());
            placed.push(PlacedWork {
                begin: work.begin,
                end: work.end,
                correlation: work.correlation.and_then(NonZeroU64::new),
                region: regions.of_work(&names, work.name, work.task, kind),
                context: launch.map_or(NONE, |launch| launch.context),
                member,
            });
        }
        let computing = works.iter().zip(&placed).filter(|(_, work)| work.member == NONE);
        let shapes = shapes::of_kernels(computing.map(|(work, placed)| (work, placed.region)), &dimensions, &names);
        let shapes = shapes.into_iter().map(|(region, shapes)| (regions.name(region).to_owned(), shapes)).collect();
        // Those of threads come after those of streams.
        let before = members.len() as u32;
        for visit in threads.iter_mut().flat_map(|thread| &mut thread.visits) {
            if let Detail::Operation(member) | Detail::Wait(member) = &mut visit.detail {
                *member += before;
            }
        }
        members.append(&mut on_host);
        let mut of_streams = Vec::new();
        let mut from = 0;
        for group in works.chunk_by(|a, b| a.stream == b.stream) {
            let (device, number) = streams[group[0].stream as usize];
            of_streams.push(Stream {
                device,
                number,
                name: format!("stream {number}"),
                works: from..from + group.len(),
            });
            from += group.len();
        }
        let mut rank = Rank {
            window,
            regions: regions.finish(),
            contexts: contexts.list,
            threads,
            streams: of_streams,
            works: placed,
            memory,
            syncs: awaits(&syncs),
            members,
            has_several_groups: info.groups.len() > 1,
            ..Rank::default()
        };
        rank.follow_streams();
        Self { path: path.to_owned(), info, rank, odd, shapes }
    }
}

fn vendor(columns: &Columns, info: &Info) -> Vendor {
    let mut calls = columns.spans.iter().filter(|span| matches!(span.category, Category::Call | Category::DriverCall));
    let is_amd = match calls.next() {
        Some(call) => columns.names.get(call.name).starts_with("hip"),
        None => info.devices.iter().any(|device| device.name.contains("AMD") || device.name.contains("Instinct")),
    };
    if is_amd { Vendor::Amd } else { Vendor::Nvidia }
}

/// Ends work that runs over most of the work after it on its stream, as some drivers record it; how much that was.
fn cut(works: &mut [Work]) -> u64 {
    let mut count = 0;
    for at in 1..works.len() {
        let (before, next) = (works[at - 1], works[at]);
        if before.stream == next.stream
            && next.begin > before.begin
            && before.end - next.begin > (before.end - before.begin) / 2
        {
            works[at - 1].end = next.begin;
            count += 1;
        }
    }
    count
}

/// The spans of each thread, in order.
fn by_thread(spans: Vec<Span>, threads: usize) -> Vec<Vec<Span>> {
    let mut counts = vec![0; threads];
    for span in &spans {
        counts[span.thread as usize] += 1;
    }
    let mut all: Vec<Vec<Span>> = counts.into_iter().map(Vec::with_capacity).collect();
    for span in spans {
        all[span.thread as usize].push(span);
    }
    for spans in &mut all {
        // A category comes after another, each in order: the sort finds and merges these runs.
        spans.sort_by_key(|span| (span.begin, std::cmp::Reverse(span.end), span.category));
    }
    all
}

/// Moves overhead that is on no thread of the process to the first one: that with steps, or with most spans.
fn place_overhead(by_thread: &mut [Vec<Span>], names: &Names) {
    let is_overhead = |span: &Span| span.category == Category::Overhead;
    let has_steps = |spans: &[Span]| spans.iter().any(|span| matches!(names.meaning(span.name), Meaning::Step(_)));
    let (mut elsewhere, mut first) = (Vec::new(), None);
    for (number, spans) in by_thread.iter_mut().enumerate().filter(|(_, spans)| !spans.is_empty()) {
        if spans.iter().all(is_overhead) {
            elsewhere.append(spans);
        } else {
            first = first.max(Some((has_steps(spans), spans.len(), std::cmp::Reverse(number))));
        }
    }
    if let Some((.., std::cmp::Reverse(number))) = first.filter(|_| !elsewhere.is_empty()) {
        by_thread[number].append(&mut elsewhere);
        by_thread[number].sort_by_key(|span| (span.begin, std::cmp::Reverse(span.end), span.category));
    }
}

/// What calls name, by their numbers.
fn awaits(syncs: &[Sync]) -> FxHashMap<u64, Awaits> {
    let mut all: FxHashMap<u64, Awaits> = FxHashMap::default();
    for sync in syncs {
        let call = all.entry(sync.correlation).or_default();
        call.stream = sync.stream.or(call.stream);
        call.event = sync.recorded_by.or(call.event);
        // An event is named by the call that recorded it.
        if let Some(recorded_by) = sync.recorded_by {
            let record = all.entry(recorded_by).or_default();
            record.stream = sync.awaited_stream.or(record.stream);
            record.event = Some(recorded_by);
        }
    }
    all
}
