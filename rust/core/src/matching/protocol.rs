//! Whether a message was sent by the eager or the rendezvous protocol: evidence first, then a limit.
//!
//! With k the call that completes the send and q the one that posts the receive: `L(k) <= q` proves eager (it was back
//! before there was a receive); `E(k) < q < L(k)` (the measured Late Receiver) proves rendezvous, unless k also completes
//! other requests, which it may have waited for. A kernel of a device that had not ended by then waited: one that completes
//! several messages ends when all can. Synchronous sends go by rendezvous, buffered and ready ones do
//! not. The limit B, one within a node and one between nodes, is the smallest size that contradicts the fewest
//! proofs; undecided messages longer than B went by rendezvous. Calls whose name fixes the protocol say nothing about B.
//!
//! *Source*: whatif.md#how-it-works.

use bitcode::{Decode, Encode};
use rustc_hash::FxHashMap;

use super::send_info::SendInfo;
use crate::Result;
use crate::ids::CallPathId;
use crate::trace::nodes::nodes;
use crate::trace::{RegionClass, Trace};

/// What the times prove.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Encode, Decode)]
pub enum Protocol {
    /// The send did not need the receiver.
    Eager,
    /// The send waited for the receiver.
    Rendezvous,
    /// Neither is proved.
    Undecided,
}

/// What the name of the sending call says about the protocol.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum CallProtocol {
    /// The call fixes it.
    Fixed(Protocol),
    /// Nothing; and the call may have waited for what it receives as well.
    Exchanges,
    /// A kernel of a device sends.
    Kernel,
    /// Nothing.
    Standard,
}

/// Whether a call with a name sends synchronously: it completes after the receive was posted.
pub(crate) fn is_synchronous(name: &str) -> bool {
    let name = name.to_ascii_lowercase();
    let call = name.strip_prefix("mpi_").unwrap_or("");
    call.starts_with("ssend") || call.starts_with("issend")
}

fn call_protocol(name: &str) -> CallProtocol {
    let name = name.to_ascii_lowercase();
    let call = name.strip_prefix("mpi_").unwrap_or("");
    match call {
        _ if is_synchronous(&name) => CallProtocol::Fixed(Protocol::Rendezvous),
        _ if ["bsend", "ibsend", "rsend", "irsend"].iter().any(|send| call.starts_with(send)) => {
            CallProtocol::Fixed(Protocol::Eager)
        }
        _ if call.starts_with("sendrecv") || call.starts_with("isendrecv") => CallProtocol::Exchanges,
        _ => CallProtocol::Standard,
    }
}

/// Tells the protocol of messages, from the calls that send them and their times.
#[derive(Debug)]
pub struct ProtocolClassifier {
    /// One entry per call path.
    call_protocols: Vec<CallProtocol>,
    /// The node of each process.
    nodes: Vec<u32>,
}

impl ProtocolClassifier {
    /// Reads the names of calls and the nodes of processes.
    pub fn new(trace: &Trace) -> Self {
        let of_region = |region| match trace.regions.class(region) {
            RegionClass::DeviceMessage => CallProtocol::Kernel,
            _ => call_protocol(trace.regions.name(trace.records(), region)),
        };
        let call_protocols = trace.tree.nodes().iter().map(|node| of_region(node.region)).collect();
        Self { call_protocols, nodes: nodes(trace) }
    }

    /// The protocol of a message; `posted` is the Enter of the call that posts its receive.
    pub fn protocol(&self, send: &SendInfo, posted: i64) -> Protocol {
        match self.call_protocols[send.callpath] {
            CallProtocol::Fixed(protocol) => protocol,
            // No call completed the send.
            _ if send.complete_leave == i64::MIN => Protocol::Undecided,
            _ if send.complete_leave <= posted => Protocol::Eager,
            CallProtocol::Kernel => Protocol::Rendezvous,
            CallProtocol::Standard if send.complete_enter < posted && send.is_alone => Protocol::Rendezvous,
            CallProtocol::Standard | CallProtocol::Exchanges => Protocol::Undecided,
        }
    }

    /// The protocol of a message and whether it is local; counted among the proofs, unless the sending call fixes the protocol.
    pub fn count(&self, send: &SendInfo, posted: i64, proofs: &mut Proofs) -> (Protocol, bool) {
        let (protocol, is_local) = (self.protocol(send, posted), self.is_local(send));
        if !self.is_fixed(send.callpath) {
            proofs.add(is_local, send.bytes, protocol);
        }
        (protocol, is_local)
    }

    /// Whether the sending call fixes the protocol, so that its messages prove nothing about the library's limit.
    pub fn is_fixed(&self, callpath: CallPathId) -> bool {
        matches!(self.call_protocols[callpath], CallProtocol::Fixed(_))
    }

    /// Whether the processes of a message are on one node.
    pub fn is_local(&self, send: &SendInfo) -> bool {
        self.nodes[send.source] == self.nodes[send.destination]
    }
}

/// For each message size, how many messages are proved eager, and how many rendezvous.
type ProofsBySize = Vec<(u64, [u64; 2])>;

/// The evidence from messages.
#[derive(Debug, Default)]
pub struct Proofs {
    /// Within a node, between nodes.
    by_size: [FxHashMap<u64, [u64; 2]>; 2],
    /// The current run of messages of equal size: locality, bytes, counts. The next message mostly has the same size.
    latest: (usize, u64, [u64; 2]),
}

impl Proofs {
    /// Counts a message whose call leaves the protocol to the library.
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

    fn by_size(mut self) -> [ProofsBySize; 2] {
        self.end_latest();
        self.by_size.map(|by_size| by_size.into_iter().collect())
    }
}

/// The largest default limit of common MPI libraries, bytes: longer messages go by rendezvous.
const DEFAULT_LIMIT: u64 = 1 << 16;

/// The size of the largest eager message, within a node and between nodes.
#[derive(Clone, Copy, Debug)]
pub struct Limits {
    /// `u64::MAX` if no message is proved to have gone by rendezvous.
    limits: [u64; 2],
    /// Size of the longest message proved to be eager.
    longest: [u64; 2],
}

impl Limits {
    /// Finds the limits that best agree with the evidence of all shards.
    pub fn new(trace: &Trace, proofs: Vec<Proofs>) -> Result<Self> {
        let mut all = [FxHashMap::default(), FxHashMap::default()];
        let own: Vec<[ProofsBySize; 2]> = proofs.into_iter().map(Proofs::by_size).collect();
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

    /// The same with a limit in any case: where no message is proved to have gone by rendezvous, the default one, or the
    /// longest message proved to be eager if that is longer.
    #[must_use]
    pub fn or_default(self) -> Self {
        let or_default = |of: usize| match self.limits[of] {
            u64::MAX => self.longest[of].max(DEFAULT_LIMIT),
            limit => limit,
        };
        Self { limits: [or_default(0), or_default(1)], ..self }
    }

    /// Whether a message counts as eager.
    pub fn is_eager(self, is_local: bool, bytes: u64, protocol: Protocol) -> bool {
        match protocol {
            Protocol::Eager => true,
            Protocol::Rendezvous => false,
            Protocol::Undecided => bytes <= self.limits[usize::from(!is_local)],
        }
    }

    /// The limits within a node and between nodes; `None` if no message is proved to have gone by rendezvous.
    pub fn known(self) -> [Option<u64>; 2] {
        self.limits.map(|limit| (limit != u64::MAX).then_some(limit))
    }
}

fn limit(mut proofs: ProofsBySize) -> u64 {
    if proofs.iter().all(|(_, [_, rendezvous])| *rendezvous == 0) {
        return u64::MAX;
    }
    proofs.sort_unstable();
    // All eager messages with data contradict a limit of 0.
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
    fn without_proofs_the_default_limit_holds() {
        let limits = Limits { limits: [u64::MAX, 100], longest: [1 << 20, 50] };
        assert_eq!(limits.or_default().limits, [1 << 20, 100]);
        let limits = Limits { limits: [u64::MAX; 2], longest: [8, 0] };
        assert_eq!(limits.or_default().limits, [DEFAULT_LIMIT; 2]);
        assert_eq!(limits.known(), [None; 2]);
    }

    #[test]
    fn call_names_fix_the_protocol() {
        assert_eq!(call_protocol("mpi_ssend"), CallProtocol::Fixed(Protocol::Rendezvous));
        assert_eq!(call_protocol("mpi_ibsend_c"), CallProtocol::Fixed(Protocol::Eager));
        assert_eq!(call_protocol("mpi_sendrecv_replace"), CallProtocol::Exchanges);
        assert_eq!(call_protocol("mpi_send"), CallProtocol::Standard);
        assert_eq!(call_protocol("ssend"), CallProtocol::Standard);
    }
}
