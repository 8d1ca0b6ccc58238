//! Any bytes as definition files, global and local, in chunks of a small size that the first byte chooses.

#![no_main]

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| whywait_fuzz::definitions(bytes));
