//! Any bytes as a trace of Paraver: whatever they are, events are in order and regions are nested.

use std::fs;
use std::path::Path;

use whywait_otf2::{Attributes, Event, EventSink, Recording};
use whywait_paraver::{Options, open};

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
        assert_eq!(self.open.pop(), Some(region), "regions are nested");
    }

    fn record(&mut self, time: i64, _: &Event<'_>, _: &Attributes<'_>) {
        self.event(time);
    }
}

/// The header of traces whose records are any bytes.
const HEADER: &[u8] = b"#Paraver (1):99_ns:1(3):2:2(2:1,1:1),1(1:1),1\nc:1:1:2:1:2\n";

/// Any bytes as a file, and as the lines after a header; labels are the same bytes.
pub fn paraver(bytes: &[u8], directory: &Path) {
    let _ = fs::create_dir_all(directory);
    let file = directory.join("run.prv");
    let _ = fs::write(directory.join("run.pcf"), bytes);
    let _ = fs::write(directory.join("run.row"), bytes);
    for text in [bytes.to_vec(), [HEADER, bytes, b"\n"].concat()] {
        fs::write(&file, text).expect("a file can be written");
        let options = Options { truncated: true, types: vec![7], ..Options::default() };
        let Ok(recording) = open(&file, &options) else { continue };
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
