//! The first pass: each clock advances from place to place, and waits where a source is not known yet.
//!
//! It finds the earliest times at which nothing is violated. These are unique, so it does not matter in which order the
//! clocks advance, and how often other processes of the analysis tell when their nodes are.

use super::deal::NEVER;
use super::logical::{Jumps, decayed};
use super::net::{Net, Way};

const UNKNOWN: i64 = i64::MIN;

/// The pass, and what it finds.
pub(super) struct Forward<'a> {
    net: &'a Net,
    /// The shifted time of each node that is known.
    pub(super) shifted: Vec<i64>,
    /// The jumps of each clock.
    pub(super) jumps: Vec<Jumps>,
    /// Whether some times satisfy all constraints.
    pub(super) is_possible: bool,
    /// Number of sources of each node that are unknown.
    unknown: Vec<u32>,
    /// The next place of each clock.
    next: Vec<usize>,
    /// Nodes all of whose sources are known: meetings, and places that are next.
    ready: Vec<u32>,
    /// Nodes that may have to move together.
    is_tied: Vec<bool>,
}

impl<'a> Forward<'a> {
    /// Passes over a net whose remote nodes are at some times.
    pub(super) fn pass(net: &'a Net, remote: &[i64]) -> Self {
        let clocks = net.first.len() - 1;
        let mut shifted = vec![UNKNOWN; net.nodes()];
        shifted[net.remote()].copy_from_slice(remote);
        let unknown = |node| net.sources.of(node).iter().filter(|way| shifted[way.node()] == UNKNOWN).count() as u32;
        let unknown = (0..net.nodes()).map(unknown).collect();
        let next = net.first[..clocks].to_vec();
        let is_tied = vec![false; net.nodes()];
        let jumps = vec![Jumps::new(); clocks];
        let mut pass = Self { net, shifted, jumps, is_possible: true, unknown, next, ready: Vec::new(), is_tied };
        let ready = net.meetings().chain(pass.waiting()).filter(|&node| pass.unknown[node] == 0);
        pass.ready = ready.map(|node| node as u32).collect();
        pass.run();
        pass
    }

    fn run(&mut self) {
        loop {
            while let Some(node) = self.ready.pop() {
                let required = self.required(node as usize);
                self.set(node as usize, required);
                self.announce(node as usize);
            }
            if !self.untie() && !self.force() {
                return;
            }
        }
    }

    fn is_known(&self, node: usize) -> bool {
        self.shifted[node] != UNKNOWN
    }

    /// Whether a node is to be set next: a meeting, or the next place of a clock.
    fn waits(&self, node: usize) -> bool {
        let is_next = |place: usize| {
            let clock = self.net.clock[place] as usize;
            self.next[clock] == place
        };
        !self.is_known(node) && (!self.net.is_place(node) || is_next(node))
    }

    /// The latest of the sources that are known.
    fn required(&self, node: usize) -> i64 {
        let known = self.net.sources.of(node).iter().filter(|way| self.is_known(way.node()));
        known.map(|&way| self.shifted[way.node()] + self.net.latency(way)).max().unwrap_or(NEVER)
    }

    /// The time of a node, if nothing is required.
    fn own(&self, node: usize) -> i64 {
        if !self.net.is_place(node) {
            return NEVER;
        }
        let time = self.net.times[node];
        time + self.jumps[self.net.clock[node] as usize].last().map_or(0, |&last| decayed(last, time))
    }

    /// Sets a node to the earliest time that is not before what is required.
    fn set(&mut self, node: usize, required: i64) {
        let own = self.own(node);
        self.shifted[node] = required.max(own);
        if !self.net.is_place(node) {
            return;
        }
        let clock = self.net.clock[node] as usize;
        if required > own {
            let time = self.net.times[node];
            self.jumps[clock].push((time, required - time));
        }
        self.next[clock] += 1;
        let next = self.next[clock];
        if next < self.net.first[clock + 1] && self.unknown[next] == 0 {
            self.ready.push(next as u32);
        }
    }

    /// Tells the targets of a node that it is known.
    fn announce(&mut self, node: usize) {
        for way in self.net.targets.of(node) {
            let target = way.node();
            self.unknown[target] -= 1;
            if self.unknown[target] == 0 && self.waits(target) {
                self.ready.push(target as u32);
            }
        }
    }

    /// The places at which clocks wait.
    fn waiting(&self) -> impl Iterator<Item = usize> {
        (0..self.next.len()).filter(|&clock| self.next[clock] < self.net.first[clock + 1]).map(|clock| self.next[clock])
    }

    /// Sets places that wait for each other without any time between them, as the ends of an operation that takes no time
    /// wait for its begins: they move together. Returns whether there are some.
    fn untie(&mut self) -> bool {
        let net = self.net;
        let mut tied: Vec<usize> = self.waiting().collect();
        for &place in &tied {
            self.is_tied[place] = true;
        }
        let mut seen = 0;
        while let Some(&node) = tied.get(seen) {
            seen += 1;
            for way in net.sources.of(node) {
                let source = way.node();
                if !net.is_place(source) && !self.is_known(source) && !self.is_tied[source] {
                    self.is_tied[source] = true;
                    tied.push(source);
                }
            }
        }
        // Not what waits for a later place or for time to pass, nor what waits for that.
        let is_late = |&&node: &&usize| {
            let unknown = net.sources.of(node).iter().filter(|way| !self.is_known(way.node()));
            unknown.into_iter().any(|&way| !self.is_tied[way.node()] || net.latency(way) > 0)
        };
        let mut late: Vec<usize> = tied.iter().filter(is_late).copied().collect();
        for &node in &late {
            self.is_tied[node] = false;
        }
        while let Some(node) = late.pop() {
            for target in net.targets.of(node).iter().map(|way| way.node()) {
                if std::mem::take(&mut self.is_tied[target]) {
                    late.push(target);
                }
            }
        }
        tied.retain(|&node| self.is_tied[node]);
        // What is required of one is required of all that wait for it.
        let mut required: Vec<(i64, usize)> =
            tied.iter().map(|&node| (self.required(node).max(self.own(node)), node)).collect();
        required.sort_unstable_by(|a, b| b.cmp(a));
        let mut reached = Vec::new();
        for (required, node) in required {
            reached.extend(std::mem::take(&mut self.is_tied[node]).then_some(node));
            while let Some(node) = reached.pop() {
                self.set(node, required);
                for target in net.targets.of(node).iter().map(|way| way.node()) {
                    if std::mem::take(&mut self.is_tied[target]) {
                        reached.push(target);
                    }
                }
            }
        }
        for &node in &tied {
            self.announce(node);
        }
        !tied.is_empty()
    }

    /// Sets the earliest place that waits, whatever it waits for: no times satisfy all constraints. Returns whether any waits.
    fn force(&mut self) -> bool {
        let Some(place) = self.waiting().min_by_key(|&place| (self.net.times[place], place)) else { return false };
        self.is_possible = false;
        let mut required = NEVER;
        let mut ways: Vec<(Way, i64)> = self.net.sources.of(place).iter().map(|&way| (way, 0)).collect();
        while let Some((way, behind)) = ways.pop() {
            let behind = behind + self.net.latency(way);
            if self.is_known(way.node()) {
                required = required.max(self.shifted[way.node()] + behind);
            } else if !self.net.is_place(way.node()) {
                ways.extend(self.net.sources.of(way.node()).iter().map(|&way| (way, behind)));
            }
        }
        self.set(place, required);
        self.announce(place);
        true
    }
}
