//! The interfaces for files besides MPI's.

use whywait_otf2::enums::{IoAccessMode, IoParadigmFlag};

use crate::format::{IO_ISO_C, IO_POSIX};

/// What Score-P calls the interfaces, and whether each is that of the operating system; MPI's is the first of all.
pub(crate) const PARADIGMS: [(u32, &str, IoParadigmFlag); 2] =
    [(IO_POSIX, "POSIX I/O", IoParadigmFlag::OS), (IO_ISO_C, "ISO C I/O", IoParadigmFlag::NONE)];

/// OTF2's number of an interface.
pub(crate) const fn paradigm(number: u32) -> u8 {
    number as u8 + 1
}

/// How a standard stream is opened.
pub(crate) fn standard_mode(name: &str) -> IoAccessMode {
    if name == "stdin" { IoAccessMode::READ_ONLY } else { IoAccessMode::WRITE_ONLY }
}
