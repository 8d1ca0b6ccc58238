//! Beginning and end of the recording in a process.

use crate::clock::{self, Reading, now};
use crate::fault::{self, Uncancelled, say};
use crate::format::{
    CLAIM, DIRECTORY, END_ABORTED, END_EXITED, END_FINALIZED, ENVIRONMENT_ACTIVE, ENVIRONMENT_ARCHIVE,
    ENVIRONMENT_OPTIONS, Entry, NAME_PROGRAM, PRESENT,
};
use crate::frame::{Frame, Returned};
use crate::modes::{MODES, PASS};
use crate::options::{Options, Window};
use crate::real::{self, own};
use crate::spool::{self, Payload, Spool};
use crate::state::{self, LOADED, Loaded, RECORDING, SAMPLES, options, set_modes, stop, switch};
use crate::table::{Class, Function, Group, number};
use crate::thread::{self, Thread};
use crate::{abi, callers, comms, counters, heap, helper, library, runs, sampler, sync, system, title, unwind};
use std::ffi::{CStr, CString, OsStr, c_char};
use std::fs::{self, File, OpenOptions};
use std::io::{self, Write};
use std::os::unix::ffi::{OsStrExt, OsStringExt};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering};
use std::{env, ptr};

/// The process was started by one that is recorded.
static INNER: AtomicBool = AtomicBool::new(false);
/// MPI_Init was called.
static BEGUN: AtomicBool = AtomicBool::new(false);
static ENDED: AtomicBool = AtomicBool::new(false);
/// MPI was begun by a session.
static SESSION: AtomicBool = AtomicBool::new(false);
/// OpenSHMEM was begun by `start_pes`: the process may just exit.
static PLAIN_EXIT: AtomicBool = AtomicBool::new(false);
/// In the environment of the process, changed in place once it records: to set a variable then could disturb another thread.
static ACTIVE: AtomicUsize = AtomicUsize::new(0);

/// Runs when the library is loaded, which may be in any program: that of the user, its launcher, a shell.
#[used]
#[unsafe(link_section = ".init_array")]
static LOAD: extern "C" fn() = loaded;

/// Runs when the process exits.
#[used]
#[unsafe(link_section = ".fini_array")]
static UNLOAD: extern "C" fn() = exits;

extern "C" fn loaded() {
    fault::caught(|| {
        real::prepare();
        callers::prepare();
        thread::prepare();
        let Some(archive) = env::var_os(ENVIRONMENT_ARCHIVE).filter(|path| !path.is_empty()) else { return };
        if env::var_os(ENVIRONMENT_ACTIVE).is_some_and(|value| value == "1") {
            INNER.store(true, Ordering::Relaxed);
            return;
        }
        if system::is_loaded(&["libmpi", "liboshmem"]) {
            // There may be no such directory here, and it matters only if nothing is recorded.
            let _ = File::create(Path::new(&archive).join(DIRECTORY).join(PRESENT));
        }
        let options = Options::parse(&env::var(ENVIRONMENT_OPTIONS).unwrap_or_default());
        clock::choose();
        let (reading, time) = (clock::reading(), now());
        if options.sample != 0 {
            sampler::prepare();
        }
        let _ = LOADED.set(Loaded { archive: archive.into(), options, reading, time });
        if let Ok(text) = CString::new(format!("{ENVIRONMENT_ACTIVE}=0")) {
            let text = text.into_raw();
            // SAFETY: the string is never freed. No other thread runs yet.
            unsafe { libc::putenv(text) };
            ACTIVE.store(text as usize + ENVIRONMENT_ACTIVE.len() + 1, Ordering::Relaxed);
        }
    });
}

/// MPI_Init, MPI_Init_thread, the first MPI_Session_init, or their likes in OpenSHMEM.
///
/// Once it is recorded, `first` records the call itself, which was entered at a time.
pub(crate) fn begin(
    symbol: usize,
    function: &'static Function,
    frame: Frame,
    first: impl FnOnce(&mut Thread, u64),
) -> Returned {
    if INNER.swap(false, Ordering::Relaxed) {
        say(&format!("{} runs unrecorded: a recorded program started it", title::executable()));
    }
    if LOADED.get().is_none() || BEGUN.swap(true, Ordering::AcqRel) {
        return real::call(symbol, frame);
    }
    let enter = now();
    let returned = real::call(symbol, frame);
    if function.code(&returned) != 0 {
        BEGUN.store(false, Ordering::Release);
        return returned;
    }
    fault::caught(|| {
        prepare_panics();
        PLAIN_EXIT.store(symbol >> 2 == number::START_PES, Ordering::Relaxed);
        let session = (function.class == Class::SessionInit).then(|| {
            SESSION.store(true, Ordering::Relaxed);
            abi::get().load(frame.argument(2), 0)
        });
        let mut starts = false;
        let uncancelled = Uncancelled::new();
        thread::apart(|| starts = start(session));
        drop(uncancelled);
        if starts {
            let mut active = thread::enter_apart();
            if let Some(thread) = active.as_mut() {
                first(thread, enter);
                if let Some(options) = options().filter(|options| options.sample != 0) {
                    sampler::begin(options.sample, options.helper);
                    SAMPLES.store(sampler::is_on(), Ordering::Relaxed);
                    set_modes();
                }
            }
            if function.class == Class::ShmemInit {
                // Before what OpenSHMEM has registered: it calls MPI to finalize itself.
                // SAFETY: a function of this library, which is never unloaded while the process runs.
                unsafe { libc::atexit(stops) };
            }
        }
    });
    returned
}

/// Rank and size of the world, and its group.
fn world(session: Option<usize>) -> Option<(i32, i32, usize)> {
    let (mut rank, mut size, mut group) = (-1_i32, 0_i32, 0_usize);
    let code = match session {
        None => own!(COMM_GROUP, abi::get().comm_world, &raw mut group),
        Some(session) => own!(GROUP_FROM_SESSION_PSET, session, c"mpi://WORLD".as_ptr(), &raw mut group),
    };
    if code != 0 {
        return None;
    }
    own!(GROUP_RANK, group, &raw mut rank);
    own!(GROUP_SIZE, group, &raw mut size);
    (rank >= 0 && size > 0).then_some((rank, size, group))
}

/// What rank 0 tells the others: whether to record, whether there are several nodes, the run's id and the path of the archive.
const MESSAGE: usize = 20 + 4096;

/// Begins the recording.
fn start(session: Option<usize>) -> bool {
    let (Some(loaded), Some(library)) = (LOADED.get(), real::library()) else { return false };
    let program = title::executable();
    if !abi::known(library) {
        say(&format!("{program} runs unrecorded: unknown MPI {}", library.path.display()));
        return false;
    }
    let Some((rank, size, group)) = world(session) else {
        say(&format!("{program} runs unrecorded: it has no rank"));
        return false;
    };
    // From here on all ranks do the same until the end, whatever becomes of this one: others wait for its part.
    let obstacle = obstacle(library);
    let mut message = [0_u8; MESSAGE];
    match &obstacle {
        Some(why) if rank == 0 => say(&format!("{program} runs unrecorded: {why}")),
        _ if rank == 0 || session.is_some() => offer(&mut message, loaded, rank, size, session.is_some()),
        _ => {}
    }
    if session.is_none()
        && own!(BCAST, message.as_mut_ptr(), MESSAGE, abi::get().byte, 0_usize, abi::get().comm_world) != 0
    {
        return false;
    }
    if message[0] == 0 {
        return false;
    }
    let mut run = [0; 16];
    run.copy_from_slice(&message[4..20]);
    let path = message[20..].split(|byte| *byte == 0).next().unwrap_or_default();
    let spool = Path::new(OsStr::from_bytes(path)).join(DIRECTORY);
    sync::plan(message[1] != 0 && session.is_none(), rank, size);
    let opened = match obstacle {
        Some(why) => Err(why),
        None => open(loaded, library, &spool, run, rank, size).map_err(|error| format!("{}: {error}", spool.display())),
    };
    match &opened {
        Ok(()) => record(loaded, group, rank, size),
        Err(why) => say(&format!("rank {rank} runs unrecorded: {why}")),
    }
    set_modes();
    sync::measure();
    opened.is_ok()
}

/// Records from now on.
fn record(loaded: &Loaded, group: usize, rank: i32, size: i32) {
    comms::begin(group, rank, size);
    counters::begin(&loaded.options.counters, !SESSION.load(Ordering::Relaxed));
    callers::begin();
    if loaded.options.callpaths {
        unwind::begin(loaded.options.python);
    }
    if !loaded.options.helper {
        helper::disable();
    } else if [Group::Threads, Group::Posix].iter().any(|group| loaded.options.groups.contains(group)) {
        // Later, an allocator may ask, and the C library allocates for a new thread.
        helper::begin();
    }
    // SAFETY: registers a function of this library, which is never unloaded while the process runs.
    unsafe { libc::pthread_atfork(Some(forks), Some(has_forked), Some(forked)) };
    let active = ACTIVE.load(Ordering::Relaxed);
    if active != 0 {
        // SAFETY: the byte after the equal sign of the variable.
        unsafe { ptr::with_exposed_provenance_mut::<c_char>(active).write(b'1' as c_char) };
    }
    RECORDING.store(true, Ordering::Release);
    open_window(loaded.options.window);
}

/// What speaks against recording.
fn obstacle(library: &library::Library) -> Option<String> {
    if let Some(other) = &library.rival {
        // Calls of the one could not be told from calls of the other.
        return Some(format!("two MPIs, {} and {}", library.path.display(), other.display()));
    }
    library::other_recorder().map(|other| format!("{other} records it already"))
}

/// Fills in the message: rank 0 claims an archive for this world, since the command may start several.
fn offer(message: &mut [u8; MESSAGE], loaded: &Loaded, rank: i32, size: i32, session: bool) {
    let mut run = [0_u8; 16];
    let mut archive = loaded.archive.clone();
    if session {
        // Nothing can be sent: only some may have a session. The same on all ranks, then.
        run[..8].copy_from_slice(&fingerprint(archive.as_os_str().as_bytes()).to_le_bytes());
    } else {
        // SAFETY: pointer and length are those of the array.
        unsafe { libc::getrandom(run.as_mut_ptr().cast(), run.len(), 0) };
    }
    if rank == 0 {
        match claim(&archive, run) {
            Ok(path) => archive = path,
            Err(error) => {
                say(&format!("{} runs unrecorded: {}: {error}", title::executable(), archive.display()));
                return;
            }
        }
    }
    let path = archive.into_os_string().into_vec();
    if path.len() < MESSAGE - 20 {
        message[0] = 1;
        message[1] = u8::from(sync::several_nodes(size));
        message[4..20].copy_from_slice(&run);
        message[20..20 + path.len()].copy_from_slice(&path);
    }
}

/// FNV-1a.
fn fingerprint(bytes: &[u8]) -> u64 {
    bytes.iter().fold(0xcbf2_9ce4_8422_2325, |hash, byte| (hash ^ u64::from(*byte)).wrapping_mul(0x0100_0000_01b3))
}

/// Claims the archive, or the first of `PATH-2`, `PATH-3`, ... that no other world has.
fn claim(archive: &Path, run: [u8; 16]) -> io::Result<PathBuf> {
    for number in 1..=9999 {
        let mut path = archive.as_os_str().to_owned();
        if number > 1 {
            path.push(format!("-{number}"));
        }
        let spool = Path::new(&path).join(DIRECTORY);
        fs::create_dir_all(&spool)?;
        match OpenOptions::new().write(true).create_new(true).open(spool.join(CLAIM)) {
            Ok(mut file) => return file.write_all(&run).map(|()| path.into()),
            Err(error) if error.kind() == io::ErrorKind::AlreadyExists => {}
            Err(error) => return Err(error),
        }
    }
    Err(io::ErrorKind::AlreadyExists.into())
}

fn open(
    loaded: &Loaded,
    library: &library::Library,
    directory: &Path,
    run: [u8; 16],
    rank: i32,
    size: i32,
) -> io::Result<()> {
    let home = match env::var_os(crate::format::ENVIRONMENT_SPOOL).filter(|path| !path.is_empty()) {
        Some(local) => Path::new(&local).join(format!("{:032x}", u128::from_be_bytes(run))),
        None => directory.to_owned(),
    };
    fs::create_dir_all(&home)?;
    let spool = Spool::create(home, directory.to_owned(), run, rank as u32, size as u32, loaded.options.max_size)?;
    let reading = clock::reading();
    let frequency = clock::frequency(loaded.reading, reading);
    if !loaded.options.keep_tests {
        runs::begin(frequency);
    }
    let mut version = [0_u8; 8192];
    let mut length = 0_i32;
    own!(GET_LIBRARY_VERSION, version.as_mut_ptr(), &raw mut length);
    let version = &version[..(length.max(0) as usize).min(version.len())];
    let trim = version.iter().rposition(|byte| !byte.is_ascii_whitespace() && *byte != 0).map_or(0, |end| end + 1);
    let payload = Payload::default()
        .i32(rank)
        .i32(size)
        .u32(std::process::id())
        .u32(clock::kind())
        .u64(frequency)
        .u64(loaded.time)
        .raw(&clock::boot_id())
        .u64(clock::time_namespace())
        .text(abi::get().name)
        .text(library.path.as_os_str().as_bytes())
        .text(&version[..trim])
        .text(host())
        .text(env::current_exe().unwrap_or_default().as_os_str().as_bytes())
        .text(env!("CARGO_PKG_VERSION"))
        .text(&loaded.options.text);
    spool.define(Entry::Start, &payload)?;
    if let Some(title) = title::of_python() {
        spool.define(Entry::Name, &Payload::default().u32(NAME_PROGRAM).u32(0).text(&title))?;
    }
    define_reading(loaded.reading);
    define_reading(reading);
    define_cores();
    Ok(())
}

/// Tells which cores the process may use.
fn define_cores() {
    let mut set = [0_u64; 128];
    // SAFETY: the system call writes at most as many bytes as it is told, and returns how many.
    let length = unsafe { libc::syscall(libc::SYS_sched_getaffinity, 0, size_of_val(&set), set.as_mut_ptr()) };
    // SAFETY: it has no pointers.
    let online = unsafe { libc::sysconf(libc::_SC_NPROCESSORS_ONLN) };
    if length > 0 {
        let cores: Vec<u32> = (0..64 * 128).filter(|core| set[*core as usize / 64] >> (core % 64) & 1 == 1).collect();
        let payload = Payload::default().u32(u32::try_from(online).unwrap_or(0)).u32(cores.len() as u32);
        state::define(Entry::Cores, &cores.into_iter().fold(payload, Payload::u32));
    }
}

fn define_reading(reading: Reading) {
    state::define(Entry::Clock, &Payload::default().u64(reading.ticks).u64(reading.monotonic).u64(reading.realtime));
}

fn host() -> Vec<u8> {
    let mut name = [0_u8; 256];
    // SAFETY: pointer and length are those of the array; the last byte stays 0.
    unsafe { libc::gethostname(name.as_mut_ptr().cast(), name.len() - 1) };
    CStr::from_bytes_until_nul(&name).map_or_else(|_| Vec::new(), |name| name.to_bytes().to_vec())
}

/// Waits for the part of the run that is to be recorded.
fn open_window(window: Window) {
    match window {
        Window::Time(from, to) => {
            if from > 0.0 {
                switch(false);
            }
            let goes_on = |seconds: f64| {
                helper::sleep(std::time::Duration::try_from_secs_f64(seconds).unwrap_or(std::time::Duration::MAX))
            };
            helper::start(move || {
                if goes_on(from) {
                    switch(true);
                    if goes_on(to - from) {
                        switch(false);
                    }
                }
            });
        }
        Window::Calls(..) => switch(false),
        Window::Whole => {}
    }
}

/// MPI_Pcontrol was called.
pub(crate) fn control(level: i32) {
    static CALLS: AtomicU64 = AtomicU64::new(0);
    let call = CALLS.fetch_add(1, Ordering::Relaxed) + 1;
    match options().map(|options| options.window) {
        Some(Window::Calls(from, to)) => switch((from..to).contains(&call)),
        Some(Window::Time(..)) => {}
        _ => switch(level != 0),
    }
}

/// Before MPI_Finalize or `shmem_finalize`, whether it is recorded or not: other processes may wait for this one.
pub(crate) fn finalizing() {
    counters::finalizing();
    if !SESSION.load(Ordering::Relaxed) {
        sync::end();
        comms::end();
    }
}

/// It returned, or the process calls MPI_Abort.
pub(crate) fn ended(reason: u32) {
    if ENDED.swap(true, Ordering::AcqRel) {
        return;
    }
    sampler::stop();
    for (what, note) in state::NOTES.iter().enumerate() {
        let count = note.load(Ordering::Relaxed);
        if count > 0 {
            state::define(Entry::Note, &Payload::default().u32(what as u32).u64(count));
        }
    }
    define_reading(clock::reading());
    state::define(Entry::End, &Payload::default().u64(now()).u32(reason));
}

/// MPI_Abort is called.
pub(crate) fn aborting() {
    ended(END_ABORTED);
}

/// MPI_Finalize returned.
pub(crate) fn finalized() {
    ended(END_FINALIZED);
    RECORDING.store(false, Ordering::Release);
    set_modes();
    if let Some((spool, options)) = spool::get().zip(options())
        && options.announce
        && !options.quiet
        && spool.rank == 0
    {
        let archive = spool.home.parent().unwrap_or(&spool.home).display();
        say(&format!("recorded {} ranks: whywait analyze {archive}", spool.size));
    }
}

/// The process exits: what libraries call from now on is no part of the program.
extern "C" fn stops() {
    fault::caught(|| {
        if RECORDING.load(Ordering::Acquire) {
            thread::apart(|| {
                let is_fine = SESSION.load(Ordering::Relaxed) || PLAIN_EXIT.load(Ordering::Relaxed);
                ended(if is_fine { END_FINALIZED } else { END_EXITED });
                RECORDING.store(false, Ordering::Release);
                set_modes();
            });
        }
    });
}

extern "C" fn exits() {
    stops();
    fault::caught(|| {
        if spool::get().is_some_and(|spool| spool.pid == std::process::id()) {
            spool::move_home();
        }
    });
}

extern "C" fn forks() {
    sampler::forks();
}

extern "C" fn has_forked() {
    sampler::has_forked();
}

/// A child of the process is not recorded: the files are the parent's.
extern "C" fn forked() {
    heap::forked();
    sampler::forked();
    RECORDING.store(false, Ordering::Release);
    for mode in &MODES {
        mode.store(PASS, Ordering::Relaxed);
    }
}

/// Panics of the recorder's code are told in one line.
fn prepare_panics() {
    std::panic::set_hook(Box::new(|info| {
        stop(crate::format::LOST_BUG, "a fault of the recorder");
        let place = info.location().map_or_else(String::new, |place| format!(" at {place}"));
        say(&format!("recording stops: a fault of the recorder{place}; please report it"));
    }));
}
