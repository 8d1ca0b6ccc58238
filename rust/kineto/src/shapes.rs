//! Which shapes the inputs of kernels have on each rank, if they are recorded.
//!
//! A kernel has the shapes of the operator that launched it, which both name by the same number.

use std::collections::{BTreeMap, BTreeSet};
use std::hash::{BuildHasher as _, BuildHasherDefault};

use rustc_hash::{FxHashMap, FxHasher};
use whywait_devices::ShapeFacts;

use crate::columns::{Task, Work};
use crate::names::Names;

/// A longer text of shapes is cut.
const LONGEST: usize = 80;

/// The shapes of the inputs of a kernel on a rank.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct Shapes {
    /// The sum of the hashes of the distinct ones.
    digest: u64,
    /// How many of these there are.
    distinct: u32,
    /// The most frequent ones, as they are in the file.
    usual: String,
}

/// The shapes of each kernel by its region; `dimensions` are those of operators by their number.
pub(crate) fn of_kernels<'a>(
    works: impl Iterator<Item = (&'a Work, u32)>,
    dimensions: &[(u64, u32)],
    names: &Names,
) -> BTreeMap<u32, Shapes> {
    let of_operators: FxHashMap<u64, u32> = dimensions.iter().copied().collect();
    let mut counts: BTreeMap<u32, BTreeMap<u32, u64>> = BTreeMap::new();
    for (work, region) in works.filter(|(work, _)| work.task == Task::Kernel) {
        if let Some(shapes) = of_operators.get(&work.external) {
            *counts.entry(region).or_default().entry(*shapes).or_default() += 1;
        }
    }
    let hasher = BuildHasherDefault::<FxHasher>::default();
    let of_region = |(region, counts): (u32, BTreeMap<u32, u64>)| {
        let hashes = counts.keys().map(|shapes| hasher.hash_one(names.get(*shapes)));
        let digest = hashes.fold(0, u64::wrapping_add);
        let usual = counts.iter().max_by_key(|(shapes, count)| (**count, std::cmp::Reverse(names.get(**shapes))));
        let usual = usual.map_or("", |(shapes, _)| names.get(*shapes)).chars().take(LONGEST).collect();
        (region, Shapes { digest, distinct: counts.len() as u32, usual })
    };
    counts.into_iter().map(of_region).collect()
}

/// Of each kernel, the ranks with the same shapes, from what each rank has by the names of kernels.
pub(crate) fn compare(ranks: &[(u32, BTreeMap<String, Shapes>)]) -> Vec<ShapeFacts> {
    let kernels: BTreeSet<&String> = ranks.iter().flat_map(|(_, of_rank)| of_rank.keys()).collect();
    let of_kernel = |kernel: &String| {
        let mut groups: Vec<(&Shapes, Vec<u32>)> = Vec::new();
        for (rank, of_rank) in ranks {
            let Some(shapes) = of_rank.get(kernel) else { continue };
            let same = |known: &&mut (&Shapes, Vec<u32>)| {
                (known.0.digest, known.0.distinct) == (shapes.digest, shapes.distinct)
            };
            match groups.iter_mut().find(same) {
                Some((_, ranks)) => ranks.push(*rank),
                None => groups.push((shapes, vec![*rank])),
            }
        }
        let groups = groups.into_iter().map(|(shapes, ranks)| (ranks, shapes.distinct, shapes.usual.clone()));
        ShapeFacts { kernel: kernel.clone(), groups: groups.collect() }
    };
    kernels.into_iter().map(of_kernel).collect()
}
