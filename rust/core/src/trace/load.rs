//! Reading an archive into shards, in parallel.

use rayon::prelude::*;
use whywait_otf2::Archive;
use whywait_otf2::LocationReader;

use super::calltree::CallTree;
use super::chunks;
use super::columns::Shard;
use super::decode::{Decoder, Progress};
use super::regions::{RegionClass, Regions};
use super::world::{Location, World};
use crate::notes::{NoteKind, Notes};
use crate::{Error, Result};

/// Shards hold about this many events at least, so that small processes share one.
const SHARD_EVENTS: u64 = 1 << 18;

/// A whole run: who took part, what happened, and what was odd.
#[derive(Debug)]
pub struct Trace {
    /// Locations, processes, communicators.
    pub world: World,
    /// Regions.
    pub regions: Regions,
    /// All call paths.
    pub tree: CallTree,
    /// The events, by contiguous blocks of processes.
    pub shards: Vec<Shard>,
    /// What was odd.
    pub notes: Notes,
    /// Ticks a second.
    pub resolution: u64,
    /// Index of the shard of each location.
    pub shard_of: Vec<u32>,
}

impl Trace {
    /// Reads all events of an archive with the threads of the current pool.
    pub fn load(archive: &Archive, progress: &Progress) -> Result<Self> {
        let definitions = archive.definitions();
        let world = World::new(definitions);
        let regions = Regions::new(definitions);
        let blocks = blocks(&world);
        let shards = blocks.len();
        let loaded: Vec<(Shard, Notes)> = blocks
            .into_par_iter()
            .map(|block| load_shard(archive, &regions, &world, block, shards, progress))
            .collect::<Result<_>>()?;

        let mut tree = CallTree::default();
        let mut notes = Notes::default();
        let mut shards = Vec::with_capacity(loaded.len());
        let mut renumbering = Vec::with_capacity(loaded.len());
        for (shard, shard_notes) in loaded {
            renumbering.push(tree.merge(&shard.tree));
            notes.merge(shard_notes);
            shards.push(shard);
        }
        shards.par_iter_mut().zip(renumbering).for_each(|(shard, callpaths)| shard.renumber(&callpaths));

        let mut shard_of = vec![0; world.locations.len()];
        for (index, shard) in shards.iter().enumerate() {
            shard_of[shard.locations.start as usize..shard.locations.end as usize].fill(index as u32);
        }
        let resolution = definitions.clock_properties.first().map_or(1, |clock| clock.timer_resolution).max(1);
        Ok(Self { world, regions, tree, shards, notes, resolution, shard_of })
    }

    /// The shard of a location.
    #[must_use]
    #[inline]
    pub fn shard(&self, location: u32) -> &Shard {
        &self.shards[self.shard_of[location as usize] as usize]
    }

    /// The class of a region instance's region.
    #[must_use]
    #[inline]
    pub fn class(&self, shard: &Shard, instance: u32) -> RegionClass {
        self.regions.class(self.tree.region(shard.callpath(instance)))
    }

    /// Index of the shard that owns a process.
    #[must_use]
    #[inline]
    pub fn owner(&self, process: u32) -> u32 {
        self.shard_of[self.world.master(process) as usize]
    }

    /// First and last time of the run in ticks; `None` if nothing was recorded.
    #[must_use]
    pub fn span(&self) -> Option<(i64, i64)> {
        let spans = || self.shards.iter().flat_map(|shard| &shard.spans);
        let first = spans().map(|span| span.first).min()?;
        let last = spans().map(|span| span.last).max()?;
        (first <= last).then_some((first, last))
    }
}

/// Contiguous blocks of processes with about the same number of events; locations without a process come last.
fn blocks(world: &World) -> Vec<Shard> {
    let mut shards = Vec::new();
    let mut shard = Shard::default();
    let mut events = 0;
    for (index, process) in world.processes.iter().enumerate() {
        let own: u64 = world.locations[process.locations.start as usize..process.locations.end as usize]
            .iter()
            .map(|location| location.events)
            .fold(0, u64::saturating_add);
        events += own.min(SHARD_EVENTS);
        shard.locations.end = process.locations.end;
        shard.processes.end = index as u32 + 1;
        if events >= SHARD_EVENTS {
            let next = Shard {
                locations: shard.locations.end..shard.locations.end,
                processes: shard.processes.end..shard.processes.end,
                ..Shard::default()
            };
            shards.push(std::mem::replace(&mut shard, next));
            events = 0;
        }
    }
    shard.locations.end = world.locations.len() as u32;
    if !shard.locations.is_empty() {
        shards.push(shard);
    }
    shards
}

fn load_shard(
    archive: &Archive,
    regions: &Regions,
    world: &World,
    mut shard: Shard,
    shards: usize,
    progress: &Progress,
) -> Result<(Shard, Notes)> {
    let locations = shard.locations.clone();
    let room: u64 = locations.clone().map(|index| plausible_events(archive, &world.locations[index as usize])).sum();
    if room > u64::from(u32::MAX >> 1) {
        return Err(Error::Trace(format!("a process with {room} events: more than 2^31 are not supported")));
    }
    shard.events.reserve(room as usize);

    let mut decoder = Decoder::new(archive.definitions(), regions, world, shard);
    let mut buffer = Vec::new();
    for index in locations {
        if progress.is_cancelled() {
            return Err(Error::Interrupted);
        }
        decoder.begin_location(index);
        let reader = archive.location(world.locations[index as usize].id);
        let reader = match reader {
            Ok(reader) => reader,
            Err(error) => {
                decoder.end_location(0, None);
                decoder.notes().explain(NoteKind::Unreadable, index, 0, error.to_string());
                continue;
            }
        };
        // A malformed record ends the location as the end of the file would: what stands before it is good.
        let read = if chunks::worth_sharing(&reader, shards) {
            chunks::read_events(&reader, &mut decoder)
        } else {
            reader.read_events(&mut buffer, &mut decoder)
        };
        match read {
            Ok(summary) => decoder.end_location(summary.events, summary.truncated.map(|error| error.to_string())),
            Err(error) => decoder.end_location(decoder.decoded(), Some(error.to_string())),
        }
        progress.events.fetch_add(world.locations[index as usize].events, std::sync::atomic::Ordering::Relaxed);
    }
    Ok(decoder.finish())
}

/// Number of events to make room for: a foreign count cannot make us reserve more than the file explains.
fn plausible_events(archive: &Archive, location: &Location) -> u64 {
    const TRUSTED: u64 = 1 << 16;
    // An event takes two bytes at least.
    let explained = |reader: LocationReader| location.events.min(reader.event_file_size() / 2);
    if location.events <= TRUSTED { location.events } else { archive.location(location.id).map_or(0, explained) }
}
