//! Calls of a library for hosts, such as MPI: what is recorded where they begin and end.

use whywait_otf2::Event;

/// What is recorded with calls, by their numbers.
#[derive(Debug, Clone, Default)]
pub struct Calls {
    records: Vec<Event<'static>>,
    /// Of each call, where the records of its end begin, and where they end.
    list: Vec<(u32, u32)>,
}

impl Calls {
    /// Adds a call; its number.
    pub fn add(
        &mut self,
        at_begin: impl IntoIterator<Item = Event<'static>>,
        at_end: impl IntoIterator<Item = Event<'static>>,
    ) -> u32 {
        self.records.extend(at_begin);
        let middle = self.records.len() as u32;
        self.records.extend(at_end);
        self.list.push((middle, self.records.len() as u32));
        self.list.len() as u32 - 1
    }

    /// The records of the begin and of the end of a call; none if there is no such call.
    pub(crate) fn records(&self, call: u32) -> (&[Event<'static>], &[Event<'static>]) {
        let call = call as usize;
        let Some((middle, end)) = self.list.get(call).copied() else { return (&[], &[]) };
        let begin = call.checked_sub(1).map_or(0, |before| self.list[before].1);
        (&self.records[begin as usize..middle as usize], &self.records[middle as usize..end as usize])
    }
}
