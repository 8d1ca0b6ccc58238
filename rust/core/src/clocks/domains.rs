//! Which locations read one clock.
//!
//! A *domain* is what has one clock: the processes of a node, or those that the source says have one, unless a constraint between
//! two of them is violated by more than clocks resolve; then each process of these. A device is a domain of its own.
//!
//! *Source*: clocks.md#domains.

use std::hash::Hash;

use rustc_hash::{FxHashMap, FxHashSet};

use super::census::Census;
use super::constraints::Constraints;
use super::kind::Kind;
use crate::Result;
use crate::ids::{LocationId, ProcessId};
use crate::parallel::exchange::{Exchange, Row};

named! {
    /// What has a clock of its own.
    #[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
    pub enum Domain {
        /// A node, if its processes agree, or else each of them.
        #[default]
        Auto = "auto",
        /// Each process.
        Process = "process",
        /// Each node.
        Node = "node",
    }
}

/// The clock of each location; clocks are in the order of their first locations, those of devices behind the others.
#[derive(Clone, Debug)]
pub(super) struct Clocks {
    of: Vec<u32>,
    /// The first location of each clock.
    firsts: Vec<LocationId>,
}

impl Clocks {
    /// Gives all locations with equal keys one clock; those of devices get the clocks of their devices.
    fn new<K: Hash + Eq>(constraints: &Constraints, key: impl Fn(LocationId) -> K) -> Self {
        let mut clocks = Self { of: vec![0; constraints.locations()], firsts: Vec::new() };
        let devices: FxHashMap<LocationId, u32> = constraints.devices().iter().copied().collect();
        let (mut by_key, mut by_device) = (FxHashMap::default(), FxHashMap::default());
        let locations = || (0..constraints.locations()).map(LocationId::at);
        for location in locations().filter(|location| !devices.contains_key(location)) {
            clocks.of[location.index()] =
                *by_key.entry(key(location)).or_insert_with(|| add(&mut clocks.firsts, location));
        }
        for location in locations() {
            if let Some(device) = devices.get(&location) {
                clocks.of[location.index()] =
                    *by_device.entry(device).or_insert_with(|| add(&mut clocks.firsts, location));
            }
        }
        clocks
    }

    /// The clock of a location.
    #[inline]
    pub(super) fn of(&self, location: LocationId) -> u32 {
        self.of[location.index()]
    }

    /// The first location of each clock.
    pub(super) fn firsts(&self) -> &[LocationId] {
        &self.firsts
    }

    pub(super) fn count(&self) -> usize {
        self.firsts.len()
    }
}

fn add(firsts: &mut Vec<LocationId>, location: LocationId) -> u32 {
    firsts.push(location);
    firsts.len() as u32 - 1
}

/// The domains of a run; `homes` has what has the clock of each process. Collective, as all that depends on a census.
pub(super) fn domains(
    constraints: &Constraints,
    homes: &[u32],
    census: &Census,
    (choice, noise): (Domain, i64),
    exchange: &Exchange,
) -> Result<Clocks> {
    let home = |process: ProcessId| homes.get(process.index()).copied();
    let is_violated = census.cells.iter().filter(|((_, from, to), cell)| from != to && cell.worst > noise);
    let split = is_violated.filter_map(|((_, from, to), _)| home(*from).filter(|of| Some(*of) == home(*to)));
    let split = of_all(split, exchange)?;
    Ok(Clocks::new(constraints, |location| {
        let process = constraints.process(location);
        let is_alone = match choice {
            Domain::Auto => home(process).is_none_or(|home| split.contains(&home)),
            Domain::Process => true,
            Domain::Node => false,
        };
        (home(process), is_alone.then_some(process))
    }))
}

/// The clocks that the logical clock moves on their own: those of processes, so that nothing within one is turned around;
/// of their threads where these contradict each other.
pub(super) fn logical(constraints: &Constraints, census: &Census, exchange: &Exchange) -> Result<Clocks> {
    let is_within = |((kind, from, to), _): &(&(Kind, ProcessId, ProcessId), _)| from == to && *kind != Kind::Device;
    let violated = census.cells.iter().filter(|(_, cell)| cell.violated > 0).filter(is_within);
    let split = of_all(violated.map(|((_, from, _), _)| *from), exchange)?;
    Ok(Clocks::new(constraints, |location| {
        let process = constraints.process(location);
        (process, split.contains(&process).then_some(location))
    }))
}

/// The values of all processes of the analysis.
fn of_all<T: Row + Clone + Eq + Hash>(own: impl Iterator<Item = T>, exchange: &Exchange) -> Result<FxHashSet<T>> {
    let own: FxHashSet<T> = own.collect();
    Ok(exchange.allgather(own.into_iter().collect::<Vec<T>>())?.into_iter().flatten().collect())
}
