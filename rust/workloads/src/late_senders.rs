//! Late Senders and messages in wrong order: a receiver that waited for a message could have received another one that
//! was sent earlier instead.

use crate::event_writer::EventWriter;

/// Number of Late Senders that are kept to detect wrong order.
const REMEMBERED: usize = 100;

/// A Late Sender.
struct Late {
    path: usize,
    source: u32,
    /// When the message was sent.
    sent: i64,
    waiting: i64,
}

/// The most recent Late Senders of a rank.
#[derive(Default)]
pub(crate) struct RecentLateSenders(Vec<Late>);

impl RecentLateSenders {
    /// Books the waiting of the innermost region for a message of `source`, from `enter` until its send begins at
    /// `begun`; `record` is the time of the send's record.
    pub(crate) fn receive(&mut self, writer: &mut EventWriter<'_>, source: u32, enter: i64, begun: i64, record: i64) {
        for late in self.0.extract_if(.., |late| late.sent > record) {
            writer.book_at(late.path, "mpi_latesender_wo", late.waiting);
            let kind = if late.source == source { "mpi_lswo_same" } else { "mpi_lswo_different" };
            writer.book_at(late.path, kind, late.waiting);
        }
        let waiting = begun - enter;
        writer.book("mpi_latesender", waiting);
        if waiting > 0 {
            if self.0.len() == REMEMBERED {
                self.0.remove(0);
            }
            self.0.push(Late { path: writer.path(), source, sent: record, waiting });
        }
    }
}
