//! A simulated run in memory: what its archive would hold, decoded without being written.

use rayon::prelude::*;
use whywait_otf2::{Attributes, Event};

use super::simulated::{Forwarded, Records, Simulated};
use crate::analysis::{self, Analysis, Monitor, Options, Stage};
use crate::diagnostics::{DiagnosticKind, Diagnostics};
use crate::trace::decode::{Decoder, Progress};
use crate::trace::definition_index::DefinitionIndex;
use crate::trace::{Regions, Shard, Trace};
use crate::{Error, Result};

impl Simulated<'_> {
    /// Analyzes the run as its archive would be. A run with devices must be written: their events are read again.
    pub fn analyze(&self, options: &Options, monitor: &Monitor) -> Result<Analysis> {
        if self.trace.definitions.has_streams {
            return Err(Error::Usage("a simulated run with devices must be written to be analyzed".into()));
        }
        monitor.enter(Stage::Decode)?;
        let trace = self.load(options, &monitor.progress)?;
        let found = analysis::analyze_trace(trace, self.archive(), options, monitor)?;
        found.ok_or_else(|| Error::Internal("one process has the result of a simulated run".into()))
    }

    /// The run as a trace.
    fn load(&self, options: &Options, progress: &Progress) -> Result<Trace> {
        let (trace, archive) = (self.trace, self.archive());
        let records = archive.definitions();
        let mut definitions = DefinitionIndex::new(records);
        definitions.counters.set_modes(&options.counter_modes)?;
        let regions = Regions::new(records);
        let bounds = self.new_bounds();
        let load = |like: &Shard| -> Result<(Shard, Diagnostics)> {
            let mut shard = Shard { locations: like.locations, processes: like.processes, ..Shard::default() };
            shard.events.reserve(like.events.len());
            shard.reserve(like.rows());
            let mut to = Decoded { decoder: Decoder::new(records, &regions, &definitions, bounds, shard), records: 0 };
            for location in like.locations {
                if progress.is_cancelled() {
                    return Err(Error::Interrupted);
                }
                to.decoder.begin_location(location);
                to.records = 0;
                match archive.location(definitions.locations[location].id) {
                    Ok(_) => {
                        self.location(location, &mut to)?;
                        to.decoder.end_location(to.records, None);
                    }
                    Err(error) => {
                        to.decoder.end_location(0, None);
                        to.decoder.diagnostics().explain(DiagnosticKind::Unreadable, location, 0, error.to_string());
                    }
                }
                let events = definitions.locations[location].events;
                progress.events.fetch_add(events, std::sync::atomic::Ordering::Relaxed);
            }
            Ok(to.decoder.finish())
        };
        let shards = trace.par_shards().map(load).collect::<Result<Vec<_>>>()?;
        for (shard, _) in &shards {
            for (location, span) in shard.locations.zip(&shard.spans) {
                definitions.locations[location].events = span.events;
            }
        }
        let owners = (trace.shard_of.clone(), trace.exchange.clone());
        Trace::assemble(records, (definitions, regions), owners, shards)
    }
}

/// The shard that a location goes to, and how many records the location has so far.
struct Decoded<'a> {
    decoder: Decoder<'a>,
    records: u64,
}

impl Records for Decoded<'_> {
    fn put(&mut self, time: i64, event: &Event<'_>, attributes: &Attributes<'_>) -> whywait_otf2::Result<()> {
        self.records += 1;
        Forwarded(&mut self.decoder).put(time, event, attributes)
    }
}
