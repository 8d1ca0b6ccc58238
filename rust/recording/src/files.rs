//! Operations on files, and the modes in which they were opened.

use rustc_hash::FxHashMap;
use whywait_otf2::enums::{IoAccessMode, IoCreationFlag, IoStatusFlag};

use crate::format::Call;
use crate::functions::Class;
use crate::model::Model;
use crate::spool::Process;

/// Operations on files that are not complete.
#[derive(Debug, Default)]
pub(crate) struct Files {
    count: u64,
    blocking: u64,
    /// By request, and by file for those that begin and end with two calls.
    requests: FxHashMap<u64, u64>,
    split: FxHashMap<u64, u64>,
}

impl Files {
    /// Begins an operation; returns its matching id, counted for each process.
    pub(crate) fn start(&mut self, class: Class, call: &Call) -> u64 {
        self.count += 1;
        match class {
            Class::Iio | Class::PosixAio | Class::PosixAioList => drop(self.requests.insert(call.id, self.count)),
            Class::IoBegin => drop(self.split.insert(u64::from(call.object), self.count)),
            _ => self.blocking = self.count,
        }
        self.count
    }

    /// Ends the operation of a request or, for those that begin and end with two calls, of a file.
    pub(crate) fn end(&mut self, class: Class, key: u64) -> Option<u64> {
        match class {
            Class::Iio | Class::PosixAioEnd => self.requests.remove(&key),
            Class::IoEnd => self.split.remove(&key),
            _ => Some(self.blocking),
        }
    }
}

/// Numbers of MPI's modes of files, which depend on the ABI.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Modes {
    append: i32,
    create: i32,
    delete_on_close: i32,
    exclusive: i32,
    read_only: i32,
    unique: i32,
    write_only: i32,
}

impl Modes {
    /// Those of the ABI of a process.
    pub(crate) fn of(process: &Process) -> Self {
        match process.definitions.start.as_ref().map(|start| start.abi.as_str()) {
            Some("mpi5") => Self {
                append: 1,
                create: 2,
                delete_on_close: 4,
                exclusive: 8,
                read_only: 16,
                unique: 128,
                write_only: 256,
            },
            _ => Self {
                append: 128,
                create: 1,
                delete_on_close: 16,
                exclusive: 64,
                read_only: 2,
                unique: 32,
                write_only: 4,
            },
        }
    }

    /// Whether closing the file deletes it.
    pub(crate) fn deletes(&self, mode: i32) -> bool {
        mode & self.delete_on_close != 0
    }

    /// The mode in OTF2's terms.
    pub(crate) fn flags(&self, mode: i32, model: Model) -> (IoAccessMode, IoCreationFlag, IoStatusFlag) {
        let has = |bit: i32| mode & bit != 0;
        let access = match (has(self.read_only), has(self.write_only)) {
            (true, _) => IoAccessMode::READ_ONLY,
            (_, true) => IoAccessMode::WRITE_ONLY,
            _ => IoAccessMode::READ_WRITE,
        };
        let creation = [
            (self.create, IoCreationFlag::CREATE),
            (self.exclusive, IoCreationFlag::EXCLUSIVE),
            (self.unique, IoCreationFlag::UNIQUE),
        ];
        // Score-P takes one flag for the other.
        let delete = if model == Model::Scorep7 { IoStatusFlag::CLOSE_ON_EXEC } else { IoStatusFlag::DELETE_ON_CLOSE };
        let status = [(self.append, IoStatusFlag::APPEND), (self.delete_on_close, delete)];
        (
            access,
            IoCreationFlag(creation.iter().filter(|(bit, _)| has(*bit)).fold(0, |all, (_, flag)| all | flag.0)),
            IoStatusFlag(status.iter().filter(|(bit, _)| has(*bit)).fold(0, |all, (_, flag)| all | flag.0)),
        )
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::spool::Start;

    fn modes(abi: &str) -> Modes {
        let mut process = Process::default();
        process.definitions.start = Some(Start { abi: abi.into(), ..Start::default() });
        Modes::of(&process)
    }

    #[test]
    fn numbers_of_modes_depend_on_the_abi() {
        // Create, write only, append, delete on close: from mpi.h of MPICH and Open MPI, and mpi_abi.h of MPI 5.
        for (abi, mode) in [("mpich", 1 | 4 | 128 | 16), ("openmpi", 1 | 4 | 128 | 16), ("mpi5", 2 | 256 | 1 | 4)] {
            let modes = modes(abi);
            let status = IoStatusFlag(IoStatusFlag::APPEND.0 | IoStatusFlag::DELETE_ON_CLOSE.0);
            let expected = (IoAccessMode::WRITE_ONLY, IoCreationFlag::CREATE, status);
            assert_eq!(modes.flags(mode, Model::Full), expected, "{abi}");
            assert!(modes.deletes(mode) && !modes.deletes(8 << 8), "{abi}");
        }
        let (access, creation, status) = modes("mpi5").flags(16 | 8, Model::Full);
        assert_eq!((access, creation), (IoAccessMode::READ_ONLY, IoCreationFlag::EXCLUSIVE));
        assert_eq!(status, IoStatusFlag::NONE);
    }

    #[test]
    fn operations_end_where_they_were_begun() {
        let mut files = Files::default();
        let call = |id, object| Call { object, id, ..Call::default() };
        assert_eq!(files.start(Class::Io, &call(0, 1)), 1);
        assert_eq!(files.start(Class::Iio, &call(7, 1)), 2);
        assert_eq!(files.start(Class::IoBegin, &call(0, 1)), 3);
        assert_eq!(files.end(Class::Iio, 7), Some(2));
        assert_eq!(files.end(Class::Iio, 7), None);
        assert_eq!(files.end(Class::IoEnd, 1), Some(3));
        assert_eq!(files.start(Class::Io, &call(0, 1)), 4);
        assert_eq!(files.end(Class::Io, 1), Some(4));
    }
}
