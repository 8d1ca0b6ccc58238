//! Any bytes as what a process of a recording left.

#![no_main]

#[path = "../src/spool.rs"]
mod spool;

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| {
    let name = format!("whywait-fuzz-{}", std::process::id());
    spool::spool(bytes, &std::env::temp_dir().join(name));
});
