//! The cores that processes may use, and how many processes have to share them.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write;

use crate::spool::Spool;

/// The processes of a machine that have the fewest cores for each.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Share {
    pub(crate) host: String,
    pub(crate) ranks: usize,
    /// Of these ranks, as far as they were recorded.
    pub(crate) threads: usize,
    /// Cores that any of them may use, and that the machine has.
    pub(crate) cores: usize,
    pub(crate) online: u32,
}

/// A process: its number of threads, and its cores in ascending order.
type Process<'a> = (usize, &'a [u32]);

/// The tightest share of each machine whose processes said which cores they may use.
pub(crate) fn shares(spool: &Spool) -> Vec<Share> {
    let mut hosts: BTreeMap<&str, (u32, Vec<Process<'_>>)> = BTreeMap::new();
    for process in spool.ranks.values() {
        if let (Some(start), Some((online, cores))) = (&process.definitions.start, &process.definitions.cores) {
            let host = hosts.entry(&start.host).or_default();
            host.0 = host.0.max(*online);
            host.1.push((process.threads.len().max(1), cores));
        }
    }
    hosts.into_iter().filter_map(|(host, (online, processes))| tightest(host, online, &processes)).collect()
}

/// Of all sets of cores that processes have: the one with most processes for a core that may use no other.
fn tightest(host: &str, online: u32, processes: &[Process<'_>]) -> Option<Share> {
    let sets: BTreeSet<&[u32]> = processes.iter().map(|(_, cores)| *cores).filter(|cores| !cores.is_empty()).collect();
    let all: BTreeSet<u32> = sets.iter().flat_map(|cores| cores.iter().copied()).collect();
    let all: Vec<u32> = all.into_iter().collect();
    let share = |set: &[u32]| {
        let is_within = |cores: &[u32]| cores.iter().all(|core| set.binary_search(core).is_ok());
        let (ranks, threads) = processes
            .iter()
            .filter(|(_, cores)| is_within(cores))
            .fold((0, 0), |(ranks, sum), (threads, _)| (ranks + 1, sum + threads));
        Share { host: host.to_owned(), ranks, threads, cores: set.len(), online }
    };
    // All together first: of equal ones, the largest tells most.
    let all = (!all.is_empty()).then(|| share(&all));
    sets.into_iter().map(share).fold(all, |tightest, next| match tightest {
        Some(tightest) if next.ranks * tightest.cores <= tightest.ranks * next.cores => Some(tightest),
        _ => Some(next),
    })
}

/// Numbers of cores as Linux writes them: `0-3,8`.
pub(crate) fn ranges(cores: &[u32]) -> String {
    let mut text = String::new();
    let mut cores = cores.iter().copied().peekable();
    while let Some(first) = cores.next() {
        let mut last = first;
        while let Some(next) = cores.next_if(|next| *next == last.wrapping_add(1)) {
            last = next;
        }
        let comma = if text.is_empty() { "" } else { "," };
        // Writing to a string does not fail.
        let _ = if first == last { write!(text, "{comma}{first}") } else { write!(text, "{comma}{first}-{last}") };
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    fn share(processes: &[&[u32]]) -> Option<(usize, usize)> {
        let processes: Vec<Process<'_>> = processes.iter().map(|cores| (2, *cores)).collect();
        let share = tightest("node", 8, &processes)?;
        assert_eq!(share.threads, 2 * share.ranks);
        Some((share.ranks, share.cores))
    }

    #[test]
    fn the_processes_with_the_fewest_cores_for_each_are_found() {
        assert_eq!(share(&[&[0, 1], &[0, 1], &[0, 1]]), Some((3, 2)));
        // Two on one core, and one that has others as well.
        assert_eq!(share(&[&[0], &[0], &[0, 1, 2, 3]]), Some((2, 1)));
        assert_eq!(share(&[&[0], &[1], &[2]]), Some((3, 3)));
        assert_eq!(share(&[&[]]), None);
    }

    #[test]
    fn ranges_are_those_of_linux() {
        assert_eq!(ranges(&[0, 1, 2, 3, 8, 10, 11]), "0-3,8,10-11");
        assert_eq!((ranges(&[]), ranges(&[5])), (String::new(), "5".to_owned()));
    }
}
