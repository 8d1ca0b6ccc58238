//! Which calls are of one operation: the n-th of each member of a communicator, blocking or not.

use std::cmp::Reverse;
use std::collections::BTreeMap;

use whywait_devices::GroupFacts;
use whywait_otf2::Event;
use whywait_otf2::enums::{CollectiveOp, CollectiveRoot, RegionRole};

use super::align::{Clocks, Lists, Need, Pair, Span};
use super::communicators::{Communicator, Communicators, Meaning};
use super::messages::complete_request;
use super::names::{operation, synchronizes_window};
use super::{Counts, Known, Moment, Program, Records};
use crate::rows::{ABSENT, MpiTable};

/// One member's part.
#[derive(Debug, Clone, Copy)]
struct Part {
    call: u32,
    request: Option<u32>,
    done: Option<u32>,
    begin: i64,
    operation: CollectiveOp,
    role: RegionRole,
    root: i64,
    sent: i64,
    received: i64,
}

/// Finds the operations of processes, and adds their records.
pub(super) fn find(
    known: &[Known<'_>],
    communicators: &Communicators,
    records: &mut [Records],
    (counts, groups): (&mut Counts, &mut [GroupFacts]),
) {
    // By communicator: the parts of each member, in order.
    let mut all: BTreeMap<u32, BTreeMap<u32, Vec<Part>>> = BTreeMap::new();
    for (place, process) in (0..).zip(known) {
        for (comm, part) in parts(place, process, communicators, counts) {
            all.entry(comm).or_default().entry(place).or_default().push(part);
        }
    }
    for (number, lists) in &all {
        let comm = &communicators.list[*number as usize];
        let members: Vec<u32> = comm.known().collect();
        let group = &mut groups[*number as usize];
        let total: usize = lists.values().map(Vec::len).sum();
        let instances = instances(known, comm, lists);
        group.unmatched = (total - instances.len() * members.len()) as u64;
        counts.collective_unmatched += group.unmatched;
        for instance in instances {
            let operation = instance[0].operation;
            let is_rooted = instance[0].is_rooted();
            let root = instance.iter().map(|part| part.root).find(|root| *root != ABSENT);
            let root = root.and_then(|root| comm.place(root));
            if is_rooted && root.is_none() {
                counts.root_unknown += 1;
                group.undecided += 1;
                continue;
            }
            group.instances += 1;
            let last = instance.iter().map(|part| part.begin).max().unwrap_or(0);
            for (place, part) in members.iter().zip(&instance) {
                let is_root = root == Some(*place);
                let root = root.filter(|_| is_rooted).and_then(|root| comm.among(root));
                let (size_sent, size_received) = part.sizes(is_root);
                let operation = Described {
                    collective_op: operation,
                    communicator: *number,
                    root: root.unwrap_or(CollectiveRoot::NONE.0),
                    size_sent,
                    size_received,
                };
                let known = &known[*place as usize];
                operation.record(known, part, last, &mut records[*place as usize]);
                let end = part.done.map_or(last, |done| known.side.program.calls[done as usize].end);
                group.time_after_last = group.time_after_last.saturating_add((end - last).max(0));
            }
        }
    }
    for (group, comm) in groups.iter_mut().zip(&communicators.list) {
        group.is_partial = comm.is_partial() && group.instances > 0;
    }
}

/// Finds the calls of one-sided communication that synchronize all processes. Of which window they are is not recorded: the n-th calls
/// of one name are one operation if all processes call it equally often.
pub(super) fn windows(known: &[Known<'_>], world_size: usize, records: &mut [Records], counts: &mut Counts) {
    if known.len() < world_size.max(2) {
        return;
    }
    let mut all: BTreeMap<&str, Vec<Vec<u32>>> = BTreeMap::new();
    for (place, Known { side, order, .. }) in known.iter().enumerate() {
        for call in order.iter().copied().filter(|call| side.program.rows(*call)[0].table == MpiTable::Other) {
            let name = side.names.get(side.program.calls[call as usize].name);
            if synchronizes_window(name) {
                all.entry(name).or_insert_with(|| vec![Vec::new(); known.len()])[place].push(call);
            }
        }
    }
    for calls in all.values().filter(|calls| calls.iter().all(|own| own.len() == calls[0].len())) {
        counts.window_inferred += calls[0].len() as u64;
        for (own, records) in calls.iter().zip(&mut *records) {
            for call in own {
                records.push((*call, Moment::Begin, 0, Event::MpiCollectiveBegin {}));
                let event = Event::MpiCollectiveEnd {
                    collective_op: CollectiveOp::CREATE_HANDLE,
                    communicator: 0,
                    root: CollectiveRoot::NONE.0,
                    size_sent: 0,
                    size_received: 0,
                };
                records.push((*call, Moment::End, 0, event));
            }
        }
    }
}

/// The operations that a process takes part in, with their communicators, in order.
fn parts(place: u32, process: &Known<'_>, communicators: &Communicators, counts: &mut Counts) -> Vec<(u32, Part)> {
    let Known { side, requests, by_row, order, .. } = process;
    let mut parts = Vec::new();
    for call in order.iter().copied() {
        let own = &side.program.calls[call as usize];
        let row = &side.program.rows(call)[0];
        let (MpiTable::Collective, Some((operation, role))) = (row.table, operation(side.names.get(own.name))) else {
            continue;
        };
        let comm = match communicators.of(place, row, own.begin) {
            Meaning::Comm(comm) if communicators.list[comm as usize].among(place).is_some() => comm,
            Meaning::Alone => continue,
            _ => {
                counts.communicator_unknown += 1;
                continue;
            }
        };
        let request = by_row.get(&(call, 0)).and_then(|own| own.first()).copied();
        let done = match request {
            Some(request) => requests[request as usize].completed,
            None => Some(call),
        };
        let received = if row.received == ABSENT { row.size } else { row.received };
        let (begin, root, sent) = (own.begin, row.peer, row.size);
        parts.push((comm, Part { call, request, done, begin, operation, role, root, sent, received }));
    }
    parts
}

/// The operations in which all known members take part: of each, the parts in the order of members.
fn instances(known: &[Known<'_>], comm: &Communicator, lists: &BTreeMap<u32, Vec<Part>>) -> Vec<Vec<Part>> {
    let empty = Vec::new();
    let members: Vec<u32> = comm.known().collect();
    let list = |place: &u32| lists.get(place).unwrap_or(&empty);
    let Some(reference) = most_needed(comm, lists).or_else(|| members.first().copied()) else { return Vec::new() };
    let mut shifts = Vec::with_capacity(members.len());
    for place in &members {
        let shift = if *place == reference { Some(0) } else { shift_of(known, comm, lists, (reference, *place)) };
        let Some(shift) = shift else { return Vec::new() };
        shifts.push(shift);
    }
    let instance = |number: usize| -> Option<Vec<Part>> {
        let part =
            |(place, shift): (&u32, &i64)| list(place).get(usize::try_from(number as i64 + shift).ok()?).copied();
        let parts: Vec<Part> = members.iter().zip(&shifts).map(part).collect::<Option<_>>()?;
        parts.iter().all(|part| part.operation == parts[0].operation).then_some(parts)
    };
    let all: Vec<Vec<Part>> = (0..list(&reference).len()).filter_map(instance).collect();
    let count = all.len();
    let possible: Vec<Vec<Part>> = all.into_iter().filter(|parts| is_possible(known, comm, &members, parts)).collect();
    // Where many are impossible, the others agree by chance.
    if (count - possible.len()) * 100 > count { Vec::new() } else { possible }
}

/// The member that is root most often: in rooted operations, times relate members to their root only.
fn most_needed(comm: &Communicator, lists: &BTreeMap<u32, Vec<Part>>) -> Option<u32> {
    let mut roots: BTreeMap<u32, usize> = BTreeMap::new();
    for part in lists.values().flatten() {
        if let Some(root) = part.root(comm) {
            *roots.entry(root).or_default() += 1;
        }
    }
    roots.into_iter().max_by_key(|(place, count)| (*count, Reverse(*place))).map(|(place, _)| place)
}

/// Whether no member of an operation had left it before one that it needs came, as far as they have a clock in common.
fn is_possible(known: &[Known<'_>], comm: &Communicator, members: &[u32], parts: &[Part]) -> bool {
    let root = parts.iter().find_map(|part| part.root(comm));
    // By clock: the last begin of those that give, and the first end of those that take.
    let mut ends: BTreeMap<u32, (i64, i64)> = BTreeMap::new();
    for (place, part) in members.iter().zip(parts) {
        let (gives, takes) = part.flow(root == Some(*place));
        let side = known[*place as usize].side;
        let (last, first) = ends.entry(side.clock).or_insert((i64::MIN, i64::MAX));
        if gives {
            *last = (*last).max(part.begin);
        }
        if let Some(end) = part.end(side.program).filter(|_| takes) {
            *first = (*first).min(end);
        }
    }
    ends.values().all(|(last, first)| last <= first)
}

/// The number to add to the place of an operation in the list of the first member for that in the second: none, unless reports
/// begin in the midst of the run, where roots, sizes and times tell. Nothing if they do not agree.
fn shift_of(
    known: &[Known<'_>],
    comm: &Communicator,
    lists: &BTreeMap<u32, Vec<Part>>,
    (first, second): (u32, u32),
) -> Option<i64> {
    let list = |place: u32| lists.get(&place).map_or(&[] as &[Part], Vec::as_slice);
    let side = |place: u32| known[place as usize].side;
    let (own, others) = (&known[first as usize].landmarks, &known[second as usize].landmarks);
    let is_whole = known[first as usize].is_whole() && known[second as usize].is_whole();
    let pair = |a: usize, b: usize| {
        let (a, b) = (&list(first)[a], &list(second)[b]);
        let root = a.root(comm).or_else(|| b.root(comm));
        let root_differs = a.root != ABSENT && b.root != ABSENT && a.root != b.root;
        let ends = (a.end(side(first).program), b.end(side(second).program));
        let (flow_a, flow_b) = (a.flow(root == Some(first)), b.flow(root == Some(second)));
        let need = |(_, takes): (bool, bool), (gives, _): (bool, bool), end: Option<i64>| {
            if takes && gives && end.is_some() { Need::Must } else { Need::No }
        };
        let span = |part: &Part, end: Option<i64>| Span {
            begin: part.begin,
            end: end.unwrap_or(part.begin),
            is_alone: part.request.is_none(),
        };
        Pair {
            first: span(a, ends.0),
            second: span(b, ends.1),
            needs: (need(flow_a, flow_b, ends.0), need(flow_b, flow_a, ends.1)),
            is_alike: a.operation == b.operation && (is_whole || !(root_differs || a.size_differs(b))),
            has_same_size: true,
        }
    };
    let counts = (list(first).len(), list(second).len());
    let clocks = Clocks::of(side(first), side(second));
    let lists = Lists { counts, clocks, settled: i64::MAX, pair };
    if !is_whole {
        return lists.shift();
    }
    // All begin and end MPI at about one time.
    let apart = own.iter().zip(others).filter_map(|(end, other)| Some(end.as_ref()?.saturating_sub(*other.as_ref()?)));
    let offsets: Vec<i64> = std::iter::once(0).chain(apart).collect();
    lists.agree(&offsets).then_some(0)
}

impl Part {
    /// The place of its root, if it has one that is known.
    fn root(&self, comm: &Communicator) -> Option<u32> {
        if self.is_rooted() && self.root != ABSENT { comm.place(self.root) } else { None }
    }

    const fn is_rooted(&self) -> bool {
        matches!(self.role, RegionRole::COLL_ONE2ALL | RegionRole::COLL_ALL2ONE)
    }

    /// When the call that completes it is over, if that is traced.
    fn end(&self, program: &Program) -> Option<i64> {
        self.done.map(|done| program.calls[done as usize].end)
    }

    /// Whether all that get something get some of this member, and whether it gets some of all that give.
    fn flow(&self, is_root: bool) -> (bool, bool) {
        use CollectiveOp as Op;
        if self.role == RegionRole::BARRIER {
            return (true, true);
        }
        // Which ranks are before which, and how much goes from one to which other, is not compared.
        if matches!(self.operation, Op::SCAN | Op::EXSCAN | Op::ALLTOALLV | Op::ALLTOALLW) {
            return (false, false);
        }
        // Where sizes differ by member, one that is not known may be none.
        let is_varied = matches!(self.operation, Op::SCATTERV | Op::GATHERV | Op::ALLGATHERV | Op::REDUCE_SCATTER);
        let is_some = |bytes: i64, size: u64| size > 0 && (bytes != ABSENT || is_root || !is_varied);
        let (sent, received) = self.sizes(is_root);
        (is_some(self.sent, sent), is_some(self.received, received))
    }

    /// Whether members of one operation, who all give or get the same, say that it is of different sizes.
    fn size_differs(&self, other: &Self) -> bool {
        let is_same = matches!(self.operation, CollectiveOp::BCAST | CollectiveOp::REDUCE | CollectiveOp::ALLREDUCE);
        let size = |part: &Self| part.sent.max(part.received);
        is_same && size(self) > 0 && size(other) > 0 && size(self) != size(other)
    }

    /// Bytes that it sends and receives: none where a member of such an operation does neither. An unknown size is some.
    fn sizes(&self, is_root: bool) -> (u64, u64) {
        let (sends, receives) = match self.role {
            RegionRole::BARRIER => (false, false),
            RegionRole::COLL_ONE2ALL => (is_root, !is_root),
            RegionRole::COLL_ALL2ONE => (!is_root, is_root),
            _ => (true, true),
        };
        let size = |does: bool, bytes: i64| if does { u64::try_from(bytes).unwrap_or(1) } else { 0 };
        (size(sends, self.sent), size(receives, self.received))
    }
}

/// What the record of a member's part says.
struct Described {
    collective_op: CollectiveOp,
    communicator: u32,
    root: u32,
    size_sent: u64,
    size_received: u64,
}

impl Described {
    fn record(&self, known: &Known<'_>, part: &Part, last: i64, records: &mut Records) {
        let Self { collective_op, communicator, root, size_sent, size_received } = *self;
        let Some(request) = part.request else {
            records.push((part.call, Moment::Begin, 0, Event::MpiCollectiveBegin {}));
            let event = Event::MpiCollectiveEnd { collective_op, communicator, root, size_sent, size_received };
            records.push((part.call, Moment::End, 0, event));
            return;
        };
        let request_id = request.into();
        records.push((part.call, Moment::Begin, 0, Event::NonBlockingCollectiveRequest { request_id }));
        let event = Event::NonBlockingCollectiveComplete {
            collective_op,
            communicator,
            root,
            size_sent,
            size_received,
            request_id,
        };
        complete_request(known, (part.call, part.done), (request, last), event, records);
    }
}
