//! Operations of libraries for CPUs (Gloo, MPI, UCC): issued by a call, carried out by a worker thread, awaited in a gap.
//!
//! ```text
//!  thread  [ c10d::allreduce_ ]  [ work ] . . . gap . . . . [ next ]
//!  worker     [ gloo:all_reduce                        ]
//!  read as [ c10d::allreduce_ ]  [ work ][ wait (allreduce) ][ next ]
//! ```
//!
//! Nothing records the wait. If the thread does nothing that it did not do when it issued the operation, where this ends,
//! it waited for it.

use std::hash::{Hash, Hasher};

use rustc_hash::{FxHashMap, FxHasher};
use whywait_devices::{Detail, Flow, HostPart, Kind, Member, NONE, Part, Placed, Visit};

use crate::columns::{Arguments, Category, Span, ThreadId};
use crate::elements::element_size;
use crate::info::Info;
use crate::json::Value;
use crate::names::{Meaning, Names};
use crate::regions::Regions;
use crate::steps::Steps;

/// The operations of worker threads, and those of sends and receives that lie across the calls of their threads.
#[derive(Debug, Default)]
pub(crate) struct Operations {
    /// By thread and place of the issuing span in order of begin: the operation.
    issued: FxHashMap<(u32, u32), Span>,
}

/// Takes the operations out of the spans of threads, and finds the call that issued each.
pub(crate) fn take_out(threads: &mut [Vec<Span>], ids: &[ThreadId], names: &Names) -> Operations {
    let is_operation = |span: &Span| names.meaning(span.name) == Meaning::HostOperation;
    let kind = |span: &Span| names.get(span.name).split_once(':').and_then(|(_, name)| Kind::of_operation(name));
    let mut queued: Vec<Span> = Vec::new();
    let mut inline: Vec<Vec<Span>> = Vec::with_capacity(threads.len());
    for (spans, id) in threads.iter_mut().zip(ids) {
        let is_named = id.name != NONE && names.get(id.name).contains("pt_gloo_runloop");
        let issues = || spans.iter().any(|span| matches!(names.meaning(span.name), Meaning::Issue | Meaning::Step(_)));
        let works = || spans.iter().any(|span| is_operation(span) && !kind(span).is_some_and(Kind::is_message));
        if is_named || works() && !issues() {
            queued.extend(std::mem::take(spans).into_iter().filter(is_operation));
            inline.push(Vec::new());
        } else {
            inline.push(spans.iter().copied().filter(is_operation).collect());
            spans.retain(|span| !is_operation(span));
        }
    }
    queued.sort_by_key(|span| (span.begin, span.end));
    let mut issues: Vec<(i64, u32, u32)> = Vec::new();
    for (thread, spans) in (0..).zip(threads.iter()) {
        let own = (0..).zip(spans).filter(|(_, span)| names.meaning(span.name) == Meaning::Issue);
        issues.extend(own.map(|(place, span)| (span.begin, thread, place)));
    }
    issues.sort_unstable();
    let mut operations = Operations::default();
    let mut is_taken = vec![false; queued.len()];
    let mut first = 0;
    for (begin, thread, place) in issues {
        let span = &threads[thread as usize][place as usize];
        let Some(own) = issue_kind(names, span) else { continue };
        if own.is_message() {
            let within =
                |operation: &&Span| (span.begin..=span.end).contains(&operation.begin) && kind(operation) == Some(own);
            if let Some(operation) = inline[thread as usize].iter().find(within) {
                operations.issued.insert((thread, place), *operation);
            }
            continue;
        }
        while first < queued.len() && (is_taken[first] || queued[first].begin < begin) {
            first += 1;
        }
        let fits = |at: &usize| !is_taken[*at] && queued[*at].begin >= begin && carries_out(kind(&queued[*at]), own);
        if let Some(at) = (first..queued.len()).find(fits) {
            is_taken[at] = true;
            operations.issued.insert((thread, place), queued[at]);
        }
    }
    operations
}

fn issue_kind(names: &Names, span: &Span) -> Option<Kind> {
    names.get(span.name).strip_prefix("c10d::").and_then(Kind::of_operation)
}

/// Whether an operation of one kind can be that of a call of another: a library may do one by the other.
fn carries_out(operation: Option<Kind>, call: Kind) -> bool {
    operation == Some(call) || (operation, call) == (Some(Kind::AllReduce), Kind::ReduceScatter)
}

/// What the operations of a thread become.
pub(crate) struct Builder<'a> {
    pub(crate) operations: &'a Operations,
    pub(crate) thread: u32,
    pub(crate) spans: &'a [Span],
    pub(crate) placed: &'a mut [Placed],
    pub(crate) of: &'a mut [u32],
    pub(crate) names: &'a Names,
    pub(crate) arguments: &'a [Arguments],
    pub(crate) info: &'a Info,
    pub(crate) steps: &'a Steps,
}

/// A wait in a gap.
struct Wait {
    begin: i64,
    end: i64,
    /// When the operation ended.
    operation_end: i64,
    region: u32,
    member: u32,
}

impl Builder<'_> {
    /// Adds the members of operations; the detail of each issuing place, and the waits.
    pub(crate) fn build(
        &mut self,
        regions: &mut Regions,
        members: &mut Vec<Member>,
    ) -> (FxHashMap<u32, Detail>, Vec<Visit>) {
        let mut details = FxHashMap::default();
        let mut waits = Vec::new();
        if self.operations.issued.is_empty() {
            return (details, Vec::new());
        }
        let issuing: Vec<(usize, Kind, Span)> = (0..self.placed.len()).filter_map(|at| self.issuing(at)).collect();
        // A send or receive blocks: its operation ends after the call. If the thread goes on before, it did not block.
        let mut blocks = vec![false; issuing.len()];
        for ((at, kind, operation), blocks) in issuing.iter().zip(&mut blocks) {
            let next = self.placed.get(at + 1).map_or(i64::MAX, |next| next.begin);
            let around = self.placed.get(self.placed[*at].parent as usize).map_or(i64::MAX, |around| around.end);
            *blocks = kind.is_message() && operation.end <= next.min(around);
            if *blocks {
                self.placed[*at].end = operation.end.max(self.placed[*at].end);
            }
        }
        let mut alike: FxHashMap<(u64, Option<i64>), u64> = FxHashMap::default();
        for ((at, kind, operation), blocks) in issuing.into_iter().zip(blocks) {
            let number = members.len() as u32;
            let span = &self.spans[self.placed[at].span as usize];
            self.of[at] = regions.issue(self.names.get(span.name), kind);
            let mut member = self.member(kind, span, &operation);
            if !blocks {
                let path = self.path(at, regions);
                let position = alike.entry((path, member.step)).or_default();
                member.host = Some(HostPart { signature: hash(&(path, *position)) });
                *position += 1;
                let (begin, end) = self.gap(at, operation.end);
                let region = regions.wait(kind);
                waits.push(Wait { begin, end, operation_end: operation.end, region, member: number });
            }
            details.insert(at as u32, Detail::Operation(number));
            members.push(member);
        }
        (details, visits(waits))
    }

    /// The kind and the operation of a call that issues one.
    fn issuing(&self, at: usize) -> Option<(usize, Kind, Span)> {
        let part = self.placed[at];
        let operation = self.operations.issued.get(&(self.thread, part.span))?;
        let kind = issue_kind(self.names, &self.spans[part.span as usize]).filter(|_| !part.is_rest)?;
        Some((at, kind, *operation))
    }

    fn member(&self, kind: Kind, span: &Span, operation: &Span) -> Member {
        let text = |name: u32| if name == NONE { None } else { Value::read(self.names.get(name).as_bytes()) };
        let arguments = |span: &Span| self.arguments.get(span.detail as usize);
        let inputs = arguments(span).and_then(|own| text(own.inputs)).map(|inputs| inputs.list()).unwrap_or_default();
        let mut numbers = inputs.iter().filter_map(Value::number).filter_map(|number| u32::try_from(number).ok());
        let group = match self.info.groups.as_slice() {
            [only] => Some(only.group()),
            _ => None,
        };
        let ranks = group.as_ref().and_then(|group| group.ranks.as_deref());
        let in_world = |rank: u32| ranks.map_or(Some(rank), |ranks| ranks.get(rank as usize).copied());
        let elements = arguments(operation).and_then(|own| text(own.shapes)).map_or(0, |shapes| elements(&shapes));
        let size = arguments(operation)
            .and_then(|own| text(own.types))
            .and_then(|types| Some(element_size(types.list().first()?.text()?)));
        let bytes = elements.saturating_mul(size.unwrap_or(0));
        let first = numbers.next().and_then(in_world);
        let is_rooted = matches!(kind.flow(), Flow::OneToAll | Flow::AllToOne);
        let part = Part { is_send: kind == Kind::Send, peer: first, sequence: None, bytes };
        Member {
            begin: span.begin,
            end: operation.end,
            order: span.begin,
            kind,
            step: self.steps.at(span.begin),
            root: first.filter(|_| is_rooted),
            group,
            sequence: None,
            comms: None,
            sent: bytes,
            received: bytes,
            elements,
            messages: if kind.is_message() { vec![part] } else { Vec::new() },
            host: None,
            is_ambiguous: false,
        }
    }

    /// A number for the call path of a place, the same on all ranks.
    fn path(&self, at: usize, regions: &Regions) -> u64 {
        let mut hasher = FxHasher::default();
        let mut place = at as u32;
        while let Some(part) = self.placed.get(place as usize) {
            if part.is_kept {
                regions.name(self.of[place as usize]).hash(&mut hasher);
            }
            place = part.parent;
        }
        hasher.finish()
    }

    /// The time in which the thread waits for an operation that it issued at a place and that ends at `end`; without
    /// length if it did not.
    fn gap(&self, issue: usize, end: i64) -> (i64, i64) {
        let issued = self.placed[issue].end;
        let end = end.max(issued);
        let mut around_issue = Vec::new();
        let mut place = self.placed[issue].parent;
        while let Some(part) = self.placed.get(place as usize) {
            around_issue.push(place);
            place = part.parent;
        }
        let last = self.placed.partition_point(|part| part.begin <= end) - 1;
        // From the last span that has begun outwards: what has ended, then what is open.
        let mut ended = None;
        let mut open = last as u32;
        while let Some(part) = self.placed.get(open as usize).filter(|part| part.end <= end) {
            ended = Some(part.end);
            open = part.parent;
        }
        let mut working = None;
        let mut waiting = None;
        let mut place = open;
        while let Some(part) = self.placed.get(place as usize) {
            if around_issue.contains(&place) {
                break;
            }
            let span = &self.spans[part.span as usize];
            let is_wait = span.category == Category::Frame && is_wait(self.names.get(span.name));
            let is_step = matches!(self.names.meaning(span.name), Meaning::Step(_) | Meaning::PartOfStep);
            if is_step {
                // A step is no work: an operation can end in the next one.
            } else if is_wait && working.is_none() {
                waiting = Some(part);
            } else if waiting.is_none() || span.category != Category::Frame {
                working = Some(part.end);
            }
            place = part.parent;
        }
        if let Some(until) = working {
            return (until, until);
        }
        let from = ended.unwrap_or(i64::MIN).max(waiting.map_or(i64::MIN, |frame| frame.begin)).max(issued);
        let next = self.placed.get(last + 1).map_or(i64::MAX, |next| next.begin);
        let around = self.placed.get(open as usize).map_or(i64::MAX, |open| open.end);
        let to = next.min(around);
        (from, if to == i64::MAX { end } else { to.max(from) })
    }
}

/// Whether a frame is the wait for an operation.
fn is_wait(name: &str) -> bool {
    name.starts_with("<built-in method wait of") || name.ends_with(": wait")
}

/// The number of elements of the first tensor in a list of shapes.
fn elements(shapes: &Value) -> u64 {
    let numbers: Vec<i64> = shapes.list().iter().filter_map(Value::number).collect();
    if !numbers.is_empty() {
        return numbers.iter().fold(1, |all, number| all.saturating_mul(u64::try_from(*number).unwrap_or(0)));
    }
    shapes.list().iter().map(elements).find(|elements| *elements > 0).unwrap_or(0)
}

/// Waits in one gap come one after another.
fn visits(mut waits: Vec<Wait>) -> Vec<Visit> {
    waits.sort_by_key(|wait| (wait.begin, wait.end, wait.operation_end));
    for at in 1..waits.len() {
        let (before, next) = waits.split_at_mut(at);
        let (before, next) = (&mut before[at - 1], &mut next[0]);
        if before.end > next.begin {
            let between = before.operation_end.clamp(before.begin, before.end);
            before.end = between.max(next.begin.min(before.end));
            next.begin = next.begin.max(before.end);
            next.end = next.end.max(next.begin);
        }
    }
    let visit = |wait: Wait| {
        let Wait { begin, end, region, member, .. } = wait;
        Visit { begin, end, region, detail: Detail::Wait(member) }
    };
    waits.into_iter().map(visit).collect()
}

/// Brings waits between the visits of a thread.
pub(crate) fn merge(visits: Vec<Visit>, waits: Vec<Visit>) -> Vec<Visit> {
    if waits.is_empty() {
        return visits;
    }
    let mut all: Vec<(u8, Visit)> = visits.into_iter().map(|visit| (1, visit)).collect();
    // A wait without length comes before what begins where it is; any other is within what begins there.
    all.extend(waits.into_iter().map(|wait| (if wait.begin == wait.end { 0 } else { 2 }, wait)));
    all.sort_by_key(|(rank, visit)| {
        let end = if *rank == 0 { i64::MIN } else { -visit.end };
        (visit.begin, end, *rank)
    });
    all.into_iter().map(|(_, visit)| visit).collect()
}

fn hash(value: &impl Hash) -> u64 {
    let mut hasher = FxHasher::default();
    value.hash(&mut hasher);
    hasher.finish()
}
