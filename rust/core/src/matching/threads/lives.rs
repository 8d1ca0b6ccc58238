//! The lives of threads that are created one by one: a thread begins after its creation, and the call that waits for it ends after
//! its end.

use rustc_hash::FxHashMap;

use crate::ids::{InstanceId, LocationId};
use crate::trace::Shard;
use crate::trace::columns::{Thread, ThreadStep};
use crate::trace::locations::Process;

/// A record of a thread's life, and where it is.
pub(crate) type LifeRecord = (LocationId, Thread);

/// The life of a thread that another one creates.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Life {
    pub create: Option<LifeRecord>,
    pub begin: Option<LifeRecord>,
    pub end: Option<LifeRecord>,
    pub wait: Option<LifeRecord>,
    /// One of several records of the same step, of which the earliest counts.
    pub repeated: Option<LifeRecord>,
}

/// The lives of the threads of a process that were created one by one, in the order of their numbers.
pub(crate) fn lives(shard: &Shard, process: &Process) -> Vec<Life> {
    if shard.threads.rows.is_empty() {
        return Vec::new();
    }
    let mut lives: FxHashMap<(u32, u64), Life> = FxHashMap::default();
    for location in process.locations {
        for &row in shard.threads.of(shard.local(location)) {
            let life = lives.entry(row.thread).or_default();
            let record = match row.step {
                ThreadStep::Create => &mut life.create,
                ThreadStep::Begin => &mut life.begin,
                ThreadStep::End => &mut life.end,
                ThreadStep::Wait => &mut life.wait,
            };
            let mut later = (location, row);
            match record {
                None => *record = Some(later),
                Some(first) => {
                    if row.time < first.1.time {
                        std::mem::swap(first, &mut later);
                    }
                    life.repeated = Some(later);
                }
            }
        }
    }
    let mut lives: Vec<_> = lives.into_iter().collect();
    lives.sort_unstable_by_key(|&(thread, _)| thread);
    lives.into_iter().map(|(_, life)| life).collect()
}

/// Creator and thread, with the calls in which they synchronize: the one that creates, and the thread's first function.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Creation {
    pub creator: (LocationId, InstanceId),
    pub thread: (LocationId, InstanceId),
    /// When the creator's record was written, ticks.
    pub time: i64,
}

impl Life {
    /// The creation, if both sides are recorded.
    pub(crate) fn creation(&self) -> Option<Creation> {
        let ((creator, create), (thread, begin)) = (self.create?, self.begin?);
        let is_known = create.instance.is_some() && begin.instance.is_some() && creator != thread;
        is_known.then_some(Creation {
            creator: (creator, create.instance),
            thread: (thread, begin.instance),
            time: create.time,
        })
    }
}
