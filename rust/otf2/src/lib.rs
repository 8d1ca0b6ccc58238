//! Reader and writer of OTF2 trace archives: bytes to records and back, trace formats 1 and 2.
//!
//! [`Archive`] reads definitions, [`LocationReader`] sends the events of one location to an [`EventSink`], and
//! [`ArchiveWriter`] writes an archive back. Nothing here knows what the events mean.
//!
//! Foreign numbers are checked before they are used: a broken file is an [`Error`] with file and byte offset, never a
//! panic, and memory grows with the bytes that are present, not with the counts they claim.

#![deny(unsafe_code)]

pub mod clock;
pub mod enums;
pub mod error;
pub mod idmap;
pub mod records;
pub mod wire;

pub use error::{Error, Place, Result};
pub use records::{Attribute, Attributes, Event};
