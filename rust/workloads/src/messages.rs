//! Buffered sends and the receives of their messages: a send never waits, so that only its receiver may. And counters of
//! messages and queues.

use whywait_otf2::{Event, Result};

use crate::collective::{CALL, TRANSFER};
use crate::definitions::{Region, WORLD};
use crate::event_writer::EventWriter;
use crate::late_senders::RecentLateSenders;

/// Ticks from the Enter of a send to its record.
const RECORD: i64 = 20;

/// When the receive of a message is left.
pub(crate) fn received(enter: i64, sent: i64) -> i64 {
    enter.max(sent + TRANSFER) + CALL
}

/// A send.
pub(crate) fn send(writer: &mut EventWriter<'_>, enter: i64, receiver: u32, bytes: u64) -> Result<()> {
    let event = Event::MpiSend { receiver, communicator: WORLD, msg_tag: 0, msg_length: bytes };
    writer.call(Region::Bsend, enter, enter + CALL, &event)
}

/// A receive of a message whose send begins at `sent`.
pub(crate) fn receive(
    writer: &mut EventWriter<'_>,
    recent: &mut RecentLateSenders,
    enter: i64,
    (sender, sent): (u32, i64),
    bytes: u64,
) -> Result<()> {
    let leave = received(enter, sent);
    writer.enter(enter, Region::Recv)?;
    writer.record(leave - RECORD, &Event::MpiRecv { sender, communicator: WORLD, msg_tag: 0, msg_length: bytes })?;
    recent.receive(writer, sender, enter, sent, sent + RECORD);
    writer.leave(leave)
}

/// The metric that counts messages of this size.
pub(crate) fn size_metric(bytes: u64) -> &'static str {
    match bytes {
        0 => "mpi_message_size_0",
        1..=64 => "mpi_message_size_64",
        65..=1_024 => "mpi_message_size_1ki",
        1_025..=8_192 => "mpi_message_size_8ki",
        8_193..=65_536 => "mpi_message_size_64ki",
        65_537..=1_048_576 => "mpi_message_size_1mi",
        _ => "mpi_message_size_more",
    }
}

/// The metric that counts barriers of this many ranks.
pub(crate) fn barrier_metric(ranks: u32) -> &'static str {
    if ranks <= 64 { "mpi_collective_size_small_small" } else { "mpi_collective_size_small_large" }
}

/// The most intervals that overlap; they exclude their ends.
pub(crate) fn most(intervals: impl Iterator<Item = (i64, i64)>) -> i64 {
    let intervals = intervals.filter(|(begin, end)| begin < end);
    let mut steps: Vec<(i64, i64)> = intervals.flat_map(|(begin, end)| [(begin, 1), (end, -1)]).collect();
    steps.sort_unstable();
    let mut level = 0;
    let levels = steps.into_iter().map(|(_, step)| {
        level += step;
        level
    });
    levels.max().unwrap_or(0)
}
