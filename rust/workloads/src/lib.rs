//! Synthetic traces in the event model of Score-P whose waiting times are known by construction.
//!
//! A workload is simulated once for all ranks. The result is a schedule: a few numbers per rank and iteration, from
//! which all other times follow. Then each rank's events are written from the schedule, in parallel, one file at a
//! time, so memory does not grow with the number of events. Meanwhile, waiting times are computed from the schedule by
//! the definitions of the patterns, and written to `truth.csv` and `truth.json` beside the archive.

#![deny(unsafe_code)]

mod armci;
mod bt;
mod bt_rma;
mod cgpop;
mod collective;
mod comd_gpu;
mod contention;
mod definitions;
mod event_writer;
mod figures;
mod flood;
mod gats;
mod grid;
mod iallreduce;
mod late_senders;
mod lb;
mod lock;
mod matmul;
mod messages;
mod multirate;
mod noise;
mod nwchem;
mod omp_locks;
mod omp_tasks;
mod passive;
mod program;
mod random_rma;
mod script;
mod sor;
mod srumma;
mod sweep;
mod teams;
mod truth;
mod xns;

use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, AtomicU32, AtomicU64, Ordering};

use rayon::prelude::*;
use whywait_otf2::{ArchiveWriter, WriteOptions};

use collective::{Collective, Departure, GAP, Kind};
use definitions::{RESOLUTION, Region, WORLD};
use event_writer::EventWriter;
use noise::{Noise, Purpose};
use teams::Teams;

/// The available workloads.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Workload {
    /// Stencil on a grid of ranks; the halo is exchanged with `Isend`, `Irecv`, and `Waitall`.
    SorP2p,
    /// The same with puts between fences.
    SorFence,
    /// The same with puts between post, start, complete and wait.
    SorGats,
    /// The same with puts between lock and unlock; targets make progress inside MPI only.
    SorLocks,
    /// Matrix multiplication with blocking ARMCI gets; targets make progress inside ARMCI only.
    Srumma,
    /// Sweeps along the three directions of a multi-partition, without any collective operation.
    Bt,
    /// All ranks but the first lock the window of the first, again and again.
    Contention,
    /// Puts, gets and atomics of random number, size and target: an iteration between fences, one between locks in
    /// turn.
    RandomRma,
    /// Load imbalance before a collective operation (LB-COLL).
    LbColl,
    /// Load imbalance before messages (LB-P2P).
    LbP2p,
    /// Wavefronts from the four corners of a grid.
    Sweep,
    /// Messages among many ranks, most of them empty.
    Xns,
    /// BT with both of its exchanges between fences.
    BtFence,
    /// BT with the exchange of the solver between post, start, complete and wait.
    BtGatsFence,
    /// BT with both exchanges so.
    BtGatsSingle,
    /// The same with a window for each buffer.
    BtGatsMulti,
    /// A halo along a line, after a barrier; two ranks have more to do.
    CgpopOriginal,
    /// The same without the barrier.
    CgpopModified,
    /// A delay that makes a post late two processes away.
    LatePost,
    /// Puts between post, start, complete and wait.
    PutGats,
    /// A chain of processes that wait for a lock.
    LockChain,
    /// Matrix multiplication with non-blocking ARMCI gets, whose number grows with that of the processes.
    SrummaNb,
    /// Irregular ARMCI operations between barriers.
    Nwchem,
    /// A flood of messages to a rank that receives late.
    Flood,
    /// A kernel a rank and iteration, as long as the load of the rank, and an Allreduce; counters of its efficiency.
    ComdGpu,
    /// Windows of messages between the threads of two processes, on one communicator.
    Multirate,
    /// The same with a communicator for each pair of threads.
    MultirateComms,
    /// Threads that take turns in a critical section.
    OmpLocks,
    /// Tasks that one thread creates, and all run.
    OmpTasks,
    /// `MPI_Iallreduce` between two pieces of work.
    Iallreduce,
}

impl Workload {
    /// All workloads and their names.
    pub const ALL: &[(&str, Self)] = &[
        ("sor-p2p", Self::SorP2p),
        ("sor-fence", Self::SorFence),
        ("sor-gats", Self::SorGats),
        ("sor-locks", Self::SorLocks),
        ("srumma", Self::Srumma),
        ("bt", Self::Bt),
        ("contention", Self::Contention),
        ("random-rma", Self::RandomRma),
        ("lb-coll", Self::LbColl),
        ("lb-p2p", Self::LbP2p),
        ("sweep", Self::Sweep),
        ("xns", Self::Xns),
        ("bt-rma-fence", Self::BtFence),
        ("bt-rma-gats-fence", Self::BtGatsFence),
        ("bt-rma-gats-single", Self::BtGatsSingle),
        ("bt-rma-gats-multi", Self::BtGatsMulti),
        ("cgpop-original", Self::CgpopOriginal),
        ("cgpop-modified", Self::CgpopModified),
        ("late-post", Self::LatePost),
        ("put-gats", Self::PutGats),
        ("lock-chain", Self::LockChain),
        ("srumma-nb", Self::SrummaNb),
        ("nwchem", Self::Nwchem),
        ("flood", Self::Flood),
        ("comd-gpu", Self::ComdGpu),
        ("multirate", Self::Multirate),
        ("multirate-comms", Self::MultirateComms),
        ("omp-locks", Self::OmpLocks),
        ("omp-tasks", Self::OmpTasks),
        ("iallreduce", Self::Iallreduce),
    ];

    /// The workload with a name.
    pub fn named(name: &str) -> Option<Self> {
        Self::ALL.iter().find(|known| known.0 == name).map(|known| known.1)
    }

    fn name(self) -> &'static str {
        Self::ALL.iter().find(|known| known.1 == self).map_or("", |known| known.0)
    }
}

/// Parameters of a workload.
#[derive(Clone, Copy, Debug)]
pub struct Spec {
    /// The program.
    pub workload: Workload,
    /// Number of processes.
    pub ranks: u32,
    /// Iterations of its main loop.
    pub iterations: u32,
    /// The same seed gives the same trace.
    pub seed: u64,
    /// Ticks of work between two exchanges, at least; a tick is a nanosecond.
    pub work: u32,
    /// Maximum of additional work as a share: half varies by rank, half by rank and iteration.
    pub imbalance: f64,
    /// Whether to write the run that an optimization aims at: of the benchmarks of load balance with equal work (the
    /// mean of all ranks), of `Xns` without empty messages.
    pub balanced: bool,
    /// Whether BT-RMA has a barrier after each dimension of its solver, as on one machine of the thesis (section 5.2).
    pub barriers: bool,
    /// The machine that determines the times of BT-RMA's calls.
    pub machine: Machine,
    /// The threads of a process, and what each of them does in an iteration.
    pub stream: Stream,
}

/// What the threads of a process do: messages that they send to those of another one, critical sections, or tasks.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Stream {
    /// Threads of a process.
    pub threads: u32,
    /// Messages, critical sections, or tasks of a thread in an iteration.
    pub window: u32,
    /// Bytes of a message.
    pub bytes: u32,
    /// Share of rounds in which all threads of a process send at once.
    pub overlap: f64,
}

impl Default for Stream {
    fn default() -> Self {
        Self { threads: 2, window: 64, bytes: 64, overlap: 0.25 }
    }
}

/// The machines that the thesis measured BT-RMA on (section 5.2).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Machine {
    /// An IBM Power6 575 (table A.5).
    #[default]
    Jump2,
    /// A Blue Gene/P (table A.6).
    Jugene,
    /// A Blue Gene/Q (table A.7).
    Juqueen,
}

impl Machine {
    /// All machines and their names.
    pub const ALL: &[(&str, Self)] = &[("jump2", Self::Jump2), ("jugene", Self::Jugene), ("juqueen", Self::Juqueen)];

    /// The machine with a name.
    pub fn named(name: &str) -> Option<Self> {
        Self::ALL.iter().find(|known| known.0 == name).map(|known| known.1)
    }

    fn name(self) -> &'static str {
        Self::ALL.iter().find(|known| known.1 == self).map_or("", |known| known.0)
    }
}

impl Spec {
    /// A workload with a millisecond of work and a fifth of imbalance.
    pub fn new(workload: Workload, ranks: u32, iterations: u32, seed: u64) -> Self {
        let (machine, stream) = (Machine::default(), Stream::default());
        Self {
            workload,
            ranks,
            iterations,
            seed,
            work: 1_000_000,
            imbalance: 0.2,
            balanced: false,
            barriers: false,
            machine,
            stream,
        }
    }
}

/// Why nothing was generated.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// The archive could not be written.
    #[error(transparent)]
    Archive(#[from] whywait_otf2::Error),
    /// The truth could not be written.
    #[error("{path}: {source}")]
    Truth {
        /// The directory.
        path: PathBuf,
        /// The error of the system.
        source: std::io::Error,
    },
    /// There is no such run.
    #[error("{0}")]
    Spec(&'static str),
    /// The generation was cancelled.
    #[error("interrupted")]
    Interrupted,
}

/// Progress of the generation, and its cancellation.
#[derive(Debug, Default)]
pub struct Progress {
    /// Ranks that are written.
    pub ranks: AtomicU32,
    cancelled: AtomicBool,
}

impl Progress {
    /// Asks to stop at the next rank.
    pub fn cancel(&self) {
        self.cancelled.store(true, Ordering::Relaxed);
    }
}

/// The size of a generated trace.
#[derive(Clone, Copy, Debug)]
pub struct Summary {
    /// Number of events.
    pub events: u64,
    /// Ticks from the first event to the last.
    pub length: i64,
}

/// When the first rank starts, ticks.
const BEGIN: i64 = 1_000_000_000;
/// Minimum work, ticks: it must exceed the spread of the Leaves of a collective.
const SHORTEST_WORK: u32 = 20_000;

/// A simulated workload.
trait Schedule: Sync {
    /// Sets of ranks that the events name.
    fn groups(&self) -> Vec<Vec<u64>> {
        Vec::new()
    }
    /// Windows, of which the first is created and freed outside of the main loop.
    fn windows(&self) -> u32 {
        1
    }
    /// Writes a rank's main loop.
    fn write(&self, writer: &mut EventWriter<'_>, rank: u32) -> whywait_otf2::Result<()>;
    /// When a rank has finished its last call.
    fn end(&self, rank: u32) -> i64;
    /// Communicators of all ranks.
    fn communicators(&self) -> u32 {
        1
    }
    /// Threads of a rank.
    fn threads(&self) -> u32 {
        1
    }
    /// Writes what another thread of a rank does than the first.
    fn write_thread(&self, _: &mut EventWriter<'_>, _: u32, _: u32) -> whywait_otf2::Result<()> {
        Ok(())
    }
    /// Whether ranks have devices.
    fn has_devices(&self) -> bool {
        false
    }
    /// Writes the events of a rank's device.
    fn write_device(&self, _: &mut EventWriter<'_>, _: u32) -> whywait_otf2::Result<()> {
        Ok(())
    }
}

/// What comes before the main loop.
struct Start {
    noise: Noise,
    ranks: u32,
    init: Collective,
    /// The creation of the window, if there is one.
    create: Option<Collective>,
    spec: Spec,
}

impl Start {
    fn new(spec: Spec, window: bool) -> Self {
        let (noise, ranks) = (Noise::new(spec.seed), spec.ranks);
        let mut start = Self { noise, ranks, init: Collective::new(noise, ranks, 0, |_| BEGIN), create: None, spec };
        start.init = start.collective(0, |rank| start.begin(rank));
        if window {
            start.create = Some(start.collective(1, |rank| start.init.leave(rank) + GAP));
        }
        start
    }

    /// When a rank enters `MPI_Init`.
    fn begin(&self, rank: u32) -> i64 {
        BEGIN + 100 + self.noise.below(100_000, Purpose::Start, rank, 0)
    }

    fn collective(&self, step: u64, enter: impl Fn(u32) -> i64 + Sync) -> Collective {
        Collective::new(self.noise, self.ranks, step, enter)
    }

    /// A collective call in the main loop, by its number there.
    fn collective_in_loop(&self, number: usize, enter: impl Fn(u32) -> i64 + Sync) -> Collective {
        self.collective(4 + number as u64, enter)
    }

    /// A collective call in the main loop that some ranks leave late.
    fn collective_with_departure(
        &self,
        number: usize,
        departure: Departure,
        enter: impl Fn(u32) -> i64 + Sync,
    ) -> Collective {
        Collective::with_departure(self.noise, self.ranks, 4 + number as u64, departure, enter)
    }

    /// When a rank begins the main loop.
    fn end(&self, rank: u32) -> i64 {
        self.create.as_ref().unwrap_or(&self.init).leave(rank) + GAP
    }

    /// How long a rank works at a step.
    fn work(&self, rank: u32, step: u64) -> i64 {
        let work = i64::from(self.spec.work);
        let most = (work as f64 * self.spec.imbalance / 2.0) as i64;
        work + self.noise.below(most + 1, Purpose::Rank, rank, 0)
            + self.noise.below(most + 1, Purpose::Work, rank, step)
    }

    /// Total work of all ranks at a step.
    fn work_of_all(&self, step: u64) -> i64 {
        (0..self.ranks).into_par_iter().map(|rank| self.work(rank, step)).sum()
    }

    /// Work of a rank at a step: its own, or in a balanced run its share of the total `sum`.
    fn work_or_mean(&self, rank: u32, step: u64, sum: i64) -> i64 {
        if self.spec.balanced { mean(sum, self.ranks, rank) } else { self.work(rank, step) }
    }
}

fn scripted<'a>(start: &'a Start, script: script::Script<'a>) -> Box<dyn Schedule + 'a> {
    Box::new(script::Simulated::new(start, script))
}

/// A rank's share of a sum: the quotient, and one more for the first ranks, as many as the remainder.
fn mean(sum: i64, ranks: u32, rank: u32) -> i64 {
    let (quotient, rest) = (sum / i64::from(ranks), sum % i64::from(ranks));
    quotient + i64::from(i64::from(rank) < rest)
}

/// Writes the archive `traces` and the truth into a directory.
pub fn generate(spec: Spec, directory: &Path, progress: &Progress) -> Result<Summary, Error> {
    if spec.ranks < 2 || spec.iterations == 0 {
        return Err(Error::Spec("a workload needs two ranks and one iteration at least"));
    }
    if spec.work < SHORTEST_WORK || !(0.0..=100.0).contains(&spec.imbalance) {
        return Err(Error::Spec("work must be 20000 ticks at least, and imbalance between 0 and 100"));
    }
    let has_counterpart = matches!(spec.workload, Workload::LbColl | Workload::LbP2p | Workload::Sweep | Workload::Xns);
    if spec.balanced && !has_counterpart {
        return Err(Error::Spec("only lb-coll, lb-p2p, sweep and xns have a balanced form"));
    }
    let is_bt = matches!(
        spec.workload,
        Workload::BtFence | Workload::BtGatsFence | Workload::BtGatsSingle | Workload::BtGatsMulti
    );
    if spec.barriers && !is_bt {
        return Err(Error::Spec("only bt-rma-... can have barriers"));
    }
    if spec.machine != Machine::default() && !is_bt {
        return Err(Error::Spec("only bt-rma-... can have the calls of a machine"));
    }
    let is_multirate = matches!(spec.workload, Workload::Multirate | Workload::MultirateComms);
    let has_teams = matches!(spec.workload, Workload::OmpLocks | Workload::OmpTasks);
    let Stream { threads, window, bytes, overlap } = spec.stream;
    if (threads, window) != (Stream::default().threads, Stream::default().window) && !is_multirate && !has_teams {
        return Err(Error::Spec("only multirate... and omp-... have threads and windows"));
    }
    if (bytes, overlap) != (Stream::default().bytes, Stream::default().overlap) && !is_multirate {
        return Err(Error::Spec("only multirate... has messages of threads"));
    }
    if ![threads, window].iter().all(|count| (1..=10_000).contains(count))
        || bytes == 0
        || !(0.0..=1.0).contains(&overlap)
    {
        return Err(Error::Spec("threads and window must be 1 to 10000, a message has a byte, and overlap is a share"));
    }
    if has_teams && threads < 2 {
        return Err(Error::Spec("a team has two threads at least"));
    }
    let has_window = !has_counterpart
        && !is_multirate
        && !has_teams
        && !matches!(
            spec.workload,
            Workload::SorP2p | Workload::Bt | Workload::Flood | Workload::ComdGpu | Workload::Iallreduce
        );
    let start = Start::new(spec, has_window);
    let (create, free) = match spec.workload {
        Workload::Srumma | Workload::SrummaNb | Workload::Nwchem => (Kind::MALLOC, Kind::DISPOSE),
        _ => (Kind::CREATE, Kind::FREE),
    };
    let schedule: Box<dyn Schedule + '_> = match spec.workload {
        Workload::SorP2p => Box::new(sor::Sor::new(&start, sor::Variant::P2p)),
        Workload::SorFence => Box::new(sor::Sor::new(&start, sor::Variant::Fence)),
        Workload::SorGats => Box::new(sor::Sor::new(&start, sor::Variant::Gats)),
        Workload::SorLocks => Box::new(sor::Sor::new(&start, sor::Variant::Locks)),
        Workload::Srumma => Box::new(srumma::Srumma::new(&start)),
        Workload::Bt => Box::new(bt::Bt::new(&start)),
        Workload::Contention => Box::new(contention::Contention::new(&start)),
        Workload::RandomRma => Box::new(random_rma::RandomRma::new(&start)),
        Workload::LbColl => Box::new(lb::Coll::new(&start)),
        Workload::LbP2p => Box::new(lb::P2p::new(&start)),
        Workload::Sweep => Box::new(sweep::Sweep::new(&start)),
        Workload::Xns => Box::new(xns::Xns::new(&start)),
        Workload::BtFence => scripted(&start, bt_rma::script(&start, bt_rma::Variant::Fence)),
        Workload::BtGatsFence => scripted(&start, bt_rma::script(&start, bt_rma::Variant::GatsFence)),
        Workload::BtGatsSingle => scripted(&start, bt_rma::script(&start, bt_rma::Variant::GatsSingle)),
        Workload::BtGatsMulti => scripted(&start, bt_rma::script(&start, bt_rma::Variant::GatsMulti)),
        Workload::CgpopOriginal => scripted(&start, cgpop::script(&start, true)),
        Workload::CgpopModified => scripted(&start, cgpop::script(&start, false)),
        Workload::LatePost => scripted(&start, figures::late_post(&start)),
        Workload::PutGats => scripted(&start, figures::put_gats(&start)),
        Workload::LockChain => Box::new(lock::Lock::new(&start)),
        Workload::SrummaNb => Box::new(armci::Armci::new(&start, matmul::Matmul::new(&start))),
        Workload::Nwchem => Box::new(armci::Armci::new(&start, nwchem::Nwchem { start: &start })),
        Workload::Flood => Box::new(flood::Flood::new(&start)),
        Workload::ComdGpu => Box::new(comd_gpu::Comd::new(&start)),
        Workload::Multirate => Box::new(multirate::Multirate::new(&start, false)),
        Workload::MultirateComms => Box::new(multirate::Multirate::new(&start, true)),
        Workload::OmpLocks => Box::new(Teams::new(&start, omp_locks::Locks { threads, window })),
        Workload::OmpTasks => Box::new(Teams::new(&start, omp_tasks::Tasks { threads, window, first_team: WORLD + 1 })),
        Workload::Iallreduce => Box::new(iallreduce::Iallreduce::new(&start)),
    };
    let end = |rank| schedule.end(rank) + GAP;
    let freed = start.create.map(|_| start.collective(2, end));
    let last = |rank| freed.map_or_else(|| end(rank), |freed| freed.leave(rank) + GAP);
    let finalize = start.collective(3, last);
    let length = (0..spec.ranks).into_par_iter().map(|rank| finalize.leave(rank)).max().unwrap_or(0) + 100 - BEGIN;

    let windows = if start.create.is_some() { schedule.windows() } else { 0 };
    let archive = ArchiveWriter::create(directory, "traces", WriteOptions::default())?;
    let kinds = definitions::Kinds {
        windows,
        communicators: schedule.communicators(),
        threads: schedule.threads(),
        has_devices: schedule.has_devices(),
        groups: schedule.groups(),
    };
    definitions::define(&archive, spec.ranks, (BEGIN, length), &kinds);
    let events = AtomicU64::new(0);
    let write = |rank: u32| -> Result<truth::Lines, Error> {
        if progress.cancelled.load(Ordering::Relaxed) {
            return Err(Error::Interrupted);
        }
        let behind = start.noise.below(1_000, Purpose::Clock, rank, 0);
        let tape_of = |location| EventWriter::new(&archive, location, rank, behind, kinds.communicators);
        let mut writer = tape_of(u64::from(rank))?;
        writer.begin(start.begin(rank) - 20)?;
        start.init.write(&mut writer, &Kind::INIT, rank, start.begin(rank))?;
        if let Some(created) = start.create {
            created.write(&mut writer, &create, rank, start.init.leave(rank) + GAP)?;
        }
        schedule.write(&mut writer, rank)?;
        if let Some(freed) = freed {
            freed.write(&mut writer, &free, rank, end(rank))?;
        }
        finalize.write(&mut writer, &Kind::FINALIZE, rank, last(rank))?;
        events.fetch_add(writer.events() + 2, Ordering::Relaxed);
        let mut truth = writer.finish(finalize.leave(rank) + 20)?;
        for thread in 1..kinds.threads {
            let mut writer = tape_of(definitions::thread(spec.ranks, kinds.threads, rank, thread))?;
            schedule.write_thread(&mut writer, rank, thread)?;
            events.fetch_add(writer.events(), Ordering::Relaxed);
            truth.absorb(writer.close()?);
        }
        if kinds.has_devices {
            let mut writer = tape_of(definitions::stream(spec.ranks, rank))?;
            schedule.write_device(&mut writer, rank)?;
            events.fetch_add(writer.events(), Ordering::Relaxed);
            truth.absorb(writer.close()?);
        }
        progress.ranks.fetch_add(1, Ordering::Relaxed);
        Ok(truth.finish(rank))
    };
    let truth: Vec<truth::Lines> = (0..spec.ranks).into_par_iter().map(write).collect::<Result<_, _>>()?;
    archive.finish()?;
    let events = events.into_inner();
    let mut facts = vec![
        ("workload", format!("\"{}\"", spec.workload.name())),
        ("ranks", spec.ranks.to_string()),
        ("iterations", spec.iterations.to_string()),
        ("seed", spec.seed.to_string()),
        ("work", spec.work.to_string()),
        ("imbalance", spec.imbalance.to_string()),
        ("balanced", spec.balanced.to_string()),
        ("barriers", spec.barriers.to_string()),
        ("machine", format!("\"{}\"", spec.machine.name())),
        ("events", events.to_string()),
        ("length", length.to_string()),
        ("ticks_per_second", RESOLUTION.to_string()),
        ("program", format!("\"{}\"", Region::Program.name())),
    ];
    if is_multirate || has_teams {
        facts.extend([("threads", threads.to_string()), ("window", window.to_string())]);
    }
    if is_multirate {
        facts.extend([("bytes", bytes.to_string()), ("overlap", overlap.to_string())]);
    }
    truth::write(directory, &facts, &truth).map_err(|source| Error::Truth { path: directory.to_owned(), source })?;
    Ok(Summary { events, length })
}
