//! The samples of all processes, one by one.

use bitcode::{Decode, Encode};

use super::paths::Sampling;
use crate::Result;
use crate::ids::{CallPathId, LocationId, NONE};
use crate::trace::call_samples::Usage;
use crate::trace::{CallPath, CallTree, Trace};

/// A sample.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Encode, Decode)]
pub struct Sample {
    /// The location.
    pub location: LocationId,
    /// Time, ticks.
    pub time: i64,
    /// The call path that it saw, which may be one that only samples have.
    pub callpath: CallPathId,
    /// The call path that the events say was running.
    pub recorded: CallPathId,
    /// The calling context, an id of the definitions.
    pub context: u32,
    /// What triggered it, an id of the definitions.
    pub generator: u32,
    /// Where in a library it was, in a call: a string of the definitions; none if that is not known.
    pub address: Option<u32>,
    /// What was used of the system since the sample before.
    pub usage: Usage,
}

impl Sampling {
    /// All call paths by their numbers: those of the tree, then those that only samples have.
    pub fn callpaths<'a>(&'a self, tree: &'a CallTree) -> impl Iterator<Item = CallPath> + 'a {
        tree.nodes().iter().chain(&self.nodes).copied()
    }

    /// All samples by location and time. Collective; at the first process.
    pub fn rows(&self, trace: &Trace) -> Result<Vec<Sample>> {
        let mut samples = Vec::new();
        for (shard, placed) in trace.shards.iter().zip(&self.placed) {
            for location in shard.locations {
                let rows = shard.call_samples.range(shard.local(location));
                for (sample, placed) in shard.call_samples.rows[rows.clone()].iter().zip(&placed[rows]) {
                    samples.push(Sample {
                        location,
                        time: sample.time,
                        callpath: placed.sampled,
                        recorded: placed.recorded,
                        context: sample.context,
                        generator: sample.generator,
                        address: Some(sample.address).filter(|&address| address != NONE),
                        usage: shard.usages.get(sample.usage as usize).copied().unwrap_or_default(),
                    });
                }
            }
        }
        trace.exchange.gatherv(samples)
    }
}
