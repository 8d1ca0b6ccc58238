//! A simulated run as an archive: the records of the measured one at their new times.

use std::path::Path;

use rayon::prelude::*;
use whywait_otf2::records::Definition;
use whywait_otf2::{ArchiveWriter, Attributes, Event, LocalDefinitions, LocationWriter, WriteOptions};

use super::source::{Records, Rewriter, Source};
use super::stamps::Stamps;
use super::{Simulation, Simulator};
use crate::analysis::Analysis;
use crate::ids::LocationId;
use crate::{Error, Result};

/// Name of the anchor's property with the hypotheses.
const PROPERTY: &str = "WHYWAIT::HYPOTHESES";

impl Simulator {
    /// Writes a simulated run as the archive `name` in a directory; `hypotheses` describes the changes.
    pub fn write(
        &self,
        analysis: &Analysis,
        simulation: &Simulation,
        source: &Source<'_>,
        (directory, name): (&Path, &str),
        hypotheses: &str,
    ) -> Result<()> {
        let (trace, archive) = (&analysis.trace, source.archive());
        if simulation.span.0 < 0 {
            return Err(Error::Usage(
                "the corrected times of the run begin before zero: they cannot be written".into(),
            ));
        }
        let events = self.events(trace, simulation);
        let stamps = Stamps::new(trace, &events)?;
        let mut options = WriteOptions { anchor: archive.anchor().clone(), ..WriteOptions::default() };
        options.anchor.number_of_snapshots = 0;
        options.anchor.number_of_thumbnails = 0;
        for changes in source.hypotheses().into_iter().chain([hypotheses]) {
            options.anchor.properties.push((PROPERTY.to_owned(), changes.to_owned()));
        }
        let writer = ArchiveWriter::create(directory, name, options)?;
        for definition in archive.definitions().iter() {
            let mut definition = definition.to_owned();
            if let (Definition::ClockProperties(clock), Some(known)) = (&mut definition, source.clock()) {
                *clock = known;
                simulation.set_clock(clock);
            }
            writer.define(definition);
        }
        let rewriter = Rewriter::new((self, simulation), (trace, source), &events, &stamps);
        (0..trace.definitions.locations.len())
            .into_par_iter()
            .map(LocationId::at)
            .try_for_each(|location| write_location(&rewriter, &writer, location))?;
        Ok(writer.finish()?)
    }
}

impl Records for LocationWriter<'_> {
    fn put(&mut self, time: i64, event: &Event<'_>, attributes: &Attributes<'_>) -> whywait_otf2::Result<()> {
        self.write(time as u64, event, attributes)
    }
}

/// Writes a location.
fn write_location(rewriter: &Rewriter<'_>, writer: &ArchiveWriter, location: LocationId) -> Result<()> {
    let id = rewriter.trace.definitions.locations[location].id;
    // A location that could not be read was not simulated either, and stays empty.
    let Ok(reader) = rewriter.source.archive().location(id) else { return Ok(()) };
    let mut to = writer.location(id)?;
    rewriter.location(location, &mut to)?;
    let local = reader.local_definitions();
    let local = LocalDefinitions { definitions: local.definitions.clone(), ..LocalDefinitions::default() };
    Ok(to.finish(&local)?)
}
