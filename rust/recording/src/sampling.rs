//! The samples of a run: their functions, and what is said of them.

use std::collections::{BTreeMap, BTreeSet};

use rayon::prelude::*;

use crate::counters::Metrics;
use crate::definitions::Catalog;
use crate::error::Result;
use crate::format::NONE;
use crate::model::location;
use crate::paths::{Python, Symbolizer};
use crate::samples::{Sampled, Symbolized};
use crate::spool::Spool;

/// The samples of all processes.
#[derive(Debug, Default)]
pub(crate) struct Sampling {
    /// What the files have, by rank and thread.
    files: Vec<(u32, u32, Sampled)>,
    /// Their functions.
    ranks: BTreeMap<u32, BTreeMap<u32, Symbolized>>,
    none: BTreeMap<u32, Symbolized>,
    pub(crate) samples: u64,
    /// What was not sampled, a sentence each.
    pub(crate) notes: Vec<String>,
}

impl Sampling {
    /// Looks at all samples, and finds their functions.
    pub(crate) fn new(
        spool: &Spool,
        symbolizer: &mut Symbolizer<'_>,
        python: Python,
        damage: &mut Vec<String>,
    ) -> Result<Self> {
        let paths: Vec<_> = spool
            .ranks
            .iter()
            .flat_map(|(rank, process)| process.samples.iter().map(move |(thread, path)| (*rank, *thread, path)))
            .collect();
        let files = paths.par_iter().map(|(rank, thread, path)| Ok((*rank, *thread, Sampled::read(path)?)));
        let mut sampling = Self { files: files.collect::<Result<_>>()?, notes: notes(spool), ..Self::default() };
        for (rank, thread, sampled) in &mut sampling.files {
            damage.extend(sampled.damage.take());
            sampling.samples += sampled.samples;
            let Some(process) = spool.ranks.get(rank) else { continue };
            let definitions = &process.definitions;
            let program = definitions.start.as_ref().map_or("unknown", |start| start.program.as_str());
            let mut found = Symbolized {
                paths: symbolizer.paths(definitions, program, python, &sampled.nodes, &sampled.codes, false),
                partial: Symbolizer::partial(definitions, program, &sampled.nodes),
                slots: sampled.slots,
                ..Symbolized::default()
            };
            // In the order of their numbers: functions get theirs as they are found.
            let places: BTreeMap<_, _> = std::mem::take(&mut sampled.places).into_iter().collect();
            for (key, time) in places {
                let has_caller = found.paths.upwards(key.0).any(|node| !found.paths.functions(node).is_empty());
                let leaf = symbolizer.leaf(definitions, program, &sampled.nodes, key, time, has_caller);
                found.leaves.insert(key, leaf);
            }
            let in_calls: BTreeMap<_, _> = std::mem::take(&mut sampled.in_calls).into_iter().collect();
            for (address, time) in in_calls {
                found.spots.insert(address, (symbolizer.spot(definitions, program, address, time), 0));
            }
            sampling.ranks.entry(*rank).or_default().insert(*thread, found);
        }
        Ok(sampling)
    }

    /// Defines what samples refer to; returns the metric of their counts, if there are any.
    pub(crate) fn define(&mut self, catalog: &mut Catalog, metrics: &mut Metrics) -> Option<u32> {
        if self.files.is_empty() {
            return None;
        }
        let periods: BTreeSet<u64> = self.files.iter().map(|(.., sampled)| sampled.period).collect();
        let has_faults = self.files.iter().any(|(.., sampled)| sampled.faults > 0);
        let generators = catalog.sampling(&periods, has_faults);
        for (rank, thread, sampled) in &self.files {
            catalog.sampled(location(*rank, *thread), mechanism(sampled.is_perf));
            if let Some(symbolized) = self.ranks.get_mut(rank).and_then(|threads| threads.get_mut(thread)) {
                let clock = generators.get(&sampled.period).copied().unwrap_or(0);
                symbolized.generators = [clock, generators.len() as u32];
                for (text, id) in symbolized.spots.values_mut() {
                    *id = catalog.string(text);
                }
            }
        }
        Some(metrics.of_samples(catalog))
    }

    /// The samples of a rank, by thread.
    pub(crate) fn of(&self, rank: u32) -> &BTreeMap<u32, Symbolized> {
        self.ranks.get(&rank).unwrap_or(&self.none)
    }

    fn sum(&self, count: fn(&Sampled) -> u64) -> u64 {
        self.files.iter().map(|(.., sampled)| count(sampled)).sum()
    }

    /// By what threads were sampled, and how often; empty if none was.
    pub(crate) fn rate(&self) -> String {
        let used: BTreeSet<&str> = self.files.iter().map(|(.., sampled)| mechanism(sampled.is_perf)).collect();
        let used: Vec<&str> = used.into_iter().collect();
        // Between n samples are n - 1 periods.
        let periods = self.sum(|sampled| sampled.samples.saturating_sub(1));
        let seconds = self.sum(|sampled| sampled.cpu).max(1) as f64 / 1e9;
        if used.is_empty() {
            String::new()
        } else {
            format!("{}, {:.1} a second", used.join(" and "), periods as f64 / seconds)
        }
    }

    /// What is said of the samples: by what, how often, and how many are not what they should be.
    pub(crate) fn property(&self) -> Option<String> {
        let counts = [
            ("of page faults", self.sum(|sampled| sampled.faults)),
            ("incomplete", self.sum(|sampled| sampled.incomplete)),
            ("late", self.sum(|sampled| sampled.late)),
            ("lost", self.sum(|sampled| sampled.lost)),
        ];
        let counts: Vec<String> = counts.iter().map(|(what, count)| format!("{count} {what}")).collect();
        let (rate, samples) = (self.rate(), self.samples);
        (!rate.is_empty()).then(|| format!("{rate} of CPU time; {samples} samples, {}", counts.join(", ")))
    }
}

fn mechanism(is_perf: bool) -> &'static str {
    if is_perf { "perf" } else { "timer" }
}

/// What was not sampled, and why.
fn notes(spool: &Spool) -> Vec<String> {
    let mut reasons: BTreeMap<&str, (u32, u32)> = BTreeMap::new();
    for (count, why) in spool.ranks.values().flat_map(|process| &process.definitions.unsampled) {
        let (ranks, threads) = reasons.entry(why).or_default();
        *ranks += 1;
        *threads = if *count == NONE { NONE } else { threads.saturating_add(*count) };
    }
    let all = spool.ranks.len() as u32;
    let said = reasons.into_iter().map(|(why, (ranks, threads))| {
        let who = match (ranks == all, ranks) {
            (true, _) => String::new(),
            (_, 1) => "1 rank ".to_owned(),
            _ => format!("{ranks} ranks "),
        };
        match threads {
            0 => why.to_owned(),
            NONE => format!("{who}not sampled: {why}"),
            1 => format!("1 thread is not sampled: {why}"),
            _ => format!("{threads} threads are not sampled: {why}"),
        }
    });
    said.collect()
}
