//! In the place of the sampler, where it knows nothing of the processor.

use crate::format::{Entry, NONE};
use crate::spool::Payload;
use crate::state;
use crate::thread::Thread;

pub(crate) fn prepare() {}

pub(crate) fn is_on() -> bool {
    false
}

/// Says that there are no samples.
pub(crate) fn begin(_: u32, _: bool) {
    state::define(Entry::Unsampled, &Payload::default().u32(NONE).text("only programs for x86-64 are sampled"));
}

pub(crate) fn thread_begins() {}

pub(crate) fn number() -> Option<u32> {
    None
}

pub(crate) fn calls(_: *mut Thread) {}

pub(crate) fn is_own(_: usize) -> bool {
    false
}

pub(crate) fn look() {}

pub(crate) fn stop() {}

pub(crate) fn forks() {}

pub(crate) fn has_forked() {}

pub(crate) fn forked() {}
