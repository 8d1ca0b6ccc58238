//! One rank: what its file holds, in order, with calls within calls and work with its launches.

use std::path::{Path, PathBuf};

use rustc_hash::FxHashMap;

use crate::columns::{Category, Columns, Counts, Described, Memory, NONE, Record, Sequence, Span, Sync, Work};
use crate::contexts::Contexts;
use crate::gloo;
use crate::info::Info;
use crate::kinds::Kind;
use crate::members::{self, Member};
use crate::names::{Meaning, Names};
use crate::nesting::{Placed, keep, nest};
use crate::numbers::{EARLIEST_TIME, LARGEST_TIME};
use crate::options::Options;
use crate::regions::{Region, Regions, Vendor};
use crate::scan::Summary;

/// A call, operator, frame or annotation on a call path.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Visit {
    pub(crate) begin: i64,
    pub(crate) end: i64,
    pub(crate) region: u32,
    pub(crate) detail: Detail,
}

/// What is recorded where a visit begins.
#[derive(Debug, Clone, Copy)]
pub(crate) enum Detail {
    None,
    /// The number that a call and what it launches have in common.
    Correlation(u64),
    /// The number of a step.
    Step(i64),
    /// The operation that a call issues, in `members`.
    Operation(u32),
    /// The operation that is awaited.
    Wait(u32),
}

/// A thread of the host.
#[derive(Debug)]
pub(crate) struct Thread {
    pub(crate) id: i64,
    pub(crate) name: String,
    pub(crate) visits: Vec<Visit>,
    pub(crate) has_steps: bool,
}

impl Thread {
    /// The only thread of a process that recorded no host.
    pub(crate) fn empty() -> Self {
        Self { id: 0, name: "host (not recorded)".to_owned(), visits: Vec::new(), has_steps: false }
    }
}

/// A stream, and which works are its own.
#[derive(Debug)]
pub(crate) struct Stream {
    pub(crate) device: i64,
    pub(crate) number: i64,
    pub(crate) works: std::ops::Range<usize>,
}

/// What launched a work.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Launch {
    pub(crate) begin: i64,
    pub(crate) thread: u32,
    /// The call path of the launching call, without the call.
    pub(crate) context: u32,
    /// What describes the communication call around it.
    pub(crate) record: u32,
    /// The kind of the operation around it, by its annotation.
    pub(crate) kind: Option<Kind>,
    /// Whether it is within a barrier.
    pub(crate) in_barrier: bool,
    /// Of several calls with one number, the most likely is taken.
    likelihood: u8,
}

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

/// One rank.
#[derive(Debug)]
pub(crate) struct Rank {
    pub(crate) path: PathBuf,
    pub(crate) number: u32,
    pub(crate) info: Info,
    /// When the profiler began and ended.
    pub(crate) window: (i64, i64),
    pub(crate) regions: Vec<Region>,
    /// Call paths from which something was launched: parent and region.
    pub(crate) contexts: Vec<(u32, u32)>,
    /// The first thread of the process comes first.
    pub(crate) threads: Vec<Thread>,
    pub(crate) streams: Vec<Stream>,
    /// By stream and begin.
    pub(crate) works: Vec<PlacedWork>,
    /// Memory in use, in order of time.
    pub(crate) memory: Vec<Memory>,
    /// What synchronizations wait for, by their calls.
    pub(crate) syncs: FxHashMap<u64, Awaits>,
    pub(crate) members: Vec<Member>,
    pub(crate) odd: Odd,
}

/// The stream and the event that a call names.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct Awaits {
    pub(crate) stream: Option<(i64, i64)>,
    pub(crate) event: Option<u64>,
}

/// Work as it is emitted.
#[derive(Debug, Clone, Copy)]
pub(crate) struct PlacedWork {
    pub(crate) begin: i64,
    pub(crate) end: i64,
    pub(crate) correlation: Option<u64>,
    pub(crate) region: u32,
    pub(crate) context: u32,
    /// Its part in communication, in `members`.
    pub(crate) member: u32,
}

/// The steps of a rank: begin, end and number of each, in order.
#[derive(Debug)]
pub(crate) struct Steps(Vec<(i64, i64, i64)>);

impl Steps {
    fn new(threads: &[Vec<Span>], names: &Names) -> Self {
        let step = |span: &Span| match names.meaning(span.name) {
            Meaning::Step(number) => Some((span.begin, span.end, number)),
            _ => None,
        };
        let mut steps: Vec<_> = threads.iter().flatten().filter_map(step).collect();
        steps.sort_unstable();
        Self(steps)
    }

    /// The step at a time.
    pub(crate) fn at(&self, time: i64) -> Option<i64> {
        let before = self.0.partition_point(|(begin, ..)| *begin <= time);
        let (_, end, number) = self.0.get(before.checked_sub(1)?)?;
        (time < *end).then_some(*number)
    }
}

/// What describes work and its launches while a rank is built.
pub(crate) struct Material<'a> {
    pub(crate) names: &'a Names,
    pub(crate) works: &'a [Work],
    pub(crate) described: &'a [Described],
    pub(crate) records: &'a [Record],
    pub(crate) launches: &'a [Launch],
    pub(crate) by_correlation: &'a FxHashMap<u64, u32>,
    pub(crate) info: &'a Info,
    pub(crate) steps: &'a Steps,
    pub(crate) options: &'a Options,
}

impl Material<'_> {
    /// What launched a work.
    pub(crate) fn launch(&self, work: &Work) -> Option<&Launch> {
        self.launches.get(*self.by_correlation.get(&work.correlation?)? as usize)
    }
}

impl Rank {
    /// A rank of what its file holds.
    pub(crate) fn new(path: &Path, mut columns: Columns, summary: Summary, options: &Options) -> Self {
        let info = Info::read(&columns.metadata);
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
            threads.push(Thread { id: id.thread, name, visits, has_steps });
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
                correlation: work.correlation,
                region: regions.of_work(&names, work.name, work.task, kind),
                context: launch.map_or(NONE, |launch| launch.context),
                member,
            });
        }
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
            of_streams.push(Stream { device, number, works: from..from + group.len() });
            from += group.len();
        }
        Self {
            path: path.to_owned(),
            number: 0,
            window,
            regions: regions.list,
            contexts: contexts.list,
            threads,
            streams: of_streams,
            works: placed,
            memory,
            syncs: awaits(&syncs),
            members,
            odd,
            info,
        }
    }
}

impl Rank {
    /// Moves all times.
    pub(crate) fn shift(&mut self, by: i64) {
        let at = |time: &mut i64| *time = time.saturating_add(by).clamp(EARLIEST_TIME, LARGEST_TIME);
        for visit in self.threads.iter_mut().flat_map(|thread| &mut thread.visits) {
            at(&mut visit.begin);
            at(&mut visit.end);
        }
        for work in &mut self.works {
            at(&mut work.begin);
            at(&mut work.end);
        }
        for member in &mut self.members {
            at(&mut member.begin);
            at(&mut member.end);
            at(&mut member.order);
        }
        for sample in &mut self.memory {
            at(&mut sample.time);
        }
        at(&mut self.window.0);
        at(&mut self.window.1);
    }
}

/// Whether a time can be one of a run.
fn is_possible(time: i64) -> bool {
    (EARLIEST_TIME..=LARGEST_TIME).contains(&time)
}

/// Makes times absolute; what then is at a time that cannot be is left out.
fn shift(columns: &mut Columns, base: i64) {
    let at = |time: i64| time.saturating_add(base);
    let counts = &mut columns.counts;
    columns.spans.retain_mut(|span| {
        (span.begin, span.end) = (at(span.begin), at(span.end));
        let is_kept = is_possible(span.begin) && is_possible(span.end);
        counts.no_time += u64::from(!is_kept);
        is_kept
    });
    columns.works.retain_mut(|work| {
        (work.begin, work.end) = (at(work.begin), at(work.end));
        let is_kept = is_possible(work.begin) && is_possible(work.end);
        counts.no_time += u64::from(!is_kept);
        is_kept
    });
    for record in &mut columns.records {
        record.begin = at(record.begin);
    }
    columns.memory.retain_mut(|sample| {
        sample.time = at(sample.time);
        is_possible(sample.time)
    });
    columns.began = columns.began.map(at).filter(|time| is_possible(*time));
    columns.ended = columns.ended.map(at).filter(|time| is_possible(*time));
}

/// When the profiler began and ended, as far as the file says, else the first and last event of the host, else those of
/// the device.
fn window(columns: &Columns) -> (i64, i64) {
    let around = |times: &mut dyn Iterator<Item = (i64, i64)>| {
        times.reduce(|all: (i64, i64), (begin, end)| (all.0.min(begin), all.1.max(end)))
    };
    let hosts = around(&mut columns.spans.iter().map(|span| (span.begin, span.end)));
    let events = hosts.or_else(|| around(&mut columns.works.iter().map(|work| (work.begin, work.end))));
    let (first, last) = events.unwrap_or_default();
    let begin = columns.began.unwrap_or(first);
    (begin, columns.ended.unwrap_or(last).max(begin))
}

/// Leaves out work at a time that cannot be (drivers write a time of 0 where they know none); how much that was, and the
/// window with all work.
///
/// If the file says when the window began or ended, that is what is a tenth of the window away from it. Else only what is far
/// from all other events: devices go on after their hosts, and may begin before them.
fn leave_out(columns: &mut Columns, (begin, end): (i64, i64)) -> (u64, (i64, i64)) {
    let length = end - begin;
    let mut times: Vec<(i64, i64)> = columns.works.iter().map(|work| (work.begin, work.end)).collect();
    times.sort_unstable();
    let first =
        if columns.began.is_some() { begin.saturating_sub(length / 10) } else { first_near(&times, begin, end) };
    let last = if columns.ended.is_some() {
        end.saturating_add(length / 10)
    } else {
        // The same on the other side of time.
        let mirrored: Vec<(i64, i64)> = times.iter().rev().map(|(begin, end)| (-end, -begin)).collect();
        -first_near(&mirrored, -end, -begin)
    };
    let is_near = |work: &Work| work.end >= first && work.begin <= last;
    let far = columns.works.iter().filter(|work| !is_near(work)).count();
    // If most of it is, it is the window that is wrong.
    let is_wrong = far * 2 > columns.works.len();
    if !is_wrong {
        columns.works.retain(is_near);
    }
    let works = || columns.works.iter();
    let earliest = works().map(|work| work.begin).min().filter(|_| columns.began.is_none());
    let latest = works().map(|work| work.end).max().filter(|_| columns.ended.is_none());
    let window = (earliest.map_or(begin, |time| time.min(begin)), latest.map_or(end, |time| time.max(end)));
    (if is_wrong { 0 } else { far as u64 }, window)
}

/// The begin of the first of some times after which no gap is much longer than all that follows it, up to an end.
fn first_near(times: &[(i64, i64)], begin: i64, end: i64) -> i64 {
    let end = times.iter().map(|(_, end)| *end).fold(end, i64::max);
    let mut first = begin;
    for (from, to) in times.iter().rev().filter(|(from, _)| *from < begin) {
        let extent = end.saturating_sub(first).max(1);
        if first.saturating_sub(*to) / MUCH_LONGER > extent {
            break;
        }
        first = first.min(*from);
    }
    first
}

/// A gap this many times as long as all that is on one side of it separates times that cannot be.
const MUCH_LONGER: i64 = 10;

fn vendor(columns: &Columns, info: &Info) -> Vendor {
    let mut calls = columns.spans.iter().filter(|span| matches!(span.category, Category::Call | Category::DriverCall));
    let is_amd = match calls.next() {
        Some(call) => columns.names.get(call.name).starts_with("hip"),
        None => info.devices.iter().any(|(_, name)| name.contains("AMD") || name.contains("Instinct")),
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

/// Modules in which the operators of the forward pass are, for those of the backward pass.
#[derive(Default)]
struct Forward {
    backward: u32,
    modules: Contexts,
    /// Begin and path of the operators with a number.
    by_number: FxHashMap<i64, Vec<(i64, u32)>>,
}

fn forward(threads: &[Vec<Span>], names: &Names, sequences: &[Sequence], regions: &mut Regions) -> Forward {
    let mut forward = Forward::default();
    if !sequences.iter().any(|sequence| sequence.forward_thread > 0) {
        return forward;
    }
    forward.backward = regions.backward();
    for spans in threads {
        // Frames of modules are open one in another: those that have ended are dropped.
        let mut open: Vec<(i64, u32)> = Vec::new();
        for span in spans {
            while open.last().is_some_and(|(end, _)| *end <= span.begin) {
                open.pop();
            }
            if names.meaning(span.name) == Meaning::Module && span.category == Category::Frame {
                let parent = open.last().map_or(NONE, |(_, path)| *path);
                let region = regions.of_host(names, span.name, span.category);
                open.push((span.end, forward.modules.node(parent, region)));
            } else if let (Category::Op, Some(sequence)) = (span.category, sequence_of(span, names, sequences))
                && sequence.forward_thread <= 0
                && let Some((_, path)) = open.last()
            {
                forward.by_number.entry(sequence.number).or_default().push((span.begin, *path));
            }
        }
    }
    #[expect(clippy::iter_over_hash_type, reason = "each is sorted by itself")]
    for places in forward.by_number.values_mut() {
        places.sort_unstable();
    }
    forward
}

fn sequence_of<'a>(span: &Span, names: &Names, sequences: &'a [Sequence]) -> Option<&'a Sequence> {
    let is_other = matches!(names.meaning(span.name), Meaning::Communication | Meaning::Issue | Meaning::HostOperation);
    if span.category != Category::Op || is_other { None } else { sequences.get(span.detail as usize) }
}

impl Forward {
    /// The paths of modules below which the outermost operators of the backward pass are put, by their places.
    fn places(&self, spans: &[Span], placed: &[Placed], sequences: &[Sequence]) -> FxHashMap<u32, u32> {
        let mut found = FxHashMap::default();
        if self.by_number.is_empty() {
            return found;
        }
        // Up to where an operator of the backward pass is open.
        let mut until = i64::MIN;
        for (at, part) in (0..).zip(placed) {
            let span = &spans[part.span as usize];
            if span.category != Category::Op || part.begin < until {
                continue;
            }
            let Some(sequence) = sequences.get(span.detail as usize).filter(|sequence| sequence.forward_thread > 0)
            else {
                continue;
            };
            let Some(places) = self.by_number.get(&sequence.number) else { continue };
            let before = places.partition_point(|(begin, _)| *begin <= part.begin);
            if let Some((_, path)) = before.checked_sub(1).and_then(|last| places.get(last)) {
                found.insert(at, *path);
                until = part.end;
            }
        }
        found
    }

    /// The regions of a path, outermost first, below `backward`.
    fn path(&self, path: u32) -> Vec<u32> {
        let mut regions = self.modules.path(path);
        regions.insert(0, self.backward);
        regions
    }
}

/// A thread while its visits and launches are found.
struct Host<'a> {
    number: u32,
    spans: &'a [Span],
    placed: &'a [Placed],
    regions: &'a [u32],
    backward: &'a FxHashMap<u32, u32>,
    details: &'a FxHashMap<u32, Detail>,
    paths: &'a Forward,
}

impl Host<'_> {
    fn visits(&self, names: &Names, correlations: &[u64]) -> Vec<Visit> {
        let mut visits = Vec::with_capacity(self.placed.iter().filter(|part| part.is_kept).count());
        for (at, part) in (0..).zip(self.placed) {
            let (begin, end) = (part.begin, part.end);
            if let Some(path) = self.backward.get(&at) {
                let around = self.paths.path(*path);
                visits.extend(around.into_iter().map(|region| Visit { begin, end, region, detail: Detail::None }));
            }
            if !part.is_kept {
                continue;
            }
            let span = &self.spans[part.span as usize];
            let own = self.details.get(&at).copied();
            let detail = own.unwrap_or_else(|| match (span.category, names.meaning(span.name)) {
                (Category::Call | Category::DriverCall, _) if !part.is_rest => {
                    correlations.get(span.detail as usize).map_or(Detail::None, |number| Detail::Correlation(*number))
                }
                (_, Meaning::Step(number)) => Detail::Step(number),
                _ => Detail::None,
            });
            visits.push(Visit { begin, end, region: self.regions[at as usize], detail });
        }
        visits
    }
}

/// Finds what launched each work, and from where.
struct Launcher<'a> {
    names: &'a Names,
    correlations: &'a [u64],
    records: &'a [Record],
    launches: Vec<Launch>,
    /// The launch of each work, by their common number.
    by_correlation: FxHashMap<u64, u32>,
    contexts: Contexts,
}

impl Launcher<'_> {
    fn find(&mut self, host: &Host<'_>) {
        let mut known = vec![NONE; host.placed.len()];
        let has_ops = host.spans.iter().any(|span| span.category == Category::Op);
        for (at, part) in (0..).zip(host.placed) {
            let span = &host.spans[part.span as usize];
            if !matches!(span.category, Category::Call | Category::DriverCall) || part.is_rest {
                continue;
            }
            let Some(number) = self.correlations.get(span.detail as usize) else { continue };
            let Some(place) = self.by_correlation.get(number).copied() else { continue };
            let likelihood = u8::from(span.category == Category::Call) + 2 * u8::from(has_ops);
            if self.launches.get(place as usize).is_some_and(|launch| launch.likelihood >= likelihood) {
                continue;
            }
            let context = self.context(host, part.parent, &mut known);
            let (record, kind, in_barrier) = self.around(host, at);
            let (begin, thread) = (part.begin, host.number);
            let launch = Launch { begin, thread, context, record, kind, in_barrier, likelihood };
            if let Some(other) = self.launches.get_mut(place as usize) {
                *other = launch;
            } else {
                self.by_correlation.insert(*number, self.launches.len() as u32);
                self.launches.push(launch);
            }
        }
    }

    /// The call path of a place.
    fn context(&mut self, host: &Host<'_>, place: u32, known: &mut [u32]) -> u32 {
        let mut chain = Vec::new();
        let mut at = place;
        let mut context = NONE;
        while let Some(part) = host.placed.get(at as usize) {
            if known[at as usize] != NONE {
                context = known[at as usize];
                break;
            }
            chain.push(at);
            at = part.parent;
        }
        for at in chain.into_iter().rev() {
            if let Some(path) = host.backward.get(&at) {
                for region in host.paths.path(*path) {
                    context = self.contexts.node(context, region);
                }
            }
            if host.placed[at as usize].is_kept {
                context = self.contexts.node(context, host.regions[at as usize]);
            }
            known[at as usize] = context;
        }
        context
    }

    /// What is known of communication around a launch.
    fn around(&self, host: &Host<'_>, place: u32) -> (u32, Option<Kind>, bool) {
        let (mut record, mut kind, mut in_barrier) = (NONE, None, false);
        let mut at = place;
        while let Some(part) = host.placed.get(at as usize) {
            let span = &host.spans[part.span as usize];
            let name = self.names.get(span.name);
            match self.names.meaning(span.name) {
                Meaning::Communication if record == NONE && (span.detail as usize) < self.records.len() => {
                    record = span.detail;
                }
                Meaning::DeviceOperation if kind.is_none() => {
                    kind = name.split_once(':').and_then(|(_, name)| Kind::of_operation(name));
                }
                Meaning::Issue => in_barrier |= name == "c10d::barrier",
                _ => {}
            }
            at = part.parent;
        }
        (record, kind, in_barrier)
    }
}
