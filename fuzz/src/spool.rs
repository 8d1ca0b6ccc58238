//! What the fuzz target `spool` does with any bytes. `rust/recording/tests/fuzz.rs` includes this file as well.

use std::fs;
use std::path::Path;

use whywait_recording::format::{
    DEFINITIONS_MAGIC, DIRECTORY, EXTENSION, Extension, PAGE, SAMPLES_MAGIC, SLOT, SLOTS_MAGIC, VERSION,
};
use whywait_recording::{Options, Progress, finish};

/// Any bytes as the files of a process in a directory: the number of entries, for each its kind, its length, and so many
/// bytes, and then slots, which are calls and samples. The
/// checksums are right, so that the fields are read.
pub fn spool(bytes: &[u8], directory: &Path) {
    let _ = fs::remove_dir_all(directory);
    let spool = directory.join(DIRECTORY);
    fs::create_dir_all(&spool).expect("a directory for the test");
    let mut definitions = header(DEFINITIONS_MAGIC);
    definitions.truncate(32);
    let (count, mut rest) = bytes.split_first().unwrap_or((&0, &[]));
    for _ in 0..*count {
        let [kind, length, after @ ..] = rest else { break };
        let (payload, after) = after.split_at(usize::from(*length).min(after.len()));
        rest = after;
        let kind = u32::from(*kind);
        let mut hash = crc32fast::Hasher::new();
        hash.update(&kind.to_le_bytes());
        hash.update(payload);
        for word in [payload.len() as u32, hash.finalize(), kind] {
            definitions.extend(word.to_le_bytes());
        }
        definitions.extend(payload);
    }
    let mut slots = header(SLOTS_MAGIC);
    slots.extend(rest);
    let mut samples = header(SAMPLES_MAGIC);
    samples.extend(rest);
    fs::write(spool.join("0.0.wwp"), samples).expect("a file for the test");
    fs::write(spool.join("0.wwd"), definitions).expect("a file for the test");
    fs::write(spool.join("0.0.wws"), slots).expect("a file for the test");
    if let Ok(summary) = finish(directory, &Options::default(), &Progress::default()) {
        assert!(summary.calls <= rest.chunks_exact(SLOT).fold(0, |sum: u64, slot| sum.saturating_add(calls(slot))));
    }
    let _ = fs::remove_dir_all(directory);
}

/// How many calls a slot stands for at most.
fn calls(slot: &[u8]) -> u64 {
    let words: Vec<u64> =
        slot.chunks_exact(8).map(|word| u64::from_le_bytes(word.try_into().expect("a word"))).collect();
    if words[0] & EXTENSION == 0 {
        1
    } else if words[0] as u8 == Extension::Polls as u8 {
        words[2]
    } else {
        0
    }
}

fn header(magic: [u8; 4]) -> Vec<u8> {
    let mut header = magic.to_vec();
    header.extend(VERSION.to_le_bytes());
    header.resize(PAGE, 0);
    header
}
