//! When the threads of a process manage a team: from the fork to the parallel region, and from the region to the join.
//!
//! ```text
//!  master  --F-[ parallel      ]--J--      F fork, J join
//!  worker      ---[ parallel ]--
//!            |--|            |----|
//! ```

use std::ops::Range;

use super::columns::Team;
use super::shard::Shard;
use crate::ids::{CallPathId, LocationId, NONE};

/// The management of a team of threads, on one of its locations.
#[derive(Clone, Copy, Debug)]
pub struct Management {
    /// When it begins.
    pub begin: i64,
    /// When it ends.
    pub end: i64,
    /// Where the location is meanwhile: in the call path that forks, or in none.
    pub during: CallPathId,
    /// The parallel region.
    pub callpath: CallPathId,
}

/// The management of all teams that a location is part of, in the order of time.
pub fn management(shard: &Shard, location: LocationId) -> Vec<Management> {
    let mut all = Vec::new();
    let teams = shard.teams.of(shard.local(location)).iter();
    for team in teams.filter(|team| team.fork != NONE && team.instance.is_some()) {
        let fork = &shard.forks.rows[team.fork as usize];
        let during = if is_forker(shard, location, team) { fork.callpath } else { CallPathId::NONE };
        let callpath = shard.callpath(team.instance);
        let mut add = |begin, end| {
            if begin < end {
                all.push(Management { begin, end, during, callpath });
            }
        };
        add(fork.fork, shard.enter(team.instance));
        if fork.join != i64::MIN {
            add(shard.leave(team.instance), fork.join);
        }
    }
    all.sort_by_key(|management| (management.begin, management.end));
    all
}

/// Whether a location forked the team that it is part of.
pub fn is_forker(shard: &Shard, location: LocationId, team: &Team) -> bool {
    location == shard.location_of(&shard.forks, team.fork)
}

/// A pass over the management of a location, in the order of time.
#[derive(Debug)]
pub struct Pass<'a> {
    all: &'a [Management],
    next: usize,
}

impl<'a> Pass<'a> {
    /// Begins with the first.
    pub fn new(all: &'a [Management]) -> Self {
        Self { all, next: 0 }
    }

    /// Whether nothing is managed before a time that has not been passed.
    #[inline]
    pub fn is_done_until(&self, time: i64) -> bool {
        self.all.get(self.next).is_none_or(|management| management.begin >= time)
    }

    /// Passes each part of a span of time in which the location manages a team while it is in a call path, and its
    /// parallel region.
    #[inline]
    pub fn take(&mut self, during: CallPathId, span: Range<i64>, mut part: impl FnMut(Range<i64>, CallPathId)) {
        while self.all.get(self.next).is_some_and(|management| management.end <= span.start) {
            self.next += 1;
        }
        let mut since = span.start;
        for management in self.all[self.next..].iter().take_while(|management| management.begin < span.end) {
            let (begin, end) = (management.begin.max(since), management.end.min(span.end));
            if management.during == during && begin < end {
                part(begin..end, management.callpath);
                since = end;
            }
        }
    }
}
