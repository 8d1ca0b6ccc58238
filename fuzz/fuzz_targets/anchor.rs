//! Any bytes as anchor file.

#![no_main]

use std::path::Path;

use libfuzzer_sys::fuzz_target;
use whywait_otf2::Anchor;

fuzz_target!(|bytes: &[u8]| {
    if let Err(error) = Anchor::from_bytes(Path::new("traces.otf2"), bytes) {
        assert!(error.offset().is_some_and(|offset| offset <= bytes.len() as u64));
    }
});
