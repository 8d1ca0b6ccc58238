//! Any bytes as events of a location that translates ids and corrects times, in chunks of a small size that the first
//! byte chooses. All chunks at once and one by one must agree on what they deliver.

#![no_main]

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| whywait_fuzz::events(bytes));
