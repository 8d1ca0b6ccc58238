//! Handles of files: to what they refer, and who shares them.

use rustc_hash::FxHashMap;
use whywait_otf2::Definitions;
use whywait_otf2::enums::IoParadigmClass;

use crate::ids::{CommId, NONE};

/// A handle by which operations name a file.
#[derive(Clone, Copy, Debug)]
pub struct IoHandle {
    /// String id of the name of its file, or of its own where that is not defined.
    pub name: u32,
    /// Its I/O paradigm.
    pub paradigm: u8,
    /// The members of its collective operations, or none.
    pub comm: CommId,
    is_nested: bool,
}

impl IoHandle {
    /// Whether a handle of another paradigm operates it, so that what it does is counted there.
    pub fn is_nested(&self) -> bool {
        self.is_nested
    }
}

/// All handles of files by their ids.
#[derive(Clone, Debug, Default)]
pub struct IoHandles {
    by_id: FxHashMap<u32, IoHandle>,
    /// String ids of the names of files by their ids.
    files: FxHashMap<u32, u32>,
    /// String ids of the names of I/O paradigms by their ids.
    paradigms: FxHashMap<u8, u32>,
}

impl IoHandles {
    /// Collects the handles that an archive defines. `comm` gives an own copy of the communicator with an id, as
    /// MPI-IO makes one for each file: its operations have an order of their own.
    pub(super) fn new(definitions: &Definitions, mut comm: impl FnMut(u32) -> Option<CommId>) -> Self {
        let regular = definitions.io_regular_files.iter().map(|file| (file.id, file.name));
        let directories = definitions.io_directories.iter().map(|file| (file.id, file.name));
        // As in all look-ups by id, the first of several definitions counts.
        let mut files = FxHashMap::default();
        regular.chain(directories).for_each(|(id, name)| {
            files.entry(id).or_insert(name);
        });
        let mut paradigms = FxHashMap::default();
        let mut parallel = Vec::new();
        for paradigm in &definitions.io_paradigms {
            paradigms.entry(paradigm.id).or_insert(paradigm.name);
            if paradigm.io_paradigm_class == IoParadigmClass::PARALLEL {
                parallel.push(paradigm.id);
            }
        }
        let mut by_id = FxHashMap::default();
        for handle in &definitions.io_handles {
            by_id.entry(handle.id).or_insert_with(|| IoHandle {
                name: files.get(&handle.file).copied().unwrap_or(handle.name),
                paradigm: handle.io_paradigm,
                comm: Some(handle.comm)
                    .filter(|_| parallel.contains(&handle.io_paradigm))
                    .and_then(&mut comm)
                    .unwrap_or(CommId::NONE),
                is_nested: handle.parent != NONE,
            });
        }
        Self { by_id, files, paradigms }
    }

    /// The handle with an id.
    pub fn handle(&self, id: u32) -> Option<&IoHandle> {
        self.by_id.get(&id)
    }

    /// String id of the name of the file with an id.
    pub fn file(&self, id: u32) -> Option<u32> {
        self.files.get(&id).copied()
    }

    /// String id of the name of the I/O paradigm with an id.
    pub fn paradigm(&self, id: u8) -> Option<u32> {
        self.paradigms.get(&id).copied()
    }
}
