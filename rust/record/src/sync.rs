//! Clocks of processes on several nodes.
//!
//! One process of each node compares its clock with that of rank 0, at the end of MPI_Init and the start of MPI_Finalize; the others of a node share
//! its clock. On one node nothing is sent.

use crate::abi;
use crate::clock::{self, now};
use crate::format::{CLOCK_MONOTONIC, Entry};
use crate::real::own;
use crate::spool::Payload;
use crate::state::{self, MEASURES_AT_END};
use std::sync::OnceLock;
use std::sync::atomic::{AtomicUsize, Ordering::Relaxed};

/// How often two processes exchange a message; the shortest round trip counts.
const ROUNDS: usize = 20;
/// Bytes that name a clock.
const NAME: usize = 24;

/// Who compares clocks.
#[derive(Debug)]
struct Plan {
    rank: usize,
    /// The first process of each node but that of rank 0.
    others: Vec<usize>,
}

static PLAN: OnceLock<Plan> = OnceLock::new();
/// A duplicate of MPI_COMM_WORLD.
static COMM: AtomicUsize = AtomicUsize::new(0);

/// Whether the processes of the world may be on several nodes, as far as one of them can tell: launchers say how many are on its
/// own.
pub(crate) fn several_nodes(size: i32) -> bool {
    const VARIABLES: [&str; 3] = ["OMPI_COMM_WORLD_LOCAL_SIZE", "MPI_LOCALNRANKS", "PMI_LOCAL_SIZE"];
    state::options().is_some_and(|options| options.sync)
        && size > 1
        && !VARIABLES.iter().any(|name| std::env::var(name).is_ok_and(|value| value == size.to_string()))
}

/// Finds out which processes share a clock; all processes of the world call it if `several`.
pub(crate) fn plan(several: bool, rank: i32, size: i32) {
    if !several {
        return;
    }
    let world = abi::get().comm_world;
    let mut own_name = [0_u8; NAME];
    own_name[..16].copy_from_slice(&clock::boot_id());
    if crate::clock::kind() == CLOCK_MONOTONIC {
        own_name[16..].copy_from_slice(&clock::time_namespace().to_le_bytes());
    }
    let mut names = vec![0_u8; NAME * size as usize];
    let byte = abi::get().byte;
    if own!(ALLGATHER, own_name.as_ptr(), NAME, byte, names.as_mut_ptr(), NAME, byte, world) != 0 {
        return;
    }
    let names: Vec<&[u8]> = names.chunks_exact(NAME).collect();
    let first = |rank: usize| names.iter().position(|name| *name == names[rank]);
    let others: Vec<usize> = (1..names.len()).filter(|rank| first(*rank) == Some(*rank)).collect();
    let mut comm = 0_usize;
    if !others.is_empty() && own!(COMM_DUP, world, &raw mut comm) == 0 {
        COMM.store(abi::get().mask(comm), Relaxed);
        let _ = PLAN.set(Plan { rank: rank as usize, others });
        MEASURES_AT_END.store(true, Relaxed);
    }
}

/// Compares the clocks.
pub(crate) fn measure() {
    let Some(plan) = PLAN.get() else { return };
    if plan.rank == 0 {
        plan.others.iter().for_each(|other| answer(*other));
    } else if plan.others.contains(&plan.rank) {
        ask();
    }
}

/// Compares for the last time.
pub(crate) fn end() {
    if MEASURES_AT_END.swap(false, Relaxed) {
        measure();
        let mut comm = COMM.load(Relaxed);
        own!(COMM_FREE, &raw mut comm);
    }
}

fn send(peer: usize, value: u64) {
    own!(SEND, &raw const value, 8_usize, abi::get().byte, peer, 0_usize, COMM.load(Relaxed));
}

fn receive(peer: usize) -> u64 {
    let (mut value, mut status) = (0_u64, [0_u64; 8]);
    own!(RECV, &raw mut value, 8_usize, abi::get().byte, peer, 0_usize, COMM.load(Relaxed), status.as_mut_ptr());
    value
}

fn answer(other: usize) {
    for _ in 0..ROUNDS {
        receive(other);
        send(other, now());
    }
}

fn ask() {
    let mut best = (u64::MAX, 0, 0);
    for _ in 0..ROUNDS {
        let before = now();
        send(0, before);
        let theirs = receive(0);
        let round = now().wrapping_sub(before);
        if round < best.0 {
            best = (round, before.wrapping_add(round / 2), theirs);
        }
    }
    let (round, own, theirs) = best;
    state::define(Entry::Sync, &Payload::default().u64(own).u64(theirs).u64(round));
}
