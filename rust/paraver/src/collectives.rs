//! Collective operations: which calls of the members of a communicator belong together.
//!
//! The k-th call of each member is one operation. Where a trace is cut, or communicators with the same members have one
//! number, that does not hold: calls of several threads at once are matched by thread, and the calls of each member are
//! shifted to where they fit those of the others.

use std::collections::BTreeMap;

use whywait_otf2::enums::CollectiveOp;

use crate::calls;
use crate::parallel::map;
use crate::processes::{Comms, Processes};
use crate::thread::{NONE, Thread};

/// Operations by which calls are shifted at most.
const MOST_SHIFTED: usize = 64;

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
    is_root: bool,
    thread: u32,
    at: u32,
}

impl Call {
    /// Whether nobody can leave the operation before all have come.
    fn is_synchronizing(self) -> bool {
        use CollectiveOp as Op;
        let operation = calls::operation(self.value.into());
        operation.is_some_and(|operation| !calls::is_rooted(operation) && !matches!(operation, Op::SCAN | Op::EXSCAN))
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
            let value = thread.what(visit).value;
            if value == 0 {
                continue;
            }
            let numbered = collective.communicator.map(|number| comms.with_number(application, number));
            let comm = numbered.flatten().unwrap_or_else(|| Comms::world(application));
            let known = &comms.list[comm as usize];
            let Some(rank) = known.rank(process) else {
                found.unresolved += 1;
                continue;
            };
            let call =
                Call { value, begin: visit.begin, end: visit.end, is_root: collective.is_root, thread: number, at };
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
        let all: usize = members.iter().map(Vec::len).sum();
        let operations = align(&members);
        let mut resolved = 0;
        for operation in operations {
            let calls: Vec<&Call> = operation.iter().zip(&members).map(|(at, calls)| &calls[*at as usize]).collect();
            let Some(kind) = calls::operation(calls[0].value.into()) else { continue };
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
    let of_members = map(members.iter().collect(), |calls| matches(longest, calls));
    let operation = |at: usize| of_members.iter().map(|calls| Some(calls[at]).filter(|call| *call != NONE)).collect();
    (0..longest.len()).filter_map(operation).collect()
}

/// For each call of a member, the one of another that belongs to the same operation.
fn matches(reference: &[Call], calls: &[Call]) -> Vec<u32> {
    let same = |a: &Call, b: &Call| a.value == b.value;
    let shift = best_shift(reference, calls);
    let partner = |at: usize| {
        let partner = at.checked_add_signed(shift).filter(|partner| *partner < calls.len())?;
        same(&reference[at], &calls[partner]).then_some(partner as u32)
    };
    (0..reference.len()).map(|at| partner(at).unwrap_or(NONE)).collect()
}

/// By how many calls a member is behind another: most operations that can be, and fewest that cannot.
fn best_shift(reference: &[Call], calls: &[Call]) -> isize {
    let most = MOST_SHIFTED.min(reference.len().max(calls.len())) as isize;
    let score = |shift: isize| {
        let pairs = (0..reference.len()).filter_map(|at| {
            let partner = at.checked_add_signed(shift)?;
            Some((&reference[at], calls.get(partner)?))
        });
        let (mut all, mut wrong) = (0_usize, 0_usize);
        for (a, b) in pairs {
            all += 1;
            let crosses = a.is_synchronizing() && (a.end < b.begin || b.end < a.begin);
            wrong += usize::from(a.value != b.value || crosses);
        }
        (all, wrong)
    };
    let plain = score(0);
    if plain == (reference.len().max(calls.len()), 0) {
        return 0;
    }
    let shifts = (0..=most).flat_map(|shift| [-shift, shift]);
    let scores = shifts.map(|shift| {
        let (all, wrong) = score(shift);
        (all as isize - 2 * wrong as isize, -shift.abs(), shift)
    });
    scores.max().map_or(0, |(_, _, shift)| shift)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn calls(values: &[(i32, i64)]) -> Vec<Call> {
        let call =
            |&(value, begin): &(i32, i64)| Call { value, begin, end: begin + 5, is_root: false, thread: 0, at: 0 };
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
        assert!(align(&[]).is_empty());
        assert!(align(&[calls(&[]), calls(&[(8, 0)])]).is_empty());
    }
}
