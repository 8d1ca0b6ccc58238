//! POSIX threads: who has which lock, and who makes and awaits whom.
//!
//! No record says which thread a call makes or awaits, nor which mutex a call that waits for a condition variable gives
//! back; all three are inferred. A call makes the next thread that begins. A call that waits for a thread ends when that
//! thread has ended: it is the one that ended last. A condition variable goes with the lock that the thread had last.

use std::collections::BTreeMap;

use rustc_hash::FxHashMap;

use crate::pthreads::{
    CALLS, CONDITION_WAIT, CREATE, JOIN, LIFE, LOCK, READ_LOCK, READ_WRITE_UNLOCK, UNLOCK, WRITE_LOCK,
};
use crate::thread::{Holding, Thread, Visit};

/// A call as a thread makes it: its visit, its number, and the address that is recorded with it.
#[derive(Debug, Clone, Copy)]
struct Call {
    visit: u32,
    number: i64,
    address: Option<i64>,
}

impl Thread {
    /// The visits of a type, with their places.
    fn visits_of(&self, kind: u32) -> impl Iterator<Item = (u32, &Visit)> {
        let has_any = self.whats.iter().any(|what| what.kind == kind);
        let visits = if has_any { &self.visits[..] } else { &[] };
        (0..).zip(visits).filter(move |(_, visit)| self.what(visit).kind == kind)
    }

    /// The calls that are whole.
    fn pthread_calls(&self) -> impl Iterator<Item = Call> {
        self.visits_of(CALLS).filter_map(|(visit, known)| {
            let what = self.what(known);
            let number = i64::from(what.value);
            (number != 0).then_some(Call { visit, number, address: what.lock })
        })
    }

    /// Number of calls for locks of which nobody knows which lock it is.
    pub(crate) fn unknown_locks(&self) -> u64 {
        let is_lock = |call: &Call| matches!(call.number, WRITE_LOCK | READ_LOCK | LOCK);
        self.pthread_calls().filter(|call| is_lock(call) && call.address.is_none()).count() as u64
    }

    /// When the thread has which lock.
    fn pthread_holdings(&self) -> Vec<Holding> {
        let mut holdings: Vec<Holding> = Vec::new();
        // Locks that it has, the last one last: address, and place in `holdings`.
        let mut held: Vec<(i64, usize)> = Vec::new();
        for Call { visit, number, address } in self.pthread_calls() {
            match (number, address) {
                (WRITE_LOCK | READ_LOCK | LOCK, Some(address)) => {
                    held.push((address, holdings.len()));
                    holdings.push(Holding { address, acquire: visit, release: None, is_shared: number == READ_LOCK });
                }
                (UNLOCK | READ_WRITE_UNLOCK, Some(address)) => {
                    if let Some(at) = held.iter().rposition(|(known, _)| *known == address) {
                        holdings[held.remove(at).1].release = Some(visit);
                    }
                }
                // Its mutex, whatever the address of the variable.
                (CONDITION_WAIT, _) => {
                    if let Some((_, at)) = held.last_mut() {
                        holdings[*at].release = Some(visit);
                        let holding = Holding { acquire: visit, release: None, ..holdings[*at] };
                        *at = holdings.len();
                        holdings.push(holding);
                    }
                }
                _ => {}
            }
        }
        outermost(holdings)
    }
}

/// Leaves out what is within another holding of the same lock.
fn outermost(mut holdings: Vec<Holding>) -> Vec<Holding> {
    let mut until: FxHashMap<i64, u32> = FxHashMap::default();
    holdings.retain(|holding| {
        let Some(release) = holding.release else { return true };
        let until = until.entry(holding.address).or_default();
        let is_outer = *until <= holding.acquire;
        *until = (*until).max(release);
        is_outer
    });
    holdings
}

/// Finds when the threads of a process have which locks. A call that is followed by none that gives the lock back only
/// tried if another thread has the lock at its end.
pub(crate) fn find_locks(threads: &mut [Thread]) {
    let mut of_locks: BTreeMap<i64, Vec<(i64, usize, Holding)>> = BTreeMap::new();
    for (number, thread) in threads.iter().enumerate() {
        for holding in thread.pthread_holdings() {
            let since = thread.visits[holding.acquire as usize].end;
            of_locks.entry(holding.address).or_default().push((since, number, holding));
        }
    }
    let mut found: Vec<Vec<Holding>> = vec![Vec::new(); threads.len()];
    for mut holdings in of_locks.into_values() {
        holdings.sort_by_key(|(since, number, _)| (*since, *number));
        // Until when threads have it: by themselves, and together.
        let mut until = [i64::MIN; 2];
        for (since, number, holding) in holdings {
            let is_taken = since < until[0] || since < until[1] && !holding.is_shared;
            match holding.release {
                Some(release) => {
                    let until = &mut until[usize::from(holding.is_shared)];
                    *until = (*until).max(threads[number].visits[release as usize].begin);
                }
                None if is_taken => continue,
                None => {}
            }
            found[number].push(holding);
        }
    }
    for (thread, holdings) in threads.iter_mut().zip(found) {
        thread.holdings.extend(holdings);
    }
}

/// What a thread does with another one, at the begin or end of a visit.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct LifeLink {
    pub(crate) visit: u32,
    /// The number of the thread that is made or awaited, or that this one is.
    pub(crate) thread: u64,
}

/// Who makes and awaits whom in a process.
#[derive(Debug, Default)]
pub(crate) struct Lives {
    /// Of each thread, in order of visits.
    pub(crate) links: Vec<Vec<LifeLink>>,
    /// Calls that make and that await threads, as far as it is known which.
    pub(crate) known: u64,
}

impl Lives {
    /// Adds those of the next process.
    pub(crate) fn add(&mut self, next: Self) {
        self.links.extend(next.links);
        self.known += next.known;
    }
}

/// Finds who makes and awaits whom in a process.
pub(crate) fn lives(threads: &[Thread]) -> Lives {
    let mut found = Lives { links: vec![Vec::new(); threads.len()], known: 0 };
    let mut link = |thread: usize, visit, number| found.links[thread].push(LifeLink { visit, thread: number });
    let (mut creations, mut joins, mut functions) = (Vec::new(), Vec::new(), Vec::new());
    for (number, thread) in threads.iter().enumerate() {
        for Call { visit, number: which, .. } in thread.pthread_calls() {
            let time = thread.visits[visit as usize];
            match which {
                CREATE => creations.push((time.begin, number, visit)),
                JOIN => joins.push((time.end, number, visit)),
                _ => {}
            }
        }
        functions.extend((0..).zip(thread.visits_of(LIFE)).map(|(round, (visit, time))| (round, number, visit, *time)));
    }
    creations.sort_unstable();
    joins.sort_unstable();
    // Numbers of threads follow the order of their creation; a thread that has ended can be another one later.
    functions.sort_unstable_by_key(|(round, number, ..): &(u32, usize, u32, _)| (*round, *number));
    let mut next = creations.into_iter().peekable();
    let mut ended = Vec::with_capacity(functions.len());
    let mut known = 0;
    for (life, (_, number, visit, time)) in (1..).zip(functions) {
        link(number, visit, life);
        ended.push((time.end, number, life));
        if let Some((_, creator, call)) = next.next_if(|(created, ..)| *created <= time.begin) {
            link(creator, call, life);
            known += 1;
        }
    }
    ended.sort_unstable();
    let mut ended = ended.into_iter().peekable();
    let mut unawaited = Vec::new();
    for (end, joiner, visit) in joins {
        while let Some(life) = ended.next_if(|life| life.0 <= end) {
            unawaited.push(life);
        }
        if let Some((.., life)) = unawaited.pop_if(|(_, number, _)| *number != joiner) {
            link(joiner, visit, life);
            known += 1;
        }
    }
    found.known = known;
    for links in &mut found.links {
        links.sort_unstable();
    }
    found
}
