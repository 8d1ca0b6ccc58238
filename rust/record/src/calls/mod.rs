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
use crate::table::{Class, of_aio, of_files};
use crate::{aio, posix, real};

/// Hands a call to the file of its library.
macro_rules! in_its_library {
    ($half:ident, $context:ident) => {
        match $context.function.class {
            Class::Send
            | Class::Isend
            | Class::SendInit
            | Class::Isendrecv
            | Class::Sendrecv
            | Class::Recv
            | Class::Mrecv
            | Class::Irecv
            | Class::Imrecv
            | Class::RecvInit
            | Class::Probe
            | Class::Mprobe
            | Class::Pready
            | Class::Parrived => point_to_point::$half($context),
            Class::Start
            | Class::Startall
            | Class::Wait
            | Class::Waitany
            | Class::Waitall
            | Class::Waitsome
            | Class::Test
            | Class::Testany
            | Class::Testall
            | Class::Testsome
            | Class::RequestFree
            | Class::Cancel => requests::$half($context),
            Class::Coll | Class::Icoll | Class::CollInit => collectives::$half($context),
            Class::CommCreate
            | Class::CommCreateGroup
            | Class::CommFromGroup
            | Class::CommIdup
            | Class::CommForeign
            | Class::CommFree
            | Class::CommName
            | Class::IntercommCreate
            | Class::IntercommMerge
            | Class::TypeFree => communicators::$half($context),
            Class::WinCreate
            | Class::WinFree
            | Class::WinName
            | Class::WinPlain
            | Class::WinFence
            | Class::WinGroup
            | Class::WinEnd
            | Class::WinLock
            | Class::WinUnlock
            | Class::WinFlush
            | Class::WinFlushLocal
            | Class::Rma
            | Class::RmaRequest
            | Class::Atomic
            | Class::AtomicRequest => one_sided::$half($context),
            Class::FileOpen
            | Class::FileClose
            | Class::FilePlain
            | Class::FileSeek
            | Class::Io
            | Class::IoBegin
            | Class::IoEnd
            | Class::Iio => files::$half($context),
            Class::ThreadLock
            | Class::ThreadUnlock
            | Class::ThreadCondition
            | Class::ThreadCreate
            | Class::ThreadJoin => threads::$half($context),
            Class::ShmemPut
            | Class::ShmemGet
            | Class::ShmemAtomic
            | Class::ShmemWait
            | Class::ShmemTest
            | Class::ShmemLock
            | Class::ShmemTryLock
            | Class::ShmemUnlock
            | Class::ShmemColl => shmem::$half($context),
            Class::ArmciColl
            | Class::ArmciPut
            | Class::ArmciGet
            | Class::ArmciAtomic
            | Class::ArmciRmw
            | Class::ArmciWait
            | Class::ArmciFence
            | Class::ArmciLock
            | Class::ArmciUnlock => armci::$half($context),
            of_files!() => posix::$half($context),
            of_aio!() => aio::$half($context),
            Class::Plain
            | Class::Init
            | Class::SessionInit
            | Class::Finalize
            | Class::ShmemInit
            | Class::ShmemFinalize
            | Class::Abort
            | Class::Pcontrol => life::$half($context),
            // Moments, not calls.
            Class::ThreadBegin | Class::ThreadEnd | Class::Omp => {}
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
