//! Whether calls that send take until their receiver calls the library: the transfer needs both of them.
//!
//! ```text
//!  sender    ---[ Send: needed | held up       ]---
//!  receiver  [ Irecv ]-------- computes -----[ Wait ]---
//! ```

use bitcode::{Decode, Encode};
use rustc_hash::FxHashMap;

use super::calls::{Calls, sum_by_callpath};
use crate::Result;
use crate::account::activities::Activity;
use crate::ids::{CallPathId, LocationId};
use crate::parallel::exchange::{Inbox, Outbox};
use crate::parallel::iter::prelude::*;
use crate::trace::{NONE, Shard};

/// The calls of a call path that send or complete sends.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct HeldUp {
    /// The call path.
    pub callpath: CallPathId,
    /// Calls that are held up by a receiver that does not call the library.
    pub calls: u64,
    /// Their excess, ticks.
    pub ticks: i64,
    /// The excess of all calls that send at least as much as the smallest of these, ticks.
    pub all: i64,
    /// The smallest and the largest message that is held up, bytes.
    pub bytes: (u64, u64),
}

/// The share of an excess that lies before the receiver's next call.
const BEFORE: f64 = 0.8;

pub(super) fn find(calls: &Calls<'_>) -> Result<Vec<HeldUp>> {
    let trace = calls.trace;
    let of_shards = trace.par_shards().map(|shard| slow(calls, shard));
    let (mut of_shards, questions): (Vec<Vec<Slow>>, Vec<Outbox<Question>>) = of_shards.unzip();
    // Of receivers elsewhere, others know.
    let arrived = trace.exchange.alltoallv(questions)?;
    let answer = |inbox: Inbox<Question>| {
        let (mut held, mut near) = (trace.exchange.outbox(), 0);
        let asked = inbox.into_vec();
        for question in
            asked.into_iter().filter(|question| is_held(calls, question.receiver, &question.excess, &mut near))
        {
            held.push(question.shard, question.number);
        }
        held
    };
    let answers = trace.exchange.alltoallv(arrived.into_par_iter().map(answer).collect())?;
    for (of_shard, held) in of_shards.iter_mut().zip(answers) {
        held.into_vec().into_iter().for_each(|number| of_shard[number as usize].is_held = true);
        // Of a call that completes several sends, the one that is held up counts.
        of_shard.sort_by_key(|slow| (slow.leave, !slow.is_held));
        of_shard.dedup_by_key(|slow| slow.leave);
    }
    let all: Vec<Slow> = trace.exchange.gatherv(of_shards.into_iter().flatten())?;
    let Some(least) = all.iter().filter(|call| call.is_held).map(|call| call.bytes).min() else {
        return Ok(Vec::new());
    };
    let rows = all.iter().filter(|call| call.bytes >= least).map(|call| {
        let (number, ticks) = if call.is_held { (1, call.excess) } else { (0, 0) };
        let bytes = if call.is_held { (call.bytes, call.bytes) } else { (u64::MAX, 0) };
        HeldUp { callpath: call.callpath, calls: number, ticks, all: call.excess, bytes }
    });
    let rows = rows.collect();
    let mut sums = sum_by_callpath(
        rows,
        |row| row.callpath,
        |sum: &mut HeldUp, row| {
            sum.calls += row.calls;
            sum.ticks += row.ticks;
            sum.all += row.all;
            sum.bytes = (sum.bytes.0.min(row.bytes.0), sum.bytes.1.max(row.bytes.1));
        },
    );
    sums.retain(|row| row.calls > 0);
    Ok(sums)
}

/// A call with an excess that sends.
#[derive(Encode, Decode)]
struct Slow {
    callpath: CallPathId,
    /// The position of its Leave in its shard.
    leave: u32,
    excess: i64,
    bytes: u64,
    is_held: bool,
}

/// Whether a call of another shard is held up by a receiver.
#[derive(Clone, Copy, Encode, Decode)]
struct Question {
    receiver: LocationId,
    excess: Excess,
    /// The shard of the call, and its number among those that are slow there.
    shard: u32,
    number: u32,
}

/// The time in which a call takes longer than it needs: the last part of it.
#[derive(Clone, Copy, Encode, Decode)]
struct Excess {
    begin: i64,
    end: i64,
}

/// The calls of a shard with an excess that send, and what to ask others about them.
fn slow(calls: &Calls<'_>, shard: &Shard) -> (Vec<Slow>, Outbox<Question>) {
    let trace = calls.trace;
    let (mut found, mut questions) = (Vec::new(), trace.exchange.outbox());
    for location in shard.locations {
        // Sends to a receiver are in the order of time.
        let mut near: FxHashMap<LocationId, usize> = FxHashMap::default();
        for send in shard.sends.of(shard.local(location)) {
            if send.complete.is_none() || shard.instances.leave[send.complete] == NONE {
                continue;
            }
            let leave = shard.instances.leave[send.complete];
            let Some(call) = calls.at(location, leave).filter(|call| call.excess() > 0) else { continue };
            let end = shard.events.time[leave as usize];
            let excess = Excess { begin: end - call.excess(), end };
            let process = trace.definitions.processes.get(send.peer.index());
            let receiver = process.filter(|process| process.locations.len() > 0).map(|process| process.locations.start);
            let own = receiver.filter(|&receiver| trace.owns(receiver));
            if let (Some(receiver), None) = (receiver, own) {
                let number = found.len() as u32;
                let question = Question { receiver, excess, shard: trace.shard_of[location], number };
                questions.push(trace.shard_of[receiver], question);
            }
            let is_held =
                own.is_some_and(|receiver| is_held(calls, receiver, &excess, near.entry(receiver).or_default()));
            let callpath = shard.callpath(send.complete);
            found.push(Slow { callpath, leave, excess: call.excess(), bytes: send.bytes, is_held });
        }
    }
    (found, questions)
}

/// Whether a receiver computes while a call takes longer than it needs, and calls the library before it ends.
fn is_held(calls: &Calls<'_>, receiver: LocationId, excess: &Excess, near: &mut usize) -> bool {
    let (begin, end) = (excess.begin, excess.end);
    let first = calls.position_after(receiver, begin, near);
    if !calls.computes(receiver, first) {
        return false;
    }
    let shard = calls.trace.shard(receiver);
    let events_end = shard.events_of(receiver).end as u32;
    let is_call = |position: &u32| {
        let callpath = shard.events.callpath(*position);
        let activity = calls.callpaths.activities[callpath];
        !shard.events.is_leave(*position) && activity.is_library() && activity != Activity::Io
    };
    let mut within = (first..events_end).take_while(|&position| shard.events.time[position as usize] <= end);
    let next = within.find(is_call).map(|position| shard.events.time[position as usize]);
    next.is_some_and(|next| (next - begin) as f64 >= BEFORE * (end - begin) as f64)
}
