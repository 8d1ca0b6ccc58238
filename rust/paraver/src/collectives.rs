//! Collective operations: which calls of the members of a communicator belong together.
//!
//! The k-th call of each member is one operation. Where calls are missing, or communicators with the same members have one
//! number, that does not hold: calls of several threads at once are matched by thread, and the calls of each member are
//! shifted to where they fit those of the others, from where calls are missing on to the next such place. A call that is
//! not whole keeps its place; nothing is said of its operation.

use std::collections::BTreeMap;
use std::ops::Range;

use whywait_otf2::enums::CollectiveOp;

use crate::calls;
use crate::parallel::map;
use crate::processes::{Comms, Processes};
use crate::thread::{Collective, NONE, Thread};

/// Operations by which calls are shifted at most.
const MOST_SHIFTED: isize = 64;
/// Times that the calls of a member are compared with those of another at each shift at most: calls are missing so often.
const MOST_COMPARED: usize = 64;

/// The operation that a call takes part in.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Operation {
    pub(crate) comm: u32,
    pub(crate) kind: CollectiveOp,
    /// Rank in the communicator, if it has a root.
    pub(crate) root: Option<u32>,
}

/// The operations of each thread's collective calls.
#[derive(Debug, Default)]
pub(crate) struct Operations {
    /// By thread, for each of its `collectives`.
    pub(crate) of_threads: Vec<Vec<Option<Operation>>>,
    /// Number of operations.
    pub(crate) count: u64,
    /// Calls of which it is not known to which operation they belong.
    pub(crate) unresolved: u64,
}

/// A collective call.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Call {
    value: i32,
    begin: i64,
    end: i64,
    sent: i64,
    received: i64,
    is_root: bool,
    /// Whether it is known when it began and ended.
    is_whole: bool,
    thread: u32,
    at: u32,
}

impl Call {
    /// Whether two members can call the same operation so, whatever the sizes.
    fn is_of(self, other: Self) -> bool {
        self.value == other.value && !(self.is_root && other.is_root)
    }

    /// Whether two of so many members can call the same operation so.
    fn is_like(self, other: Self, members: usize) -> bool {
        self.is_of(other) && self.has_sizes_of(other, members)
    }

    /// Whether sizes are those of one operation, where all members send and receive as much.
    fn has_sizes_of(self, other: Self, members: usize) -> bool {
        use CollectiveOp as Op;
        let [ours, theirs] = [self, other].map(|call| (call.sent, call.received));
        match calls::operation(self.value.into()) {
            Some(Op::ALLREDUCE | Op::ALLGATHER | Op::ALLTOALL | Op::REDUCE_SCATTER_BLOCK) => ours == theirs,
            Some(Op::BCAST | Op::REDUCE | Op::GATHER | Op::SCATTER) if self.is_root == other.is_root => ours == theirs,
            // Of the root, those of all members can be counted, or of all others.
            Some(Op::BCAST | Op::REDUCE | Op::GATHER | Op::SCATTER) => {
                let [ours, theirs] = [ours, theirs].map(|(sent, received)| sent.max(received));
                let (root, of_one) = if self.is_root { (ours, theirs) } else { (theirs, ours) };
                [1, members, members - 1].iter().any(|count| of_one.checked_mul(*count as i64) == Some(root))
            }
            _ => true,
        }
    }

    /// Whether two members can be in the same operation by time: who needs another leaves it after that one has come.
    fn meets(self, other: Self) -> bool {
        use CollectiveOp as Op;
        let needs = |call: Self, needed: Self| match calls::operation(self.value.into()) {
            Some(Op::BCAST | Op::SCATTER | Op::SCATTERV) => needed.is_root,
            Some(Op::REDUCE | Op::GATHER | Op::GATHERV) => call.is_root,
            Some(Op::SCAN | Op::EXSCAN) | None => false,
            Some(_) => true,
        };
        [(self, other), (other, self)]
            .into_iter()
            .all(|(call, needed)| !needs(call, needed) || call.end >= needed.begin)
    }
}

/// Finds the operations.
pub(crate) fn find(threads: &[Thread], processes: &Processes, comms: &mut Comms) -> Operations {
    let mut members: BTreeMap<u32, Vec<Vec<Call>>> = BTreeMap::new();
    let mut found = Operations {
        of_threads: threads.iter().map(|thread| vec![None; thread.collectives.len()]).collect(),
        ..Operations::default()
    };
    for (number, thread) in (0..).zip(threads) {
        let process = processes.of_threads[number as usize];
        let application = processes.list[process as usize].application;
        for (at, collective) in (0..).zip(&thread.collectives) {
            let visit = &thread.visits[collective.visit as usize];
            let Collective { value, sent, received, is_root, .. } = *collective;
            let is_whole = thread.what(visit).value != 0;
            let numbered = collective.communicator.map(|number| comms.with_number(application, number));
            let comm = numbered.flatten().unwrap_or_else(|| Comms::world(application));
            let known = &comms.list[comm as usize];
            let Some(rank) = known.rank(process) else {
                found.unresolved += u64::from(is_whole);
                continue;
            };
            let (begin, end, thread) = (visit.begin, visit.end, number);
            let call = Call { value, begin, end, sent, received, is_root, is_whole, thread, at };
            let members = members.entry(comm).or_insert_with(|| vec![Vec::new(); known.members.len()]);
            members[rank as usize].push(call);
        }
    }
    let first = |thread: u32| processes.list[processes.of_threads[thread as usize] as usize].first_thread;
    let lanes = members.into_iter().flat_map(|(comm, members)| {
        let lanes = by_thread(members, |call| call.thread - first(call.thread));
        (0..).zip(lanes).map(move |(lane, members)| (comm, lane, members))
    });
    for (comm, lane, members) in lanes {
        let comm = if lane == 0 { comm } else { comms.again(comm) };
        let all = members.iter().flatten().filter(|call| call.is_whole).count();
        let operations = align(&members);
        let mut resolved = 0;
        for operation in operations {
            let calls: Vec<&Call> = operation.iter().zip(&members).map(|(at, calls)| &calls[*at as usize]).collect();
            let Some(kind) = calls::operation(calls[0].value.into()) else { continue };
            if calls.iter().any(|call| !call.is_whole) {
                continue;
            }
            let root = calls.iter().position(|call| call.is_root).map(|rank| rank as u32);
            if calls::is_rooted(kind) && root.is_none() {
                continue;
            }
            let root = root.filter(|_| calls::is_rooted(kind));
            for call in &calls {
                let operation = Operation { comm, kind, root };
                found.of_threads[call.thread as usize][call.at as usize] = Some(operation);
            }
            resolved += calls.len();
            found.count += 1;
        }
        found.unresolved += (all - resolved) as u64;
    }
    found
}

/// The calls of a communicator in order, by rank. Calls of several threads at once are of several communicators with the
/// same members, as are probably those of several threads of which members have different numbers: then those of each
/// thread are by themselves, as `thread` numbers it in its process.
fn by_thread(mut members: Vec<Vec<Call>>, thread: impl Fn(&Call) -> u32) -> Vec<Vec<Vec<Call>>> {
    let mut are_at_once = false;
    for calls in &mut members {
        if !calls.is_sorted_by_key(|call| call.begin) {
            calls.sort_by_key(|call| call.begin);
        }
        let mut last: Option<&Call> = None;
        for call in calls {
            are_at_once |= last.is_some_and(|last| last.thread != call.thread && call.begin < last.end);
            last = last.filter(|last| last.end > call.end).or(Some(call));
        }
    }
    if !are_at_once && members.windows(2).all(|two| two[0].len() == two[1].len()) {
        return vec![members];
    }
    let mut lanes: BTreeMap<u32, Vec<Vec<Call>>> = BTreeMap::new();
    let count = members.len();
    for (rank, calls) in members.into_iter().enumerate() {
        for call in calls {
            lanes.entry(thread(&call)).or_insert_with(|| vec![Vec::new(); count])[rank].push(call);
        }
    }
    lanes.into_values().collect()
}

/// The calls of each operation that all members have, by rank.
fn align(members: &[Vec<Call>]) -> Vec<Vec<u32>> {
    let Some(reference) = (0..members.len()).max_by_key(|rank| (members[*rank].len(), usize::MAX - rank)) else {
        return Vec::new();
    };
    let longest = &members[reference];
    // The call of each member for each call of the reference.
    let of_members = map((0..members.len()).collect(), |rank: usize| match rank {
        _ if rank == reference => (0..longest.len() as u32).collect(),
        _ => matches(longest, &members[rank], members.len()),
    });
    let operation = |at: usize| of_members.iter().map(|calls| Some(calls[at]).filter(|call| *call != NONE)).collect();
    (0..longest.len()).filter_map(operation).collect()
}

/// Calls of two members, each from one on until another.
type Parts = [(usize, usize); 2];

/// For each call of a member, the one of another that belongs to the same operation.
fn matches(reference: &[Call], calls: &[Call], members: usize) -> Vec<u32> {
    let all: Parts = [(0, reference.len()), (0, calls.len())];
    let mut found = vec![NONE; reference.len()];
    let (mut parts, mut left) = (vec![all], reference.len().max(calls.len()).saturating_mul(MOST_COMPARED));
    while let Some(part) = parts.pop() {
        let [(from, until), (first, last)] = part;
        let Some(rest) = left.checked_sub((until - from).max(last - first)) else { continue };
        left = rest;
        // Where none is missing, recorders can count sizes otherwise. Where none is missing between others that fit,
        // calls that do not meet are those of wrong clocks.
        let is_same = |(a, b): (&Call, &Call)| {
            if part == all { a.is_of(*b) && a.meets(*b) } else { a.is_like(*b, members) }
        };
        if until - from == last - first && reference[from..until].iter().zip(&calls[first..last]).all(is_same) {
            found[from..until].iter_mut().zip(first as u32..).for_each(|(found, at)| *found = at);
            continue;
        }
        let Some((run, shift)) = best_run((reference, calls), part, members) else { continue };
        let partner = |at: usize| at.wrapping_add_signed(shift);
        for at in run.clone() {
            if reference[at].is_like(calls[partner(at)], members) {
                found[at] = partner(at) as u32;
            }
        }
        parts.push([(from, run.start), (first, partner(run.start))]);
        parts.push([(run.end, until), (partner(run.end), last)]);
    }
    found
}

/// The calls of the first member that follow each other and fit those of the second best, and by how many calls these are
/// behind: most operations that can be, and fewest that cannot. A few cannot by time where clocks differ.
fn best_run((reference, calls): (&[Call], &[Call]), parts: Parts, members: usize) -> Option<(Range<usize>, isize)> {
    let [(from, until), (first, last)] = parts;
    let most = (until - from).min(last - first) as isize;
    let mut best: Option<(isize, isize, Range<usize>)> = None;
    // The smallest shift first: it is the one if another is not better.
    for shift in (0..=MOST_SHIFTED).flat_map(|shift| [shift, -shift]) {
        if best.as_ref().is_some_and(|(known, ..)| *known == most) {
            break;
        }
        let begin = from.max(first.saturating_add_signed(-shift));
        let end = until.min(last.saturating_add_signed(-shift));
        let (mut score, mut start) = (0, begin);
        for at in begin..end {
            let (a, b) = (reference[at], calls[at.wrapping_add_signed(shift)]);
            score += if a.is_like(b, members) && a.meets(b) { 1 } else { -2 };
            if score <= 0 {
                (score, start) = (0, at + 1);
            } else if best.as_ref().is_none_or(|(known, ..)| *known < score) {
                best = Some((score, shift, start..at + 1));
            }
        }
    }
    best.map(|(_, shift, run)| (run, shift))
}

#[cfg(test)]
mod tests {
    use super::*;

    const CALL: Call =
        Call { value: 0, begin: 0, end: 0, sent: 8, received: 8, is_root: false, is_whole: true, thread: 0, at: 0 };

    fn calls(values: &[(i32, i64)]) -> Vec<Call> {
        let call = |&(value, begin): &(i32, i64)| Call { value, begin, end: begin + 5, ..CALL };
        values.iter().map(call).collect()
    }

    #[test]
    fn calls_of_threads_at_once_are_of_several_communicators() {
        let on = |thread, begin| Call { thread, ..calls(&[(10, begin)])[0] };
        let in_turn = vec![vec![on(1, 9), on(0, 0)], vec![on(2, 1), on(3, 8)]];
        let expected = [vec![vec![on(0, 0), on(1, 9)], vec![on(2, 1), on(3, 8)]]];
        assert_eq!(by_thread(in_turn, |call| call.thread % 2), expected);
        let other = vec![vec![on(0, 0)], vec![on(2, 1), on(3, 9)]];
        let expected = [vec![vec![on(0, 0)], vec![on(2, 1)]], vec![vec![], vec![on(3, 9)]]];
        assert_eq!(by_thread(other, |call| call.thread % 2), expected);
        let at_once = vec![vec![on(1, 4), on(0, 0)], vec![on(2, 1), on(3, 9)]];
        let expected = [vec![vec![on(0, 0)], vec![on(2, 1)]], vec![vec![on(1, 4)], vec![on(3, 9)]]];
        assert_eq!(by_thread(at_once, |call| call.thread % 2), expected);
    }

    #[test]
    fn calls_of_one_operation_are_found() {
        let whole = calls(&[(10, 0), (8, 10), (10, 20), (10, 30)]);
        assert_eq!(align(&[whole.clone(), whole.clone()]).len(), 4);
        // The first operation of the second member was before the cut; all others look the same.
        let equal = calls(&[(10, 0), (10, 10), (10, 20), (10, 30)]);
        let cut = calls(&[(10, 11), (10, 21), (10, 31)]);
        let expected: Vec<Vec<u32>> = vec![vec![1, 0], vec![2, 1], vec![3, 2]];
        assert_eq!(align(&[equal.clone(), cut]), expected);
        // Nothing is said of operations that only some have.
        let last = calls(&[(10, 0), (10, 10), (10, 20)]);
        let expected: Vec<Vec<u32>> = vec![vec![0, 0], vec![1, 1], vec![2, 2]];
        assert_eq!(align(&[equal, last]), expected);
        let other = calls(&[(10, 0), (7, 10), (10, 20), (10, 30)]);
        let expected: Vec<Vec<u32>> = vec![vec![0, 0], vec![2, 2], vec![3, 3]];
        assert_eq!(align(&[whole, other]), expected);
        // In the middle, one of the second member is missing; time says which, or sizes.
        let gap = calls(&[(10, 0), (10, 10), (10, 30), (10, 40), (10, 50)]);
        let long = calls(&[(10, 0), (10, 10), (10, 20), (10, 30), (10, 40), (10, 50)]);
        let expected: Vec<Vec<u32>> = vec![vec![0, 0], vec![1, 1], vec![3, 2], vec![4, 3], vec![5, 4]];
        assert_eq!(align(&[long.clone(), gap.clone()]), expected);
        let sized = |calls: &[Call]| calls.iter().map(|call| Call { value: 7, sent: call.begin, ..*call }).collect();
        assert_eq!(align(&[sized(&long), sized(&gap)]), expected);
        assert!(align(&[]).is_empty());
        assert!(align(&[calls(&[]), calls(&[(8, 0)])]).is_empty());
    }
}
