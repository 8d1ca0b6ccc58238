//! Communicators: from handles to numbers, and the names by which finishing finds out who is in them.
//!
//! Nothing is sent for it. A communicator is named by what made it, and by the rank in MPI_COMM_WORLD of its rank 0.

use crate::abi;
use crate::clock::now;
use crate::format::{BY_OTHERS, COMM_SELF, COMM_WORLD, CommName, Entry, NONE};
use crate::handles::Handles;
use crate::real::own;
use crate::spool::{self, Payload};
use crate::state;
use std::collections::HashMap;
use std::sync::atomic::{AtomicU32, AtomicUsize, Ordering::Relaxed};
use std::sync::{Mutex, PoisonError};

/// Up to this size, rank 0 lists the members of a communicator.
const LISTED: i32 = 1024;

/// A communicator.
#[derive(Debug)]
pub(crate) struct Comm {
    pub(crate) id: u32,
    pub(crate) rank: i32,
    pub(crate) size: i32,
    /// Size of the remote group of an intercommunicator, else 0.
    pub(crate) remote: i32,
    /// Neighbours that send to the caller, and that it sends to.
    pub(crate) neighbours: (i32, i32),
    /// Reaches processes of another world.
    pub(crate) foreign: bool,
    /// How many were made on it.
    pub(crate) children: AtomicU32,
    pub(crate) windows: AtomicU32,
    pub(crate) files: AtomicU32,
}

impl Comm {
    /// Number of blocks in an array with one for each process or neighbour: of what is sent, of what is received.
    pub(crate) fn blocks(&self, neighbours: bool) -> (usize, usize) {
        let (sources, destinations) = if neighbours {
            self.neighbours
        } else if self.remote > 0 {
            (self.remote, self.remote)
        } else {
            (self.size, self.size)
        };
        (destinations.max(0) as usize, sources.max(0) as usize)
    }
}

static COMMS: Handles<Comm> = Handles::new();
static COUNT: AtomicU32 = AtomicU32::new(0);
/// Group of MPI_COMM_WORLD, in which members are named.
static WORLD: AtomicUsize = AtomicUsize::new(0);
/// How many communicators without a parent have the same name.
static NAMES: Mutex<Option<HashMap<String, u32>>> = Mutex::new(None);

/// The communicator under a handle.
#[inline]
pub(crate) fn get(handle: usize) -> Option<&'static Comm> {
    COMMS.get(abi::get().mask(handle))
}

/// The handle is no longer valid.
pub(crate) fn remove(handle: usize) -> Option<&'static Comm> {
    COMMS.remove(abi::get().mask(handle))
}

/// A removed one is still valid.
pub(crate) fn restore(handle: usize, comm: &'static Comm) {
    COMMS.set(abi::get().mask(handle), comm);
}

/// How a new communicator came to be.
#[derive(Clone, Debug)]
pub(crate) struct Origin {
    pub(crate) name: CommName,
    /// Number of the parent, or [`NONE`].
    pub(crate) parent: u32,
    pub(crate) k: u32,
    pub(crate) tag: i32,
    pub(crate) text: String,
    /// Handle of the parent, if that reaches processes of another world.
    pub(crate) abroad: Option<usize>,
}

impl Origin {
    /// Made by a call that is collective over the parent, which has this handle. Counts such calls.
    pub(crate) fn child(parent: &Comm, handle: usize) -> Self {
        let k = parent.children.fetch_add(1, Relaxed);
        let (name, abroad) = if parent.foreign { (CommName::Abroad, Some(handle)) } else { (CommName::Child, None) };
        Self { name, parent: parent.id, k, tag: 0, text: String::new(), abroad }
    }
}

/// The rank in a parent of the first of a group; [`NONE`] if the parent has two groups.
fn rank_in(parent: usize, group: usize) -> u32 {
    let (mut inter, mut of_parent, mut rank) = (0_i32, 0_usize, -1_i32);
    own!(COMM_TEST_INTER, parent, &raw mut inter);
    if inter == 0 {
        let first = 0_i32;
        own!(COMM_GROUP, parent, &raw mut of_parent);
        own!(GROUP_TRANSLATE_RANKS, group, 1, &raw const first, of_parent, &raw mut rank);
        own!(GROUP_FREE, &raw mut of_parent);
    }
    u32::try_from(rank).unwrap_or(NONE)
}

/// The members of a group by their rank in MPI_COMM_WORLD; [`NONE`] for those of other worlds.
pub(crate) fn world_ranks(group: usize, count: i32) -> Vec<u32> {
    let ranks: Vec<i32> = (0..count).collect();
    let mut found = vec![-1_i32; ranks.len()];
    if count > 0 {
        own!(GROUP_TRANSLATE_RANKS, group, count, ranks.as_ptr(), WORLD.load(Relaxed), found.as_mut_ptr());
    }
    found.into_iter().map(|rank| u32::try_from(rank).unwrap_or(NONE)).collect()
}

/// Size of a group and its members.
pub(crate) fn members(group: usize) -> Vec<u32> {
    let mut size = 0_i32;
    own!(GROUP_SIZE, group, &raw mut size);
    world_ranks(group, size)
}

/// Sets up the table: `group` is that of MPI_COMM_WORLD.
pub(crate) fn begin(group: usize, rank: i32, size: i32) {
    WORLD.store(group, Relaxed);
    let abi = abi::get();
    let made = |name, size, rank| {
        let comm = Comm {
            id: COUNT.fetch_add(1, Relaxed),
            rank,
            size,
            remote: 0,
            neighbours: (0, 0),
            foreign: false,
            ..new()
        };
        let members = if rank == 0 && size <= LISTED { (0..size as u32).collect() } else { Vec::new() };
        (Origin { name, parent: NONE, k: 0, tag: 0, text: String::new(), abroad: None }, comm, members)
    };
    let own_rank = rank as u32;
    let (origin, world, members) = made(CommName::World, size, rank);
    define(&origin, &world, 0, NONE, own_rank, &members);
    let (origin, itself, _) = made(CommName::Itself, 1, 0);
    define(&origin, &itself, own_rank, NONE, own_rank, &[own_rank]);
    debug_assert!((world.id, itself.id) == (COMM_WORLD, COMM_SELF));
    COMMS.insert(abi.comm_world, world);
    COMMS.insert(abi.comm_self, itself);
}

/// The group of MPI_COMM_WORLD is given back before MPI_Finalize.
pub(crate) fn end() {
    let mut group = WORLD.swap(0, Relaxed);
    if group != 0 {
        own!(GROUP_FREE, &raw mut group);
    }
}

fn new() -> Comm {
    Comm {
        id: NONE,
        rank: 0,
        size: 0,
        remote: 0,
        neighbours: (0, 0),
        foreign: false,
        children: AtomicU32::new(0),
        windows: AtomicU32::new(0),
        files: AtomicU32::new(0),
    }
}

/// Enters a new communicator and returns its number; [`NONE`] for MPI_COMM_NULL. What is to be known of it, one that is `like` it is
/// asked.
pub(crate) fn add(handle: usize, origin: &Origin, like: usize) -> u32 {
    let abi = abi::get();
    let (handle, like) = (abi.mask(handle), abi.mask(like));
    if handle == abi.comm_null || WORLD.load(Relaxed) == 0 {
        return NONE;
    }
    let (mut rank, mut size, mut inter, mut remote) = (0_i32, 0_i32, 0_i32, 0_i32);
    own!(COMM_RANK, like, &raw mut rank);
    own!(COMM_SIZE, like, &raw mut size);
    own!(COMM_TEST_INTER, like, &raw mut inter);
    let mut group = 0_usize;
    own!(COMM_GROUP, like, &raw mut group);
    let listed = rank == 0 && size <= LISTED;
    let members = world_ranks(group, if listed { size } else { 1 });
    let first = members.first().copied().unwrap_or(NONE);
    let lead = origin.abroad.map_or(first, |parent| rank_in(parent, group));
    own!(GROUP_FREE, &raw mut group);
    let mut remote_lead = NONE;
    let mut foreign = first == NONE || origin.abroad.is_some();
    if inter != 0 {
        own!(COMM_REMOTE_SIZE, like, &raw mut remote);
        let mut group = 0_usize;
        own!(COMM_REMOTE_GROUP, like, &raw mut group);
        remote_lead = world_ranks(group, remote.min(1)).first().copied().unwrap_or(NONE);
        own!(GROUP_FREE, &raw mut group);
        foreign |= remote_lead == NONE;
    }
    let mut origin = origin.clone();
    if foreign && matches!(origin.name, CommName::Inter | CommName::Session) {
        (origin.name, origin.tag) = (CommName::Foreign, BY_OTHERS);
    }
    let text = origin.text.as_str();
    let name = match origin.name {
        CommName::Group => Some(format!("{} {} {lead}", origin.parent, origin.tag)),
        CommName::Inter => Some(format!("{} {} {}", origin.tag, lead.min(remote_lead), lead.max(remote_lead))),
        CommName::Session => Some(format!("{lead} {remote_lead} {text}")),
        CommName::Foreign | CommName::Abroad | CommName::World | CommName::Itself | CommName::Child => None,
    };
    if let Some(name) = name {
        let mut names = NAMES.lock().unwrap_or_else(PoisonError::into_inner);
        let count = names.get_or_insert_default().entry(format!("{:?} {name}", origin.name)).or_insert(0);
        origin.k = *count;
        *count += 1;
    }
    let id = COUNT.fetch_add(1, Relaxed);
    let (neighbours, dimensions) = topology(like);
    let comm = Comm { id, rank, size, remote, neighbours, foreign, ..new() };
    let listed = if listed { members.as_slice() } else { &[] };
    define(&origin, &comm, lead, remote_lead, spool::get().map_or(0, |spool| spool.rank), listed);
    COMMS.insert(handle, comm);
    if !dimensions.is_empty() {
        define_grid(id, &dimensions);
    }
    id
}

/// Size, whether it is periodic, and the own coordinate, of a dimension of a Cartesian topology.
type Dimension = (i32, i32, i32);

/// Defines the Cartesian topology of a communicator.
fn define_grid(id: u32, dimensions: &[Dimension]) {
    let payload = Payload::default().u32(id).u32(dimensions.len() as u32);
    let payload = dimensions
        .iter()
        .fold(payload, |payload, &(size, periodic, place)| payload.i32(size).u32(u32::from(periodic != 0)).i32(place));
    state::define(Entry::Topology, &payload);
}

fn grid(handle: usize, count: i32) -> Vec<Dimension> {
    let mut sizes = vec![0_i32; count as usize];
    let (mut periods, mut places) = (sizes.clone(), sizes.clone());
    own!(CART_GET, handle, count, sizes.as_mut_ptr(), periods.as_mut_ptr(), places.as_mut_ptr());
    sizes.into_iter().zip(periods).zip(places).map(|((size, periodic), place)| (size, periodic, place)).collect()
}

/// Neighbours in the topology of a communicator, in and out; and its dimensions, if it is Cartesian.
fn topology(handle: usize) -> ((i32, i32), Vec<Dimension>) {
    let abi = abi::get();
    let mut status = abi.undefined;
    own!(TOPO_TEST, handle, &raw mut status);
    let (mut sources, mut destinations, mut weighted) = (0_i32, 0_i32, 0_i32);
    let mut dimensions = Vec::new();
    if status == abi.cart {
        let mut count = 0_i32;
        own!(CARTDIM_GET, handle, &raw mut count);
        sources = 2 * count;
        destinations = sources;
        if count > 0 {
            dimensions = grid(handle, count);
        }
    } else if status == abi.graph {
        let mut rank = 0_i32;
        own!(COMM_RANK, handle, &raw mut rank);
        own!(GRAPH_NEIGHBORS_COUNT, handle, rank, &raw mut sources);
        destinations = sources;
    } else if status == abi.dist_graph {
        own!(DIST_GRAPH_NEIGHBORS_COUNT, handle, &raw mut sources, &raw mut destinations, &raw mut weighted);
    }
    ((sources, destinations), dimensions)
}

fn define(origin: &Origin, comm: &Comm, lead: u32, remote_lead: u32, world_rank: u32, members: &[u32]) {
    let payload = Payload::default()
        .u32(comm.id)
        .u32(origin.parent)
        .u32(origin.name as u32)
        .u32(origin.k)
        .u32(lead)
        .u32(remote_lead)
        .i32(origin.tag)
        .i32(comm.rank)
        .i32(comm.size)
        .i32(comm.remote)
        .u32(world_rank)
        .i32(comm.neighbours.0)
        .i32(comm.neighbours.1)
        .u32(members.len() as u32);
    let payload = members.iter().fold(payload, |payload, member| payload.u32(*member));
    let payload = payload.text(&origin.text).u64(now());
    state::define(Entry::Comm, &payload);
}
