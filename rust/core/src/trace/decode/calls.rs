//! The stack of calls: what runs, since when, and the region instances that matter.

use super::decoder::Decoder;
use super::frames::{CallPathTotals, Frame};
use crate::diagnostics::DiagnosticKind;
use crate::ids::{CallPathId, InstanceId, NONE, ProcessId, RegionKey, WindowId};
use crate::trace::columns::{SyncKind, TaskWait};
use crate::trace::regions::{Library, RegionClass, Regions};

impl Decoder<'_> {
    /// Books the time of the innermost region up to `time`.
    #[inline(always)]
    pub(super) fn book(&mut self, time: i64) {
        if let Some(total) = self.totals.get_mut(self.state.top.callpath.index()) {
            total.time += time - self.state.since;
        }
        self.state.since = time;
    }

    #[inline(always)]
    pub(super) fn enter_key(&mut self, time: i64, key: RegionKey) {
        let time = self.advance(time);
        if self.state.outer.len() <= self.fold_from || !self.fold(time, key) {
            self.push(time, key);
        }
    }

    #[inline(always)]
    pub(super) fn push(&mut self, time: i64, key: RegionKey) {
        self.book(time);
        let callpath = if self.state.outer.len() == self.state.base {
            self.outermost_callpath(key)
        } else {
            self.shard.tree.child(self.state.top.callpath, key)
        };
        let enter = self.shard.events.enter(time, callpath);
        self.state.outer.push(self.state.top);
        self.state.top = Frame { callpath, key, enter, instance: InstanceId::NONE };
        if let Some(total) = self.totals.get_mut(callpath.index())
            && !total.remembered
        {
            total.visits += 1;
        } else {
            self.visit(callpath, key);
        }
    }

    /// Counts a visit of a call path that is new or whose instances matter.
    #[inline(never)]
    pub(super) fn visit(&mut self, callpath: CallPathId, key: RegionKey) {
        let class = self.regions.class(key);
        while self.totals.len() <= callpath.index() {
            let region = self.regions.class(self.shard.tree.region(CallPathId::at(self.totals.len())));
            // One-sided communication may make progress in any call of its library.
            let remembered = region.is_remembered()
                || (self.one_sided && region.library().is_some())
                || (self.index.has_streams
                    && (self.state.stream.is_some() || matches!(region, RegionClass::Device(_))));
            self.totals.push(CallPathTotals { visits: 0, time: 0, remembered });
        }
        let total = &mut self.totals[callpath];
        total.visits += 1;
        if total.remembered {
            self.remember(class);
        }
    }

    /// Opens the instance of a region that matters even without records inside.
    pub(super) fn remember(&mut self, class: RegionClass) {
        use RegionClass::{ArmciAllFence, FlushAll, ShmemAllocate, ShmemFinalize, ShmemFree, ShmemQuiet};
        let Some(instance) = self.instance() else { return };
        if class.is_shutdown() {
            self.state.span.shutdown = instance;
        }
        match class {
            RegionClass::Init if self.state.span.init.is_none() => self.state.span.init = instance,
            RegionClass::Finalize if self.state.span.finalize.is_none() => self.state.span.finalize = instance,
            RegionClass::ExplicitBarrier | RegionClass::ImplicitBarrier if !self.state.teams.is_empty() => {
                self.state.barriers.push(instance);
            }
            RegionClass::TaskWait | RegionClass::TaskGroup if !self.state.teams.is_empty() => {
                let task = self.state.tasks.running.as_ref().map_or(NONE, |running| running.number);
                self.state.taskwaits.push(TaskWait { instance, task, is_group: class == RegionClass::TaskGroup });
            }
            RegionClass::ExplicitBarrier | RegionClass::ImplicitBarrier if self.state.has_threads => {
                self.note(DiagnosticKind::BarrierWithoutTeam, self.state.now);
            }
            ShmemAllocate | ShmemFree | ShmemFinalize | ShmemQuiet | ArmciAllFence | FlushAll => {
                self.synchronize(self.state.now, WindowId::NONE, ProcessId::NONE, 0, SyncKind::Unrecorded);
            }
            RegionClass::Task => {
                if let Some(running) = self.state.tasks.running.as_mut().filter(|running| running.instance.is_none()) {
                    running.instance = instance;
                }
            }
            RegionClass::Parallel => {
                if let Some(&team) = self.state.teams.last() {
                    let team = &mut self.shard.teams.rows[team as usize];
                    if team.instance.is_none() {
                        team.instance = instance;
                    }
                }
            }
            class if class.library().is_some_and(|library| library != Library::Mpi) => {
                self.continue_collective(instance);
            }
            _ => {}
        }
    }

    #[inline(always)]
    pub(super) fn leave_key(&mut self, time: i64, key: RegionKey) {
        let time = self.advance(time);
        if self.state.top.key == key && self.state.folded.is_empty() {
            self.pop(time);
        } else {
            self.leave_out_of_order(time, key);
        }
    }

    #[cold]
    #[inline(never)]
    pub(super) fn leave_out_of_order(&mut self, time: i64, key: RegionKey) {
        if self.unfold(time, key) {
            return;
        }
        self.leave_callers(time);
        if self.state.top.key == key {
            return self.pop(time);
        }
        // No Leave names the frame at the bottom.
        let Some(depth) = self.state.outer.iter().skip(1).rposition(|frame| frame.key == key) else {
            self.note(DiagnosticKind::LeaveWithoutEnter, time);
            return;
        };
        // Regions inside are never left, or by another thread. When they ended is not known.
        let forced = self.state.outer.get(depth + 2).copied().unwrap_or(self.state.top);
        while self.state.outer.len() > depth + 1 {
            // What stands for an operation without end has no Leave.
            if self.state.top.key != Regions::IO {
                self.note(DiagnosticKind::NeverLeft, time);
            }
            self.pop(time);
        }
        if forced.key != Regions::IO {
            let entered = self.shard.events.time[forced.enter as usize];
            self.diagnostics.assume(DiagnosticKind::NeverLeft, time - entered);
        }
        self.pop(time);
        self.forget_folded();
    }

    #[inline(always)]
    pub(super) fn pop(&mut self, time: i64) {
        if let Some(around) = self.state.outer.pop() {
            self.book(time);
            let left = std::mem::replace(&mut self.state.top, around);
            let leave = self.shard.events.leave(time, left.callpath);
            if left.instance.is_some() {
                self.shard.instances.leave[left.instance] = leave;
            }
            if self.state.outer.len() <= self.state.base && self.state.base > 0 {
                self.leave_task(time);
            }
        }
    }

    /// Puts a buffer flush into the columns as soon as an event after its begin arrives.
    ///
    /// The measurement system flushes while it records an event whose time it has already read, so the flush comes
    /// after all events of the same time.
    #[inline(never)]
    pub(super) fn settle_flush(&mut self, time: i64) {
        if let Some((begin, end)) = self.state.flush
            && time > begin
        {
            self.state.flush = None;
            self.state.until = self.bounds.last;
            self.enter_key(begin, Regions::BUFFER_FLUSH);
            let end = self.advance(end.min(time));
            self.pop(end);
        }
    }

    /// The region instance around the current event; `None` outside of any region.
    #[inline(always)]
    pub(super) fn instance(&mut self) -> Option<InstanceId> {
        let top = &mut self.state.top;
        if top.instance.is_none() {
            if top.callpath.is_none() {
                return None;
            }
            top.instance = self.shard.instances.open(top.enter);
        }
        Some(top.instance)
    }

    /// The region instance around a communication record, which must be there.
    #[inline(always)]
    pub(super) fn communicating(&mut self, time: i64) -> Option<InstanceId> {
        let instance = if self.state.stream.is_some() { self.communicating_kernel() } else { self.instance() };
        if instance.is_none() {
            self.note(DiagnosticKind::OutsideRegion, time);
        }
        instance
    }
}
