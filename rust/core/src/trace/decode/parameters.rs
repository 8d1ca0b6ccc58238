//! Changes of parameters.

use super::decoder::Decoder;
use crate::trace::columns::ParameterChange;

impl Decoder<'_> {
    pub(super) fn parameter(&mut self, time: i64, parameter: u32, value: u64) {
        if self.state.stream.is_some() || self.parameters.binary_search(&parameter).is_err() {
            return;
        }
        if self.state.parameters.insert(parameter, value) != Some(value) {
            let events = self.shard.events.len() as u32;
            self.shard.parameters.rows.push(ParameterChange { time, value, parameter, events });
        }
    }
}
