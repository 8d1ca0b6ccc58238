//! The small programs that figures of the publications show.

use crate::Start;
use crate::collective::Departure;
use crate::definitions::Region;
use crate::gats::Epoch;
use crate::script::{Blocking, Costs, Script, Step};

/// Bytes of a put or a message.
const BYTES: u64 = 4096;

fn script<'a>(
    start: &'a Start,
    group: impl Fn(u32) -> Vec<u32>,
    steps: impl Fn(u32) -> Vec<Step>,
    work: impl Fn(u32, usize, usize) -> i64 + Sync + 'a,
) -> Script<'a> {
    let nothing = vec![Vec::new(); start.ranks as usize];
    Script {
        windows: 1,
        groups: (0..start.ranks).map(|rank| group(rank).into_iter().filter(|&of| of < start.ranks).collect()).collect(),
        first: nothing.clone(),
        body: (0..start.ranks).map(steps).collect(),
        last: nothing,
        work: Box::new(work),
        blocking: Blocking::Start,
        barrier: Departure::default(),
        costs: Costs::default(),
    }
}

/// A delay two processes away (`EuroMPI`'13, figure 3), by threes of processes: the first works too long in `foo` and
/// sends to the second, which therefore posts late; so the third waits in start. The first accesses the second as well.
pub(crate) fn late_post(start: &Start) -> Script<'_> {
    let role = |rank: u32| rank % 3;
    // The last three may lack members; then nothing happens in it.
    let is_whole = |rank: u32| rank - role(rank) + 2 < start.ranks;
    let group = |rank: u32| match role(rank) {
        1 if is_whole(rank) => vec![rank - 1, rank + 1],
        0 => vec![rank + 1],
        _ => vec![rank - 1],
    };
    let steps = |rank: u32| {
        if !is_whole(rank) {
            return vec![Step::Work(Region::Bar)];
        }
        let epoch = Epoch { window: 0, group: rank };
        let access =
            |target| [Step::Start(epoch), Step::Put { window: 0, target, bytes: BYTES }, Step::Complete(epoch)];
        match role(rank) {
            0 => {
                let mut steps = vec![Step::Work(Region::Foo), Step::Send { receiver: rank + 1, bytes: BYTES }];
                steps.extend(access(rank + 1));
                steps
            }
            1 => {
                let receive = Step::Receive { sender: rank - 1, bytes: BYTES };
                vec![Step::Work(Region::Bar), receive, Step::Post(epoch), Step::Work(Region::Bar), Step::Wait(epoch)]
            }
            _ => {
                let mut steps = vec![Step::Work(Region::Bar)];
                steps.extend(access(rank - 1));
                steps
            }
        }
    };
    let work = move |rank: u32, _, _| {
        let work = i64::from(start.spec.work);
        if role(rank) == 0 { work + (work as f64 * start.spec.imbalance) as i64 } else { work }
    };
    script(start, group, steps, work)
}

/// A put between post, start, complete and wait (Euro-Par'05, figure 3), by pairs: the second process puts to the
/// first.
pub(crate) fn put_gats(start: &Start) -> Script<'_> {
    let is_alone = |rank: u32| rank.is_multiple_of(2) && rank + 1 == start.ranks;
    let steps = |rank: u32| {
        let epoch = Epoch { window: 0, group: rank };
        if is_alone(rank) {
            Vec::new()
        } else if rank.is_multiple_of(2) {
            vec![Step::Post(epoch), Step::Wait(epoch)]
        } else {
            vec![Step::Start(epoch), Step::Put { window: 0, target: rank - 1, bytes: BYTES }, Step::Complete(epoch)]
        }
    };
    script(start, |rank| vec![rank ^ 1], steps, |_, _, _| 0)
}
