//! A simulated run as an archive: the records of the measured one at their new times.

use std::path::Path;
use std::sync::atomic::Ordering;

use rayon::prelude::*;
use whywait_otf2::records::Definition;
use whywait_otf2::{ArchiveWriter, Attributes, Event, LocalDefinitions, LocationWriter, WriteOptions};

use super::simulated::{Records, Simulated};
use crate::ids::LocationId;
use crate::trace::decode::Progress;
use crate::{Error, Result};

/// Name of the anchor's property with the hypotheses.
const PROPERTY: &str = "WHYWAIT::HYPOTHESES";

impl Simulated<'_> {
    /// Writes the run as the archive `name` in a directory.
    pub fn write(&self, directory: &Path, name: &str, progress: &Progress) -> Result<()> {
        if self.simulation.span.0 < 0 {
            return Err(Error::Usage(
                "the corrected times of the run begin before zero: they cannot be written".into(),
            ));
        }
        let archive = self.archive();
        let mut options = WriteOptions { anchor: archive.anchor().clone(), ..WriteOptions::default() };
        options.anchor.number_of_snapshots = 0;
        options.anchor.number_of_thumbnails = 0;
        for changes in self.hypotheses() {
            options.anchor.properties.push((PROPERTY.to_owned(), changes.to_owned()));
        }
        let writer = ArchiveWriter::create(directory, name, options)?;
        let known = self.clock();
        for definition in archive.definitions().iter() {
            let mut definition = definition.to_owned();
            if let (Definition::ClockProperties(clock), Some(known)) = (&mut definition, &known) {
                *clock = known.clone();
            }
            writer.define(definition);
        }
        (0..self.trace.definitions.locations.len()).into_par_iter().map(LocationId::at).try_for_each(|location| {
            if progress.is_cancelled() {
                return Err(Error::Interrupted);
            }
            progress.events.fetch_add(self.trace.definitions.locations[location].events, Ordering::Relaxed);
            self.write_location(&writer, location)
        })?;
        Ok(writer.finish()?)
    }

    /// Writes a location.
    fn write_location(&self, writer: &ArchiveWriter, location: LocationId) -> Result<()> {
        let id = self.trace.definitions.locations[location].id;
        // A location that could not be read was not simulated either, and stays empty.
        let Ok(reader) = self.archive().location(id) else { return Ok(()) };
        let mut to = writer.location(id)?;
        self.location(location, &mut to)?;
        let local = reader.local_definitions();
        let local = LocalDefinitions { definitions: local.definitions.clone(), ..LocalDefinitions::default() };
        Ok(to.finish(&local)?)
    }
}

impl Records for LocationWriter<'_> {
    fn put(&mut self, time: i64, event: &Event<'_>, attributes: &Attributes<'_>) -> whywait_otf2::Result<()> {
        self.write(time as u64, event, attributes)
    }
}
