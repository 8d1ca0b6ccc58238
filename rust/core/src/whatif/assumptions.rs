//! What a simulation assumes where the trace does not tell.

use std::collections::BTreeMap;

use bitcode::{Decode, Encode};

use crate::Result;
use crate::parallel::exchange::Exchange;

explained! {
    /// An assumption of the simulation.
    #[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Encode, Decode)]
    pub enum Assumption {
        /// Messages whose protocol the times do not prove.
        UndecidedProtocol = "undecided_protocol":
            "messages whose times fit eager and rendezvous: the eager limit that contradicts the fewest others decides",
        /// Collective operations with unknown dependencies.
        UnknownCollective = "unknown_collective":
            "collective operations of an unknown kind, or without a known root: they keep their length",
        /// Calls that wait for each other in a circle.
        Circular = "circular": "calls that wait for each other in a circle: they keep their length",
        /// Messages and operations without a partner.
        Unmatched = "unmatched": "messages and operations without a partner: their calls keep their length",
        /// Non-blocking collective operations without all of their partners.
        NonBlockingCollective = "nonblocking_collective":
            "non-blocking collective operations without all of their partners: their calls keep their length",
        /// Lock epochs that ended before the epoch before them on the same lock.
        LockOrder = "lock_order": "lock epochs of which no call waited until the lock was given back: they wait for nobody",
        /// Lock epochs that follow each other as measured although the lock is requested in the opposite order now.
        InvertedLock = "inverted_lock":
            "lock epochs that now request the lock before the epoch that they follow: the measured order stays",
        /// Receives whose message had already arrived: its transfer time is estimated from others of its class.
        HiddenTransfer = "hidden_transfer":
            "receives whose messages had already arrived: these took as long as others of their size",
        /// Calls that poll.
        Polling = "polling": "calls that only ask (tests, probes that return at once): loops of them do not shrink",
        /// Calls that may synchronize but have no records.
        Unrecorded = "unrecorded":
            "calls that create communicators or windows, or open files, and were not all in it at the same time: they \
                keep their length",
        /// Non-blocking collective operations without records.
        UnrecordedNonBlocking = "unrecorded_nonblocking":
            "non-blocking collective operations that leave no record: the calls that complete them keep their length",
        /// Kernels with an unknown launch.
        UnmatchedKernel = "unmatched_kernel":
            "kernels without a launch: they start as long after what ran before them as measured",
        /// Processes of which nothing but devices is recorded.
        UnrecordedHost = "unrecorded_host":
            "processes of which nothing but devices is recorded: their steps, and so the run, keep their length",
        /// Waits that come later.
        Overlapped = "overlapped":
            "waits that come later: the computation that they pass does not touch their messages, which arrive while it \
                runs",
        /// Calls that were to be overlapped and stay.
        NothingToPass = "nothing_to_pass":
            "calls to overlap that wait for nobody, or that other communication follows: they stay as they are",
        /// Calls that send and receive, and are split.
        Split = "split": "calls that are split: each part takes as long as the whole after its wait, an eager send no time",
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
