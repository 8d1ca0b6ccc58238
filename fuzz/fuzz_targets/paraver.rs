//! Any bytes as a trace of Paraver.

#![no_main]

#[path = "../src/paraver.rs"]
#[allow(dead_code)]
mod paraver;

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| {
    let name = format!("whywait-fuzz-paraver-{}", std::process::id());
    paraver::paraver(bytes, &std::env::temp_dir().join(name));
});
