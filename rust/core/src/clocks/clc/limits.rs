//! How far each place may move in the second pass without getting behind what waits for it.

use super::deal::tell;
use super::net::{Net, Way};
use crate::Result;
use crate::parallel::exchange::Exchange;

/// How far each place may move; `i64::MAX` if nothing limits it. Collective.
pub(super) fn caps(net: &Net, shifted: &[i64], exchange: &Exchange) -> Result<Vec<i64>> {
    let limit = |latest: &[i64], way: Way| match way.node() {
        place if net.is_place(place) => shifted[place] - net.latency(way),
        meeting => latest[meeting],
    };
    let of_targets = |latest: &[i64], node: usize| {
        net.targets.of(node).iter().map(|&way| limit(latest, way)).fold(latest[node], i64::min)
    };
    let mut latest = vec![i64::MAX; net.nodes()];
    let mut told = net.imports.iter().map(|nodes| vec![i64::MAX; nodes.len()]).collect();
    loop {
        for node in net.meetings().rev().chain(net.remote()) {
            latest[node] = of_targets(&latest, node);
        }
        let mut arrived = Vec::new();
        let time = |node: u32| latest[node as usize];
        if !tell(exchange, (&net.imports, &net.exports), &mut told, time, |node, time| arrived.push((node, time)))? {
            break;
        }
        for (node, time) in arrived {
            let latest = &mut latest[node as usize];
            *latest = time.min(*latest);
        }
    }
    for place in 0..net.times.len() {
        latest[place] = of_targets(&latest, place);
    }
    // Its own end limits a part, too: what it does before must not squeeze it.
    for &(begin, to_end) in &net.parts {
        let limit = limit(&latest, to_end);
        let latest = &mut latest[begin as usize];
        *latest = limit.min(*latest);
    }
    let cap = |(&latest, &shifted): (&i64, &i64)| match latest {
        i64::MAX => i64::MAX,
        latest => (latest - shifted).max(0),
    };
    Ok(latest.iter().zip(&shifted[..net.times.len()]).map(cap).collect())
}
