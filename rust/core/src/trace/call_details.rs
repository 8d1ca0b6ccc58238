//! Details of calls and kernels that only attributes and parameters tell: what a launch launches, and where.

use bitcode::{Decode, Encode};
use rustc_hash::FxHashMap;
use whywait_otf2::Definitions;
use whywait_otf2::enums::Type;

use crate::ids::LocationId;

/// Enter and Leave of a call, ticks.
pub(super) type Call = (i64, i64);

/// Attributes and parameters of calls and kernels, by location and in order of their Leaves.
#[derive(Debug, Default, Encode, Decode)]
pub(crate) struct CallDetails(FxHashMap<LocationId, Vec<(Call, CallDetail)>>);

/// Attributes and parameters of one call or kernel.
#[derive(Clone, Copy, Debug, Default, PartialEq, Encode, Decode)]
pub(crate) struct CallDetail {
    /// Call-site id, a parameter of both launch and kernel.
    pub site: Option<u64>,
    /// OTF2 id of the stream that the call names, an attribute.
    pub stream: Option<u64>,
    /// Number of the device event that the call names, an attribute.
    pub event: Option<u64>,
    /// String id of the launched kernel's name, an attribute.
    pub kernel: Option<u64>,
    /// Number that a launch shares with all that it launched, an attribute.
    pub correlation: Option<u64>,
}

impl CallDetails {
    /// Keeps the details of a location.
    pub(super) fn add(&mut self, location: LocationId, found: Vec<(Call, CallDetail)>) {
        if !found.is_empty() {
            self.0.insert(location, found);
        }
    }

    /// Whether launches and what they launched have numbers in common.
    pub(crate) fn have_correlations(&self) -> bool {
        self.0.values().any(|found| found.iter().any(|(_, detail)| detail.correlation.is_some()))
    }

    /// A detail of a call, or else the last one of this kind of the calls inside it.
    pub(crate) fn of(
        &self,
        location: LocationId,
        (begin, end): Call,
        kind: impl Fn(&CallDetail) -> Option<u64>,
    ) -> Option<u64> {
        let own = self.0.get(&location)?;
        let behind = own.partition_point(|((_, leave), _)| *leave <= end);
        let inside = own[..behind].iter().rev().take_while(|((_, leave), _)| *leave >= begin);
        // The previous call may end at the very tick at which this one begins.
        let inside = inside.filter(|((enter, _), _)| *enter >= begin);
        let mut itself = inside.clone().filter(|(call, _)| *call == (begin, end));
        itself.find_map(|(_, detail)| kind(detail)).or_else(|| inside.clone().find_map(|(_, detail)| kind(detail)))
    }
}

/// Ids of the attributes and parameters that hold details.
#[derive(Debug)]
pub(super) struct DetailIds {
    pub(super) sites: Vec<u32>,
    pub(super) streams: Vec<u32>,
    pub(super) events: Vec<u32>,
    pub(super) kernels: Vec<u32>,
    pub(super) correlations: Vec<u32>,
    /// The calling contexts from which work on streams was launched.
    pub(super) launch_paths: Vec<u32>,
}

impl DetailIds {
    pub(super) fn new(definitions: &Definitions) -> Self {
        let attributes = |names: &[&str]| {
            let named = definitions.attributes.iter();
            named.filter(|named| names.contains(&definitions.string(named.name))).map(|named| named.id).collect()
        };
        let kernels = definitions.attributes.iter().filter(|named| {
            named.value_type == Type::STRING && definitions.string(named.name).to_ascii_lowercase().contains("kernel")
        });
        let sites = definitions.parameters.iter();
        let sites = sites.filter(|named| definitions.string(named.name) == "callsite id").map(|named| named.id);
        Self {
            sites: sites.collect(),
            streams: attributes(&["CUDA_STREAM_REF", "HIP_STREAM_REF"]),
            events: attributes(&["CUDA_EVENT_REF", "HIP_EVENT_REF"]),
            kernels: kernels.map(|named| named.id).collect(),
            correlations: attributes(&["correlation"]),
            launch_paths: attributes(&["launch path"]),
        }
    }

    /// Whether no record can hold a detail.
    pub(super) fn is_empty(&self) -> bool {
        let Self { sites, streams, events, kernels, correlations, launch_paths } = self;
        [sites, streams, events, kernels, correlations, launch_paths].iter().all(|ids| ids.is_empty())
    }
}
