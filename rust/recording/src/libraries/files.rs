//! MPI's files, and the modes in which they were opened.

use whywait_otf2::Event;
use whywait_otf2::enums::{IoAccessMode, IoCreationFlag, IoSeekOption, IoStatusFlag};

use super::library::{Called, Process, Records};
use crate::functions::Class;
use crate::model::Model;
use crate::requests::Request;
use crate::spool;
use crate::thread::Out;

/// Files of a process.
#[derive(Debug)]
pub(crate) struct MpiFiles {
    modes: Modes,
}

impl MpiFiles {
    pub(crate) fn new(process: &spool::Process) -> Self {
        Self { modes: Modes::of(process) }
    }
}

impl Records for MpiFiles {
    fn enter(&mut self, out: &mut Out<'_>, called: &Called<'_>, process: &mut Process<'_>) {
        let Called { function, call, bytes: bytes_request, .. } = *called;
        if let (Class::Io | Class::IoBegin | Class::Iio, Some(file)) = (function.class, process.file(call.object)) {
            let (mode, operation_flags) = function.file_operation();
            let matching_id = process.files.start(function.class, &call);
            let handle = file.id;
            out.put(call.enter, &Event::IoOperationBegin { handle, mode, operation_flags, bytes_request, matching_id });
        }
    }

    fn leave(&mut self, out: &mut Out<'_>, called: &Called<'_>, process: &mut Process<'_>) {
        let Called { function, call, bytes, .. } = called;
        let time = call.leave;
        let number = if function.class == Class::FileOpen { call.id as u32 } else { call.object };
        let Some(file) = process.file(number) else { return };
        let handle = file.id;
        match function.class {
            Class::FileOpen => {
                let (mode, creation_flags, status_flags) = self.modes.flags(file.mode, process.model);
                out.put(time, &Event::IoCreateHandle { handle, mode, creation_flags, status_flags });
            }
            Class::FileClose => {
                if self.modes.deletes(file.mode) {
                    out.put(time, &Event::IoDeleteFile { io_paradigm: 0, file: file.path });
                }
                out.put(time, &Event::IoDestroyHandle { handle });
            }
            Class::FileSeek => {
                if let Ok(from) = u8::try_from(call.peer) {
                    let offset_request = (u64::from(call.tag.cast_unsigned()) | bytes << 32).cast_signed();
                    let (whence, offset_result) = (IoSeekOption(from), call.received);
                    out.put(time, &Event::IoSeek { handle, offset_request, whence, offset_result });
                }
            }
            Class::Io | Class::IoEnd => {
                if let Some(matching_id) = process.files.end(function.class, u64::from(call.object)) {
                    out.put(time, &Event::IoOperationComplete { handle, bytes_result: call.received, matching_id });
                }
            }
            _ => {}
        }
    }

    fn completes(&mut self, out: &mut Out<'_>, time: u64, request: &Request, process: &mut Process<'_>) {
        if process.ignored.contains(&request.id) {
            return;
        }
        if let (Some(file), Some(matching_id)) =
            (process.file(request.object), process.files.end(Class::Iio, request.id))
        {
            let bytes_result = request.bytes;
            out.put(time, &Event::IoOperationComplete { handle: file.id, bytes_result, matching_id });
        }
    }
}

/// Numbers of MPI's modes of files, which depend on the ABI.
#[derive(Debug, Clone, Copy)]
struct Modes {
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
    fn of(process: &spool::Process) -> Self {
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
    fn deletes(&self, mode: i32) -> bool {
        mode & self.delete_on_close != 0
    }

    /// The mode in OTF2's terms.
    fn flags(&self, mode: i32, model: Model) -> (IoAccessMode, IoCreationFlag, IoStatusFlag) {
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
        let mut process = spool::Process::default();
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
}
