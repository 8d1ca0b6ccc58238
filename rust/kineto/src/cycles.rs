//! Which files are of one run, and of one cycle of the profiler's schedule.

use std::collections::BTreeMap;
use std::fmt::Write as _;

use crate::rank::Traced;
use crate::{Error, Result};

/// What is compared of a file.
#[derive(Debug, Clone)]
pub(crate) struct File {
    pub(crate) rank: u32,
    pub(crate) world_size: Option<u32>,
    pub(crate) window: (i64, i64),
    pub(crate) name: String,
}

impl File {
    pub(crate) fn of(traced: &Traced) -> Self {
        let Traced { path, info, rank, .. } = traced;
        let name = path.file_name().unwrap_or_default().to_string_lossy().into_owned();
        Self { rank: rank.number, world_size: info.world_size, window: rank.window, name }
    }

    /// By how much windows overlap, ns.
    fn overlap(&self, other: &Self) -> i64 {
        self.window.1.min(other.window.1) - self.window.0.max(other.window.0)
    }

    fn length(&self) -> i64 {
        self.window.1 - self.window.0
    }
}

/// The files that are read.
#[derive(Debug)]
pub(crate) struct Chosen {
    pub(crate) files: Vec<usize>,
    pub(crate) left_out: Vec<(usize, String)>,
    /// Number of cycles, and the chosen one, from 1.
    pub(crate) cycles: usize,
    pub(crate) cycle: usize,
}

/// Groups files by the times of their windows, and chooses a group: the given one, or the last complete one.
pub(crate) fn choose(files: &[File], cycle: Option<usize>) -> Result<Chosen> {
    let mut left_out = Vec::new();
    let size = common_size(files);
    let (same, other): (Vec<usize>, Vec<usize>) = (0..files.len())
        .partition(|file| files[*file].world_size.is_none_or(|own| size.is_none_or(|size| own == size)));
    for file in other {
        let (own, size) = (files[file].world_size.unwrap_or(0), size.unwrap_or(0));
        left_out.push((file, format!("it is of a run of {own} ranks, the others of {size}")));
    }
    let cycles = group(files, &same);
    // Without cycles, the windows need not overlap: the only file of a rank is its file.
    let ranks = {
        let mut ranks: Vec<u32> = same.iter().map(|file| files[*file].rank).collect();
        ranks.sort_unstable();
        ranks.dedup();
        ranks.len()
    };
    let most = cycles.iter().map(|cycle| cycle.files.len()).max().unwrap_or(0);
    if ranks > 1 && most == 1 {
        return Err(Error::Option(table("no files are of the same time", files, &same)));
    }
    let chosen = match cycle {
        Some(number) if (1..=cycles.len()).contains(&number) => number - 1,
        Some(number) => {
            return Err(Error::Option(table(&format!("there is no cycle {number} of {}", cycles.len()), files, &same)));
        }
        None => cycles.iter().rposition(|cycle| cycle.files.len() == most).unwrap_or(0),
    };
    let Cycle { files: taken, twice } = &cycles[chosen];
    for file in &same {
        if twice.contains(file) {
            let why = format!("another file of rank {} fits the others better", files[*file].rank);
            left_out.push((*file, why));
        } else if !cycles.iter().any(|cycle| cycle.files.contains(file)) && !taken.contains(file) {
            left_out.push((*file, "it is of another time".to_owned()));
        }
    }
    Ok(Chosen { files: taken.clone(), left_out, cycles: cycles.len(), cycle: chosen + 1 })
}

/// The world size that most files name.
fn common_size(files: &[File]) -> Option<u32> {
    let mut counts: BTreeMap<u32, usize> = BTreeMap::new();
    for size in files.iter().filter_map(|file| file.world_size) {
        *counts.entry(size).or_default() += 1;
    }
    counts.into_iter().max_by_key(|(size, count)| (*count, *size)).map(|(size, _)| size)
}

/// Files of about the same time, one a rank.
#[derive(Debug, Default)]
struct Cycle {
    files: Vec<usize>,
    /// Files of ranks that have a better one.
    twice: Vec<usize>,
}

/// The cycles are the files of the rank that has most of them, each with those of other ranks that overlap it most.
fn group(files: &[File], all: &[usize]) -> Vec<Cycle> {
    let mut by_rank: BTreeMap<u32, Vec<usize>> = BTreeMap::new();
    for file in all {
        by_rank.entry(files[*file].rank).or_default().push(*file);
    }
    for own in by_rank.values_mut() {
        own.sort_by_key(|file| (files[*file].window, *file));
    }
    let separate = |own: &Vec<usize>| {
        let mut count = usize::from(!own.is_empty());
        for pair in own.windows(2) {
            let (a, b) = (&files[pair[0]], &files[pair[1]]);
            // Copies are of one time.
            count += usize::from(a.overlap(b) <= a.length().min(b.length()) / 2);
        }
        count
    };
    let reference = by_rank.values().rev().max_by_key(|own| (separate(own), std::cmp::Reverse(own.len())));
    let Some(reference) = reference.cloned() else { return Vec::new() };
    let mut marks: Vec<usize> = Vec::new();
    for file in reference {
        let is_copy = marks.last().is_some_and(|last: &usize| {
            let (a, b) = (&files[*last], &files[file]);
            a.overlap(b) > a.length().min(b.length()) / 2
        });
        if !is_copy {
            marks.push(file);
        }
    }
    let mut cycles: Vec<Cycle> = marks.iter().map(|_| Cycle::default()).collect();
    for own in by_rank.values() {
        let mut best: Vec<Option<(i64, usize)>> = vec![None; marks.len()];
        for file in own {
            let fits = marks.iter().map(|mark| files[*file].overlap(&files[*mark]));
            let Some((at, fit)) = fits.enumerate().max_by_key(|(at, fit)| (*fit, std::cmp::Reverse(*at))) else {
                continue;
            };
            if fit <= 0 {
                continue;
            }
            match best[at] {
                Some((other, _)) if other >= fit => cycles[at].twice.push(*file),
                Some((_, before)) => {
                    cycles[at].twice.push(before);
                    best[at] = Some((fit, *file));
                }
                None => best[at] = Some((fit, *file)),
            }
        }
        for (cycle, best) in cycles.iter_mut().zip(best) {
            cycle.files.extend(best.map(|(_, file)| file));
        }
    }
    cycles
}

/// An error with the times of all files.
fn table(what: &str, files: &[File], all: &[usize]) -> String {
    let begin = all.iter().map(|file| files[*file].window.0).min().unwrap_or(0);
    let mut text = format!("{what}; the windows of the files, in seconds from the first:");
    for file in all {
        let File { rank, window, name, .. } = &files[*file];
        let seconds = |time: i64| (time - begin) as f64 / 1e9;
        let _ = write!(text, "\n  rank {rank}: {:.3} to {:.3}  {name}", seconds(window.0), seconds(window.1));
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    fn file(rank: u32, begin: i64, end: i64) -> File {
        File { rank, world_size: Some(2), window: (begin, end), name: format!("{rank}-{begin}") }
    }

    fn chosen(files: &[File], cycle: Option<usize>) -> (Vec<usize>, usize) {
        let chosen = choose(files, cycle).unwrap();
        (chosen.files, chosen.cycles)
    }

    #[test]
    fn the_last_complete_cycle_is_read() {
        let files = [file(0, 0, 10), file(1, 2, 12), file(0, 20, 30), file(1, 19, 31), file(0, 40, 50)];
        assert_eq!(chosen(&files, None), (vec![2, 3], 3));
        assert_eq!(chosen(&files, Some(1)), (vec![0, 1], 3));
        assert_eq!(chosen(&files, Some(3)), (vec![4], 3));
        assert!(choose(&files, Some(4)).is_err());
    }

    #[test]
    fn of_two_files_of_a_rank_the_better_is_read() {
        let files = [file(0, 0, 100), file(1, 0, 60), file(1, 0, 99)];
        let chosen = choose(&files, None).unwrap();
        assert_eq!((chosen.files, chosen.cycles, chosen.left_out.len()), (vec![0, 2], 1, 1));
    }

    #[test]
    fn files_of_other_runs_are_left_out() {
        let mut files = vec![file(0, 0, 100), file(1, 5, 100), file(1, 5, 100)];
        files[2].world_size = Some(8);
        assert_eq!(choose(&files, None).unwrap().left_out.len(), 1);
        let apart = [file(0, 0, 10), file(1, 1000, 1010)];
        assert!(choose(&apart, None).is_err(), "nothing is of the same time");
    }
}
