//! Waiting in collective operations: barriers, N-to-N, 1-to-N, N-to-1, prefix operations, those of neighbors, start and
//! end of the library.
//!
//! ```text
//!  0  ---[ Barrier |         |   ]--
//!  1  -------------[ Barrier | ]----      waiting(0) = latest begin − own begin
//!                            |---|        completion(0) = own end − first end
//! ```
//!
//! *Times* are those of the begin and end records, which the measurement writes just inside the call; of Enter and
//! Leave for `MPI_Init` and `MPI_Finalize`. *Ties* go to the lowest rank. Every waiting time ends at the latest with the
//! rank's own call; if this shortens it, the clocks disagree, which is counted.
//!
//! Who needs whom is decided by [`crate::matching::flow`].
//!
//! *Source*: specification.md#collective-operations; thesis, equation 2.2. The functions state the formulas.

use super::collective_sync::{CollectiveSync, CollectiveSyncs, Participants};
use super::device_part::DevicePart;
use super::findings::Findings;
use super::wait_state::WaitState;
use crate::Result;
use crate::diagnostics::{DiagnosticKind, Diagnostics, Place};
use crate::ids::{CommId, LocationId, ProcessId};
use crate::matching::collectives::{Kind, Member, match_all, neighborhood, neighbors};
use crate::matching::flow::{Flow, Needs};
use crate::matching::intercomms;
use crate::matching::trees::{Part, inner_waits};
use crate::parallel::iter::prelude::*;
use crate::severity::{Accumulator, Metric};
use crate::trace::Trace;
use crate::trace::columns::{CREATE_HANDLE, FILE_HANDLE};
use crate::trace::topologies::Topology;

/// What collective operations give.
#[derive(Debug)]
pub struct Detected<R> {
    /// Wait states, by shard.
    pub findings: Vec<Findings>,
    /// Which processes synchronized with which, by owner of instances.
    pub syncs: Vec<CollectiveSyncs>,
    /// What else was collected, by owner of instances.
    pub more: Vec<R>,
    /// What is odd about them.
    pub diagnostics: Diagnostics,
}

/// Detects all wait states in collective operations, `with_syncs` if it is needed who synchronized with whom. `also` collects
/// what else is to be known of each instance.
pub fn detect<R: Default + Send>(
    trace: &Trace,
    with_syncs: bool,
    also: impl Fn(&mut R, Kind, &[Member]) + Sync,
) -> Result<Detected<R>> {
    let begin = |members: usize| {
        let parts = Vec::with_capacity(if with_syncs { members } else { 0 });
        let collective_syncs = CollectiveSyncs { parts, ..CollectiveSyncs::default() };
        let waits = Vec::with_capacity(members);
        (Found { waits, collective_syncs, keeps_syncs: with_syncs, ..Found::default() }, R::default())
    };
    let evaluate = |(found, more): &mut (Found, R), kind, members: &[Member]| {
        found.evaluate(trace, kind, members);
        also(more, kind, members);
    };
    let (mut found, mut diagnostics) = match_all(trace, |_, _, member| member, begin, evaluate)?;
    let mut between = begin(0);
    of_groups(trace, &mut diagnostics, |kind, members| {
        if let Some(flow) = Flow::recorded(kind, members) {
            between.0.alone(kind, flow, members);
        }
        also(&mut between.1, kind, members);
    })?;
    found.push(between);
    let (found, more): (Vec<Found>, Vec<R>) = found.into_iter().unzip();
    let sent =
        found.into_par_iter().map(|Found { waits, device_parts, diagnostics, mut collective_syncs, sets, .. }| {
            let process = |location: LocationId| trace.definitions.locations[location].process;
            for set in sets {
                let mut set: Vec<ProcessId> = set.into_iter().map(process).collect();
                set.sort_unstable();
                collective_syncs.sets.push(set);
            }
            let mut outbox = trace.exchange.outbox();
            for wait in waits {
                outbox.push(trace.shard_of[wait.location], wait);
            }
            let mut parts = trace.exchange.outbox();
            for part in device_parts {
                parts.push(trace.shard_of[part.kernel.0], part);
            }
            (outbox, (parts, (collective_syncs, diagnostics)))
        });
    let (outgoing, rest): (Vec<_>, Vec<_>) = sent.unzip();
    let (parts, rest): (Vec<_>, Vec<_>) = rest.into_iter().unzip();
    let device_parts = trace.exchange.alltoallv(parts)?;
    let mut syncs = Vec::with_capacity(rest.len());
    for (of_owner, owner_notes) in rest {
        syncs.push(of_owner);
        diagnostics.merge(owner_notes);
    }
    let findings = trace
        .exchange
        .alltoallv(outgoing)?
        .into_par_iter()
        .zip(device_parts)
        .zip(trace.par_shards())
        .map(|((inbox, device_parts), shard)| {
            let mut waits: Vec<WaitState> = inbox.into_vec();
            // Each owner sends its waits in order, so a stable sort only has to merge them.
            waits.sort_by_key(|wait| (wait.location, wait.instance, wait.kind));
            let mut cells = Accumulator::new(&trace.tree);
            for of_location in waits.chunk_by(|a, b| a.location == b.location) {
                for wait in of_location {
                    cells.add(wait.kind, shard.callpath(wait.instance), wait.waiting);
                }
                cells.end_location(of_location[0].location);
            }
            let device_parts = device_parts.into_vec();
            Findings { severities: cells.finish(), waits, device_parts, ..Findings::default() }
        })
        .collect();
    Ok(Detected { findings, syncs, more, diagnostics })
}

/// Passes on the ways of data in the blocking operations on intercommunicators. Collective.
fn of_groups(trace: &Trace, diagnostics: &mut Diagnostics, mut each: impl FnMut(Kind, &[Member])) -> Result<()> {
    let operations = intercomms::operations(trace, |_, _, _, _| ())?;
    for ((comm, _, _), groups) in operations.into_iter().filter(|((_, blocks, _), _)| *blocks) {
        let size = groups[0].len() + groups[1].len();
        let place = groups.iter().flatten().next().map(|(first, ())| Place::at(first.location, first.begin));
        let Some(operation) = intercomms::operation(trace, comm, &groups) else {
            diagnostics.count(DiagnosticKind::IncompleteCollective, 1, place);
            continue;
        };
        let Some(ways) = intercomms::ways(operation, groups) else {
            diagnostics.count(DiagnosticKind::InterCommunicatorCollective, size as u64, place);
            continue;
        };
        for (kind, members) in ways {
            let members: Vec<Member> = members.into_iter().map(|(member, ())| member).collect();
            each(kind, &members);
        }
    }
    Ok(())
}

/// Wait states and synchronizations of the instances that one shard owns.
#[derive(Default)]
struct Found {
    waits: Vec<WaitState>,
    device_parts: Vec<DevicePart>,
    diagnostics: Diagnostics,
    collective_syncs: CollectiveSyncs,
    /// Locations that synchronized, for the instances in which only some members did.
    sets: Vec<Vec<LocationId>>,
    keeps_syncs: bool,
    /// For reuse.
    order: Vec<u32>,
}

impl Found {
    fn evaluate(&mut self, trace: &Trace, kind: Kind, members: &[Member]) {
        if trace.definitions.locations[members[0].location].is_stream() {
            return self.on_devices(kind, members);
        }
        if kind == Kind::Init {
            return self.everybody(members, None, Some(Metric::InitCompletion));
        }
        if let Some(flow) = Flow::inferred(kind, members) {
            return self.at_once(kind, flow, members);
        }
        let Some(flow) = Flow::recorded(kind, members) else { return };
        match (kind, flow.needs) {
            (Kind::Finalize | Kind::Barrier, _) => self.at_once(kind, flow, members),
            (Kind::AllToAll, _) => self.receivers(flow, members),
            (_, Needs::All) => {
                if kind == Kind::AllToOne {
                    self.tree(members);
                }
                self.alone(kind, flow, members);
            }
            (_, Needs::Lower) => self.scan(flow, members),
            (_, Needs::Near) => self.neighborhood(members, neighborhood(trace, members)),
        }
    }

    /// Kernels wait for the latest of those whose data they need (specification.md#device-collectives).
    fn on_devices(&mut self, kind: Kind, members: &[Member]) {
        let Some(flow) = Flow::of_kernels(kind, members[0].operation) else { return };
        let (metric, ties) = match kind {
            Kind::Barrier => (Metric::CclBarrierWait, true),
            Kind::OneToAll => (Metric::CclLateBroadcast, false),
            Kind::AllToOne => (Metric::CclEarlyReduce, false),
            _ => (Metric::CclWaitNxN, true),
        };
        let Some(cause) = latest(members.iter().filter(|member| flow.gives(*member))) else { return };
        for member in members {
            let needs = flow.takes(member);
            if needs && cause.begin > member.end {
                self.diagnostics.add(DiagnosticKind::ClockViolationCollective, member.location, member.end);
            }
            let waiting = if needs { (cause.begin.min(member.end) - member.begin).max(0) } else { 0 };
            self.device_parts.push(DevicePart {
                kind: metric,
                kernel: (member.location, member.instance),
                waiting,
                exposed: 0,
                cause: (cause.location, cause.instance),
                tie: ties.then(|| member.operation_id()),
                comm: member.operation_id().0,
                bytes: member.sent.max(member.received),
            });
        }
    }

    /// Records that `member` waits for `cause` until `cause.begin`.
    fn wait(&mut self, kind: Metric, member: &Member, cause: &Member) {
        if cause.begin > member.end {
            self.diagnostics.add(DiagnosticKind::ClockViolationCollective, member.location, member.end);
        }
        let waiting = cause.begin.min(member.end) - member.begin;
        if waiting > 0 {
            let call = (member.location, member.instance);
            self.waits.push(WaitState::new(kind, call, waiting, (cause.location, cause.instance)));
        }
    }

    /// Records that `member` waits for `cause`, and synchronizes with it alone; its time after `met` counts as work.
    fn wait_alone(&mut self, kind: Metric, member: &Member, cause: &Member, met: i64) {
        self.wait(kind, member, cause);
        if self.keeps_syncs {
            self.collective_syncs.parts.push(collective_sync(kind, member, cause, Participants::Cause, met));
        }
    }

    /// Records a member's completion time: its time after both the first end and the end of its own waiting.
    fn completion(&mut self, kind: Metric, member: &Member, latest: i64, first: i64) {
        let completion = member.end - first.max(latest.min(member.end));
        if completion > 0 {
            self.waits.push(WaitState::without_cause(kind, (member.location, member.instance), completion));
        }
    }

    /// Every member waits for the latest (thesis, equation 2.2): `latest = max B`, `first = min X`,
    /// waiting = `[min(latest, X) − B]+`, completion = `[X − max(first, min(latest, X))]+`
    /// (specification.md#barrier-start-and-end).
    fn everybody(&mut self, members: &[Member], waiting: Option<Metric>, completion: Option<Metric>) {
        if let Some(cause) = latest(members) {
            self.synchronize(members.iter(), Participants::All, cause, waiting, completion);
        }
    }

    fn synchronize<'a>(
        &mut self,
        members: impl Iterator<Item = &'a Member> + Clone,
        with: Participants,
        cause: &Member,
        waiting: Option<Metric>,
        completion: Option<Metric>,
    ) {
        let first = first_end(members.clone());
        for member in members {
            if let Some(kind) = waiting {
                self.wait(kind, member, cause);
            }
            if let Some(kind) = completion {
                self.completion(kind, member, cause.begin, first);
            }
            if let Some(kind) = waiting.or(completion).filter(|_| self.keeps_syncs) {
                let begin = cause.begin.min(member.end);
                let collective_sync = collective_sync(kind, member, cause, with, first.max(begin));
                // Late processes are not charged for waiting in MPI_Init; only its uneven completion counts.
                let waiting = if waiting.is_some() { collective_sync.waiting } else { 0 };
                self.collective_syncs.parts.push(CollectiveSync { waiting, ..collective_sync });
            }
        }
    }

    /// Wait at Barrier, at Finalize; at N x N, at Collective I/O, and those that are inferred, if all are in their calls at
    /// the same time: whoever takes part waits for the latest (specification.md#n-to-n, #collective-io,
    /// #inferred-synchronization).
    fn at_once(&mut self, kind: Kind, flow: Flow, members: &[Member]) {
        let (waiting, completion) = match (kind, members[0].operation) {
            (Kind::Finalize, _) => (Metric::FinalizeWait, None),
            (Kind::Barrier, _) => (Metric::BarrierWait, Some(Metric::BarrierCompletion)),
            (Kind::AllToAll, _) => (Metric::WaitNxN, Some(Metric::NxNCompletion)),
            (Kind::Io, _) => (Metric::IoWait, None),
            (_, CREATE_HANDLE) => (Metric::CreationWait, None),
            (_, FILE_HANDLE) => (Metric::FileWait, None),
            _ => (Metric::AlltoallvWait, None),
        };
        let taking = || members.iter().filter(|member| flow.takes(*member));
        if let Some(last) = latest(taking()) {
            let with = self.with(members, taking());
            self.synchronize(taking(), with, last, Some(waiting), completion);
        }
    }

    /// Wait at N x N, if not all are in their calls at the same time: only members that receive from a later one, and
    /// the latest sender, synchronize (specification.md#n-to-n).
    fn receivers(&mut self, flow: Flow, members: &[Member]) {
        let Some(last) = latest(members.iter().filter(|member| flow.gives(*member))) else { return };
        let synchronizing =
            |member: &&Member| (flow.takes(*member) && member.begin < last.begin) || std::ptr::eq(*member, last);
        let with = self.with(members, members.iter().filter(synchronizing));
        let (waiting, completion) = (Some(Metric::WaitNxN), Some(Metric::NxNCompletion));
        self.synchronize(members.iter().filter(synchronizing), with, last, waiting, completion);
    }

    /// Wait at Neighborhood: a member waits for the latest of its neighbors
    /// (specification.md#neighborhood-collective-operations).
    fn neighborhood(&mut self, members: &[Member], topology: Option<&Topology>) {
        let Some(topology) = topology else {
            let place = Place::at(members[0].location, members[0].begin);
            return self.diagnostics.count(DiagnosticKind::UnknownNeighbors, members.len() as u64, Some(place));
        };
        for member in members {
            if let Some(last) = latest(neighbors(topology, members, member.rank)) {
                self.wait(Metric::NeighborWait, member, last);
            }
        }
    }

    /// The members that synchronize: `All`, or a set if some do not.
    fn with<'a>(&mut self, members: &[Member], some: impl Iterator<Item = &'a Member> + Clone) -> Participants {
        if !self.keeps_syncs || some.clone().count() == members.len() {
            return Participants::All;
        }
        self.sets.push(some.map(|member| member.location).collect());
        Participants::Set(self.sets.len() as u32 - 1)
    }

    /// Late Broadcast, Early Reduce, and one way of an operation on an intercommunicator: members that take wait for the
    /// latest that gives, each by itself (specification.md#1-to-n, #n-to-1, #intercommunicators).
    fn alone(&mut self, kind: Kind, flow: Flow, members: &[Member]) {
        let metric = match kind {
            Kind::OneToAll => Metric::LateBroadcast,
            Kind::AllToOne => Metric::EarlyReduce,
            Kind::OtherGroup => Metric::BarrierWait,
            _ => Metric::WaitNxN,
        };
        let Some(last) = latest(members.iter().filter(|member| flow.gives(*member))) else { return };
        let early = || members.iter().filter(|member| flow.takes(*member) && member.begin < last.begin);
        let met = if kind == Kind::OneToAll { first_end(early()).max(last.begin) } else { last.begin };
        for member in early() {
            self.wait_alone(metric, member, last, met);
        }
    }

    /// Wait in Tree: a member that sends waits for the last one that comes before it leaves, if it leaves right
    /// after that (specification.md#trees).
    fn tree(&mut self, members: &[Member]) {
        let is_root = |member: &Member| member.rank == member.root && member.received > 0;
        let Some(root) = members.iter().position(is_root) else { return };
        let part = |i: usize| {
            let member: &Member = &members[i];
            Part { begin: member.begin, end: member.end, has_data: member.sent > 0 }
        };
        let mut order = std::mem::take(&mut self.order);
        inner_waits((root, members.len()), part, &mut order, |i, cause| {
            let (member, cause) = (&members[i], &members[cause]);
            self.wait_alone(Metric::TreeWait, member, cause, cause.begin);
        });
        self.order = order;
    }

    /// Early Scan: a member that takes waits for the latest giver of a lower rank
    /// (specification.md#prefix-operations).
    fn scan(&mut self, flow: Flow, members: &[Member]) {
        let mut last: Option<&Member> = None;
        for member in members {
            if let Some(last) = last.filter(|last| flow.takes(member) && member.begin < last.begin) {
                self.wait_alone(Metric::EarlyScan, member, last, last.begin);
            }
            if flow.gives(member) && last.is_none_or(|last| last.begin < member.begin) {
                last = Some(member);
            }
        }
    }
}

/// A member's part in the synchronization; its time after `met` counts as work.
fn collective_sync(kind: Metric, member: &Member, cause: &Member, with: Participants, met: i64) -> CollectiveSync {
    CollectiveSync {
        kind,
        call: (member.location, member.instance),
        cause: (cause.location, cause.instance),
        waiting: (cause.begin.min(member.end) - member.begin).max(0),
        completion: (member.end - met).max(0),
        cause_completion: (cause.end - met).max(0),
        comm: member.comm().unwrap_or(CommId::NONE),
        with,
    }
}

/// The member that begins last, with the lowest rank on a tie.
fn latest<'a>(members: impl IntoIterator<Item = &'a Member>) -> Option<&'a Member> {
    members.into_iter().reduce(|last, member| if member.begin > last.begin { member } else { last })
}

/// When the first member ends.
fn first_end<'a>(members: impl IntoIterator<Item = &'a Member>) -> i64 {
    members.into_iter().map(|member| member.end).min().unwrap_or(i64::MAX)
}
