//! Ranks with threads and devices, as profilers trace them, as one recording.
//!
//! ```text
//!  ranks --match--> operations, messages --define, emit--> recording
//! ```
//!
//! A reader of a profiler's files makes a [`Rank`] of each process: calls within calls, work on streams with what launched
//! it, and its members of operations that communicate. [`DeviceRecording`] finds out which members are of one operation,
//! and hands all of it to an analysis in records as other tools write them for MPI with accelerators. What has no record
//! is in [`Facts`]. Nothing here knows a profiler, or what waits.

#![deny(unsafe_code)]

mod align;
mod calls;
mod comm_kernels;
mod contexts;
mod definitions;
mod emit;
mod facts;
mod files;
mod kinds;
mod matching;
mod members;
mod nesting;
mod numbering;
mod rank;
mod recording;
mod regions;
mod teams;
mod thread;

pub use align::{BETWEEN_CLOCKS, FURTHEST};
pub use calls::Calls;
pub use comm_kernels::CommKernels;
pub use contexts::Contexts;
pub use definitions::{WINDOW_BEGIN, WINDOW_END};
pub use facts::{Facts, GroupFacts, Method, RankFacts, ShapeFacts};
pub use files::{file_name, in_parallel};
pub use kinds::{Flow, Kind};
pub use matching::Comm;
pub use members::{Group, HostPart, Member, Part};
pub use nesting::{Placed, Spanning, nest};
pub use numbering::{RANK_PATTERNS, by_name, numbers};
pub use rank::{Awaits, Device, Memory, Rank, Stream, Work};
pub use recording::{DeviceRecording, Source, location_id};
pub use regions::{Copy, Region, Regions};
pub use teams::{Task, Team};
pub use thread::{Detail, Sample, Thread, Visit, Wide};

/// No detail, no name, no number.
pub const NONE: u32 = u32::MAX;
