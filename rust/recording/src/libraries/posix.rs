//! Operations on files of POSIX and of C's standard library: their definitions and events.

use whywait_otf2::Event;
use whywait_otf2::enums::{IoAccessMode, IoCreationFlag, IoOperationFlag, IoOperationMode, IoSeekOption, IoStatusFlag};

use super::library::{Called, Process, Records};
use crate::format::{Call, RequestKind};
use crate::functions::Class;
use crate::requests::listed;
use crate::thread::Out;
use crate::unify::{Id, Local};

/// Nothing but what all files have in common has to be remembered.
#[derive(Debug)]
pub(crate) struct Posix;

impl Records for Posix {
    fn enter(&mut self, out: &mut Out<'_>, called: &Called<'_>, process: &mut Process<'_>) {
        let Called { function, call, bytes, after } = *called;
        let (files, local) = (&mut process.files, process.local);
        let (mode, operation_flags) = function.file_operation();
        let mut begin = |number, mode, bytes_request, id| {
            if let Some(handle) = file(local, number) {
                let matching_id = files.start(function.class, &Call { id, ..call });
                out.put(
                    call.enter,
                    &Event::IoOperationBegin { handle, mode, operation_flags, bytes_request, matching_id },
                );
            }
        };
        match function.class {
            Class::PosixIo | Class::PosixChar | Class::PosixScan | Class::PosixFlush | Class::PosixAio => {
                begin(call.object, mode, bytes, call.id);
            }
            Class::PosixCopy => {
                if let Some((number, mode)) = copied(&call, local).next() {
                    begin(number, mode, bytes, 0);
                }
            }
            Class::PosixAioList => {
                for request in after.iter().flat_map(listed).filter(|request| request.kind == RequestKind::File as u8) {
                    let mode = if request.peer == 0 { IoOperationMode::READ } else { IoOperationMode::WRITE };
                    begin(request.object, mode, request.bytes, request.id);
                }
            }
            _ => {}
        }
    }

    fn leave(&mut self, out: &mut Out<'_>, called: &Called<'_>, process: &mut Process<'_>) {
        let Called { function, call, bytes, .. } = *called;
        let (files, local) = (&mut process.files, process.local);
        if function.class == Class::PosixCopy {
            let (operation_flags, bytes_result) = (IoOperationFlag::NONE, call.received);
            for (k, (number, mode)) in copied(&call, local).enumerate() {
                let Some(handle) = file(local, number) else { continue };
                if k > 0 {
                    let matching_id = files.start(function.class, &call);
                    let bytes_request = bytes;
                    out.put(
                        call.leave,
                        &Event::IoOperationBegin { handle, mode, operation_flags, bytes_request, matching_id },
                    );
                }
                if let Some(matching_id) = files.end(function.class, 0) {
                    out.put(call.leave, &Event::IoOperationComplete { handle, bytes_result, matching_id });
                }
            }
            return;
        }
        let number = if function.class == Class::PosixOpen { call.id as u32 } else { call.object };
        let Some(handle) = file(local, number) else { return };
        let event = match function.class {
            Class::PosixOpen => {
                let (mode, creation_flags, status_flags) = modes(call.tag);
                Event::IoCreateHandle { handle, mode, creation_flags, status_flags }
            }
            Class::PosixClose => Event::IoDestroyHandle { handle },
            Class::PosixDup => {
                // The new descriptor is the same file.
                Event::IoDuplicateHandle { old_handle: handle, new_handle: handle, status_flags: IoStatusFlag::NONE }
            }
            Class::PosixStatus | Class::PosixMap => {
                Event::IoChangeStatusFlags { handle, status_flags: IoStatusFlag::NONE }
            }
            Class::PosixSeek => {
                let Ok(whence) = u8::try_from(call.peer) else { return };
                let offset_request = (u64::from(call.tag.cast_unsigned()) | bytes << 32).cast_signed();
                Event::IoSeek { handle, offset_request, whence: IoSeekOption(whence), offset_result: call.received }
            }
            Class::PosixAio | Class::PosixAioList => return,
            Class::PosixAioEnd => match files.end(function.class, call.id) {
                None => return,
                Some(matching_id) if call.source != 0 => Event::IoOperationCancelled { handle, matching_id },
                Some(matching_id) => Event::IoOperationComplete { handle, bytes_result: call.received, matching_id },
            },
            _ => {
                let Some(matching_id) = files.end(function.class, 0) else { return };
                Event::IoOperationComplete { handle, bytes_result: call.received, matching_id }
            }
        };
        out.put(call.leave, &event);
    }
}

/// The files of a call that copies, as far as they are known. Its time is that of the first.
fn copied(call: &Call, local: &Local) -> impl Iterator<Item = (u32, IoOperationMode)> {
    let files = [(call.tag.cast_unsigned(), IoOperationMode::READ), (call.object, IoOperationMode::WRITE)];
    files.into_iter().filter(|(number, _)| file(local, *number).is_some())
}

fn file(local: &Local, number: u32) -> Option<Id> {
    local.posix.get(&number).copied()
}

// Flags of `open` on Linux, on all machines that the recorder is for. O_DIRECT and its neighbors differ.
const ACCESS: i32 = 3;
const CREATE: i32 = 0o100;
const EXCLUSIVE: i32 = 0o200;
const TRUNCATE: i32 = 0o1000;
const APPEND: i32 = 0o2000;
const NON_BLOCKING: i32 = 0o4000;
const SYNC: i32 = 0o4_010_000;
const CLOSE_ON_EXEC: i32 = 0o2_000_000;

/// Flags of `open` in OTF2's terms.
fn modes(flags: i32) -> (IoAccessMode, IoCreationFlag, IoStatusFlag) {
    let access = match flags & ACCESS {
        0 => IoAccessMode::READ_ONLY,
        1 => IoAccessMode::WRITE_ONLY,
        _ => IoAccessMode::READ_WRITE,
    };
    let creation = [
        (CREATE, IoCreationFlag::CREATE),
        (EXCLUSIVE, IoCreationFlag::EXCLUSIVE),
        (TRUNCATE, IoCreationFlag::TRUNCATE),
    ];
    let status = [
        (APPEND, IoStatusFlag::APPEND),
        (NON_BLOCKING, IoStatusFlag::NON_BLOCKING),
        (SYNC, IoStatusFlag::SYNC),
        (CLOSE_ON_EXEC, IoStatusFlag::CLOSE_ON_EXEC),
    ];
    let has = |bits: i32| flags & bits == bits;
    (
        access,
        IoCreationFlag(creation.iter().filter(|(bits, _)| has(*bits)).fold(0, |all, (_, flag)| all | flag.0)),
        IoStatusFlag(status.iter().filter(|(bits, _)| has(*bits)).fold(0, |all, (_, flag)| all | flag.0)),
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn flags_of_open_have_their_names_in_otf2() {
        // O_WRONLY | O_CREAT | O_TRUNC, O_RDWR | O_APPEND | O_CLOEXEC, and O_DSYNC, which is a part of O_SYNC.
        let created = IoCreationFlag(IoCreationFlag::CREATE.0 | IoCreationFlag::TRUNCATE.0);
        assert_eq!(modes(0o1101), (IoAccessMode::WRITE_ONLY, created, IoStatusFlag::NONE));
        let status = IoStatusFlag(IoStatusFlag::APPEND.0 | IoStatusFlag::CLOSE_ON_EXEC.0);
        assert_eq!(modes(0o2_002_002), (IoAccessMode::READ_WRITE, IoCreationFlag::NONE, status));
        assert_eq!(modes(0o10_000), (IoAccessMode::READ_ONLY, IoCreationFlag::NONE, IoStatusFlag::NONE));
    }
}
