//! Estimates the memory of an analysis from a sample of the events.
//!
//! Every event takes space in columns. Synchronization takes much more: a point of the cost model, the profile since
//! the previous point, wait states and their explanations, all of which depend on the program. The numbers are averages
//! over the synthetic workloads and traces of nested calls; `tests/test_memory.py` compares estimates with
//! measurements.

use whywait_core::trace::DefinitionIndex;
use whywait_otf2::{Attributes, Event, EventSink, Recording};

/// Memory of Python, its libraries, and the analysis of a tiny trace, bytes.
const FIXED: f64 = 80.0 * MIB;
/// Memory for writing results: the fixed part, and the part per expected wait, bytes.
const REPORTS: f64 = 24.0 * MIB;
const REPORTS_OF_WAITS: f64 = 6.0 * MIB;
/// From this many synchronizations on, tables fill the batches in which they are written.
const MANY: f64 = 40_000.0;
const MIB: f64 = 1_048_576.0;
/// Columns of an event, bytes.
const EVENT: f64 = 17.5;
/// Number of sampled locations, and of chunks of each.
const SAMPLED: usize = 32;

/// Additional memory of an event that represents an operation of a process, bytes.
fn operation(name: &str) -> f64 {
    match name {
        "MpiSend" | "MpiIsend" | "MpiCollectiveEnd" | "NonBlockingCollectiveComplete" => 310.0,
        "RmaCollectiveEnd" => 850.0,
        "RmaReleaseLock" => 580.0,
        "RmaGroupSync" => 270.0,
        "RmaPut" | "RmaAtomic" => 100.0,
        "RmaGet" => 800.0,
        _ => 0.0,
    }
}

/// Counts events by the number of their record.
pub(crate) struct Counter(pub(crate) [u64; 256]);

impl EventSink for Counter {
    fn enter(&mut self, _: i64, _: u32) {
        self.0[12] += 1;
    }

    fn leave(&mut self, _: i64, _: u32) {
        self.0[13] += 1;
    }

    fn record(&mut self, _: i64, record: &Event<'_>, _: &Attributes<'_>) {
        self.0[usize::from(record.id())] += 1;
    }
}

/// Estimates the peak of the memory of `whywait analyze`, bytes.
pub(crate) fn memory(recording: &dyn Recording, definitions: &DefinitionIndex) -> u64 {
    let events = definitions.locations.iter().fold(0.0, |sum, location| sum + location.events as f64);
    let counts = sample(recording, definitions);
    let seen: u64 = counts.iter().sum();
    let share = |count: u64| if seen == 0 { 0.0 } else { events * count as f64 / seen as f64 };
    let (mut operations, mut bytes) = (0.0, events * EVENT);
    for (id, &count) in counts.iter().enumerate() {
        let each = operation(Event::name_of(id as u8));
        if each > 0.0 {
            operations += share(count);
            bytes += share(count) * each;
        }
    }
    (FIXED + REPORTS + REPORTS_OF_WAITS * (operations / MANY).min(1.0) + bytes) as u64
}

/// Counts the events in two chunks of evenly spread locations; unreadable chunks count as empty.
fn sample(recording: &dyn Recording, definitions: &DefinitionIndex) -> [u64; 256] {
    let mut counter = Counter([0; 256]);
    let mut buffer = Vec::new();
    let with_events: Vec<_> = definitions.locations.iter().filter(|location| location.events > 0).collect();
    for i in 0..with_events.len().min(SAMPLED) {
        let location = with_events[i * with_events.len() / with_events.len().min(SAMPLED)];
        let Ok(events) = recording.events(location.id) else { continue };
        let middle = events.chunk_count() / 2;
        for chunk in [0, middle].into_iter().take(1 + usize::from(middle > 0)) {
            drop(events.read_chunks(chunk..chunk + 1, &mut buffer, &mut counter));
        }
    }
    counter.0
}
