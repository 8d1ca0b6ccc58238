//! Waiting times by construction of a workload's schedule: the truth that an analysis of its trace must find.

use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::fs;
use std::io::{self, BufWriter, Write as _};
use std::path::Path;

use crate::definitions::Region;

/// Waiting times of one rank by metric and call path.
#[derive(Debug, Default)]
pub(crate) struct Truth {
    /// Call paths as (caller, region), a caller before those it calls.
    paths: Vec<(usize, Region)>,
    cells: BTreeMap<(usize, &'static str), i64>,
    /// Totals of message queues by call path; levels have no call path.
    queues: BTreeMap<(usize, &'static str), i64>,
}

/// The caller of the outermost region.
pub(crate) const OUTSIDE: usize = usize::MAX;

impl Truth {
    /// The call path of a region called from another call path.
    pub(crate) fn path(&mut self, caller: usize, region: Region) -> usize {
        let place = self.paths.iter().position(|&path| path == (caller, region));
        place.unwrap_or_else(|| {
            self.paths.push((caller, region));
            self.paths.len() - 1
        })
    }

    /// Adds a waiting time.
    pub(crate) fn book(&mut self, path: usize, metric: &'static str, ticks: i64) {
        if ticks > 0 {
            *self.cells.entry((path, metric)).or_default() += ticks;
        }
    }

    /// Adds to a total of message queues.
    pub(crate) fn count(&mut self, path: usize, metric: &'static str, value: i64) {
        if value != 0 {
            *self.queues.entry((path, metric)).or_default() += value;
        }
    }

    fn name(&self, path: usize) -> String {
        if path == OUTSIDE {
            return String::new();
        }
        let (caller, region) = self.paths[path];
        if caller == OUTSIDE { region.name().to_owned() } else { format!("{}/{}", self.name(caller), region.name()) }
    }

    /// Adds the truth of another location of the same rank.
    pub(crate) fn absorb(&mut self, other: Self) {
        let mut own = Vec::with_capacity(other.paths.len());
        for &(caller, region) in &other.paths {
            let caller = own.get(caller).copied().unwrap_or(OUTSIDE);
            own.push(self.path(caller, region));
        }
        let place = |path: usize| own.get(path).copied().unwrap_or(OUTSIDE);
        for ((path, metric), ticks) in other.cells {
            *self.cells.entry((place(path), metric)).or_default() += ticks;
        }
        for ((path, metric), value) in other.queues {
            *self.queues.entry((place(path), metric)).or_default() += value;
        }
    }

    /// The rank's lines of the table.
    pub(crate) fn finish(self, rank: u32) -> Lines {
        let mut lines = Lines::default();
        for (&(path, metric), ticks) in &self.cells {
            // Writing to a string cannot fail.
            let _ = writeln!(lines.text, "{metric},{},{rank},{ticks}", self.name(path));
            *lines.totals.entry(metric).or_default() += ticks;
        }
        for (&(path, metric), value) in &self.queues {
            let _ = writeln!(lines.queues, "{metric},{},{rank},{value}", self.name(path));
        }
        lines
    }
}

/// The truth of one or several ranks, as lines of the tables.
#[derive(Debug, Default)]
pub(crate) struct Lines {
    text: String,
    queues: String,
    totals: BTreeMap<&'static str, i64>,
}

/// Writes `truth.csv` with a line for each metric, call path and rank that waits, and `truth.json` with the sums; and
/// `queues.csv` with the totals of queues, if the workload is about these.
pub(crate) fn write(directory: &Path, facts: &[(&str, String)], all: &[Lines]) -> io::Result<()> {
    let mut table = BufWriter::new(fs::File::create(directory.join("truth.csv"))?);
    writeln!(table, "metric,callpath,rank,ticks")?;
    let mut totals: BTreeMap<&str, i64> = BTreeMap::new();
    for lines in all {
        table.write_all(lines.text.as_bytes())?;
        for (metric, ticks) in &lines.totals {
            *totals.entry(metric).or_default() += ticks;
        }
    }
    table.into_inner()?;
    if all.iter().any(|lines| !lines.queues.is_empty()) {
        let queues: String = all.iter().map(|lines| lines.queues.as_str()).collect();
        fs::write(directory.join("queues.csv"), format!("metric,callpath,rank,value\n{queues}"))?;
    }
    let member = |(name, value): (&str, String)| format!("\"{name}\": {value}");
    let mut members: Vec<String> = facts.iter().cloned().map(member).collect();
    let totals: Vec<String> =
        totals.into_iter().map(|(name, ticks)| format!("  {}", member((name, ticks.to_string())))).collect();
    members.push(format!("\"ticks\": {{\n{}\n }}", totals.join(",\n")));
    fs::write(directory.join("truth.json"), format!("{{\n {}\n}}\n", members.join(",\n ")))
}
