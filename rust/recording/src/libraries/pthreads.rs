//! POSIX threads: who has a lock, and who makes and awaits whom.

use whywait_otf2::Event;
use whywait_otf2::enums::Paradigm;

use super::library::{Called, Process, Records};
use crate::format::{Call, NONE};
use crate::functions::{Class, Function};
use crate::model::Regions;
use crate::thread::{Out, Thread};

/// Nothing has to be remembered.
#[derive(Debug)]
pub(crate) struct Pthreads;

impl Records for Pthreads {
    fn enter(&mut self, out: &mut Out<'_>, called: &Called<'_>, process: &mut Process<'_>) {
        let Called { function, call, bytes, .. } = called;
        match function.class {
            Class::ThreadUnlock | Class::ThreadCondition => lock(out, call.enter, call.object, *bytes, false),
            Class::ThreadCreate => {
                if let Some(thread_contingent) = process.contingent.filter(|_| *bytes != 0) {
                    out.put(call.enter, &Event::ThreadCreate { thread_contingent, sequence_count: *bytes });
                }
            }
            _ => {}
        }
    }

    fn leave(&mut self, out: &mut Out<'_>, called: &Called<'_>, process: &mut Process<'_>) {
        let call = &called.call;
        match called.function.class {
            Class::ThreadLock | Class::ThreadCondition => lock(out, call.leave, call.object, call.id, true),
            Class::ThreadJoin => {
                if let Some(thread_contingent) = process.contingent.filter(|_| call.id != 0) {
                    out.put(call.leave, &Event::ThreadWait { thread_contingent, sequence_count: call.id });
                }
            }
            _ => {}
        }
    }

    /// Time was up, or the owner had died: the thread has the lock all the same.
    fn records_failures(&self, function: &Function) -> bool {
        matches!(function.class, Class::ThreadLock | Class::ThreadCondition)
    }
}

/// A thread has or gives up a lock.
fn lock(out: &mut Out<'_>, time: u64, lock_id: u32, order: u64, acquires: bool) {
    let Ok(acquisition_order) = u32::try_from(order) else { return };
    let model = Paradigm::PTHREAD;
    if order == 0 || lock_id == NONE {
        return;
    }
    if acquires {
        out.put(time, &Event::ThreadAcquireLock { model, lock_id, acquisition_order });
    } else {
        out.put(time, &Event::ThreadReleaseLock { model, lock_id, acquisition_order });
    }
}

/// A thread begins or ends.
pub(crate) fn moment(
    thread: &mut Thread<'_>,
    function: &Function,
    call: &Call,
    contingent: Option<u32>,
    regions: &Regions,
) {
    let Some(thread_contingent) = contingent else { return };
    let (time, sequence_count) = (call.enter, call.id);
    if function.class == Class::ThreadBegin {
        thread.out.put(time, &Event::ThreadBegin { thread_contingent, sequence_count });
        thread.begun = Some(time);
    } else {
        thread.leave_functions(time, regions);
        thread.out.put(time, &Event::ThreadEnd { thread_contingent, sequence_count });
    }
}
