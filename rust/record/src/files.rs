//! Files of MPI-IO.

use crate::abi;
use crate::comms::Comm;
use crate::format::{Entry, NONE};
use crate::handles::Handles;
use crate::spool::Payload;
use crate::state;
use std::sync::atomic::{AtomicU32, Ordering::Relaxed};

/// A file.
#[derive(Debug)]
pub(crate) struct File {
    pub(crate) id: u32,
}

static FILES: Handles<File> = Handles::new();
static COUNT: AtomicU32 = AtomicU32::new(0);

/// The file under a handle, which is a pointer in all MPIs.
#[inline]
pub(crate) fn get(handle: usize) -> Option<&'static File> {
    FILES.get(handle)
}

pub(crate) fn remove(handle: usize) -> Option<&'static File> {
    FILES.remove(handle)
}

pub(crate) fn restore(handle: usize, file: &'static File) {
    FILES.set(handle, file);
}

/// Enters an opened file, and returns its number.
pub(crate) fn add(handle: usize, comm: Option<&Comm>, mode: i32, name: &str) -> u32 {
    let Some(comm) = comm else { return NONE };
    if handle == abi::get().file_null {
        return NONE;
    }
    let id = COUNT.fetch_add(1, Relaxed);
    let k = comm.files.fetch_add(1, Relaxed);
    state::define(Entry::File, &Payload::default().u32(id).u32(comm.id).u32(k).i32(mode).text(name));
    FILES.insert(handle, File { id });
    id
}
