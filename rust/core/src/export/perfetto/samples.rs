//! Samples of the call path: instants of a track below their thread.

use std::io::Write;

use super::packets::{Category, Key};
use super::tracks::{Writer, thread_track};
use crate::Result;
use crate::sampling::Sample;

impl<W: Write> Writer<'_, W> {
    /// Writes samples, which are sorted by location and time.
    pub(super) fn samples(&mut self, samples: &[Sample]) -> Result<()> {
        for of_location in samples.chunk_by(|a, b| a.location == b.location) {
            self.look_up()?;
            let location = of_location[0].location;
            let is_shown = |sample: &&Sample| {
                sample.callpath.is_some()
                    && self.selection.has(self.trace, location)
                    && self.selection.overlaps(sample.time, sample.time)
            };
            let shown: Vec<&Sample> = of_location.iter().filter(is_shown).collect();
            if shown.is_empty() {
                continue;
            }
            let track = self.new_track(Some(thread_track(location)), "Samples")?;
            for sample in shown {
                let callpath = self.callpath(sample.callpath)?;
                let (time, name) = (self.nanoseconds(sample.time), self.name_of[sample.callpath]);
                self.packets.instant(time, track, |event| {
                    event.named(name, Category::Sample);
                    event.interned(Key::Callpath, callpath);
                })?;
                self.written.samples += 1;
            }
        }
        Ok(())
    }
}
