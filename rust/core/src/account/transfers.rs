//! What the transfers of kernels that communicate need: the fastest 5% with the same kernel, as for calls.

use rustc_hash::FxHashMap;

use super::calls::{Partners, logarithm};
use super::device_rows::DeviceRow;
use super::floors::{Floors, Histogram, Kind};
use crate::Result;
use crate::ids::{CommId, LocationId};
use crate::trace::Trace;
use crate::waits::device::{DevicePart, Kernel};

/// The property of a recording that names the communicators of which members have no trace, by their ids, each with the number of
/// all members; between both words is the tool that recorded it.
const PARTIAL_COMMUNICATORS: [&str; 2] = ["WHYWAIT::", "::PARTIAL_COMMUNICATORS"];

/// Ids of communicators, and the logarithms of their numbers of members, where these are said.
fn partial(property: &str) -> FxHashMap<u32, Option<u8>> {
    let one = |text: &str| {
        let (id, size) = text.split_once(':').unwrap_or((text, ""));
        let size = size.trim().parse::<u32>().ok().filter(|size| *size > 0);
        Some((id.trim().parse().ok()?, size.map(|size| logarithm(size as usize))))
    };
    property.split(',').filter_map(one).collect()
}

/// What is known of the transfers of kernels.
pub(super) struct Transfers<'a> {
    trace: &'a Trace,
    partners: Partners,
    floors: Floors,
    /// Those of which members have no trace, with the logarithms of their numbers of members.
    partial: FxHashMap<CommId, Option<u8>>,
}

impl<'a> Transfers<'a> {
    /// Compares the transfers of all devices. Collective.
    pub(super) fn find(trace: &'a Trace, kernels: &[(&Kernel, &DevicePart)]) -> Result<Self> {
        let properties = &trace.recording().anchor().properties;
        let [begin, end] = PARTIAL_COMMUNICATORS;
        let named = properties.iter().find(|(name, _)| name.starts_with(begin) && name.ends_with(end));
        let named = named.map(|(_, comms)| partial(comms)).unwrap_or_default();
        let ids = (0..).map(CommId::new).zip(trace.definitions.comms.iter());
        let partial = ids.filter_map(|(comm, own)| Some((comm, *named.get(&own.id)?)));
        let mut found =
            Self { trace, partners: Partners::new(trace), floors: Floors::default(), partial: partial.collect() };
        let mut histograms: FxHashMap<Kind, Histogram> = FxHashMap::default();
        for (kernel, part) in kernels.iter().filter(|(_, part)| !found.partial.contains_key(&part.comm)) {
            histograms.entry(found.kind(kernel, part)).or_default().add(Self::length(kernel, part));
        }
        found.floors = Floors::find(&trace.exchange, histograms.iter().map(|(&kind, of_kind)| (kind, of_kind)), false)?;
        Ok(found)
    }

    fn length(kernel: &Kernel, part: &DevicePart) -> i64 {
        (kernel.run.leave - kernel.run.enter - part.waiting).max(0)
    }

    fn kind(&self, kernel: &Kernel, part: &DevicePart) -> Kind {
        let process = |location: LocationId| self.trace.definitions.locations[location].process;
        let (members, spans) = if part.comm.is_some() {
            let (known, spans) = self.partners.comm(part.comm);
            (self.partial.get(&part.comm).copied().flatten().unwrap_or(known), spans)
        } else {
            (0, self.partners.is_remote(process(part.kernel.0), process(part.cause.0)))
        };
        Kind {
            region: self.trace.tree.region(kernel.run.callpath),
            exposed: true,
            local: !spans,
            members,
            size: Kind::size_of(part.bytes),
        }
    }

    /// What a kernel does since it waits no longer, and from when on it does more than needed, as which row.
    pub(super) fn divide(&self, kernel: &Kernel, part: &DevicePart) -> (i64, DeviceRow) {
        let floor = self.floors.known(self.kind(kernel, part));
        let length = Self::length(kernel, part);
        if self.partial.contains_key(&part.comm) {
            return (floor.unwrap_or(0).min(length), DeviceRow::Unseen);
        }
        (floor.unwrap_or(length).min(length), DeviceRow::Excess)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn partial_communicators_are_known_with_or_without_their_members() {
        let right: FxHashMap<u32, Option<u8>> = [(3, Some(2)), (5, None), (9, Some(7))].into_iter().collect();
        assert_eq!(partial("3:4, 5, 9:128"), right);
        assert_eq!(partial("7:0, x, :2"), std::iter::once((7, None)).collect());
    }
}
