//! Levels over time: how many ranks wait, how many bytes are in flight, and the queues of processes.

use std::io::Write;
use std::ops::Range;

use rayon::slice::ParallelSliceMut as _;

use super::flows::{Change, in_flight};
use super::packets::Track;
use super::tracks::Writer;
use crate::Result;
use crate::analysis::Analysis;
use crate::matching::transfers::Transfer;
use crate::queues::{Quantity, Queues};
use crate::schema::Pattern;

impl<W: Write> Writer<'_, W> {
    /// Writes how many of the selected ranks wait, that is, have a thread that waits. Completion is not waiting.
    pub(super) fn ranks_waiting(&mut self, analysis: &Analysis, stretches: &[(usize, Range<i64>)]) -> Result<()> {
        let mut waits: Vec<(u32, i64, i64)> = stretches
            .iter()
            .map(|(number, time)| (&analysis.waits[*number], time))
            .filter(|(wait, _)| {
                Pattern::of(wait.kind).is_some_and(|of| of.part_of.is_none() && !of.position.is_completion())
                    && wait.waiting > 0
                    && self.selection.has(self.trace, wait.location)
            })
            .map(|(wait, time)| {
                let process = self.trace.definitions.locations[wait.location].process;
                (process.number(), time.start, time.end)
            })
            .collect();
        waits.par_sort_unstable();
        let mut changes: Vec<Change> = Vec::with_capacity(2 * waits.len());
        for of_process in waits.chunk_by(|a, b| a.0 == b.0) {
            // Waits of several threads may overlap, but their rank counts once.
            let mut until = i64::MIN;
            for &(_, begin, end) in of_process {
                if end > until {
                    changes.push((begin.max(until), 1));
                    changes.push((end, -1));
                    until = end;
                }
            }
        }
        self.level(None, ("Ranks waiting", "ranks"), 0, changes)?;
        Ok(())
    }

    /// Writes how many bytes of messages and one-sided transfers from or to the selected ranks are in flight.
    pub(super) fn bytes_in_flight(&mut self, messages: Vec<Change>, transfers: &[Transfer]) -> Result<()> {
        let mut changes = messages;
        for transfer in transfers {
            let Some(end) = transfer.end.filter(|&end| end > transfer.time) else { continue };
            if [transfer.source, transfer.destination].iter().any(|&place| self.selection.has(self.trace, place)) {
                in_flight(&mut changes, transfer.time, end, transfer.bytes);
            }
        }
        self.level(None, ("Bytes in flight", "bytes"), 1, changes)?;
        Ok(())
    }

    /// Writes the replayed queues of the selected ranks, each below its process.
    pub(super) fn queues(&mut self, queues: &Queues, label: &dyn Fn(Quantity) -> String) -> Result<()> {
        let after = self.trace.definitions.counters.all.len() as u32;
        for level in &queues.levels {
            let location = level.location;
            if location.is_none() || !self.selection.has(self.trace, location) {
                continue;
            }
            let steps = level.steps.iter().flatten();
            let changes = steps.flat_map(|&(from, to, level)| [(from, level), (to, -level)]).collect();
            let (above, order) = (self.process_track(location), after + level.quantity as u32);
            let name = label(level.quantity);
            let is_written = self.level(Some(above), (&name, level.quantity.unit()), order, changes)?;
            self.written.counters += u64::from(is_written);
        }
        Ok(())
    }

    /// Writes a level as a counter, of the whole run if it is not below another track, unless it is always zero;
    /// returns whether it did.
    pub(super) fn level(
        &mut self,
        above: Option<Track>,
        named: (&str, &str),
        order: u32,
        mut changes: Vec<Change>,
    ) -> Result<bool> {
        changes.par_sort_unstable();
        let (first, last) = self.selection.window;
        let mut track = None;
        // The last written value, the current one, and the one to be written if it lasts until the next change.
        let (mut written, mut level, mut pending) = (0, 0_i64, None);
        for (number, at) in changes.chunk_by(|a, b| a.0 == b.0).enumerate() {
            if number % 65_536 == 0 {
                self.look_up()?;
            }
            let time = at[0].0;
            if time > last {
                break;
            }
            level = at.iter().fold(level, |level, change| level.saturating_add(change.1));
            if time < first {
                pending = Some(level);
                continue;
            }
            let before = pending.take().map(|level| (first, level));
            for (time, level) in before.into_iter().chain([(time, level)]) {
                if level == written {
                    continue;
                }
                let track = match track {
                    Some(track) => track,
                    None => *track.insert(self.new_counter(above, named, order)?),
                };
                let time = self.nanoseconds(time);
                self.packets.counter(time, track, level as f64)?;
                written = level;
            }
        }
        // Nothing changes in the window.
        if let Some(level) = pending.filter(|&level| level != 0) {
            let track = *track.insert(self.new_counter(above, named, order)?);
            let time = self.nanoseconds(first);
            self.packets.counter(time, track, level as f64)?;
        }
        Ok(track.is_some())
    }
}
