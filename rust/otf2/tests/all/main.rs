//! Tests of the crate by its public interface, in one program: linking takes longer than most of them.

mod broken;
mod bytes;
mod common;
mod fuzz;
mod roundtrip;
