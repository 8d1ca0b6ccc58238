//! A run as an archive: with corrected times, and ids of the global definitions.

use std::path::Path;
use std::sync::atomic::Ordering;

use whywait_otf2::writer::WritingSink;
use whywait_otf2::{ArchiveWriter, LocalDefinitions, Recording, WriteOptions};

use crate::parallel::iter::prelude::*;
use crate::trace::Trace;
use crate::trace::decode::Progress;
use crate::{Error, Result};

/// Writes a run with the locations of a trace as the archive `name` in a directory. Collective: each process of the
/// analysis writes the events of its own locations, and the first one all else; so all of them must see the directory.
pub fn write(
    recording: &dyn Recording,
    trace: &Trace,
    (directory, name): (&Path, &str),
    progress: &Progress,
) -> Result<()> {
    let definitions = recording.definitions();
    let locations: Vec<_> = trace.own_locations().map(|of| trace.definitions.locations[of].id).collect();
    let first = |id: u64| recording.events(id).ok()?.first_time();
    let is_early = locations.par_iter().filter_map(|&id| first(id)).any(|time| time < 0);
    if trace.exchange.any(is_early)? {
        return Err(Error::Usage("the corrected times of the run begin before zero: they cannot be written".into()));
    }
    let writer = ArchiveWriter::create(
        directory,
        name,
        WriteOptions { anchor: recording.anchor().clone(), ..Default::default() },
    )?;
    locations.par_iter().try_for_each(|&id| {
        if progress.is_cancelled() {
            return Err(Error::Interrupted);
        }
        // A location that cannot be read stays empty.
        let Ok(events) = recording.events(id) else { return Ok(()) };
        let mut to = WritingSink::new(writer.location(id)?);
        let read = events.read(&mut Vec::new(), &mut to)?;
        progress.events.fetch_add(read.events, Ordering::Relaxed);
        let definitions = events.local_definitions().to_vec();
        Ok(to.finish(&LocalDefinitions { definitions, ..LocalDefinitions::default() })?)
    })?;
    let written = trace.exchange.gather(writer.written())?;
    if trace.exchange.is_root() {
        for (id, events) in written.into_iter().skip(1).flatten() {
            writer.written_elsewhere(id, events)?;
        }
        for definition in definitions.iter() {
            writer.define(definition.to_owned());
        }
        writer.finish()?;
    }
    Ok(())
}
