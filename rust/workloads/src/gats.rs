//! The records of general active-target synchronization: post, start, complete, wait.

use whywait_otf2::enums::RmaSyncLevel;
use whywait_otf2::{Event, Result};

use crate::collective::GAP;
use crate::definitions::{FIRST_GROUP, Region};
use crate::event_writer::EventWriter;

/// The window and the group, by its position among those of the schedule, of a call.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Epoch {
    pub(crate) window: u32,
    pub(crate) group: u32,
}

/// When a call is entered and left.
pub(crate) type Span = (i64, i64);

impl Epoch {
    fn sync(self, sync_level: RmaSyncLevel) -> Event<'static> {
        Event::RmaGroupSync { sync_level, win: self.window, group: FIRST_GROUP + self.group }
    }

    fn synchronized(self) -> Event<'static> {
        self.sync(RmaSyncLevel(RmaSyncLevel::PROCESS.0 | RmaSyncLevel::MEMORY.0))
    }

    pub(crate) fn post(self, writer: &mut EventWriter<'_>, (enter, leave): Span) -> Result<()> {
        writer.enter(enter, Region::WinPost)?;
        writer.record(enter, &self.sync(RmaSyncLevel::PROCESS))?;
        writer.leave(leave)
    }

    /// Start, which waits so long for posts.
    pub(crate) fn start(self, writer: &mut EventWriter<'_>, (enter, leave): Span, late_post: i64) -> Result<()> {
        writer.enter(enter, Region::WinStart)?;
        writer.record(enter, &self.sync(RmaSyncLevel::PROCESS))?;
        writer.book("mpi_rma_sync_late_post", late_post);
        writer.leave(leave)
    }

    /// Complete, of operations with these ids.
    pub(crate) fn complete(
        self,
        writer: &mut EventWriter<'_>,
        (enter, leave): Span,
        operations: std::ops::Range<u64>,
    ) -> Result<()> {
        writer.enter(enter, Region::WinComplete)?;
        for matching_id in operations {
            writer.record(leave - GAP, &Event::RmaOpCompleteNonBlocking { win: self.window, matching_id })?;
        }
        writer.record(leave - GAP, &self.synchronized())?;
        writer.leave(leave)
    }

    /// Wait, which waits so long for completes, and for late ones.
    pub(crate) fn wait(self, writer: &mut EventWriter<'_>, (enter, leave): Span, early: i64, late: i64) -> Result<()> {
        writer.enter(enter, Region::WinWait)?;
        writer.record(enter, &self.synchronized())?;
        writer.book("mpi_rma_early_wait", early);
        writer.book("mpi_rma_late_complete", late);
        writer.leave(leave)
    }
}
