//! Spools that are wrong in any way: an error or a partial archive, never a panic, a hang, or memory out of proportion.

mod common;
#[path = "../../../fuzz/src/spool.rs"]
#[expect(unreachable_pub, reason = "a part of the crate of the fuzz targets, included")]
mod spool;

use common::{Item, Scratch, call, requests, words};
use whywait_recording::format::{COMM_WORLD, Call, Entry, Extension, NONE, Node, RequestKind, extension, flags};

/// The bytes of a process that uses everything.
fn whole() -> Vec<u8> {
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
        (Entry::End, end),
    ];
    let mut bytes = vec![entries.len() as u8];
    for (kind, fields) in &entries {
        bytes.extend([*kind as u8, fields.0.len() as u8]);
        bytes.extend(&fields.0);
    }
    let item: Item = (RequestKind::Receive as u32, 1, 8, 1, 3, COMM_WORLD);
    let at = |name: &str, object: u32, id: u64| words(&Call { object, id, peer: 1, ..call(name, 20, 30) });
    let slots = [
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
        words(&call("MPI_Barrier", 40, 0)),
    ];
    bytes.extend(slots.iter().flatten().flat_map(|word| word.to_le_bytes()));
    bytes
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
    let bytes = whole();
    let begin = bytes.len() - 16 * 64;
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
        let mut bytes = bytes[..begin].to_vec();
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
