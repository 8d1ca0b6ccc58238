//! Levels: how many of something there are at a time. Their maximum, their mean over the run, and their course.

use bitcode::{Decode, Encode};
use rayon::prelude::*;

use super::Message;
use crate::Result;
use crate::ids::LocationId;
use crate::trace::Trace;

/// What there can be some of.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Encode, Decode)]
pub enum Quantity {
    /// Messages that have arrived, and whose receive is still to be posted.
    Unexpected,
    /// Bytes of those of them that are eager.
    UnexpectedData,
    /// Posted receives whose message is still to come.
    Posted,
    /// Sends that have begun, and are not completed.
    SendRequests,
    /// Receives that have begun, and are not completed.
    ReceiveRequests,
    /// Bytes that were sent, and whose receive is not completed.
    InFlight,
}

impl Quantity {
    /// All of them.
    pub const ALL: [Self; 6] = [
        Self::Unexpected,
        Self::UnexpectedData,
        Self::Posted,
        Self::SendRequests,
        Self::ReceiveRequests,
        Self::InFlight,
    ];

    /// Unique name.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::Unexpected => "mpi_unexpected_queue",
            Self::UnexpectedData => "mpi_unexpected_data",
            Self::Posted => "mpi_posted_queue",
            Self::SendRequests => "mpi_send_requests",
            Self::ReceiveRequests => "mpi_receive_requests",
            Self::InFlight => "mpi_bytes_in_flight",
        }
    }

    /// What it counts.
    #[must_use]
    pub fn unit(self) -> &'static str {
        match self {
            Self::Unexpected => "messages",
            Self::UnexpectedData | Self::InFlight => "bytes",
            Self::Posted | Self::SendRequests | Self::ReceiveRequests => "requests",
        }
    }
}

/// A level at a location, or of the whole run.
#[derive(Clone, Debug, PartialEq, Eq, Encode, Decode)]
pub struct Level {
    /// What it counts.
    pub quantity: Quantity,
    /// The master thread of the process, or none of the run.
    pub location: LocationId,
    /// The most there were.
    pub maximum: i64,
    /// When they were reached first, ticks.
    pub time: i64,
    /// Sum over time: level times ticks.
    pub integral: i128,
    /// Sum over time, and the most there were, in each bin.
    pub bins: Vec<(i128, i64)>,
}

/// The course of a level by its changes, from first to last tick of the run; `None` if there are no changes.
pub(super) fn follow(
    quantity: Quantity,
    location: LocationId,
    mut changes: Vec<(i64, i64)>,
    (first, last): (i64, i64),
    bins: usize,
) -> Option<Level> {
    if changes.is_empty() {
        return None;
    }
    changes.sort_unstable();
    let mut level = Level { quantity, location, maximum: 0, time: first, integral: 0, bins: vec![(0, 0); bins] };
    let (mut now, mut since) = (0i64, first);
    for at in changes.chunk_by(|a, b| a.0 == b.0) {
        let time = at[0].0.clamp(since, last.max(since));
        level.add(now, since, time, (first, last));
        since = time;
        now = at.iter().fold(now, |now, (_, change)| now.saturating_add(*change));
        if now > level.maximum {
            (level.maximum, level.time) = (now, time);
        }
    }
    level.add(now, since, last, (first, last));
    Some(level)
}

impl Level {
    fn add(&mut self, level: i64, from: i64, to: i64, (first, last): (i64, i64)) {
        if level == 0 || from >= to {
            return;
        }
        self.integral += i128::from(level) * i128::from(to - from);
        let bins = self.bins.len() as i128;
        let length = i128::from(last - first).max(1);
        let bound = |bin: i128| first + (length * bin / bins.max(1)) as i64;
        let mut bin = i128::from(from - first) * bins / length;
        while bin < bins && bound(bin) < to {
            let overlap = to.min(bound(bin + 1)) - from.max(bound(bin));
            if overlap > 0 {
                let (integral, maximum) = &mut self.bins[bin as usize];
                *integral += i128::from(level) * i128::from(overlap);
                *maximum = (*maximum).max(level);
            }
            bin += 1;
        }
    }
}

/// Bytes in flight in the whole run, at the first process of the analysis.
pub(super) fn whole_run(trace: &Trace, messages: &[Vec<Message>], bins: usize) -> Result<Option<Level>> {
    let changes = messages.par_iter().flat_map_iter(|messages| messages.iter().flat_map(in_flight));
    let changes = trace.exchange.gatherv(changes.collect::<Vec<_>>())?;
    Ok(trace.span().and_then(|span| follow(Quantity::InFlight, LocationId::NONE, changes, span, bins)))
}

/// When the bytes of a message come and go.
pub(super) fn in_flight(message: &Message) -> impl Iterator<Item = (i64, i64)> {
    let bytes = i64::try_from(message.bytes).unwrap_or(i64::MAX);
    let changes =
        (message.sent < message.completed.1).then_some([(message.sent, bytes), (message.completed.1, -bytes)]);
    changes.into_iter().flatten()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_level_is_followed_through_its_bins() {
        let changes = vec![(10, 1), (20, 1), (25, -1), (40, -1)];
        let level = follow(Quantity::Unexpected, LocationId::new(0), changes, (0, 50), 5).unwrap();
        assert_eq!((level.maximum, level.time, level.integral), (2, 20, 35));
        assert_eq!(level.bins, [(0, 0), (10, 1), (15, 2), (10, 1), (0, 0)]);
        assert_eq!(follow(Quantity::Unexpected, LocationId::new(0), Vec::new(), (0, 50), 0), None);
    }

    #[test]
    fn bins_hold_all_of_a_level_whatever_their_number() {
        for bins in 1..40 {
            let level =
                follow(Quantity::Unexpected, LocationId::new(0), vec![(3, 2), (17, 5), (29, -7)], (1, 31), bins)
                    .unwrap();
            assert_eq!(level.bins.iter().map(|bin| bin.0).sum::<i128>(), level.integral, "{bins}");
            assert_eq!(level.bins.iter().map(|bin| bin.1).max(), Some(7), "{bins}");
        }
    }
}
