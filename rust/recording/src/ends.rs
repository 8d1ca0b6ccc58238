//! What processes were doing that did not end as they should have, and which of them waited for each other.

use std::collections::BTreeMap;

use crate::error::Result;
use crate::expand::Job;
use crate::format::{Call, END_ABORTED, END_FINALIZED, PEER_ANY, RequestKind, TAG_ANY, flags};
use crate::functions::{Class, FUNCTIONS};
use crate::requests::listed;
use crate::spool::{Slots, Spool, call as decoded, extension};
use crate::unify::{Group, Id, LocalComm, Unified};

/// How many ranks are named where others are counted.
const NAMED: usize = 4;

/// Lines about the ends of processes, the one that explains the others first. `since` is the time of a process in seconds of the run.
pub(crate) fn told(
    spool: &Spool,
    unified: &Unified,
    jobs: &[Job<'_>],
    since: impl Fn(&Job<'_>, u64) -> f64,
) -> Vec<String> {
    let ends = Ends { unified, jobs: jobs.iter().map(|job| (job.rank, job)).collect() };
    let mut lines = Vec::new();
    for job in jobs {
        let rank = job.rank;
        let how = match job.process.definitions.end.map(|(_, reason)| reason) {
            Some(END_FINALIZED) => continue,
            Some(END_ABORTED) => {
                lines.push(format!("rank {rank} called MPI_Abort"));
                continue;
            }
            Some(_) => "ended without MPI_Finalize",
            // It stopped recording before, so how it ended is not known.
            None if !job.process.definitions.lost.is_empty() => continue,
            None => "ended early",
        };
        match job.unfinished().next() {
            None => lines.push(format!("rank {rank} {how}")),
            Some(call) => {
                let how = if job.process.definitions.end.is_some() { how } else { "ended" };
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
    if let Some(circle) = circle(&ends.waiting()).filter(|circle| ends.is_sure(circle)) {
        let names: Vec<String> = circle.iter().map(u32::to_string).collect();
        let line = match &names[..] {
            [first, second] => format!("ranks {first} and {second} waited for each other when they ended: a deadlock"),
            _ => format!("ranks {} waited for each other in a circle when they ended: a deadlock", names.join(", ")),
        };
        lines.insert(0, line);
    }
    lines
}

impl Job<'_> {
    /// Calls that did not return, one of a thread at most.
    fn unfinished(&self) -> impl Iterator<Item = &Call> {
        self.threads.iter().filter_map(|(_, survey, _)| survey.unfinished.as_ref())
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

/// A receive that a rank waits for: on which communicator, from whom there, with what tag.
#[derive(Debug, Clone, Copy)]
struct Receive {
    comm: Id,
    /// The other rank, and its number there.
    from: u32,
    peer: i32,
    tag: i32,
}

/// The processes, by rank.
struct Ends<'a> {
    unified: &'a Unified,
    jobs: BTreeMap<u32, &'a Job<'a>>,
}

impl Ends<'_> {
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
            Class::Send | Class::Isend | Class::Sendrecv | Class::Isendrecv => {
                format!("{name}{}", self.message(rank, call, "to"))
            }
            Class::Recv | Class::Irecv | Class::Probe | Class::Mprobe => {
                format!("{name}{}", self.message(rank, call, "from"))
            }
            Class::Wait | Class::Waitall | Class::Waitany | Class::Waitsome => {
                let what = match call.kind() {
                    kind if kind == RequestKind::Send as u8 => format!("a send{}", self.message(rank, call, "to")),
                    kind if kind == RequestKind::Receive as u8 => {
                        format!("a receive{}", self.message(rank, call, "from"))
                    }
                    kind if kind == RequestKind::Collective as u8 => {
                        format!("a collective operation{}", self.place(rank, call))
                    }
                    _ => return name.into(),
                };
                match call.bytes {
                    0 | 1 => format!("{name} for {what}"),
                    count => format!("{name} for {count} requests, among them {what}"),
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
    fn message(&self, rank: u32, call: &Call, word: &str) -> String {
        let peer = match u32::try_from(call.peer) {
            Ok(peer) => self
                .comm(rank, call.object)
                .and_then(|comm| self.unified.world_rank(rank, comm, peer))
                .map_or_else(String::new, |peer| format!(" {word} rank {peer}")),
            Err(_) if call.peer == PEER_ANY => format!(" {word} any rank"),
            Err(_) => String::new(),
        };
        let tag = if call.tag == TAG_ANY { ", any tag".into() } else { format!(", tag {}", call.tag) };
        format!("{peer}{tag}")
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
        job.unfinished().next().filter(|_| job.threads.len() == 1)
    }

    /// For which other ranks each waits.
    fn waiting(&self) -> BTreeMap<u32, Vec<u32>> {
        let mut waiting = BTreeMap::new();
        for rank in self.jobs.keys() {
            let Some(call) = self.stuck(*rank) else { continue };
            let others = if let Some(receive) = self.receive(*rank, call) {
                vec![receive.from]
            } else if FUNCTIONS[usize::from(call.function)].class == Class::Coll {
                self.comm(*rank, call.object).map(|comm| self.missing(*rank, comm.id)).unwrap_or_default()
            } else {
                continue;
            };
            waiting.insert(*rank, others);
        }
        waiting
    }

    /// The receive without which a call does not return.
    fn receive(&self, rank: u32, call: &Call) -> Option<Receive> {
        let function = &FUNCTIONS[usize::from(call.function)];
        let receives = match function.class {
            Class::Recv => true,
            Class::Wait | Class::Waitall => call.kind() == RequestKind::Receive as u8,
            Class::Waitany | Class::Waitsome => call.kind() == RequestKind::Receive as u8 && call.bytes == 1,
            _ => function.name == "MPI_Probe",
        };
        let peer = u32::try_from(call.peer).ok().filter(|_| receives)?;
        let comm = self.comm(rank, call.object)?;
        let from = self.unified.world_rank(rank, comm, peer).filter(|from| *from != rank)?;
        Some(Receive { comm: comm.id, from, peer: call.peer, tag: call.tag })
    }

    /// Whether none of the messages that the ranks of a circle wait for was on its way.
    fn is_sure(&self, circle: &[u32]) -> bool {
        circle.iter().all(|rank| {
            let receive = self.stuck(*rank).and_then(|call| self.receive(*rank, call));
            let Some(receive) = receive else { return true };
            let own = self.unified.local.get(rank).into_iter().flat_map(|local| local.comms.values());
            let Some(own) = own.into_iter().find(|comm| comm.id == receive.comm) else { return false };
            let sent = self.messages(receive.from, receive.comm, own.rank as i32, receive.tag, RequestKind::Send);
            let received = self.messages(*rank, receive.comm, receive.peer, receive.tag, RequestKind::Receive);
            matches!((sent, received), (Ok(sent), Ok(received)) if sent <= received)
        })
    }

    /// How many messages a process began to send to another one, or received from it.
    fn messages(&self, rank: u32, comm: Id, peer: i32, tag: i32, kind: RequestKind) -> Result<u64> {
        let Some(job) = self.jobs.get(&rank) else { return Ok(0) };
        let sends = kind == RequestKind::Send;
        let is = |object: u32, to: i32, with: i32| {
            to == peer && (tag == TAG_ANY || with == tag) && self.comm(rank, object).is_some_and(|of| of.id == comm)
        };
        let mut count = 0;
        for (number, survey, _) in job.threads {
            let mut slots = Slots::open(&job.process.threads[number])?;
            let mut class = Class::Plain;
            for _ in 0..survey.slots {
                let Some(slot) = slots.next()? else { break };
                if extension(slot).is_some() {
                    // Startall lists what it started, all others what they completed.
                    let counts = sends == (class == Class::Startall);
                    let listed = listed(slot).filter(|item| counts && item.kind == kind as u8);
                    count += listed.filter(|item| is(item.object, item.peer, item.tag)).count() as u64;
                    continue;
                }
                let call = decoded(slot);
                class = FUNCTIONS[usize::from(call.function)].class;
                count += u64::from(if sends {
                    let starts = matches!(class, Class::Send | Class::Isend | Class::Sendrecv | Class::Isendrecv)
                        || class == Class::Start && call.kind() == kind as u8;
                    starts && is(call.object, call.peer, call.tag)
                } else {
                    let receives = matches!(class, Class::Recv | Class::Mrecv | Class::Sendrecv)
                        || matches!(class, Class::Wait | Class::Waitany | Class::Test | Class::Testany)
                            && call.kind() == kind as u8
                            && call.flags & flags::LISTED == 0;
                    receives
                        && call.leave != 0
                        && call.flags & flags::FAILED == 0
                        && is(call.object, call.source, call.arrived_tag)
                });
            }
        }
        Ok(count)
    }
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
