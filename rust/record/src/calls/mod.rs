//! What is recorded of calls, a file for each library and part of MPI: the first half of a slot before the call, and the second after it.

mod armci;
mod collectives;
mod communicators;
mod files;
mod life;
mod names;
mod one_sided;
mod point_to_point;
mod requests;
mod shmem;
mod threads;

pub(crate) use armci::makes_window;
pub(crate) use life::first;

use crate::context::Context;
use crate::format::flags;
use crate::table::Library;
use crate::{aio, posix, real};

/// Hands a call to the file of its library.
macro_rules! in_its_library {
    ($half:ident, $context:ident) => {
        match $context.function.library {
            Library::PointToPoint => point_to_point::$half($context),
            Library::Requests => requests::$half($context),
            Library::Collectives => collectives::$half($context),
            Library::Communicators => communicators::$half($context),
            Library::OneSided => one_sided::$half($context),
            Library::Files => files::$half($context),
            Library::Threads => threads::$half($context),
            Library::Shmem => shmem::$half($context),
            Library::Posix => posix::$half($context),
            Library::Aio => aio::$half($context),
            Library::Armci => armci::$half($context),
            Library::Life => life::$half($context),
            Library::Moments => {}
        }
    };
}

/// Before a call: the first half of its slot, and whatever must not change meanwhile.
pub(crate) fn before(context: &mut Context) {
    if context.record && real::falls_back(context.symbol()) {
        context.flags |= flags::FALLBACK;
    }
    in_its_library!(enter, context);
}

/// After a call: the second half of its slot, and what later calls need.
pub(crate) fn after(context: &mut Context) {
    in_its_library!(leave, context);
}
