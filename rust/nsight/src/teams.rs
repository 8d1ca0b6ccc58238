//! Teams of threads: who is in which, who has which lock, and which tasks run.
//!
//! ```text
//!  thread 0  [ parallel 7        ][ barrier 7 ]          7: the number of the parallel region in its process
//!  thread 1  .[ part    [ loop 7 ][ barrier 7 ]]         the part of a thread: what it does in the region of another
//! ```

use std::cmp::Reverse;
use std::collections::BTreeMap;

use rustc_hash::{FxHashMap, FxHashSet};
use whywait_devices::{Task, Team};
use whywait_otf2::Event;
use whywait_otf2::enums::Paradigm;

use crate::constructs::Construct;
use crate::rows::{ABSENT, Kind, NO_DETAIL, OpenMpRow, ProcessRows, Span, ThreadRows};

/// What the rows of a process say together.
#[derive(Debug, Default)]
pub(crate) struct Formed {
    /// The threads of each team in the operating system; the one that forks comes first.
    pub(crate) teams: Vec<Vec<i64>>,
    /// Tasks in order of their numbers, from 1: the team, and the place of their creator in it.
    pub(crate) tasks: Vec<(u32, u32)>,
    /// What happens to locks at the begin and at the end of spans, by the details of these.
    pub(crate) locks: Vec<(Option<Event<'static>>, Option<Event<'static>>)>,
}

impl Formed {
    /// The teams and their tasks, of threads in their order.
    pub(crate) fn in_order(&self, threads: &[ThreadRows]) -> (Vec<Team>, Vec<Task>) {
        let places: FxHashMap<i64, u32> = threads.iter().map(|thread| thread.id).zip(0..).collect();
        let team = |threads: &Vec<i64>| Team {
            threads: threads.iter().filter_map(|thread| places.get(thread)).copied().collect(),
        };
        let task = |(number, (team, creator)): (u32, &(u32, u32))| Task { team: *team, creator: *creator, number };
        (self.teams.iter().map(team).collect(), (1..).zip(&self.tasks).map(task).collect())
    }
}

/// Makes spans of the rows of a process.
pub(crate) fn form(process: &mut ProcessRows) -> Formed {
    let mut rows = std::mem::take(&mut process.openmp);
    run_tasks(&mut rows);
    rows.sort_by_key(|row| (row.begin, Reverse(row.end), row.thread, row.construct));
    let mut formed = Formed::default();
    let forks = Forks::find(&mut rows, &mut formed.teams);
    let locks = locks(&rows, &mut formed.locks);
    let tasks = forks.tasks(&rows, &formed.teams, &mut formed.tasks);
    let details: FxHashMap<usize, u32> = locks.into_iter().chain(tasks).collect();
    let mut places: FxHashMap<i64, usize> = FxHashMap::default();
    places.extend(process.threads.iter().enumerate().map(|(place, thread)| (thread.id, place)));
    let mut add = |thread: i64, span: Span| {
        let Some(thread) = places.get(&thread).and_then(|place| process.threads.get_mut(*place)) else { return };
        thread.forks += u64::from(span.kind == Kind::OpenMp(Construct::Parallel));
        thread.spans.push(span);
    };
    for fork in &forks.list {
        for part in &fork.parts {
            let Part { begin, end, thread, construct } = *part;
            let detail = fork.team.map_or(NO_DETAIL, u64::from);
            add(thread, Span { begin, end, detail, name: fork.name, kind: Kind::OpenMp(construct) });
        }
    }
    for (place, row) in rows.iter().enumerate() {
        let OpenMpRow { begin, end, thread, name, construct, .. } = *row;
        if !matches!(construct, Construct::Parallel | Construct::Part) {
            let detail = details.get(&place).map_or(NO_DETAIL, |detail| u64::from(*detail));
            add(thread, Span { begin, end, detail, name, kind: Kind::OpenMp(construct) });
        }
    }
    formed
}

/// Replaces switches of threads by the tasks that run between them, unless these are recorded. A task that waits for others stays
/// open while its thread runs them.
fn run_tasks(rows: &mut Vec<OpenMpRow>) {
    let (mut switches, rest): (Vec<_>, Vec<_>) = rows.drain(..).partition(|row| row.construct == Construct::Switch);
    *rows = rest;
    if rows.iter().any(|row| row.construct == Construct::Task) {
        return;
    }
    let numbers = |of: Construct| -> FxHashSet<i64> {
        rows.iter().filter(|row| row.construct == of).map(|row| row.object).collect()
    };
    let (created, implicit) = (numbers(Construct::TaskCreate), numbers(Construct::Part));
    let is_explicit = |task: i64| if created.is_empty() { !implicit.contains(&task) } else { created.contains(&task) };
    switches.sort_by_key(|row| (row.thread, row.begin));
    for of_thread in switches.chunk_by(|a, b| a.thread == b.thread) {
        let mut open: Vec<OpenMpRow> = Vec::new();
        let end = |rows: &mut Vec<OpenMpRow>, task: OpenMpRow, end: i64| {
            rows.push(OpenMpRow { end, construct: Construct::Task, ..task });
        };
        for switch in of_thread {
            if let Some(place) = open.iter().rposition(|task| task.object == switch.completed) {
                open.drain(place..).for_each(|task| end(rows, task, switch.begin));
            }
            let is_open = open.iter().any(|task| task.object == switch.object);
            if switch.object != ABSENT && is_explicit(switch.object) && !is_open {
                open.push(*switch);
            }
        }
        let last = of_thread[of_thread.len() - 1].begin;
        open.drain(..).for_each(|task| end(rows, task, last));
    }
}

/// What a thread does in a parallel region.
#[derive(Debug, Clone, Copy)]
struct Part {
    begin: i64,
    end: i64,
    thread: i64,
    construct: Construct,
}

/// A parallel region.
#[derive(Debug)]
struct Fork {
    name: u32,
    /// The part of the thread that forks, which is the whole region, and then those of others.
    parts: Vec<Part>,
    /// The team, if it has several threads.
    team: Option<u32>,
}

/// The parallel regions of a process.
#[derive(Debug, Default)]
struct Forks {
    /// In order of their begins.
    list: Vec<Fork>,
    /// By their numbers, which may be used again.
    by_number: FxHashMap<i64, Vec<usize>>,
}

impl Forks {
    /// Finds the regions of rows in order of their begins, and cuts rows where their region ends: a thread may stay in the last
    /// barrier until the next region begins.
    fn find(rows: &mut [OpenMpRow], teams: &mut Vec<Vec<i64>>) -> Self {
        let mut forks = Self::default();
        for row in rows.iter().filter(|row| row.construct == Construct::Parallel) {
            let OpenMpRow { begin, end, thread, parallel, name, construct, .. } = *row;
            forks.by_number.entry(parallel).or_default().push(forks.list.len());
            forks.list.push(Fork { name, parts: vec![Part { begin, end, thread, construct }], team: None });
        }
        let mut known: FxHashMap<(usize, i64), usize> = FxHashMap::default();
        for row in rows.iter_mut().filter(|row| row.construct != Construct::Parallel) {
            let Some(number) = forks.of(row) else { continue };
            let parts = &mut forks.list[number].parts;
            let Part { begin, end, thread, .. } = parts[0];
            row.begin = row.begin.clamp(begin, end);
            row.end = row.end.clamp(row.begin, end);
            if row.thread == thread {
                continue;
            }
            let (begin, end, thread) = (row.begin, row.end, row.thread);
            let place = *known.entry((number, thread)).or_insert_with(|| {
                parts.push(Part { begin, end, thread, construct: Construct::Part });
                parts.len() - 1
            });
            let part = &mut parts[place];
            (part.begin, part.end) = (part.begin.min(begin), part.end.max(end));
        }
        let mut numbers: FxHashMap<Vec<i64>, u32> = FxHashMap::default();
        for fork in forks.list.iter_mut().filter(|fork| fork.parts.len() > 1) {
            fork.parts[1..].sort_by_key(|part| part.thread);
            let threads: Vec<i64> = fork.parts.iter().map(|part| part.thread).collect();
            fork.team = Some(*numbers.entry(threads).or_insert_with_key(|threads| {
                teams.push(threads.clone());
                teams.len() as u32 - 1
            }));
        }
        forks
    }

    /// The region that a row names: of those with its number, the last one that has begun.
    fn of(&self, row: &OpenMpRow) -> Option<usize> {
        let list = self.by_number.get(&row.parallel).filter(|_| row.parallel != ABSENT)?;
        let after = list.partition_point(|fork| self.list[*fork].parts[0].begin <= row.begin);
        Some(list[after.saturating_sub(1)])
    }

    /// Numbers the tasks of teams; for each row that runs or creates one, its place among tasks.
    fn tasks(&self, rows: &[OpenMpRow], teams: &[Vec<i64>], tasks: &mut Vec<(u32, u32)>) -> Vec<(usize, u32)> {
        let mut created: FxHashMap<i64, (usize, i64)> = FxHashMap::default();
        for (place, row) in rows.iter().enumerate().filter(|(_, row)| row.construct == Construct::TaskCreate) {
            created.insert(row.object, (place, row.thread));
        }
        let mut details = Vec::new();
        for (place, row) in rows.iter().enumerate().filter(|(_, row)| row.construct == Construct::Task) {
            let Some(team) = self.of(row).and_then(|fork| self.list[fork].team) else { continue };
            let number = tasks.len() as u32;
            let creation = created.remove(&row.object);
            let of_team = &teams[team as usize];
            let creator = creation.and_then(|(_, thread)| of_team.iter().position(|member| *member == thread));
            details.extend(creation.filter(|_| creator.is_some()).map(|(place, _)| (place, number)));
            details.push((place, number));
            tasks.push((team, creator.unwrap_or(0) as u32));
        }
        details
    }
}

/// Whose lock it is when: for each row that takes or gives back one, its place among the events of locks.
fn locks(rows: &[OpenMpRow], events: &mut Vec<(Option<Event<'static>>, Option<Event<'static>>)>) -> Vec<(usize, u32)> {
    // Since when a thread has a lock, the row in which it waited for that, and the one that ends it.
    let mut owned: BTreeMap<i64, Vec<(i64, Option<usize>, usize)>> = BTreeMap::new();
    let mut waited: FxHashMap<(i64, i64), usize> = FxHashMap::default();
    for (place, row) in rows.iter().enumerate().filter(|(_, row)| row.object != ABSENT) {
        let key = (row.thread, row.object);
        if row.construct.is_mutex() {
            waited.insert(key, place);
        } else if row.construct == Construct::Section {
            let wait = waited.remove(&key);
            let since = wait.map_or(row.begin, |wait| rows[wait].end);
            owned.entry(row.object).or_default().push((since, wait, place));
        } else if row.construct == Construct::Release
            && let Some(wait) = waited.remove(&key)
        {
            owned.entry(row.object).or_default().push((rows[wait].end, Some(wait), place));
        }
    }
    let mut details = Vec::new();
    let mut add = |place: usize, begin, end| {
        details.push((place, events.len() as u32));
        events.push((begin, end));
    };
    let model = Paradigm::OPENMP;
    for (lock_id, mut owners) in (0..).zip(owned.into_values()) {
        owners.sort_unstable();
        for (acquisition_order, (_, wait, place)) in (1..).zip(owners) {
            let acquired = Event::ThreadAcquireLock { model, lock_id, acquisition_order };
            let released = Event::ThreadReleaseLock { model, lock_id, acquisition_order };
            match wait {
                Some(wait) => {
                    add(wait, None, Some(acquired));
                    add(place, None, Some(released));
                }
                None => add(place, Some(acquired), Some(released)),
            }
        }
    }
    details
}
