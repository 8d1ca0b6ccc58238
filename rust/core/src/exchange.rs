//! The one doorway between shards.
//!
//! A stage produces, for its whole shard, the rows that other shards need; one exchange moves them all, and the next
//! stage consumes them. No stage knows where the other shards live.

/// Rows that one shard sends to the others: one vector for each destination shard.
#[derive(Debug)]
pub struct Outbox<T>(Vec<Vec<T>>);

impl<T> Outbox<T> {
    /// An empty outbox for `shards` destinations.
    #[must_use]
    pub fn new(shards: usize) -> Self {
        Self((0..shards).map(|_| Vec::new()).collect())
    }

    /// Adds a row for the shard that owns its destination.
    pub fn push(&mut self, shard: u32, row: T) {
        self.0[shard as usize].push(row);
    }

    /// Adds rows for the shard that owns their destination.
    pub fn extend(&mut self, shard: u32, rows: impl IntoIterator<Item = T>) {
        self.0[shard as usize].extend(rows);
    }
}

/// Rows that arrived at one shard: one vector for each source shard, in the order in which they were sent.
#[derive(Debug)]
pub struct Inbox<T>(Vec<Vec<T>>);

impl<T> Inbox<T> {
    /// All rows, by source shard and within it in the order of sending.
    pub fn rows(&self) -> impl Iterator<Item = &T> {
        self.0.iter().flatten()
    }

    /// The rows of each source shard that sent any.
    pub fn parts(&self) -> impl Iterator<Item = &[T]> {
        self.0.iter().map(Vec::as_slice)
    }

    /// Number of rows.
    #[must_use]
    pub fn len(&self) -> usize {
        self.0.iter().map(Vec::len).sum()
    }

    /// Whether nothing arrived.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }
}

/// Delivers each row to the shard that owns its destination.
///
/// Within one process this transposes the table of vectors: no row is copied.
#[must_use]
pub fn to_owner<T>(outgoing: Vec<Outbox<T>>) -> Vec<Inbox<T>> {
    let shards = outgoing.first().map_or(0, |outbox| outbox.0.len());
    let mut inboxes: Vec<Inbox<T>> = (0..shards).map(|_| Inbox(Vec::with_capacity(outgoing.len()))).collect();
    for outbox in outgoing {
        for (inbox, rows) in inboxes.iter_mut().zip(outbox.0) {
            if !rows.is_empty() {
                inbox.0.push(rows);
            }
        }
    }
    inboxes
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rows_arrive_at_their_destination_in_order_of_source() {
        let mut a = Outbox::new(2);
        a.push(1, "a1");
        a.push(0, "a0");
        a.push(1, "a2");
        let mut b = Outbox::new(2);
        b.push(1, "b1");
        let inboxes = to_owner(vec![a, b]);
        assert_eq!(inboxes[0].rows().copied().collect::<Vec<_>>(), ["a0"]);
        assert_eq!(inboxes[1].rows().copied().collect::<Vec<_>>(), ["a1", "a2", "b1"]);
    }
}
