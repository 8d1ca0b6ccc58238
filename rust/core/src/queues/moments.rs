//! Increments of the sums of messages, for windows, bins and iterations; only on request.
//!
//! Sums at receivers grow at the Enter of the call that posts the receive, sums at senders at the Enter of the call
//! that starts the send.

use super::channels::{Found, search};
use super::ledger::Moment;
use super::options::Options;
use super::proven::proven;
use super::receivers::{Receivers, count, queued, seen};
use super::senders::Alike;
use crate::schema::QueueMetric;

impl Receivers<'_> {
    /// The increments of all sums of messages, including those at senders.
    pub(super) fn moments(&self, options: &Options) -> Vec<Moment> {
        let Self { trace, shard, limits, .. } = *self;
        let mut moments = Vec::new();
        for process in shard.processes {
            let looks = self.looks(process);
            let (mut messages, mut all) = (Vec::new(), Vec::new());
            for i in shard.local_locations(trace.definitions.processes[process].locations) {
                let location = shard.location(i);
                self.each(i, looks.as_ref(), |met| {
                    count(met, |metric, value| {
                        let (callpath, time) = (met.callpath, met.posted);
                        moments.push(Moment { metric, callpath, location, time, value });
                    });
                    Alike::one(met.message).book(limits, |metric, (callpath, location), value| {
                        let time = met.message.sent;
                        moments.push(Moment { metric, callpath, location, time, value });
                    });
                    messages.push(queued(met, location));
                    all.push(seen(met, location));
                });
            }
            proven(&mut all, |message| {
                let (metric, (callpath, location)) = (QueueMetric::UnexpectedAtLeast, message.place);
                moments.push(Moment { metric, callpath, location, time: message.posted, value: 1 });
            });
            search(&mut messages, options.lists, |message, found| {
                let (metric, value) = match found {
                    Found::Overtaken => (QueueMetric::Overtaken, 1),
                    Found::Comparisons(number) => (QueueMetric::MatchAttempts, number.into()),
                };
                let (callpath, location) = message.place;
                moments.push(Moment { metric, callpath, location, time: message.posted, value });
            });
        }
        moments.retain(|moment| moment.value != 0);
        moments
    }
}
