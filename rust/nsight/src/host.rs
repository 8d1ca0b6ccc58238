//! The threads of a process: calls within calls, and what launched which work.

use rustc_hash::FxHashMap;
use whywait_devices::{Contexts, Detail, NONE, Placed, Region, Regions, Sample, Thread, Visit, Wide, nest};
use whywait_otf2::enums::{Paradigm, RegionFlag, RegionRole};

use crate::constructs::Construct;
use crate::mpi::role;
use crate::names::Names;
use crate::rows::{Kind, NO_DETAIL, Span, ThreadRows, Work};
use crate::samples::Stacks;
use crate::system;

/// Where in a thread a kernel that communicates was launched.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Call {
    pub(crate) begin: i64,
    /// The place of its thread in the process.
    pub(crate) thread: u32,
    /// The innermost range of NCCL around it, in `ranges`.
    pub(crate) nccl: u32,
}

/// What launched works.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Launch {
    /// The call path of the launching call, without the call.
    pub(crate) context: u32,
    /// A call of the runtime counts more than one of the driver within it.
    is_driver: bool,
    /// Of a kernel that communicates: all other works with the rest in common have one launch.
    pub(crate) call: Option<Call>,
}

/// What launched works, by the numbers that they have in common.
#[derive(Debug)]
pub(crate) struct Launches<'a> {
    works: &'a mut [Work],
    /// Low halves of the numbers of works and their places, in order.
    index: Vec<(u32, u32)>,
    /// Where to look next: the numbers of a thread's calls rise.
    next: usize,
    list: Vec<Launch>,
    /// Launches of works that do not communicate.
    alike: FxHashMap<(u32, bool), u32>,
}

impl<'a> Launches<'a> {
    /// Nothing is launched yet of these works.
    pub(crate) fn new(works: &'a mut [Work]) -> Self {
        let mut index = Vec::with_capacity(works.len());
        index.extend((0..).zip(&*works).filter_map(|(place, work)| Some((work.correlation?.get() as u32, place))));
        index.sort_unstable_by_key(|(number, place)| u64::from(*number) << 32 | u64::from(*place));
        Self { works, index, next: 0, list: Vec::new(), alike: FxHashMap::default() }
    }

    /// What the launches of works stand for.
    pub(crate) fn into_list(self) -> Vec<Launch> {
        self.list
    }

    fn add(&mut self, number: u64, launch: Launch) {
        let low = number as u32;
        let Self { works, index, next, list, alike } = self;
        let is_behind = index[..*next].last().is_none_or(|(before, _)| *before < low);
        if !is_behind || index.get(*next).is_some_and(|(other, _)| *other < low) {
            *next = index.partition_point(|(other, _)| *other < low);
        }
        while let Some((_, place)) = index.get(*next).filter(|(other, _)| *other == low) {
            *next += 1;
            let work = &mut works[*place as usize];
            let known = list.get(work.launch as usize);
            let is_better = known.is_none_or(|known| known.is_driver && !launch.is_driver);
            if !is_better || work.correlation.is_none_or(|own| own.get() != number) {
                continue;
            }
            let mut add = |launch| {
                list.push(launch);
                list.len() as u32 - 1
            };
            work.launch = if work.operation.is_some() {
                add(launch)
            } else {
                let Launch { context, is_driver, .. } = launch;
                *alike.entry((context, is_driver)).or_insert_with(|| add(Launch { call: None, ..launch }))
            };
        }
    }
}

/// A call of NCCL.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Issue {
    pub(crate) begin: i64,
    pub(crate) name: u32,
    /// What it says, in the operations of its process.
    pub(crate) operation: u64,
}

/// What is around a place in a thread.
#[derive(Debug, Clone, Copy)]
struct Path {
    /// Its call path.
    context: u32,
    /// The innermost range of NCCL, in `ranges`.
    nccl: u32,
    /// Whether a call of MPI or CUDA is around it.
    is_in_library: bool,
}

impl Default for Path {
    fn default() -> Self {
        Self { context: NONE, nccl: NONE, is_in_library: false }
    }
}

/// The threads of a process while they are built.
pub(crate) struct Hosts<'a> {
    pub(crate) names: &'a Names,
    stacks: &'a Stacks,
    pub(crate) regions: Regions,
    pub(crate) contexts: Contexts,
    pub(crate) launches: Launches<'a>,
    /// Names and operations of the ranges of NCCL.
    pub(crate) ranges: Vec<(u32, u64)>,
    /// Calls of NCCL of each thread, in order.
    pub(crate) issues: Vec<Vec<Issue>>,
    /// Spans that crossed others, and ranges that are of no place in a thread.
    pub(crate) crossings: u64,
    pub(crate) loose: u64,
    /// The region of each name, and the step that the name tells.
    known: FxHashMap<(Kind, u32), (u32, Option<i64>)>,
    /// The number of the first call that takes or gives back a lock: those of MPI come before.
    first_lock: u32,
}

/// A step that the name of a range tells: what comes before its number.
fn step(name: &str) -> Option<(&str, i64)> {
    let front = name.trim_end_matches(|character: char| character.is_ascii_digit());
    let number = name[front.len()..].parse().ok()?;
    let front = front.trim_end_matches([' ', '_', '#', ':', '-']);
    let last = front.rsplit(|character: char| !character.is_alphanumeric()).next().unwrap_or_default();
    let is_step = ["step", "iteration", "iter"].iter().any(|word| last.to_ascii_lowercase().ends_with(word));
    is_step.then_some((front, number))
}

/// Whether what happens inside is a matter of the library that is called.
const fn is_library(kind: Kind) -> bool {
    match kind {
        Kind::Mpi | Kind::OpenAcc => true,
        Kind::OpenMp(construct) => construct.waits(),
        _ => false,
    }
}

/// The name of a call without the version of its interface: `cudaLaunchKernel_v7000` is `cudaLaunchKernel`.
fn without_version(name: &str) -> &str {
    let name = match name.rsplit_once("_v") {
        Some((call, version)) if !version.is_empty() && version.bytes().all(|byte| byte.is_ascii_digit()) => call,
        _ => name,
    };
    name.strip_suffix("_ptsz").or_else(|| name.strip_suffix("_ptds")).unwrap_or(name)
}

/// Leaves out loose ranges that are neither within others nor apart from them; how many these are.
fn leave_out_loose(spans: &mut Vec<Span>) -> u64 {
    if !spans.iter().any(|span| span.kind == Kind::LooseRange) {
        return 0;
    }
    let mut is_kept = vec![true; spans.len()];
    let mut open: Vec<usize> = Vec::new();
    for (at, span) in spans.iter().enumerate() {
        open.retain(|other| is_kept[*other] && spans[*other].end > span.begin);
        for other in &open {
            if spans[*other].end < span.end {
                match (spans[*other].kind, span.kind) {
                    (_, Kind::LooseRange) => is_kept[at] = false,
                    (Kind::LooseRange, _) => is_kept[*other] = false,
                    _ => {}
                }
            }
        }
        if is_kept[at] {
            open.push(at);
        }
    }
    let mut kept = is_kept.iter();
    spans.retain(|_| kept.next().is_some_and(|kept| *kept));
    is_kept.iter().filter(|kept| !**kept).count() as u64
}

/// When a thread had no core: from where it loses it to where it gets one.
fn off(mut switches: Vec<(i64, bool)>) -> Vec<(i64, i64)> {
    switches.sort_unstable();
    let mut since = None;
    let mut off = Vec::new();
    for (time, gets) in switches {
        match (since, gets) {
            (Some(begin), true) => {
                off.push((begin, time));
                since = None;
            }
            (None, false) => since = Some(time),
            _ => {}
        }
    }
    off
}

/// What the profiler does is one region: its kinds have names of their own in each version.
const OVERHEAD: &str = "profiler overhead";

/// Whether each of spans in order of their begins is within those that are open, and nothing is within what the profiler does.
fn are_nested(spans: &[Span]) -> bool {
    let mut open: Vec<&Span> = Vec::new();
    spans.iter().all(|span| {
        while open.pop_if(|around| around.end <= span.begin).is_some() {}
        let is_within = open.last().is_none_or(|around| span.end <= around.end && around.kind != Kind::Overhead);
        open.push(span);
        is_within
    })
}

impl<'a> Hosts<'a> {
    /// No threads yet; `first_lock` follows the calls of MPI.
    pub(crate) fn new((names, stacks): (&'a Names, &'a Stacks), launches: Launches<'a>, first_lock: u32) -> Self {
        Self {
            names,
            stacks,
            regions: Regions::default(),
            contexts: Contexts::default(),
            launches,
            ranges: Vec::new(),
            issues: Vec::new(),
            crossings: 0,
            loose: 0,
            known: FxHashMap::default(),
            first_lock,
        }
    }

    /// Builds a thread, whose spans are in order.
    pub(crate) fn thread(&mut self, rows: ThreadRows) -> Thread {
        let ThreadRows { id, name, mut spans, samples, switches, .. } = rows;
        let number = self.issues.len() as u32;
        self.loose += leave_out_loose(&mut spans);
        let issue = |span: &Span| Issue { begin: span.begin, name: span.name, operation: span.detail };
        self.issues.push(spans.iter().filter(|span| span.kind == Kind::Nccl).map(issue).collect());
        let mut open = Vec::new();
        let visits: Vec<Visit> = if are_nested(&spans) {
            // There are as many as spans: they take the place of these.
            const { assert!(size_of::<Span>() == size_of::<Visit>()) };
            spans.into_iter().filter_map(|span| self.visit(number, &mut open, &span, false)).collect()
        } else {
            let (placed, crossings) = nest(&spans);
            self.crossings += crossings;
            let visit = |part: &Placed| {
                let Placed { begin, end, is_rest, span, .. } = *part;
                self.visit(number, &mut open, &Span { begin, end, ..spans[span as usize] }, is_rest)
            };
            placed.iter().filter_map(visit).collect()
        };
        let has_steps = visits.iter().any(|visit| matches!(visit.detail, Detail::Step(_)));
        let name = if name.is_empty() { format!("thread {id}") } else { name };
        let samples = self.samples(&visits, samples);
        Thread { id, name, visits, has_steps, samples, off: off(switches) }
    }

    /// The call paths of samples of a thread: what they saw is below what its visits say, but inside of calls of libraries.
    fn samples(&mut self, visits: &[Visit], mut samples: Vec<(i64, i64)>) -> Vec<Sample> {
        samples.sort_unstable();
        let mut visits = visits.iter().peekable();
        let mut open: Vec<(i64, u32, bool)> = Vec::new();
        let mut known: FxHashMap<(u32, u32), u32> = FxHashMap::default();
        let mut functions: Vec<u32> = Vec::new();
        let mut all = Vec::with_capacity(samples.len());
        for (time, sample) in samples {
            while let Some(visit) = visits.next_if(|visit| visit.begin <= time) {
                while open.pop_if(|(end, ..)| *end <= visit.begin).is_some() {}
                let (_, around, is_inside) = open.last().copied().unwrap_or((0, NONE, false));
                let is_call =
                    !matches!(self.regions.list[visit.region as usize].paradigm, Paradigm::USER | Paradigm::OPENMP);
                open.push((visit.end, self.contexts.node(around, visit.region), is_inside || is_call));
            }
            while open.pop_if(|(end, ..)| *end <= time).is_some() {}
            let (_, around, is_inside) = open.last().copied().unwrap_or((0, NONE, false));
            let Some(mut path) = self.stacks.of(sample) else { continue };
            if is_inside {
                path = NONE;
            }
            let context = *known.entry((around, path)).or_insert_with(|| {
                functions.clear();
                while let Some((outer, function)) = self.stacks.node(path) {
                    functions.push(function);
                    path = outer;
                }
                let mut function = |around: u32, name: &str| {
                    let region = Region::new(name.to_owned(), Paradigm::COMPILER, RegionRole::FUNCTION);
                    self.contexts.node(around, self.regions.add(region))
                };
                if around == NONE && functions.is_empty() {
                    return function(around, "main");
                }
                functions.iter().rev().fold(around, |around, name| function(around, self.names.get(*name)))
            });
            all.push(Sample { time, context });
        }
        all
    }

    /// The visit of a span of a thread, if it is on call paths; `open` has ends and paths of the spans around it.
    fn visit(&mut self, thread: u32, open: &mut Vec<(i64, Path)>, span: &Span, is_rest: bool) -> Option<Visit> {
        let Span { begin, end, .. } = *span;
        while open.pop_if(|(end, _)| *end <= begin).is_some() {}
        let path = open.last().map(|(_, path)| *path).unwrap_or_default();
        let Path { context, nccl, is_in_library } = path;
        if span.kind == Kind::Nccl {
            open.push((end, Path { nccl: self.ranges.len() as u32, ..path }));
            self.ranges.push((span.name, span.detail));
            return None;
        }
        // What a library does of the system, or of the network, is its way to wait.
        if matches!(span.kind, Kind::System | Kind::Ucx) && is_in_library {
            return None;
        }
        let (region, step) = self.region(span);
        let mut detail = if is_rest { Detail::None } else { self.detail(span) };
        if matches!(span.kind, Kind::Runtime | Kind::Driver) {
            if span.detail != NO_DETAIL && !is_rest {
                detail = Detail::Correlation(Wide::new(span.detail));
                let is_driver = span.kind == Kind::Driver;
                let call = Some(Call { begin, thread, nccl });
                self.launches.add(span.detail, Launch { context, is_driver, call });
            }
            open.push((end, Path { is_in_library: true, ..path }));
        } else {
            if let (Some(number), false) = (step, is_rest) {
                detail = Detail::Step(Wide::new(number.cast_unsigned()));
            }
            let is_in_library = is_in_library || is_library(span.kind);
            open.push((end, Path { context: self.contexts.node(context, region), is_in_library, ..path }));
        }
        Some(Visit { begin, end, region, detail })
    }

    /// What is recorded with a span, unless it is a call of CUDA.
    fn detail(&self, span: &Span) -> Detail {
        let Ok(number) = u32::try_from(span.detail) else { return Detail::None };
        match span.kind {
            Kind::Mpi => Detail::Call(number),
            Kind::OpenMp(Construct::Parallel | Construct::Part) => Detail::Team(number),
            Kind::OpenMp(Construct::Task) => Detail::Task(number),
            Kind::OpenMp(Construct::TaskCreate) => Detail::Creation(number),
            Kind::OpenMp(_) => Detail::Call(self.first_lock + number),
            _ => Detail::None,
        }
    }

    fn region(&mut self, span: &Span) -> (u32, Option<i64>) {
        if let Some(known) = self.known.get(&(span.kind, span.name)) {
            return *known;
        }
        let recorded = self.names.get(span.name);
        let name = if recorded.is_empty() { "unknown" } else { recorded };
        let mut number = None;
        let region = match span.kind {
            Kind::Range | Kind::LooseRange | Kind::Nccl => match step(name) {
                Some((front, of_step)) => {
                    number = Some(of_step);
                    let flags = RegionFlag(RegionFlag::DYNAMIC.0 | RegionFlag::PHASE.0);
                    Region { flags, ..Region::user(front.to_owned()) }
                }
                None => Region::user(name.to_owned()),
            },
            Kind::OpenMp(construct) => construct.region(recorded),
            Kind::OpenAcc => Region::new(name.to_owned(), Paradigm::OPENACC, RegionRole::FUNCTION),
            Kind::System => system::region(name),
            Kind::Ucx => Region::user(name.to_owned()),
            Kind::Overhead => Region::new(OVERHEAD.to_owned(), Paradigm::MEASUREMENT_SYSTEM, RegionRole::ARTIFICIAL),
            Kind::Mpi => Region::new(name.to_owned(), Paradigm::MPI, role(name)),
            Kind::Runtime | Kind::Driver => {
                Region::new(without_version(name).to_owned(), Paradigm::CUDA, RegionRole::FUNCTION)
            }
        };
        let known = (self.regions.add(region), number);
        self.known.insert((span.kind, span.name), known);
        known
    }
}

#[cfg(test)]
mod tests {
    use std::cmp::Reverse;
    use std::num::NonZeroU64;

    use proptest::prelude::*;
    use whywait_devices::Kind as Operation;

    use super::*;
    use crate::rows::Task;

    #[test]
    fn names_tell_steps_and_calls() {
        assert_eq!(step("step 12"), Some(("step", 12)));
        assert_eq!(step("train/Iteration_3"), Some(("train/Iteration", 3)));
        assert_eq!(step("layer 3"), None);
        assert_eq!(step("step"), None);
        assert_eq!(step("step 99999999999999999999"), None);
        assert_eq!(without_version("cudaLaunchKernel_v7000"), "cudaLaunchKernel");
        assert_eq!(without_version("cudaMemcpyAsync_ptsz_v7000"), "cudaMemcpyAsync");
        assert_eq!(without_version("cuMemFree_v2"), "cuMemFree");
        assert_eq!(without_version("my_view"), "my_view");
    }

    fn span((begin, length, is_loose): (i64, i64, bool)) -> Span {
        let kind = if is_loose { Kind::LooseRange } else { Kind::Range };
        Span { begin, end: begin + length, detail: NO_DETAIL, name: 0, kind }
    }

    #[test]
    fn loose_ranges_that_cross_are_left_out() {
        let mut spans: Vec<Span> =
            [(0, 10, false), (2, 3, true), (4, 4, false), (5, 20, true), (30, 5, true)].map(span).to_vec();
        assert_eq!(leave_out_loose(&mut spans), 2);
        assert_eq!(spans.iter().map(|span| span.begin).collect::<Vec<_>>(), [0, 4, 30]);
    }

    /// Numbers that have halves in common.
    fn number() -> impl Strategy<Value = u64> {
        (0_u64..3, 0_u64..12).prop_map(|(high, low)| high << 32 | low)
    }

    proptest! {
        #[test]
        fn each_work_has_the_first_call_with_its_number_and_that_of_the_runtime_before_the_driver(
            works in prop::collection::vec((number(), any::<bool>()), 0..30),
            calls in prop::collection::vec((number(), any::<bool>(), 0_u32..3), 0..30),
        ) {
            let work = |(number, communicates): &(u64, bool)| Work {
                begin: 0,
                end: 0,
                correlation: NonZeroU64::new(*number),
                stream: 0,
                name: 0,
                launch: NONE,
                task: Task::Kernel,
                operation: communicates.then_some(Operation::Barrier),
            };
            let mut list: Vec<Work> = works.iter().map(work).collect();
            let mut launches = Launches::new(&mut list);
            for (begin, (number, is_driver, context)) in (0..).zip(&calls) {
                let call = Some(Call { begin, thread: 7, nccl: NONE });
                launches.add(*number, Launch { context: *context, is_driver: *is_driver, call });
            }
            let known = launches.into_list();
            for (work, (number, communicates)) in list.iter().zip(&works) {
                let own = || (0..).zip(&calls).filter(|(_, (call, ..))| call == number && *number != 0);
                let right = own().find(|(_, (_, is_driver, _))| !is_driver).or_else(|| own().next());
                let found = known.get(work.launch as usize);
                prop_assert_eq!(found.map(|launch| launch.context), right.map(|(_, (.., context))| *context));
                let begin = found.and_then(|launch| launch.call).map(|call| call.begin);
                prop_assert_eq!(begin, right.map(|(begin, _)| begin).filter(|_| *communicates));
            }
        }

        #[test]
        fn what_is_left_of_loose_ranges_crosses_nothing(
            mut all in prop::collection::vec((0_i64..50, 1_i64..30, any::<bool>()), 0..30)
        ) {
            all.sort_by_key(|(begin, length, _)| (*begin, Reverse(*length)));
            let mut spans: Vec<Span> = all.into_iter().map(span).collect();
            leave_out_loose(&mut spans);
            for loose in spans.iter().filter(|span| span.kind == Kind::LooseRange) {
                for other in &spans {
                    let crosses = |a: &Span, b: &Span| a.begin < b.begin && b.begin < a.end && a.end < b.end;
                    prop_assert!(!crosses(loose, other) && !crosses(other, loose));
                }
            }
        }
    }
}
