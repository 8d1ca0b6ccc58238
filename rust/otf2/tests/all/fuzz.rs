//! The fuzz targets on their corpus and on mutations of it, the same in every run: a short look for panics in stable
//! Rust. `cargo fuzz run events fuzz/corpus/events` looks longer.

#[path = "../../../../fuzz/src/lib.rs"]
#[allow(missing_docs, unreachable_pub, clippy::pedantic, reason = "the crate of the fuzz targets, included")]
mod targets;

use std::fs;
use std::panic;
use std::path::{Path, PathBuf};

use super::common::Files;
use whywait_otf2::wire::ByteOrder;

/// Mutated files of each kind.
const MUTATIONS: u64 = 20_000;

/// Numbers from a seed (`SplitMix64`), so that a failure can be found again.
struct Random(u64);

impl Random {
    fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9E37_79B9_7F4A_7C15);
        let mixed = (self.0 ^ (self.0 >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
        let mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
        mixed ^ (mixed >> 31)
    }

    fn below(&mut self, bound: usize) -> usize {
        (self.next() % bound.max(1) as u64) as usize
    }
}

fn corpus(target: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../fuzz/corpus").join(target)
}

/// Changes, removes, repeats, or inserts a few bytes, or appends the end of another file.
fn mutate(file: &mut Vec<u8>, files: &[Vec<u8>], random: &mut Random) {
    for _ in 0..=random.below(4) {
        let at = random.below(file.len());
        let end = (at + 1 + random.below(8)).min(file.len());
        match random.below(6) {
            _ if file.is_empty() => file.push(random.next() as u8),
            0 => file[at] = random.next() as u8,
            1 => file[at] ^= 1 << random.below(8),
            2 => file[at] = [0, 1, 0x7F, 0x80, 0xFE, 0xFF][random.below(6)],
            3 => drop(file.drain(at..end)),
            4 => file.splice(at..at, file[at..end].to_vec()).for_each(drop),
            _ => {
                let other = &files[random.below(files.len())];
                file.truncate(at);
                file.extend_from_slice(&other[random.below(other.len())..]);
            }
        }
    }
}

fn replay(target: &str, run: fn(&[u8])) {
    let mut paths: Vec<_> = fs::read_dir(corpus(target)).unwrap().map(|entry| entry.unwrap().path()).collect();
    paths.sort();
    let files: Vec<Vec<u8>> = paths.iter().map(|path| fs::read(path).unwrap()).collect();
    assert!(!files.is_empty());
    for (path, file) in paths.iter().zip(&files) {
        let done = panic::catch_unwind(|| run(file));
        assert!(done.is_ok(), "{}", path.display());
    }
    for seed in 0..MUTATIONS {
        let mut random = Random(seed);
        let mut file = files[random.below(files.len())].clone();
        mutate(&mut file, &files, &mut random);
        let done = panic::catch_unwind(|| run(&file));
        assert!(done.is_ok(), "mutation {seed} of {target}: {file:?}");
    }
}

#[test]
fn anchors() {
    replay("anchor", targets::anchor);
}

#[test]
fn definition_files() {
    replay("definitions", targets::definitions);
}

#[test]
fn event_files() {
    replay("events", targets::events);
}

/// Files with every record that there is, in both byte orders and two chunk sizes.
#[test]
#[ignore = "writes the corpus anew: cargo test -p whywait-otf2 --test fuzz -- --ignored"]
fn write_the_corpus() {
    for (order, byte_order) in [("big", ByteOrder::Big), ("little", ByteOrder::Little)] {
        for chunk in [63_u8, 255] {
            let size = 19 + 16 * u64::from(chunk);
            let Files { anchor, definitions, events, .. } = Files::new("corpus", byte_order, size, size);
            for (target, mut bytes) in [("anchor", anchor), ("definitions", definitions), ("events", events)] {
                if target != "anchor" {
                    bytes.insert(0, chunk);
                }
                fs::create_dir_all(corpus(target)).unwrap();
                fs::write(corpus(target).join(format!("{order}-{chunk}")), bytes).unwrap();
            }
        }
    }
}
