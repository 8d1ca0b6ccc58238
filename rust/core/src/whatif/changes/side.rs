//! On which side of the time in the library a record is written.

use whywait_otf2::Event;

/// The end of a call to which a record keeps its distance.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(in crate::whatif) enum Side {
    Enter,
    Leave,
    Both,
}

/// The end of its call to which a record keeps its distance, by when it is written.
pub(in crate::whatif) fn side(record: &Event<'_>) -> Side {
    match record {
        Event::MpiSend { .. }
        | Event::MpiIsend { .. }
        | Event::MpiIrecvRequest { .. }
        | Event::MpiImrecvRequest { .. }
        | Event::MpiCollectiveBegin {}
        | Event::NonBlockingCollectiveRequest { .. }
        | Event::RmaCollectiveBegin {}
        | Event::RmaRequestLock { .. }
        | Event::RmaPut { .. }
        | Event::RmaGet { .. }
        | Event::RmaAtomic { .. } => Side::Enter,
        Event::MpiRecv { .. }
        | Event::MpiIrecv { .. }
        | Event::MpiMrecv { .. }
        | Event::MpiImrecv { .. }
        | Event::MpiIsendComplete { .. }
        | Event::MpiCollectiveEnd { .. }
        | Event::MpiRequestCancelled { .. }
        | Event::MpiRequestTest { .. }
        | Event::NonBlockingCollectiveComplete { .. }
        | Event::RmaCollectiveEnd { .. }
        | Event::RmaGroupSync { .. }
        | Event::RmaAcquireLock { .. }
        | Event::RmaReleaseLock { .. }
        | Event::RmaWaitChange { .. }
        | Event::RmaOpCompleteBlocking { .. }
        | Event::RmaOpCompleteNonBlocking { .. }
        | Event::RmaOpCompleteRemote { .. } => Side::Leave,
        _ => Side::Both,
    }
}
