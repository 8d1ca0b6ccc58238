//! Any bytes as the traces of two ranks.

#![no_main]

#[path = "../src/kineto.rs"]
#[allow(dead_code)]
mod kineto;

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| {
    let name = format!("whywait-fuzz-kineto-{}", std::process::id());
    kineto::kineto_open(bytes, &std::env::temp_dir().join(name));
});
