//! Matching of collective operations: the n-th call on a communicator is the same instance at every member.

use bitcode::{Decode, Encode};
use rustc_hash::FxHashMap;

use super::time_order::in_time_order;
use super::unrecorded;
use super::worlds::worlds;
use crate::Result;
use crate::diagnostics::{DiagnosticKind, Diagnostics, Place};
use crate::ids::{CommId, InstanceId, LocationId, ProcessId};
use crate::parallel::exchange::{Outbox, Row};
use crate::parallel::iter::prelude::*;
use crate::parallel::rounds::Rounds;
use crate::trace::columns::{COLLECTIVE_IO, Collective, NEIGHBORHOOD, Nonblocking};
use crate::trace::definition_index::Members;
use crate::trace::topologies::Topology;
use crate::trace::{NONE, RegionClass, Shard, Trace};

/// Kinds of operations by data flow, including start-up and shutdown of the library.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    /// `MPI_Init`.
    Init,
    /// `MPI_Finalize`.
    Finalize,
    /// Every member waits for all others, without data.
    Barrier,
    /// The root sends.
    OneToAll,
    /// The root receives.
    AllToOne,
    /// Every member sends and receives.
    AllToAll,
    /// Every member that receives waits for all that send, without data: a barrier of two groups.
    OtherGroup,
    /// Prefix operations.
    Scan,
    /// Every member exchanges data with its neighbors in a topology.
    Neighborhood,
    /// Collective reads and writes of files.
    Io,
    /// Not analyzed: the dependencies are not recorded.
    Undecided,
}

impl Kind {
    /// Kind of a `CollectiveOp`.
    pub fn of(operation: u8) -> Self {
        match operation {
            0 => Self::Barrier,
            1 | 4 | 5 => Self::OneToAll,
            2 | 3 | 12 => Self::AllToOne,
            6 | 7 | 8 | 11 | 13 | 16 => Self::AllToAll,
            14 | 15 => Self::Scan,
            COLLECTIVE_IO => Self::Io,
            _ if operation & NEIGHBORHOOD != 0 => Self::Neighborhood,
            _ => Self::Undecided,
        }
    }
}

/// Of `CollectiveOp`: the records do not tell who sends to whom.
pub(crate) const ALLTOALLV: u8 = 9;
/// The same, with a type for each.
pub(crate) const ALLTOALLW: u8 = 10;

/// One member's part in an instance.
#[derive(Clone, Copy, Debug, Encode, Decode)]
pub struct Member {
    /// Begin of the operation by its record, ticks.
    pub begin: i64,
    /// End of the operation by its record, ticks.
    pub end: i64,
    /// Bytes sent.
    pub sent: u64,
    /// Bytes received.
    pub received: u64,
    /// Communicator, or one of the two constants below.
    comm: CommId,
    /// Number of the call on the communicator.
    sequence: u32,
    /// Rank in the communicator.
    pub rank: u32,
    /// Rank of the root.
    pub root: u32,
    /// The location.
    pub location: LocationId,
    /// Region instance of the call.
    pub instance: InstanceId,
    /// The operation, a value of `CollectiveOp`, or [`NEIGHBORHOOD`] with one.
    pub operation: u8,
}

impl Member {
    /// A member's part in a blocking operation, its `sequence`-th call on the communicator.
    pub fn blocking(row: &Collective, sequence: u32, rank: u32, location: LocationId) -> Self {
        let &Collective { begin, end, sent, received, comm, root, instance, operation } = row;
        Self { begin, end, sent, received, comm, sequence, rank, root, location, instance, operation }
    }

    /// A member's part in a non-blocking operation, the `sequence`-th that it starts on the communicator.
    pub fn nonblocking(
        row: &Nonblocking,
        (begin, end): (i64, i64),
        sequence: u32,
        rank: u32,
        location: LocationId,
    ) -> Self {
        let &Nonblocking { complete: instance, sent, received, comm, root, operation, .. } = row;
        Self { begin, end, sent, received, comm, sequence, rank, root, location, instance, operation }
    }

    /// Its communicator and its number there: the same for all members of an operation.
    pub(crate) fn operation_id(&self) -> (CommId, u32) {
        (self.comm, self.sequence)
    }

    /// Index of the communicator; `None` for start-up and shutdown of the library, and for calls without records.
    pub fn comm(&self) -> Option<CommId> {
        (self.comm.number() < UNRECORDED).then_some(self.comm)
    }
}

/// The topology on which the members of an operation, ordered by rank, are neighbors, if that is known. If one ends before a
/// neighbor begins, and no record tells the communicator, they are not neighbors in this operation
/// (specification.md#neighborhood-collective-operations).
pub(crate) fn neighborhood<'a>(trace: &'a Trace, members: &[Member]) -> Option<&'a Topology> {
    let topologies = &trace.definitions.topologies;
    if let Some(comm) = members[0].comm() {
        return topologies.of(comm);
    }
    let process = trace.definitions.locations[members[0].location].process;
    let topology = topologies.get(topologies.only(process)?);
    let is_possible =
        |member: &Member| neighbors(topology, members, member.rank).all(|other| other.begin <= member.end);
    members.iter().all(is_possible).then_some(topology)
}

/// The neighbors of a rank; members, or what else is ordered by rank.
pub(crate) fn neighbors<'a, M>(topology: &'a Topology, members: &'a [M], rank: u32) -> impl Iterator<Item = &'a M> {
    topology.neighbors(rank).iter().filter_map(|&rank| members.get(rank as usize))
}

/// From here on, numbers stand for the communicators of calls without records, by series.
const UNRECORDED: u32 = 1 << 31;
/// Stands for the communicators of all processes of a world that initialize the library.
const INIT: CommId = CommId::new(u32::MAX - 1);
/// Stands for the communicators of all processes of a world that finalize the library.
const FINALIZE: CommId = CommId::new(u32::MAX - 2);

/// A member, and what comes with it.
#[derive(Clone, Copy, Debug, Encode, Decode)]
pub(crate) struct With<T> {
    pub(crate) member: Member,
    pub(crate) with: T,
}

impl<T> AsRef<Member> for With<T> {
    fn as_ref(&self) -> &Member {
        &self.member
    }
}

impl AsRef<Member> for Member {
    fn as_ref(&self) -> &Self {
        self
    }
}

/// Matches all collective operations and hands each complete instance, ordered by rank, to `consume`; `with` says what comes
/// with a member of a shard, given by its index.
///
/// Returns the result of each owner for its instances, which `begin` begins for at most so many members, and the
/// diagnostics.
pub(crate) fn match_all<M: Row + Copy + AsRef<Member>, R: Send>(
    trace: &Trace,
    with: impl Fn(usize, &Shard, Member) -> M + Sync,
    begin: impl Fn(usize) -> R + Sync,
    consume: impl Fn(&mut R, Kind, &[M]) + Sync,
) -> Result<(Vec<R>, Diagnostics)> {
    let total = trace.exchange.sum(trace.shards.iter().map(|shard| shard.collectives.rows.len()).sum())?;
    let worlds = worlds(&trace.definitions);
    let (unrecorded, series, mut diagnostics) = unrecorded::parts(trace)?;
    let mut results = Vec::with_capacity(trace.shards.len());
    let rounds = Rounds::new(&trace.exchange, total * size_of::<M>());
    for round in 0..rounds.count {
        let is_served = |owner: u32| rounds.serves(owner, round);
        let posted: Vec<(Outbox<M>, Diagnostics)> = trace
            .par_shards()
            .enumerate()
            .zip(&unrecorded)
            .map(|((i, shard), calls)| {
                post(trace, shard, |member| with(i, shard, member), (calls, &series), &worlds, is_served)
            })
            .collect();
        let mut outgoing = Vec::with_capacity(posted.len());
        for (outbox, shard_notes) in posted {
            outgoing.push(outbox);
            // Every round walks all rows, so only the first counts their diagnostics.
            if round == 0 {
                diagnostics.merge(shard_notes);
            }
        }
        let served = rounds.own(&trace.exchange, round);
        let mut incoming = trace.exchange.alltoallv(outgoing)?;
        let evaluated: Vec<(R, Diagnostics)> = incoming
            .drain(served)
            .collect::<Vec<_>>()
            .into_par_iter()
            .map(|inbox| {
                let members = by_instance(inbox.into_vec());
                let mut result = begin(members.len());
                let mut diagnostics = Diagnostics::default();
                for instance in members.chunk_by(|a, b| a.as_ref().operation_id() == b.as_ref().operation_id()) {
                    let comm = instance[0].as_ref().comm;
                    let size = match comm {
                        INIT | FINALIZE => instance.len(),
                        _ if comm.number() >= UNRECORDED => series[(comm.number() - UNRECORDED) as usize].size,
                        _ => trace.definitions.comms[comm].size,
                    };
                    if let Some(kind) = check(instance, size, &mut diagnostics) {
                        consume(&mut result, kind, instance);
                    }
                }
                (result, diagnostics)
            })
            .collect();
        for (result, owner_notes) in evaluated {
            results.push(result);
            diagnostics.merge(owner_notes);
        }
    }
    Ok((results, diagnostics))
}

/// Orders members by communicator, sequence, and rank.
///
/// Those of an instance mostly arrive by rank, as shards are in the order of processes. So they only have to be brought
/// together, which takes a count by communicator and sequence.
fn by_instance<M: Copy + AsRef<Member>>(mut members: Vec<M>) -> Vec<M> {
    // The first number of each communicator, and how many it has.
    let mut numbers: FxHashMap<CommId, (usize, usize)> = FxHashMap::default();
    let same_comm = |a: &M, b: &M| a.as_ref().comm == b.as_ref().comm;
    for same in members.chunk_by(same_comm) {
        let most = same.iter().map(|member| member.as_ref().sequence as usize + 1).max().unwrap_or(0);
        let (_, count) = numbers.entry(same[0].as_ref().comm).or_default();
        *count = most.max(*count);
    }
    let mut comms: Vec<CommId> = numbers.keys().copied().collect();
    comms.sort_unstable();
    let mut instances = 0;
    for comm in comms {
        let (first, count) = numbers.entry(comm).or_default();
        *first = instances;
        instances += *count;
    }
    let key = |member: &M| {
        let Member { comm, sequence, rank, .. } = *member.as_ref();
        (comm, sequence, rank)
    };
    // Only few of the instances may be here.
    if instances / 4 > members.len() || u32::try_from(members.len()).is_err() {
        members.sort_by_key(key);
        return members;
    }
    let mut next = vec![0u32; instances + 1];
    let each = |of: &mut dyn FnMut(usize)| {
        for same in members.chunk_by(same_comm) {
            let (first, _) = numbers[&same[0].as_ref().comm];
            for member in same {
                of(first + member.as_ref().sequence as usize);
            }
        }
    };
    each(&mut |instance| next[instance + 1] += 1);
    for instance in 0..instances {
        next[instance + 1] += next[instance];
    }
    let mut order = vec![0u32; members.len()];
    let mut row = 0;
    each(&mut |instance| {
        order[next[instance] as usize] = row;
        next[instance] += 1;
        row += 1;
    });
    let mut sorted: Vec<M> = order.into_iter().map(|row| members[row as usize]).collect();
    if !sorted.is_sorted_by_key(key) {
        sorted.sort_by_key(key);
    }
    sorted
}

/// First `MPI_Init` or `MPI_Finalize` of each process of a shard: process, location, instance.
fn library_calls(
    trace: &Trace,
    shard: &Shard,
    comm: CommId,
) -> impl Iterator<Item = (ProcessId, LocationId, InstanceId)> {
    shard.processes.filter_map(move |process| {
        let locations = trace.definitions.processes[process].locations;
        locations
            .map(|location| {
                let span = &shard.spans[shard.local(location)];
                (process, location, if comm == INIT { span.init } else { span.finalize })
            })
            .find(|&(_, _, instance)| instance.is_some())
    })
}

fn post<M: Row>(
    trace: &Trace,
    shard: &Shard,
    with: impl Fn(Member) -> M,
    (unrecorded, series): (&[unrecorded::Part], &[unrecorded::Series]),
    worlds: &[u32],
    is_served: impl Fn(u32) -> bool,
) -> (Outbox<M>, Diagnostics) {
    let mut outbox = trace.exchange.outbox();
    let mut diagnostics = Diagnostics::default();
    let mut deliver = |member: Member| {
        let owner = trace.exchange.evaluator(member.comm.number(), member.sequence);
        if is_served(owner) {
            outbox.push(owner, with(member));
        }
    };
    for process in shard.processes {
        let locations = shard.local_locations(trace.definitions.processes[process].locations);
        let ranges: Vec<_> = locations.map(|i| shard.collectives.range(i)).collect();
        let mut calls: FxHashMap<CommId, u32> = FxHashMap::default();
        for row in in_time_order(&ranges, |row| shard.collectives.rows[row].begin) {
            let call = &shard.collectives.rows[row as usize];
            let comm = &trace.definitions.comms[call.comm];
            let location = shard.location_of(&shard.collectives, row);
            if matches!(*comm.members, Members::Unknown) {
                diagnostics.add(DiagnosticKind::UnknownCommunicator, location, call.begin);
            }
            // Alone nobody waits.
            let Some(rank) = comm.rank(process).filter(|_| comm.size > 1) else { continue };
            let calls = calls.entry(call.comm).or_insert(0);
            let sequence = *calls;
            *calls += 1;
            let class = trace.regions.class(trace.tree.region(shard.callpath(call.instance)));
            if class.is_mpi() || class == RegionClass::DeviceCollective {
                let mut member = Member::blocking(call, sequence, rank, location);
                if class == RegionClass::Neighborhood {
                    member.operation |= NEIGHBORHOOD;
                }
                deliver(member);
            }
        }
    }
    let mut without_record = |comm, sequence, rank, (location, instance), operation| {
        deliver(Member {
            begin: shard.enter(instance),
            end: shard.leave(instance),
            sent: 0,
            received: 0,
            comm,
            sequence,
            rank,
            root: NONE,
            location,
            instance,
            operation,
        });
    };
    for comm in [INIT, FINALIZE] {
        for (process, location, instance) in library_calls(trace, shard, comm) {
            without_record(comm, worlds[process.index()], process.number(), (location, instance), 0);
        }
    }
    for part in unrecorded {
        let &unrecorded::Part { series: number, sequence, rank, location, instance } = part;
        let comm = CommId::new(UNRECORDED | number);
        without_record(comm, sequence, rank, (location, instance), series[number as usize].operation);
    }
    (outbox, diagnostics)
}

/// The kind of the operation, if all members are present and called the same one.
fn check<M: AsRef<Member>>(instance: &[M], size: usize, diagnostics: &mut Diagnostics) -> Option<Kind> {
    let first = instance[0].as_ref();
    let place = Some(Place::at(first.location, first.begin));
    match first.comm {
        INIT => return (size > 1).then_some(Kind::Init),
        FINALIZE => return (size > 1).then_some(Kind::Finalize),
        comm if comm.number() >= UNRECORDED => return (size == instance.len()).then(|| Kind::of(first.operation)),
        _ => {}
    }
    if instance.len() != size {
        diagnostics.count(DiagnosticKind::IncompleteCollective, 1, place);
        return None;
    }
    let mut members = instance.iter().map(M::as_ref);
    if members.any(|member| member.operation != first.operation || member.root != first.root) {
        diagnostics.count(DiagnosticKind::MixedCollective, 1, place);
        return None;
    }
    Some(Kind::of(first.operation))
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    proptest! {
        /// Few members of many instances are sorted, others are counted.
        #[test]
        fn members_of_an_instance_come_together(
            sent in prop::collection::vec((prop::sample::select(vec![0, 3, INIT.number()]), 0u32..9, 0u32..4), 0..60),
            stride in prop::sample::select(vec![1, 1000]),
        ) {
            let member = |(number, &(comm, sequence, rank)): (usize, &(u32, u32, u32))| Member {
                begin: number as i64,
                end: 0,
                sent: 0,
                received: 0,
                comm: CommId::new(comm),
                sequence: sequence * stride,
                rank,
                root: NONE,
                location: LocationId::new(0),
                instance: InstanceId::new(0),
                operation: 0,
            };
            let members: Vec<Member> = sent.iter().enumerate().map(member).collect();
            let mut expected = members.clone();
            expected.sort_by_key(|member| (member.comm, member.sequence, member.rank));
            let numbers = |members: &[Member]| members.iter().map(|member| member.begin).collect::<Vec<_>>();
            prop_assert_eq!(numbers(&by_instance(members)), numbers(&expected));
        }
    }
}
