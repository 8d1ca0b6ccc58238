//! Any bytes as a trace of Paraver: whatever they are, events are in order and regions are nested.

#[path = "check.rs"]
mod check;

use std::fs;
use std::path::Path;

use check::check;
use whywait_paraver::{Options, open};

/// The header of traces whose records are any bytes.
const HEADER: &[u8] = b"#Paraver (1):99_ns:1(3):2:2(2:1,1:1),1(1:1),1\nc:1:1:2:1:2\n";

/// Any bytes as a file, and as the lines after a header; labels are the same bytes.
pub fn paraver(bytes: &[u8], directory: &Path) {
    let _ = fs::create_dir_all(directory);
    let file = directory.join("run.prv");
    let _ = fs::write(directory.join("run.pcf"), bytes);
    let _ = fs::write(directory.join("run.row"), bytes);
    for text in [bytes.to_vec(), [HEADER, bytes, b"\n"].concat()] {
        fs::write(&file, text).expect("a file can be written");
        let options = Options { truncated: true, types: vec![7], ..Options::default() };
        if let Ok(recording) = open(&file, &options) {
            check(&recording, true);
        }
    }
    let _ = fs::remove_dir_all(directory);
}
