//! What a simulation assumes where the trace does not tell.

use std::collections::BTreeMap;

use bitcode::{Decode, Encode};

use crate::Result;
use crate::parallel::exchange::Exchange;

/// An assumption of the simulation.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Encode, Decode)]
pub enum Assumption {
    /// Messages whose protocol the times do not prove.
    UndecidedProtocol,
    /// Collective operations with unknown dependencies.
    UnknownCollective,
    /// Calls that wait for each other in a circle.
    Circular,
    /// Messages and operations without a partner.
    Unmatched,
    /// Non-blocking collective operations without all of their partners.
    NonBlockingCollective,
    /// Lock epochs that ended before the epoch before them on the same lock.
    LockOrder,
    /// Lock epochs that follow each other as measured although the lock is requested in the opposite order now.
    InvertedLock,
    /// Receives whose message had already arrived: its transfer time is estimated from others of its class.
    HiddenTransfer,
    /// Calls that poll.
    Polling,
    /// Calls that may synchronize but have no records.
    Unrecorded,
    /// Non-blocking collective operations without records.
    UnrecordedNonBlocking,
    /// Kernels with an unknown launch.
    UnmatchedKernel,
    /// Processes of which nothing but devices is recorded.
    UnrecordedHost,
    /// Waits that come later.
    Overlapped,
    /// Calls that were to be overlapped and stay.
    NothingToPass,
    /// Calls that send and receive, and are split.
    Split,
}

impl Assumption {
    /// Name in tables.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::UndecidedProtocol => "undecided_protocol",
            Self::UnknownCollective => "unknown_collective",
            Self::Circular => "circular",
            Self::Unmatched => "unmatched",
            Self::NonBlockingCollective => "nonblocking_collective",
            Self::LockOrder => "lock_order",
            Self::InvertedLock => "inverted_lock",
            Self::HiddenTransfer => "hidden_transfer",
            Self::Polling => "polling",
            Self::Unrecorded => "unrecorded",
            Self::UnrecordedNonBlocking => "unrecorded_nonblocking",
            Self::UnmatchedKernel => "unmatched_kernel",
            Self::UnrecordedHost => "unrecorded_host",
            Self::Overlapped => "overlapped",
            Self::NothingToPass => "nothing_to_pass",
            Self::Split => "split",
        }
    }

    /// What is assumed.
    #[must_use]
    pub fn text(self) -> &'static str {
        match self {
            Self::UndecidedProtocol => {
                "messages whose times fit eager and rendezvous: the eager limit that contradicts the fewest others decides"
            }
            Self::UnknownCollective => {
                "collective operations of an unknown kind, or without a known root: they keep their length"
            }
            Self::Circular => "calls that wait for each other in a circle: they keep their length",
            Self::Unmatched => "messages and operations without a partner: their calls keep their length",
            Self::LockOrder => {
                "lock epochs of which no call waited until the lock was given back: they wait for nobody"
            }
            Self::InvertedLock => {
                "lock epochs that now request the lock before the epoch that they follow: the measured order stays"
            }
            Self::HiddenTransfer => {
                "receives whose messages had already arrived: these took as long as others of their size"
            }
            Self::Polling => "calls that only ask (tests, probes that return at once): loops of them do not shrink",
            Self::Unrecorded => {
                "calls that create communicators or windows, or open files, and were not all in it at the same time: they \
                 keep their length"
            }
            Self::UnrecordedNonBlocking => {
                "non-blocking collective operations that leave no record: the calls that complete them keep their length"
            }
            Self::Overlapped => {
                "waits that come later: the computation that they pass does not touch their messages, which arrive while it \
                 runs"
            }
            Self::NothingToPass => {
                "calls to overlap that wait for nobody, or that other communication follows: they stay as they are"
            }
            Self::Split => {
                "calls that are split: each part takes as long as the whole after its wait, an eager send no time"
            }
            Self::UnmatchedKernel => {
                "kernels without a launch: they start as long after what ran before them as measured"
            }
            Self::UnrecordedHost => {
                "processes of which nothing but devices is recorded: their steps, and so the run, keep their length"
            }
            Self::NonBlockingCollective => {
                "non-blocking collective operations without all of their partners: their calls keep their length"
            }
        }
    }
}

/// How often something was assumed, and how much time it concerns, ticks.
#[derive(Clone, Debug, Default)]
pub struct Assumptions(BTreeMap<Assumption, (u64, Option<i64>)>);

impl Assumptions {
    pub(super) fn count(&mut self, assumption: Assumption, count: u64) {
        if count > 0 {
            self.0.entry(assumption).or_default().0 += count;
        }
    }

    pub(super) fn concern(&mut self, assumption: Assumption, count: u64, time: i64) {
        self.count(assumption, count);
        if let Some((_, known)) = self.0.get_mut(&assumption) {
            *known = Some(known.unwrap_or(0) + time);
        }
    }

    /// What all processes of the analysis assume. Collective.
    pub(super) fn of_all(self, exchange: &Exchange) -> Result<Self> {
        let own: Vec<(Assumption, u64, Option<i64>)> = self.iter().collect();
        let mut all = Self::default();
        for (assumption, count, time) in exchange.allgather(own)?.into_iter().flatten() {
            match time {
                Some(time) => all.concern(assumption, count, time),
                None => all.count(assumption, count),
            }
        }
        Ok(all)
    }

    /// The assumptions made, how often, and how many ticks they concern, if known.
    pub fn iter(&self) -> impl Iterator<Item = (Assumption, u64, Option<i64>)> {
        self.0.iter().map(|(&assumption, &(count, time))| (assumption, count, time))
    }
}
