//! Messages that a process began and completed, in its own order: who could still wait for whom when it ended.

use rustc_hash::FxHashMap;

use crate::error::Result;
use crate::expand::Job;
use crate::format::{Call, PEER_ANY, RequestKind, TAG_ANY, flags};
use crate::functions::{Class, FUNCTIONS};
use crate::libraries::ranges;
use crate::requests::listed;
use crate::spool::{Slot, call as decoded, extension};

/// One end of a message.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Message {
    pub(crate) sends: bool,
    /// Communicator, as the process numbers it.
    pub(crate) object: u32,
    pub(crate) peer: i32,
    pub(crate) tag: i32,
    /// It is complete only once it is received.
    pub(crate) is_synchronous: bool,
}

impl Message {
    /// Whether a message that `peer` sends with a tag could be this receive's.
    pub(crate) fn takes(&self, peer: i32, tag: i32) -> bool {
        !self.sends && [peer, PEER_ANY].contains(&self.peer) && [tag, TAG_ANY].contains(&self.tag)
    }
}

/// What happens to a message.
#[derive(Debug, Clone, Copy)]
pub(crate) enum Step {
    /// It is begun, with the id of its request; 0 for a blocking call.
    Begins(Message, u64),
    /// It is complete; a receive with its real source and tag.
    Ends(Message, u64),
    /// The request is not active any more.
    Stops(u64),
}

/// The messages in partitions of a request. Each begins when all its partitions are ready.
#[derive(Debug, Default)]
struct InPartitions {
    /// What they are alike in, once one has been started.
    message: Option<Message>,
    /// How often each partition was made ready.
    ready: Vec<u64>,
    /// How many have begun.
    begun: u64,
}

impl InPartitions {
    /// A call makes a range of so many partitions ready.
    fn make_ready(&mut self, (first, last): (i32, i32), count: u32) {
        self.ready.resize(count as usize, 0);
        for partition in first.max(0)..=last {
            if let Some(times) = self.ready.get_mut(partition as usize) {
                *times += 1;
            }
        }
    }

    /// Tells of those that have begun since.
    fn settle(&mut self, id: u64, tell: &mut impl FnMut(Step)) {
        let Some(message) = self.message else { return };
        let all = self.ready.iter().copied().min().unwrap_or(0);
        for _ in self.begun..all {
            tell(Step::Begins(message, id));
        }
        self.begun = self.begun.max(all);
    }
}

/// Tells of all messages of a process.
pub(crate) fn each(job: &Job<'_>, mut tell: impl FnMut(Step)) -> Result<()> {
    // Threads may make ready what another one starts.
    let surveyed = job.threads.iter().flat_map(|(_, survey, _)| survey.partitioned.keys());
    let mut partitioned: FxHashMap<u64, InPartitions> = surveyed.map(|id| (*id, InPartitions::default())).collect();
    for (number, survey, _) in job.threads {
        let mut slots = job.process.slots(*number)?;
        let (mut class, mut call) = (Class::Plain, Call::default());
        for _ in 0..survey.slots {
            let Some(slot) = slots.next()? else { break };
            let is_call = extension(slot).is_none();
            if is_call {
                call = decoded(slot);
                let function = &FUNCTIONS[usize::from(call.function)];
                class = function.class;
                if function.name == "MPI_Psend_init" {
                    partitioned.entry(call.id).or_default();
                }
            }
            if class == Class::Pready && call.leave != 0 && call.flags & flags::FAILED == 0 {
                if let Some(messages) = partitioned.get_mut(&call.id) {
                    let first = is_call.then_some((call.peer, call.tag));
                    first.into_iter().chain(ranges(slot)).for_each(|range| messages.make_ready(range, call.bytes));
                    messages.settle(call.id, &mut tell);
                }
                continue;
            }
            of_slot(class, is_call.then_some(&call), slot, &mut |step| match step {
                Step::Begins(message @ Message { sends: true, .. }, id) if partitioned.contains_key(&id) => {
                    let messages = partitioned.entry(id).or_default();
                    messages.message = Some(message);
                    messages.settle(id, &mut tell);
                }
                step => tell(step),
            });
        }
    }
    Ok(())
}

/// Tells of a call, or of the requests that an extension lists.
fn of_slot(class: Class, call: Option<&Call>, slot: &Slot, tell: &mut impl FnMut(Step)) {
    if let Some(call) = call {
        return of_call(class, call, tell);
    }
    for item in listed(slot) {
        let message =
            |sends| Message { sends, object: item.object, peer: item.peer, tag: item.tag, is_synchronous: false };
        let Some(sends) = direction(item.kind) else {
            // Ids of other kinds are counted by themselves.
            if item.kind == RequestKind::Cancelled as u8 {
                tell(Step::Stops(item.id));
            }
            continue;
        };
        tell(if class == Class::Startall {
            Step::Begins(message(sends), item.id)
        } else {
            Step::Ends(message(sends), item.id)
        });
    }
}

/// Whether a request is of a send or of a receive.
fn direction(kind: u8) -> Option<bool> {
    if kind == RequestKind::Send as u8 { Some(true) } else { (kind == RequestKind::Receive as u8).then_some(false) }
}

/// The receive of a call that sends as well and has not returned.
pub(crate) fn receives(call: &Call) -> Message {
    let (peer, tag) =
        if call.flags & flags::ASKED == 0 { (PEER_ANY, TAG_ANY) } else { (call.source, call.arrived_tag) };
    Message { sends: false, object: call.object, peer, tag, is_synchronous: false }
}

fn of_call(class: Class, call: &Call, tell: &mut impl FnMut(Step)) {
    let (returned, failed) = (call.leave != 0, call.flags & flags::FAILED != 0);
    if returned && failed {
        return;
    }
    let asked = |sends| Message {
        sends,
        object: call.object,
        peer: call.peer,
        tag: call.tag,
        is_synchronous: sends && ["MPI_Ssend", "MPI_Issend"].contains(&FUNCTIONS[usize::from(call.function)].name),
    };
    let came = Message { peer: call.source, tag: call.arrived_tag, ..asked(false) };
    match class {
        Class::Send => tell(Step::Begins(asked(true), 0)),
        Class::Isend => tell(Step::Begins(asked(true), call.id)),
        Class::Sendrecv => {
            tell(Step::Begins(asked(true), 0));
            tell(if returned { Step::Ends(came, 0) } else { Step::Begins(receives(call), 0) });
        }
        Class::Isendrecv => {
            tell(Step::Begins(asked(true), call.id));
            tell(Step::Begins(came, call.id.wrapping_add(1)));
        }
        Class::Recv | Class::Mrecv => {
            tell(if returned { Step::Ends(came, 0) } else { Step::Begins(asked(false), 0) });
        }
        Class::Irecv => tell(Step::Begins(asked(false), call.id)),
        // Of a message that was probed: which one is not told here.
        Class::Imrecv => tell(Step::Begins(Message { peer: PEER_ANY, tag: TAG_ANY, ..asked(false) }, call.id)),
        Class::Start => {
            if let Some(sends) = direction(call.kind()) {
                tell(Step::Begins(asked(sends), call.id));
            }
        }
        Class::Wait | Class::Waitany | Class::Test | Class::Testany if returned && call.flags & flags::LISTED == 0 => {
            match direction(call.kind()) {
                Some(sends) => tell(Step::Ends(Message { sends, ..came }, call.id)),
                None if call.kind() == RequestKind::Cancelled as u8 => tell(Step::Stops(call.id)),
                None => {}
            }
        }
        _ => {}
    }
}
