//! Operations, their members and messages against what the programs that wrote the traces did (`right.json`).

mod common;

use common::{Instance, Trace, cases, right};

/// The waits of each rank, as section 8 defines them, from the records alone.
fn waits(trace: &Trace) -> Vec<(String, u32, i64)> {
    let mut found = Vec::new();
    for Instance { kind, members } in &trace.instances {
        for member in members {
            let last = members
                .iter()
                .filter(|other| other.sent > 0 && member.received > 0 || kind == "barrier")
                .map(|other| other.begin)
                .max();
            let wait = last.unwrap_or(member.begin).max(member.begin).min(member.end) - member.begin;
            if wait > 0 {
                found.push((kind.clone(), member.rank, wait));
            }
        }
    }
    for message in &trace.messages {
        let late_sender = (message.send.0 - message.receive.0).max(0);
        if late_sender > 0 {
            found.push(("recv".to_owned(), message.receiver, late_sender.min(message.receive.1 - message.receive.0)));
        }
        let late_receiver = (message.receive.0 - message.send.0).max(0);
        if late_receiver > 0 && message.send.1 > message.receive.0 {
            found.push(("send".to_owned(), message.sender, late_receiver));
        }
    }
    found.sort();
    found
}

#[test]
fn waits_are_those_of_the_program() {
    for case in [
        "late_loader",
        "late_loader_2.4",
        "overlap",
        "chain",
        "generic_names",
        "host_bound",
        "host_chain",
        "directions",
        "current_stream",
        "graph",
        "windows",
        "windows_2.4",
        "pipeline",
    ] {
        let Some(directory) = cases(case) else { return };
        let trace = Trace::read(&[directory.join("traces")]);
        assert_eq!(waits(&trace), right(&directory), "{case}");
    }
}
