//! The fuzz target on its corpus and on mutations of it, the same in every run: a short look for panics in stable Rust.

#[path = "../../../fuzz/src/paraver.rs"]
#[allow(missing_docs, unreachable_pub, clippy::pedantic, reason = "what the fuzz target does, included")]
mod target;

use std::path::Path;

use proptest::prelude::*;
use proptest::test_runner::{Config, RngAlgorithm, TestRng, TestRunner};

/// Bytes that mean something to the reader.
const TELLING: &[u8] = b"0123456789:-\n#(),c";

fn corpus() -> Vec<Vec<u8>> {
    let directory = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../fuzz/corpus/paraver");
    let mut paths: Vec<_> = std::fs::read_dir(directory).unwrap().map(|entry| entry.unwrap().path()).collect();
    paths.sort();
    paths.iter().map(|path| std::fs::read(path).unwrap()).collect()
}

/// Changes, removes or repeats a few bytes.
fn mutated(files: &[Vec<u8>], (file, changes): &(usize, Vec<(u16, u8, u8)>)) -> Vec<u8> {
    let mut bytes = files[file % files.len()].clone();
    for (place, what, value) in changes {
        let at = usize::from(*place) * bytes.len() / (1 << 16);
        let end = (at + 1 + usize::from(*value) % 64).min(bytes.len());
        match what % 4 {
            0 => bytes[at] = TELLING[usize::from(*value) % TELLING.len()],
            1 => drop(bytes.drain(at..end)),
            2 => bytes.splice(at..at, bytes[at..end].to_vec()).for_each(drop),
            _ => bytes.insert(at, TELLING[usize::from(*value) % TELLING.len()]),
        }
        if bytes.is_empty() {
            bytes.push(b'#');
        }
    }
    bytes
}

#[test]
fn damaged_traces_end_in_a_recording_or_an_error() {
    let files = corpus();
    let directory = std::env::temp_dir().join(format!("whywait-paraver-{}", std::process::id()));
    for file in &files {
        target::paraver(file, &directory);
    }
    let config = Config { cases: 200, failure_persistence: None, ..Config::default() };
    let mut runner = TestRunner::new_with_rng(config, TestRng::deterministic_rng(RngAlgorithm::ChaCha));
    let changes = prop::collection::vec((any::<u16>(), any::<u8>(), any::<u8>()), 1..6);
    runner
        .run(&(0..files.len(), changes), |case| {
            target::paraver(&mutated(&files, &case), &directory);
            Ok(())
        })
        .unwrap();
}
