//! Defects of an archive that do not prevent reading it.

use std::fmt;

use crate::error::Place;

/// Kinds of oddities.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
#[non_exhaustive]
pub enum OddityKind {
    /// A file is truncated; its content was read.
    Truncated,
    /// More bytes follow the end of a file.
    Trailing,
    /// Several definitions with one id; look-up by id finds the first.
    Duplicate,
    /// A definition refers to a later one.
    ForwardReference,
    /// A definition refers to one that does not exist.
    DanglingReference,
    /// A count that is wrong.
    Count,
    /// A string that is not UTF-8, read with replacement characters.
    NotUtf8,
    /// A record that this version does not know.
    UnknownRecord,
    /// A definition that an archive should have.
    Missing,
    /// A value outside the range that the format allows.
    Range,
    /// Clock offsets that are not in order.
    ClockOffset,
    /// Events that cannot be read and are left out.
    Unreadable,
    /// Lengths that cannot be.
    Duration,
    /// Times of a device's work that cannot be.
    DeviceTime,
    /// Spans of a thread that are neither within each other nor apart.
    Crossing,
    /// What is not recorded and was guessed.
    Guessed,
}

impl OddityKind {
    /// A name for tables.
    pub const fn name(self) -> &'static str {
        match self {
            OddityKind::Truncated => "truncated",
            OddityKind::Trailing => "trailing",
            OddityKind::Duplicate => "duplicate",
            OddityKind::ForwardReference => "forward-reference",
            OddityKind::DanglingReference => "dangling-reference",
            OddityKind::Count => "count",
            OddityKind::NotUtf8 => "not-utf8",
            OddityKind::UnknownRecord => "unknown-record",
            OddityKind::Missing => "missing",
            OddityKind::Range => "range",
            OddityKind::ClockOffset => "clock-offset",
            OddityKind::Unreadable => "unreadable-event",
            OddityKind::Duration => "duration",
            OddityKind::DeviceTime => "device-time",
            OddityKind::Crossing => "crossing",
            OddityKind::Guessed => "guessed",
        }
    }
}

/// A defect and its place.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Oddity {
    /// What kind of oddity.
    pub kind: OddityKind,
    /// Where; the first place if there are several of a kind.
    pub place: Place,
    /// Description.
    pub text: String,
}

impl fmt::Display for Oddity {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: {}", self.place, self.text)
    }
}
