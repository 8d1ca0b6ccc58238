//! The account of all time: each moment of each CPU location in the focus belongs to exactly one row.
//!
//! ```text
//!  call path    [ own code     ][ call: wait  | needed | excess ][ own code
//!  row           computation     wait.KIND      transfer.*        computation
//! ```
//!
//! | step | file |
//! |---|---|
//! | what a location does in a call path | [`activities`] |
//! | one pass over each location: own code, waits, and the rest of each call | [`sweep`], with [`calls`], [`busy`] |
//! | idle threads, by what their master does | [`idle`] |
//! | what calls need: the fastest 5% of their kind | [`floors`] |
//! | the rest of each call becomes needed or excess | here |
//! | own code on the critical path | [`Account::divide`] |
//! | what each device does, and why it is idle | [`devices`] |
//! | whether locations share cores | [`cores`] |
//! | whether the same takes longer beside others | [`mod@sharing`] |
//! | what else speaks for a reason of lost time | [`reasons`] |
//!
//! Of a call that reaches out of the focus, the wait comes first, then what is needed, then the excess. Rows are integers
//! of ticks; those of a location add up to its allocated time exactly, because time without a row is *unknown*.
//!
//! *Source*: docs/account.md.

mod activities;
mod busy;
mod calls;
mod cores;
mod device_rows;
mod devices;
mod floors;
mod idle;
mod nodes;
mod reasons;
mod rows;
mod sharing;
mod starved;
mod sweep;
mod transfers;

use std::ops::Range;

use bitcode::{Decode, Encode};
use rustc_hash::{FxHashMap, FxHashSet};

use crate::Result;
use crate::ids::{CallPathId, LocationId};
use crate::matching::threads::locks::ThreadLock;
use crate::parallel::exchange::Exchange;
use crate::parallel::iter::prelude::*;
use crate::parallel::per_shard::PerShard;
use crate::severity::Severity;
use crate::trace::definition_index::Members;
use crate::trace::management::{is_forker, management};
use crate::trace::{NONE, Shard, Trace};
use crate::waits::WaitState;
use crate::waits::device::Devices;

use activities::Activity;
use busy::BusyWaits;
use calls::Partners;
use floors::{Floors, Histogram};
use reasons::Calls;
use sweep::{CallPaths, CutRest, Found, Place, Rest, Sweep, Undecided};

pub(crate) use cores::find as of_nodes;
pub use cores::{FewCores, Together};
pub use device_rows::DeviceRow;
pub use devices::{DeviceCell, GroupTime};
pub use floors::{Basis, Floor, Kind};
pub use reasons::{
    Combinable, Convoy, Crowded, HeldUp, NeedlessBarriers, Reasons, Repeated, SlowPlace, Turns, Unprogressed,
};
pub use rows::{Group, Row};
pub(crate) use sharing::find as sharing;
pub use sharing::{Resource, Sharing};

/// Ticks of a row in a call path on a location.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Encode, Decode)]
pub struct Cell {
    /// What the time is.
    pub row: Row,
    /// The call path, or none: of an idle thread, that of its master.
    pub callpath: CallPathId,
    /// The location.
    pub location: LocationId,
    /// The time, ticks.
    pub ticks: i64,
    /// The part of it beyond what the fastest 5% of such calls need, ticks.
    pub excess: i64,
    /// Number of calls, or of waits; 0 for time outside of calls.
    pub calls: u64,
}

/// The calls of a kind, and what they took in the focus.
#[derive(Clone, Copy, Debug)]
pub struct Network {
    /// What such a call needs.
    pub floor: Floor,
    /// The time that they needed, ticks.
    pub needed: i64,
    /// The time beyond that, ticks.
    pub excess: i64,
}

/// The account of all time in a focus.
#[derive(Clone, Debug, Default)]
pub struct Account {
    /// All cells, sorted by row, call path and location.
    pub cells: Vec<Cell>,
    /// What calls need, by kind.
    pub network: Vec<Network>,
    /// The account of devices, sorted by device, row and call path.
    pub devices: Vec<DeviceCell>,
    /// What communicators of devices do, by communicator.
    pub groups: Vec<GroupTime>,
    /// Calls in the focus with an excess of a millisecond or more: their number, and the excess, ticks.
    pub pauses: (u64, i64),
    /// Nodes whose locations share cores.
    pub cores: Vec<FewCores>,
    /// How many locations compute at the same time, by node.
    pub together: Vec<Together>,
    /// What else speaks for a reason of lost time.
    pub reasons: Reasons,
    /// Number of CPU locations.
    pub locations: u64,
    /// The time allocated to them, ticks.
    pub time: i64,
}

/// A location that belongs to the program, and the span in which it does.
struct Allocated {
    location: LocationId,
    span: Range<i64>,
    /// The master of its process, for a thread that is idle outside of parallel regions.
    master: Option<LocationId>,
}

/// What the first pass over a shard leaves for the second.
struct FirstPass {
    found: Vec<(Allocated, Found)>,
    kinds: Vec<Kind>,
    histograms: Vec<Histogram>,
    rests: Vec<Rest>,
    cuts: Vec<CutRest>,
    undecided: Vec<Undecided>,
}

impl FirstPass {
    /// Decides which calls are exposed, given the floors of those that are certain.
    fn decide(&mut self, floors: &Floors) {
        let mut exposed: Vec<Option<u32>> = vec![None; self.kinds.len()];
        for Undecided { rest, place, lead } in std::mem::take(&mut self.undecided) {
            let hidden = rest.kind as usize;
            let is_exposed = floors.known(self.kinds[hidden]).is_some_and(|floor| i64::from(lead) < floor);
            let kind = if is_exposed {
                *exposed[hidden].get_or_insert_with(|| {
                    let kind = Kind { exposed: true, ..self.kinds[hidden] };
                    let known = self.kinds.iter().position(|&other| other == kind);
                    let position = known.unwrap_or(self.kinds.len());
                    if known.is_none() {
                        self.kinds.push(kind);
                        self.histograms.push(Histogram::default());
                    }
                    position as u32
                })
            } else {
                rest.kind
            };
            self.histograms[kind as usize].add(rest.ticks);
            match place {
                Place::Rest(position) => self.rests[position].kind = kind,
                Place::Cut(position) => self.cuts[position].rest.kind = kind,
                Place::Nowhere => {}
            }
        }
    }
}

/// The first pass over all shards. `allocated` says of each location when it belongs to the program, if it does.
fn first_passes(
    trace: &Trace,
    waits: &PerShard<WaitState>,
    callpaths: &CallPaths,
    busy: &BusyWaits,
    focus: &Range<i64>,
    allocated: impl Fn(&Shard, LocationId) -> Option<Allocated> + Sync,
) -> Vec<FirstPass> {
    let partners = Partners::new(trace);
    trace
        .par_shards()
        .enumerate()
        .map(|(i, shard)| {
            let moved = calls::moved(trace, shard, &partners);
            let mut sweep = Sweep::new(trace, shard, callpaths, focus.clone(), moved, busy);
            let mut waits = waits.of(i).1.chunk_by(|a, b| a.location == b.location).peekable();
            let mut found = Vec::new();
            for location in shard.locations {
                let of_location = waits.next_if(|waits| waits[0].location == location).unwrap_or_default();
                if let Some(allocated) = allocated(shard, location) {
                    let is_worker = allocated.master.is_some();
                    found.push((allocated, Found::default()));
                    let (allocated, of_pass) = found.last_mut().expect("was just added");
                    *of_pass = sweep.location(location, of_location, &allocated.span, is_worker);
                }
            }
            let Sweep { kinds, histograms, rests, cuts, undecided, .. } = sweep;
            FirstPass { found, kinds, histograms, rests, cuts, undecided }
        })
        .collect()
}

/// The floors of all kinds, once it is decided which calls are exposed.
fn decided_floors(trace: &Trace, passes: &mut [FirstPass], has_bad_clocks: bool) -> Result<Floors> {
    let find = |passes: &[FirstPass]| {
        let histograms = passes.iter().flat_map(|pass| pass.kinds.iter().copied().zip(&pass.histograms));
        Floors::find(&trace.exchange, histograms, has_bad_clocks)
    };
    let certain = find(passes)?;
    if !trace.exchange.any(passes.iter().any(|pass| !pass.undecided.is_empty()))? {
        return Ok(certain);
    }
    passes.par_iter_mut().for_each(|pass| pass.decide(&certain));
    find(passes)
}

/// Makes the account of a focus. All own code counts as off the critical path: see [`Account::divide`].
///
/// `devices` are the devices of all shards. Floors come from all of the run. With the locks of the processes of all
/// shards, what speaks for a reason of losses is looked for, too. Of several processes each has the cells of its
/// locations, until [`Account::gather`].
pub(crate) fn find(
    trace: &Trace,
    waits: &PerShard<WaitState>,
    devices: &[Devices],
    focus: &Range<i64>,
    has_bad_clocks: bool,
    locks: Option<&[Vec<Vec<ThreadLock>>]>,
) -> Result<Account> {
    let callpaths = CallPaths::of(trace);
    let team_members = team_members(trace);
    let busy = BusyWaits::new(devices);
    let mut passes = first_passes(trace, waits, &callpaths, &busy, focus, |shard, location| {
        allocated(trace, shard, location, focus, &team_members)
    });
    let floors = decided_floors(trace, &mut passes, has_bad_clocks)?;
    let of_shards: Vec<(Vec<Cell>, OfKinds, (u64, i64))> = trace
        .par_shards()
        .zip(&passes)
        .map(|(shard, pass)| {
            let mut second = SecondPass::new((trace, shard), &callpaths, &floors, pass);
            let mut cells = Vec::new();
            let reasons = idle_threads(trace, shard, &callpaths, pass);
            for (allocated, found) in &pass.found {
                second.location(allocated, found, reasons.get(&allocated.location), focus, &mut cells);
            }
            (cells, second.of_kinds, second.pauses)
        })
        .collect();
    let network = floors.all.iter().map(|&floor| Network { floor, needed: 0, excess: 0 });
    let (devices, groups) = devices::find(trace, waits, devices, &callpaths, &busy, focus)?;
    let mut account = Account { network: network.collect(), devices, groups, ..Account::default() };
    for (mut cells, of_kinds, (pauses, lost)) in of_shards {
        account.cells.append(&mut cells);
        account.pauses = (account.pauses.0 + pauses, account.pauses.1 + lost);
        for (kind, needed, excess) in of_kinds {
            account.network[kind].needed += needed;
            account.network[kind].excess += excess;
        }
    }
    for (_, found) in passes.iter().flat_map(|pass| &pass.found) {
        account.locations += 1;
        account.time += found.allocated;
    }
    if let Some(locks) = locks {
        let of_shards = passes.iter().map(|pass| {
            let found = pass.found.iter().map(|(allocated, found)| (allocated.location, found));
            (&*pass.kinds, &*pass.rests, found)
        });
        account.reasons = Reasons::find(&Calls::new(trace, &callpaths, &floors, focus, of_shards), locks)?;
    }
    // All calls of a kind may have turned out to be exposed.
    account.network.retain(|of_kind| of_kind.floor.calls > 0);
    account.sort();
    Ok(account)
}

/// The group that own time in each call path belongs to, as far as it is no wait.
pub(crate) fn groups_of_callpaths(trace: &Trace) -> Vec<Group> {
    let group = |activity| match activity {
        Activity::Own => Group::Computation,
        Activity::Unknown | Activity::Measurement => Group::Other,
        Activity::Transfer | Activity::Probe | Activity::Library => Group::Transfer,
        Activity::Io => Group::Io,
        Activity::ForkJoin | Activity::Barrier | Activity::Runtime => Group::Threads,
        Activity::Device => Group::Devices,
    };
    activities::of_tree(trace).into_iter().map(group).collect()
}

/// What calls take beyond the fastest 5% of their kind, by location: where each such call ends, by the position of that
/// event, and its excess, ticks; in the order of positions.
pub type Excess = Vec<Vec<(u32, i64)>>;

/// What calls take beyond the fastest 5% of their kind. Needs the events of all processes.
pub(crate) fn excesses(
    trace: &Trace,
    waits: &PerShard<WaitState>,
    devices: &[Devices],
    has_bad_clocks: bool,
) -> Result<Excess> {
    let callpaths = CallPaths::of(trace);
    let busy = BusyWaits::new(devices);
    let (first, last) = trace.span().unwrap_or_default();
    // No call reaches out of the run.
    let mut passes = first_passes(trace, waits, &callpaths, &busy, &(first..last), |_, location| {
        Some(Allocated { location, span: first..first, master: None })
    });
    let floors = decided_floors(trace, &mut passes, has_bad_clocks)?;
    let mut all = Vec::with_capacity(trace.definitions.locations.len());
    for FirstPass { found, kinds, rests, .. } in passes {
        let of_kinds: Vec<i64> = kinds.iter().map(|&kind| floors.all[floors.position(kind)].floor).collect();
        let excess = |rest: &Rest| {
            let excess = rest.ticks.saturating_sub(of_kinds[rest.kind as usize]);
            (excess > 0).then_some((rest.leave, excess))
        };
        all.extend(found.iter().map(|(_, found)| rests[found.rests.clone()].iter().filter_map(excess).collect()));
    }
    Ok(all)
}

impl Account {
    /// How many locations compute at the same time on nodes that may share cores.
    pub fn together_on_few(&self) -> impl Iterator<Item = &Together> {
        let may_share = |node: &&Together| {
            let is_few = self.cores.iter().any(|few| few.location == node.location);
            is_few || self.reasons.crowded.iter().any(|crowded| crowded.location == node.location)
        };
        self.together.iter().filter(may_share)
    }

    fn sort(&mut self) {
        self.cells.sort_unstable_by_key(|cell| (cell.row, cell.callpath, cell.location));
    }

    /// Divides own code into that on the critical path and the rest. `path` has the times of the path in the focus.
    pub(crate) fn divide(&mut self, path: &[Severity]) {
        let mut on_path: FxHashMap<(CallPathId, LocationId), i64> = FxHashMap::default();
        for cell in path {
            *on_path.entry((cell.callpath, cell.location)).or_default() += cell.value;
        }
        let mut critical = Vec::new();
        self.cells.retain_mut(|cell| {
            if cell.row != Row::ComputationOther {
                return true;
            }
            let on_path = on_path.get(&(cell.callpath, cell.location)).copied().unwrap_or(0);
            let ticks = on_path.clamp(0, cell.ticks);
            if ticks > 0 {
                critical.push(Cell { row: Row::ComputationCritical, ticks, ..*cell });
            }
            cell.ticks -= ticks;
            cell.ticks > 0
        });
        critical.append(&mut self.cells);
        self.cells = critical;
    }

    /// Gathers the accounts of all processes at the first.
    pub(crate) fn gather(mut self, exchange: &Exchange) -> Result<Self> {
        self.cells = exchange.gatherv(self.cells)?;
        let sums: Vec<(i64, i64)> = self.network.iter().map(|of_kind| (of_kind.needed, of_kind.excess)).collect();
        self.devices = exchange.gatherv(self.devices)?;
        self.groups = GroupTime::merged(exchange.gatherv(self.groups)?);
        let of_processes = exchange.gather((sums, self.locations, self.time, self.pauses))?;
        for (rank, (sums, locations, time, pauses)) in of_processes.into_iter().enumerate() {
            if rank > 0 {
                for (of_kind, (needed, excess)) in self.network.iter_mut().zip(sums) {
                    of_kind.needed += needed;
                    of_kind.excess += excess;
                }
                self.locations += locations;
                self.time += time;
                self.pauses = (self.pauses.0 + pauses.0, self.pauses.1 + pauses.1);
            }
        }
        self.devices.sort_unstable_by_key(|cell| (cell.device, cell.row, cell.callpath));
        self.sort();
        Ok(self)
    }
}

/// The locations that teams of threads name.
fn team_members(trace: &Trace) -> FxHashSet<LocationId> {
    let teams = trace.definitions.comms.iter().filter_map(|comm| match &*comm.members {
        Members::Locations(members) => Some(members),
        _ => None,
    });
    teams.flatten().copied().collect()
}

/// When a location belongs to the program: a process from its first event to the end of the focus, and so do the threads
/// of its teams; other threads until their last event.
fn allocated(
    trace: &Trace,
    shard: &Shard,
    location: LocationId,
    focus: &Range<i64>,
    team_members: &FxHashSet<LocationId>,
) -> Option<Allocated> {
    let definition = &trace.definitions.locations[location];
    if !definition.is_thread() {
        return None;
    }
    let span = &shard.spans[shard.local(location)];
    let has_events = span.first <= span.last;
    let cut = |begin: i64, end: i64| begin.max(focus.start)..end.min(focus.end);
    if definition.process.is_some() {
        let master = trace.definitions.master(definition.process);
        if location == master {
            return has_events.then(|| Allocated { location, span: cut(span.first, i64::MAX), master: None });
        }
        let mut teams = shard.teams.of(shard.local(location)).iter().filter(|team| team.fork != NONE);
        let is_worker = teams.any(|team| !is_forker(shard, location, team))
            || (!has_events && definition.events == 0 && team_members.contains(&location));
        let of_master = &shard.spans[shard.local(master)];
        if is_worker && of_master.first <= of_master.last {
            let first = if has_events { of_master.first.min(span.first) } else { of_master.first };
            return Some(Allocated { location, span: cut(first, i64::MAX), master: Some(master) });
        }
    }
    has_events.then(|| Allocated { location, span: cut(span.first, span.last), master: None })
}

/// Why the idle threads of a shard are idle.
fn idle_threads(
    trace: &Trace,
    shard: &Shard,
    callpaths: &CallPaths,
    pass: &FirstPass,
) -> FxHashMap<LocationId, idle::Reasons> {
    let mut of_masters: FxHashMap<LocationId, Vec<(Range<i64>, LocationId)>> = FxHashMap::default();
    for (allocated, found) in &pass.found {
        if let Some(master) = allocated.master {
            let spans = found.idle.iter().map(|span| (span.clone(), allocated.location));
            of_masters.entry(master).or_default().extend(spans);
        }
    }
    let mut all = FxHashMap::default();
    #[expect(clippy::iter_over_hash_type, reason = "each thread has one master")]
    for (location, spans) in of_masters {
        let management = management(shard, location);
        let local = shard.local(location);
        let master = idle::Master { shard, tree: &trace.tree, callpaths, local, management: &management };
        all.extend(master.reasons(spans));
    }
    all
}

/// What the calls of a call path took beyond their waits.
#[derive(Clone, Copy, Debug, Default)]
struct Taken {
    needed: i64,
    excess: i64,
    calls: u64,
    slow: u64,
}

impl Taken {
    fn add(&mut self, needed: i64, excess: i64) {
        self.needed += needed;
        self.excess += excess;
        self.calls += 1;
        self.slow += u64::from(excess > 0);
    }
}

/// Of some kinds: the position among all, the time needed, and the excess.
type OfKinds = Vec<(usize, i64, i64)>;

/// Divides the rest of each call into what it needs and the excess.
struct SecondPass<'a> {
    shard: &'a Shard,
    callpaths: &'a CallPaths,
    pass: &'a FirstPass,
    /// Of each kind of the shard: its floor, and whether its calls wait.
    floors: Vec<(i64, bool)>,
    /// Of each kind of the shard: its position among all, the time needed, and the excess.
    of_kinds: OfKinds,
    /// By call path, for calls that transfer, and for others.
    taken: Vec<Taken>,
    touched: Vec<CallPathId>,
    probes: FxHashMap<CallPathId, Taken>,
    /// The shortest excess that counts as a pause, and the number and excess of such calls.
    pause: i64,
    pauses: (u64, i64),
}

impl<'a> SecondPass<'a> {
    fn new(
        (trace, shard): (&Trace, &'a Shard),
        callpaths: &'a CallPaths,
        floors: &Floors,
        pass: &'a FirstPass,
    ) -> Self {
        let positions: Vec<usize> = pass.kinds.iter().map(|&kind| floors.position(kind)).collect();
        let of_kind = |(&position, kind): (&usize, &Kind)| (floors.all[position].floor, kind.exposed);
        Self {
            shard,
            callpaths,
            pass,
            floors: positions.iter().zip(&pass.kinds).map(of_kind).collect(),
            of_kinds: positions.into_iter().map(|position| (position, 0, 0)).collect(),
            taken: vec![Taken::default(); trace.tree.len()],
            touched: Vec::new(),
            probes: FxHashMap::default(),
            pause: (trace.resolution / 1000).max(1) as i64,
            pauses: (0, 0),
        }
    }

    fn location(
        &mut self,
        allocated: &Allocated,
        found: &Found,
        idle: Option<&idle::Reasons>,
        focus: &Range<i64>,
        cells: &mut Vec<Cell>,
    ) {
        let location = allocated.location;
        let first = cells.len();
        let cell = |row, callpath, ticks| Cell { row, callpath, location, ticks, excess: 0, calls: 0 };
        for rest in &self.pass.rests[found.rests.clone()] {
            let (floor, exposed) = self.floors[rest.kind as usize];
            let needed = rest.ticks.min(floor);
            self.take(rest, exposed, needed, rest.ticks - needed);
        }
        for CutRest { rest, before, inside } in &self.pass.cuts[found.cuts.clone()] {
            let (floor, exposed) = self.floors[rest.kind as usize];
            let needed = (rest.ticks.min(floor) - before).clamp(0, *inside);
            self.take(rest, exposed, needed, inside - needed);
        }
        for callpath in std::mem::take(&mut self.touched) {
            let taken = std::mem::take(&mut self.taken[callpath]);
            emit(self.callpaths.activities[callpath], callpath, taken, location, cells);
        }
        let mut probes: Vec<(CallPathId, Taken)> = self.probes.drain().collect();
        probes.sort_unstable_by_key(|&(callpath, _)| callpath);
        for (callpath, taken) in probes {
            emit(Activity::Library, callpath, taken, location, cells);
        }
        cells.extend(
            found.parts.iter().map(|part| Cell { calls: part.calls, ..cell(part.row, part.callpath, part.ticks) }),
        );
        let mut rest = found.allocated - found.booked;
        for (&(row, callpath), &ticks) in idle.into_iter().flatten() {
            rest -= ticks;
            cells.push(cell(row, callpath, ticks));
        }
        // A process that ended before the focus does; of a damaged file, the rest is unknown.
        let span = &self.shard.spans[self.shard.local(location)];
        if allocated.master.is_none() && !span.truncated {
            let ended = (allocated.span.end - span.last.max(focus.start)).clamp(0, rest.max(0));
            rest -= ended;
            cells.push(cell(Row::IdleEnded, CallPathId::NONE, ended));
        }
        debug_assert!(rest >= 0, "location {location} has {rest} ticks too many");
        cells.push(cell(Row::Unknown, CallPathId::NONE, rest));
        // One cell for each row and call path, without those of no time and no calls.
        cells[first..].sort_unstable_by_key(|cell| (cell.row, cell.callpath));
        let mut last = first;
        for i in first..cells.len() {
            let cell = cells[i];
            if cell.ticks == 0 && cell.calls == 0 {
                continue;
            }
            if last > first && (cells[last - 1].row, cells[last - 1].callpath) == (cell.row, cell.callpath) {
                let sum = &mut cells[last - 1];
                sum.ticks += cell.ticks;
                sum.excess += cell.excess;
                sum.calls += cell.calls;
            } else {
                cells[last] = cell;
                last += 1;
            }
        }
        cells.truncate(last);
        debug_assert_eq!(cells[first..].iter().map(|cell| cell.ticks).sum::<i64>(), found.allocated, "{location}");
        debug_assert!(cells[first..].iter().all(|cell| 0 <= cell.excess && cell.excess <= cell.ticks), "{location}");
    }

    #[inline]
    fn take(&mut self, rest: &Rest, exposed: bool, needed: i64, excess: i64) {
        let of_kind = &mut self.of_kinds[rest.kind as usize];
        of_kind.1 += needed;
        of_kind.2 += excess;
        if excess >= self.pause {
            self.pauses = (self.pauses.0 + 1, self.pauses.1 + excess);
        }
        let callpath = self.shard.events.callpath(rest.leave);
        let is_library = self.callpaths.activities[callpath] == Activity::Probe && !exposed;
        if is_library {
            self.probes.entry(callpath).or_default().add(needed, excess);
            return;
        }
        let taken = &mut self.taken[callpath];
        if taken.calls == 0 {
            self.touched.push(callpath);
        }
        taken.add(needed, excess);
    }
}

/// Adds the cells of a call path's calls.
fn emit(activity: Activity, callpath: CallPathId, taken: Taken, location: LocationId, cells: &mut Vec<Cell>) {
    let Taken { needed, excess, calls, slow } = taken;
    let mut add = |row, ticks, excess, calls| cells.push(Cell { row, callpath, location, ticks, excess, calls });
    match activity {
        Activity::Barrier => add(Row::ThreadBarrier, needed + excess, excess, calls),
        Activity::Runtime => add(Row::ThreadRuntime, needed + excess, excess, calls),
        Activity::Library => {
            add(Row::LibraryNeeded, needed, 0, calls);
            add(Row::LibraryExcess, excess, excess, slow);
        }
        _ => {
            add(Row::TransferNeeded, needed, 0, calls);
            add(Row::TransferExcess, excess, excess, slow);
        }
    }
}
