//! Kernels of NCCL: what is known of the operations that they are part of.
//!
//! A kernel belongs to the call of NCCL around its launch; those of a group are launched where the group ends.

use std::collections::{BTreeMap, BTreeSet};

use rustc_hash::FxHashMap;
use whywait_devices::{CommKernels, Flow, Group, Kind, Member, NONE, Part, Rank};

use crate::host::{Call, Issue, Launch};
use crate::names::Names;
use crate::payload::Payload;
use crate::rows::{Task, Work};

/// What is known of a process when its kernels are looked at.
pub(crate) struct Material<'a> {
    pub(crate) names: &'a Names,
    pub(crate) works: &'a [Work],
    pub(crate) launches: &'a [Launch],
    /// Names and operations of the ranges around launches.
    pub(crate) ranges: &'a [(u32, u64)],
    /// Calls of each thread, and what they say.
    pub(crate) issues: &'a [Vec<Issue>],
    pub(crate) operations: &'a [Payload],
}

/// What a process says of a communicator where it makes it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Made {
    pub(crate) comm: u64,
    pub(crate) size: u64,
    pub(crate) rank: u32,
}

/// The communicators that a process says it makes.
pub(crate) fn made(operations: &[Payload]) -> Vec<Made> {
    let made = |payload: &Payload| {
        let rank = u32::try_from(payload.rank?).ok()?;
        let size = payload.size.filter(|size| u64::from(rank) < *size)?;
        Some(Made { comm: payload.comm?, size, rank })
    };
    operations.iter().filter_map(made).collect()
}

/// The kind of an operation by the name of its call.
pub(crate) fn kind(name: &str) -> Option<Kind> {
    let name = name.strip_prefix("nccl").or_else(|| name.strip_prefix("pnccl"))?;
    if name.eq_ignore_ascii_case("bcast") { Some(Kind::Broadcast) } else { Kind::of_operation(name) }
}

/// Finds the kernels that communicate, by their names.
pub(crate) fn find_operations(works: &mut [Work], names: &Names, kernels: &CommKernels) {
    let mut by_name: FxHashMap<u32, Option<Kind>> = FxHashMap::default();
    for work in works.iter_mut().filter(|work| work.task == Task::Kernel) {
        let known = || kernels.kind(names.get(work.name));
        work.operation = *by_name.entry(work.name).or_insert_with(known);
    }
}

/// The parts of a process in operations; for each work its own, or [`NONE`].
pub(crate) fn find(material: &Material<'_>) -> (Vec<Member>, Vec<u32>) {
    let Material { works, launches, .. } = *material;
    let mut communicating: Vec<(u32, Kind)> =
        (0..).zip(works).filter_map(|(place, work)| Some((place, work.operation?))).collect();
    let launch = |work: u32| launches.get(works[work as usize].launch as usize)?.call;
    // Calls come before the launches of their kernels, on the same thread.
    communicating.sort_by_key(|(work, _)| {
        let launched = launch(*work).map(|launch| (launch.thread, launch.begin));
        (launched.is_none(), launched, works[*work as usize].begin)
    });
    let mut pending: FxHashMap<u32, Pending> = FxHashMap::default();
    let mut members = Vec::with_capacity(communicating.len());
    let mut of_work = vec![NONE; works.len()];
    for (work, by_name) in communicating {
        let parts = match launch(work) {
            Some(launch) => pending.entry(launch.thread).or_default().take(material, &launch),
            None => Vec::new(),
        };
        of_work[work as usize] = members.len() as u32;
        members.push(material.member(&works[work as usize], launch(work), by_name, &parts));
    }
    (members, of_work)
}

/// The calls of a thread whose kernels are not launched yet.
#[derive(Default)]
struct Pending {
    /// How many calls of the thread were looked at.
    seen: usize,
    calls: Vec<Issue>,
}

impl Pending {
    /// The calls that a launched kernel carries out.
    fn take(&mut self, material: &Material<'_>, launch: &Call) -> Vec<Issue> {
        let all = material.issues.get(launch.thread as usize).map_or(&[][..], Vec::as_slice);
        let until = self.seen + all[self.seen..].partition_point(|call| call.begin <= launch.begin);
        let is_operation = |call: &Issue| kind(material.names.get(call.name)).is_some();
        self.calls.extend(all[self.seen..until].iter().copied().filter(is_operation));
        self.seen = until;
        let Some((name, operation)) = material.ranges.get(launch.nccl as usize).copied() else {
            self.calls.clear();
            return Vec::new();
        };
        if kind(material.names.get(name)).is_some() {
            // It is launched in the call itself: others before it had no kernel.
            self.calls.clear();
            return vec![Issue { begin: launch.begin, name, operation }];
        }
        // A group has a kernel for each communicator.
        let comm = |call: &Issue| material.payload(call).and_then(|payload| payload.comm);
        let Some(first) = self.calls.first().map(comm) else { return Vec::new() };
        let (own, rest) = self.calls.iter().partition(|call| comm(call) == first);
        self.calls = rest;
        own
    }
}

impl Material<'_> {
    fn payload(&self, call: &Issue) -> Option<&Payload> {
        self.operations.get(usize::try_from(call.operation).ok()?)
    }

    fn member(&self, work: &Work, launch: Option<Call>, by_name: Kind, calls: &[Issue]) -> Member {
        let kinds = || calls.iter().filter_map(|call| kind(self.names.get(call.name)));
        let payloads = || calls.iter().filter_map(|call| self.payload(call));
        let messages: Vec<Part> = calls
            .iter()
            .filter_map(|call| {
                let kind = kind(self.names.get(call.name)).filter(|kind| kind.is_message())?;
                let payload = self.payload(call).copied().unwrap_or_default();
                let peer = payload.peer.and_then(|peer| u32::try_from(peer).ok());
                let bytes = payload.bytes.unwrap_or(0);
                Some(Part { is_send: kind == Kind::Send, peer, sequence: None, bytes })
            })
            .collect();
        let first = kinds().next();
        let is_one = kinds().all(|kind| Some(kind) == first);
        let kind = match first {
            None => by_name,
            Some(first) if is_one || messages.len() == calls.len() => first,
            Some(_) => Kind::Other,
        };
        let messages = if kind.is_message() { messages } else { Vec::new() };
        let bytes = payloads().fold(0_u64, |sum, payload| sum.saturating_add(payload.bytes.unwrap_or(0)));
        let is_rooted = matches!(kind.flow(), Flow::OneToAll | Flow::AllToOne);
        let root = payloads().find_map(|payload| payload.root).filter(|_| is_rooted);
        let group = payloads().find_map(|payload| payload.comm).map(|comm| Group {
            name: format!("{comm:#x}"),
            description: String::new(),
            ranks: None,
            size: None,
        });
        Member {
            begin: work.begin,
            end: work.end,
            order: launch.map_or(work.begin, |launch| launch.begin),
            kind,
            step: None,
            group,
            sequence: None,
            comms: None,
            // Until the ranks of the group are known, roots and peers are those in it.
            root: root.and_then(|root| u32::try_from(root).ok()),
            sent: bytes,
            received: bytes,
            elements: bytes,
            messages,
            host: None,
            is_ambiguous: false,
        }
    }
}

/// What all ranks together know of a communicator.
#[derive(Default)]
struct Known {
    size: Option<u64>,
    /// Ranks of the world by their ranks in it, as far as these are said.
    said: BTreeMap<u32, u32>,
    /// Ranks of the world that use it.
    users: BTreeSet<u32>,
}

/// What a process says of its communicators.
#[derive(Debug, Clone, Default)]
pub(crate) struct Said {
    pub(crate) made: Vec<Made>,
    /// Number of its operations of which it does not say the communicator.
    pub(crate) unsaid: u64,
}

/// What is inferred of communicators.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct Inferred {
    /// Roots and peers.
    pub(crate) partners: u64,
    /// Operations whose communicator does not count, since nobody says which ranks it has, and one that may be says nothing.
    pub(crate) forgotten: u64,
}

/// Completes the groups of members by what other ranks say of them.
pub(crate) fn complete(ranks: &mut [Rank], said: &[Said]) -> Inferred {
    let mut all: BTreeMap<String, Known> = BTreeMap::new();
    for (rank, said) in ranks.iter().zip(said) {
        for Made { comm, size, rank: own } in &said.made {
            let known = all.entry(format!("{comm:#x}")).or_default();
            known.size = Some(*size);
            known.said.insert(*own, rank.number);
        }
        for group in rank.members.iter().filter_map(|member| member.group.as_ref()) {
            if !all.get(&group.name).is_some_and(|known| known.users.contains(&rank.number)) {
                all.entry(group.name.clone()).or_default().users.insert(rank.number);
            }
        }
    }
    let mut inferred = Inferred::default();
    let is_silent =
        |(rank, said): (&Rank, &Said)| said.unsaid > 0 && rank.members.iter().all(|member| member.group.is_none());
    if ranks.iter().zip(said).any(is_silent) {
        for member in ranks.iter_mut().flat_map(|rank| &mut rank.members) {
            let known = member.group.as_ref().and_then(|group| all.get(&group.name));
            if known.is_some_and(|known| known.size.is_none()) {
                (member.group, member.root) = (None, None);
                member.messages.iter_mut().for_each(|part| part.peer = None);
                inferred.forgotten += 1;
            }
        }
    }
    // The ranks of the world in order of those in the group.
    let mut orders: BTreeMap<&str, (Vec<u32>, bool)> = BTreeMap::new();
    for (name, known) in &all {
        let is_said = known.size == Some(known.said.len() as u64);
        let is_complete = known.size.is_none_or(|size| size == known.users.len() as u64);
        if is_said {
            orders.insert(name, (known.said.values().copied().collect(), true));
        } else if is_complete {
            orders.insert(name, (known.users.iter().copied().collect(), false));
        }
    }
    for rank in ranks {
        for member in &mut rank.members {
            let order = member.group.as_ref().and_then(|group| orders.get(group.name.as_str()));
            let mut in_world = |rank: u32| {
                let (order, is_said) = order?;
                inferred.partners += u64::from(!is_said);
                order.get(rank as usize).copied()
            };
            member.root = member.root.and_then(&mut in_world);
            for part in &mut member.messages {
                part.peer = part.peer.and_then(&mut in_world);
            }
            if let Some(group) = &mut member.group {
                group.ranks = order.map(|(order, _)| order.clone());
                group.size = all.get(&group.name).and_then(|known| known.size);
            }
        }
    }
    inferred
}
