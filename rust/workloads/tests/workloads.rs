//! Every workload is a consistent archive, and the same each time.

use std::fs;
use std::path::{Path, PathBuf};

use whywait_otf2::{Archive, Attributes, Event, EventSink};
use whywait_workloads::{Error, Progress, Spec, Workload, generate};

/// A directory that is gone afterwards.
struct Scratch(PathBuf);

impl Scratch {
    fn new(name: &str) -> Self {
        let path = std::env::temp_dir().join(format!("whywait-workloads-{}-{name}", std::process::id()));
        fs::create_dir_all(&path).expect("a directory for the test");
        Self(path)
    }
}

impl Drop for Scratch {
    fn drop(&mut self) {
        let _ = fs::remove_dir_all(&self.0);
    }
}

/// Checks that times do not decrease and regions nest.
#[derive(Default)]
struct Checked {
    time: i64,
    open: Vec<u32>,
    events: u64,
}

impl Checked {
    fn at(&mut self, time: i64) {
        assert!(time >= self.time, "{time} after {}", self.time);
        self.time = time;
        self.events += 1;
    }
}

impl EventSink for Checked {
    fn enter(&mut self, time: i64, region: u32) {
        self.at(time);
        self.open.push(region);
    }

    fn leave(&mut self, time: i64, region: u32) {
        self.at(time);
        assert_eq!(self.open.pop(), Some(region));
    }

    fn record(&mut self, time: i64, _: &Event<'_>, _: &Attributes<'_>) {
        self.at(time);
    }
}

fn bytes_of(directory: &Path) -> Vec<(PathBuf, Vec<u8>)> {
    let mut files = Vec::new();
    for entry in fs::read_dir(directory).expect("the archive").map(|entry| entry.expect("a file").path()) {
        if entry.is_dir() {
            files.extend(bytes_of(&entry));
        } else {
            files.push((entry.file_name().map(PathBuf::from).unwrap_or_default(), fs::read(&entry).expect("readable")));
        }
    }
    files.sort();
    files
}

#[test]
fn every_workload_is_consistent_and_the_same_each_time() {
    for &(name, workload) in Workload::ALL {
        for ranks in [2, 7, 12] {
            let spec = Spec::new(workload, ranks, 3, 42);
            let [first, second] = ["a", "b"].map(|twin| {
                let scratch = Scratch::new(&format!("{name}-{ranks}-{twin}"));
                let summary = generate(spec, &scratch.0, &Progress::default()).expect("a trace");
                let archive = Archive::open(&scratch.0).expect("readable");
                assert!(archive.oddities().is_empty(), "{name}: {:?}", archive.oddities());
                let mut events = 0;
                for location in &archive.definitions().locations {
                    let mut checked = Checked::default();
                    let reader = archive.location(location.id).expect("readable");
                    let read = reader.read_events(&mut Vec::new(), &mut checked).expect("events");
                    assert!(read.oddities.is_empty() && read.truncated.is_none(), "{name}: {read:?}");
                    assert!(checked.open.is_empty());
                    assert_eq!(checked.events, location.number_of_events);
                    events += checked.events;
                }
                assert_eq!(events, summary.events, "{name}");
                bytes_of(&scratch.0)
            });
            assert!(first == second, "{name} on {ranks} ranks");
            let truth = first.iter().find(|(name, _)| name.as_os_str() == "truth.csv").expect("the truth");
            assert!(truth.1.split(|&byte| byte == b'\n').count() > 3, "{name}: somebody waits");
        }
    }
}

#[test]
fn another_seed_is_another_trace() {
    let [first, second] = [1, 2].map(|seed| {
        let scratch = Scratch::new(&format!("seed-{seed}"));
        generate(Spec::new(Workload::SorP2p, 4, 2, seed), &scratch.0, &Progress::default()).expect("a trace");
        bytes_of(&scratch.0)
    });
    assert!(first != second);
}

#[test]
fn impossible_runs_are_refused() {
    let possible = Spec::new(Workload::SorP2p, 4, 2, 0);
    for spec in [
        Spec { ranks: 1, ..possible },
        Spec { iterations: 0, ..possible },
        Spec { work: 1, ..possible },
        Spec { imbalance: f64::NAN, ..possible },
    ] {
        let scratch = Scratch::new("refused");
        assert!(matches!(generate(spec, &scratch.0, &Progress::default()), Err(Error::Spec(_))), "{spec:?}");
    }
}

#[test]
fn a_cancelled_generation_leaves_no_archive() {
    let scratch = Scratch::new("cancelled");
    let progress = Progress::default();
    progress.cancel();
    let result = generate(Spec::new(Workload::SorP2p, 4, 2, 0), &scratch.0, &progress);
    assert!(matches!(result, Err(Error::Interrupted)));
    assert!(Archive::open(&scratch.0).is_err());
}
