//! What each function is: the table, and what follows from a name for definitions and events.

use rustc_hash::FxHashSet;
use whywait_otf2::enums::{CollectiveOp, IoOperationFlag, IoOperationMode, Paradigm, RegionRole, RmaAtomicType};

/// How calls of a function are recorded: see [`crate::format`].
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Class {
    Plain,
    Init,
    Finalize,
    Abort,
    Pcontrol,
    SessionInit,
    TypeFree,
    CommName,
    WinName,
    Probe,
    Mprobe,
    Send,
    Recv,
    Mrecv,
    Sendrecv,
    Isend,
    Irecv,
    Imrecv,
    Isendrecv,
    SendInit,
    RecvInit,
    Pready,
    Parrived,
    Start,
    Startall,
    Wait,
    Waitany,
    Waitall,
    Waitsome,
    Test,
    Testany,
    Testall,
    Testsome,
    RequestFree,
    Cancel,
    Coll,
    Icoll,
    CollInit,
    CommCreate,
    CommCreateGroup,
    CommFromGroup,
    CommIdup,
    CommForeign,
    CommFree,
    IntercommCreate,
    IntercommMerge,
    WinCreate,
    WinFree,
    WinFence,
    WinPlain,
    WinGroup,
    WinEnd,
    WinLock,
    WinUnlock,
    WinFlush,
    WinFlushLocal,
    Rma,
    RmaRequest,
    Atomic,
    AtomicRequest,
    FileOpen,
    FileClose,
    FilePlain,
    FileSeek,
    Io,
    IoBegin,
    IoEnd,
    Iio,
    ThreadLock,
    ThreadUnlock,
    ThreadCondition,
    ThreadCreate,
    ThreadJoin,
    ThreadBegin,
    ThreadEnd,
    Omp,
    ArmciColl,
    ArmciPut,
    ArmciGet,
    ArmciAtomic,
    ArmciRmw,
    ArmciWait,
    ArmciFence,
    ArmciLock,
    ArmciUnlock,
    PosixOpen,
    PosixClose,
    PosixIo,
    PosixChar,
    PosixScan,
    PosixFlush,
    PosixSeek,
    PosixDup,
    PosixStatus,
    PosixMap,
    PosixName,
    PosixCopy,
    PosixCloseRange,
    PosixAio,
    PosixAioList,
    PosixAioWait,
    PosixAioEnd,
    ShmemInit,
    ShmemFinalize,
    ShmemPut,
    ShmemGet,
    ShmemAtomic,
    ShmemWait,
    ShmemTest,
    ShmemLock,
    ShmemTryLock,
    ShmemUnlock,
    ShmemColl,
}

impl Class {
    /// Whether calls leave records of files, and are none of MPI.
    pub(crate) const fn is_of_files(self) -> bool {
        matches!(self.library(), Library::Posix | Library::Aio)
    }

    /// Whether calls leave records of ARMCI.
    pub(crate) const fn is_of_armci(self) -> bool {
        matches!(self.library(), Library::Armci)
    }
}

/// A function of MPI, of the thread library, of OpenSHMEM, of ARMCI, or of files.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Function {
    /// Name of its region: `MPI_...`, `pthread_...`, `ARMCI_...`, mostly `shmem_...`, or that of a function of files.
    pub(crate) name: &'static str,
    /// How its calls are recorded.
    pub(crate) class: Class,
    /// Version of MPI that introduced it.
    pub(crate) since: (u8, u8),
    /// Of functions of files: it reads, and does not write.
    reads: bool,
    /// The operation of a collective function; none for those between neighbours, which OTF2 does not know.
    pub(crate) operation: Option<CollectiveOp>,
}

include!(concat!(env!("OUT_DIR"), "/functions.rs"));

/// The newest version of MPI that Score-P 7.1 knows.
const SCOREP_7: (u8, u8) = (3, 1);

impl Function {
    const fn new(
        name: &'static str,
        class: Class,
        since: (u8, u8),
        reads: bool,
        operation: Option<CollectiveOp>,
    ) -> Self {
        Self { name, class, since, reads, operation }
    }

    /// Whether Score-P 7.1 records this function.
    pub(crate) fn is_in_scorep7(&self) -> bool {
        self.since <= SCOREP_7
    }

    /// The name of its region.
    pub(crate) fn region_name(&self) -> &'static str {
        // What GA_Sync calls is the same barrier without a fence.
        if self.name == "armci_msg_barrier" { "ARMCI_Barrier" } else { self.name }
    }

    /// What it belongs to. OTF2 does not know ARMCI.
    pub(crate) fn paradigm(&self) -> Paradigm {
        match self.name.split('_').next() {
            _ if self.class.is_of_files() => Paradigm::NONE,
            Some("MPI") => Paradigm::MPI,
            Some("omp") => Paradigm::OPENMP,
            Some("pthread" | "thread") => Paradigm::PTHREAD,
            Some("ARMCI" | "armci") => Paradigm::UNKNOWN,
            _ => Paradigm::SHMEM,
        }
    }

    /// The file that its region names, as with Score-P.
    pub(crate) fn file(&self) -> &'static str {
        match self.paradigm() {
            Paradigm::MPI => "MPI",
            Paradigm::OPENMP => "OMP",
            Paradigm::SHMEM => "SHMEM",
            Paradigm::NONE => "POSIX I/O",
            Paradigm::PTHREAD => "PTHREAD",
            _ => "ARMCI",
        }
    }

    /// Whether it is a moment of a construct of OpenMP rather than a function.
    pub(crate) fn is_construct(&self) -> bool {
        self.class == Class::Omp
    }

    /// Whether it is a moment in the life of a thread, or of a construct, rather than a function.
    pub(crate) fn is_moment(&self) -> bool {
        matches!(self.class, Class::ThreadBegin | Class::ThreadEnd | Class::Omp)
    }

    /// Whether it asks if something has come, and returns at once.
    pub(crate) fn tests(&self) -> bool {
        matches!(self.class, Class::Test | Class::Testany | Class::Testall | Class::Testsome | Class::ShmemTest)
            || self.class == Class::Parrived
            || matches!(self.name, "MPI_Iprobe" | "MPI_Improbe" | "MPI_Win_test")
    }

    /// Whether a call of it is with the processes of one of these communicators, to judge by the number of its object.
    pub(crate) fn is_with(&self, object: u32, comms: &FxHashSet<u32>) -> bool {
        let has_other = matches!(
            self.class,
            Class::Rma | Class::RmaRequest | Class::Atomic | Class::AtomicRequest | Class::CommForeign
        ) || ["MPI_Win_", "MPI_File_"].iter().any(|objects| self.name.starts_with(objects));
        self.paradigm() == Paradigm::MPI && !has_other && comms.contains(&object)
    }

    /// The role of its region.
    pub(crate) fn role(&self) -> RegionRole {
        match self.class {
            Class::Send
            | Class::Recv
            | Class::Mrecv
            | Class::Sendrecv
            | Class::Isend
            | Class::Irecv
            | Class::Imrecv
            | Class::Isendrecv
            | Class::SendInit
            | Class::RecvInit
            | Class::Probe
            | Class::Mprobe => RegionRole::POINT2POINT,
            Class::Coll | Class::Icoll | Class::CollInit | Class::ShmemColl => {
                match self.operation.unwrap_or(CollectiveOp::ALLTOALL) {
                    CollectiveOp::BARRIER => RegionRole::BARRIER,
                    CollectiveOp::BCAST | CollectiveOp::SCATTER | CollectiveOp::SCATTERV => RegionRole::COLL_ONE2ALL,
                    CollectiveOp::REDUCE if self.class == Class::ShmemColl => RegionRole::COLL_ALL2ALL,
                    CollectiveOp::GATHER | CollectiveOp::GATHERV | CollectiveOp::REDUCE => RegionRole::COLL_ALL2ONE,
                    CollectiveOp::SCAN | CollectiveOp::EXSCAN => RegionRole::COLL_OTHER,
                    _ => RegionRole::COLL_ALL2ALL,
                }
            }
            Class::Rma | Class::RmaRequest | Class::ShmemPut | Class::ShmemGet | Class::ArmciPut | Class::ArmciGet => {
                RegionRole::RMA
            }
            Class::Atomic | Class::AtomicRequest | Class::ShmemAtomic | Class::ArmciAtomic | Class::ArmciRmw => {
                RegionRole::ATOMIC
            }
            Class::Io
            | Class::IoBegin
            | Class::IoEnd
            | Class::Iio
            | Class::PosixIo
            | Class::PosixChar
            | Class::PosixScan
            | Class::PosixFlush
            | Class::PosixCopy
            | Class::PosixAio
            | Class::PosixAioList
            | Class::PosixAioWait
            | Class::PosixAioEnd => RegionRole::FILE_IO,
            Class::FileOpen | Class::FileClose => RegionRole::FILE_IO_METADATA,
            class if class.is_of_files() => RegionRole::FILE_IO_METADATA,
            Class::ThreadCreate => RegionRole::THREAD_CREATE,
            Class::ThreadJoin => RegionRole::THREAD_WAIT,
            _ if self.paradigm() == Paradigm::PTHREAD => RegionRole::WRAPPER,
            _ => match self.name {
                "MPI_Win_allocate"
                | "MPI_Win_allocate_shared"
                | "MPI_Alloc_mem"
                | "ARMCI_Malloc"
                | "shmem_malloc"
                | "shmem_calloc"
                | "shmem_align"
                | "shmalloc"
                | "shmemalign" => RegionRole::ALLOCATE,
                "shmem_realloc" | "shrealloc" => RegionRole::REALLOCATE,
                "MPI_Free_mem" | "ARMCI_Free" | "shmem_free" | "shfree" => RegionRole::DEALLOCATE,
                "ARMCI_Barrier" | "armci_msg_barrier" => RegionRole::BARRIER,
                "MPI_File_sync" => RegionRole::FILE_IO,
                "MPI_File_seek" | "MPI_File_seek_shared" | "MPI_File_delete" => RegionRole::FILE_IO_METADATA,
                _ => RegionRole::FUNCTION,
            },
        }
    }

    /// The kind of an atomic operation.
    pub(crate) fn atomic(&self) -> RmaAtomicType {
        match self.name {
            "MPI_Accumulate" | "MPI_Raccumulate" => RmaAtomicType::ACCUMULATE,
            "MPI_Compare_and_swap" => RmaAtomicType::COMPARE_AND_SWAP,
            _ => RmaAtomicType::FETCH_AND_ACCUMULATE,
        }
    }

    /// Whether a function for one-sided transfers reads from the target.
    pub(crate) fn is_get(&self) -> bool {
        matches!(self.name, "MPI_Get" | "MPI_Rget")
    }

    /// Direction and properties of an operation on a file.
    pub(crate) fn file_operation(&self) -> (IoOperationMode, IoOperationFlag) {
        let mode = match self.class {
            Class::PosixFlush => IoOperationMode::FLUSH,
            Class::PosixAio if self.name == "aio_fsync" => IoOperationMode::FLUSH,
            _ if self.reads => IoOperationMode::READ,
            _ => IoOperationMode::WRITE,
        };
        let mut flags = IoOperationFlag::NONE.0;
        if matches!(self.class, Class::Iio | Class::IoBegin | Class::PosixAio | Class::PosixAioList) {
            flags |= IoOperationFlag::NON_BLOCKING.0;
        }
        if ["_all", "_ordered"].iter().any(|word| self.name.contains(word)) {
            flags |= IoOperationFlag::COLLECTIVE.0;
        }
        (mode, IoOperationFlag(flags))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn named(name: &str) -> &'static Function {
        FUNCTIONS.iter().find(|function| function.name == name).unwrap()
    }

    #[test]
    fn names_say_what_functions_do() {
        assert_eq!(named("MPI_Iallreduce").operation, Some(CollectiveOp::ALLREDUCE));
        assert_eq!(named("MPI_Reduce_scatter_block_init").operation, Some(CollectiveOp::REDUCE_SCATTER_BLOCK));
        assert_eq!(named("MPI_Neighbor_alltoallv").operation, None);
        assert_eq!(named("MPI_Neighbor_alltoallv").role(), RegionRole::COLL_ALL2ALL);
        assert_eq!(named("MPI_Rget_accumulate").atomic(), RmaAtomicType::FETCH_AND_ACCUMULATE);
        let both = IoOperationFlag(IoOperationFlag::NON_BLOCKING.0 | IoOperationFlag::COLLECTIVE.0);
        assert_eq!(named("MPI_File_iread_at_all").file_operation(), (IoOperationMode::READ, both));
        assert_eq!(named("MPI_File_write").file_operation(), (IoOperationMode::WRITE, IoOperationFlag::NONE));
        let posix =
            [("fgets", IoOperationMode::READ), ("fprintf", IoOperationMode::WRITE), ("fsync", IoOperationMode::FLUSH)];
        for (name, mode) in posix {
            assert_eq!((named(name).file_operation().0, named(name).paradigm()), (mode, Paradigm::NONE), "{name}");
        }
        assert!(named("MPI_Send").is_in_scorep7() && !named("MPI_Psend_init").is_in_scorep7());
    }

    #[test]
    fn every_blocking_collective_but_those_of_neighbours_has_an_operation() {
        for function in FUNCTIONS.iter().filter(|function| function.class == Class::Coll) {
            assert_eq!(function.operation.is_none(), function.name.contains("Neighbor"), "{}", function.name);
        }
    }
}
