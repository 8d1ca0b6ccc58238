//! Calls of the operating system, by their names.

use whywait_devices::Region;
use whywait_otf2::enums::{Paradigm, RegionRole};

/// Calls of the operating system that read or write files.
const FILES: [&str; 15] = [
    "read",
    "readv",
    "pread",
    "preadv",
    "fread",
    "write",
    "writev",
    "pwrite",
    "pwritev",
    "fwrite",
    "fsync",
    "fdatasync",
    "sync_file_range",
    "sendfile",
    "fflush",
];
/// How the names of calls begin that wait for what is not recorded: data, a time, a process, a semaphore.
const WAITING: [&str; 20] = [
    "poll",
    "ppoll",
    "select",
    "pselect",
    "epoll_",
    "nanosleep",
    "clock_nanosleep",
    "usleep",
    "sleep",
    "pause",
    "sem",
    "futex",
    "wait",
    "sigwait",
    "sigtimedwait",
    "sigsuspend",
    "accept",
    "recv",
    "msgrcv",
    "flock",
];

/// The region of a call of the operating system.
pub(crate) fn region(name: &str) -> Region {
    let call = name.trim_start_matches('_').trim_end_matches("64");
    let (paradigm, role) = if FILES.contains(&call) {
        (Paradigm::USER, RegionRole::FILE_IO)
    } else if call.starts_with("pthread_") {
        (Paradigm::PTHREAD, RegionRole::FUNCTION)
    } else if WAITING.iter().any(|begin| call.starts_with(begin)) {
        (Paradigm::USER, RegionRole::THREAD_WAIT)
    } else {
        (Paradigm::USER, RegionRole::FUNCTION)
    };
    Region::new(name.to_owned(), paradigm, role)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_tell_what_calls_do() {
        for (name, paradigm, role) in [
            ("pread64", Paradigm::USER, RegionRole::FILE_IO),
            ("__write", Paradigm::USER, RegionRole::FILE_IO),
            ("pthread_cond_timedwait", Paradigm::PTHREAD, RegionRole::FUNCTION),
            ("epoll_wait", Paradigm::USER, RegionRole::THREAD_WAIT),
            ("sem_timedwait", Paradigm::USER, RegionRole::THREAD_WAIT),
            ("waitpid", Paradigm::USER, RegionRole::THREAD_WAIT),
            ("ioctl", Paradigm::USER, RegionRole::FUNCTION),
        ] {
            let region = region(name);
            assert_eq!((region.paradigm, region.role), (paradigm, role), "{name}");
        }
    }
}
