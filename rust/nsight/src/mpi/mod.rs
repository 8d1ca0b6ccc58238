//! MPI: who communicates with whom, from what each process says of its own calls.
//!
//! ```text
//!  rows --program--> calls --communicators, requests--> posted --messages, collectives--> records of calls
//! ```
//!
//! The tables follow NVIDIA's published schema; no recorded file with rows of MPI was at hand.

mod align;
mod collectives;
mod communicators;
mod messages;
mod names;
mod program;
mod requests;

use rustc_hash::FxHashMap;
use whywait_devices::{Calls, Comm, GroupFacts};
use whywait_otf2::Event;

use self::communicators::{Communicator, Communicators};
pub(crate) use self::names::role;
pub(crate) use self::program::{Call, Program};
use self::requests::Request;
use crate::names::Names;
use crate::rows::CommRow;

/// A process as its communication is looked at.
pub(crate) struct Side<'a> {
    /// Its rank in the world.
    pub(crate) number: u32,
    /// Its clock, and that of which machine it is.
    pub(crate) clock: u32,
    pub(crate) machine: u32,
    pub(crate) names: &'a Names,
    pub(crate) program: &'a Program,
}

/// What was inferred, or could not be found out.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(crate) struct Counts {
    /// Communicators whose lists of members cannot be read.
    pub(crate) members_unread: u64,
    /// Calls on communicators that are not known.
    pub(crate) communicator_unknown: u64,
    /// Processes whose handle of the world is a guess, since nothing is recorded of it.
    pub(crate) world_inferred: u64,
    /// Requests whose completion is not traced.
    pub(crate) request_unseen: u64,
    /// Receives from any source or with any tag, by inference.
    pub(crate) wildcard_inferred: u64,
    /// Sends and receives without the other one, and those of ranks without a report.
    pub(crate) message_unmatched: u64,
    pub(crate) partner_missing: u64,
    /// Sends and receives whose number in their channel times tell, since reports begin in the midst of the run.
    pub(crate) message_aligned: u64,
    /// Receives with less room than what came.
    pub(crate) size_odd: u64,
    /// Whether the second of two rows of a call sends.
    pub(crate) second_sends: bool,
    /// Calls of operations that not all members take part in, and operations whose root is not known.
    pub(crate) collective_unmatched: u64,
    pub(crate) root_unknown: u64,
    /// Operations on windows of which all processes are taken for members.
    pub(crate) window_inferred: u64,
}

/// What all processes of a run do together.
#[derive(Debug, Default)]
pub(crate) struct Communication {
    /// The records of each process's calls.
    pub(crate) calls: Vec<Calls>,
    pub(crate) comms: Vec<Comm>,
    pub(crate) groups: Vec<GroupFacts>,
    pub(crate) counts: Counts,
    /// Ranks with requests whose completion is not traced.
    pub(crate) untraced: Vec<u32>,
}

/// When a record is to be sent with others of its call.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Moment {
    /// At the begin, before what the call itself starts.
    Before,
    Begin,
    End,
}

/// The records of a process while they are collected: call, moment, and order in it.
type Records = Vec<(u32, Moment, u32, Event<'static>)>;

/// A process with what is known of its calls.
struct Known<'a> {
    side: &'a Side<'a>,
    requests: Vec<Request>,
    /// The request that a row starts, by its call and place in it.
    by_row: FxHashMap<(u32, u32), Vec<u32>>,
    /// Calls in order of their begins.
    order: Vec<u32>,
    /// When its calls that begin and end MPI are over.
    landmarks: [Option<i64>; 2],
    /// When the last call is over that completes what was begun before all that is there.
    settled: i64,
}

impl Known<'_> {
    /// Whether all calls from the begin of the program on are there.
    const fn is_whole(&self) -> bool {
        self.landmarks[0].is_some()
    }

    /// The first call of the process that begins after a call of its own and not before a time, if there is one.
    fn next_call(&self, after: u32, time: i64) -> Option<u32> {
        let call = |number: &u32| &self.side.program.calls[*number as usize];
        let from = self.order.partition_point(|other| call(other).begin < time);
        let own = call(&after);
        let is_next = |other: &u32| call(other).thread == own.thread && call(other).begin >= own.end;
        self.order[from..].iter().copied().find(is_next)
    }
}

/// Finds out what processes, in order of their ranks, do together. `comms` has what each process records of communicators.
pub(crate) fn find(sides: &[Side<'_>], comms: &[(u32, CommRow)], world_size: u32) -> Communication {
    if sides.iter().all(|side| side.program.calls.is_empty()) {
        return Communication { calls: sides.iter().map(|_| Calls::default()).collect(), ..Communication::default() };
    }
    let communicators = Communicators::find(sides, comms, world_size);
    let known: Vec<Known<'_>> = sides.iter().map(Known::new).collect();
    let (members_unread, world_inferred) = (communicators.unread, communicators.worlds());
    let mut counts = Counts { members_unread, world_inferred, ..Counts::default() };
    let mut untraced = Vec::new();
    for Known { side, requests, .. } in &known {
        let unseen = requests.iter().filter(|request| request.completed.is_none()).count() as u64;
        counts.request_unseen += unseen;
        untraced.extend((unseen > 0).then_some(side.number));
    }
    let mut groups: Vec<GroupFacts> = communicators.list.iter().map(Communicator::facts).collect();
    let mut records: Vec<Records> = sides.iter().map(|_| Vec::new()).collect();
    messages::find(&known, &communicators, &mut records, (&mut counts, &mut groups));
    collectives::find(&known, &communicators, &mut records, (&mut counts, &mut groups));
    collectives::windows(&known, world_size as usize, &mut records, &mut counts);
    for (number, group) in (0..).zip(&mut groups) {
        group.comms = vec![number];
    }
    groups.retain(|group| group.instances + group.messages + group.unmatched + group.message_parts > 0);
    let calls = records.into_iter().zip(sides).map(|(records, side)| in_calls(records, side.program.calls.len()));
    Communication { calls: calls.collect(), comms: communicators.comms(), groups, counts, untraced }
}

impl<'a> Known<'a> {
    fn new(side: &'a Side<'a>) -> Self {
        let order = side.program.in_order();
        let (requests, settled) = requests::find(side.program, &order, side.names);
        let mut by_row: FxHashMap<(u32, u32), Vec<u32>> = FxHashMap::default();
        for (number, request) in (0..).zip(&requests) {
            by_row.entry(request.defined).or_default().push(number);
        }
        let end_of = |names: &[&str]| {
            let is_one = |call: &&Call| names.contains(&side.names.get(call.name));
            side.program.calls.iter().find(is_one).map(|call| call.end)
        };
        let landmarks = [end_of(&["MPI_Init", "MPI_Init_thread"]), end_of(&["MPI_Finalize"])];
        Self { side, requests, by_row, order, landmarks, settled }
    }
}

/// Brings the records of calls in the order in which they are sent.
fn in_calls(mut records: Records, count: usize) -> Calls {
    records.sort_by_key(|(call, moment, order, _)| (*call, *moment, *order));
    let mut calls = Calls::default();
    let mut rest = records.as_slice();
    for call in 0..count as u32 {
        let (own, others) = rest.split_at(rest.partition_point(|(of, ..)| *of == call));
        let (begin, end) = own.split_at(own.partition_point(|(_, moment, ..)| *moment != Moment::End));
        calls.add(begin.iter().map(|(.., event)| *event), end.iter().map(|(.., event)| *event));
        rest = others;
    }
    calls
}
