//! Details of calls and kernels that only attributes and parameters tell: what a launch launches, and where.

use rustc_hash::FxHashMap;
use whywait_otf2::enums::Type;
use whywait_otf2::records::TypedValue;
use whywait_otf2::{Attributes, Definitions, Event, EventSink};

use super::decode::Decoder;
use crate::ids::LocationId;

/// Enter and Leave of a call, ticks.
type Call = (i64, i64);

/// Attributes and parameters of calls and kernels, by location and in order of their Leaves.
#[derive(Debug, Default)]
pub(crate) struct CallDetails(FxHashMap<LocationId, Vec<(Call, CallDetail)>>);

/// Attributes and parameters of one call or kernel.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub(crate) struct CallDetail {
    /// Call-site id, a parameter of both launch and kernel.
    pub site: Option<u64>,
    /// OTF2 id of the stream that the call names, an attribute.
    pub stream: Option<u64>,
    /// Number of the device event that the call names, an attribute.
    pub event: Option<u64>,
    /// String id of the launched kernel's name, an attribute.
    pub kernel: Option<u64>,
}

impl CallDetails {
    /// Keeps the details of a location.
    pub(super) fn add(&mut self, location: LocationId, found: Vec<(Call, CallDetail)>) {
        if !found.is_empty() {
            self.0.insert(location, found);
        }
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
    sites: Vec<u32>,
    streams: Vec<u32>,
    events: Vec<u32>,
    kernels: Vec<u32>,
}

impl DetailIds {
    pub(super) fn new(definitions: &Definitions) -> Self {
        let attributes = |names: [&str; 2]| {
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
            streams: attributes(["CUDA_STREAM_REF", "HIP_STREAM_REF"]),
            events: attributes(["CUDA_EVENT_REF", "HIP_EVENT_REF"]),
            kernels: kernels.map(|named| named.id).collect(),
        }
    }

    /// Whether no record can hold a detail.
    pub(super) fn is_empty(&self) -> bool {
        [&self.sites, &self.streams, &self.events, &self.kernels].iter().all(|ids| ids.is_empty())
    }
}

/// Collects the details of a location, and passes its events on to the decoder.
pub(super) struct DetailCollector<'a, 'b> {
    ids: &'a DetailIds,
    decoder: &'a mut Decoder<'b>,
    /// Details of the next call: attributes precede its Enter.
    next: CallDetail,
    /// Enter and details of each open call.
    open: Vec<(i64, CallDetail)>,
    found: Vec<(Call, CallDetail)>,
}

impl<'a, 'b> DetailCollector<'a, 'b> {
    pub(super) fn new(ids: &'a DetailIds, decoder: &'a mut Decoder<'b>) -> Self {
        Self { ids, decoder, next: CallDetail::default(), open: Vec::new(), found: Vec::new() }
    }

    /// What was found.
    pub(super) fn finish(self) -> Vec<(Call, CallDetail)> {
        self.found
    }
}

impl EventSink for DetailCollector<'_, '_> {
    fn enter(&mut self, time: i64, region: u32) {
        self.decoder.enter(time, region);
        self.open.push((time, std::mem::take(&mut self.next)));
    }

    fn leave(&mut self, time: i64, region: u32) {
        self.decoder.leave(time, region);
        self.next = CallDetail::default();
        if let Some((enter, detail)) = self.open.pop()
            && detail != CallDetail::default()
        {
            self.found.push(((enter, time), detail));
        }
    }

    fn attributed(&mut self, attributes: &Attributes<'_>) {
        self.decoder.attributed(attributes);
        let value = |ids: &[u32]| {
            let named = attributes.into_iter().find(|named| ids.contains(&named.id));
            named.map(|named| named.value.bits)
        };
        let [stream, event, kernel] = [&self.ids.streams, &self.ids.events, &self.ids.kernels].map(|ids| value(ids));
        self.next = CallDetail { site: None, stream, event, kernel };
    }

    fn record(&mut self, time: i64, record: &Event<'_>, attributes: &Attributes<'_>) {
        self.decoder.record(time, record, attributes);
        if let Event::ParameterUnsignedInt { parameter, value } = *record
            && self.ids.sites.contains(&parameter)
            && let Some((_, detail)) = self.open.last_mut()
        {
            detail.site = Some(value);
        }
    }

    fn metric(&mut self, time: i64, metric: u32, values: &[TypedValue]) {
        self.decoder.metric(time, metric, values);
    }

    fn end_chunk(&mut self) {
        self.decoder.end_chunk();
    }
}
