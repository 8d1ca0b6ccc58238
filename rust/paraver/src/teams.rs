//! Teams of threads: the part of each thread in the parallel regions of its process, and the order of its locks.
//!
//! Only the thread that forks records a parallel region. What the others do while it is open is their part in it. Who is
//! in which team is not known while a thread forks within a team, nor who waits while threads work in barriers: then each
//! thread that forks has a team by itself.

use std::collections::BTreeMap;

use crate::openmp::{ALONE, is_barrier, is_parallel};
use crate::pthreads;
use crate::thread::{Thread, Visit, What, outside};

/// A thread that works for less than one part in so many of a barrier waits in it.
const NEGLIGIBLE: i64 = 100;

/// What a thread does with a lock at the begin or end of a visit.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct LockLink {
    pub(crate) visit: u32,
    pub(crate) is_release: bool,
    pub(crate) lock: u32,
    pub(crate) order: u32,
}

/// Adds the parts of the threads of a process in its teams; the first thread forks.
pub(crate) fn form(threads: &mut [Thread]) {
    if threads.len() < 2 {
        return;
    }
    let mut forks: Vec<(i64, i64)> = Vec::new();
    let mut nested: Vec<i64> = Vec::new();
    for (number, thread) in threads.iter().enumerate() {
        for visit in thread.visits.iter().filter(|visit| is_parallel(thread.what(visit).kind)) {
            if number > 0 || forks.last().is_some_and(|fork| visit.begin < fork.1) {
                nested.push(visit.begin);
            } else {
                forks.push((visit.begin, visit.end));
            }
        }
    }
    for thread in threads.iter_mut() {
        let working = thread.working_barriers();
        thread.odd.working_barriers = working.len() as u64;
        nested.extend(working);
    }
    if !nested.is_empty() {
        nested.sort_unstable();
        forks.retain(|fork| {
            let first = nested.partition_point(|begin| *begin < fork.0);
            nested.get(first).is_none_or(|begin| *begin >= fork.1)
        });
        for thread in threads.iter_mut() {
            thread.fork_alone(&forks);
        }
    }
    if !forks.is_empty() {
        for thread in &mut threads[1..] {
            add_parts(thread, &forks);
        }
    }
}

impl Thread {
    /// When barriers begin in which the thread works: it runs tasks there, and nobody knows how long it waits.
    fn working_barriers(&self) -> Vec<i64> {
        if self.gaps.iter().next().is_none() {
            return Vec::new();
        }
        let barriers = || self.visits.iter().filter(|visit| is_barrier(self.what(visit).kind));
        let times = barriers().map(|visit| (visit.begin, visit.end));
        let works = outside(times, self.gaps.iter().map(|gap| (gap.begin, gap.end)));
        let working = barriers().zip(works).filter(|(visit, works)| *works > (visit.end - visit.begin) / NEGLIGIBLE);
        working.map(|(visit, _)| visit.begin).collect()
    }

    /// Marks forks of teams of which only the part of this thread is known: all but these.
    fn fork_alone(&mut self, forks: &[(i64, i64)]) {
        let Self { visits, whats, .. } = self;
        for visit in visits {
            let what = &whats[visit.what as usize];
            if !is_parallel(what.kind) || forks.binary_search(&(visit.begin, visit.end)).is_ok() {
                continue;
            }
            let alone = What { kind: ALONE, ..what.clone() };
            let known = whats.iter().position(|known| *known == alone);
            visit.what = known.unwrap_or(whats.len()) as u32;
            if known.is_none() {
                whats.push(alone);
            }
            self.forks_alone += 1;
        }
    }
}

/// Puts a visit around what a thread does during each fork.
fn add_parts(thread: &mut Thread, forks: &[(i64, i64)]) {
    let mut parts: Vec<(u32, Visit)> = Vec::new();
    let mut forks = forks.iter().peekable();
    let mut is_open = false;
    for (at, visit) in (0..).zip(&mut thread.visits) {
        if visit.depth == 0 {
            while forks.next_if(|fork| fork.1 <= visit.begin).is_some() {
                is_open = false;
            }
            let Some(fork) = forks.peek().filter(|fork| fork.0 <= visit.begin) else {
                is_open = false;
                continue;
            };
            if let Some((_, part)) = parts.last_mut().filter(|(_, part)| is_open && fork.0 <= part.begin) {
                part.end = visit.end;
            } else {
                parts.push((at, Visit { depth: 0, what: thread.part, ..*visit }));
            }
            is_open = true;
        }
        visit.depth += u32::from(is_open);
    }
    let place = |at: u32| at + parts.partition_point(|(before, _)| *before <= at) as u32;
    for collective in &mut thread.collectives {
        collective.visit = place(collective.visit);
    }
    for holding in &mut thread.holdings {
        holding.acquire = place(holding.acquire);
        holding.release = holding.release.map(place);
    }
    let mut visits = Vec::with_capacity(thread.visits.len() + parts.len());
    let mut parts = parts.into_iter().peekable();
    for (at, visit) in (0..).zip(thread.visits.drain(..)) {
        visits.extend(parts.next_if(|(before, _)| *before == at).map(|(_, part)| part));
        visits.push(visit);
    }
    thread.visits = visits;
}

/// What the threads of a process do with locks, in the order in which they have each.
pub(crate) fn locks(threads: &[Thread]) -> Vec<Vec<LockLink>> {
    // The threads that have a lock, since when, by library and address.
    type Owners = Vec<(i64, usize, usize)>;
    let mut of_locks: BTreeMap<(bool, i64), Owners> = BTreeMap::new();
    for (number, thread) in threads.iter().enumerate() {
        for (at, holding) in thread.holdings.iter().enumerate() {
            let acquire = &thread.visits[holding.acquire as usize];
            let is_pthread = thread.what(acquire).kind == pthreads::CALLS;
            of_locks.entry((is_pthread, holding.address)).or_default().push((acquire.end, number, at));
        }
    }
    let mut links = vec![Vec::new(); threads.len()];
    for (lock, mut holdings) in (0..).zip(of_locks.into_values()) {
        holdings.sort_unstable();
        for (order, (_, thread, at)) in (1..).zip(holdings) {
            let holding = &threads[thread].holdings[at];
            let link = |visit, is_release| LockLink { visit, is_release, lock, order };
            links[thread].push(link(holding.acquire, false));
            links[thread].extend(holding.release.map(|visit| link(visit, true)));
        }
    }
    for links in &mut links {
        links.sort_unstable();
    }
    links
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::openmp::{PARALLEL, PART};
    use crate::records::{Records, State};
    use crate::states::Gaps;
    use crate::thread::Holding;

    fn visit(begin: i64, end: i64, depth: u32, what: u32) -> Visit {
        Visit { begin, end, depth, what }
    }

    fn whats() -> Vec<What> {
        [0, PARALLEL, PART].map(|kind| What { kind, ..What::default() }).to_vec()
    }

    #[test]
    fn teams_of_forks_within_teams_are_not_known() {
        let thread = |visits| Thread { visits, whats: whats(), part: 2, ..Thread::default() };
        let first = thread(vec![visit(10, 30, 0, 1), visit(15, 20, 1, 1), visit(40, 50, 0, 1)]);
        let other = thread(vec![visit(11, 19, 0, 0), visit(41, 49, 0, 0)]);
        let mut threads = [first, other];
        form(&mut threads);
        let kinds = |thread: &Thread| thread.visits.iter().map(|visit| thread.what(visit).kind).collect::<Vec<_>>();
        assert_eq!(kinds(&threads[0]), [ALONE, ALONE, PARALLEL]);
        assert_eq!(kinds(&threads[1]), [0, PART, 0]);
        assert_eq!((threads[0].forks_alone, threads[1].forks_alone), (2, 0));
    }

    #[test]
    fn nobody_waits_in_barriers_in_which_threads_work() {
        let (state, barrier) =
            (|begin, end, kind| State { begin, end, kind }, What { kind: 60_000_005, ..What::default() });
        for (busy, count) in [(5, 0), (1, 1)] {
            let mut states = Records::default();
            for known in [state(0, 12, 1), state(12, 14, 5), state(14, 16, busy), state(16, 20, 5), state(20, 40, 1)] {
                states.state(known);
            }
            let gaps = Gaps::new(states, &[], 40, |state| state as u32);
            let visits = vec![visit(12, 20, 0, 0), visit(20, 20, 0, 0), visit(30, 35, 0, 0)];
            let thread = Thread { visits, whats: vec![barrier.clone()], gaps, ..Thread::default() };
            assert_eq!(thread.working_barriers().len(), 1 + count, "{busy}");
        }
    }

    #[test]
    fn what_is_done_during_a_fork_is_one_part() {
        let forks = vec![visit(10, 20, 0, 1), visit(30, 40, 0, 1)];
        let first = Thread { visits: forks, whats: whats(), ..Thread::default() };
        let work =
            vec![visit(1, 2, 0, 0), visit(11, 15, 0, 0), visit(12, 13, 1, 0), visit(15, 20, 0, 0), visit(31, 33, 0, 0)];
        let holding = Holding { address: 0, acquire: 2, release: Some(3), is_shared: false };
        let other = Thread { visits: work, holdings: vec![holding], whats: whats(), part: 2, ..Thread::default() };
        let mut threads = [first, other];
        form(&mut threads);
        let found: Vec<(i64, i64, u32, bool)> =
            threads[1].visits.iter().map(|visit| (visit.begin, visit.end, visit.depth, visit.what == 2)).collect();
        let expected = [
            (1, 2, 0, false),
            (11, 20, 0, true),
            (11, 15, 1, false),
            (12, 13, 2, false),
            (15, 20, 1, false),
            (31, 33, 0, true),
            (31, 33, 1, false),
        ];
        assert_eq!(found, expected);
        assert_eq!(threads[1].holdings, [Holding { acquire: 3, release: Some(4), ..holding }]);
    }
}
