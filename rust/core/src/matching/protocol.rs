//! Whether a message was sent by the eager or the rendezvous protocol: evidence first, then a limit.
//!
//! With k the call that completes the send and q the one that posts the receive: `L(k) <= q` proves eager (it was back
//! before there was a receive), `E(k) < q < L(k)` (the measured Late Receiver) proves rendezvous, unless k completes
//! other requests as well: it may have waited for those. Synchronous sends go by rendezvous, buffered and ready ones do
//! not. The limit B of a locality, within a node or between nodes, is the least size that contradicts the fewest
//! proofs; messages without a proof that are longer went by rendezvous. Calls whose name says the protocol prove
//! nothing of it.
//!
//! *Source*: whatif.md#how-it-works.

use rustc_hash::FxHashMap;
use whywait_otf2::Definitions;

use super::messages::SendInfo;
use crate::Result;
use crate::ids::{CallPathId, ProcessId};
use crate::trace::Trace;

/// What the times prove.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Protocol {
    /// The send did not need the receiver.
    Eager,
    /// The send waited for the receiver.
    Rendezvous,
    /// Neither is proved.
    Undecided,
}

/// What the name of the sending call says.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Named {
    /// Its protocol.
    Is(Protocol),
    /// Nothing, and its times prove nothing either, as it receives as well.
    Exchanges,
    /// Nothing.
    Standard,
}

fn named(name: &str) -> Named {
    let name = name.to_ascii_lowercase();
    let call = name.strip_prefix("mpi_").unwrap_or("");
    match call {
        _ if call.starts_with("ssend") || call.starts_with("issend") => Named::Is(Protocol::Rendezvous),
        _ if ["bsend", "ibsend", "rsend", "irsend"].iter().any(|send| call.starts_with(send)) => {
            Named::Is(Protocol::Eager)
        }
        _ if call.starts_with("sendrecv") || call.starts_with("isendrecv") => Named::Exchanges,
        _ => Named::Standard,
    }
}

/// What must be known of call paths and processes to judge messages.
#[derive(Debug)]
pub struct Judge {
    /// By call path.
    named: Vec<Named>,
    /// By process.
    nodes: Vec<u32>,
}

impl Judge {
    /// Reads names of calls, and the nodes of processes.
    #[must_use]
    pub fn new(trace: &Trace, definitions: &Definitions) -> Self {
        let name = |region| trace.regions.name(definitions, region);
        let named = trace.tree.nodes().iter().map(|node| named(name(node.region))).collect();
        Self { named, nodes: nodes(trace, definitions) }
    }

    /// The protocol of a message by the name of its send and its times; `posted` is the Enter of the call that posts
    /// its receive.
    #[must_use]
    pub fn protocol(&self, send: &SendInfo, posted: i64) -> Protocol {
        match self.named[send.callpath] {
            Named::Is(protocol) => protocol,
            // Nothing completed it.
            Named::Standard if send.complete_leave == i64::MIN => Protocol::Undecided,
            Named::Standard if send.complete_leave <= posted => Protocol::Eager,
            Named::Standard if send.complete_enter < posted && send.is_alone => Protocol::Rendezvous,
            Named::Standard | Named::Exchanges => Protocol::Undecided,
        }
    }

    /// Whether the call that sends leaves no choice of the protocol.
    #[must_use]
    pub fn is_named(&self, callpath: CallPathId) -> bool {
        matches!(self.named[callpath], Named::Is(_))
    }

    /// Whether the processes of a message are on one node.
    #[must_use]
    pub fn is_local(&self, send: &SendInfo) -> bool {
        self.nodes[send.source] == self.nodes[send.destination]
    }
}

/// The node of each process, as something that is equal for two on the same one.
#[must_use]
pub fn nodes(trace: &Trace, definitions: &Definitions) -> Vec<u32> {
    let groups = definitions.location_groups.iter();
    let parent: FxHashMap<u32, u32> = groups.map(|group| (group.id, group.system_tree_parent)).collect();
    let of = |process| {
        let group = trace.definitions.locations[trace.definitions.master(process)].group;
        parent.get(&group).copied().unwrap_or(u32::MAX)
    };
    (0..trace.definitions.processes.len()).map(ProcessId::at).map(of).collect()
}

/// Number of messages by size that are proved eager, and by rendezvous.
type BySize = Vec<(u64, [u64; 2])>;

/// What messages prove.
#[derive(Debug, Default)]
pub struct Proofs {
    /// Within a node, between nodes.
    by_size: [FxHashMap<u64, [u64; 2]>; 2],
    /// The latest messages of equal size: mostly the next one is of it as well.
    latest: (usize, u64, [u64; 2]),
}

impl Proofs {
    /// Counts a message whose call leaves the choice of its protocol.
    #[inline]
    pub fn add(&mut self, is_local: bool, bytes: u64, protocol: Protocol) {
        let number = match protocol {
            Protocol::Eager => 0,
            Protocol::Rendezvous => 1,
            Protocol::Undecided => return,
        };
        let locality = usize::from(!is_local);
        if (self.latest.0, self.latest.1) != (locality, bytes) {
            self.end_latest();
            self.latest = (locality, bytes, [0; 2]);
        }
        self.latest.2[number] += 1;
    }

    fn end_latest(&mut self) {
        let (locality, bytes, [eager, rendezvous]) = self.latest;
        if eager + rendezvous > 0 {
            let counts = self.by_size[locality].entry(bytes).or_default();
            counts[0] += eager;
            counts[1] += rendezvous;
        }
    }

    fn by_size(mut self) -> [BySize; 2] {
        self.end_latest();
        self.by_size.map(|by_size| by_size.into_iter().collect())
    }
}

/// Libraries send messages of more bytes by rendezvous unless they are told otherwise: the largest limit that is usual.
const USUAL: u64 = 1 << 16;

/// The largest eager messages within a node and between nodes.
#[derive(Clone, Copy, Debug)]
pub struct Limits {
    /// `u64::MAX` if no message is proved to have gone by rendezvous.
    limits: [u64; 2],
    /// Size of the longest message that is proved to have been eager.
    longest: [u64; 2],
}

impl Limits {
    /// Finds the limits of messages by what those of each shard prove.
    pub fn new(trace: &Trace, proofs: Vec<Proofs>) -> Result<Self> {
        let mut all = [FxHashMap::default(), FxHashMap::default()];
        let own: Vec<[BySize; 2]> = proofs.into_iter().map(Proofs::by_size).collect();
        for of_shard in trace.exchange.allgather(own)?.into_iter().flatten() {
            for (all, proofs) in all.iter_mut().zip(of_shard) {
                for (bytes, [eager, rendezvous]) in proofs {
                    let counts: &mut [u64; 2] = all.entry(bytes).or_default();
                    counts[0] += eager;
                    counts[1] += rendezvous;
                }
            }
        }
        let is_eager = |(bytes, [eager, _]): (&u64, &[u64; 2])| (*eager > 0).then_some(*bytes);
        let longest = [0, 1].map(|locality: usize| all[locality].iter().filter_map(is_eager).max().unwrap_or(0));
        Ok(Self { limits: all.map(|proofs| limit(proofs.into_iter().collect())), longest })
    }

    /// The limits for those that cannot do without: where no message is proved to have gone by rendezvous, the usual
    /// one, or the longest message that is proved to have been eager.
    #[must_use]
    pub fn or_usual(self) -> Self {
        let or_usual = |of: usize| match self.limits[of] {
            u64::MAX => self.longest[of].max(USUAL),
            limit => limit,
        };
        Self { limits: [or_usual(0), or_usual(1)], ..self }
    }

    /// Whether a message is taken as eager.
    #[must_use]
    pub fn is_eager(self, is_local: bool, bytes: u64, protocol: Protocol) -> bool {
        match protocol {
            Protocol::Eager => true,
            Protocol::Rendezvous => false,
            Protocol::Undecided => bytes <= self.limits[usize::from(!is_local)],
        }
    }

    /// Within a node and between nodes; `None` if no message went by rendezvous.
    #[must_use]
    pub fn known(self) -> [Option<u64>; 2] {
        self.limits.map(|limit| (limit != u64::MAX).then_some(limit))
    }
}

fn limit(mut proofs: BySize) -> u64 {
    if proofs.iter().all(|(_, [_, rendezvous])| *rendezvous == 0) {
        return u64::MAX;
    }
    proofs.sort_unstable();
    // With a limit of 0 all eager messages with data contradict it.
    let mut wrong: u64 = proofs.iter().map(|(_, [eager, _])| eager).sum();
    let mut best = (u64::MAX, 0);
    if proofs[0].0 > 0 {
        best = (wrong, 0);
    }
    for (bytes, [eager, rendezvous]) in proofs {
        wrong = wrong - eager + rendezvous;
        best = best.min((wrong, bytes));
    }
    best.1
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_limit_contradicts_the_fewest_proofs() {
        assert_eq!(limit(vec![]), u64::MAX);
        assert_eq!(limit(vec![(8, [3, 0]), (100, [1, 0])]), u64::MAX);
        assert_eq!(limit(vec![(1000, [0, 5]), (8, [3, 0]), (100, [1, 0])]), 100);
        // One eager message of 5000 bytes against two rendezvous of 1000: the limit stays below.
        assert_eq!(limit(vec![(8, [3, 0]), (1000, [0, 2]), (5000, [1, 0])]), 8);
        assert_eq!(limit(vec![(8, [0, 1])]), 0);
        assert_eq!(limit(vec![(0, [0, 1])]), 0);
    }

    #[test]
    fn where_nothing_is_proved_the_usual_limit_holds() {
        let limits = Limits { limits: [u64::MAX, 100], longest: [1 << 20, 50] };
        assert_eq!(limits.or_usual().limits, [1 << 20, 100]);
        let limits = Limits { limits: [u64::MAX; 2], longest: [8, 0] };
        assert_eq!(limits.or_usual().limits, [USUAL; 2]);
        assert_eq!(limits.known(), [None; 2]);
    }

    #[test]
    fn names_tell_the_protocol() {
        assert_eq!(named("mpi_ssend"), Named::Is(Protocol::Rendezvous));
        assert_eq!(named("mpi_ibsend_c"), Named::Is(Protocol::Eager));
        assert_eq!(named("mpi_sendrecv_replace"), Named::Exchanges);
        assert_eq!(named("mpi_send"), Named::Standard);
        assert_eq!(named("ssend"), Named::Standard);
    }
}
