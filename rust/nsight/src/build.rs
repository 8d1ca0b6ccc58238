//! A process of a report as a rank.

use std::cmp::Reverse;

use rustc_hash::{FxHashMap, FxHashSet};
use whywait_devices::{
    Awaits, Calls, Device, Kind as Operation, NONE, Rank, RankFacts, Region, Regions, Stream, Work as PlacedWork,
};
use whywait_otf2::Event;
use whywait_otf2::enums::{Paradigm, RegionRole};

use crate::host::{Hosts, Launches};
use crate::mpi::{Call, Program};
use crate::names::Names;
use crate::nccl::{self, Material, Said};
use crate::options::Options;
use crate::rows::{EventRecord, Kind, ProcessRows, Span, StreamKey, Sync, Task, ThreadRows, Work};
use crate::samples::Stacks;
use crate::teams;

/// Threads that the tool or libraries run for themselves.
const OWN_THREADS: [&str; 3] = ["[NS", "[NSys", "CUPTI worker"];

/// A process as a rank whose times are still those of its session, and whose number is not known.
pub(crate) struct Built {
    pub(crate) rank: Rank,
    /// Its calls of MPI.
    pub(crate) program: Program,
    /// Its number, as MPI says.
    pub(crate) said: Option<u32>,
    /// What it says of its communicators of NCCL.
    pub(crate) nccl: Said,
    /// Works without a launch.
    pub(crate) unlaunched: u64,
    /// Spans of its threads that crossed others, and ranges of no place in a thread.
    pub(crate) crossings: u64,
    pub(crate) loose: u64,
    /// Rows that it was made of.
    pub(crate) rows: u64,
    /// What happens to locks of OpenMP: calls after those of MPI.
    locks: Vec<(Option<Event<'static>>, Option<Event<'static>>)>,
}

/// Makes a rank of a process.
pub(crate) fn build(
    (names, stacks): (&Names, &Stacks),
    devices: &[Device],
    mut rows: ProcessRows,
    options: &Options,
) -> Built {
    let program = Program::new(std::mem::take(&mut rows.mpi), names);
    let mut places: FxHashMap<i64, usize> = FxHashMap::default();
    places.extend(rows.threads.iter().enumerate().map(|(place, thread)| (thread.id, place)));
    for (number, call) in (0..).zip(&program.calls) {
        let Call { begin, end, name, .. } = *call;
        if let Some(thread) = places.get(&i64::from(call.thread)).and_then(|place| rows.threads.get_mut(*place)) {
            thread.spans.push(Span { begin, end, detail: number, name, kind: Kind::Mpi });
        }
    }
    let formed = teams::form(&mut rows);
    rows.threads.retain(|thread| thread.is_of_program() && !OWN_THREADS.iter().any(|own| thread.name.starts_with(own)));
    // The first thread is the one that began MPI, or else does most of it, or else forks most often, or else does most of all.
    rows.threads.sort_by_key(|thread| {
        (!thread.begins_mpi, Reverse((thread.mpi_calls, thread.forks, thread.spans.len())), thread.id)
    });
    if let Some((_, rest)) = rows.threads.split_first_mut() {
        rest.sort_by_key(|thread| thread.id);
    }
    rows.threads.iter_mut().for_each(ThreadRows::sort);
    let ProcessRows { rank: said, threads, mut works, streams: keys, syncs, events, operations, unsaid, .. } = rows;
    let keys = in_order(&mut works, keys.list);
    let (teams, tasks) = formed.in_order(&threads);
    let spans: usize = threads.iter().map(|thread| thread.spans.len()).sum();
    nccl::find_operations(&mut works, names, &options.kernels);
    let mut hosts = Hosts::new((names, stacks), Launches::new(&mut works), program.calls.len() as u32);
    let threads: Vec<_> = threads.into_iter().map(|thread| hosts.thread(thread)).collect();
    let Hosts { mut regions, contexts, launches, ranges, issues, crossings, loose, .. } = hosts;
    let launches = launches.into_list();
    let material = Material {
        names,
        works: &works,
        launches: &launches,
        ranges: &ranges,
        issues: &issues,
        operations: &operations,
    };
    let (members, of_work) = nccl::find(&material);
    let visits = threads.iter().flat_map(|thread| &thread.visits).map(|visit| (visit.begin, visit.end));
    let times = visits.chain(works.iter().map(|work| (work.begin, work.end)));
    let window = times.reduce(|all, one| (all.0.min(one.0), all.1.max(one.1))).unwrap_or_default();
    let used: FxHashSet<i64> = keys.iter().map(|(device, ..)| *device).collect();
    let streams = streams(&works, &keys);
    let rows = (spans + works.len()) as u64;
    let mut unlaunched = 0;
    let mut by_name: FxHashMap<(u32, Option<Operation>), u32> = FxHashMap::default();
    let placed = works.into_iter().enumerate().map(|(place, work)| {
        let member = of_work[place];
        let kind = members.get(member as usize).map(|member| member.kind);
        let launch = launches.get(work.launch as usize);
        unlaunched += u64::from(launch.is_none());
        let region = match work.task {
            Task::Kernel => {
                *by_name.entry((work.name, kind)).or_insert_with(|| kernel(names, &work, kind, &mut regions))
            }
            _ => other_work(work.task, &mut regions),
        };
        let context = launch.map_or(NONE, |launch| launch.context);
        let Work { begin, end, correlation, .. } = work;
        PlacedWork { begin, end, correlation, region, context, member }
    });
    // There are as many as rows: they take the place of these.
    const { assert!(size_of::<Work>() == size_of::<PlacedWork>()) };
    let works = placed.collect();
    let mut rank = Rank {
        devices: devices.iter().filter(|device| used.contains(&device.number)).cloned().collect(),
        window,
        regions: regions.list,
        contexts: contexts.list,
        threads,
        streams,
        works,
        syncs: awaits(&syncs, &events),
        members,
        teams,
        tasks,
        ..Rank::default()
    };
    rank.follow_streams();
    let nccl = Said { made: nccl::made(&operations), unsaid };
    Built { rank, program, said, nccl, unlaunched, crossings, loose, rows, locks: formed.locks }
}

impl Built {
    /// Moves all times.
    pub(crate) fn shift(&mut self, by: i64) {
        self.rank.shift(by);
        self.program.shift(by);
    }

    /// Takes over what is recorded with its calls of MPI.
    pub(crate) fn record(&mut self, calls: Calls) {
        self.rank.calls = calls;
        for (begin, end) in std::mem::take(&mut self.locks) {
            self.rank.calls.add(begin, end);
        }
    }

    /// What is known of it.
    pub(crate) fn facts(&self, file: String) -> RankFacts {
        RankFacts { file, events: self.rows, unlaunched: self.unlaunched, ..self.rank.facts() }
    }
}

fn kernel(names: &Names, work: &Work, kind: Option<Operation>, regions: &mut Regions) -> u32 {
    let name = names.get(work.name);
    let name = if name.is_empty() { "kernel" } else { name };
    let role = kind.map_or(RegionRole::KERNEL, Operation::role);
    regions.add(Region::new(name.to_owned(), Paradigm::CUDA, role))
}

fn other_work(task: Task, regions: &mut Regions) -> u32 {
    let (name, role) = match task {
        Task::Kernel => ("kernel", RegionRole::KERNEL),
        Task::Graph => ("CUDA graph", RegionRole::KERNEL),
        Task::Copy(copy) => (copy.name(), RegionRole::DATA_TRANSFER),
        Task::Memset => ("Memset", RegionRole::DATA_TRANSFER),
    };
    regions.add(Region::new(name.to_owned(), Paradigm::CUDA, role))
}

/// Brings works in order of streams and begins, and numbers streams in this order; these.
fn in_order(works: &mut [Work], mut keys: Vec<StreamKey>) -> Vec<StreamKey> {
    let mut order: Vec<usize> = (0..keys.len()).collect();
    order.sort_by_key(|stream| keys[*stream]);
    let mut numbers = vec![0; keys.len()];
    for (number, stream) in (0..).zip(&order) {
        numbers[*stream] = number;
    }
    for work in &mut *works {
        work.stream = numbers[work.stream as usize];
    }
    works.sort_unstable_by_key(|work| (work.stream, work.begin, work.end, work.correlation, work.name));
    keys.sort_unstable();
    keys
}

/// The streams of works in order of these. A stream of another context than the first of its device has that in its number.
fn streams(works: &[Work], keys: &[StreamKey]) -> Vec<Stream> {
    let mut contexts: FxHashMap<i64, Vec<i64>> = FxHashMap::default();
    let mut streams = Vec::new();
    let mut from = 0;
    for group in works.chunk_by(|a, b| a.stream == b.stream) {
        let (device, context, number) = keys[group[0].stream as usize];
        let known = contexts.entry(device).or_default();
        let place = known.iter().position(|other| *other == context).unwrap_or_else(|| {
            known.push(context);
            known.len() - 1
        });
        let name = match place {
            0 => format!("stream {number}"),
            _ => format!("stream {number} of context {context}"),
        };
        let number = number.wrapping_add((place as i64) << 32);
        streams.push(Stream { device, number, name, works: from..from + group.len() });
        from += group.len();
    }
    streams
}

/// What calls name, by their numbers. An event is named by the call that recorded it.
fn awaits(syncs: &[Sync], events: &[EventRecord]) -> FxHashMap<u64, Awaits> {
    let by_record: FxHashMap<i64, usize> =
        (0..).zip(events).filter_map(|(place, event)| Some((event.record?, place))).collect();
    let mut by_event: FxHashMap<i64, Vec<(u64, usize)>> = FxHashMap::default();
    for (place, event) in events.iter().enumerate() {
        if let Some(number) = event.event {
            by_event.entry(number).or_default().push((event.correlation, place));
        }
    }
    #[expect(clippy::iter_over_hash_type, reason = "each is sorted by itself")]
    for records in by_event.values_mut() {
        records.sort_unstable();
    }
    let recorded = |sync: &Sync| {
        if let Some(place) = sync.record.and_then(|record| by_record.get(&record)) {
            return Some(&events[*place]);
        }
        // Numbers of events are used again: it is the last record before the wait.
        let records = by_event.get(&sync.event?)?;
        let before = records.partition_point(|(correlation, _)| *correlation < sync.correlation);
        records.get(before.checked_sub(1)?).map(|(_, place)| &events[*place])
    };
    let mut all: FxHashMap<u64, Awaits> = FxHashMap::default();
    for sync in syncs {
        let record = recorded(sync);
        let call = all.entry(sync.correlation).or_default();
        call.stream = sync.stream.map(|stream| (sync.device, stream)).or(call.stream);
        call.event = record.map(|record| record.correlation).or(call.event);
        if let Some(record) = record {
            let stream = Some((record.device, record.stream));
            all.insert(record.correlation, Awaits { stream, event: Some(record.correlation) });
        }
    }
    all
}
