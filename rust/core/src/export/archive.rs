//! A run as an archive: with corrected times, and ids of the global definitions.

use std::path::Path;
use std::sync::atomic::Ordering;

use rayon::prelude::*;
use whywait_otf2::writer::WritingSink;
use whywait_otf2::{ArchiveWriter, LocalDefinitions, Recording, WriteOptions};

use crate::trace::decode::Progress;
use crate::{Error, Result};

/// Writes a run as the archive `name` in a directory.
pub fn write(recording: &dyn Recording, directory: &Path, name: &str, progress: &Progress) -> Result<()> {
    let definitions = recording.definitions();
    let locations = &definitions.locations;
    let first = |id: u64| recording.events(id).ok()?.first_time();
    if locations.par_iter().filter_map(|location| first(location.id)).any(|time| time < 0) {
        return Err(Error::Usage("the corrected times of the run begin before zero: they cannot be written".into()));
    }
    let writer = ArchiveWriter::create(
        directory,
        name,
        WriteOptions { anchor: recording.anchor().clone(), ..Default::default() },
    )?;
    for definition in definitions.iter() {
        writer.define(definition.to_owned());
    }
    locations.par_iter().try_for_each(|location| {
        if progress.is_cancelled() {
            return Err(Error::Interrupted);
        }
        progress.events.fetch_add(location.number_of_events, Ordering::Relaxed);
        // A location that cannot be read stays empty.
        let Ok(events) = recording.events(location.id) else { return Ok(()) };
        let mut to = WritingSink::new(writer.location(location.id)?);
        let _ = events.read(&mut Vec::new(), &mut to)?;
        let definitions = events.local_definitions().to_vec();
        Ok(to.finish(&LocalDefinitions { definitions, ..LocalDefinitions::default() })?)
    })?;
    Ok(writer.finish()?)
}
