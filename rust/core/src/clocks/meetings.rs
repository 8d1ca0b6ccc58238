//! Lines of nodes, from operations of devices that end everywhere at about one time.
//!
//! A device that is late at every operation bounds the difference of two clocks tightly from one side only, so constraints leave
//! much room. But all members of an operation end with its last data. The difference of their ends is no constraint, because a
//! ring ends at different times by up to a transfer; within the room that constraints leave, it is the best guess.
//!
//! *Source*: clocks.md#lines.

use bitcode::{Decode, Encode};
use rustc_hash::FxHashSet;

use super::constraints::{Constraints, Part};
use super::course::Course;
use super::domains::Clocks;
use super::fit::Line;
use super::kind::Kind;
use super::lines::{composed, inverse};
use crate::Result;
use crate::ids::{LocationId, ProcessId};
use crate::parallel::exchange::Exchange;

/// By how much clocks may drift apart: as much as those of quartz.
const STEEPEST: f64 = 2e-4;

/// An operation that devices of two nodes end: what must be added to the clock of `second` to agree with that of `first`.
#[derive(Clone, Copy, Debug, Encode, Decode)]
struct Meeting {
    first: u32,
    second: u32,
    /// On `second`, since the begin of the run, ticks.
    time: i64,
    difference: i64,
}

/// A line for each domain, those of one node alike, by which operations end at about one time on all nodes; `None` if none spans
/// two nodes. `node` is that of a process. Collective.
pub(super) fn courses(
    constraints: &Constraints,
    domains: &Clocks,
    node: impl Fn(ProcessId) -> u32,
    (begin, length): (i64, f64),
    exchange: &Exchange,
) -> Result<Option<Vec<Course>>> {
    let streams: FxHashSet<LocationId> = constraints.devices().iter().map(|&(stream, _)| stream).collect();
    let is_meeting = |parts: &&[Part]| {
        let is_member = |part: &Part| {
            let is_all = matches!(part.kind, Kind::Barrier | Kind::AllToAll) && part.is_source && part.is_target;
            is_all && streams.contains(&part.location)
        };
        parts.iter().all(is_member)
    };
    let of_location = |location: LocationId| node(constraints.process(location));
    let meetings = constraints.instances().filter(is_meeting).flat_map(|parts| {
        let mut ends: Vec<(u32, i64)> = parts.iter().map(|part| (of_location(part.location), part.end)).collect();
        ends.sort_unstable();
        // The middle member of each node.
        let of_nodes: Vec<(u32, i64)> =
            ends.chunk_by(|a, b| a.0 == b.0).map(|of_node| of_node[(of_node.len() - 1) / 2]).collect();
        let (first, end) = of_nodes[0];
        let meeting =
            move |&(second, time): &(u32, i64)| Meeting { first, second, time: time - begin, difference: end - time };
        of_nodes[1..].iter().map(meeting).collect::<Vec<_>>()
    });
    let meetings = exchange.gatherv(meetings.collect::<Vec<_>>())?;
    exchange.broadcast(|| {
        let lines = lines(meetings);
        (!lines.is_empty()).then(|| {
            let course = |&first: &LocationId| {
                let line = lines.iter().find(|(node, _)| *node == of_location(first)).map(|(_, line)| *line);
                Course::line(line.unwrap_or_default(), length)
            };
            domains.firsts().iter().map(course).collect()
        })
    })
}

/// The lines of all nodes but the first of those that operations join; the pairs of nodes that met most often come first.
fn lines(mut meetings: Vec<Meeting>) -> Vec<(u32, Line)> {
    meetings.sort_unstable_by_key(|meeting| (meeting.first, meeting.second, meeting.time, meeting.difference));
    let mut pairs: Vec<&[Meeting]> = meetings.chunk_by(|a, b| (a.first, a.second) == (b.first, b.second)).collect();
    pairs.sort_by_key(|pair| std::cmp::Reverse(pair.len()));
    let mut known: Vec<(u32, Line)> = Vec::new();
    let mut roots: Vec<(u32, u32)> = Vec::new();
    // Lines of each node relative to the root of its tree; a pair that joins two trees moves the second one.
    for pair in pairs {
        let (first, second) = (pair[0].first, pair[0].second);
        for node in [first, second] {
            if !roots.iter().any(|&(own, _)| own == node) {
                roots.push((node, node));
                known.push((node, Line::default()));
            }
        }
        let root = |node: u32| roots.iter().find(|&&(own, _)| own == node).map_or(node, |&(_, root)| root);
        let line = |node: u32| known.iter().find(|&&(own, _)| own == node).map_or(Line::default(), |&(_, line)| line);
        let (of_first, of_second) = (root(first), root(second));
        if of_first == of_second {
            continue;
        }
        let between = resistant(pair);
        let (lowest, moved) = (of_first.min(of_second), of_first.max(of_second));
        // What takes the tree that is moved to the clock of the other one.
        let joint = if moved == of_second {
            composed(composed(line(first), between), inverse(line(second)))
        } else {
            composed(composed(line(second), inverse(between)), inverse(line(first)))
        };
        for ((node, root), (_, line)) in roots.iter_mut().zip(&mut known).filter(|((_, root), _)| *root == moved) {
            debug_assert!(*node != lowest);
            (*root, *line) = (lowest, composed(joint, *line));
        }
    }
    known
}

/// A line through the differences, of which the outer thirds decide the drift by their medians, so that single operations that
/// end apart do not count. *Source*: J. W. Tukey: Exploratory Data Analysis, 1977, the resistant line.
fn resistant(pair: &[Meeting]) -> Line {
    let third = pair.len().div_ceil(3);
    let outer = |meetings: &[Meeting]| {
        (median(meetings.iter().map(|meeting| meeting.time)), median(meetings.iter().map(|meeting| meeting.difference)))
    };
    let (left, right) = (outer(&pair[..third]), outer(&pair[pair.len() - third..]));
    let slope = if pair.len() > 2 && right.0 > left.0 { (right.1 - left.1) / (right.0 - left.0) } else { 0.0 };
    let slope = slope.clamp(-STEEPEST, STEEPEST);
    let values = pair.iter().map(|meeting| (meeting.difference as f64 - slope * meeting.time as f64).round() as i64);
    Line { value: median(values), slope }
}

fn median(values: impl Iterator<Item = i64>) -> f64 {
    let mut values: Vec<i64> = values.collect();
    values.sort_unstable();
    f64::midpoint(values[(values.len() - 1) / 2] as f64, values[values.len() / 2] as f64)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Three nodes whose clocks are ahead by 3 ms, 1 ms and 5 ms, the second 20 ppm fast; one operation ends far apart.
    #[test]
    fn nodes_that_meet_get_the_differences_of_their_clocks() {
        let shown = |node: u32, time: f64| match node {
            0 => time + 3e6,
            1 => time * (1.0 + 2e-5) + 1e6,
            _ => time + 5e6,
        };
        let meeting = |first: u32, second: u32, time: f64, off: f64| {
            let (end, time) = (shown(first, time).round() as i64, (shown(second, time) + off).round() as i64);
            Meeting { first, second, time, difference: end - time }
        };
        let often = (1..=9).map(|step| {
            let off = if step == 5 { 2e6 } else { f64::from(step % 3) * 1e3 };
            meeting(1, 2, f64::from(step) * 1e8, off)
        });
        let rarely = (1..=3).map(|step| meeting(0, 1, f64::from(step) * 3e8, 0.0));
        let found = lines(rarely.chain(often).collect());
        let at = |node: u32, time: f64| {
            let time = shown(node, time);
            let line = found.iter().find(|(own, _)| *own == node).unwrap().1;
            time + line.at(time)
        };
        for time in [1e8, 5e8, 9e8] {
            let moved: Vec<f64> = (0..3).map(|node| at(node, time) - shown(0, time)).collect();
            assert!(moved.iter().all(|off| off.abs() < 3e3), "{moved:?}");
        }
        assert!(lines(Vec::new()).is_empty());
    }
}
