//! The places that the processes of an analysis tell each other about.

/// What a process tells others of its places, and learns of theirs. Empty if there is only one.
#[derive(Debug, Default)]
pub(in crate::whatif) struct Border {
    /// Measured times of the places of others that are needed here, ticks. These places come after those of this process.
    pub times: Vec<i64>,
    /// By process, its places among these, in the order of their numbers.
    pub from: Vec<Vec<u32>>,
    /// Places that others need, sorted: place, process, and number of the place for that process.
    exports: Vec<(u32, u32, u32)>,
    /// A bit for each place, whether others need it.
    is_exported: Vec<u64>,
}

impl Border {
    /// `asked` has the places that each process asks for, `owners` the process of each place of others, of which the
    /// first is `first`; `told` are the times that each process told.
    pub(in crate::whatif) fn new(
        asked: &[Vec<u32>],
        owners: impl Iterator<Item = usize>,
        first: u32,
        told: &[Vec<i64>],
    ) -> Self {
        if asked.len() == 1 {
            return Self::default();
        }
        let mut exports = Vec::new();
        let mut is_exported = vec![0; first.div_ceil(u64::BITS) as usize];
        for (process, places) in (0..).zip(asked) {
            for (number, &place) in (0..).zip(places) {
                exports.push((place, process, number));
                is_exported[(place / u64::BITS) as usize] |= 1 << (place % u64::BITS);
            }
        }
        exports.sort_unstable();
        let mut from = vec![Vec::new(); asked.len()];
        let mut times = Vec::new();
        for (place, owner) in (first..).zip(owners) {
            times.push(told[owner][from[owner].len()]);
            from[owner].push(place);
        }
        Self { times, from, exports, is_exported }
    }

    /// Whether other processes need a place.
    #[inline]
    pub(in crate::whatif) fn exports(&self, place: u32) -> bool {
        let bits = self.is_exported.get((place / u64::BITS) as usize);
        bits.is_some_and(|bits| bits >> (place % u64::BITS) & 1 == 1)
    }

    /// The processes that need a place, each with the number that it has there.
    pub(in crate::whatif) fn readers(&self, place: u32) -> impl Iterator<Item = (usize, u32)> {
        let from = self.exports.partition_point(|&(of, ..)| of < place);
        let readers = self.exports[from..].iter().take_while(move |&&(of, ..)| of == place);
        readers.map(|&(_, process, number)| (process as usize, number))
    }
}
