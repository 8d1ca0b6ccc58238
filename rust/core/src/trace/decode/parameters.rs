//! Changes of parameters.

use whywait_otf2::Definitions;

use super::Decoder;
use crate::trace::columns::ParameterChange;

/// The parameter by which the measurement of accelerators numbers the calls that launch kernels.
const CALL_SITE: &str = "callsite id";

/// Ids of the parameters that a program records, sorted.
pub(super) fn of_program(definitions: &Definitions) -> Vec<u32> {
    let own = definitions.parameters.iter().filter(|parameter| definitions.string(parameter.name) != CALL_SITE);
    let mut ids: Vec<u32> = own.map(|parameter| parameter.id).collect();
    ids.sort_unstable();
    ids
}

impl Decoder<'_> {
    pub(super) fn parameter(&mut self, time: i64, parameter: u32, value: u64) {
        if self.state.is_stream || self.parameters.binary_search(&parameter).is_err() {
            return;
        }
        if self.state.parameters.insert(parameter, value) != Some(value) {
            let events = self.shard.events.len() as u32;
            self.shard.parameters.rows.push(ParameterChange { time, value, parameter, events });
        }
    }
}
