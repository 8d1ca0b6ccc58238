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

pub(crate) use library::{Called, Process, Records};
pub(crate) use partitions::ranges;
pub(crate) use pthreads::moment;

use crate::format::RequestKind;
use crate::functions::{Function, Library};
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
    pub(crate) fn of(&mut self, function: &Function) -> Option<&mut (dyn Records + 'a)> {
        Some(match function.class.library() {
            Library::PointToPoint | Library::Requests => &mut self.point_to_point,
            Library::Collectives | Library::Communicators => &mut self.collectives,
            Library::OneSided => &mut self.one_sided,
            Library::Files => &mut self.files,
            Library::Threads => &mut self.pthreads,
            Library::Posix | Library::Aio => &mut self.posix,
            Library::Shmem => &mut self.shmem,
            Library::Armci => &mut self.armci,
            Library::Life | Library::Moments => return None,
        })
    }

    /// The part of MPI of a kind of requests.
    pub(crate) fn of_request(&mut self, kind: u8) -> Option<&mut (dyn Records + 'a)> {
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
