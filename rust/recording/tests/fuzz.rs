//! Spools that are wrong in any way: an error or a partial archive, never a panic, a hang, or memory out of proportion.

mod common;
#[path = "../../../fuzz/src/spool.rs"]
#[expect(unreachable_pub, reason = "a part of the crate of the fuzz targets, included")]
mod spool;

use common::{Item, Scratch, call, requests, words};
use proptest::prelude::*;
use whywait_recording::format::{
    COMM_WORLD, Call, Entry, Extension, FILE_PATH, FILE_STANDARD, IO_ISO_C, IO_POSIX, NONE, Node, RequestKind, SLOT,
    extension, flags,
};

/// The bytes of a process that uses everything.
fn whole() -> Vec<u8> {
    let mut bytes = definitions();
    for slots in [&calls()[..], &files(), &transfers(), &partitions(), &tests()] {
        bytes.extend(slots.iter().flatten().flat_map(|word| word.to_le_bytes()));
    }
    bytes
}

/// Its definitions.
fn definitions() -> Vec<u8> {
    let mut start = common::Fields::default();
    start.u32(0).u32(2).u32(77).u32(1).u64(1_000_000_000).u64(10).bytes(&[7; 16]).u64(0);
    for text in ["mpich", "", "MPICH", "node0", "solver", "1", "depth=2"] {
        start.text(text);
    }
    let mut comm = common::Fields::default();
    for word in [2, 0, 2, 1, 0, u32::MAX, 0, 0, 2, 0, 0, 0, 0, 2, 0, 1] {
        comm.u32(word);
    }
    comm.text("");
    let mut window = common::Fields::default();
    window.u32(1).u32(2).u32(1).u32(u32::from(common::function("MPI_Win_create")));
    let mut file = common::Fields::default();
    file.u32(1).u32(2).u32(1).u32(17).text("data");
    let mut group = common::Fields::default();
    group.u32(1).u32(1).u32(1);
    let mut module = common::Fields::default();
    module.u64(0).u64(0).u64(0).u64(1 << 40).text("").text("libc.so.6");
    let mut code = common::Fields::default();
    code.u32(1).u32(3).text("main").text("main.py");
    let posix = [(0, IO_POSIX, FILE_PATH, "/data/in"), (1, IO_ISO_C, FILE_STANDARD, "stdout")];
    let [in_file, out_file] = posix.map(|(number, paradigm, what, name)| {
        let mut fields = common::Fields::default();
        fields.u32(number).u32(paradigm).u32(what).text(name);
        fields
    });
    let mut end = common::Fields::default();
    end.u64(1000).u32(0);
    let mut clock = common::Fields::default();
    clock.u64(10).u64(10).u64(10);
    let entries = [
        (Entry::Start, start),
        (Entry::Clock, clock),
        (Entry::Comm, comm),
        (Entry::Window, window),
        (Entry::File, file),
        (Entry::Group, group),
        (Entry::Module, module),
        (Entry::Code, code),
        (Entry::PosixFile, in_file),
        (Entry::PosixFile, out_file),
        (Entry::End, end),
    ];
    let mut bytes = vec![entries.len() as u8];
    for (kind, fields) in &entries {
        bytes.extend([*kind as u8, fields.0.len() as u8]);
        bytes.extend(&fields.0);
    }
    bytes
}

type Slot = [u64; 8];

/// Calls of MPI.
fn calls() -> Vec<Slot> {
    let item: Item = (RequestKind::Receive as u32, 1, 8, 1, 3, COMM_WORLD);
    let at = |name: &str, object: u32, id: u64| words(&Call { object, id, peer: 1, ..call(name, 20, 30) });
    vec![
        [extension(Extension::Nodes, 2), 0, Node::PYTHON | 1, 1, 4096, 2 | 1 << 32, 0, 0],
        words(&Call { node: 2, flags: flags::WIDE, object: 2, peer: 1, ..call("MPI_Send", 12, 15) }),
        [extension(Extension::Wide, 1), 1 << 33, 0, 0, 0, 0, 0, 0],
        [extension(Extension::Stall, 0), 16, 17, 0, 0, 0, 0, 0],
        words(&Call { flags: flags::LISTED, ..call("MPI_Waitall", 20, 30) }),
        requests(&[item, item]),
        [extension(Extension::Collective, 1), 4, 8, 8, 2 << 32, u64::from(common::function("MPI_Iscan")), 0, 0],
        at("MPI_Win_create", 2, 1),
        at("MPI_Put", 1, 1),
        at("MPI_Win_start", 1, 0),
        at("MPI_Win_complete", 1, 0),
        at("MPI_Win_fence", 1, 0),
        at("MPI_File_open", 2, 1),
        at("MPI_File_iwrite", 1, 5),
        at("MPI_Reduce", 2, 0),
    ]
}

/// Calls about files of POSIX.
fn files() -> Vec<Slot> {
    let of = |name: &str, object: u32, id: u64| Call { object, id, bytes: 512, received: 100, ..call(name, 31, 32) };
    let write: Item = (RequestKind::File as u32, 8, 100, 1, 0, 1);
    let read: Item = (RequestKind::File as u32, 9, 100, 0, 0, 0);
    vec![
        words(&Call { tag: 0o1102, ..of("open", NONE, 0) }),
        words(&of("read", 0, 0)),
        words(&of("fprintf", 1, 0)),
        words(&Call { peer: 2, ..of("lseek", 0, 0) }),
        words(&Call { tag: 0, ..of("sendfile", 1, 0) }),
        words(&of("aio_read", 0, 7)),
        words(&Call { flags: flags::LISTED, ..of("lio_listio", NONE, 0) }),
        requests(&[write, read]),
        words(&of("aio_return", 0, 7)),
        words(&Call { source: 1, ..of("aio_return", 1, 8) }),
        words(&of("dup", 0, 0)),
        words(&of("mmap", 0, 0)),
        words(&of("close", 0, 0)),
    ]
}

/// Calls of ARMCI.
fn transfers() -> Vec<Slot> {
    let to = |name: &str, id: u64| words(&Call { peer: 1, bytes: 64, id, ..call(name, 33, 34) });
    let names = ["ARMCI_Init", "ARMCI_PutS", "ARMCI_Acc", "ARMCI_Rmw", "ARMCI_Lock", "ARMCI_Unlock", "ARMCI_Fence"];
    let mut slots: Vec<Slot> = names.map(|name| to(name, 0)).into();
    slots.extend([to("ARMCI_NbGet", 4711), to("ARMCI_Wait", 4711), to("ARMCI_Barrier", 0)]);
    slots
}

/// Messages in partitions.
fn partitions() -> Vec<Slot> {
    let of = |name: &str, id: u64| Call { peer: 1, tag: 3, object: COMM_WORLD, bytes: 4, id, ..call(name, 35, 36) };
    let started = |kind: RequestKind, id| Call { flags: (kind as u16) << flags::KIND_SHIFT, ..of("MPI_Start", id) };
    vec![
        words(&of("MPI_Psend_init", 21)),
        words(&of("MPI_Precv_init", 22)),
        words(&started(RequestKind::Send, 21)),
        words(&started(RequestKind::Receive, 22)),
        words(&of("MPI_Pready_list", 21)),
        [extension(Extension::Partitions, 2), 0, 2 | 2 << 32, 0, 0, 0, 0, 0],
        words(&of("MPI_Parrived", 22)),
        words(&Call { source: 1, ..of("MPI_Parrived", 22) }),
    ]
}

/// Tests, one after the other, and a call that does not return.
fn tests() -> Vec<Slot> {
    let of = |flags: u16, enter: u64| Call { object: COMM_WORLD, id: 22, flags, ..call("MPI_Test", enter, enter + 1) };
    let receive = (RequestKind::Receive as u16) << flags::KIND_SHIFT;
    vec![
        words(&of(0, 40)),
        words(&of(flags::POLLS, 42)),
        [extension(Extension::Polls, 0), 60, 9, 5, 0, 0, 0, 0],
        words(&of(flags::POLLED | receive, 61)),
        words(&call("MPI_Barrier", 70, 0)),
    ]
}

#[test]
fn any_byte_may_be_wrong() {
    let scratch = Scratch::new("bytes");
    let bytes = whole();
    spool::spool(&bytes, &scratch.0);
    for at in (0..bytes.len()).step_by(5) {
        let mut bytes = bytes.clone();
        bytes[at] ^= 0xFF;
        spool::spool(&bytes, &scratch.0);
    }
}

#[test]
fn every_function_may_have_any_fields() {
    let scratch = Scratch::new("fields");
    let definitions = definitions();
    for (number, object, id) in [(i32::MAX, 1, u64::MAX), (i32::MIN, NONE, 0), (1, 2, 1), (-1, 0, 1 << 63)] {
        let slots = (0..u16::MAX).map(|function| Call {
            enter: 20,
            leave: 30,
            function,
            peer: number,
            tag: number,
            object,
            bytes: number.cast_unsigned(),
            source: number,
            arrived_tag: number,
            received: id,
            id,
            ..Call::default()
        });
        // The first that does not exist ends it.
        let mut bytes = definitions.clone();
        bytes.extend(slots.take(4000).flat_map(|call| words(&call)).flat_map(u64::to_le_bytes));
        spool::spool(&bytes, &scratch.0);
    }
}

#[test]
fn it_may_end_anywhere() {
    let scratch = Scratch::new("cut");
    let bytes = whole();
    for length in (0..bytes.len()).step_by(7) {
        spool::spool(&bytes[..length], &scratch.0);
    }
}

proptest! {
    #![proptest_config(ProptestConfig { max_shrink_iters: 100, ..ProptestConfig::default() })]

    #[test]
    fn any_bytes_may_be_wrong(
        changes in prop::collection::vec((any::<prop::sample::Index>(), any::<u8>()), 1..12),
        slots in prop::collection::vec((any::<prop::sample::Index>(), any::<prop::sample::Index>()), 0..4),
    ) {
        let begin = definitions().len();
        let mut bytes = whole();
        let count = (bytes.len() - begin) / SLOT;
        // Records that come in another order, or not at all.
        for (from, to) in slots {
            let [from, to] = [from, to].map(|slot| begin + slot.index(count) * SLOT);
            bytes.copy_within(from..from + SLOT, to);
        }
        for (at, byte) in changes {
            let at = at.index(bytes.len());
            bytes[at] = byte;
        }
        spool::spool(&bytes, &Scratch::new("any").0);
    }
}
