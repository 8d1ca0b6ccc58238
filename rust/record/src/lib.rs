//! The part of whywait that lives in the program whose MPI calls it records.
//!
//! `whywait record` preloads this library. It exports the functions of MPI, both as `MPI_X` and as `PMPI_X`, and goes on to the
//! program's own MPI, which it finds when the first call comes. One binary serves all MPIs: what differs is in [`abi`].
//!
//! A call arrives in [`hook`], is described by [`calls`] in a slot of its [`thread`], and lies in a mapped file of the [`spool`] at once: whatever
//! happens to the process, what returned is recorded. The layout of the files is in [`whywait_spool`].
//!
//! The program must not suffer: no lock, no allocation and no system call in a recorded call, but for those that make a communicator, a window, a file, a new
//! call path or a new chunk, and now and then one for a program that tests again and again whether something has come; no signal handler, but for samples that were asked for ([`sampler`]); a fault of the recorder ends the recording only.
//! What it allocates is never the program's memory ([`heap`]), and while it holds a lock it calls nothing of the program, the C library's allocator, or
//! the loader: an allocator may call a hook with its own lock held. So functions of the C library are found without the loader ([`system`]).

#![allow(clippy::doc_markdown, reason = "MPI's own names are prose here")]
#![cfg_attr(not(target_arch = "x86_64"), allow(dead_code, reason = "the sampler uses it, which is not there"))]

mod abi;
mod aio;
mod callers;
mod calls;
mod clock;
mod comms;
mod completions;
mod context;
mod counters;
mod exports;
mod fault;
mod files;
mod frame;
mod handles;
mod heap;
mod helper;
mod hook;
mod kept;
mod library;
mod locks;
mod meaning;
mod modes;
mod modules;
mod mpi_counters;
mod openmp;
mod options;
mod polling;
mod posix;
mod process;
mod python;
mod real;
mod requests;
mod runs;
#[cfg(target_arch = "x86_64")]
mod sampler;
#[cfg(not(target_arch = "x86_64"))]
#[path = "unsampled.rs"]
mod sampler;
mod spool;
mod stack;
mod state;
mod status;
mod sync;
mod system;
mod table;
mod thread;
mod thread_starts;
mod title;
mod unwind;
mod windows;

use whywait_spool as format;
