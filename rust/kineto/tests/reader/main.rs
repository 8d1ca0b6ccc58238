//! Sets of traces, read back from the records that they become.

mod common;
mod damage;
mod fuzz;
mod gloo;
mod matching;
mod scan;
mod written;
