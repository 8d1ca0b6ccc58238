//! Clocks: what a run says about the clocks of its processes, and corrected times.
//!
//! ```text
//!  matches ──> constraints ──> census (what is violated)
//!                  └─────────> nodes, lines, clc ──> timings ──> the corrected recording, which is read instead
//! ```
//!
//! A message cannot be received before it is sent. Where it seems so, the clocks of two processes disagree. A correction
//! gives each process an increasing function of time; all its locations share it, because they share a clock. Everything
//! behind reads the corrected recording and does not know about it.
//!
//! *Source*: clocks.md.

mod census;
mod clc;
mod constraints;
mod correct;
mod corrected;
mod course;
mod domains;
mod fit;
mod gather;
mod kind;
mod lines;
mod meetings;
mod mend;
mod nearest;
mod nodes;
mod pairs;
mod report;
mod rewritten;
mod timing;

pub use census::{BINS, Cell, Census, Course, Total};
pub use constraints::{Constraints, Found, Moment};
pub use correct::{Method, Options, correct};
pub use domains::Domain;
pub use gather::{OfMessages, add_operation};
pub use kind::Kind;
pub use report::{OfDomain, OfPair, OfProcess, Report, Step, Verdict};
pub use rewritten::Rewritten;
