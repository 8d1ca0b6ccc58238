//! Any bytes as traces of PyTorch's profiler: whatever they are, events are in order and regions end.

use std::fs;
use std::path::{Path, PathBuf};

use whywait_kineto::scan::{Field, Fields, Sink, scan};
use whywait_kineto::{Options, open};
use whywait_otf2::{Attributes, Event, EventSink, Recording};

/// Counts events, and looks at all their fields.
#[derive(Default)]
struct Count(u64);

impl Sink for Count {
    fn event(&mut self, event: &Fields<'_>) {
        self.0 += 1;
        for field in [Field::Name, Field::Time, Field::Correlation, Field::Inputs] {
            std::hint::black_box((event.get(field), event.text(field)));
        }
    }

    fn metadata(&mut self, key: &[u8], value: &[u8]) {
        std::hint::black_box((key, value));
    }
}

/// Any bytes as a file.
pub fn kineto_scan(bytes: &[u8]) {
    let mut count = Count::default();
    let summary = scan(bytes, &mut count).expect("memory can be read");
    assert_eq!(summary.events, count.0);
    assert!(summary.truncated.is_none_or(|offset| offset <= bytes.len() as u64));
}

/// Checks what an analysis relies on.
#[derive(Default)]
struct Check {
    now: Option<i64>,
    open: Vec<u32>,
    events: u64,
}

impl Check {
    fn event(&mut self, time: i64) {
        assert!(self.now.is_none_or(|now| now <= time), "time goes back");
        self.now = Some(time);
        self.events += 1;
    }
}

impl EventSink for Check {
    fn enter(&mut self, time: i64, region: u32) {
        self.event(time);
        self.open.push(region);
    }

    fn leave(&mut self, time: i64, region: u32) {
        self.event(time);
        let at = self.open.iter().rposition(|open| *open == region).expect("a region is left that was entered");
        self.open.remove(at);
    }

    fn record(&mut self, time: i64, _: &Event<'_>, _: &Attributes<'_>) {
        self.event(time);
    }
}

/// Any bytes as the files of two ranks: all of them, and all with the last eighth missing.
pub fn kineto_open(bytes: &[u8], directory: &Path) {
    let _ = fs::create_dir_all(directory);
    let files: Vec<PathBuf> = (0..2).map(|rank| directory.join(format!("rank{rank}.pt.trace.json"))).collect();
    for (file, length) in files.iter().zip([bytes.len(), bytes.len() - bytes.len() / 8]) {
        fs::write(file, &bytes[..length]).expect("a file can be written");
    }
    if let Ok(recording) = open(&files, &Options::default()) {
        for location in &recording.definitions().locations {
            let mut check = Check::default();
            let events = recording.events(location.id).expect("a location that is defined");
            let summary = events.read(&mut Vec::new(), &mut check).expect("events are made in memory");
            assert!(check.open.is_empty(), "regions end");
            assert_eq!((summary.events, location.number_of_events), (check.events, check.events));
        }
    }
    let _ = fs::remove_dir_all(directory);
}
