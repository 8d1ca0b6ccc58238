//! What differs between the binary interfaces of MPIs.
//!
//! A handle, a pointer, an `MPI_Aint` or an `MPI_Count` takes one register or one word of the stack in all of them; so the functions
//! are the same, and these numbers are all there is.

use crate::real::Library;
use std::ffi::c_int;
use std::sync::atomic::{AtomicPtr, Ordering::Relaxed};

/// One binary interface.
#[derive(Clone, Debug)]
pub(crate) struct Abi {
    pub(crate) name: &'static str,
    /// Size of a handle; files of MPICH are pointers all the same.
    pub(crate) handle: usize,
    pub(crate) status: usize,
    pub(crate) status_source: usize,
    pub(crate) status_tag: usize,
    pub(crate) status_error: usize,
    pub(crate) proc_null: i32,
    pub(crate) any_source: i32,
    pub(crate) any_tag: i32,
    pub(crate) root: i32,
    pub(crate) undefined: i32,
    pub(crate) in_place: usize,
    /// Of one status and of an array.
    pub(crate) status_ignore: usize,
    pub(crate) lock_exclusive: i32,
    pub(crate) in_status: c_int,
    pub(crate) pending: c_int,
    pub(crate) unsupported: c_int,
    pub(crate) cart: i32,
    pub(crate) graph: i32,
    pub(crate) dist_graph: i32,
    pub(crate) comm_null: usize,
    pub(crate) comm_world: usize,
    pub(crate) comm_self: usize,
    pub(crate) request_null: usize,
    pub(crate) message_null: usize,
    pub(crate) message_no_proc: usize,
    pub(crate) win_null: usize,
    pub(crate) file_null: usize,
    pub(crate) byte: usize,
}

const MPICH: Abi = Abi {
    name: "mpich",
    handle: 4,
    status: 20,
    status_source: 8,
    status_tag: 12,
    status_error: 16,
    proc_null: -1,
    any_source: -2,
    any_tag: -1,
    root: -3,
    undefined: -32766,
    in_place: usize::MAX,
    status_ignore: 1,
    lock_exclusive: 234,
    in_status: 17,
    pending: 18,
    unsupported: 44,
    cart: 2,
    graph: 1,
    dist_graph: 3,
    comm_null: 0x0400_0000,
    comm_world: 0x4400_0000,
    comm_self: 0x4400_0001,
    request_null: 0x2c00_0000,
    message_null: 0x2c00_0000,
    message_no_proc: 0x6c00_0000,
    win_null: 0x2000_0000,
    file_null: 0,
    byte: 0x4c00_010d,
};

/// Its predefined handles are addresses of variables: see [`openmpi`].
const OPEN_MPI: Abi = Abi {
    name: "openmpi",
    handle: 8,
    status: 24,
    status_source: 0,
    status_tag: 4,
    status_error: 8,
    proc_null: -2,
    any_source: -1,
    any_tag: -1,
    root: -4,
    undefined: -32766,
    in_place: 1,
    status_ignore: 0,
    lock_exclusive: 1,
    in_status: 18,
    pending: 19,
    unsupported: 52,
    cart: 1,
    graph: 2,
    dist_graph: 3,
    comm_null: 0,
    comm_world: 0,
    comm_self: 0,
    request_null: 0,
    message_null: 0,
    message_no_proc: 0,
    win_null: 0,
    file_null: 0,
    byte: 0,
};

const MPI5: Abi = Abi {
    name: "mpi5",
    handle: 8,
    status: 32,
    status_source: 0,
    status_tag: 4,
    status_error: 8,
    proc_null: -3,
    any_source: -1,
    any_tag: -2,
    root: -4,
    undefined: -32766,
    in_place: 1,
    status_ignore: 0,
    lock_exclusive: 301,
    in_status: 19,
    pending: 18,
    unsupported: 55,
    cart: 211,
    graph: 212,
    dist_graph: 213,
    comm_null: 0x100,
    comm_world: 0x101,
    comm_self: 0x102,
    request_null: 0x180,
    message_null: 0x128,
    message_no_proc: 0x129,
    win_null: 0x110,
    file_null: 0x118,
    byte: 0x247,
};

static NONE: Abi = MPICH;
static CURRENT: AtomicPtr<Abi> = AtomicPtr::new((&raw const NONE).cast_mut());

/// The interface of the program's MPI.
#[inline]
pub(crate) fn get() -> &'static Abi {
    // SAFETY: only ever points to a static or leaked value.
    unsafe { &*CURRENT.load(Relaxed) }
}

/// Whether the interface of the library is known.
pub(crate) fn known(library: &Library) -> bool {
    of(library).is_some()
}

/// Goes by the interface of a library from now on.
pub(crate) fn set(library: &Library) {
    if let Some(abi) = of(library) {
        CURRENT.store(Box::into_raw(Box::new(abi)), Relaxed);
    }
}

fn of(library: &Library) -> Option<Abi> {
    let name = library.path.file_name()?.to_str()?;
    if library.variable(c"ompi_mpi_comm_world").is_some() {
        openmpi(library)
    } else if name.starts_with("libmpi_abi.so") {
        Some(MPI5)
    } else if name.starts_with("libmpich") || name.ends_with(".so.12") || name.contains(".so.12.") {
        // The MPICH ABI initiative: MPICH, Intel MPI, Cray MPI and others agreed on interface version 12.
        Some(MPICH)
    } else {
        None
    }
}

fn openmpi(library: &Library) -> Option<Abi> {
    Some(Abi {
        comm_null: library.variable(c"ompi_mpi_comm_null")?,
        comm_world: library.variable(c"ompi_mpi_comm_world")?,
        comm_self: library.variable(c"ompi_mpi_comm_self")?,
        request_null: library.variable(c"ompi_request_null")?,
        message_null: library.variable(c"ompi_message_null")?,
        message_no_proc: library.variable(c"ompi_message_no_proc")?,
        win_null: library.variable(c"ompi_mpi_win_null")?,
        file_null: library.variable(c"ompi_mpi_file_null")?,
        byte: library.variable(c"ompi_mpi_byte")?,
        ..OPEN_MPI
    })
}

impl Abi {
    /// The part of a word that is a handle.
    #[inline]
    pub(crate) fn mask(&self, word: usize) -> usize {
        if self.handle == 4 { word & 0xffff_ffff } else { word }
    }

    /// A handle in memory: element `i` of an array.
    pub(crate) fn load(&self, array: usize, i: usize) -> usize {
        if array == 0 {
            return 0;
        }
        // SAFETY: the program passed the array to MPI.
        unsafe {
            if self.handle == 4 {
                (array as *const u32).add(i).read() as usize
            } else {
                (array as *const usize).add(i).read()
            }
        }
    }

    /// A rank as the spool has it.
    #[inline]
    pub(crate) fn peer(&self, rank: i32) -> i32 {
        use crate::format::{PEER_ANY, PEER_NULL, PEER_ROOT};
        match rank {
            0.. => rank,
            _ if rank == self.proc_null => PEER_NULL,
            _ if rank == self.any_source => PEER_ANY,
            _ if rank == self.root => PEER_ROOT,
            _ => rank,
        }
    }

    /// A tag as the spool has it.
    #[inline]
    pub(crate) fn tag(&self, tag: i32) -> i32 {
        if tag == self.any_tag { crate::format::TAG_ANY } else { tag }
    }
}

/// An `MPI_Status`, in the program's memory or the recorder's.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Status(pub(crate) usize);

impl Status {
    fn field(self, offset: usize) -> i32 {
        // SAFETY: MPI filled in the status, and the field is within it.
        unsafe { ((self.0 + offset) as *const i32).read_unaligned() }
    }

    pub(crate) fn source(self) -> i32 {
        get().peer(self.field(get().status_source))
    }

    pub(crate) fn tag(self) -> i32 {
        get().tag(self.field(get().status_tag))
    }

    pub(crate) fn error(self) -> c_int {
        self.field(get().status_error)
    }

    /// Element `i` of an array.
    pub(crate) fn at(self, i: usize) -> Self {
        Self(self.0.wrapping_add(i.wrapping_mul(get().status)))
    }

    /// Bytes of the message.
    pub(crate) fn bytes(self) -> u64 {
        use crate::real::{exists, own, own_symbol};
        use crate::table::{LARGE, PROFILING, number};
        let large = number::GET_COUNT * 4 + LARGE + PROFILING;
        let mut count = -1_i64;
        let code = if exists(large) {
            own_symbol(large, [self.0, get().byte, &raw mut count as usize])
        } else if exists(number::GET_ELEMENTS_X * 4 + PROFILING) {
            own!(GET_ELEMENTS_X, self.0, get().byte, &raw mut count)
        } else {
            let mut short = -1_i32;
            let code = own!(GET_COUNT, self.0, get().byte, &raw mut short);
            count = i64::from(short);
            code
        };
        if code == 0 { u64::try_from(count).unwrap_or(0) } else { 0 }
    }

    /// Whether the operation was cancelled.
    pub(crate) fn cancelled(self) -> bool {
        let mut flag = 0_i32;
        crate::real::own!(TEST_CANCELLED, self.0, &raw mut flag) == 0 && flag != 0
    }
}
