//! What happens to the calls of each function.

use crate::table::FUNCTIONS;
use std::sync::atomic::AtomicU8;

/// The call goes on to MPI and nothing else happens.
pub(crate) const PASS: u8 = 0;
/// Not recorded, but what later calls need is kept.
pub(crate) const KEEP: u8 = 1;
/// Recorded.
pub(crate) const RECORD: u8 = 2;
/// Begins, ends or switches the recording.
pub(crate) const SPECIAL: u8 = 3;

/// What happens to each function now. Before MPI_Init, and once recording is off, only those that begin it are looked at.
pub(crate) static MODES: [AtomicU8; FUNCTIONS.len()] = {
    let mut modes = [const { AtomicU8::new(PASS) }; FUNCTIONS.len()];
    let mut i = 0;
    while i < modes.len() {
        if FUNCTIONS[i].class.begins() {
            modes[i] = AtomicU8::new(SPECIAL);
        }
        i += 1;
    }
    modes
};
