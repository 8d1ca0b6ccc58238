//! Any bytes as exports of Nsight Systems.

#![no_main]

#[path = "../src/nsight.rs"]
#[allow(dead_code)]
mod nsight;

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| {
    let name = format!("whywait-fuzz-nsight-{}", std::process::id());
    nsight::nsight(bytes, &std::env::temp_dir().join(name));
});
