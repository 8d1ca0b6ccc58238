//! Polling: what is recorded of a run of tests.

use crate::context::Context;
use crate::format::{Extension, Polls, flags};
use crate::runs::{self, PLACES, Run};
use crate::table::{Class, Role};

/// Whether a test found what it asked for.
fn found(context: &Context) -> bool {
    match context.function.class {
        Class::ShmemTest => context.value as i32 != 0,
        Class::Testsome => context.returned_int(Role::Outcount) > 0,
        // Nothing can come of a request that is not active.
        Class::Test => context.returned_int(Role::Flag) != 0 && context.taken() && context.request.active,
        Class::Testany => context.returned_int(Role::Flag) != 0 && context.returned_int(Role::Index) >= 0,
        _ => context.returned_int(Role::Flag) != 0,
    }
}

/// A test returned, and its slot is written.
pub(crate) fn tested(context: &mut Context) {
    if !context.record || !runs::is_on() {
        return;
    }
    // SAFETY: the slot of the call.
    let Some(call) = (unsafe { context.slot.as_mut() }) else { return };
    let (from, to) = (context.from, context.thread.cursor());
    let failed = context.code != 0;
    let found = !failed && found(context);
    let thread = &mut *context.thread;
    let run = &mut thread.run;
    // Nothing else was recorded meanwhile, and the slots of this call follow in the same chunk.
    let follows = !run.next.is_null() && run.next == from && from < to;
    let goes_on = follows && run.goes_on(call.enter);
    let is_known = goes_on && run.knows(call);
    if found || failed {
        call.flags |= if found && is_known { flags::POLLED } else { 0 };
        *run = Run::NONE;
    } else if !goes_on || !is_known && run.used == PLACES {
        run.begin(call, to, follows);
    } else if !is_known {
        call.flags |= flags::POLLS;
        run.add(call);
        run.polls = std::ptr::null_mut();
        run.extend(call.leave, to);
    } else {
        let (enter, leave) = (call.enter, call.leave);
        thread.retract(from);
        if thread.run.polls.is_null() {
            thread.extension(Extension::Polls, 0, Polls { until: leave, ..Polls::default() });
            thread.run.polls = from.cast();
        }
        // SAFETY: the slot was written just now, or it is the one before `from` in the same chunk.
        let polls = unsafe { &mut *thread.run.polls };
        polls.until = leave;
        polls.count += 1;
        polls.inside += leave.wrapping_sub(enter);
        let next = thread.cursor();
        thread.run.extend(leave, next);
    }
}
