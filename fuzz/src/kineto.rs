//! Any bytes as traces of PyTorch's profiler: whatever they are, events are in order and regions end.

#[path = "check.rs"]
mod check;

use std::fs;
use std::path::{Path, PathBuf};

use check::check;
use whywait_kineto::scan::{Field, Fields, Sink, scan};
use whywait_kineto::{Options, open};

/// Counts events, and looks at all their fields.
#[derive(Default)]
struct Count(u64);

impl Sink for Count {
    fn event(&mut self, event: &Fields<'_>) {
        self.0 += 1;
        for field in [Field::Name, Field::Time, Field::Correlation, Field::Inputs] {
            std::hint::black_box((event.get(field), event.text(field)));
        }
    }

    fn metadata(&mut self, key: &[u8], value: &[u8]) {
        std::hint::black_box((key, value));
    }
}

/// Any bytes as a file.
pub fn kineto_scan(bytes: &[u8]) {
    let mut count = Count::default();
    let summary = scan(bytes, &mut count).expect("memory can be read");
    assert_eq!(summary.events, count.0);
    assert!(summary.truncated.is_none_or(|offset| offset <= bytes.len() as u64));
}

/// Any bytes as the files of two ranks: all of them, and all with the last eighth missing.
pub fn kineto_open(bytes: &[u8], directory: &Path) {
    let _ = fs::create_dir_all(directory);
    let files: Vec<PathBuf> = (0..2).map(|rank| directory.join(format!("rank{rank}.pt.trace.json"))).collect();
    for (file, length) in files.iter().zip([bytes.len(), bytes.len() - bytes.len() / 8]) {
        fs::write(file, &bytes[..length]).expect("a file can be written");
    }
    if let Ok(recording) = open(&files, &Options::default()) {
        check(&recording, false);
    }
    let _ = fs::remove_dir_all(directory);
}
