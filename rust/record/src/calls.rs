//! What is recorded of each class of functions: [`before`] the call and [`after`] it, as the two halves of a slot.

use crate::clock::now;
use crate::comms::Comm;
use crate::completions::{List, failed, is_collective, leave_any, leave_completed, leave_some};
use crate::context::Context;
use crate::files;
use crate::format::{
    Entry, Extension, LOCK_EXCLUSIVE, LOCK_SHARED, NAME_COMM, NAME_WINDOW, NONE, NOTE_FREED_RECEIVE, PEER_ALL,
    PEER_NULL, PEER_ROOT, PEER_UNDEFINED, Partitions, Request as Item, RequestKind, flags,
};
use crate::frame::Frame;
use crate::real::own;
use crate::requests::{MESSAGES, REQUESTS, Request, put_back};
use crate::spool::Payload;
use crate::status::Status;
use crate::table::{Class, Function, Role, number, of_aio, of_files};
use crate::thread::Thread;
use crate::windows;
use crate::{aio, armci, kept, locks, posix, process, real, shmem, state, thread_starts};
use std::sync::atomic::Ordering;

/// Bytes of an array of blocks.
fn sum(context: &mut Context, blocks: usize, counts: Role, datatype: Role, datatypes: Role) -> u64 {
    let array = context.word(counts);
    if array == 0 {
        return 0;
    }
    let types = context.has(datatypes).then(|| context.word(datatypes));
    let mut total = 0_u64;
    let mut elements = 0_u64;
    for block in 0..blocks {
        // SAFETY: the program passed an array of so many counts to MPI.
        let count = unsafe {
            if context.large {
                (array as *const i64).add(block).read()
            } else {
                i64::from((array as *const i32).add(block).read())
            }
        };
        let count = u64::try_from(count).unwrap_or(0);
        match types {
            Some(types) if count > 0 => {
                let size = context.thread.type_size(context.abi.load(types, block));
                total = total.wrapping_add(count.wrapping_mul(size));
            }
            _ => elements = elements.wrapping_add(count),
        }
    }
    match types {
        None if elements > 0 => elements.wrapping_mul(context.thread.type_size(context.word(datatype))),
        _ => total,
    }
}

/// One block of such an array.
fn block(context: &mut Context, rank: i32, counts: Role, datatype: Role) -> u64 {
    let array = context.word(counts);
    let Some(rank) = usize::try_from(rank).ok().filter(|_| array != 0) else { return 0 };
    // SAFETY: as above.
    let count = unsafe {
        if context.large {
            (array as *const i64).add(rank).read()
        } else {
            i64::from((array as *const i32).add(rank).read())
        }
    };
    u64::try_from(count).unwrap_or(0).wrapping_mul(context.thread.type_size(context.word(datatype)))
}

/// Bytes of the caller's part of a collective operation: sent, received.
fn parts(context: &mut Context, comm: &Comm, root: i32) -> (u64, u64) {
    let function = context.function;
    let rooted = context.has(Role::Root);
    let inter = comm.remote > 0;
    let is_root = if inter { root == PEER_ROOT } else { root == comm.rank };
    if rooted && root == PEER_NULL {
        return (0, 0);
    }
    let (out, into) = comm.blocks(function.neighbours);
    let in_place = |role| context.has(role) && context.word(role) == context.abi.in_place;
    let (sends_in_place, receives_in_place) = (in_place(Role::Sbuf), in_place(Role::Rbuf));
    if sends_in_place || receives_in_place {
        context.flags |= flags::IN_PLACE;
    }
    // What is significant at the root only, and what the root of an intercommunicator has no part in. One count stands for both sides.
    let one = !context.has(Role::Rcount) && !context.has(Role::Rcounts);
    let sends = !rooted || one || (if function.scatters { is_root } else { !(inter && is_root) });
    let receives = !rooted || (if function.scatters { !(inter && is_root) } else { is_root });
    let has_sent = context.has(Role::Scount) || context.has(Role::Scounts);
    let has_received = context.has(Role::Rcount) || context.has(Role::Rcounts);
    let sent = if !has_sent || !sends || (sends_in_place && has_received) {
        0
    } else if context.has(Role::Scounts) {
        sum(context, out, Role::Scounts, Role::Stype, Role::Stypes)
    } else {
        context.bytes(Role::Scount, Role::Stype)
    };
    let received = if !has_received || !receives || receives_in_place {
        0
    } else if context.has(Role::Rcounts) {
        sum(context, into, Role::Rcounts, Role::Rtype, Role::Rtypes)
    } else {
        context.bytes(Role::Rcount, Role::Rtype)
    };
    let reduces = !has_sent && context.has(Role::Rcounts);
    if reduces {
        // Reduce_scatter: everything goes in, the own block comes out.
        let own = block(context, comm.rank, Role::Rcounts, Role::Rtype);
        return (received, own);
    }
    if sends_in_place && has_received && sends {
        let own = context.has(Role::Scount) && context.has(Role::Rcounts);
        let sent = if own { block(context, comm.rank, Role::Rcounts, Role::Rtype) } else { received };
        return (sent, received);
    }
    if receives_in_place && receives {
        let own = context.has(Role::Scounts) && context.has(Role::Rcount);
        return (sent, if own { block(context, comm.rank, Role::Scounts, Role::Stype) } else { sent });
    }
    match (has_sent, has_received) {
        (true, false) => (sent, sent),
        (false, true) => (received, received),
        _ => (sent, received),
    }
}

/// First half of a collective operation.
fn enter_collective(context: &mut Context) {
    let object = context.communicator();
    let root = if context.has(Role::Root) { context.peer(Role::Root) } else { PEER_UNDEFINED };
    let (sent, received) = context.comm.map_or((0, 0), |comm| parts(context, comm, root));
    context.request = Request {
        kind: if object == NONE { RequestKind::None } else { RequestKind::Collective },
        peer: root,
        object,
        bytes: sent,
        received,
        ..Request::UNKNOWN
    };
    context.enter(root, 0, object, sent);
}

/// First half of a message that is sent, received, or prepared.
fn enter_message(context: &mut Context, kind: RequestKind) {
    let object = if context.has(Role::Message) {
        let handle = context.abi.load(context.word(Role::Message), 0);
        context.handle = handle;
        let message = if handle == context.abi.message_no_proc { None } else { MESSAGES.take(handle) };
        context.request = message.unwrap_or(Request::UNKNOWN);
        context.request.object
    } else {
        context.communicator()
    };
    let sends = kind == RequestKind::Send;
    let mut peer = context.peer(if sends { Role::Dest } else { Role::Source });
    if context.has(Role::Message) {
        peer = if object == NONE { PEER_NULL } else { crate::format::PEER_ANY };
    }
    let mut bytes = context.bytes(Role::Scount, Role::Stype);
    let partitions = u32::try_from(context.int(Role::Partitions)).unwrap_or(0);
    if context.has(Role::Partitions) {
        bytes = bytes.wrapping_mul(partitions.into());
    }
    let tag = context.tag(Role::Tag);
    let mut request = Request { bytes, peer, tag, object, kind, partitions, ..Request::UNKNOWN };
    if sends && context.has(Role::Source) {
        // Both; either may be to nobody.
        (request.from, request.from_tag) = (context.peer(Role::Source), context.tag(Role::Rtag));
        request.received = if context.has(Role::Rcount) { context.bytes(Role::Rcount, Role::Rtype) } else { bytes };
        request.receives = request.from != PEER_NULL;
    }
    if object == NONE || (peer == PEER_NULL && !request.receives) {
        request.kind = RequestKind::None;
    } else if peer == PEER_NULL {
        request.kind = RequestKind::Receive;
    }
    context.request = request;
    context.enter(peer, tag, object, bytes);
    if sends && context.has(Role::Source) {
        context.asks(request.from, request.from_tag);
    }
}

/// First half of a call that makes partitions ready, or asks for one: their request, and which they are.
fn enter_partitions(context: &mut Context) {
    let handle = context.abi.mask(context.word(Role::Active));
    context.request = REQUESTS.get(handle).unwrap_or(Request::UNKNOWN);
    let mut ranges = Vec::new();
    if context.has(Role::List) {
        let list = context.word(Role::List) as *const i32;
        for i in 0..usize::try_from(context.int(Role::N)).unwrap_or(0) {
            // SAFETY: the program passed an array of so many partitions.
            extend(&mut ranges, unsafe { list.add(i).read() });
        }
    } else {
        let first = context.int(Role::Partition);
        ranges.push((first, if context.has(Role::Last) { context.int(Role::Last) } else { first }));
    }
    let mut ranges = ranges.into_iter();
    let (first, last) = ranges.next().unwrap_or((0, -1));
    let request = context.request;
    context.enter(first, last, request.object, request.partitions.into());
    while ranges.len() > 0 {
        let mut content = Partitions::default();
        let count =
            content.items.iter_mut().zip(&mut ranges).map(|(item, (first, last))| *item = [first, last]).count();
        context.extension(Extension::Partitions, count as u8, content);
    }
}

/// Adds a partition to ranges of them.
fn extend(ranges: &mut Vec<(i32, i32)>, partition: i32) {
    match ranges.last_mut() {
        Some((_, last)) if last.checked_add(1) == Some(partition) => *last = partition,
        _ => ranges.push((partition, partition)),
    }
}

/// First half of a call that completes requests: how many, and one that it may wait for. If it never returns, nothing else tells.
fn enter_completion(context: &mut Context, request: &Request, count: usize) {
    let flags = context.flags;
    let (mut kind, mut peer, mut tag) = (request.kind, request.peer, request.tag);
    if !request.active {
        kind = RequestKind::None;
    } else if request.receives {
        (kind, peer, tag) = (RequestKind::Receive, request.from, request.from_tag);
    }
    context.set_kind(kind);
    context.enter(peer, tag, request.object, count as u64 & u64::from(u32::MAX));
    // What did complete is not known yet.
    context.flags = flags;
}

/// Second half of a blocking receive.
fn leave_received(context: &mut Context) {
    match context.status().filter(|_| context.code == 0) {
        Some(status) => {
            let source = status.source();
            let bytes = if source == PEER_NULL { 0 } else { status.bytes() };
            context.leave(source, status.tag(), bytes, 0);
        }
        None => context.leave(PEER_NULL, 0, 0, 0),
    }
}

/// Before a call: the first half of its slot, and whatever must not change meanwhile.
pub(crate) fn before(context: &mut Context) {
    if context.record && real::falls_back(context.symbol()) {
        context.flags |= flags::FALLBACK;
    }
    match context.function.class {
        Class::Plain | Class::Init | Class::SessionInit | Class::ShmemInit | Class::TypeFree => {
            let object = if context.has(Role::Comm) { context.communicator() } else { NONE };
            context.enter(PEER_UNDEFINED, 0, object, 0);
        }
        Class::Finalize | Class::ShmemFinalize => {
            context.enter(PEER_UNDEFINED, 0, NONE, 0);
            process::finalizing();
        }
        Class::Abort => {
            let object = if context.has(Role::Comm) { context.communicator() } else { NONE };
            context.enter(PEER_UNDEFINED, 0, object, 0);
            process::aborting();
        }
        Class::Pcontrol => process::control(context.int(Role::Flag)),
        Class::Send | Class::Isend | Class::SendInit | Class::Isendrecv => enter_message(context, RequestKind::Send),
        Class::Sendrecv => {
            context.ensure_status();
            enter_message(context, RequestKind::Send);
        }
        Class::Recv | Class::Mrecv => {
            context.ensure_status();
            enter_message(context, RequestKind::Receive);
        }
        Class::Irecv | Class::Imrecv | Class::RecvInit => enter_message(context, RequestKind::Receive),
        Class::Probe | Class::Mprobe => {
            let (peer, tag) = (context.peer(Role::Source), context.tag(Role::Tag));
            let object = context.communicator();
            context.enter(peer, tag, object, 0);
        }
        Class::Start => {
            context.take_one();
            let request = context.request;
            context.enter_request(&request);
        }
        Class::Pready | Class::Parrived => enter_partitions(context),
        Class::Wait | Class::Test => {
            context.take_one();
            if context.request.needs_status() {
                context.ensure_status();
            }
            let request = context.request;
            enter_completion(context, &request, usize::from(context.taken()));
        }
        Class::Startall => {
            context.take_all();
            context.enter(PEER_UNDEFINED, 0, NONE, 0);
        }
        Class::Waitany | Class::Waitall | Class::Waitsome | Class::Testany | Class::Testall | Class::Testsome => {
            context.take_all();
            let active = |request: &&Request| request.active;
            let taken = &context.thread.taken;
            let receives = |request: &&Request| request.receives || request.kind == RequestKind::Receive;
            let first = taken.iter().filter(active).find(receives).or_else(|| taken.iter().find(active));
            let (first, count) = (first.copied().unwrap_or(Request::UNKNOWN), taken.iter().filter(active).count());
            enter_completion(context, &first, count);
        }
        Class::RequestFree | Class::Cancel => {
            context.take_one();
            context.enter(PEER_UNDEFINED, 0, NONE, 0);
        }
        Class::Coll | Class::Icoll | Class::CollInit => enter_collective(context),
        Class::CommCreate
        | Class::CommIdup
        | Class::IntercommMerge
        | Class::CommCreateGroup
        | Class::IntercommCreate
        | Class::CommFromGroup
        | Class::CommForeign
        | Class::CommFree => {
            let object = kept::before(context);
            context.enter(PEER_UNDEFINED, 0, object, 0);
        }
        Class::CommName | Class::WinCreate => {
            let object = context.communicator();
            context.enter(PEER_UNDEFINED, 0, object, 0);
        }
        Class::WinFree => {
            context.handle = context.abi.load(context.word(Role::Win), 0);
            context.window = windows::remove(context.handle);
            let object = context.window.map_or(NONE, |window| window.id);
            context.enter(PEER_UNDEFINED, 0, object, 0);
        }
        Class::WinName | Class::WinPlain | Class::WinFence => {
            let object = context.window();
            context.enter(PEER_UNDEFINED, context.int(Role::Assert), object, 0);
        }
        Class::WinGroup => {
            let object = context.window();
            let group = windows::group(context.word(Role::Group));
            if let Some(window) = context.window {
                let epoch = if context.index == number::WIN_POST { &window.exposure } else { &window.access };
                epoch.store(group, Ordering::Relaxed);
            }
            context.enter(group, context.int(Role::Assert), object, 0);
        }
        Class::WinEnd => {
            let object = context.window();
            let group = context.window.map_or(-1, |window| {
                let epoch = if context.index == number::WIN_COMPLETE { &window.access } else { &window.exposure };
                epoch.load(Ordering::Relaxed)
            });
            context.enter(group, 0, object, 0);
        }
        Class::WinLock | Class::WinUnlock | Class::WinFlush | Class::WinFlushLocal => {
            let object = context.window();
            let target = if context.has(Role::Target) { context.peer(Role::Target) } else { PEER_ALL };
            let exclusive = context.has(Role::Lock) && context.int(Role::Lock) == context.abi.lock_exclusive;
            let lock = if exclusive || context.function.class != Class::WinLock { LOCK_EXCLUSIVE } else { LOCK_SHARED };
            context.enter(target, lock, object, 0);
        }
        Class::Rma | Class::RmaRequest => {
            let object = context.window();
            let (target, bytes) = (context.peer(Role::Target), context.bytes(Role::Scount, Role::Stype));
            context.enter(target, 0, object, bytes);
        }
        Class::Atomic | Class::AtomicRequest => {
            let object = context.window();
            let elements = if context.has(Role::Scount) { context.count(Role::Scount) } else { 1 };
            context.enter(context.peer(Role::Target), 0, object, elements);
        }
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
        Class::ThreadLock => context.enter(PEER_UNDEFINED, 0, locks::id(context.word(Role::Lock)), 0),
        Class::ThreadUnlock | Class::ThreadCondition => {
            let lock = context.word(Role::Lock);
            let released = locks::releases(&mut context.thread.held, lock);
            let (lock, order) = released.unwrap_or((NONE, 0));
            context.enter(PEER_UNDEFINED, 0, lock, u64::from(order));
        }
        Class::ThreadCreate => {
            let sequence = thread_starts::prepare(context);
            context.enter(PEER_UNDEFINED, 0, NONE, sequence);
        }
        Class::ThreadJoin => context.enter(PEER_UNDEFINED, 0, NONE, 0),
        Class::ShmemPut
        | Class::ShmemGet
        | Class::ShmemAtomic
        | Class::ShmemWait
        | Class::ShmemTest
        | Class::ShmemLock
        | Class::ShmemTryLock
        | Class::ShmemUnlock
        | Class::ShmemColl => shmem::enter(context),
        of_files!() => posix::enter(context),
        of_aio!() => aio::enter(context),
        Class::ArmciColl
        | Class::ArmciPut
        | Class::ArmciGet
        | Class::ArmciAtomic
        | Class::ArmciRmw
        | Class::ArmciWait
        | Class::ArmciFence
        | Class::ArmciLock
        | Class::ArmciUnlock => armci::enter(context),
        // Moments, not calls.
        Class::ThreadBegin | Class::ThreadEnd | Class::Omp => {}
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
    }
}

/// A handle in memory that is a pointer in all MPIs.
fn load_pointer(address: usize) -> usize {
    // SAFETY: the program passed the address to MPI.
    if address == 0 { 0 } else { unsafe { (address as *const usize).read() } }
}

/// After a call: the second half of its slot, and what later calls need.
pub(crate) fn after(context: &mut Context) {
    let fine = context.code == 0;
    match context.function.class {
        Class::Finalize | Class::ShmemFinalize => {
            context.thread.switched();
            context.leave(0, 0, 0, 0);
            process::finalized();
        }
        Class::Pcontrol => {}
        of_files!() => posix::leave(context),
        of_aio!() => aio::leave(context),
        // Zero: the lock was free, or the condition does not hold.
        Class::ShmemTryLock | Class::ShmemTest => context.leave(i32::from(context.value as i32 != 0), 0, 0, 0),
        Class::ArmciPut | Class::ArmciGet | Class::ArmciAtomic | Class::ArmciWait => armci::leave(context),
        Class::Recv | Class::Mrecv | Class::Sendrecv => leave_received(context),
        Class::Isend | Class::Irecv | Class::Imrecv | Class::Icoll | Class::Iio => {
            let id = context.made(1);
            context.leave(0, 0, context.request.received, id);
        }
        Class::SendInit | Class::RecvInit | Class::CollInit => {
            (context.request.persistent, context.request.active) = (true, false);
            let id = context.made(1);
            context.leave(0, 0, context.request.received, id);
        }
        Class::Isendrecv => {
            let id = context.made(2);
            context.leave(context.request.from, context.request.from_tag, 0, id);
        }
        Class::Start => {
            let request = context.request;
            if context.taken() {
                put_back(&Request { active: fine || request.active, ..request });
            }
            if fine && is_collective(&request) {
                context.flags |= flags::LISTED;
                List { waiting: None }.collective(context, &request);
            }
            context.leave(0, 0, 0, request.id);
        }
        Class::Startall => {
            let taken = std::mem::take(&mut context.thread.taken);
            context.flags |= flags::LISTED;
            let mut list = List { waiting: None };
            for request in taken.iter().filter(|_| fine) {
                if is_collective(request) {
                    list.collective(context, request);
                } else {
                    let item = Item {
                        id: [request.id as u32, (request.id >> 32) as u32],
                        bytes: [request.bytes as u32, (request.bytes >> 32) as u32],
                        peer: request.peer,
                        tag: request.tag,
                        object: request.object & Item::OBJECT | (request.kind as u32) << 28,
                    };
                    list.item(context, item);
                }
            }
            list.flush(context);
            for request in taken.iter().rev() {
                put_back(&Request { active: fine || request.active, ..*request });
            }
            context.leave(0, 0, 0, 0);
            context.thread.taken = taken;
        }
        Class::Pready => context.leave(0, 0, 0, context.request.id),
        Class::Parrived => {
            let arrived = fine && context.returned_int(Role::Flag) != 0;
            context.leave(i32::from(arrived), 0, 0, context.request.id);
        }
        Class::Wait => {
            let request = context.request;
            if fine && context.taken() {
                let status = context.status();
                leave_completed(context, &request, status);
            } else {
                failed(&request);
                context.leave(0, 0, 0, 0);
            }
        }
        Class::Test => {
            let request = context.request;
            if !fine {
                failed(&request);
                context.leave(0, 0, 0, 0);
            } else if context.returned_int(Role::Flag) == 0 {
                put_back(&request);
                context.leave(0, 0, 0, if request.active { request.id } else { 0 });
            } else if context.taken() {
                let status = context.status();
                leave_completed(context, &request, status);
            } else {
                context.leave(0, 0, 0, 0);
            }
        }
        Class::Waitany | Class::Testany => {
            let found = context.has(Role::Flag) && context.returned_int(Role::Flag) != 0 || !context.has(Role::Flag);
            let index = context.returned_int(Role::Index);
            leave_any(context, (found && index >= 0).then_some(index));
        }
        Class::Waitall | Class::Testall => {
            let all = !context.has(Role::Flag) || context.code != 0 || context.returned_int(Role::Flag) != 0;
            let count = if all { context.int(Role::N).max(0) as usize } else { 0 };
            leave_all(context, count);
        }
        Class::Waitsome | Class::Testsome => {
            let count = context.returned_int(Role::Outcount).max(0) as usize;
            let indices = context.word(Role::Indices);
            // SAFETY: MPI wrote so many indices.
            leave_some(context, count, |k| unsafe { (indices as *const i32).add(k).read() } as usize);
        }
        Class::RequestFree => {
            let request = context.request;
            if !fine {
                put_back(&request);
            } else if request.active && request.kind == RequestKind::Receive {
                state::note(NOTE_FREED_RECEIVE);
            }
            context.leave(0, 0, 0, request.id);
        }
        Class::Cancel => {
            let request = context.request;
            put_back(&Request { cancelled: fine || request.cancelled, ..request });
            context.leave(0, 0, 0, request.id);
        }
        Class::Probe => leave_probed(context),
        Class::Mprobe => {
            let found = fine && (!context.has(Role::Flag) || context.returned_int(Role::Flag) != 0);
            let handle = context.abi.load(context.word(Role::Message), 0);
            if let Some(comm) = context
                .comm
                .filter(|_| found && handle != context.abi.message_no_proc && handle != context.abi.message_null)
            {
                MESSAGES.put(Request { handle, object: comm.id, ..Request::UNKNOWN });
            }
            leave_probed(context);
        }
        Class::Coll => context.leave(0, 0, context.request.received, 0),
        Class::CommIdup => {
            let new = kept::after(context);
            context.request = Request {
                kind: if context.comm.is_some() { RequestKind::Communicator } else { RequestKind::None },
                object: context.comm.map_or(NONE, |comm| comm.id),
                peer: PEER_UNDEFINED,
                ..Request::UNKNOWN
            };
            let request = context.made(1);
            context.leave(0, 0, request, u64::from(new));
        }
        Class::CommCreate
        | Class::IntercommMerge
        | Class::CommCreateGroup
        | Class::IntercommCreate
        | Class::CommFromGroup
        | Class::CommForeign => {
            let new = kept::after(context);
            context.leave(0, 0, 0, u64::from(new));
        }
        Class::CommFree | Class::TypeFree => {
            kept::after(context);
            context.leave(0, 0, 0, 0);
        }
        Class::CommName => name(context, NAME_COMM, context.comm.map(|comm| comm.id)),
        Class::WinName => name(context, NAME_WINDOW, context.window.map(|window| window.id)),
        Class::WinCreate => {
            let handle = context.abi.load(context.word(Role::Newwin), 0);
            let new = if fine { windows::add(handle, context.comm, context.index) } else { NONE };
            context.leave(0, 0, 0, u64::from(new));
        }
        Class::WinFree => {
            if let Some(window) = context.window.filter(|_| !fine) {
                windows::restore(context.handle, window);
            }
            context.leave(0, 0, 0, 0);
        }
        Class::WinEnd => {
            let ended = fine && (!context.has(Role::Flag) || context.returned_int(Role::Flag) != 0);
            if let Some(window) = context.window.filter(|_| ended) {
                let epoch = if context.index == number::WIN_COMPLETE { &window.access } else { &window.exposure };
                epoch.store(-1, Ordering::Relaxed);
            }
            context.leave(i32::from(ended), 0, 0, 0);
        }
        Class::Rma | Class::RmaRequest | Class::Atomic | Class::AtomicRequest => leave_operation(context),
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
        Class::ThreadLock | Class::ThreadCondition => {
            // A mutex is acquired also if its owner died, and a condition wait acquires it again when time is up.
            let waited = context.function.class == Class::ThreadCondition && context.code == libc::ETIMEDOUT;
            let acquired = fine || waited || context.code == libc::EOWNERDEAD;
            let lock = context.word(Role::Lock);
            let (_, order) = if acquired { locks::acquired(&mut context.thread.held, lock) } else { (NONE, 0) };
            context.leave(0, 0, 0, u64::from(order));
        }
        Class::ThreadCreate => {
            if !fine {
                thread_starts::give_up(context);
            }
            context.leave(0, 0, 0, 0);
        }
        Class::ThreadJoin => {
            let sequence = if fine { thread_starts::joined(context.word(Role::Thread)) } else { 0 };
            context.leave(0, 0, 0, sequence);
        }
        Class::Io | Class::IoEnd => {
            let bytes = context.status().filter(|_| fine).map_or(0, Status::bytes);
            context.leave(0, 0, bytes, 0);
        }
        _ => context.leave(0, 0, 0, 0),
    }
}

fn leave_all(context: &mut Context, count: usize) {
    leave_some(context, count, |k| k);
}

fn leave_probed(context: &mut Context) {
    let found = context.code == 0 && (!context.has(Role::Flag) || context.returned_int(Role::Flag) != 0);
    match context.status().filter(|_| found) {
        Some(status) => context.leave(status.source(), status.tag(), 0, 0),
        None => context.leave(PEER_UNDEFINED, 0, 0, 0),
    }
}

/// Second half of an RMA operation.
fn leave_operation(context: &mut Context) {
    if context.code != 0 || context.window.is_none() {
        context.leave(0, 0, 0, 0);
        return;
    }
    let id = windows::operation();
    if context.has(Role::Request) {
        let handle = context.abi.load(context.word(Role::Request), 0);
        let kind = if context.index == number::RGET { RequestKind::Get } else { RequestKind::Put };
        let object = context.window.map_or(NONE, |window| window.id);
        if handle != context.abi.request_null {
            REQUESTS.put(Request { handle, id, object, kind, ..Request::UNKNOWN });
        }
    }
    let received = match context.function.class {
        Class::Atomic | Class::AtomicRequest if context.has(Role::Rcount) => context.count(Role::Rcount),
        Class::Atomic if !context.has(Role::Scount) => 1,
        _ => 0,
    };
    context.leave(0, 0, received, id);
}

/// Second half of a call that names something.
fn name(context: &mut Context, what: u32, id: Option<u32>) {
    if let Some(id) = id.filter(|_| context.code == 0) {
        let text = real::text(context.word(Role::Text));
        state::define(Entry::Name, &Payload::default().u32(what).u32(id).text(text));
    }
    context.leave(0, 0, 0, 0);
}

/// The call of MPI_Init, which returned before there was a spool.
pub(crate) fn first(function: &'static Function, index: usize, frame: Frame, thread: &mut Thread, enter: u64) {
    let record = state::options().is_some_and(|options| options.groups.contains(&function.group));
    let mut context = Context::new(function, index, false, frame, thread, record);
    context.enter(PEER_UNDEFINED, 0, NONE, 0);
    // SAFETY: the slot was just written; its thread is this one.
    if let Some(slot) = unsafe { context.slot.as_mut() } {
        slot.enter = enter;
    }
    context.leave = now();
    context.leave(0, 0, 0, 0);
}
