//! Memory mapping of files: the one place with unsafe code.

#![allow(unsafe_code)]

use std::fs::File;
use std::io;
use std::ops::Deref;

/// A file mapped for reading.
#[derive(Debug)]
pub(crate) struct Map(memmap2::Mmap);

impl Map {
    pub(crate) fn new(file: &File) -> io::Result<Self> {
        // SAFETY: the map is read-only and private to this crate. It cannot prevent that another process truncates the
        // file; mapping is used only on request, and the documentation of the option mentions this.
        unsafe { memmap2::Mmap::map(file) }.map(Self)
    }
}

impl Deref for Map {
    type Target = [u8];

    fn deref(&self) -> &[u8] {
        &self.0
    }
}
