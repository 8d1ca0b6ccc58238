//! From wait states to pairs and marks: what the root causes are computed from.
//!
//! | wait | the waiting point | the causing point | time of the calls after the synchronization |
//! |---|---|---|---|
//! | Late Sender | receive record | send record | `[L(own) − L(other)]+` |
//! | Late Receiver | completion of the send | request of the receive | the same |
//! | collective operations | end record | end record | [`Meeting`] |
//! | Late Post, Early Wait | Leave | Leave | `[L(own) − L(other)]+` |
//! | Wait for Progress | Leave | behind the Enter of the call that brings progress | `[L − E(progress)]+`; all of it |
//! | contention | Leave | behind the Leave of the release | all that is not waiting; nothing |
//!
//! *Source*: PATTERNS 6.2 and 15 (decisions 4 to 8); thesis definitions 5 and 7.

use super::points::{Anchor, Meets, Pair, Place, Relation};
use super::states::States;
use super::{Class, CostModel, Key, Mark, Seeds, threads};
use crate::calls::Calls;
use crate::severity::Metric;
use crate::trace::{NONE, Shard, Trace};
use crate::waits::WaitState;
use crate::waits::meeting::{Meeting, With};

/// Number of waits of which the causes are looked up together.
const TOGETHER: usize = 64;

/// Collects what is known of a shard's locations as waiters; `first` is the position of its first wait state.
pub(super) fn collect<'a>(
    trace: &Trace,
    shard: &Shard,
    model: CostModel,
    (first, waits, calls): (usize, &'a [WaitState], &Calls),
    meetings: impl Iterator<Item = &'a Meeting>,
) -> Seeds {
    let mut seeds = Seeds { pairs: Vec::with_capacity(waits.len()), ..Seeds::default() };
    let mut states = States::new(shard, waits, first);
    let of_two = |(wait, state): (&'a WaitState, u32)| {
        let class = Class::of(wait.kind).filter(|class| wait.cause_instance != NONE && counts(*class, model))?;
        Some(OfTwo { class, places: places(class)?, wait, state })
    };
    let mut of_two = waits.iter().zip(first as u32..).filter_map(of_two).peekable();
    let (mut together, mut times) = (Vec::with_capacity(TOGETHER), Vec::with_capacity(TOGETHER));
    while of_two.peek().is_some() {
        together.clear();
        together.extend(of_two.by_ref().take(TOGETHER));
        let causes = together.iter().map(|OfTwo { wait, .. }| (wait.cause_location, wait.cause_instance));
        calls.times(trace, causes, &mut times);
        seeds.pairs.extend(together.iter().zip(&times).map(|(wait, &times)| wait.pair(shard, model, times)));
    }
    // In the order of the events, as the waits are, all that is looked up lies together.
    let mut meetings: Vec<(u32, &Meeting)> =
        meetings.map(|meeting| (shard.instances.enter[meeting.call.1 as usize], meeting)).collect();
    meetings.sort_by_key(|&(enter, _)| enter);
    seeds.marks.reserve(meetings.len());
    for (_, meeting) in meetings {
        if let Some(class) = Class::of(meeting.kind).filter(|class| counts(*class, model)) {
            meet(trace, shard, class, &mut states, meeting, &mut seeds);
        }
    }
    seeds.pairs.shrink_to_fit();
    threads::collect(trace, shard, &mut states, &mut seeds);
    let position = |pair: &Pair| {
        let cause = &trace.world.locations[pair.cause.location as usize];
        pair.waiter.position(trace, cause.process)
    };
    seeds.order = seeds.pairs.iter().zip(0..).map(|(pair, i)| Key::new(position(pair), i)).collect();
    // The waits of one for one are in order, and those of many as well.
    seeds.order.sort();
    seeds
}

fn counts(class: Class, model: CostModel) -> bool {
    model == CostModel::Thesis || class.is_known_to_scalasca()
}

/// Where the two sides of a wait of one for one are; `None` for those of many, which come as meetings.
fn places(class: Class) -> Option<(Place, Place)> {
    Some(match class {
        Class::LateSender => (Place::Receive, Place::Send),
        Class::LateReceiver => (Place::Send, Place::Receive),
        Class::LatePost | Class::EarlyWait => (Place::Leave, Place::Leave),
        Class::Progress => (Place::Leave, Place::Begin),
        Class::Lock => (Place::Leave, Place::Behind),
        _ => return None,
    })
}

/// A wait of one for one.
struct OfTwo<'a> {
    class: Class,
    /// Where it waits, and for what.
    places: (Place, Place),
    wait: &'a WaitState,
    /// Position among all.
    state: u32,
}

impl OfTwo<'_> {
    /// The pair that it makes, with Enter and Leave of the causing call.
    fn pair(&self, shard: &Shard, model: CostModel, (cause_enter, cause_leave): (i64, i64)) -> Pair {
        let Self { class, places, wait, state } = *self;
        let (own, other) = ((wait.location, wait.instance), (wait.cause_location, wait.cause_instance));
        let leave = shard.leave(own.1);
        let (completion, cause_completion) = match class {
            // Release 2.6 has the comparison reversed: the completion of the waiting side is none or even negative.
            Class::LateReceiver if model == CostModel::Scalasca => {
                ((leave - cause_leave).min(0), (cause_leave - leave).max(0))
            }
            Class::Progress => ((leave - cause_enter).max(0), cause_leave - cause_enter),
            _ => ((leave - cause_leave).max(0), (cause_leave - leave).max(0)),
        };
        let (relation, end) = match class {
            Class::Lock => (Relation::Contention, cause_leave),
            _ => (Relation::Pair, cause_enter),
        };
        Pair {
            class,
            relation,
            comm: NONE,
            waiter: Anchor::new(own, places.0),
            cause: Anchor::new(other, places.1),
            waiting: wait.waiting,
            held: end.min(leave) - shard.enter(own.1),
            completion,
            cause_completion,
            state,
        }
    }
}

fn meet(trace: &Trace, shard: &Shard, class: Class, states: &mut States, meeting: &Meeting, seeds: &mut Seeds) {
    let place = match meeting.kind {
        Metric::BarrierWait | Metric::WaitNxN | Metric::LateBroadcast | Metric::EarlyReduce => Place::Collective,
        _ => Place::Leave,
    };
    let anchor = Anchor::new(meeting.call, place);
    let total = shard.leave(meeting.call.1) - shard.enter(meeting.call.1);
    let everybody = |comm: u32| comm == NONE || trace.world.comms[comm as usize].size == trace.world.processes.len();
    let meets = match meeting.with {
        With::All if everybody(meeting.comm) => Meets::Everybody,
        With::All => Meets::Members { comm: meeting.comm },
        With::Set(set) => Meets::Some { comm: meeting.comm, set },
        With::Cause => Meets::Nobody,
    };
    if meets != Meets::Nobody {
        let Meeting { waiting, completion, .. } = *meeting;
        seeds.marks.push(Mark { anchor, class, meets, waiting, total, completion });
    }
    let charged = class != Class::Library && meeting.cause.1 != NONE && meeting.cause != meeting.call;
    if charged && (meeting.waiting > 0 || meets == Meets::Nobody) {
        seeds.pairs.push(Pair {
            class,
            relation: if meets == Meets::Nobody { Relation::Pair } else { Relation::Group },
            comm: meeting.comm,
            waiter: anchor,
            cause: Anchor::new(meeting.cause, place),
            waiting: meeting.waiting,
            held: meeting.waiting,
            completion: meeting.completion,
            cause_completion: meeting.cause_completion,
            state: states.find(meeting.kind, meeting.call.1),
        });
    }
}
