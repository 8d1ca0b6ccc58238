//! Broken archives: files cut and bytes inverted everywhere. The analysis gives an error or a partial result; it never
//! panics, whatever the records claim. (The tests of the reader break every single byte.)

use std::fs;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use whywait_core::analysis::{Analysis, Monitor, Options, analyze};
use whywait_core::export::perfetto;
use whywait_core::export::selection::Selection;
use whywait_core::export::timeline::{self, Request};
use whywait_core::trace::decode::Progress;
use whywait_otf2::Archive;

/// Bytes from one break to the next: a prime, so that all fields of records get their turn. `./test all` has a smaller one.
fn step() -> usize {
    std::env::var("WHYWAIT_BREAK_STEP").map_or(31, |step| step.parse().unwrap())
}

fn data() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../tests/data")
}

/// Makes the pictures over time: what an analysis can be made of, these can, too.
fn draw(result: &Analysis) {
    let class_of = vec![0; result.trace.tree.len()];
    let request =
        Request { class_of, classes: 1, management: 0, waiting: Vec::new(), cells: 64, calls: 1000, most: 10 };
    let drawn = timeline::build(result, &request, &Progress::default()).unwrap();
    assert!(drawn.calls.rows.iter().all(|call| call.enter <= call.leave));
    let selection = Selection { processes: None, window: (i64::MIN, i64::MAX), shortest: 0 };
    let label = |metric: whywait_core::severity::Metric| metric.name().to_owned();
    let written = perfetto::write(result, &label, None, &selection, Some(std::io::sink()), &Progress::default());
    assert_eq!(written.unwrap().calls, drawn.calls.total);
}

/// A private copy of an archive that ships with the project.
struct Copy {
    directory: PathBuf,
    files: Vec<PathBuf>,
}

impl Copy {
    fn of(name: &str) -> Self {
        let directory = std::env::temp_dir().join(format!("whywait-broken-{name}-{}", std::process::id()));
        let mut files = Vec::new();
        fs::create_dir_all(directory.join("traces")).unwrap();
        for part in ["", "traces"] {
            for entry in fs::read_dir(data().join(name).join(part)).unwrap() {
                let entry = entry.unwrap();
                if entry.file_type().unwrap().is_file() && entry.file_name() != "expected.json" {
                    let file = directory.join(part).join(entry.file_name());
                    fs::copy(entry.path(), &file).unwrap();
                    files.push(file);
                }
            }
        }
        files.sort();
        Self { directory, files }
    }

    /// Analyses the archive with `file` holding `bytes`; `Err` if not even its definitions can be read.
    fn analyze(&self, file: &Path, bytes: &[u8]) -> Result<(), String> {
        fs::write(file, bytes).unwrap();
        let archive = Archive::open(&self.directory).map_err(|error| error.to_string())?;
        let result = analyze(Arc::new(archive), &Options::default(), None, &Monitor::default())
            .map_err(|error| error.to_string())?;
        for wait in &result.waits {
            let shard = result.trace.shard(wait.location);
            let duration = shard.leave(wait.instance) - shard.enter(wait.instance);
            assert!(0 <= wait.waiting && wait.waiting <= duration, "{}: {wait:?} lasts {duration}", file.display());
        }
        draw(&result);
        Ok(())
    }

    /// Breaks every file in every way that `broken` makes of its content and a position in it.
    fn break_everywhere(&self, broken: impl Fn(&[u8], usize) -> Vec<u8>) {
        for file in &self.files {
            let good = fs::read(file).unwrap();
            for position in (0..good.len()).step_by(step()) {
                // An error is as good as a result: what counts is to come back.
                let _ = self.analyze(file, &broken(&good, position));
            }
            self.analyze(file, &good).unwrap();
        }
    }
}

impl Drop for Copy {
    fn drop(&mut self) {
        let _ = fs::remove_dir_all(&self.directory);
    }
}

fn cut(bytes: &[u8], position: usize) -> Vec<u8> {
    bytes[..position].to_vec()
}

fn invert(bytes: &[u8], position: usize) -> Vec<u8> {
    let mut bytes = bytes.to_vec();
    bytes[position] ^= 0xFF;
    bytes
}

fn survives(name: &str) {
    let copy = Copy::of(name);
    for broken in [cut, invert] {
        copy.break_everywhere(broken);
    }
}

#[test]
fn messages() {
    survives("p2p");
}

#[test]
fn collectives() {
    survives("collectives");
}

#[test]
fn active_target() {
    survives("rma_gats_rdma");
}

#[test]
fn passive_target() {
    survives("rma_lock_sm");
}
