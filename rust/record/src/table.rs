//! The functions of MPI, of threads, of OpenSHMEM, of files and of ARMCI.
//!
//! Both names of a function, `MPI_X` and `PMPI_X`, and those of its twin `X_c`, lead to `hook` with a number: four times
//! that of the function, plus [`LARGE`] for the twin, plus [`PROFILING`] for `PMPI_`.

use crate::frame::Returned;
use std::ffi::{CStr, c_int};

/// The symbol is that of the `_c` function.
pub(crate) const LARGE: usize = 2;
/// The symbol begins with PMPI.
pub(crate) const PROFILING: usize = 1;

/// In [`Function::roles`]: no such argument.
pub(crate) const NO: u8 = u8::MAX;

/// Whose function it is.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Owner {
    Mpi,
    /// The C library.
    System,
    Shmem,
    Armci,
}

/// What the recorder knows of a function.
#[allow(clippy::struct_excessive_bools, reason = "independent of each other")]
pub(crate) struct Function {
    /// `PMPI_X`, or the name itself of a function of another library.
    pub(crate) name: &'static CStr,
    pub(crate) owner: Owner,
    pub(crate) class: Class,
    /// The library of its class.
    pub(crate) library: Library,
    pub(crate) group: Group,
    /// The twin differs only in numbers of elements, so that the plain function can stand in for it.
    pub(crate) narrows: bool,
    /// Of a rooted operation: the root sends.
    pub(crate) scatters: bool,
    /// Collective over the neighbours in a topology.
    pub(crate) neighbours: bool,
    /// Asks whether something has come, and returns at once.
    pub(crate) tests: bool,
    /// Requests that it finds complete stay, until another call frees them.
    pub(crate) asks: bool,
    /// Of files: it reads, and does not write.
    pub(crate) reads: bool,
    /// It returns an error code.
    has_code: bool,
    pub(crate) arguments: u8,
    /// Bytes of an element that the name tells of, else 0.
    pub(crate) element: u8,
    /// Where an argument lies in the frame of a call, by its [`Role`].
    pub(crate) roles: [u8; ROLES],
}

include!(concat!(env!("OUT_DIR"), "/table.rs"));

impl Class {
    /// Whether a call of it takes requests out of the table before it may complete them.
    pub(crate) const fn takes_requests(self) -> bool {
        matches!(
            self,
            Self::Wait
                | Self::Waitany
                | Self::Waitall
                | Self::Waitsome
                | Self::Test
                | Self::Testany
                | Self::Testall
                | Self::Testsome
                | Self::Start
                | Self::Startall
                | Self::RequestFree
                | Self::Cancel
        )
    }

    /// Whether a call of it may end with one message that was received.
    pub(crate) const fn receives(self) -> bool {
        matches!(
            self,
            Self::Recv | Self::Mrecv | Self::Sendrecv | Self::Wait | Self::Test | Self::Waitany | Self::Testany
        )
    }

    /// Whether it is about files, and no function of MPI.
    pub(crate) const fn is_of_files(self) -> bool {
        matches!(self.library(), Library::Posix | Library::Aio)
    }

    /// Whether calls of it make a window.
    pub(crate) const fn makes_window(self) -> bool {
        matches!(self, Self::WinCreate)
    }

    /// Whether MPI ends with calls of it: with OpenSHMEM, also if the program began MPI itself.
    pub(crate) const fn ends(self) -> bool {
        matches!(self, Self::Finalize | Self::ShmemFinalize)
    }

    /// Whether a call of the program begins the recording.
    pub(crate) const fn begins(self) -> bool {
        matches!(self, Self::Init | Self::SessionInit | Self::ShmemInit)
    }
}

impl Function {
    /// The error code that it returned: MPI's functions and those of threads do so, others do not.
    pub(crate) fn code(&self, returned: &Returned) -> c_int {
        if self.has_code { returned.word as c_int } else { 0 }
    }
}
