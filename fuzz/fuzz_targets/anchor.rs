//! Any bytes as anchor file.

#![no_main]

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| whywait_fuzz::anchor(bytes));
