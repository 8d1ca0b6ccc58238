//! What the transfers of kernels that communicate need: the fastest 5% with the same kernel, as for calls.

use rustc_hash::{FxHashMap, FxHashSet};

use super::calls::Partners;
use super::device_rows::DeviceRow;
use super::floors::{Floors, Histogram, Kind};
use crate::Result;
use crate::ids::{CommId, LocationId};
use crate::trace::Trace;
use crate::waits::device::{DevicePart, Kernel};

/// The property of a recording that names the communicators of which members have no trace, by their ids.
const PARTIAL_COMMUNICATORS: &str = "WHYWAIT::KINETO::PARTIAL_COMMUNICATORS";

/// What is known of the transfers of kernels.
pub(super) struct Transfers<'a> {
    trace: &'a Trace,
    partners: Partners,
    floors: Floors,
    partial: FxHashSet<CommId>,
}

impl<'a> Transfers<'a> {
    /// Compares the transfers of all devices. Collective.
    pub(super) fn find(trace: &'a Trace, kernels: &[(&Kernel, &DevicePart)]) -> Result<Self> {
        let properties = &trace.recording().anchor().properties;
        let named = properties.iter().find(|(name, _)| name == PARTIAL_COMMUNICATORS);
        let named: FxHashSet<&str> = named.iter().flat_map(|(_, ids)| ids.split(',').map(str::trim)).collect();
        let ids = (0..).map(CommId::new).zip(trace.definitions.comms.iter());
        let partial = ids.filter(|(_, comm)| named.contains(comm.id.to_string().as_str())).map(|(comm, _)| comm);
        let mut found =
            Self { trace, partners: Partners::new(trace), floors: Floors::default(), partial: partial.collect() };
        let mut histograms: FxHashMap<Kind, Histogram> = FxHashMap::default();
        for (kernel, part) in kernels.iter().filter(|(_, part)| !found.partial.contains(&part.comm)) {
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
            self.partners.comm(part.comm)
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
        if self.partial.contains(&part.comm) {
            return (floor.unwrap_or(0).min(length), DeviceRow::Unseen);
        }
        (floor.unwrap_or(length).min(length), DeviceRow::Excess)
    }
}
