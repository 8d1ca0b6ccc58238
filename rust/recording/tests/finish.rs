//! Spools that are written here become the archives that Score-P would have written.

mod common;

use std::fs;

use common::{Fields, Process, Scratch, call, events, function, requests, words};
use whywait_otf2::Archive;
use whywait_recording::format::{COMM_WORLD, Call, Entry, Extension, PEER_ANY, RequestKind, extension, flags};
use whywait_recording::{Error, Model, Options, Progress, Summary, finish, is_unfinished};

fn finished(scratch: &Scratch) -> Summary {
    finish(&scratch.0, &Options { keep_spool: true, ..Options::default() }, &Progress::default()).unwrap()
}

fn kind(kind: RequestKind) -> u16 {
    (kind as u16) << flags::KIND_SHIFT
}

#[test]
fn a_message_has_two_ends() {
    let scratch = Scratch::new("message");
    let mut sender = Process::new(0, 2);
    sender.end(90);
    let send = Call { peer: 1, tag: 7, object: COMM_WORLD, bytes: 80, ..call("MPI_Send", 20, 30) };
    let nobody = Call { peer: -1, ..Call { enter: 31, leave: 32, ..send } };
    let failed = Call { flags: flags::FAILED, enter: 33, leave: 34, ..send };
    sender.write(&scratch, &[words(&send), words(&nobody), words(&failed)]);
    let mut receiver = Process::new(1, 2);
    receiver.end(90);
    let receive = Call {
        peer: -2,
        tag: -1,
        object: COMM_WORLD,
        bytes: 800,
        source: 0,
        arrived_tag: 7,
        received: 80,
        ..call("MPI_Recv", 10, 35)
    };
    receiver.write(&scratch, &[words(&receive)]);
    assert!(is_unfinished(&scratch.0));
    let summary = finished(&scratch);
    assert!(!is_unfinished(&scratch.0));
    assert_eq!((summary.ranks, summary.size, summary.calls), (2, 2, 4));
    assert_eq!((summary.notes, summary.damage), (vec![], vec![]));
    let message = "communicator: 0, msg_tag: 7, msg_length: 80";
    assert_eq!(
        events(&scratch.0, 0),
        [
            "20 Enter MPI_Send".to_owned(),
            format!("20 MpiSend {{ receiver: 1, {message} }}"),
            "30 Leave MPI_Send".into(),
            "31 Enter MPI_Send".into(),
            "32 Leave MPI_Send".into(),
            "33 Enter MPI_Send".into(),
            "34 Leave MPI_Send".into(),
        ]
    );
    assert_eq!(
        events(&scratch.0, 1),
        ["10 Enter MPI_Recv".to_owned(), format!("35 MpiRecv {{ sender: 0, {message} }}"), "35 Leave MPI_Recv".into()]
    );
}

#[test]
fn requests_are_completed_in_the_order_of_the_array() {
    let scratch = Scratch::new("requests");
    let mut process = Process::new(0, 1);
    process.end(90);
    let receive = Call { peer: 0, tag: 3, object: COMM_WORLD, bytes: 8, id: 1, ..call("MPI_Irecv", 20, 21) };
    let send = Call { peer: 0, tag: 3, object: COMM_WORLD, bytes: 8, id: 2, ..call("MPI_Isend", 22, 23) };
    let test = Call { id: 1, ..call("MPI_Test", 24, 25) };
    let all = Call { flags: flags::LISTED, ..call("MPI_Waitall", 26, 30) };
    let completed = requests(&[
        (RequestKind::Receive as u32, 1, 8, 0, 3, COMM_WORLD),
        (RequestKind::Send as u32, 2, 0, 0, 0, COMM_WORLD),
    ]);
    let cancelled = Call { flags: kind(RequestKind::Cancelled), id: 5, ..call("MPI_Wait", 31, 32) };
    let slots = [words(&receive), words(&send), words(&test), words(&all), completed, words(&cancelled)];
    process.write(&scratch, &slots);
    finished(&scratch);
    assert_eq!(
        events(&scratch.0, 0),
        [
            "20 Enter MPI_Irecv",
            "21 MpiIrecvRequest { request_id: 1 }",
            "21 Leave MPI_Irecv",
            "22 Enter MPI_Isend",
            "22 MpiIsend { receiver: 0, communicator: 0, msg_tag: 3, msg_length: 8, request_id: 2 }",
            "23 Leave MPI_Isend",
            "24 Enter MPI_Test",
            "25 MpiRequestTest { request_id: 1 }",
            "25 Leave MPI_Test",
            "26 Enter MPI_Waitall",
            "30 MpiIrecv { sender: 0, communicator: 0, msg_tag: 3, msg_length: 8, request_id: 1 }",
            "30 MpiIsendComplete { request_id: 2 }",
            "30 Leave MPI_Waitall",
            "31 Enter MPI_Wait",
            "32 MpiRequestCancelled { request_id: 5 }",
            "32 Leave MPI_Wait",
        ]
    );
}

#[test]
fn tests_one_after_the_other_until_one_finds_something_are_one_call() {
    let polls = |until, count, inside| [extension(Extension::Polls, 0), until, count, inside, 0, 0, 0, 0];
    let found =
        Call { flags: kind(RequestKind::Receive) | flags::POLLED, id: 2, object: COMM_WORLD, ..Call::default() };
    let slots = [
        // In vain.
        words(&Call { id: 1, ..call("MPI_Test", 20, 21) }),
        words(&Call { flags: flags::POLLS, ..call("MPI_Iprobe", 22, 23) }),
        polls(30, 4, 3),
        words(&call("MPI_Barrier", 31, 32)),
        // With two places, until something came.
        words(&Call { id: 2, ..call("MPI_Test", 40, 41) }),
        polls(43, 1, 1),
        words(&Call { flags: flags::POLLS, ..call("MPI_Iprobe", 44, 45) }),
        polls(49, 3, 2),
        words(&Call { enter: 50, leave: 52, function: function("MPI_Test"), source: 1, arrived_tag: 3, ..found }),
        words(&call("MPI_Barrier", 60, 61)),
    ];
    let (folded, whole) = (Scratch::new("polling"), Scratch::new("tests"));
    for (scratch, options) in [(&folded, "groups=all"), (&whole, "groups=all;model=scorep7")] {
        let mut process = Process::with_options(0, 1, options);
        process.end(90);
        process.write(scratch, &slots);
    }
    // All tests are calls.
    assert_eq!(finished(&folded).calls, 15);
    finished(&whole);
    let message = "MpiIrecv { sender: 1, communicator: 0, msg_tag: 3, msg_length: 0, request_id: 2 }";
    let before = [
        "20 Enter MPI_Test",
        "21 MpiRequestTest { request_id: 1 }",
        "21 Leave MPI_Test",
        "22 Enter MPI_Iprobe",
        "23 Leave MPI_Iprobe",
        "27 Enter MPI_Iprobe",
        "30 Leave MPI_Iprobe",
        "31 Enter MPI_Barrier",
        "32 Leave MPI_Barrier",
    ];
    let lines = events(&folded.0, 0);
    assert_eq!(lines[..9], before);
    assert_eq!(
        lines[9..12],
        ["40 Enter MPI_Test (polling)".into(), format!("52 {message}"), "52 Leave MPI_Test (polling)".into()]
    );
    assert_eq!(lines[12..], ["60 Enter MPI_Barrier", "61 Leave MPI_Barrier"]);
    let properties = Archive::open(&folded.0).unwrap().anchor().properties.clone();
    let said = "7 tests in 1 run, each a call such as MPI_Test (polling), with the time between tests";
    assert!(properties.contains(&("WHYWAIT::POLLING".into(), said.into())), "{properties:?}");
    let lines = events(&whole.0, 0);
    assert_eq!(lines[..9], before);
    assert!(lines.contains(&"50 Enter MPI_Test".into()) && lines.contains(&format!("52 {message}")));
    assert!(!lines.iter().any(|line| line.contains("polling")));
}

#[test]
fn a_large_message_has_its_size_in_an_extension() {
    let scratch = Scratch::new("large");
    let mut process = Process::new(0, 1);
    process.end(90);
    let send = Call { peer: 0, object: COMM_WORLD, flags: flags::WIDE, ..call("MPI_Send", 20, 30) };
    process.write(&scratch, &[words(&send), [extension(Extension::Wide, 1), 5 << 32, 0, 0, 0, 0, 0, 0]]);
    finished(&scratch);
    assert!(events(&scratch.0, 0)[1].ends_with(&format!("msg_length: {} }}", 5_u64 << 32)));
}

#[test]
fn call_paths_become_functions_that_last_from_call_to_call() {
    let scratch = Scratch::new("paths");
    let mut process = Process::new(0, 1);
    process.end(90);
    for (id, name) in [(1_u32, "main"), (2, "step"), (3, "solve")] {
        let mut code = Fields::default();
        code.u32(id).u32(10).text(name).text("solver.py");
        process.entry(Entry::Code, &code);
    }
    // main calls step from two places, and step calls MPI twice.
    let node = |code: u64, number: u64, parent: u64| [1 << 63 | code, number | parent << 32];
    let nodes = |items: &[[u64; 2]]| {
        let mut words = [extension(Extension::Nodes, items.len() as u8), 0, 0, 0, 0, 0, 0, 0];
        words[2..2 + 2 * items.len()].copy_from_slice(&items.concat());
        words
    };
    let at = |node, enter| words(&Call { node, object: COMM_WORLD, ..call("MPI_Barrier", enter, enter + 5) });
    let slots = [
        nodes(&[node(1, 1, 0), node(2, 2, 1)]),
        at(2, 20),
        at(2, 30),
        nodes(&[node(2, 3, 1), node(1, 4, 0), node(3, 5, 4)]),
        at(3, 40),
        at(5, 50),
    ];
    process.write(&scratch, &slots);
    finished(&scratch);
    let functions = functions(&scratch);
    // The frames 1 and 4 are the same function at different places of its own, so it goes on; what it called is over.
    let expected =
        ["20 Enter main", "20 Enter step", "45 Leave step", "50 Enter solve", "55 Leave solve", "55 Leave main"];
    assert_eq!(functions, expected);
}

#[test]
fn of_deep_call_paths_the_innermost_functions_count() {
    let scratch = Scratch::new("depth");
    let mut process = Process::with_options(0, 1, "depth=2");
    process.end(90);
    for id in 1..=4_u32 {
        let mut code = Fields::default();
        code.u32(id).u32(10).text(&format!("f{id}")).text("solver.py");
        process.entry(Entry::Code, &code);
    }
    let node = |number: u64| [1 << 63 | number, number | (number - 1) << 32];
    let nodes = |first: u64, count: u64| {
        let mut words = [extension(Extension::Nodes, count as u8), 0, 0, 0, 0, 0, 0, 0];
        for (item, number) in (first..first + count).enumerate() {
            words[2 + 2 * item..4 + 2 * item].copy_from_slice(&node(number));
        }
        words
    };
    let at = |node, enter| words(&Call { node, object: COMM_WORLD, ..call("MPI_Barrier", enter, enter + 5) });
    process.write(&scratch, &[nodes(1, 3), nodes(4, 1), at(2, 20), at(4, 30), at(4, 40)]);
    finished(&scratch);
    let expected = [
        "20 Enter f1",
        "20 Enter f2",
        "25 Leave f2",
        "25 Leave f1",
        "30 Enter f3",
        "30 Enter f4",
        "45 Leave f4",
        "45 Leave f3",
    ];
    assert_eq!(functions(&scratch), expected);
}

/// Enters and leaves of functions that are not MPI's.
fn functions(scratch: &Scratch) -> Vec<String> {
    let mut lines = events(&scratch.0, 0);
    lines.retain(|line| !line.contains("MPI_") && !line.contains("Mpi"));
    lines
}

#[test]
fn a_process_that_was_killed_says_where_it_was() {
    let scratch = Scratch::new("killed");
    let process = Process::new(0, 2);
    let receive = Call { peer: 1, tag: 7, object: COMM_WORLD, ..call("MPI_Recv", 5_000_000_010, 0) };
    process.write(&scratch, &[words(&call("MPI_Comm_rank", 20, 30)), words(&receive)]);
    let summary = finished(&scratch);
    let stuck = "rank 0 ended inside MPI_Recv from rank 1, tag 7, entered at 5.000000 s";
    assert_eq!(&summary.notes[1..], [stuck, "rank 1 left no recording"]);
    let properties = Archive::open(&scratch.0).unwrap().anchor().properties.clone();
    assert!(properties.contains(&("WHYWAIT::COMPLETE".into(), "false".into())), "{properties:?}");
    assert!(properties.contains(&("WHYWAIT::ENDED".into(), format!("{stuck}\nrank 1 left no recording"))));
    assert_eq!(events(&scratch.0, 0)[2..], ["5000000010 Enter MPI_Recv", "5000000010 Leave MPI_Recv"]);
}

/// What is said of two ranks that each wait for a message of the other, one of which sent some before.
fn stuck(name: &str, sent: &[Call]) -> Vec<String> {
    let scratch = Scratch::new(name);
    let wait = Call {
        peer: 0,
        tag: 7,
        object: COMM_WORLD,
        bytes: 1,
        flags: kind(RequestKind::Receive),
        ..call("MPI_Wait", 5_000_000_010, 0)
    };
    Process::new(0, 2).write(&scratch, &[words(&Call { peer: 1, ..wait })]);
    let slots: Vec<[u64; 8]> = sent.iter().chain([&wait]).map(words).collect();
    Process::new(1, 2).write(&scratch, &slots);
    finished(&scratch).notes.into_iter().filter(|note| note.starts_with("rank")).collect()
}

#[test]
fn ranks_that_wait_for_each_other_are_a_deadlock_unless_a_message_is_on_its_way() {
    let send = Call { peer: 0, tag: 7, object: COMM_WORLD, bytes: 8, ..call("MPI_Send", 20, 30) };
    let ends = [
        "rank 0 ended inside MPI_Wait for a receive from rank 1, tag 7, entered at 5.000000 s",
        "rank 1 ended inside MPI_Wait for a receive from rank 0, tag 7, entered at 5.000000 s",
    ];
    let circle = "ranks 0 and 1 waited for each other when they ended: a deadlock";
    assert_eq!(stuck("deadlock", &[]), [&[circle], &ends[..]].concat());
    assert_eq!(stuck("other_tag", &[Call { tag: 8, ..send }]), [&[circle], &ends[..]].concat());
    assert_eq!(stuck("on_its_way", &[send]), ends);
}

#[test]
fn a_message_in_partitions_is_on_its_way_when_all_are_ready() {
    let init = Call { peer: 0, tag: 7, object: COMM_WORLD, bytes: 16, id: 3, ..call("MPI_Psend_init", 10, 11) };
    let start = function("MPI_Start");
    let start = Call { function: start, flags: kind(RequestKind::Send), enter: 20, leave: 21, ..init };
    let ready = |partition| Call {
        peer: partition,
        tag: partition,
        object: COMM_WORLD,
        bytes: 2,
        id: 3,
        ..call("MPI_Pready", 30, 31)
    };
    let circle = "ranks 0 and 1 waited for each other when they ended: a deadlock";
    assert_eq!(stuck("none_is_ready", &[init, start])[0], circle);
    assert_eq!(stuck("one_is_ready", &[init, start, ready(1), ready(1)])[0], circle);
    assert_eq!(stuck("all_are_ready", &[init, start, ready(1), ready(0)]).len(), 2);
}

#[test]
fn records_tell_which_partitions_are_ready_and_which_are_found() {
    let scratch = Scratch::new("partitions");
    let mut process = Process::new(0, 1);
    process.end(90);
    let message = Call { peer: 0, tag: 3, object: COMM_WORLD, bytes: 80, ..Call::default() };
    let started = |flags, id| Call { flags: kind(flags), id, enter: 20, leave: 21, ..message };
    let start = function("MPI_Start");
    let send = Call { function: start, ..started(RequestKind::Send, 1) };
    let receive = Call { function: start, enter: 22, leave: 23, ..started(RequestKind::Receive, 2) };
    let list = Call { peer: 2, tag: 3, bytes: 4, id: 1, ..call("MPI_Pready_list", 24, 25) };
    let more = [extension(Extension::Partitions, 1), 0, 0, 0, 0, 0, 0, 0];
    let missed = Call { peer: 1, tag: 1, bytes: 2, id: 2, ..call("MPI_Parrived", 26, 27) };
    let found = Call { source: 1, enter: 28, leave: 29, ..missed };
    // Of a request that was started before the recording.
    let unknown = Call { id: 9, enter: 30, leave: 31, ..list };
    let slots = [words(&send), words(&receive), words(&list), more, words(&missed), words(&found), words(&unknown)];
    process.write(&scratch, &slots);
    finished(&scratch);
    assert_eq!(
        events(&scratch.0, 0),
        [
            "20 Enter MPI_Start",
            "20 MpiIsend { receiver: 0, communicator: 0, msg_tag: 3, msg_length: 80, request_id: 1 } partitions=4",
            "21 Leave MPI_Start",
            "22 Enter MPI_Start",
            "23 MpiIrecvRequest { request_id: 2 } partitions=2",
            "23 Leave MPI_Start",
            "24 Enter MPI_Pready_list",
            "25 MpiRequestTest { request_id: 1 } first partition=2 last partition=3",
            "25 MpiRequestTest { request_id: 1 } first partition=0 last partition=0",
            "25 Leave MPI_Pready_list",
            "26 Enter MPI_Parrived",
            "27 MpiRequestTest { request_id: 2 }",
            "27 Leave MPI_Parrived",
            "28 Enter MPI_Parrived",
            "29 MpiRequestTest { request_id: 2 } first partition=1 last partition=1",
            "29 Leave MPI_Parrived",
            "30 Enter MPI_Pready_list",
            "31 Leave MPI_Pready_list",
        ]
    );
}

/// What is said of ranks of which each has these calls, the last without an end.
fn told(name: &str, ranks: &[Vec<[u64; 8]>]) -> Vec<String> {
    let scratch = Scratch::new(name);
    for (rank, slots) in (0..).zip(ranks) {
        Process::new(rank, ranks.len() as u32).write(&scratch, slots);
    }
    finished(&scratch).notes.into_iter().filter(|note| note.starts_with("rank")).collect()
}

#[test]
fn sends_that_nobody_receives_are_a_deadlock_unless_they_are_buffered() {
    let send = |function, peer| Call { peer, tag: 7, object: COMM_WORLD, bytes: 8, ..call(function, 100, 0) };
    let post = |peer, tag| Call { peer, tag, object: COMM_WORLD, id: 1, ..call("MPI_Irecv", 20, 30) };
    let circle = "ranks 0, 1, 2 waited for each other in a circle when they ended: a deadlock";
    let ring = |function| (0..3).map(|rank| vec![words(&send(function, (rank + 1) % 3))]).collect::<Vec<_>>();
    assert_eq!(told("ssend", &ring("MPI_Ssend"))[0], circle);
    assert_eq!(told("send", &ring("MPI_Send"))[0], format!("{circle}, unless MPI buffers their sends"));
    assert_eq!(told("bsend", &ring("MPI_Bsend")).len(), 3, "they need nobody");
    // One of them has a receive for it, from that rank or from any.
    for peer in [0, PEER_ANY] {
        let mut ranks = ring("MPI_Ssend");
        ranks[1].insert(0, words(&post(peer, 7)));
        assert_eq!(told("received", &ranks).len(), 3);
        ranks[1][0] = words(&post(peer, 8));
        assert_eq!(told("other_tag", &ranks)[0], circle);
    }
    // A send of one rank, a receive of the other.
    let receive = Call { peer: 0, tag: 9, object: COMM_WORLD, ..call("MPI_Recv", 100, 0) };
    let ranks = [vec![words(&send("MPI_Ssend", 1))], vec![words(&receive)]];
    assert_eq!(told("mixed", &ranks)[0], "ranks 0 and 1 waited for each other when they ended: a deadlock");
}

#[test]
fn a_call_that_completes_several_requests_names_those_that_are_open() {
    let post = |peer, id| Call { peer, tag: 7, object: COMM_WORLD, id, ..call("MPI_Irecv", 20, 30) };
    let start = |peer, id| Call { peer, tag: 7, object: COMM_WORLD, id, ..call("MPI_Isend", 20, 30) };
    let wait = |bytes, peer| Call {
        peer,
        tag: 7,
        object: COMM_WORLD,
        bytes,
        flags: kind(RequestKind::Receive),
        ..call("MPI_Waitall", 5_000_000_010, 0)
    };
    let sent = words(&Call { peer: 0, tag: 7, object: COMM_WORLD, bytes: 8, ..call("MPI_Send", 20, 30) });
    let first = vec![words(&post(1, 1)), words(&post(2, 2)), words(&start(1, 3)), words(&wait(3, 1))];
    let ranks = [first.clone(), vec![sent], vec![]];
    let prefix = "rank 0 ended inside MPI_Waitall for 3 requests";
    let suffix = "entered at 5.000000 s";
    assert_eq!(told("one", &ranks)[0], format!("{prefix}, still open: a receive from rank 2, tag 7, {suffix}"));
    // Of two receives that are alike, one has its message.
    let twice = vec![words(&post(1, 1)), words(&post(1, 2)), words(&start(1, 3)), words(&wait(3, 1))];
    assert_eq!(
        told("alike", &[twice, vec![sent], vec![]])[0],
        format!("{prefix}, still open: a receive from rank 1, tag 7, {suffix}")
    );
    // All messages came: the send is left.
    let ranks = [first, vec![sent], vec![sent]];
    assert_eq!(told("send", &ranks)[0], format!("{prefix}, still open: a send to rank 1, tag 7, {suffix}"));
    // It waits for others than those that were begun.
    let ranks = [vec![words(&post(1, 1)), words(&wait(3, 1))], vec![], vec![]];
    assert_eq!(told("some", &ranks)[0], format!("{prefix}, among them a receive from rank 1, tag 7, {suffix}"));
}

#[test]
fn a_collective_operation_names_who_is_missing() {
    let scratch = Scratch::new("missing");
    let reduce = Call { peer: -1, object: COMM_WORLD, bytes: 8, ..call("MPI_Allreduce", 1_000_000_000, 1_500_000_000) };
    let last = Call { enter: 2_000_000_000, leave: 0, ..reduce };
    for rank in 0..3 {
        let slots = [words(&reduce), words(&last)];
        Process::new(rank, 3).write(&scratch, if rank == 1 { &slots[..1] } else { &slots });
    }
    let expected =
        "rank 2 ended inside MPI_Allreduce on MPI_COMM_WORLD of 3 ranks, where rank 1 is missing, entered at";
    let notes = finished(&scratch).notes;
    assert!(notes.iter().any(|note| note.starts_with(expected)), "{notes:?}");
    assert!(!notes.iter().any(|note| note.contains("deadlock")), "rank 1 may have been on its way: {notes:?}");
}

#[test]
fn threads_share_one_sided_operations() {
    let scratch = Scratch::new("threads");
    let mut process = Process::new(0, 1);
    process.end(90);
    let mut window = Fields::default();
    window.u32(4).u32(COMM_WORLD).u32(1).u32(u32::from(common::function("MPI_Win_allocate")));
    process.entry(Entry::Window, &window);
    let put = Call { peer: 0, object: 4, bytes: 8, id: 1, ..call("MPI_Put", 20, 25) };
    process.write(&scratch, &[words(&put)]);
    process.thread(&scratch, 1, &[words(&Call { peer: 0, object: 4, ..call("MPI_Win_flush", 30, 40) })]);
    finished(&scratch);
    assert_eq!(events(&scratch.0, 0)[1], "20 RmaPut { win: 0, remote: 0, bytes: 8, matching_id: 1 }");
    assert_eq!(
        events(&scratch.0, 1 << 32)[1..3],
        ["40 RmaOpCompleteNonBlocking { win: 0, matching_id: 1 }", "40 RmaOpCompleteRemote { win: 0, matching_id: 1 }"]
    );
}

#[test]
fn seeks_have_both_offsets() {
    let scratch = Scratch::new("seek");
    let mut process = Process::new(0, 1);
    process.end(90);
    let mut file = Fields::default();
    file.u32(3).u32(COMM_WORLD).u32(0).u32(0).text("out.dat");
    process.entry(Entry::File, &file);
    let offset = (-(5_i64 << 32) - 8).cast_unsigned();
    let seek = Call {
        peer: 2,
        tag: (offset as u32).cast_signed(),
        object: 3,
        bytes: (offset >> 32) as u32,
        received: 1 << 40,
        ..call("MPI_File_seek", 20, 30)
    };
    process.write(&scratch, &[words(&seek)]);
    finished(&scratch);
    let expected = format!(
        "30 IoSeek {{ handle: 0, offset_request: {}, whence: IoSeekOption(2), offset_result: {} }}",
        -(5_i64 << 32) - 8,
        1_u64 << 40
    );
    assert_eq!(events(&scratch.0, 0)[1], expected);
}

#[test]
fn what_is_whole_is_used() {
    let scratch = Scratch::new("damage");
    let mut process = Process::new(0, 1);
    process.end(90);
    let barrier = call("MPI_Barrier", 20, 30);
    let wrong = Call { function: 9999, enter: 40, leave: 50, ..barrier };
    process.write(&scratch, &[words(&barrier), words(&wrong), words(&barrier)]);
    let path = scratch.spool("0.wwd");
    let mut definitions = fs::read(&path).unwrap();
    *definitions.last_mut().unwrap() ^= 1;
    fs::write(&path, definitions).unwrap();
    let summary = finished(&scratch);
    assert_eq!(summary.calls, 1);
    assert!(summary.damage[0].contains("0.wwd, byte "), "{:?}", summary.damage);
    let slots = scratch.spool("0.0.wws");
    assert_eq!(summary.damage[1], format!("{}, byte {}: there is no function 9999", slots.display(), 4096 + 64));
}

#[test]
fn a_spool_of_two_runs_is_that_of_the_first() {
    let scratch = Scratch::new("runs");
    let mut process = Process::new(0, 1);
    process.end(90);
    process.write(&scratch, &[words(&call("MPI_Barrier", 20, 30))]);
    process.thread(&scratch, 1, &[words(&call("MPI_Barrier", 20, 30))]);
    let path = scratch.spool("0.1.wws");
    let mut other = fs::read(&path).unwrap();
    other[8] ^= 1;
    fs::write(&path, &other).unwrap();
    let summary = finished(&scratch);
    assert_eq!(summary.calls, 1);
    assert!(summary.damage[0].contains("of another run"), "{:?}", summary.damage);
    other[4] += 1;
    fs::write(&path, &other).unwrap();
    let error = finish(&scratch.0, &Options::default(), &Progress::default()).unwrap_err();
    assert!(matches!(error, Error::Version { version: 4, .. }), "{error}");
}

#[test]
fn options_must_agree() {
    let scratch = Scratch::new("options");
    Process::new(0, 2).write(&scratch, &[]);
    Process::new(1, 3).write(&scratch, &[]);
    let error = finish(&scratch.0, &Options::default(), &Progress::default()).unwrap_err();
    assert_eq!(error.to_string(), "ranks 0 and 1 were recorded with different numbers of ranks: 2 and 3");
}

#[test]
fn the_spool_goes_when_nothing_is_missing() {
    let scratch = Scratch::new("removed");
    let mut process = Process::new(0, 1);
    process.end(90);
    process.write(&scratch, &[]);
    finish(&scratch.0, &Options::default(), &Progress::default()).unwrap();
    assert!(!scratch.spool("").exists());
    assert_eq!(events(&scratch.0, 0), [""; 0]);
    let error = finish(&scratch.0, &Options::default(), &Progress::default()).unwrap_err();
    assert!(error.to_string().ends_with("the recording is finished"), "{error}");
}

#[test]
fn score_p_knows_no_functions_of_mpi_4() {
    let scratch = Scratch::new("scorep7");
    let mut process = Process::new(0, 1);
    process.end(90);
    let ibarrier = Call { object: COMM_WORLD, id: 1, ..call("MPI_Ibarrier", 20, 21) };
    let partitioned = Call { object: COMM_WORLD, peer: 0, id: 2, ..call("MPI_Psend_init", 22, 23) };
    let start = Call { flags: kind(RequestKind::Send), ..Call { enter: 24, leave: 25, ..partitioned } };
    let start = Call { function: common::function("MPI_Start"), ..start };
    process.write(&scratch, &[words(&ibarrier), words(&partitioned), words(&start)]);
    let options = Options { model: Some(Model::Scorep7), keep_spool: true, ..Options::default() };
    finish(&scratch.0, &options, &Progress::default()).unwrap();
    let expected = ["20 Enter MPI_Ibarrier", "21 Leave MPI_Ibarrier", "24 Enter MPI_Start", "25 Leave MPI_Start"];
    assert_eq!(events(&scratch.0, 0), expected);
    finished(&scratch);
    assert_eq!(events(&scratch.0, 0)[1], "21 NonBlockingCollectiveRequest { request_id: 1 }");
}
