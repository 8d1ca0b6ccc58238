//! Memory of the process.

#![allow(unsafe_code)]

use std::fs::{self, File};
use std::os::unix::fs::FileExt;
use std::sync::OnceLock;

/// Memory of the process in bytes. Allocates nothing.
pub fn resident() -> Option<u64> {
    static STATM: OnceLock<Option<(File, u64)>> = OnceLock::new();
    let open = || {
        // SAFETY: the call only reads a number.
        let page = unsafe { libc::sysconf(libc::_SC_PAGESIZE) };
        File::open("/proc/self/statm").ok().map(|file| (file, page as u64))
    };
    let (file, page) = STATM.get_or_init(open).as_ref()?;
    let mut text = [0; 128];
    let length = file.read_at(&mut text, 0).ok()?;
    let pages: u64 = std::str::from_utf8(&text[..length]).ok()?.split(' ').nth(1)?.parse().ok()?;
    Some(pages * page)
}

/// Peak memory of the process in bytes.
pub fn peak() -> Option<u64> {
    // `getrusage` would include the program that this process ran before.
    let status = fs::read_to_string("/proc/self/status").ok()?;
    let line = status.lines().find_map(|line| line.strip_prefix("VmHWM:"))?;
    let kilobytes: u64 = line.split_whitespace().next()?.parse().ok()?;
    Some(kilobytes * 1024)
}
