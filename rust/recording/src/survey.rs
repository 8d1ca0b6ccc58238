//! A first look at all slots: which functions and call paths occur, and when threads began and ended.

use std::collections::{BTreeMap, BTreeSet};

use rustc_hash::{FxHashMap, FxHashSet};

use crate::constructs;
use crate::error::Result;
use crate::format::{BEGINS, Call, Extension, flags};
use crate::functions::{Class, FUNCTIONS};
use crate::shmem_windows::Set;
use crate::spool::{Slots, call, extension, word};

/// A node of the tree of call paths.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Node {
    /// Return address.
    pub(crate) address: u64,
    /// The caller's node, 0 for none.
    pub(crate) parent: u32,
    /// When it was first seen.
    pub(crate) time: u64,
}

/// What the slots of a thread contain.
#[derive(Debug, Default)]
pub(crate) struct Survey {
    /// Number of calls.
    pub(crate) calls: u64,
    /// Number of slots that are whole and make sense. Those behind are not used.
    pub(crate) slots: u64,
    /// Which functions are called.
    pub(crate) functions: Vec<bool>,
    /// Which of them ended a run of tests.
    pub(crate) polled: BTreeSet<u16>,
    /// How many such runs there are, and how many tests in all of them.
    pub(crate) runs: (u64, u64),
    /// Tests of the present run.
    tests: u64,
    /// Functions that were called with processes of which nothing was recorded; how many such calls there are, and their ticks.
    pub(crate) unrecorded: BTreeSet<u16>,
    pub(crate) unrecorded_calls: (u64, u64),
    /// Nodes by number; the first stands for nothing.
    pub(crate) nodes: Vec<Node>,
    /// First and last time stamp.
    pub(crate) span: Option<(u64, u64)>,
    /// The last call, if it did not return.
    pub(crate) unfinished: Option<Call>,
    /// The last call that returned: its function, and when.
    pub(crate) returned: Option<(u16, u64)>,
    /// How many collective operations were entered on each communicator.
    pub(crate) collectives: FxHashMap<u32, u64>,
    /// Whether recording was switched off or on meanwhile.
    pub(crate) switched: bool,
    /// Constructs of OpenMP: functions of the table and addresses, each with the time when it was first seen.
    pub(crate) constructs: BTreeMap<(u16, u64), u64>,
    /// Requests of messages in partitions, with their number.
    pub(crate) partitioned: BTreeMap<u64, u32>,
    /// Active sets of OpenSHMEM's collective operations.
    pub(crate) sets: BTreeSet<Set>,
    /// Teams that the thread is in.
    pub(crate) teams: BTreeSet<u32>,
    /// Why the rest was not used.
    pub(crate) damage: Option<String>,
}

impl Survey {
    /// Of a thread without slots.
    pub(crate) fn none() -> Self {
        let root = Node { address: 0, parent: 0, time: 0 };
        Self { functions: vec![false; FUNCTIONS.len()], nodes: vec![root], ..Self::default() }
    }

    /// Reads all slots of a thread. On some communicators, nothing was recorded of the other processes.
    pub(crate) fn new(slots: &mut Slots, unrecorded: &FxHashSet<u32>) -> Result<Self> {
        let mut survey = Self::none();
        let mut pending = Vec::new();
        let mut last = None;
        while let Some(slot) = slots.next()? {
            let why = if let Some((kind, items)) = extension(slot) {
                survey.extension(kind, items, slot, &mut pending)
            } else {
                let found = call(slot);
                let why = survey.call(&found, &mut pending, &mut last);
                if why.is_none() && !unrecorded.is_empty() {
                    survey.note_unrecorded(&found, unrecorded);
                }
                why
            };
            if let Some(why) = why {
                survey.damage = Some(format!("{}: {why}", slots.place()));
                break;
            }
            survey.slots += 1;
        }
        survey.unfinished = last;
        Ok(survey)
    }

    #[inline]
    fn call(&mut self, call: &Call, pending: &mut Vec<Node>, last: &mut Option<Call>) -> Option<String> {
        let Some(used) = self.functions.get_mut(usize::from(call.function)) else {
            return Some(format!("there is no function {}", call.function));
        };
        if call.leave != 0 && call.leave < call.enter {
            return Some("a call returned before it was entered".into());
        }
        if call.node as usize >= self.nodes.len() + pending.len() {
            return Some(format!("there is no call path {}", call.node));
        }
        *used = true;
        let function = &FUNCTIONS[usize::from(call.function)];
        if function.class == Class::Coll {
            *self.collectives.entry(call.object).or_default() += 1;
        }
        if matches!(function.class, Class::Pready | Class::Parrived) && call.id != 0 {
            self.partitioned.insert(call.id, call.bytes);
        }
        if function.class == Class::ShmemColl {
            self.sets.extend(Set::of(call));
        }
        if function.class == Class::Omp {
            for key in constructs::keys(call) {
                self.constructs.entry(key).or_insert(call.enter);
            }
            if function.name == "omp_parallel" && call.peer == BEGINS {
                self.teams.insert(call.object);
            }
        }
        self.tests = if call.flags & (flags::POLLS | flags::POLLED) == 0 { 1 } else { self.tests.saturating_add(1) };
        if call.flags & flags::POLLED != 0 {
            self.polled.insert(call.function);
            self.runs = (self.runs.0 + 1, self.runs.1.saturating_add(self.tests));
        }
        self.calls = self.calls.saturating_add(1);
        if !pending.is_empty() {
            self.nodes.extend(pending.drain(..).map(|node| Node { time: call.enter, ..node }));
        }
        let end = call.enter.max(call.leave);
        let (first, until) = self.span.unwrap_or((call.enter, end));
        self.span = Some((first, until.max(end)));
        *last = (call.leave == 0).then_some(*call);
        if call.leave != 0 {
            self.returned = Some((call.function, call.leave));
        }
        None
    }

    fn note_unrecorded(&mut self, call: &Call, comms: &FxHashSet<u32>) {
        if FUNCTIONS[usize::from(call.function)].is_with(call.object, comms) {
            self.unrecorded.insert(call.function);
            let (calls, ticks) = self.unrecorded_calls;
            let taken = call.leave.saturating_sub(call.enter);
            self.unrecorded_calls = (calls + 1, ticks.saturating_add(taken));
        }
    }

    fn extension(&mut self, kind: u8, items: usize, slot: &[u8; 64], pending: &mut Vec<Node>) -> Option<String> {
        if kind == Extension::Nodes as u8 {
            for item in 0..items.min(3) {
                let (address, numbers) = (word(slot, 2 + 2 * item), word(slot, 3 + 2 * item));
                let (number, parent) = (numbers as u32 as usize, (numbers >> 32) as u32);
                if number != self.nodes.len() + pending.len() || parent as usize >= number {
                    return Some(format!("the call path {number} is not the next"));
                }
                pending.push(Node { address, parent, time: 0 });
            }
        }
        if kind == Extension::Polls as u8 {
            let further = word(slot, 2);
            (self.calls, self.tests) = (self.calls.saturating_add(further), self.tests.saturating_add(further));
        }
        self.switched |= kind == Extension::Switch as u8;
        let known = [
            Extension::Wide,
            Extension::Requests,
            Extension::Collective,
            Extension::Nodes,
            Extension::Stall,
            Extension::Switch,
            Extension::CountersEnter,
            Extension::CountersLeave,
            Extension::Polls,
            Extension::Partitions,
        ];
        (!known.iter().any(|known| *known as u8 == kind)).then(|| format!("there is no extension {kind}"))
    }
}
