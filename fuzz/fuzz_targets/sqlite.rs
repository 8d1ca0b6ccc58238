//! Any bytes as a database of SQLite.

#![no_main]

#[path = "../src/nsight.rs"]
#[allow(dead_code)]
mod nsight;

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| {
    let name = format!("whywait-fuzz-sqlite-{}", std::process::id());
    nsight::sqlite(bytes, &std::env::temp_dir().join(name));
});
