//! What the records of a library's calls are made of.

use rustc_hash::FxHashSet;

use crate::files::Files;
use crate::format::Call;
use crate::functions::Function;
use crate::model::Model;
use crate::requests::Request;
use crate::spool::Slot;
use crate::thread::Out;
use crate::unify::{Id, Local, LocalComm, LocalFile, LocalWindow};

/// A call.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Called<'a> {
    pub(crate) function: &'static Function,
    pub(crate) call: Call,
    /// Also those that its slot has no room for.
    pub(crate) bytes: u64,
    /// The slots after its own that belong to it.
    pub(crate) after: &'a [Slot],
}

impl Called<'_> {
    /// Whether it returned.
    pub(crate) fn returned(&self) -> bool {
        self.call.leave != 0
    }
}

/// What the libraries of a process have in common.
#[derive(Debug)]
pub(crate) struct Process<'a> {
    pub(crate) local: &'a Local,
    pub(crate) model: Model,
    /// The threads that it makes.
    pub(crate) contingent: Option<u32>,
    /// Requests that Score-P does not know.
    pub(crate) ignored: FxHashSet<u64>,
    /// Communicators to processes of which nothing was recorded.
    pub(crate) unrecorded: FxHashSet<u32>,
    /// MPI's and others' operations on files are counted together.
    pub(crate) files: Files,
}

impl Process<'_> {
    pub(crate) fn comm(&self, id: u32) -> Option<LocalComm> {
        self.local.comms.get(&id).copied()
    }

    pub(crate) fn window(&self, id: u32) -> Option<LocalWindow> {
        self.local.windows.get(&id).copied()
    }

    pub(crate) fn group(&self, id: i32) -> Option<Id> {
        u32::try_from(id).ok().and_then(|id| self.local.groups.get(&id)).copied()
    }

    pub(crate) fn file(&self, id: u32) -> Option<LocalFile> {
        self.local.files.get(&id).copied()
    }
}

/// A library, or a part of MPI: which records its calls have.
pub(crate) trait Records {
    /// Records with the time of entry, of a call that does not fail.
    fn enter(&mut self, out: &mut Out<'_>, called: &Called<'_>, process: &mut Process<'_>);

    /// Records with the time of return, of a call that does not fail.
    fn leave(&mut self, out: &mut Out<'_>, called: &Called<'_>, process: &mut Process<'_>);

    /// Whether calls of a function have the same records if they fail.
    fn records_failures(&self, _function: &Function) -> bool {
        false
    }

    /// Records of a request of this library that a call started, with the time of its return.
    fn starts(&mut self, _out: &mut Out<'_>, _call: &Call, _request: &Request, _process: &mut Process<'_>) {}

    /// Records of a request of this library that a call completed at this time.
    fn completes(&mut self, _out: &mut Out<'_>, _time: u64, _request: &Request, _process: &mut Process<'_>) {}
}
