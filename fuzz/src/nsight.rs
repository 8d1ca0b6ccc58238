//! Any bytes as exports of Nsight Systems: whatever they are, each page is read once, events are in order, and regions end.

#[path = "check.rs"]
mod check;

use std::fs;
use std::path::{Path, PathBuf};

use check::check;
use whywait_nsight::sqlite::Database;
use whywait_nsight::{Options, open};

/// Any bytes as a database: all rows of all tables, with all their columns.
pub fn sqlite(bytes: &[u8], directory: &Path) {
    let _ = fs::create_dir_all(directory);
    let file = directory.join("any.sqlite");
    fs::write(&file, bytes).expect("a file can be written");
    if let Ok(database) = Database::open(&file) {
        for table in &database.tables {
            let wanted: Vec<Option<usize>> = (0..table.columns.len()).map(Some).collect();
            let scanned = database.scan(table, &wanted, |row| {
                for column in 0..wanted.len() {
                    std::hint::black_box((row.integer(column), row.text(column), row.bytes(column)));
                }
            });
            let defects = scanned.expect("the file can be read");
            let sound = defects.pages - defects.unreadable - defects.missing;
            assert!(sound <= bytes.len() as u64 / 512 + 1, "each page is read once");
        }
    }
    let _ = fs::remove_dir_all(directory);
}

/// Any bytes as the reports of two ranks: all of them, and all with the last eighth missing.
pub fn nsight(bytes: &[u8], directory: &Path) {
    let _ = fs::create_dir_all(directory);
    let files: Vec<PathBuf> = (0..2).map(|rank| directory.join(format!("report.{rank}.sqlite"))).collect();
    for (file, length) in files.iter().zip([bytes.len(), bytes.len() - bytes.len() / 8]) {
        fs::write(file, &bytes[..length]).expect("a file can be written");
    }
    for files in [&files[..1], &files[..]] {
        if let Ok(opened) = open(files, &Options::default()) {
            check(&opened.recording, false);
        }
    }
    let _ = fs::remove_dir_all(directory);
}
