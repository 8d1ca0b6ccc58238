//! A network of given latency and bandwidth instead of the measured one: Dimemas' linear model (whatif.md#networks).
//!
//! A message of b bytes takes `latency + b / bandwidth`, with separate values within a node. There is no contention for
//! links or buses. A collective operation takes, from the last Enter that it needs, the time of phases of such messages
//! along a binomial tree or one after the other.

use super::builder::{OWN, Raw};
use crate::trace::columns::NEIGHBORHOOD;

/// The parameters of a network, times in ticks.
#[derive(Clone, Copy, Debug)]
pub struct Network {
    /// Of a message between nodes, ticks.
    pub latency: f64,
    /// Between nodes, bytes a tick; may be infinite.
    pub bandwidth: f64,
    /// Of a message on a node, ticks.
    pub local_latency: f64,
    /// On a node, bytes a tick.
    pub local_bandwidth: f64,
    /// Overhead of a send, ticks.
    pub send: i64,
    /// Overhead of a receive, ticks.
    pub receive: i64,
}

/// A collective operation, with its recorded bytes.
#[derive(Clone, Copy, Debug)]
pub(in crate::whatif) struct Operation {
    /// A value of `CollectiveOp`, or [`NEIGHBORHOOD`] with one.
    pub kind: u8,
    /// Number of members.
    pub size: usize,
    /// Whether all are on one node.
    pub is_local: bool,
    /// Most bytes that any member has sent.
    pub sent: u64,
    /// Most bytes that any member other than the root has received.
    pub received: u64,
    /// Bytes that the member of the last rank has received.
    pub received_by_last: u64,
}

impl Network {
    /// Ticks of a message.
    pub(in crate::whatif) fn transfer(&self, bytes: u64, is_local: bool) -> i64 {
        let (latency, bandwidth) = self.at(is_local);
        ticks(latency + bytes as f64 / bandwidth)
    }

    fn at(&self, is_local: bool) -> (f64, f64) {
        if is_local { (self.local_latency, self.local_bandwidth) } else { (self.latency, self.bandwidth) }
    }

    /// Ticks of a barrier of `size` members from the last Enter on.
    pub(in crate::whatif) fn barrier(&self, size: usize, is_local: bool) -> i64 {
        let none = Operation { kind: 0, size, is_local, sent: 0, received: 0, received_by_last: 0 };
        self.collective(&none)
    }

    /// Ticks of a collective operation from the last Enter that it needs.
    pub(in crate::whatif) fn collective(&self, operation: &Operation) -> i64 {
        let (latency, bandwidth) = self.at(operation.is_local);
        let size = operation.size.max(1) as f64;
        let phases = f64::from(operation.size.max(1).next_power_of_two().trailing_zeros());
        let part = |bytes: u64| bytes as f64 / size;
        let message = |bytes: f64| latency + bytes / bandwidth;
        ticks(match operation.kind {
            1 => phases * message(operation.received as f64),
            12 => phases * message(operation.sent as f64),
            4 | 5 => phases * latency + (size - 1.0) * operation.received as f64 / bandwidth,
            2 | 3 => phases * latency + (size - 1.0) * operation.sent as f64 / bandwidth,
            11 => 2.0 * phases * message(part(operation.sent)),
            6 | 7 | 13 | 16 => phases * latency + (size - 1.0) * part(operation.sent) / bandwidth,
            8..=10 => (size - 1.0) * message(part(operation.sent)),
            14 => phases * message(part(operation.received_by_last)),
            15 => phases * message(operation.received_by_last as f64 / (size - 1.0).max(1.0)),
            // All neighbors at the same time.
            kind if kind & NEIGHBORHOOD != 0 => message(operation.sent as f64),
            _ => phases * latency,
        })
    }
}

fn ticks(ticks: f64) -> i64 {
    ticks.round_ties_even() as i64
}

/// Whether all nodes are known and the same.
pub(in crate::whatif) fn all_equal<'a>(mut nodes: impl Iterator<Item = Option<&'a u32>>) -> bool {
    let first = nodes.next().flatten();
    first.is_some() && nodes.all(|node| node == first)
}

/// The weights of the arcs to a call, own time first: their costs on the network.
pub(in crate::whatif) fn weigh(arcs: &[Raw], weights: &mut [i64]) {
    let own = arcs.iter().filter(|raw| raw.source == OWN && raw.kept).map(|raw| raw.cost);
    weights[0] = own.max().unwrap_or(0).max(0);
    for (raw, weight) in arcs.iter().zip(&mut weights[1..]) {
        *weight = raw.cost;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const NETWORK: Network = Network {
        latency: 100.0,
        bandwidth: 2.0,
        local_latency: 10.0,
        local_bandwidth: f64::INFINITY,
        send: 0,
        receive: 0,
    };

    fn operation(kind: u8) -> Operation {
        Operation { kind, size: 5, is_local: false, sent: 40, received: 20, received_by_last: 200 }
    }

    #[test]
    fn messages_take_latency_and_size_over_bandwidth() {
        assert_eq!(NETWORK.transfer(8, false), 104);
        assert_eq!(NETWORK.transfer(1 << 40, true), 10);
    }

    #[test]
    fn operations_take_phases() {
        // Five members: three phases.
        let expected = [
            (0, 300),
            (1, 3 * 110),
            (12, 3 * 120),
            (4, 300 + 4 * 10),
            (2, 300 + 4 * 20),
            (11, 6 * 104),
            (6, 300 + 4 * 4),
            (8, 4 * 104),
            (14, 3 * 120),
            (15, 3 * 125),
        ];
        for (kind, ticks) in expected {
            assert_eq!(NETWORK.collective(&operation(kind)), ticks, "{kind}");
        }
    }
}
