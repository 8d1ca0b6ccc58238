//! MPI's files.

use crate::context::Context;
use crate::files;
use crate::format::{NONE, PEER_UNDEFINED, RequestKind};
use crate::real::{self, own};
use crate::requests::Request;
use crate::status::Status;
use crate::table::{Class, Role, number};

/// A handle in memory that is a pointer in all MPIs.
fn load_pointer(address: usize) -> usize {
    // SAFETY: the program passed the address to MPI.
    if address == 0 { 0 } else { unsafe { (address as *const usize).read() } }
}

/// Writes the first half of the slot of a call, and keeps what must not change meanwhile.
pub(super) fn enter(context: &mut Context) {
    match context.function.class {
        Class::FileOpen => {
            let object = context.communicator();
            context.enter(PEER_UNDEFINED, context.int(Role::Mode), object, 0);
        }
        Class::FileClose => {
            context.handle = load_pointer(context.word(Role::File));
            context.file = files::remove(context.handle);
            let object = context.file.map_or(NONE, |file| file.id);
            context.enter(PEER_UNDEFINED, 0, object, 0);
        }
        Class::FilePlain => {
            let object = context.file();
            context.enter(PEER_UNDEFINED, 0, object, 0);
        }
        Class::FileSeek => {
            let object = context.file();
            let (offset, whence) = (context.word(Role::Offset) as u64, context.int(Role::Whence));
            let from = context.abi.seek.iter().position(|known| *known == whence);
            context.enter(from.map_or(PEER_UNDEFINED, |from| from as i32), offset as i32, object, offset >> 32);
        }
        Class::Io | Class::IoBegin | Class::IoEnd | Class::Iio => {
            let object = context.file();
            context.ensure_status();
            let bytes = if context.has(Role::Scount) { context.bytes(Role::Scount, Role::Stype) } else { 0 };
            context.request = Request {
                kind: if object == NONE { RequestKind::None } else { RequestKind::File },
                object,
                bytes,
                ..Request::UNKNOWN
            };
            context.enter(PEER_UNDEFINED, 0, object, bytes);
        }
        _ => {}
    }
}

/// Writes the second half, and what later calls need.
pub(super) fn leave(context: &mut Context) {
    let fine = context.code == 0;
    match context.function.class {
        Class::Iio => {
            let id = context.made(1);
            context.leave(0, 0, context.request.received, id);
        }
        Class::FileOpen => {
            let handle = load_pointer(context.word(Role::Newfile));
            let name = real::text(context.word(Role::Text));
            let new = if fine { files::add(handle, context.comm, context.int(Role::Mode), &name) } else { NONE };
            context.leave(0, 0, 0, u64::from(new));
        }
        Class::FileClose => {
            if let Some(file) = context.file.filter(|_| !fine) {
                files::restore(context.handle, file);
            }
            context.leave(0, 0, 0, 0);
        }
        Class::FileSeek => {
            let mut position = 0_u64;
            let file = context.word(Role::File);
            if fine && context.record {
                if context.index == number::FILE_SEEK {
                    own!(FILE_GET_POSITION, file, &raw mut position);
                } else {
                    own!(FILE_GET_POSITION_SHARED, file, &raw mut position);
                }
            }
            context.leave(0, 0, position, 0);
        }
        Class::Io | Class::IoEnd => {
            let bytes = context.status().filter(|_| fine).map_or(0, Status::bytes);
            context.leave(0, 0, bytes, 0);
        }
        _ => context.leave(0, 0, 0, 0),
    }
}
