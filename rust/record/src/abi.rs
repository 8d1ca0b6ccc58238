//! What differs between the binary interfaces of MPIs.
//!
//! A handle, a pointer, an `MPI_Aint` or an `MPI_Count` takes one register or one word of the stack in all of them; so the functions
//! are the same, and these numbers are all there is.

use crate::library::Library;
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
    /// From the beginning, from the present position, from the end.
    pub(crate) seek: [i32; 3],
    pub(crate) in_status: c_int,
    pub(crate) pending: c_int,
    pub(crate) truncate: c_int,
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
    pub(crate) type_null: usize,
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
    seek: [600, 602, 604],
    in_status: 17,
    pending: 18,
    truncate: 14,
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
    type_null: 0x0c00_0000,
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
    seek: [600, 602, 604],
    in_status: 18,
    pending: 19,
    truncate: 15,
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
    type_null: 0,
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
    seek: [403, 401, 402],
    in_status: 19,
    pending: 18,
    truncate: 15,
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
    type_null: 0x200,
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
        type_null: library.variable(c"ompi_mpi_datatype_null")?,
        ..OPEN_MPI
    })
}

impl Abi {
    /// Whether MPI may be asked about a type. It calls the program's error handler if there is none, which may count, exit, or throw.
    pub(crate) fn is_type(&self, handle: usize) -> bool {
        /// What handles of types are like in MPICH, but for that of none.
        const KIND: usize = 3;
        let is_like_one = self.handle == 8 || handle >> 26 & 0xf == KIND && handle >> 30 != 0;
        handle != 0 && handle != self.type_null && is_like_one
    }

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

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::HashMap;
    use std::path::Path;
    use std::process::Command;

    /// Prints the constants that `mpi.h` has under the names of the fields.
    const PROGRAM: &str = r#"
        #include <mpi.h>
        #include <stddef.h>
        #include <stdio.h>
        #define SHOW(field, value) printf("%s %lld\n", #field, (long long)(value))
        int main(void) {
            SHOW(handle, sizeof(MPI_Comm)); SHOW(status, sizeof(MPI_Status));
            SHOW(status_source, offsetof(MPI_Status, MPI_SOURCE)); SHOW(status_tag, offsetof(MPI_Status, MPI_TAG));
            SHOW(status_error, offsetof(MPI_Status, MPI_ERROR));
            SHOW(proc_null, MPI_PROC_NULL); SHOW(any_source, MPI_ANY_SOURCE); SHOW(any_tag, MPI_ANY_TAG);
            SHOW(root, MPI_ROOT); SHOW(undefined, MPI_UNDEFINED); SHOW(in_place, MPI_IN_PLACE);
            SHOW(status_ignore, MPI_STATUS_IGNORE); SHOW(statuses_ignore, MPI_STATUSES_IGNORE);
            SHOW(lock_exclusive, MPI_LOCK_EXCLUSIVE); SHOW(in_status, MPI_ERR_IN_STATUS); SHOW(pending, MPI_ERR_PENDING); SHOW(truncate, MPI_ERR_TRUNCATE);
            SHOW(seek_set, MPI_SEEK_SET); SHOW(seek_cur, MPI_SEEK_CUR); SHOW(seek_end, MPI_SEEK_END);
            SHOW(unsupported, MPI_ERR_UNSUPPORTED_OPERATION);
            SHOW(cart, MPI_CART); SHOW(graph, MPI_GRAPH); SHOW(dist_graph, MPI_DIST_GRAPH);
        #ifndef OPEN_MPI
            SHOW(comm_null, (size_t)MPI_COMM_NULL); SHOW(comm_world, (size_t)MPI_COMM_WORLD);
            SHOW(comm_self, (size_t)MPI_COMM_SELF); SHOW(request_null, (size_t)MPI_REQUEST_NULL);
            SHOW(message_null, (size_t)MPI_MESSAGE_NULL); SHOW(message_no_proc, (size_t)MPI_MESSAGE_NO_PROC);
            SHOW(win_null, (size_t)MPI_WIN_NULL); SHOW(file_null, (size_t)MPI_FILE_NULL); SHOW(byte, (size_t)MPI_BYTE);
            SHOW(type_null, (size_t)MPI_DATATYPE_NULL);
        #endif
            return 0;
        }"#;

    /// The constants, or nothing if the compiler is not there.
    fn constants(compiler: &str) -> Option<HashMap<String, i64>> {
        let directory = std::env::temp_dir().join(format!("whywait-abi-{compiler}-{}", std::process::id()));
        std::fs::create_dir_all(&directory).unwrap();
        let (source, program) = (directory.join("abi.c"), directory.join("abi"));
        std::fs::write(&source, PROGRAM).unwrap();
        let compiled = Command::new(compiler).arg("-o").arg(&program).arg(&source).status();
        let text = match compiled {
            Ok(status) if status.success() => run(&program),
            _ => None,
        };
        std::fs::remove_dir_all(directory).unwrap();
        let pair = |line: &str| line.split_once(' ').map(|(name, value)| (name.to_owned(), value.parse().unwrap()));
        Some(text?.lines().filter_map(pair).collect())
    }

    fn run(program: &Path) -> Option<String> {
        let output = Command::new(program).output().ok()?;
        String::from_utf8(output.stdout).ok()
    }

    fn compare(compiler: &str, abi: &Abi) {
        let Some(constants) = constants(compiler) else {
            crate::fault::say(&format!("test skipped: no {compiler}"));
            return;
        };
        let open = abi.name == "openmpi";
        let word = |value: usize| value.cast_signed() as i64;
        let mut expected = vec![
            ("handle", word(abi.handle)),
            ("status", word(abi.status)),
            ("status_source", word(abi.status_source)),
            ("status_tag", word(abi.status_tag)),
            ("status_error", word(abi.status_error)),
            ("proc_null", abi.proc_null.into()),
            ("any_source", abi.any_source.into()),
            ("any_tag", abi.any_tag.into()),
            ("root", abi.root.into()),
            ("undefined", abi.undefined.into()),
            ("in_place", word(abi.in_place)),
            ("status_ignore", word(abi.status_ignore)),
            ("statuses_ignore", word(abi.status_ignore)),
            ("lock_exclusive", abi.lock_exclusive.into()),
            ("seek_set", abi.seek[0].into()),
            ("seek_cur", abi.seek[1].into()),
            ("seek_end", abi.seek[2].into()),
            ("in_status", abi.in_status.into()),
            ("pending", abi.pending.into()),
            ("truncate", abi.truncate.into()),
            ("unsupported", abi.unsupported.into()),
            ("cart", abi.cart.into()),
            ("graph", abi.graph.into()),
            ("dist_graph", abi.dist_graph.into()),
        ];
        if !open {
            expected.extend([
                ("comm_null", word(abi.comm_null)),
                ("comm_world", word(abi.comm_world)),
                ("comm_self", word(abi.comm_self)),
                ("request_null", word(abi.request_null)),
                ("message_null", word(abi.message_null)),
                ("message_no_proc", word(abi.message_no_proc)),
                ("win_null", word(abi.win_null)),
                ("file_null", word(abi.file_null)),
                ("byte", word(abi.byte)),
                ("type_null", word(abi.type_null)),
            ]);
        }
        let found: Vec<_> = expected.iter().map(|(name, _)| (*name, constants[*name])).collect();
        assert_eq!(found, expected, "{compiler}");
    }

    #[test]
    fn tables_are_those_of_mpi_h() {
        compare("mpicc.mpich", &MPICH);
        compare("mpicc.openmpi", &OPEN_MPI);
        compare("mpicc_abi", &MPI5);
    }

    #[test]
    fn handles_are_masked_to_their_size() {
        assert_eq!(MPICH.mask(0xdead_beef_4400_0000), MPICH.comm_world);
        assert_eq!(MPI5.mask(0x0101), MPI5.comm_world);
        let array = [0x4400_0000_u32, 0x4400_0001];
        assert_eq!(MPICH.load(array.as_ptr() as usize, 1), MPICH.comm_self);
    }

    #[test]
    fn ranks_and_tags_have_one_form() {
        use crate::format::{PEER_ANY, PEER_NULL, PEER_ROOT, TAG_ANY};
        for abi in [&MPICH, &OPEN_MPI, &MPI5] {
            assert_eq!(
                [abi.proc_null, abi.any_source, abi.root, 3].map(|rank| abi.peer(rank)),
                [PEER_NULL, PEER_ANY, PEER_ROOT, 3]
            );
            assert_eq!((abi.tag(abi.any_tag), abi.tag(0)), (TAG_ANY, 0));
        }
    }
}
