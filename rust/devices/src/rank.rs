//! One rank: its threads, its streams, and its part in communication.

use std::num::NonZeroU64;
use std::ops::Range;

use rustc_hash::FxHashMap;

use crate::NONE;
use crate::calls::Calls;
use crate::facts::RankFacts;
use crate::members::Member;
use crate::regions::Region;
use crate::teams::{Task, Team};
use crate::thread::{Detail, Thread};

/// Times that can be one of a run, ns.
const EARLIEST: i64 = -(1 << 61);
const LATEST: i64 = 1 << 62;

/// A device that a rank uses.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Device {
    /// Its number for the rank.
    pub number: i64,
    /// What it is.
    pub name: String,
    /// What tells it from all others of its node, if that is known.
    pub identity: Option<String>,
}

/// A stream, and which works are its own.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Stream {
    /// Number of its device.
    pub device: i64,
    /// Its own number.
    pub number: i64,
    /// Its name.
    pub name: String,
    /// Places of its works, in order of their begins.
    pub works: Range<usize>,
}

/// Work on a stream.
#[derive(Debug, Clone, Copy)]
pub struct Work {
    /// When it begins and ends, ns.
    pub begin: i64,
    /// See `begin`.
    pub end: i64,
    /// The number that it and the call that launched it have in common.
    pub correlation: Option<NonZeroU64>,
    /// What it is, in `regions`.
    pub region: u32,
    /// The call path from which it was launched, in `contexts`, or [`NONE`].
    pub context: u32,
    /// Its part in communication, in `members`, or [`NONE`].
    pub member: u32,
}

/// How much memory is in use.
#[derive(Debug, Clone, Copy)]
pub struct Memory {
    /// When, ns.
    pub time: i64,
    /// The device; none for the host's memory.
    pub device: Option<i64>,
    /// Bytes in use, and bytes that are kept for it.
    pub allocated: u64,
    /// See `allocated`.
    pub reserved: u64,
}

/// The stream and the event that a call names.
#[derive(Debug, Clone, Copy, Default)]
pub struct Awaits {
    /// Device and number of the stream.
    pub stream: Option<(i64, i64)>,
    /// What identifies the event.
    pub event: Option<u64>,
}

/// One rank. Times are nanoseconds of a clock that all ranks of its node have in common.
#[derive(Debug, Default)]
pub struct Rank {
    /// Its number in the world.
    pub number: u32,
    /// Its node, if that is known.
    pub host: Option<String>,
    /// Its clock, if that is known: ranks of one node may have different ones.
    pub clock: Option<u32>,
    /// The devices that it uses.
    pub devices: Vec<Device>,
    /// When its recording began and ended.
    pub window: (i64, i64),
    /// Its regions by number.
    pub regions: Vec<Region>,
    /// Call paths from which something was launched: parent and region.
    pub contexts: Vec<(u32, u32)>,
    /// The first thread of the process comes first.
    pub threads: Vec<Thread>,
    /// Its streams, in order of their works.
    pub streams: Vec<Stream>,
    /// By stream and begin.
    pub works: Vec<Work>,
    /// Memory in use, in order of time.
    pub memory: Vec<Memory>,
    /// What synchronizations wait for, by their calls.
    pub syncs: FxHashMap<u64, Awaits>,
    /// Its parts in operations.
    pub members: Vec<Member>,
    /// What is recorded with calls of its threads.
    pub calls: Calls,
    /// Teams of its threads, and their tasks.
    pub teams: Vec<Team>,
    /// See `teams`.
    pub tasks: Vec<Task>,
    /// Whether it knows of several groups of ranks.
    pub has_several_groups: bool,
}

impl Rank {
    /// What is known of it, without what only its file says.
    pub fn facts(&self) -> RankFacts {
        let steps = self.threads.iter().flat_map(|thread| &thread.visits).filter_map(|visit| match visit.detail {
            Detail::Step(number) => Some(number.get().cast_signed()),
            _ => None,
        });
        let mut steps: Vec<i64> = steps.collect();
        steps.sort_unstable();
        steps.dedup();
        RankFacts {
            rank: self.number,
            host: self.host.clone(),
            window: self.window,
            steps,
            works: self.works.len() as u64,
            ..RankFacts::default()
        }
    }

    /// Moves all times.
    pub fn shift(&mut self, by: i64) {
        let at = |time: &mut i64| *time = time.saturating_add(by).clamp(EARLIEST, LATEST);
        for visit in self.threads.iter_mut().flat_map(|thread| &mut thread.visits) {
            at(&mut visit.begin);
            at(&mut visit.end);
        }
        for sample in self.threads.iter_mut().flat_map(|thread| &mut thread.samples) {
            at(&mut sample.time);
        }
        for (begin, end) in self.threads.iter_mut().flat_map(|thread| &mut thread.off) {
            at(begin);
            at(end);
        }
        for work in &mut self.works {
            at(&mut work.begin);
            at(&mut work.end);
        }
        for member in &mut self.members {
            at(&mut member.begin);
            at(&mut member.end);
            at(&mut member.order);
        }
        for sample in &mut self.memory {
            at(&mut sample.time);
        }
        at(&mut self.window.0);
        at(&mut self.window.1);
    }

    /// Completes what is known of members by the streams that they are on.
    pub fn follow_streams(&mut self) {
        for stream in &self.streams {
            let of_work = |work: &Work| (work.member != NONE).then_some(work.member);
            let members: Vec<u32> = self.works[stream.works.clone()].iter().filter_map(of_work).collect();
            keep_order(&members, &mut self.members);
            share_group(&members, &mut self.members);
        }
    }
}

/// A stream runs its work in the order of launches. So what comes before another on its stream was launched before, also if
/// its launch is not recorded: hosts run ahead of their devices, and the first launches are before the window.
fn keep_order(of_stream: &[u32], members: &mut [Member]) {
    let mut next = i64::MAX;
    for member in of_stream.iter().rev() {
        let member = &mut members[*member as usize];
        member.order = member.order.min(next);
        next = member.order;
    }
}

/// A group has a stream of its own on each device. So a kernel whose group is not recorded, as its launch is before the window,
/// is of the only group of its stream.
fn share_group(of_stream: &[u32], members: &mut [Member]) {
    let mut known = of_stream.iter().filter_map(|member| members[*member as usize].group.clone());
    let Some(only) = known.next() else { return };
    if known.all(|group| group == only) {
        for member in of_stream {
            let member = &mut members[*member as usize];
            if !member.kind.is_message() {
                member.group.get_or_insert_with(|| only.clone());
            }
        }
    }
}
