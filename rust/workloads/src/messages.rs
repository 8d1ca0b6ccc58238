//! Buffered sends and the receives of their messages: a send never waits, so that only its receiver may.

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
