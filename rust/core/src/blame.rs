//! Who is to blame for most of the waiting at a place.

use rustc_hash::FxHashMap;

/// A wait state, as far as blame goes.
#[derive(Clone, Copy, Debug)]
pub struct Wait {
    /// Number of its kind.
    pub kind: u32,
    /// Where it waits.
    pub callpath: u32,
    /// How long, in seconds.
    pub waiting: f64,
    /// The rank that it waits for and its call path, as far as they are known.
    pub cause: Option<(i32, Option<u32>)>,
}

/// The wait states of a kind at a call path.
#[derive(Clone, Copy, Debug)]
pub struct Place {
    /// Number of their kind.
    pub kind: u32,
    /// Where they wait.
    pub callpath: u32,
    /// How many there are.
    pub instances: u64,
    /// What they come to, in seconds.
    pub waiting: f64,
    /// Whom they wait for longest; None if nobody is known.
    pub cause: Option<Cause>,
}

/// A rank at a call path that others wait for.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Cause {
    /// The rank.
    pub rank: i32,
    /// What it was in, if that is known.
    pub callpath: Option<u32>,
    /// How long others wait for it, in seconds.
    pub waiting: f64,
}

/// Adds up wait states by place, and at each place by whom they wait for.
#[derive(Debug, Default)]
pub struct Blame {
    places: Vec<Place>,
    numbers: FxHashMap<(u32, u32), usize>,
    causes: FxHashMap<(usize, i32, Option<u32>), f64>,
}

impl Blame {
    /// Add a wait state.
    pub fn add(&mut self, wait: Wait) {
        let Wait { kind, callpath, waiting, cause } = wait;
        let number = *self.numbers.entry((kind, callpath)).or_insert_with(|| {
            self.places.push(Place { kind, callpath, instances: 0, waiting: 0.0, cause: None });
            self.places.len() - 1
        });
        self.places[number].instances += 1;
        self.places[number].waiting += waiting;
        if let Some((rank, callpath)) = cause {
            *self.causes.entry((number, rank, callpath)).or_default() += waiting;
        }
    }

    /// The places in the order in which they occurred first. Among causes of the same length the lowest rank counts.
    #[must_use]
    pub fn places(mut self) -> Vec<Place> {
        #[expect(clippy::iter_over_hash_type, reason = "the comparison decides, not the order")]
        for ((number, rank, callpath), waiting) in self.causes {
            let cause = &mut self.places[number].cause;
            let is_more = |other: &Cause| {
                other
                    .waiting
                    .total_cmp(&waiting)
                    .then(rank.cmp(&other.rank))
                    .then(callpath.cmp(&other.callpath))
                    .is_lt()
            };
            if cause.as_ref().is_none_or(is_more) {
                *cause = Some(Cause { rank, callpath, waiting });
            }
        }
        self.places
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_longest_and_then_the_lowest_is_to_blame() {
        let mut blame = Blame::default();
        let mut add = |callpath, waiting, cause| blame.add(Wait { kind: 1, callpath, waiting, cause });
        add(7, 1.0, Some((3, Some(2))));
        add(7, 1.5, Some((5, Some(2))));
        add(7, 0.5, Some((3, Some(2))));
        add(7, 4.0, None);
        add(7, 1.5, Some((3, None)));
        add(9, 1.0, None);
        let places = blame.places();
        assert_eq!(places.iter().map(|place| (place.callpath, place.instances)).collect::<Vec<_>>(), [(7, 5), (9, 1)]);
        assert_eq!(places[0].waiting.to_bits(), 8.5_f64.to_bits());
        assert_eq!(places[0].cause, Some(Cause { rank: 3, callpath: None, waiting: 1.5 }));
        assert_eq!(places[1].cause, None);
    }
}
