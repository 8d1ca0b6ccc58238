//! The fuzz targets on their corpus and on mutations of it, the same in every run: a short look for panics in stable Rust.

#[path = "../../../fuzz/src/nsight.rs"]
#[allow(missing_docs, unreachable_pub, clippy::pedantic, reason = "what the fuzz targets do, included")]
mod targets;

use std::path::{Path, PathBuf};

use proptest::prelude::*;
use proptest::test_runner::{Config, RngAlgorithm, TestRng, TestRunner};

fn corpus(name: &str) -> Vec<Vec<u8>> {
    let directory = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../fuzz/corpus").join(name);
    let mut paths: Vec<_> = std::fs::read_dir(directory).unwrap().map(|entry| entry.unwrap().path()).collect();
    paths.sort();
    paths.iter().map(|path| std::fs::read(path).unwrap()).collect()
}

/// A change of a few bytes: most of a file are values, so some changes hit the first bytes of a page, which have its structure.
type Change = (u16, u8, u8);

fn mutated(files: &[Vec<u8>], (file, changes): &(usize, Vec<Change>)) -> Vec<u8> {
    let mut bytes = files[file % files.len()].clone();
    for (place, what, value) in changes {
        let any = usize::from(*place) * bytes.len() / (1 << 16);
        let in_page = (any & !511) + usize::from(*value) % 24;
        let at = if what % 2 == 0 { any } else { in_page.min(bytes.len() - 1) };
        match what / 2 % 4 {
            0 => bytes[at] = *value,
            1 => bytes[at] ^= 1 << (value % 8),
            2 => {
                let from = usize::from(*value) * 512 % bytes.len();
                let page = bytes[from..(from + 512).min(bytes.len())].to_vec();
                let to = at & !511;
                let length = page.len().min(bytes.len() - to);
                bytes[to..to + length].copy_from_slice(&page[..length]);
            }
            _ => bytes.truncate(at.max(100)),
        }
    }
    bytes
}

fn explore(name: &str, cases: u32, target: impl Fn(&[u8], &Path)) {
    let files = corpus(name);
    let directory: PathBuf = std::env::temp_dir().join(format!("whywait-nsight-{name}-{}", std::process::id()));
    for file in &files {
        target(file, &directory);
    }
    let config = Config { cases, failure_persistence: None, ..Config::default() };
    let mut runner = TestRunner::new_with_rng(config, TestRng::deterministic_rng(RngAlgorithm::ChaCha));
    let changes = prop::collection::vec((any::<u16>(), any::<u8>(), any::<u8>()), 1..5);
    runner
        .run(&(0..files.len(), changes), |case| {
            target(&mutated(&files, &case), &directory);
            Ok(())
        })
        .unwrap();
}

#[test]
fn any_database_is_scanned() {
    explore("sqlite", 400, targets::sqlite);
}

#[test]
fn any_reports_are_opened() {
    explore("nsight", 150, targets::nsight);
}
