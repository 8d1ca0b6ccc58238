//! Calling contexts: whole call paths in place of single regions.
//!
//! ```text
//!  CallingContextEnter  main/step/exchange/MPI_Waitall   10 ......... enters what is missing
//!  CallingContextLeave  the same                         12 ......... leaves MPI_Waitall
//!  CallingContextSample main/step/physics                25 ......... changes nothing
//!  CallingContextEnter  main/step/MPI_Allreduce          40 ......... left exchange at 12, its last event
//! ```
//!
//! A region that an event names only as part of a path (its *caller*) is entered at the first and left at the last event
//! of those that name it: nothing tells what happened between them. What samples saw stays apart, so that the tree is the
//! same with and without them. The unwind distance, which counts from the sample before, is therefore not used.

use whywait_otf2::Event;
use whywait_otf2::records::TypedValue;

use super::decoder::Decoder;
use crate::diagnostics::DiagnosticKind;
use crate::ids::NONE;
use crate::trace::call_samples::{CallSample, keep};
use crate::trace::regions::Regions;

impl Decoder<'_> {
    /// Enters the innermost region of a calling context.
    pub(super) fn enter_context(&mut self, time: i64, context: u32) {
        let Some(node) = self.definitions.calling_context(context) else {
            self.note(DiagnosticKind::UnknownRecord, time);
            return;
        };
        if node.parent != self.state.contexts.current {
            let common = self.unwind_to(time, node.parent);
            let path = std::mem::take(&mut self.state.contexts.path);
            for &key in &path[common..] {
                self.push(time, key);
                self.state.contexts.callers.push(self.state.outer.len());
            }
            self.state.contexts.path = path;
        }
        self.push(time, self.regions.key(node.region));
        self.state.contexts.current = context;
    }

    /// Leaves the innermost region of a calling context.
    pub(super) fn leave_context(&mut self, time: i64, context: u32) {
        let Some(node) = self.definitions.calling_context(context) else {
            self.note(DiagnosticKind::UnknownRecord, time);
            return;
        };
        let key = self.regions.key(node.region);
        if context != self.state.contexts.current || self.state.top.key != key {
            let common = self.unwind_to(time, context);
            if common == 0 || common < self.state.contexts.path.len() {
                self.note(DiagnosticKind::LeaveWithoutEnter, time);
                self.state.contexts.current = NONE;
                return;
            }
        }
        self.forget_callers(self.state.outer.len() - 1);
        self.pop(time);
        self.state.contexts.current = node.parent;
    }

    /// Leaves what a calling context does not have, and puts its regions into the buffer; returns how many are open.
    fn unwind_to(&mut self, time: i64, context: u32) -> usize {
        let mut path = std::mem::take(&mut self.state.contexts.path);
        path.clear();
        let mut next = context;
        while let Some(node) = self.definitions.calling_context(next) {
            path.push(self.regions.key(node.region));
            // A longer path than there are contexts is a circle.
            if path.len() > self.definitions.calling_contexts.len() {
                self.note(DiagnosticKind::UnknownRecord, time);
                path.clear();
                break;
            }
            next = node.parent;
        }
        path.reverse();
        // Calling contexts do not contain the program region at the root.
        let base = usize::from(self.state.outermost().is_some_and(|frame| Regions::is_program(frame.key)));
        let open = self.state.outer.iter().chain([&self.state.top]).skip(1 + base);
        let common = open.zip(&path).take_while(|(frame, key)| frame.key == **key).count();
        while self.state.outer.len() > base + common {
            if !self.leave_caller(time) {
                let entered = self.shard.events.time[self.state.top.enter as usize];
                self.note(DiagnosticKind::NeverLeft, time);
                self.diagnostics.assume(DiagnosticKind::NeverLeft, time - entered);
                self.pop(time);
            }
        }
        self.state.contexts.path = path;
        common
    }

    /// Forgets callers that are not among this number of open regions.
    fn forget_callers(&mut self, open: usize) {
        let callers = &mut self.state.contexts.callers;
        while callers.last().is_some_and(|&depth| depth > open) {
            callers.pop();
        }
    }

    /// Leaves the innermost region at the last event, if it is a caller.
    fn leave_caller(&mut self, time: i64) -> bool {
        self.forget_callers(self.state.outer.len());
        if self.state.contexts.callers.last() != Some(&self.state.outer.len()) {
            return false;
        }
        self.state.contexts.callers.pop();
        // Records in the region itself also show that it went on.
        let last = if self.state.top.instance.is_some() { time } else { self.state.since };
        self.pop(last);
        true
    }

    /// Leaves all innermost regions that are callers.
    pub(super) fn leave_callers(&mut self, time: i64) {
        while self.leave_caller(time) {
            self.state.contexts.current = NONE;
        }
    }

    /// Number of open regions that no record will leave.
    pub(super) fn open_callers(&mut self) -> usize {
        self.forget_callers(self.state.outer.len());
        self.state.contexts.callers.len()
    }

    /// Whether a record is a sample, or belongs to one.
    pub fn is_of_sample(&self, record: &Event<'_>) -> bool {
        match *record {
            Event::CallingContextSample { .. } => true,
            Event::Metric { metric, .. } => self.index.usage_classes.contains(metric),
            _ => false,
        }
    }

    /// Keeps a sample.
    pub(super) fn sample_context(&mut self, time: i64, context: u32, generator: u32, address: u32) {
        self.state.records += 1;
        if !self.bounds.range().contains(&time) {
            self.note(DiagnosticKind::ImpossibleTime, time);
            return;
        }
        let usage = keep(&mut self.shard.usages, self.state.contexts.usage.since_last());
        let events = self.shard.events.len() as u32;
        let time = time.max(self.state.now);
        self.shard.call_samples.rows.push(CallSample { time, context, generator, events, usage, address });
    }

    /// Takes over what a record of counters says about the next sample; returns whether it belongs to one.
    pub(super) fn update_usage(&mut self, metric: u32, values: impl Iterator<Item = TypedValue>) -> bool {
        let is_usage = self.index.usage_classes.update(metric, values, &mut self.state.contexts.usage.total);
        self.state.records += u64::from(is_usage);
        is_usage
    }
}
