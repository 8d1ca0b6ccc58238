//! Copies an archive by reading and writing all records, and prints its defects.

use std::io::{self, Write};
use std::path::Path;

use whywait_otf2::{Archive, WriteOptions, copy_archive};

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let arguments: Vec<String> = std::env::args().collect();
    let [_, from, to] = &arguments[..] else {
        return Err("usage: copy ARCHIVE DIRECTORY".into());
    };
    let from = Archive::open(Path::new(from))?;
    let options = WriteOptions { anchor: from.anchor().clone(), ..WriteOptions::default() };
    for oddity in copy_archive(&from, Path::new(to), options)? {
        writeln!(io::stdout(), "{oddity}")?;
    }
    Ok(())
}
