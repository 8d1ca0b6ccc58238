//! The fuzz targets on their corpus and on mutations of it, the same in every run: a short look for panics in stable Rust.

#[path = "../../../../fuzz/src/kineto.rs"]
#[allow(missing_docs, unreachable_pub, clippy::pedantic, reason = "what the fuzz targets do, included")]
mod targets;

use std::path::Path;

use proptest::test_runner::{Config, RngAlgorithm, TestRng, TestRunner};

/// Bytes that mean something to the reader.
const TELLING: &[u8] = b"{}[]\",:\\0-.eN";

fn corpus() -> Vec<Vec<u8>> {
    let directory = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../fuzz/corpus/kineto_open");
    let mut paths: Vec<_> = std::fs::read_dir(directory).unwrap().map(|entry| entry.unwrap().path()).collect();
    paths.sort();
    paths.iter().map(|path| std::fs::read(path).unwrap()).collect()
}

/// Changes, removes or repeats a few bytes.
fn mutated(files: &[Vec<u8>], (file, changes): &(usize, Vec<(u16, u8, u8)>)) -> Vec<u8> {
    let mut bytes = files[file % files.len()].clone();
    for (place, what, value) in changes {
        let at = usize::from(*place) * bytes.len() / (1 << 16);
        let end = (at + 1 + usize::from(*value) % 16).min(bytes.len());
        match what % 5 {
            0 => bytes[at] = *value,
            1 => bytes[at] = TELLING[usize::from(*value) % TELLING.len()],
            2 => drop(bytes.drain(at..end)),
            3 => bytes.splice(at..at, bytes[at..end].to_vec()).for_each(drop),
            _ => bytes.insert(at, TELLING[usize::from(*value) % TELLING.len()]),
        }
        if bytes.is_empty() {
            bytes.push(b'[');
        }
    }
    bytes
}

fn explore(cases: u32, target: impl Fn(&[u8])) {
    use proptest::prelude::*;
    let files = corpus();
    assert!(!files.is_empty());
    for file in &files {
        target(file);
    }
    let config = Config { cases, failure_persistence: None, ..Config::default() };
    let mut runner = TestRunner::new_with_rng(config, TestRng::deterministic_rng(RngAlgorithm::ChaCha));
    let changes = prop::collection::vec((any::<u16>(), any::<u8>(), any::<u8>()), 1..5);
    runner
        .run(&(any::<usize>(), changes), |change| {
            target(&mutated(&files, &change));
            Ok(())
        })
        .unwrap();
}

#[test]
fn any_file_is_scanned() {
    explore(3000, targets::kineto_scan);
}

#[test]
fn any_files_are_opened() {
    let directory = std::env::temp_dir().join(format!("whywait-kineto-fuzz-{}", std::process::id()));
    explore(500, |bytes| targets::kineto_open(bytes, &directory));
}
