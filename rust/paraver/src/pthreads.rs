//! POSIX threads: calls and their types of events.
//!
//! Extrae has two forms. The newer one has a type for all calls, whose values say which, and does not say which lock a call
//! is for. The older one has a type for each call, whose value is the address of the lock. A file can have both.
//!
//! ```text
//!  newer   61000000: which ......................... 0
//!  older   61000000 + which: address or 1 .......... 0
//!  life    60000020: function ...................... 0     on the new thread, and within the call that makes it
//! ```

use whywait_otf2::enums::RegionRole;

/// Type of events: calls, by number.
pub(crate) const CALLS: u32 = 61_000_000;
/// Type of events: the function of a thread that another one made.
pub(crate) const LIFE: u32 = 60_000_020;

/// Numbers of calls.
pub(crate) const EXIT: i64 = 1;
/// See [`EXIT`].
pub(crate) const CREATE: i64 = 2;
/// See [`EXIT`].
pub(crate) const JOIN: i64 = 3;
const DETACH: i64 = 4;
/// See [`EXIT`].
pub(crate) const WRITE_LOCK: i64 = 5;
/// See [`EXIT`].
pub(crate) const READ_LOCK: i64 = 6;
/// See [`EXIT`].
pub(crate) const READ_WRITE_UNLOCK: i64 = 7;
/// See [`EXIT`].
pub(crate) const LOCK: i64 = 8;
/// See [`EXIT`].
pub(crate) const UNLOCK: i64 = 9;
/// See [`EXIT`].
pub(crate) const CONDITION_WAIT: i64 = 12;

/// States of threads in calls.
const SYNCHRONIZATION: u8 = 5;
/// See [`SYNCHRONIZATION`].
const SCHEDULING: u8 = 7;

/// Names of calls from number 1 on, and labels of the older types.
const NAMES: [(&str, &str); 13] = [
    ("pthread_exit", "pthread_exit"),
    ("pthread_create", "pthread_create"),
    ("pthread_join", "pthread_join"),
    ("pthread_detach", "pthread_detach"),
    ("pthread_rwlock_wrlock", "pthread_rw_lock_wr"),
    ("pthread_rwlock_rdlock", "pthread_rw_lock_rd"),
    ("pthread_rwlock_unlock", "pthread_rw_unlock"),
    ("pthread_mutex_lock", "pthread_mutex_lock"),
    ("pthread_mutex_unlock", "pthread_mutex_unlock"),
    ("pthread_cond_signal", "pthread_cond_signal"),
    ("pthread_cond_broadcast", "pthread_cond_broadcast"),
    ("pthread_cond_wait", "pthread_cond_wait"),
    ("pthread_barrier_wait", "pthread_barrier_wait"),
];

/// The number of the call that an older type stands for; `label` is that of the type.
pub(crate) fn number(kind: u32, label: Option<&str>) -> Option<i64> {
    let by_type = i64::from(kind.checked_sub(CALLS)?);
    if !(1..=NAMES.len() as i64).contains(&by_type) {
        return None;
    }
    let by_label = label.and_then(|label| (1..).zip(NAMES).find(|(_, (name, older))| [*name, *older].contains(&label)));
    Some(by_label.map_or(by_type, |(number, _)| number))
}

/// How a call is numbered, as those of MPI are. The end of a thread has no end, and is none.
pub(crate) fn numbered(call: &str) -> Option<(u32, u32, u8)> {
    let (number, _) = (1..).zip(NAMES).find(|(number, (name, _))| *number != EXIT && *name == call)?;
    let state = if matches!(number, CREATE..=DETACH) { SCHEDULING } else { SYNCHRONIZATION };
    Some((CALLS, number as u32, state))
}

/// Whether a call is for a lock, whose address the older form has.
pub(crate) const fn is_for_lock(number: i64) -> bool {
    number >= WRITE_LOCK && number <= UNLOCK
}

/// Whether a type says what threads do.
pub(crate) const fn is_pthread(kind: u32) -> bool {
    kind == LIFE || kind >= CALLS && kind <= CALLS + NAMES.len() as u32
}

/// The name and the role of a call.
pub(crate) fn call(number: i64) -> Option<(&'static str, RegionRole)> {
    let name = NAMES.get(usize::try_from(number).ok()?.checked_sub(1)?)?.0;
    let role = match number {
        CREATE => RegionRole::THREAD_CREATE,
        JOIN => RegionRole::THREAD_WAIT,
        _ => RegionRole::WRAPPER,
    };
    Some((name, role))
}
