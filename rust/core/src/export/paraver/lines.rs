//! Lines of a trace before they are text, and their order.

use std::io::Write;

use bitcode::{Decode, Encode};
use rayon::slice::ParallelSliceMut as _;

use super::objects::Objects;
use crate::Result;
use crate::export::clock::Clock;
use crate::ids::LocationId;
use crate::trace::Trace;

/// A state, or events of one instant; times in ticks.
#[derive(Clone, Copy, Debug, Encode, Decode)]
pub(super) enum What {
    /// When it ends, and which.
    State(i64, u8),
    /// From where on its pairs are, and how many.
    Events(u32, u32),
}

/// A message; times in ticks.
#[derive(Clone, Copy, Debug, Encode, Decode)]
pub(super) struct Message {
    pub(super) from: LocationId,
    pub(super) to: LocationId,
    /// Enter and Leave of the sending call; calls that both send and receive send at their Enter.
    pub(super) sent: (i64, i64),
    /// When the receive was posted and completed.
    pub(super) received: (i64, i64),
    pub(super) bytes: u64,
    pub(super) tag: u32,
}

/// Lines of a location, in order of time but for states.
#[derive(Clone, Debug, Encode, Decode)]
pub(super) struct Lines {
    pub(super) location: LocationId,
    pub(super) list: Vec<(i64, What)>,
    /// Types and values.
    pairs: Vec<(u32, i64)>,
    /// Number of regions.
    pub(super) calls: u64,
}

impl Lines {
    pub(super) fn new(location: LocationId) -> Self {
        Self { location, list: Vec::new(), pairs: Vec::new(), calls: 0 }
    }

    pub(super) fn state(&mut self, begin: i64, end: i64, state: u8) {
        if begin < end {
            self.list.push((begin, What::State(end, state)));
        }
    }

    pub(super) fn events(&mut self, time: i64, pairs: impl IntoIterator<Item = (u32, i64)>) {
        let first = self.pairs.len();
        self.pairs.extend(pairs);
        let count = self.pairs.len() - first;
        self.list.push((time, What::Events(first as u32, count as u32)));
    }
}

/// Writes all lines in order of time; returns their number.
pub(super) fn write(
    mut out: impl Write,
    trace: &Trace,
    (objects, clock): (&Objects, Clock),
    lines: &[Lines],
    messages: &[Message],
) -> Result<u64> {
    // At one instant, as the file counts time: states, events, messages.
    let mut order: Vec<(u64, u8, u32, u32)> = Vec::new();
    for (of, lines) in (0..).zip(lines) {
        order.extend((0..).zip(&lines.list).filter_map(|(at, (time, what))| {
            let time = clock.nanoseconds(*time);
            match what {
                What::State(end, _) => (time < clock.nanoseconds(*end)).then_some((time, 0, of, at)),
                What::Events(..) => Some((time, 1, of, at)),
            }
        }));
    }
    order.extend((0..).zip(messages).map(|(at, message)| (clock.nanoseconds(message.sent.1), 2, 0, at)));
    order.par_sort_unstable();
    let end = trace.span().map_or(0, |(_, last)| clock.nanoseconds(last));
    out.write_all(objects.header(end).as_bytes())?;
    for (time, rank, of, at) in &order {
        if *rank == 2 {
            message(&mut out, objects, clock, &messages[*at as usize])?;
            continue;
        }
        let lines = &lines[*of as usize];
        let (cpu, task, thread) = objects.object(lines.location);
        match lines.list[*at as usize].1 {
            What::State(end, state) => {
                let end = clock.nanoseconds(end);
                writeln!(out, "1:{cpu}:1:{task}:{thread}:{time}:{end}:{state}")?;
            }
            What::Events(first, count) => {
                write!(out, "2:{cpu}:1:{task}:{thread}:{time}")?;
                for (kind, value) in &lines.pairs[first as usize..(first + count) as usize] {
                    write!(out, ":{kind}:{value}")?;
                }
                out.write_all(b"\n")?;
            }
        }
    }
    out.flush()?;
    Ok(order.len() as u64)
}

fn message(out: &mut impl Write, objects: &Objects, clock: Clock, message: &Message) -> Result<()> {
    let (cpu, task, thread) = objects.object(message.from);
    let [begin, left, posted, arrived] =
        [message.sent.0, message.sent.1, message.received.0, message.received.1].map(|time| clock.nanoseconds(time));
    write!(out, "3:{cpu}:1:{task}:{thread}:{begin}:{left}")?;
    let (cpu, task, thread) = objects.object(message.to);
    let Message { bytes, tag, .. } = message;
    Ok(writeln!(out, ":{cpu}:1:{task}:{thread}:{posted}:{arrived}:{bytes}:{tag}")?)
}
