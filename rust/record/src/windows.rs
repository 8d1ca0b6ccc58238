//! Windows, and the groups of their epochs.

use crate::abi;
use crate::comms::{self, Comm};
use crate::format::{Entry, NONE};
use crate::handles::Handles;
use crate::spool::Payload;
use crate::state;
use std::collections::HashMap;
use std::sync::atomic::{AtomicI32, AtomicU32, AtomicU64, Ordering::Relaxed};
use std::sync::{Mutex, PoisonError};

/// A window.
#[derive(Debug)]
pub(crate) struct Window {
    pub(crate) id: u32,
    /// Groups of MPI_Win_start and MPI_Win_post, -1 if there is no such epoch.
    pub(crate) access: AtomicI32,
    pub(crate) exposure: AtomicI32,
}

static WINDOWS: Handles<Window> = Handles::new();
static COUNT: AtomicU32 = AtomicU32::new(0);
static OPERATIONS: AtomicU64 = AtomicU64::new(1);
static GROUPS: Mutex<Option<HashMap<Vec<u32>, i32>>> = Mutex::new(None);

/// The window under a handle.
#[inline]
pub(crate) fn get(handle: usize) -> Option<&'static Window> {
    WINDOWS.get(abi::get().mask(handle))
}

pub(crate) fn remove(handle: usize) -> Option<&'static Window> {
    WINDOWS.remove(abi::get().mask(handle))
}

pub(crate) fn restore(handle: usize, window: &'static Window) {
    WINDOWS.set(abi::get().mask(handle), window);
}

/// The matching id of a new operation.
pub(crate) fn operation() -> u64 {
    OPERATIONS.fetch_add(1, Relaxed)
}

/// Enters a window that a function made on a communicator, and returns its number.
pub(crate) fn add(handle: usize, comm: Option<&Comm>, function: usize) -> u32 {
    let handle = abi::get().mask(handle);
    let Some(comm) = comm else { return NONE };
    if handle == abi::get().win_null {
        return NONE;
    }
    let id = COUNT.fetch_add(1, Relaxed);
    let k = comm.windows.fetch_add(1, Relaxed);
    state::define(Entry::Window, &Payload::default().u32(id).u32(comm.id).u32(k).u32(function as u32));
    WINDOWS.insert(handle, Window { id, access: AtomicI32::new(-1), exposure: AtomicI32::new(-1) });
    id
}

/// Number of a group with these members.
pub(crate) fn group(handle: usize) -> i32 {
    let members = comms::members(abi::get().mask(handle));
    let mut groups = GROUPS.lock().unwrap_or_else(PoisonError::into_inner);
    let groups = groups.get_or_insert_default();
    if let Some(known) = groups.get(&members) {
        return *known;
    }
    let id = groups.len() as i32;
    let payload = Payload::default().i32(id).u32(members.len() as u32);
    state::define(Entry::Group, &members.iter().fold(payload, |payload, member| payload.u32(*member)));
    groups.insert(members, id);
    id
}
