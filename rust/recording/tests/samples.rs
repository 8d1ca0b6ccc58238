//! Samples between calls become samples of calling contexts, as Score-P writes them.

mod common;

use std::fs;

use common::{Fields, Process, Scratch, call, events, words};
use whywait_otf2::Archive;
use whywait_recording::format::{Call, Entry, Extension, Mechanism, NONE, Node, TEXT, extension, sample as flags};
use whywait_recording::{Options, Progress, Summary, finish};

fn finished(scratch: &Scratch) -> Summary {
    finish(&scratch.0, &Options { keep_spool: true, ..Options::default() }, &Progress::default()).unwrap()
}

/// A node of the tree of paths, which is a function of Python: these have names without a file.
fn node(number: u32, parent: u32, function: u32) -> [u64; 8] {
    let numbers = u64::from(number) | u64::from(parent) << 32;
    [extension(Extension::Nodes, 1), 0, Node::PYTHON | u64::from(function), numbers, 0, 0, 0, 0]
}

/// A sample at a node, with flags and page faults.
fn sample(time: u64, node: u32, flags: u8, faults: u32) -> [u64; 8] {
    [extension(Extension::Sample, flags), time, u64::from(node), 0x77, 1000 * time, u64::from(faults) << 32, 0, 0]
}

const FILE: &str = "/home/me/solver.py";

/// A function of Python in a file of samples.
fn code(id: u32, line: u32, name: &str) -> Vec<[u64; 8]> {
    let pair = |low: usize, high: usize| low as u64 | (high as u64) << 32;
    let text: Vec<u8> = [name.as_bytes(), FILE.as_bytes()].concat();
    let slots = text.chunks(TEXT).map(|part| {
        let mut words = [extension(Extension::Text, 0); 8];
        for (place, word) in words[1..].iter_mut().enumerate() {
            let bytes = std::array::from_fn(|byte| part.get(8 * place + byte).copied().unwrap_or(0));
            *word = u64::from_le_bytes(bytes);
        }
        words
    });
    let (ids, lengths) = (pair(id as usize, line as usize), pair(name.len(), FILE.len()));
    let head = [extension(Extension::SampledCode, slots.len() as u8), ids, lengths, pair(1, 1), 0, 0, 0, 0];
    std::iter::once(head).chain(slots).collect()
}

/// The number of a function in a file of samples.
fn sampled(function: u32) -> u32 {
    FUNCTIONS.len() as u32 + 1 - function
}

const FUNCTIONS: [&str; 6] = ["main", "step", "exchange", "unpack", "physics", "kernel_b"];

/// A process whose calls are on paths of these functions, each with the node of its number.
fn process(scratch: &Scratch, samples: &[[u64; 8]]) -> Process {
    let mut process = Process::new(0, 1);
    process.end(90);
    for (id, name) in (1..).zip(FUNCTIONS) {
        let mut code = Fields::default();
        code.u32(id).u32(10 * id).text(name).text(FILE);
        process.entry(Entry::Code, &code);
    }
    // The file of samples has numbers of its own.
    let codes = (1..).zip(FUNCTIONS).map(|(function, name)| code(sampled(function), 10 * function, name));
    let samples: Vec<[u64; 8]> = codes.flatten().chain(samples.iter().copied()).collect();
    let calls = [
        node(1, 0, 1),
        node(2, 1, 2),
        node(3, 2, 3),
        words(&Call { node: 3, ..call("MPI_Waitall", 10, 12) }),
        words(&Call { node: 2, ..call("MPI_Barrier", 40, 50) }),
    ];
    process.write(scratch, &calls);
    process.samples(scratch, 0, Mechanism::Perf, 10_000_000, &samples);
    process
}

/// The tree of the samples: main, step, exchange, unpack, and physics and `kernel_b` in step.
fn nodes() -> Vec<[u64; 8]> {
    let paths = [(1, 0, 1), (2, 1, 2), (3, 2, 3), (4, 3, 4), (5, 2, 5), (6, 5, 6)];
    paths.map(|(number, parent, function)| node(number, parent, sampled(function))).to_vec()
}

/// The names of a context's regions, and of those around it.
fn path(archive: &Archive, mut context: u32) -> String {
    let definitions = archive.definitions();
    let mut names = Vec::new();
    while let Some(found) = definitions.calling_context(context) {
        names.push(definitions.string(definitions.region(found.region).unwrap().name).to_owned());
        context = found.parent;
    }
    names.reverse();
    names.join("/")
}

/// Events with the paths of their contexts.
fn told(scratch: &Scratch) -> Vec<String> {
    let archive = Archive::open(&scratch.0).unwrap();
    let line = |line: String| {
        if let Some((before, values)) = line.split_once(" { metric: 0") {
            let values: Vec<&str> =
                values.split("bits: ").skip(1).filter_map(|value| value.split(' ').next()).collect();
            return format!("{before} {}", values.join(" "));
        }
        let (before, after) = line.split_once("calling_context: ").unwrap_or((&line, ""));
        let digits: String = after.chars().take_while(char::is_ascii_digit).collect();
        let Ok(context) = digits.parse() else { return line };
        let distance = after.split_once("unwind_distance: ").map_or("", |(_, rest)| rest);
        let distance: String = distance.chars().take_while(char::is_ascii_digit).collect();
        let (time, kind) = before.split_once(" CallingContext").unwrap();
        format!("{time} {} {} {distance}", kind.trim_end_matches(" { "), path(&archive, context)).trim_end().to_owned()
    };
    events(&scratch.0, 0).into_iter().map(line).collect()
}

#[test]
fn records_are_those_of_the_specification() {
    let scratch = Scratch::new("samples");
    let mut samples = nodes();
    samples.extend([sample(15, 4, 0, 7), sample(25, 6, 0, 7), sample(35, 6, 0, 9), sample(45, 0, flags::INSIDE, 9)]);
    process(&scratch, &samples);
    let summary = finished(&scratch);
    assert_eq!((summary.calls, summary.samples, summary.damage), (2, 4, vec![]));
    let told: Vec<String> = told(&scratch).into_iter().filter(|line| !line.contains("Collective")).collect();
    let leaf = "[code made at run time]";
    assert_eq!(
        told,
        [
            "10 Enter main/step/exchange/MPI_Waitall 5".to_owned(),
            "12 Leave main/step/exchange/MPI_Waitall".into(),
            "15 Metric 0 7 0 0 0".into(),
            format!("15 Sample main/step/exchange/unpack/{leaf} 3"),
            format!("25 Sample main/step/physics/kernel_b/{leaf} 4"),
            "35 Metric 0 9 0 0 0".into(),
            format!("35 Sample main/step/physics/kernel_b/{leaf} 1"),
            "40 Enter main/step/MPI_Barrier 2".into(),
            "45 Sample main/step/MPI_Barrier 1".into(),
            "50 Leave main/step/MPI_Barrier".into(),
        ]
    );
    let archive = Archive::open(&scratch.0).unwrap();
    let definitions = archive.definitions();
    let generator = &definitions.interrupt_generators[0];
    assert_eq!(
        (definitions.string(generator.name), generator.exponent, generator.period),
        ("CPU time", -9, 10_000_000)
    );
    let property = archive.anchor().properties.iter().find(|(name, _)| name == "WHYWAIT::SAMPLING").unwrap();
    assert_eq!(
        property.1,
        "perf, 100000.0 a second of CPU time; 4 samples, 0 of page faults, 0 incomplete, 0 late, 0 lost"
    );
    // Contexts know where their functions begin.
    let first = definitions.calling_contexts.first().unwrap();
    assert_eq!(definitions.source_code_locations[first.source_code_location as usize].line_number, 10);
}

#[test]
fn a_path_without_its_outermost_functions_goes_on_from_what_is_open() {
    let scratch = Scratch::new("incomplete");
    // In a tree of its own: kernel_b; step and physics.
    let samples = [
        node(1, 0, sampled(6)),
        node(2, 0, sampled(2)),
        node(3, 2, sampled(5)),
        sample(20, 1, flags::INCOMPLETE, 0),
        sample(30, 3, flags::INCOMPLETE, 0),
    ];
    process(&scratch, &samples);
    finished(&scratch);
    let told: Vec<String> = told(&scratch).into_iter().filter(|line| line.contains("Sample")).collect();
    let leaf = "[code made at run time]";
    // The first is below what is open, the second below the `step` that is.
    assert_eq!(
        told,
        [format!("20 Sample main/step/exchange/kernel_b/{leaf} 3"), format!("30 Sample main/step/physics/{leaf} 3")]
    );
}

#[test]
fn samples_do_not_move_what_happens_between_calls() {
    let scratch = Scratch::new("moments");
    let mut samples = nodes();
    samples.extend([sample(15, 4, 0, 0), sample(25, 6, 0, 0), sample(35, 6, 0, 0), sample(60, 3, 0, 0)]);
    let process = process(&scratch, &samples);
    let switch = |time: u64, on: u64| [extension(Extension::Switch, 0), time, on, 0, 0, 0, 0, 0];
    let calls = [
        node(1, 0, 1),
        words(&Call { node: 1, ..call("MPI_Waitall", 10, 12) }),
        switch(20, 0),
        switch(30, 1),
        words(&Call { node: 1, ..call("MPI_Waitall", 40, 50) }),
    ];
    process.thread(&scratch, 0, &calls);
    finished(&scratch);
    let times: Vec<String> = told(&scratch)
        .iter()
        .filter(|line| !line.contains("Metric"))
        .map(|line| line.split(' ').take(2).collect::<Vec<_>>().join(" "))
        .collect();
    let expected =
        ["10 Enter", "12 Leave", "15 Sample", "20 MeasurementOnOff", "25 Sample", "30 MeasurementOnOff", "35 Sample"];
    assert_eq!(times[..7], expected);
    assert_eq!(times[7..], ["40 Enter", "50 Leave", "60 Sample"]);
}

#[test]
fn a_thread_without_calls_has_its_samples() {
    let scratch = Scratch::new("threads");
    let process = process(&scratch, &nodes());
    let mut samples = nodes();
    samples.push(sample(20, 4, 0, 0));
    process.samples(&scratch, 3, Mechanism::Timer, 20_000_000, &samples);
    finished(&scratch);
    let archive = Archive::open(&scratch.0).unwrap();
    let definitions = archive.definitions();
    let location = definitions.location(3 << 32).unwrap();
    assert_eq!((definitions.string(location.name), location.number_of_events), ("Thread 3", 2));
    assert_eq!(events(&scratch.0, 3 << 32).len(), 2);
    let mechanisms: Vec<&str> =
        definitions.location_properties.iter().map(|property| definitions.string(property.string_value)).collect();
    assert_eq!(mechanisms, ["perf", "timer"]);
}

#[test]
fn why_there_are_no_samples_is_said() {
    let scratch = Scratch::new("unsampled");
    let mut process = Process::new(0, 1);
    for (count, why) in [(1, "timer_create: no"), (NONE, "the program handles all signals"), (12, "timer_create: no")] {
        let mut entry = Fields::default();
        entry.u32(count).text(why);
        process.entry(Entry::Unsampled, &entry);
    }
    process.end(90);
    process.write(&scratch, &[words(&call("MPI_Barrier", 20, 30))]);
    let notes = finished(&scratch).notes;
    assert_eq!(notes, ["not sampled: the program handles all signals", "12 threads are not sampled: timer_create: no"]);
}

#[test]
fn what_is_wrong_with_samples_leaves_the_calls() {
    let scratch = Scratch::new("damage");
    let mut samples = nodes();
    samples.extend([sample(15, 4, 0, 0), sample(16, 99, 0, 0), sample(17, 4, 0, 0)]);
    process(&scratch, &samples);
    let summary = finished(&scratch);
    assert_eq!((summary.calls, summary.samples), (2, 1));
    assert!(summary.damage[0].contains("0.0.wwp, byte "), "{:?}", summary.damage);
    let path = scratch.spool("0.0.wwp");
    let bytes = fs::read(&path).unwrap();
    for length in [0, 20, 40, 56, 4096, 4100] {
        fs::write(&path, &bytes[..length]).unwrap();
        let summary = finished(&scratch);
        assert_eq!((summary.calls, summary.samples), (2, 0), "{length} bytes");
    }
}
