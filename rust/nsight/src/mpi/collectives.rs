//! Which calls are of one operation: the n-th of each member of a communicator, blocking or not.

use std::collections::BTreeMap;

use whywait_devices::{GroupFacts, Item, Kind, shift};
use whywait_otf2::Event;
use whywait_otf2::enums::{CollectiveOp, CollectiveRoot, RegionRole};

use super::communicators::{Communicators, Meaning};
use super::messages::complete_request;
use super::names::{operation, synchronizes_window};
use super::{Counts, Known, Moment, Records};
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
        let instances = instances(known, &members, lists);
        group.unmatched = (total - instances.len() * members.len()) as u64;
        counts.collective_unmatched += group.unmatched;
        for instance in instances {
            let (operation, role) = (instance[0].operation, instance[0].role);
            let is_rooted = matches!(role, RegionRole::COLL_ONE2ALL | RegionRole::COLL_ALL2ONE);
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
fn instances(known: &[Known<'_>], members: &[u32], lists: &BTreeMap<u32, Vec<Part>>) -> Vec<Vec<Part>> {
    let empty = Vec::new();
    let list = |place: &u32| lists.get(place).unwrap_or(&empty);
    let Some((first, rest)) = members.split_first() else { return Vec::new() };
    let of_first = list(first);
    let mut shifts = vec![0];
    for place in rest {
        let shift = shift_of((&known[*first as usize], of_first), (&known[*place as usize], list(place)));
        let Some(shift) = shift else { return Vec::new() };
        shifts.push(shift);
    }
    let instance = |number: usize| -> Option<Vec<Part>> {
        let part =
            |(place, shift): (&u32, &i64)| list(place).get(usize::try_from(number as i64 + shift).ok()?).copied();
        let parts: Vec<Part> = members.iter().zip(&shifts).map(part).collect::<Option<_>>()?;
        parts.iter().all(|part| part.operation == parts[0].operation).then_some(parts)
    };
    (0..of_first.len()).filter_map(instance).collect()
}

/// The number to add to the place of an operation in the list of the first member for that in the second: none, unless reports
/// begin in the midst of the run, where times tell. Nothing if they do not agree.
fn shift_of(first: (&Known<'_>, &[Part]), second: (&Known<'_>, &[Part])) -> Option<i64> {
    if first.0.is_whole && second.0.is_whole {
        let pairs = || first.1.iter().zip(second.1);
        let misses = pairs().filter(|(a, b)| a.operation != b.operation).count();
        return (misses * 100 <= pairs().len()).then_some(0);
    }
    let items = |(known, parts): (&Known<'_>, &[Part])| -> Vec<Item> {
        let item = |part: &Part| {
            let begin = part.begin;
            let end = part.done.map_or(begin, |done| known.side.program.calls[done as usize].end);
            Item { kind: kind(part.operation), elements: 0, begin, end, step: None, is_root: false, is_alone: true }
        };
        parts.iter().map(item).collect()
    };
    shift(&items(first), &items(second), first.0.side.clock == second.0.side.clock)
}

/// The kind of an operation, as kinds are compared.
const fn kind(operation: CollectiveOp) -> Kind {
    match operation {
        CollectiveOp::BARRIER => Kind::Barrier,
        CollectiveOp::BCAST => Kind::Broadcast,
        CollectiveOp::SCATTER | CollectiveOp::SCATTERV => Kind::Scatter,
        CollectiveOp::REDUCE => Kind::Reduce,
        CollectiveOp::GATHER | CollectiveOp::GATHERV => Kind::Gather,
        CollectiveOp::ALLREDUCE => Kind::AllReduce,
        CollectiveOp::ALLGATHER | CollectiveOp::ALLGATHERV => Kind::AllGather,
        CollectiveOp::REDUCE_SCATTER | CollectiveOp::REDUCE_SCATTER_BLOCK => Kind::ReduceScatter,
        _ => Kind::AllToAll,
    }
}

impl Part {
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
