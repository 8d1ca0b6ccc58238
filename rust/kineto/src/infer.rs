//! Groups of operations that name none: those of libraries for CPUs, where a rank has several groups.
//!
//! What a program issues at one call path, of one kind and shape, at one place in its steps is of one group in the whole run.
//! Which one, times tell: the members of an operation overlap, and they end together.

use std::collections::{BTreeMap, BTreeSet};

use whywait_devices::Kind;

use crate::info::ProcessGroup;
use crate::rank::Traced;

/// Partitions of the ranks that are tried.
const MOST_PARTITIONS: usize = 1000;
/// The best partition must end together better than the next by this factor.
const CLEARLY: i128 = 2;

/// What an operation is recognized by on all ranks.
type Signature = (u64, Kind, u64);
/// Members by rank and step: place of the rank, step, number of the member.
type Uses = BTreeMap<usize, BTreeMap<Option<i64>, u32>>;

/// Gives members their groups where that is certain enough.
pub(crate) fn groups(traced: &mut [Traced]) {
    let mut known: BTreeMap<Vec<u32>, ProcessGroup> = BTreeMap::new();
    let mut all: BTreeMap<Signature, Uses> = BTreeMap::new();
    for (place, Traced { rank, info, .. }) in traced.iter().enumerate() {
        for group in &info.groups {
            known.entry(group.ranks.clone()).or_insert_with(|| group.clone());
        }
        for (number, member) in (0..).zip(&rank.members) {
            if let (Some(host), None, false) = (&member.host, &member.group, member.kind.is_message()) {
                let uses = all.entry((host.signature, member.kind, member.elements)).or_default();
                uses.entry(place).or_default().insert(member.step, number);
            }
        }
    }
    if all.is_empty() {
        return;
    }
    let places: BTreeMap<u32, usize> =
        traced.iter().enumerate().map(|(place, traced)| (traced.rank.number, place)).collect();
    let groups: Vec<(&ProcessGroup, Vec<usize>)> = known
        .values()
        .map(|group| (group, group.ranks.iter().filter_map(|rank| places.get(rank).copied()).collect()))
        .collect();
    for uses in all.values() {
        let chosen = choose(traced, uses, &groups);
        for (place, members) in uses {
            let own = chosen.iter().flatten().find(|group| groups[**group].1.contains(place));
            for member in members.values() {
                let member = &mut traced[*place].rank.members[*member as usize];
                match own {
                    Some(own) => member.group = Some(groups[*own].0.group()),
                    None => member.is_ambiguous = true,
                }
            }
        }
    }
}

/// The groups that the uses of a signature are divided into, if that is clear.
fn choose(traced: &[Traced], uses: &Uses, groups: &[(&ProcessGroup, Vec<usize>)]) -> Option<Vec<usize>> {
    let mut partitions = Vec::new();
    divide(&uses.keys().copied().collect(), groups, &mut Vec::new(), &mut partitions);
    let mut fits: Vec<(i128, &Vec<usize>)> = partitions
        .iter()
        .filter_map(|partition| Some((distance(traced, uses, groups, partition)?, partition)))
        .collect();
    fits.sort();
    match fits.as_slice() {
        [] => None,
        [(_, only)] => Some((*only).clone()),
        [(best, first), (next, _), ..] => (best * CLEARLY <= *next).then(|| (*first).clone()),
    }
}

/// Finds the sets of groups that have each of some ranks once.
fn divide(
    left: &BTreeSet<usize>,
    groups: &[(&ProcessGroup, Vec<usize>)],
    taken: &mut Vec<usize>,
    found: &mut Vec<Vec<usize>>,
) {
    let Some(first) = left.first() else {
        found.push(taken.clone());
        return;
    };
    for (group, (_, places)) in groups.iter().enumerate() {
        let fits = places.contains(first) && places.iter().all(|place| left.contains(place));
        if fits && found.len() < MOST_PARTITIONS {
            taken.push(group);
            let rest = left.iter().copied().filter(|place| !places.contains(place)).collect();
            divide(&rest, groups, taken, found);
            taken.pop();
        }
    }
}

/// How far the ends of the members of operations are apart, ns; nothing if members of one do not overlap.
fn distance(
    traced: &[Traced],
    uses: &Uses,
    groups: &[(&ProcessGroup, Vec<usize>)],
    partition: &[usize],
) -> Option<i128> {
    let mut sum = 0;
    for group in partition {
        let places = &groups[*group].1;
        let (first, rest) = places.split_first()?;
        for (step, member) in &uses[first] {
            let one = &traced[*first].rank.members[*member as usize];
            for place in rest {
                let Some(other) = uses[place].get(step) else { continue };
                let other = &traced[*place].rank.members[*other as usize];
                if one.begin > other.end || other.begin > one.end {
                    return None;
                }
                sum += i128::from((one.end - other.end).abs());
            }
        }
    }
    Some(sum)
}
