//! Writes a run as a trace for Paraver, in the event types that Extrae writes, with what the analysis found.
//!
//! | in the run | in the file |
//! |---|---|
//! | process, location | task, thread |
//! | call of MPI | event of its class, with sizes, communicator and root; callers |
//! | other region | user function; barriers, forks, parallel regions and locks of OpenMP as such |
//! | what runs | states, as Extrae has them: what waits is no state, so that efficiencies do not change |
//! | message | record `3` |
//! | counter | events: increases since the last reading of the thread |
//! | wait state, its cause, the critical path, findings | events from [`causes::WAIT_STATE`] on |
//!
//! Times are ns since the begin of the trace. Each process of the analysis makes the lines of its locations; the first one
//! has what was found, and writes all in order of time.

mod calls;
mod causes;
mod counters;
mod findings;
mod labels;
mod lines;
mod messages;
mod objects;
mod terms;
mod threads;
mod views;
mod words;
mod written;

use std::io::Write;

use crate::analysis::Analysis;
use crate::export::clock::Clock;
use crate::export::selection::{Selection, WrittenEvents};
use crate::parallel::iter::prelude::*;
use crate::trace::decode::Progress;
use crate::{Error, Result};

pub use findings::Finding;
pub use words::{Numbered, Words};
pub use written::{Beside, Written};

use counters::Counters;
use findings::Findings;
use lines::Lines;
use objects::Objects;
use terms::Terms;

/// Writes a run; `None` at all but the first process. Collective.
pub fn write(
    analysis: &Analysis,
    words: &Words<'_>,
    selection: &Selection,
    out: Option<impl Write>,
    progress: &Progress,
) -> Result<Option<(Written, Beside)>> {
    let trace = &analysis.trace;
    let objects = Objects::new(trace);
    let terms = Terms::new(trace, words.number);
    let counters = Counters::new(analysis);
    let findings = Findings::new(&words.findings);
    let of_shards = trace.par_shards().map(|shard| {
        let kept = WrittenEvents::of(trace, shard, selection);
        let locations = shard.locations.enumerate().filter(|(_, location)| selection.has(trace, *location));
        let lines = locations.flat_map(|(i, location)| {
            let calls = calls::of_location(trace, (&objects, &terms, &findings), (shard, i), (selection, &kept));
            let counted = counters.lines(location, selection).filter(|_| objects.task(location) > 0);
            std::iter::once(calls).chain(counted)
        });
        lines.collect::<Vec<_>>()
    });
    let of_shards: Vec<Vec<Lines>> = of_shards.collect();
    if progress.is_cancelled() {
        return Err(Error::Interrupted);
    }
    let mut lines = trace.exchange.gatherv(of_shards.into_iter().flatten())?;
    let messages = messages::all(trace, &terms, selection)?;
    let stretches = analysis.stretches()?;
    let Some(out) = out else { return Ok(None) };
    let mut written = Written { threads: objects.threads(), messages: messages.len() as u64, ..Written::default() };
    written.calls = lines.iter().map(|lines| lines.calls).sum();
    let found = causes::find(analysis, &stretches, selection, &mut written);
    let own: Vec<u32> = found.paths.clone();
    lines.extend(found.lines);
    written.records = lines::write(out, trace, (&objects, Clock::of(trace)), &lines, &messages)?;
    let beside = Beside {
        labels: labels::text(trace, (&terms, &counters), words, &own),
        names: objects.names(trace),
        views: views::text(),
    };
    Ok(Some((written, beside)))
}
