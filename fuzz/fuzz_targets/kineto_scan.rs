//! Any bytes as a trace of PyTorch's profiler.

#![no_main]

#[path = "../src/kineto.rs"]
#[allow(dead_code)]
mod kineto;

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| kineto::kineto_scan(bytes));
