//! The state of the recording in a process, which all parts of the recorder ask for and some change.

use crate::clock::{Reading, now};
use crate::fault::{Uncancelled, say};
use crate::format::{Entry, LOST_LIMIT, LOST_SPACE, NONE};
use crate::modes::{KEEP, MODES, PASS, RECORD};
use crate::options::Options;
use crate::spool::{self, Payload, Stop};
use crate::table::{Class, FUNCTIONS, Group, Owner};
use std::path::PathBuf;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Mutex, OnceLock, PoisonError};

/// What was found when the library was loaded.
pub(crate) struct Loaded {
    pub(crate) archive: PathBuf,
    pub(crate) options: Options,
    pub(crate) reading: Reading,
    pub(crate) time: u64,
}

pub(crate) static LOADED: OnceLock<Loaded> = OnceLock::new();
/// Calls are recorded, but for switches.
pub(crate) static RECORDING: AtomicBool = AtomicBool::new(false);
/// Switches by MPI_Pcontrol.
static SWITCHES: Mutex<Vec<(u64, bool)>> = Mutex::new(Vec::new());
static SWITCH_COUNT: AtomicU64 = AtomicU64::new(0);
static SWITCHED_OFF: AtomicBool = AtomicBool::new(false);
/// Clocks are to be compared when MPI ends: all processes take part.
pub(crate) static MEASURES_AT_END: AtomicBool = AtomicBool::new(false);
/// Threads that are made are to be sampled.
pub(crate) static SAMPLES: AtomicBool = AtomicBool::new(false);
/// Counts for [`Entry::Note`].
pub(crate) static NOTES: [AtomicU64; 2] = [const { AtomicU64::new(0) }; 2];

/// Whether threads are recorded, once MPI is begun.
pub(crate) fn wants_threads() -> bool {
    options().is_some_and(|options| options.groups.contains(&Group::Threads))
}

/// Options of the recording.
pub(crate) fn options() -> Option<&'static Options> {
    LOADED.get().map(|loaded| &loaded.options)
}

/// Whether a class of functions leaves something behind that later calls need.
fn keeps(class: Class) -> bool {
    !matches!(
        class,
        Class::Plain
            | Class::Send
            | Class::Recv
            | Class::Sendrecv
            | Class::Isend
            | Class::Irecv
            | Class::Isendrecv
            | Class::Probe
            | Class::Coll
            | Class::Icoll
            | Class::WinPlain
            | Class::WinFence
            | Class::WinLock
            | Class::WinUnlock
            | Class::WinFlush
            | Class::WinFlushLocal
            | Class::Rma
            | Class::RmaRequest
            | Class::Atomic
            | Class::AtomicRequest
            | Class::Io
            | Class::IoBegin
            | Class::IoEnd
            | Class::Iio
            | Class::FilePlain
            | Class::FileSeek
            | Class::Init
    )
}

/// The same of functions of the C library.
fn keeps_of_system(class: Class) -> bool {
    let opens_or_closes =
        matches!(class, Class::PosixOpen | Class::PosixClose | Class::PosixCloseRange | Class::PosixDup);
    if class.is_of_files() { opens_or_closes } else { class != Class::Plain }
}

/// Sets what happens to each function from now on.
pub(crate) fn set_modes() {
    let Some(options) = options() else { return };
    let on = RECORDING.load(Ordering::Acquire);
    let off = SWITCHED_OFF.load(Ordering::Acquire);
    for (mode, function) in MODES.iter().zip(&FUNCTIONS) {
        let new = if !on {
            // All processes must take part in the measurement of the clocks.
            if function.class.ends() && MEASURES_AT_END.load(Ordering::Relaxed) { KEEP } else { PASS }
        } else if options.groups.contains(&function.group) && !off && function.class != Class::Init {
            RECORD
        } else {
            let is_kept = match function.owner {
                Owner::Mpi => keeps(function.class),
                Owner::System => options.groups.contains(&function.group) && keeps_of_system(function.class),
                Owner::Shmem => function.class.ends(),
                Owner::Armci => false,
            };
            let is_made = SAMPLES.load(Ordering::Relaxed) && function.class == Class::ThreadCreate;
            if is_kept || is_made { KEEP } else { PASS }
        };
        mode.store(new, Ordering::Relaxed);
    }
}

/// Recording goes off or on.
pub(crate) fn switch(on: bool) {
    if SWITCHED_OFF.swap(!on, Ordering::AcqRel) == on {
        let mut switches = SWITCHES.lock().unwrap_or_else(PoisonError::into_inner);
        switches.push((now(), on));
        SWITCH_COUNT.store(switches.len() as u64, Ordering::Release);
        set_modes();
    }
}

/// Whether the recording goes on, be it that it is switched off.
pub(crate) fn is_recording() -> bool {
    RECORDING.load(Ordering::Relaxed)
}

/// Whether it is switched off.
pub(crate) fn is_switched_off() -> bool {
    SWITCHED_OFF.load(Ordering::Relaxed)
}

/// How many switches there were.
#[inline]
pub(crate) fn switches() -> u64 {
    SWITCH_COUNT.load(Ordering::Relaxed)
}

/// The switches after the first `known`: when, and whether to on.
pub(crate) fn switches_since(known: u64) -> Vec<(u64, bool)> {
    let switches = SWITCHES.lock().unwrap_or_else(PoisonError::into_inner);
    switches.get(known as usize..).unwrap_or_default().to_vec()
}

/// Counts something for the report.
pub(crate) fn note(what: u32) {
    if let Some(note) = NOTES.get(what as usize) {
        note.fetch_add(1, Ordering::Relaxed);
    }
}

/// Nothing is recorded from now on.
pub(crate) fn stop(reason: u32, text: &str) {
    if RECORDING.swap(false, Ordering::AcqRel) {
        set_modes();
        if let Some(spool) = spool::get() {
            // There may be no space for it.
            let _ = spool.define(Entry::Lost, &Payload::default().u32(NONE).u64(now()).u32(reason).text(text));
        }
    }
}

/// There is no space for further slots.
pub(crate) fn lost(why: Stop) {
    if !RECORDING.load(Ordering::Acquire) {
        return;
    }
    let rank = spool::get().map_or(0, |spool| spool.rank);
    let (reason, text) = match why {
        Stop::Limit => (LOST_LIMIT, "the size given by --max-size is reached".to_owned()),
        Stop::Error(error) => (LOST_SPACE, error.to_string()),
    };
    stop(reason, &text);
    if !options().is_some_and(|options| options.quiet && reason == LOST_LIMIT) {
        say(&format!("rank {rank} stops recording: {text}"));
    }
}

/// Appends an entry to the definitions, if there are any; what cannot be written ends the recording.
pub(crate) fn define(kind: Entry, payload: &Payload) {
    let _uncancelled = Uncancelled::new();
    if let Some(spool) = spool::get()
        && let Err(error) = spool.define(kind, payload)
    {
        lost(Stop::Error(error));
    }
}
