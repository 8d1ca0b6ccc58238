//! Wait until: a PE waits until another PE changes its memory.
//!
//! ```text
//!  waiter  --[ wait_until |        ]----
//!  writer  ---------------[ put ]-------
//!            |------------|  waiting
//! ```
//!
//! *Definition*: the signal is the last put or atomic on the waiter that another process begins within the call;
//! waiting = Enter(signal) − Enter(call). Traces do not record which variable a put changes, so a call without such an
//! operation has no wait.
//!
//! *Source*: specification.md#wait-until; the records are those of the thesis, section 3.1.3.

use super::operations::last_of;
use super::shard_waits::Waits;
use crate::Result;
use crate::matching::epochs::Epochs;
use crate::matching::signals::writes;
use crate::parallel::iter::prelude::*;
use crate::severity::Metric;
use crate::trace::Trace;
use crate::waits::WaitState;

pub(super) fn detect(trace: &Trace, epochs: &[Epochs], waits: &mut [Waits]) -> Result<()> {
    let writes = writes(trace, epochs)?.into_par_iter().zip(trace.par_shards()).zip(epochs).zip(waits);
    writes.for_each(|(((writes, shard), epochs), waits)| {
        for change in &epochs.changes {
            let (enter, leave) = (shard.enter(change.instance), shard.leave(change.instance));
            let within = writes.within(change.process, enter, leave);
            if let Some(signal) = last_of(within, |write| (write.enter, write.origin)) {
                let call = (change.location, change.instance);
                waits.states.push(WaitState::new(Metric::ShmemWaitUntil, call, signal.enter - enter, signal.call));
            }
        }
    });
    Ok(())
}
