//! The libraries whose calls have records besides entry and return: a file each, and one interface.
//!
//! Constructs of OpenMP are no calls: see [`crate::openmp`].

mod armci;
mod collectives;
mod files;
mod library;
mod one_sided;
mod partitions;
mod pending;
mod point_to_point;
mod posix;
mod pthreads;
mod shmem;

pub(crate) use library::{Called, Library, Process};
pub(crate) use partitions::ranges;
pub(crate) use pthreads::moment;

use crate::format::RequestKind;
use crate::functions::{Class, Function};
use crate::model::ArmciWindow;
use crate::shmem_windows::Windows;
use crate::spool;

/// What must be remembered between the calls of a process, by library.
#[derive(Debug)]
pub(crate) struct Libraries<'a> {
    point_to_point: point_to_point::PointToPoint,
    collectives: collectives::Collectives,
    one_sided: one_sided::OneSided,
    files: files::MpiFiles,
    pthreads: pthreads::Pthreads,
    posix: posix::Posix,
    shmem: shmem::Shmem<'a>,
    armci: armci::Armci,
}

impl<'a> Libraries<'a> {
    /// Those of a process. `partitioned` are its requests with the numbers of their partitions.
    pub(crate) fn new(
        process: &spool::Process,
        partitioned: impl Iterator<Item = (u64, u32)>,
        shmem: Option<&'a Windows>,
        armci: Option<ArmciWindow>,
    ) -> Self {
        Self {
            point_to_point: point_to_point::PointToPoint::new(partitioned),
            collectives: collectives::Collectives,
            one_sided: one_sided::OneSided::default(),
            files: files::MpiFiles::new(process),
            pthreads: pthreads::Pthreads,
            posix: posix::Posix,
            shmem: shmem::Shmem::new(shmem),
            armci: armci::Armci::new(armci),
        }
    }

    /// The library of a function, unless its calls have no records.
    pub(crate) fn of(&mut self, function: &Function) -> Option<&mut (dyn Library + 'a)> {
        Some(match function.class {
            class if class.is_of_shmem() => &mut self.shmem,
            class if class.is_of_files() => &mut self.posix,
            class if class.is_of_armci() => &mut self.armci,
            Class::Send
            | Class::Recv
            | Class::Mrecv
            | Class::Sendrecv
            | Class::Isend
            | Class::Irecv
            | Class::Imrecv
            | Class::Isendrecv
            | Class::Pready
            | Class::Parrived
            | Class::Start
            | Class::Startall
            | Class::Test => &mut self.point_to_point,
            Class::Coll
            | Class::Icoll
            | Class::CommIdup
            | Class::CommCreate
            | Class::CommCreateGroup
            | Class::CommFromGroup
            | Class::CommFree
            | Class::IntercommCreate
            | Class::IntercommMerge => &mut self.collectives,
            Class::WinCreate
            | Class::WinFree
            | Class::WinFence
            | Class::WinGroup
            | Class::WinEnd
            | Class::WinLock
            | Class::WinUnlock
            | Class::WinFlush
            | Class::WinFlushLocal
            | Class::Rma
            | Class::RmaRequest
            | Class::Atomic
            | Class::AtomicRequest => &mut self.one_sided,
            Class::FileOpen
            | Class::FileClose
            | Class::FileSeek
            | Class::Io
            | Class::IoBegin
            | Class::IoEnd
            | Class::Iio => &mut self.files,
            Class::ThreadLock
            | Class::ThreadUnlock
            | Class::ThreadCondition
            | Class::ThreadCreate
            | Class::ThreadJoin => &mut self.pthreads,
            _ => return None,
        })
    }

    /// The part of MPI of a kind of requests.
    pub(crate) fn of_request(&mut self, kind: u8) -> Option<&mut (dyn Library + 'a)> {
        let is = |of: RequestKind| kind == of as u8;
        Some(match kind {
            _ if is(RequestKind::Send) || is(RequestKind::Receive) || is(RequestKind::Cancelled) => {
                &mut self.point_to_point
            }
            _ if is(RequestKind::Collective) => &mut self.collectives,
            _ if is(RequestKind::Put) || is(RequestKind::Get) => &mut self.one_sided,
            _ if is(RequestKind::File) => &mut self.files,
            _ => return None,
        })
    }
}
