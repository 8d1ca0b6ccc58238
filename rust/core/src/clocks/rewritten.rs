//! A run as it was analyzed, ready to be written: it says how its clocks were corrected.

use std::path::Path;
use std::sync::Arc;

use whywait_otf2::records::Definition;
use whywait_otf2::{Anchor, Definitions, Events, Oddity, Recording};

use super::corrected::Retimed;
use super::domains::Domain;
use super::report::Report;
use super::timing::Timing;
use crate::Result;
use crate::parallel::iter::prelude::*;
use crate::trace::Trace;

/// Prefix of the anchor's properties about clocks.
const PROPERTY: &str = "WHYWAIT::CLOCKS::";

/// The recording of a trace with times that can be written.
#[derive(Debug)]
pub struct Rewritten {
    recording: Arc<dyn Recording>,
    anchor: Anchor,
    definitions: Definitions,
    /// What moves the whole run behind time 0.
    shift: Timing,
}

impl Rewritten {
    /// The run of a trace, with properties that name the corrections of a report, which the first process of the analysis has,
    /// and what was corrected: `source`. Collective.
    pub fn new(trace: &Trace, report: Option<&Report>, source: &str) -> Result<Self> {
        let recording = trace.recording().clone();
        let first = |of: usize| recording.events(trace.definitions.locations[of].id).ok()?.first_time();
        let own = trace.own_locations().into_par_iter().filter_map(first).collect::<Vec<_>>().into_iter().min();
        let earliest = trace.exchange.allgather(own)?.into_iter().flatten().min().unwrap_or(1);
        let shift = (1 - earliest).max(0);
        let mut anchor = recording.anchor().clone();
        (anchor.number_of_snapshots, anchor.number_of_thumbnails) = (0, 0);
        let done: Vec<&str> = report.iter().flat_map(|report| report.done()).collect();
        let latency = report.map_or(0, |report| report.latency);
        let properties = [
            ("METHOD", if done.is_empty() { "none".to_owned() } else { done.join(", ") }),
            ("DOMAIN", report.map_or(Domain::default(), |report| report.domain).name().to_owned()),
            ("LATENCY", format!("{} s", latency as f64 / trace.resolution as f64)),
            ("CONSTANT", format!("{shift} ticks")),
            ("VERSION", env!("CARGO_PKG_VERSION").to_owned()),
            ("SOURCE", source.to_owned()),
        ];
        anchor.properties.retain(|(name, _)| !name.starts_with(PROPERTY));
        anchor.properties.extend(properties.map(|(name, value)| (format!("{PROPERTY}{name}"), value)));
        let (begin, end) = trace.span().unwrap_or((earliest, earliest));
        let (begin, end) = ((begin + shift).max(0) as u64, (end + shift).max(0) as u64);
        let changed = |mut definition: Definition| {
            if let Definition::ClockProperties(clock) = &mut definition {
                clock.global_offset = clock.global_offset.min(begin);
                clock.trace_length = end.saturating_sub(clock.global_offset);
            }
            definition
        };
        let definitions = recording.definitions().iter().map(|definition| changed(definition.to_owned()));
        let definitions = Definitions::from_records(definitions);
        Ok(Self { recording, anchor, definitions, shift: Timing::constant(shift) })
    }
}

impl Recording for Rewritten {
    fn path(&self) -> &Path {
        self.recording.path()
    }

    fn name(&self) -> &str {
        self.recording.name()
    }

    fn anchor(&self) -> &Anchor {
        &self.anchor
    }

    fn definitions(&self) -> &Definitions {
        &self.definitions
    }

    fn oddities(&self) -> &[Oddity] {
        self.recording.oddities()
    }

    fn events(&self, location: u64) -> whywait_otf2::Result<Events<'_>> {
        let events = self.recording.events(location)?;
        Ok(if self.shift.is_identity() { events } else { Events::new(Retimed { events, timing: &self.shift }) })
    }
}
