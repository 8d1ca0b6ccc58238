//! The memory of a process stays below its limit, and nothing that it keeps is lost.
#![cfg(target_os = "linux")]

use std::path::{Path, PathBuf};
use std::thread;
use std::time::{Duration, Instant};

use whywait_spill::{Allocator, Error, Limit};

#[global_allocator]
static ALLOCATOR: Allocator = Allocator;

const MIB: u64 = 1 << 20;
const LIMIT: u64 = 128 * MIB;
/// A watch that has not had its turn for so long does not run.
const PATIENCE: Duration = Duration::from_secs(120);

fn directory() -> PathBuf {
    PathBuf::from(env!("CARGO_TARGET_TMPDIR"))
}

fn set(directory: &Path) -> Result<(), Error> {
    whywait_spill::limit(Some(Limit { bytes: LIMIT, directory: directory.to_owned() }))
}

/// Blocks that two threads fill one by one, four times as many as the limit has room for. Whoever takes a block looks
/// after the limit first, so the limit does not depend on when the watch has its turn.
fn many_blocks() {
    let each = 4 * LIMIT / MIB / 2;
    let fill = move |seed: u64| (0..each).map(|i| vec![i * seed; (MIB / 8) as usize]).collect::<Vec<_>>();
    let threads = [3, 5].map(|seed| (seed, thread::spawn(move || fill(seed))));
    let kept = threads.map(|(seed, thread)| (seed, thread.join().expect("no panic")));
    let peak = whywait_spill::peak().expect("Linux says");
    assert!(peak > LIMIT / 4 && peak < LIMIT, "{} MiB", peak / MIB);
    for (seed, blocks) in kept {
        assert!((0..each).zip(&blocks).all(|(i, block)| block.iter().all(|&value| value == i * seed)));
    }
}

/// Numbers that two threads write and grow and read, four times as many as the limit has room for.
fn much_more_than_the_limit() {
    let each = (4 * LIMIT / 8 / 2) as usize;
    let work = move |seed: u64| {
        let mut grown = Vec::new();
        for i in 0..each as u64 {
            grown.push(i * seed);
        }
        let mut zeros = vec![0_u64; each / 8];
        assert!(zeros.iter().all(|&zero| zero == 0));
        zeros.iter_mut().zip(&grown).for_each(|(to, from)| *to = *from);
        assert_eq!(zeros[..], grown[..zeros.len()]);
        drop(zeros);
        // What others gave back reads as zeros again.
        assert!(vec![0_u64; each / 8].iter().all(|&zero| zero == 0));
        for pass in 0..2 {
            assert!(grown.iter().enumerate().all(|(i, &value)| value == i as u64 * seed), "pass {pass}");
        }
        grown.truncate(each / 2);
        grown.shrink_to_fit();
        assert!(grown.iter().enumerate().all(|(i, &value)| value == i as u64 * seed));
        grown
    };
    let threads = [3, 5].map(|seed| thread::spawn(move || work(seed)));
    let kept = threads.map(|thread| thread.join().expect("no panic"));
    assert_eq!(kept[0].len(), each / 2);
    // Nobody takes a block now: the watch alone brings memory back below the limit.
    let begin = Instant::now();
    while whywait_spill::resident().expect("Linux says") >= LIMIT {
        assert!(begin.elapsed() < PATIENCE, "nobody watches");
        thread::sleep(Duration::from_millis(1));
    }
    let elsewhere = set(&directory().join(".."));
    assert!(matches!(elsewhere, Err(Error::InUse(_))), "{elsewhere:?}");
}

/// A disk with less room than is needed, by the limit of the size of a file.
fn a_full_disk() {
    let mut old = libc::rlimit { rlim_cur: 0, rlim_max: 0 };
    // SAFETY: plain calls of the system, with a structure of its own.
    unsafe {
        libc::signal(libc::SIGXFSZ, libc::SIG_IGN);
        assert_eq!(libc::getrlimit(libc::RLIMIT_FSIZE, &raw mut old), 0);
        let small = libc::rlimit { rlim_cur: 8 * MIB, rlim_max: old.rlim_max };
        assert_eq!(libc::setrlimit(libc::RLIMIT_FSIZE, &raw const small), 0);
    }
    // The file so far is longer than that.
    set(&directory()).expect("a new file");
    let blocks: Vec<Vec<u64>> = (0..32).map(|i| vec![i; (MIB / 8) as usize]).collect();
    let (place, failure) = whywait_spill::failure().expect("there was no room");
    assert_eq!(place, directory());
    assert_eq!(failure.raw_os_error(), Some(libc::EFBIG), "{failure}");
    assert!(blocks.iter().enumerate().all(|(i, block)| block.iter().all(|&value| value == i as u64)));
    // SAFETY: as above.
    unsafe { assert_eq!(libc::setrlimit(libc::RLIMIT_FSIZE, &raw const old), 0) };
}

/// One test, because all threads of a process share its memory.
#[test]
fn the_limit_holds() {
    assert!(matches!(set(Path::new("/dev/shm")), Err(Error::InMemory(_) | Error::Directory { .. })));
    let missing = set(&directory().join("missing"));
    assert!(matches!(missing, Err(Error::Directory { .. })), "{missing:?}");

    set(&directory()).expect("a directory on a disk");
    many_blocks();
    much_more_than_the_limit();
    assert!(whywait_spill::failure().is_none());
    assert_eq!(std::fs::read_dir(directory()).expect("readable").count(), 0, "the file has no name");

    a_full_disk();
    set(&directory()).expect("the same again");
    assert!(whywait_spill::failure().is_none(), "what failed before is over");

    // A block given out before the limit ends can be given back and grow after it.
    let mut kept = vec![1_u8; MIB as usize];
    whywait_spill::limit(None).expect("no limit");
    kept.resize(3 * MIB as usize, 1);
    assert!(kept.iter().all(|&one| one == 1));
}
