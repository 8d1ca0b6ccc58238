//! The records of general active-target synchronization: post, start, complete, wait.

use whywait_otf2::enums::RmaSyncLevel;
use whywait_otf2::{Event, Result};

use crate::definitions::{FIRST_GROUP, Region};
use crate::meeting::GAP;
use crate::tape::Tape;

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

    pub(crate) fn post(self, tape: &mut Tape<'_>, (enter, leave): Span) -> Result<()> {
        tape.enter(enter, Region::WinPost)?;
        tape.record(enter, &self.sync(RmaSyncLevel::PROCESS))?;
        tape.leave(leave)
    }

    /// Start, which waits so long for posts.
    pub(crate) fn start(self, tape: &mut Tape<'_>, (enter, leave): Span, late_post: i64) -> Result<()> {
        tape.enter(enter, Region::WinStart)?;
        tape.record(enter, &self.sync(RmaSyncLevel::PROCESS))?;
        tape.book("mpi_rma_sync_late_post", late_post);
        tape.leave(leave)
    }

    /// Complete, of operations with these ids.
    pub(crate) fn complete(
        self,
        tape: &mut Tape<'_>,
        (enter, leave): Span,
        operations: std::ops::Range<u64>,
    ) -> Result<()> {
        tape.enter(enter, Region::WinComplete)?;
        for matching_id in operations {
            tape.record(leave - GAP, &Event::RmaOpCompleteNonBlocking { win: self.window, matching_id })?;
        }
        tape.record(leave - GAP, &self.synchronized())?;
        tape.leave(leave)
    }

    /// Wait, which waits so long for completes, and for late ones.
    pub(crate) fn wait(self, tape: &mut Tape<'_>, (enter, leave): Span, early: i64, late: i64) -> Result<()> {
        tape.enter(enter, Region::WinWait)?;
        tape.record(enter, &self.synchronized())?;
        tape.book("mpi_rma_early_wait", early);
        tape.book("mpi_rma_late_complete", late);
        tape.leave(leave)
    }
}
