//! What processes were doing that did not end as they should have, and which of them waited for each other.

use std::collections::BTreeMap;

use rayon::prelude::*;
use rustc_hash::FxHashMap;

use crate::error::Result;
use crate::expand::Job;
use crate::format::{Call, END_ABORTED, END_FINALIZED, PEER_ANY, RequestKind, TAG_ANY};
use crate::functions::{Class, FUNCTIONS};
use crate::messages::{self, Message, Step};
use crate::spool::Spool;
use crate::unify::{Group, Id, LocalComm, Unified};

/// How many ranks are named where others are counted.
const NAMED: usize = 4;

/// Lines about the ends of processes, the one that explains the others first. `since` is the time of a process in seconds of the run.
pub(crate) fn told(
    spool: &Spool,
    unified: &Unified,
    jobs: &[Job<'_>],
    since: impl Fn(&Job<'_>, u64) -> f64,
) -> Result<Vec<String>> {
    let has_finalized = |job: &Job<'_>| matches!(job.process.definitions.end, Some((_, END_FINALIZED)));
    if jobs.iter().all(has_finalized) && (0..unified.size).all(|rank| spool.ranks.contains_key(&rank)) {
        return Ok(Vec::new());
    }
    let ends = Ends::new(unified, jobs)?;
    let mut lines = Vec::new();
    for job in jobs {
        let rank = job.rank;
        let (finalize, abort) =
            if job.shmem.is_some() { ("shmem_finalize", "shmem_global_exit") } else { ("MPI_Finalize", "MPI_Abort") };
        let how = match job.process.definitions.end.map(|(_, reason)| reason) {
            Some(END_FINALIZED) => continue,
            Some(END_ABORTED) => {
                lines.push(format!("rank {rank} called {abort}"));
                continue;
            }
            Some(_) => format!("ended without {finalize}"),
            // It stopped recording before, so how it ended is not known.
            None if !job.process.definitions.lost.is_empty() => continue,
            None => "ended early".into(),
        };
        match job.unfinished() {
            None => match job.returned() {
                Some((name, time)) => {
                    lines.push(format!("rank {rank} {how}, after {name} at {:.6} s", since(job, time)));
                }
                None => lines.push(format!("rank {rank} {how}")),
            },
            Some(call) => {
                let how = if job.process.definitions.end.is_some() { &how } else { "ended" };
                let (what, since) = (ends.described(rank, call), since(job, call.enter));
                lines.push(format!("rank {rank} {how} inside {what}, entered at {since:.6} s"));
            }
        }
    }
    for rank in 0..unified.size {
        if !spool.ranks.contains_key(&rank) {
            lines.push(format!("rank {rank} left no recording"));
        }
    }
    // Sends that MPI may buffer count only if there is no other circle.
    let sure = circle(&ends.waiting(false)).map(|circle| (circle, ""));
    let found = sure.or_else(|| circle(&ends.waiting(true)).map(|circle| (circle, ", unless MPI buffers their sends")));
    if let Some((circle, unless)) = found {
        let names: Vec<String> = circle.iter().map(u32::to_string).collect();
        let line = match &names[..] {
            [first, second] => format!("ranks {first} and {second} waited for each other when they ended"),
            _ => format!("ranks {} waited for each other in a circle when they ended", names.join(", ")),
        };
        lines.insert(0, format!("{line}: a deadlock{unless}"));
    }
    Ok(lines)
}

impl Job<'_> {
    /// A call that did not return; there may be one of each thread.
    fn unfinished(&self) -> Option<&Call> {
        self.threads.iter().find_map(|(_, survey, _)| survey.unfinished.as_ref())
    }

    /// The call that returned last, and when.
    fn returned(&self) -> Option<(&'static str, u64)> {
        let last = self.threads.iter().filter_map(|(_, survey, _)| survey.returned).max_by_key(|(_, time)| *time)?;
        Some((FUNCTIONS.get(usize::from(last.0))?.name, last.1))
    }

    /// Whether all calls of the process were recorded.
    fn is_whole(&self) -> bool {
        self.process.definitions.lost.is_empty() && !self.threads.iter().any(|(_, survey, _)| survey.switched)
    }

    /// How many collective operations the process entered on a communicator.
    fn entered(&self, comm: Id) -> u64 {
        let of = |(object, count): (&u32, &u64)| {
            self.local.comms.get(object).filter(|known| known.id == comm).map(|_| *count)
        };
        self.threads.iter().flat_map(|(_, survey, _)| survey.collectives.iter().filter_map(of)).sum()
    }
}

/// A message without whose other end a call does not return.
#[derive(Debug, Clone, Copy)]
struct Need {
    message: Message,
    comm: Id,
    /// The rank at the other end.
    other: u32,
    /// The number of the waiting rank on the communicator, for the other one.
    own: i32,
    /// How many of the same kind the rank waits for before this one.
    before: u64,
}

/// Messages of a rank that are alike: whether it sends them, on which communicator, to or from whom, with what tag.
type Kind = (bool, Id, i32, i32);

/// The processes, by rank.
struct Ends<'a> {
    unified: &'a Unified,
    jobs: BTreeMap<u32, &'a Job<'a>>,
    /// What each rank that did not end as it should have had begun and not completed.
    open: BTreeMap<u32, Vec<Message>>,
    /// How many messages each rank began to send, or received, of the kinds that others wait for.
    counts: BTreeMap<u32, FxHashMap<Kind, u64>>,
}

impl<'a> Ends<'a> {
    fn new(unified: &'a Unified, jobs: &'a [Job<'a>]) -> Result<Self> {
        let ended_early = |job: &&Job<'_>| !matches!(job.process.definitions.end, Some((_, END_FINALIZED)));
        let open = jobs.par_iter().filter(ended_early).map(|job| Ok((job.rank, open(job)?))).collect::<Result<_>>()?;
        let by_rank = jobs.iter().map(|job| (job.rank, job)).collect();
        let mut ends = Self { unified, jobs: by_rank, open, counts: BTreeMap::new() };
        for (rank, job) in &ends.jobs {
            let Some(call) = job.unfinished() else { continue };
            let open = ends.found(*rank, ends.open.get(rank).map_or(&[], Vec::as_slice));
            for Need { message, comm, other, own, .. } in ends.needs(*rank, call).into_iter().flatten().chain(open) {
                ends.counts.entry(*rank).or_default().insert((message.sends, comm, message.peer, message.tag), 0);
                ends.counts.entry(other).or_default().insert((!message.sends, comm, own, message.tag), 0);
            }
        }
        for (rank, counts) in &mut ends.counts {
            let (Some(job), Some(local)) = (ends.jobs.get(rank), unified.local.get(rank)) else { continue };
            messages::each(job, |step| {
                let (Step::Begins(message @ Message { sends: true, .. }, _)
                | Step::Ends(message @ Message { sends: false, .. }, _)) = step
                else {
                    return;
                };
                let Some(comm) = local.comms.get(&message.object) else { return };
                for tag in [message.tag, TAG_ANY] {
                    if let Some(count) = counts.get_mut(&(message.sends, comm.id, message.peer, tag)) {
                        *count += 1;
                    }
                }
            })?;
        }
        Ok(ends)
    }

    fn comm(&self, rank: u32, object: u32) -> Option<&LocalComm> {
        self.unified.local.get(&rank)?.comms.get(&object)
    }

    /// The members of an intracommunicator in the order of their ranks.
    fn members(&self, comm: Id) -> &[u32] {
        let definition = self.unified.comms.get(comm as usize).filter(|comm| comm.remote.is_none());
        match definition.and_then(|comm| self.unified.groups.get(comm.group as usize)) {
            Some(Group::Ranks(ranks)) => ranks,
            _ => &[],
        }
    }

    /// Members that did not enter the collective operation that a rank is in.
    fn missing(&self, rank: u32, comm: Id) -> Vec<u32> {
        let whole = |rank: &u32| self.jobs.get(rank).filter(|job| job.is_whole());
        let Some(entered) = whole(&rank).map(|job| job.entered(comm)) else { return Vec::new() };
        let is_missing = |member: &u32| whole(member).is_some_and(|job| job.entered(comm) < entered);
        self.members(comm).iter().copied().filter(is_missing).collect()
    }

    /// A call in words: "`MPI_Recv` from rank 1, tag 7".
    fn described(&self, rank: u32, call: &Call) -> String {
        let function = &FUNCTIONS[usize::from(call.function)];
        let name = function.name;
        match function.class {
            Class::Send | Class::Isend | Class::Isendrecv => {
                format!("{name}{}", self.message(rank, &of(call, true), "to"))
            }
            Class::Sendrecv => {
                let to = self.message(rank, &of(call, true), "to");
                format!("{name}{to}, and{}", self.message(rank, &messages::receives(call), "from"))
            }
            Class::Recv | Class::Irecv | Class::Probe | Class::Mprobe => {
                format!("{name}{}", self.message(rank, &of(call, false), "from"))
            }
            Class::Wait | Class::Waitall | Class::Waitany | Class::Waitsome => {
                let one = match call.kind() {
                    kind if kind == RequestKind::Send as u8 => self.request(rank, &of(call, true)),
                    kind if kind == RequestKind::Receive as u8 => self.request(rank, &of(call, false)),
                    kind if kind == RequestKind::Collective as u8 => {
                        format!("a collective operation{}", self.place(rank, call))
                    }
                    _ => return name.into(),
                };
                match (call.bytes, self.still_open(rank, call)) {
                    (0 | 1, _) => format!("{name} for {one}"),
                    (count, None) => format!("{name} for {count} requests, among them {one}"),
                    (count, Some(open)) => format!("{name} for {count} requests, still open: {open}"),
                }
            }
            Class::Coll => {
                let comm = self.comm(rank, call.object);
                let missing = comm.map(|comm| self.missing(rank, comm.id)).unwrap_or_default();
                let names: Vec<String> = missing.iter().map(u32::to_string).collect();
                let missing = match &names[..] {
                    [] => String::new(),
                    [one] => format!(", where rank {one} is missing"),
                    [some @ .., last] if some.len() < NAMED => {
                        format!(", where ranks {} and {last} are missing", some.join(", "))
                    }
                    all => format!(", where {} ranks are missing", all.len()),
                };
                format!("{name}{}{missing}", self.place(rank, call))
            }
            _ => name.into(),
        }
    }

    /// The other rank and the tag of a message.
    fn message(&self, rank: u32, message: &Message, word: &str) -> String {
        let peer = match u32::try_from(message.peer) {
            Ok(peer) => self
                .comm(rank, message.object)
                .and_then(|comm| self.unified.world_rank(rank, comm, peer))
                .map_or_else(String::new, |peer| format!(" {word} rank {peer}")),
            Err(_) if message.peer == PEER_ANY => format!(" {word} any rank"),
            Err(_) => String::new(),
        };
        let tag = if message.tag == TAG_ANY { ", any tag".into() } else { format!(", tag {}", message.tag) };
        format!("{peer}{tag}")
    }

    fn request(&self, rank: u32, message: &Message) -> String {
        let (what, word) = if message.sends { ("send", "to") } else { ("receive", "from") };
        format!("a {what}{}", self.message(rank, message, word))
    }

    /// Which of several requests have nothing at their other ends: receives, or if they all have, sends.
    fn still_open(&self, rank: u32, call: &Call) -> Option<String> {
        let open = self.open.get(&rank).filter(|open| open.len() == call.bytes as usize)?;
        let needs = self.found(rank, open);
        let lacks = |sends: bool| {
            let found = needs.iter().filter(move |need| need.message.sends == sends && self.lacks(rank, need));
            found.map(|need| need.message).collect::<Vec<Message>>()
        };
        // Who may send to a receive from any rank is not known.
        let any = open.iter().filter(|message| !message.sends && message.peer == PEER_ANY).copied();
        let mut lacking: Vec<Message> = lacks(false).into_iter().chain(any).collect();
        if lacking.is_empty() {
            lacking = lacks(true);
        }
        let mut words: Vec<String> = lacking.iter().take(NAMED).map(|message| self.request(rank, message)).collect();
        if lacking.len() > NAMED {
            words.push(format!("{} more", lacking.len() - NAMED));
        }
        match &words[..] {
            [] => None,
            [one] => Some(one.clone()),
            [first @ .., last] => Some(format!("{}; and {last}", first.join("; "))),
        }
    }

    /// The communicator of a call.
    fn place(&self, rank: u32, call: &Call) -> String {
        let Some(comm) = self.comm(rank, call.object) else { return String::new() };
        match self.unified.comms.get(comm.id as usize).map(|comm| comm.name.as_str()) {
            None | Some("") => format!(" of {} ranks", comm.size),
            Some(name) => format!(" on {name} of {} ranks", comm.size),
        }
    }

    /// The only call that a process can be waiting in: with several threads, another one could still do something.
    fn stuck(&self, rank: u32) -> Option<&Call> {
        let job = self.jobs.get(&rank).filter(|job| job.is_whole() && job.process.definitions.end.is_none())?;
        job.unfinished().filter(|_| job.threads.len() == 1)
    }

    /// For which other ranks each waits; `buffered` are also those that are to receive what MPI may buffer.
    fn waiting(&self, buffered: bool) -> BTreeMap<u32, Vec<u32>> {
        let mut waiting = BTreeMap::new();
        for rank in self.jobs.keys() {
            let Some(call) = self.stuck(*rank) else { continue };
            let others = if FUNCTIONS[usize::from(call.function)].class == Class::Coll {
                self.comm(*rank, call.object).map(|comm| self.missing(*rank, comm.id)).unwrap_or_default()
            } else {
                let needs = self.needs(*rank, call).unwrap_or_default();
                let counts = |need: &&Need| buffered || !need.message.sends || need.message.is_synchronous;
                let lacking = needs.iter().filter(counts).filter(|need| self.lacks(*rank, need));
                lacking.map(|need| need.other).filter(|other| self.stuck(*other).is_some()).collect()
            };
            waiting.insert(*rank, others);
        }
        waiting
    }

    /// The messages that a call needs to return, all of them; none if any one would do, or it is not known which.
    fn needs(&self, rank: u32, call: &Call) -> Option<Vec<Need>> {
        let function = &FUNCTIONS[usize::from(call.function)];
        let messages = match function.class {
            // MPI_Bsend and MPI_Rsend do not wait for the receiver.
            Class::Send if ["MPI_Send", "MPI_Ssend"].contains(&function.name) => {
                vec![Message { is_synchronous: function.name == "MPI_Ssend", ..of(call, true) }]
            }
            Class::Sendrecv => vec![of(call, true), messages::receives(call)],
            Class::Recv => vec![of(call, false)],
            Class::Probe | Class::Mprobe if ["MPI_Probe", "MPI_Mprobe"].contains(&function.name) => {
                vec![of(call, false)]
            }
            Class::Waitall if call.bytes > 1 && self.open.get(&rank)?.len() == call.bytes as usize => {
                self.open[&rank].clone()
            }
            Class::Wait | Class::Waitall => match call.kind() {
                kind if kind == RequestKind::Send as u8 => vec![of(call, true)],
                kind if kind == RequestKind::Receive as u8 => vec![of(call, false)],
                _ => return None,
            },
            Class::Waitany | Class::Waitsome if call.bytes == 1 && call.kind() == RequestKind::Receive as u8 => {
                vec![of(call, false)]
            }
            _ => return None,
        };
        Some(self.found(rank, &messages))
    }

    /// Who is at the other ends of messages: processes of this run other than the rank itself.
    fn found(&self, rank: u32, messages: &[Message]) -> Vec<Need> {
        let mut seen: FxHashMap<(bool, u32, i32, i32), u64> = FxHashMap::default();
        let need = |message: Message| {
            let peer = u32::try_from(message.peer).ok()?;
            let comm = self.comm(rank, message.object)?;
            let other = self.unified.world_rank(rank, comm, peer).filter(|other| *other != rank)?;
            let same = seen.entry((message.sends, message.object, message.peer, message.tag)).or_default();
            *same += 1;
            Some(Need { message, comm: comm.id, other, own: comm.rank as i32, before: *same - 1 })
        };
        messages.iter().copied().filter_map(need).collect()
    }

    /// Whether the other end of a message was never begun, as far as both processes were recorded.
    fn lacks(&self, rank: u32, need: &Need) -> bool {
        let Need { message, comm, other, own, before } = *need;
        let count = |of: u32, sends: bool, peer: i32| {
            self.counts.get(&of).and_then(|counts| counts.get(&(sends, comm, peer, message.tag))).copied().unwrap_or(0)
        };
        let is_whole = |rank: u32| self.jobs.get(&rank).is_some_and(|job| job.is_whole());
        if !is_whole(rank) || !is_whole(other) {
            return true;
        }
        if !message.sends {
            return count(other, true, own) <= count(rank, false, message.peer) + before;
        }
        let open = self.open.get(&other).map_or(&[][..], Vec::as_slice);
        let is_here = |open: &&Message| self.comm(other, open.object).is_some_and(|known| known.id == comm);
        let takers = open.iter().filter(|open| open.takes(own, message.tag)).filter(is_here).count() as u64;
        count(rank, true, message.peer) > count(other, false, own) + takers
    }
}

/// What a process had begun and not completed, without blocking sends.
fn open(job: &Job<'_>) -> Result<Vec<Message>> {
    let mut blocking = Vec::new();
    // Threads are read one after the other, so a request may end here before it begins.
    let mut requests: BTreeMap<u64, (Option<Message>, i64)> = BTreeMap::new();
    messages::each(job, |step| match step {
        Step::Begins(message, 0) => blocking.extend(Some(message).filter(|message| !message.sends)),
        Step::Begins(message, id) => {
            let (begun, balance) = requests.entry(id).or_default();
            (*begun, *balance) = (Some(message), *balance + 1);
            if *balance == 0 {
                requests.remove(&id);
            }
        }
        Step::Ends(_, 0) => {}
        Step::Ends(_, id) | Step::Stops(id) => {
            let (_, balance) = requests.entry(id).or_default();
            *balance -= 1;
            if *balance == 0 {
                requests.remove(&id);
            }
        }
    })?;
    let requests = requests.into_values().filter(|(_, balance)| *balance > 0).filter_map(|(begun, _)| begun);
    Ok(blocking.into_iter().chain(requests).collect())
}

/// The message of a call that sends or receives.
fn of(call: &Call, sends: bool) -> Message {
    Message { sends, object: call.object, peer: call.peer, tag: call.tag, is_synchronous: false }
}

/// A circle among ranks of which each waits for others.
fn circle(waiting: &BTreeMap<u32, Vec<u32>>) -> Option<Vec<u32>> {
    // Ranks from which no circle can be reached.
    let mut done = std::collections::BTreeSet::new();
    for first in waiting.keys() {
        let mut path: Vec<(u32, &[u32])> = vec![(*first, &waiting[first])];
        while let Some((rank, others)) = path.last_mut() {
            let Some((next, rest)) = others.split_first() else {
                done.insert(*rank);
                path.pop();
                continue;
            };
            *others = rest;
            if let Some(from) = path.iter().position(|(rank, _)| rank == next) {
                return Some(path[from..].iter().map(|(rank, _)| *rank).collect());
            }
            if let Some(others) = waiting.get(next).filter(|_| !done.contains(next)) {
                path.push((*next, others));
            }
        }
    }
    None
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn circles_of_ranks_that_wait_are_found() {
        let of =
            |pairs: &[(u32, &[u32])]| circle(&pairs.iter().map(|(rank, others)| (*rank, others.to_vec())).collect());
        assert_eq!(of(&[(0, &[1]), (1, &[0])]), Some(vec![0, 1]));
        assert_eq!(of(&[(0, &[1]), (1, &[2]), (2, &[3]), (3, &[1])]), Some(vec![1, 2, 3]));
        assert_eq!(of(&[(0, &[1]), (1, &[2])]), None);
        assert_eq!(of(&[(0, &[1, 2]), (1, &[3]), (2, &[0])]), Some(vec![0, 2]), "a collective operation waits for all");
        assert_eq!(of(&[]), None);
    }
}
