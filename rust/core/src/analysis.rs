//! The conductor: reads the archive, runs the stages, gathers what they find.

use std::sync::Arc;
use std::sync::atomic::{AtomicU8, Ordering};

use rayon::prelude::*;
use whywait_otf2::Archive;

use crate::calls::Calls;
use crate::causes::{self, Causes, CostModel};
use crate::exchange::Transport;
use crate::matching::epochs::Epochs;
use crate::matching::messages;
use crate::notes::{NoteKind, Notes, Place};
use crate::severity::{self, Severity};
use crate::trace::Trace;
use crate::trace::decode::Progress;
use crate::trace::load::SHARD_EVENTS;
use crate::waits::late_sender::Detected;
use crate::waits::{Findings, WaitState, collective, late_receiver, late_sender, profile, rma, threads};
use crate::{Error, Result};
use whywait_otf2::enums::LocationType;

/// What a caller can choose.
#[derive(Clone, Copy, Debug)]
pub struct Options {
    /// Number of Late Senders of a location that are remembered for the detection of wrong order.
    pub wrong_order_window: usize,
    /// Whether to look for root causes and the critical path.
    pub causes: bool,
    /// Which definitions their costs follow.
    pub cost_model: CostModel,
}

impl Default for Options {
    fn default() -> Self {
        Self { wrong_order_window: 100, causes: true, cost_model: CostModel::default() }
    }
}

/// Stages of an analysis, in their order.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u8)]
pub enum Stage {
    /// Reading the events.
    Decode,
    /// Matching messages and judging their wait states.
    Messages,
    /// Matching collective operations and judging their wait states.
    Collectives,
    /// Epochs of one-sided communication and their wait states.
    OneSided,
    /// Thread teams, profile, sums.
    Profile,
    /// Root causes, critical path.
    Causes,
}

impl Stage {
    /// Name for a progress display.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::Decode => "decode",
            Self::Messages => "messages",
            Self::Collectives => "collectives",
            Self::OneSided => "one-sided",
            Self::Profile => "profile",
            Self::Causes => "causes",
        }
    }

    const ALL: [Self; 6] =
        [Self::Decode, Self::Messages, Self::Collectives, Self::OneSided, Self::Profile, Self::Causes];
}

/// How far an analysis has come; another thread may look and may cancel.
#[derive(Debug, Default)]
pub struct Monitor {
    /// Events decoded, and the wish to stop.
    pub progress: Progress,
    stage: AtomicU8,
}

impl Monitor {
    /// The stage that runs.
    #[must_use]
    pub fn stage(&self) -> Stage {
        Stage::ALL[usize::from(self.stage.load(Ordering::Relaxed))]
    }

    fn enter(&self, stage: Stage) -> Result<()> {
        self.stage.store(stage as u8, Ordering::Relaxed);
        if self.progress.is_cancelled() { Err(Error::Interrupted) } else { Ok(()) }
    }
}

/// The result: the trace, and everything found in it.
#[derive(Debug)]
pub struct Analysis {
    /// The trace.
    pub trace: Trace,
    /// Cells that are not zero, by metric, call path, location.
    pub severities: Vec<Severity>,
    /// Wait states by location, time and kind.
    pub waits: Vec<WaitState>,
    /// Root causes and the critical path, if asked for; their severities stand among the others.
    pub causes: Option<Causes>,
    /// Epochs of one-sided communication, one entry a shard; none if there is no such communication.
    pub epochs: Vec<Epochs>,
    /// What was odd.
    pub notes: Notes,
}

/// Reads and analyses an archive with the threads of the current pool.
pub fn analyze(
    archive: &Archive,
    options: &Options,
    transport: Option<Arc<dyn Transport>>,
    monitor: &Monitor,
) -> Result<Analysis> {
    monitor.enter(Stage::Decode)?;
    let mut trace = Trace::load(archive, SHARD_EVENTS, transport, &monitor.progress)?;
    let mut notes = std::mem::take(&mut trace.notes);
    note_other_locations(&trace, &mut notes);

    monitor.enter(Stage::Messages)?;
    let mut found: Vec<Findings> = trace.shards.iter().map(|_| Findings::default()).collect();
    for findings in analyze_messages(&trace, *options, &mut notes)? {
        add(&mut found, findings);
    }

    monitor.enter(Stage::Collectives)?;
    let (collective, meetings, collective_notes) = collective::detect(&trace, options.causes)?;
    notes.merge(collective_notes);
    add(&mut found, collective);

    monitor.enter(Stage::OneSided)?;
    let (one_sided, one_sided_notes) = rma::detect(&trace, &found, options.causes)?;
    notes.merge(one_sided_notes);
    add(&mut found, one_sided.findings);

    monitor.enter(Stage::Profile)?;
    let local: Vec<Findings> = trace
        .shards
        .par_iter()
        .map(|shard| {
            let mut findings = profile::book(&trace, shard);
            findings.merge(threads::detect(&trace, shard));
            findings
        })
        .collect();
    add(&mut found, local);
    found.par_iter_mut().zip(&trace.shards).for_each(|(findings, shard)| {
        let position = |wait: &WaitState| shard.instances.enter[wait.instance as usize];
        // Each stage found them in order: a stable sort merges them.
        findings.waits.sort_by_key(|wait| (wait.location, position(wait), wait.kind));
    });
    let mut all = Findings::default();
    all.waits.reserve_exact(found.iter().map(|findings| findings.waits.len()).sum());
    for findings in found {
        all.merge(findings);
    }
    notes.merge(all.notes);
    let waits = all.waits;
    let calls = Calls::fetch(&trace, &waits)?;
    let causes = if options.causes {
        monitor.enter(Stage::Causes)?;
        let meetings = (meetings, &one_sided.meetings[..]);
        let mut causes = causes::analyze(&trace, (&waits, &calls), meetings, options.cost_model)?;
        all.severities.append(&mut causes.severities);
        notes.merge(std::mem::take(&mut causes.notes));
        Some(causes)
    } else {
        None
    };
    let epochs = one_sided.epochs;
    Ok(Analysis { severities: severity::combine(all.severities), waits, epochs, causes, notes, trace })
}

/// Adds what a stage found in each shard.
fn add(found: &mut [Findings], stage: Vec<Findings>) {
    for (found, findings) in found.iter_mut().zip(stage) {
        found.merge(findings);
    }
}

/// Late Senders at the receivers, then Late Receivers at the senders.
fn analyze_messages(trace: &Trace, options: Options, notes: &mut Notes) -> Result<[Vec<Findings>; 2]> {
    let (detected, matching_notes) = messages::match_all(trace, |_, shard, matches| {
        late_sender::detect(trace, shard, matches, options.wrong_order_window)
    })?;
    notes.merge(matching_notes);
    let mut late_senders = Vec::with_capacity(detected.len());
    let mut outgoing = Vec::with_capacity(detected.len());
    let mut candidates = Vec::with_capacity(detected.len());
    for Detected { findings, late_receivers, candidates: of_shard } in detected {
        let mut outbox = trace.exchange.outbox();
        for late in late_receivers {
            outbox.push(late.shard, late);
        }
        late_senders.push(findings);
        outgoing.push(outbox);
        candidates.push(of_shard);
    }
    let late_receivers = trace
        .exchange
        .to_owner(outgoing)?
        .into_par_iter()
        .zip(&trace.shards)
        .zip(&candidates)
        .map(|((inbox, shard), candidates)| {
            late_receiver::detect(trace, shard, inbox.rows().copied().collect(), |call| candidates.contains(&call))
        })
        .collect();
    Ok([late_senders, late_receivers])
}

/// Names the locations of which only a profile can be said.
fn note_other_locations(trace: &Trace, notes: &mut Notes) {
    let own = trace.shards.iter().flat_map(|shard| shard.locations.clone());
    for index in own {
        let location = &trace.world.locations[index as usize];
        if !matches!(location.kind, LocationType::CPU_THREAD | LocationType::UNKNOWN) {
            let time = trace.span().map_or(0, |(first, _)| first);
            notes.count(NoteKind::NotAThread, 1, Some(Place { location: index, time }));
        }
    }
}
