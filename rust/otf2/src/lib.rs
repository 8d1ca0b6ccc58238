//! Reader and writer of OTF2 trace archives: bytes to records and back, trace formats 1 and 2.
//!
//! [`Archive`] reads definitions, and a [`LocationReader`] sends the events of one location to an [`EventSink`].
//! [`Recording`] is what an analysis needs of them. An [`ArchiveWriter`] writes both back. Nothing here knows what the events mean.
//!
//! Numbers from files are checked before they are used: a broken file is an [`Error`] with file and byte offset, never
//! a panic, and memory grows with the bytes that are present, not with the counts they claim.

#![deny(unsafe_code)]
#![allow(
    clippy::inline_always,
    reason = "the decoder of events is one loop; left to itself, the compiler keeps the fields as calls"
)]

mod anchor;
pub mod archive;
mod catalog;
pub mod clock;
mod definitions;
pub mod enums;
pub mod error;
mod file;
pub mod idmap;
mod map;
mod numbered;
mod oddity;
pub mod reader;
pub mod recording;
pub mod records;
pub mod source;
pub mod wire;
pub mod writer;

pub use archive::{Anchor, Archive, Definitions, LocalDefinitions, Oddity, OddityKind, OpenOptions};
pub use catalog::Catalog;
pub use error::{Error, Place, Result};
pub use numbered::Numbered;
pub use reader::{LocationReader, ReadSummary};
pub use recording::{EventStream, Events, Recording, count_events};
pub use records::{AttributeValue, Attributes, Event, EventSink};
pub use writer::{ArchiveWriter, LocationWriter, WriteOptions, copy_archive};
