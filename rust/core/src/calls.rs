//! Calls that others waited for, wherever they are: of those that another process of the analysis has, its times.

use bitcode::{Decode, Encode};
use rustc_hash::FxHashMap;

use crate::Result;
use crate::trace::{NONE, Trace};
use crate::waits::WaitState;

/// What the waiting side must know of a call.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Encode, Decode)]
pub struct Call {
    /// Enter, ticks.
    pub enter: i64,
    /// Leave, ticks.
    pub leave: i64,
    /// Call path.
    pub callpath: u32,
}

impl Call {
    fn of(trace: &Trace, (location, instance): (u32, u32)) -> Self {
        let shard = trace.shard(location);
        Self { enter: shard.enter(instance), leave: shard.leave(instance), callpath: shard.callpath(instance) }
    }
}

/// The calls of other processes of the analysis that were waited for here, by location and region instance.
#[derive(Debug, Default)]
pub struct Calls(FxHashMap<(u32, u32), Call>);

impl Calls {
    /// Asks the others for all calls that the waits here have as their causes.
    pub fn fetch(trace: &Trace, waits: &[WaitState]) -> Result<Self> {
        let exchange = &trace.exchange;
        let mut questions: Vec<Vec<(u32, u32)>> = vec![Vec::new(); exchange.processes()];
        for wait in waits.iter().filter(|wait| wait.cause_instance != NONE && !trace.owns(wait.cause_location)) {
            let process = exchange.process_of(trace.shard_of[wait.cause_location as usize]);
            questions[process].push((wait.cause_location, wait.cause_instance));
        }
        for calls in &mut questions {
            calls.sort_unstable();
            calls.dedup();
        }
        let asked = questions.concat();
        let answer = |calls: Vec<(u32, u32)>| calls.into_iter().map(|call| Call::of(trace, call)).collect();
        let answers: Vec<Vec<Call>> = exchange.swap(exchange.swap(questions)?.into_iter().map(answer).collect())?;
        Ok(Self(asked.into_iter().zip(answers.into_iter().flatten()).collect()))
    }

    /// A call of this process, or one that was waited for here.
    #[must_use]
    pub fn get(&self, trace: &Trace, call: (u32, u32)) -> Call {
        if trace.owns(call.0) { Call::of(trace, call) } else { self.0[&call] }
    }
}
