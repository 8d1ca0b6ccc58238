//! One location read by several threads: its chunks decode independently of each other, while the calls they record are
//! followed in order.

use whywait_otf2::records::TypedValue;
use whywait_otf2::{Attributes, Event, EventSink, Events, ReadSummary, Result};

use super::decode::Decoder;
use crate::parallel::iter::prelude::*;

/// A location is worth sharing if it has this many chunks for each thread.
const CHUNKS_A_THREAD: u64 = 4;

/// Whether several threads should share the reading of a location, given that there are only `shards` shards.
pub fn worth_sharing(events: &Events<'_>, shards: usize) -> bool {
    let threads = rayon::current_num_threads();
    shards < threads && events.chunk_count() >= CHUNKS_A_THREAD * threads as u64
}

/// Sends all events to the decoder; while it follows one batch of chunks, other threads decode the next.
pub fn read_events(events: &Events<'_>, decoder: &mut Decoder<'_>) -> Result<ReadSummary> {
    let batch = rayon::current_num_threads() as u64;
    let chunks = events.chunk_count();
    let decode = |begin: u64| -> Vec<Chunk> {
        (begin..chunks.min(begin + batch)).into_par_iter().map(|chunk| Chunk::read(events, chunk)).collect()
    };
    let mut total = ReadSummary::default();
    let mut begin = 0;
    let mut ready = decode(begin);
    while !ready.is_empty() {
        begin += batch;
        let (next, summary) = rayon::join(|| decode(begin), || follow(ready, decoder));
        let summary = summary?;
        total.events += summary.events;
        total.oddities.extend(summary.oddities);
        if summary.truncated.is_some() {
            total.truncated = summary.truncated;
            break;
        }
        ready = next;
    }
    Ok(total)
}

/// The events of one chunk.
struct Chunk {
    events: Vec<(i64, Recorded)>,
    records: Vec<Event<'static>>,
    /// The values of all metric records, one record after the other.
    values: Vec<TypedValue>,
    summary: Result<ReadSummary>,
}

/// An event in a chunk; rarer records are kept in a separate list.
#[derive(Clone, Copy)]
enum Recorded {
    Enter(u32),
    Leave(u32),
    /// The metric, and how many values it has.
    Metric(u32, u8),
    Record,
}

impl Chunk {
    fn read(events: &Events<'_>, chunk: u64) -> Self {
        let summary = Ok(ReadSummary::default());
        let mut content = Self { events: Vec::new(), records: Vec::new(), values: Vec::new(), summary };
        content.summary = events.read_chunks(chunk..chunk + 1, &mut Vec::new(), &mut content);
        content
    }

    fn keep(&mut self, time: i64, metric: u32, values: impl ExactSizeIterator<Item = TypedValue>) {
        // A record counts its values in a byte.
        self.events.push((time, Recorded::Metric(metric, values.len() as u8)));
        self.values.extend(values);
    }
}

/// Sends the events of some chunks to the decoder.
fn follow(chunks: Vec<Chunk>, decoder: &mut Decoder<'_>) -> Result<ReadSummary> {
    let mut total = ReadSummary::default();
    for chunk in chunks {
        let (mut records, mut values) = (chunk.records.iter(), &chunk.values[..]);
        for (time, recorded) in chunk.events {
            match recorded {
                Recorded::Enter(region) => decoder.enter(time, region),
                Recorded::Leave(region) => decoder.leave(time, region),
                Recorded::Metric(metric, count) => {
                    let (own, next) = values.split_at(count.into());
                    decoder.metric(time, metric, own);
                    values = next;
                }
                Recorded::Record => {
                    if let Some(record) = records.next() {
                        decoder.record(time, record, &Attributes::NONE);
                    }
                }
            }
        }
        decoder.end_chunk();
        let summary = chunk.summary?;
        total.events += summary.events;
        total.oddities.extend(summary.oddities);
        if summary.truncated.is_some() {
            total.truncated = summary.truncated;
            break;
        }
    }
    Ok(total)
}

impl EventSink for Chunk {
    fn enter(&mut self, time: i64, region: u32) {
        self.events.push((time, Recorded::Enter(region)));
    }

    fn leave(&mut self, time: i64, region: u32) {
        self.events.push((time, Recorded::Leave(region)));
    }

    fn record(&mut self, time: i64, record: &Event<'_>, _: &Attributes<'_>) {
        if let Event::Metric { metric, values } = *record {
            self.keep(time, metric, values.iter());
        } else {
            self.events.push((time, Recorded::Record));
            // The decoder looks at no other list.
            self.records.push(record.without_lists());
        }
    }

    fn metric(&mut self, time: i64, metric: u32, values: &[TypedValue]) {
        self.keep(time, metric, values.iter().copied());
    }
}
