//! Finds the rank that causes most of the waiting at a call path.

use rustc_hash::FxHashMap;

/// The properties of a wait state that matter here.
#[derive(Clone, Copy, Debug)]
pub struct Wait {
    /// Number of its kind.
    pub kind: u32,
    /// Waiting call path.
    pub callpath: u32,
    /// Waiting time, seconds.
    pub waiting: f64,
    /// The causing rank and call path, as far as known.
    pub cause: Option<(i32, Option<u32>)>,
}

/// The wait states of a kind at a call path.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Blamed {
    /// Number of their kind.
    pub kind: u32,
    /// Waiting call path.
    pub callpath: u32,
    /// Number of wait states.
    pub instances: u64,
    /// Sum of their waiting times, seconds.
    pub waiting: f64,
    /// The cause of the largest part; `None` if no cause is known.
    pub cause: Option<Cause>,
}

/// A rank and call path that others wait for.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Cause {
    /// The rank.
    pub rank: i32,
    /// Its call path, if known.
    pub callpath: Option<u32>,
    /// Time that others wait for it, seconds.
    pub waiting: f64,
}

/// Sums wait states by place, and at each place by cause.
#[derive(Debug, Default)]
pub struct Blame {
    places: Vec<Blamed>,
    numbers: FxHashMap<(u32, u32), usize>,
    /// The latest place and its number, which are often the next ones, too.
    latest: Option<((u32, u32), usize)>,
    /// By place the time that others wait for each cause.
    causes: Vec<FxHashMap<CauseKey, f64>>,
}

/// A rank in the upper half, and in the lower half its call path counted from 1, or 0.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
struct CauseKey(u64);

impl CauseKey {
    fn new(rank: i32, callpath: Option<u32>) -> Self {
        Self(u64::from(rank as u32) << u32::BITS | callpath.map_or(0, |callpath| u64::from(callpath) + 1))
    }

    fn cause(self, waiting: f64) -> Cause {
        let callpath = (self.0 as u32).checked_sub(1);
        Cause { rank: (self.0 >> u32::BITS) as i32, callpath, waiting }
    }
}

impl Blame {
    /// Adds a wait state.
    pub fn add(&mut self, wait: Wait) {
        let Wait { kind, callpath, waiting, cause } = wait;
        let number = self.place(kind, callpath, 1, waiting);
        if let Some((rank, callpath)) = cause {
            *self.causes[number].entry(CauseKey::new(rank, callpath)).or_default() += waiting;
        }
    }

    /// Adds the wait states that others summed.
    #[must_use]
    pub fn with(mut self, other: Self) -> Self {
        let place = |place: &Blamed| self.place(place.kind, place.callpath, place.instances, place.waiting);
        let numbers: Vec<usize> = other.places.iter().map(place).collect();
        for (number, causes) in numbers.into_iter().zip(other.causes) {
            #[expect(clippy::iter_over_hash_type, reason = "each sum takes one part")]
            for (cause, waiting) in causes {
                *self.causes[number].entry(cause).or_default() += waiting;
            }
        }
        self
    }

    /// Books wait states on their place and returns its number.
    fn place(&mut self, kind: u32, callpath: u32, instances: u64, waiting: f64) -> usize {
        let number = match self.latest {
            Some((latest, number)) if latest == (kind, callpath) => number,
            _ => *self.numbers.entry((kind, callpath)).or_insert_with(|| {
                self.places.push(Blamed { kind, callpath, instances: 0, waiting: 0.0, cause: None });
                self.causes.push(FxHashMap::default());
                self.places.len() - 1
            }),
        };
        self.latest = Some(((kind, callpath), number));
        self.places[number].instances += instances;
        self.places[number].waiting += waiting;
        number
    }

    /// The places in order of first occurrence. Of equal causes, the one with the lowest rank counts.
    pub fn places(mut self) -> Vec<Blamed> {
        let order = |a: &Cause, b: &Cause| {
            a.waiting.total_cmp(&b.waiting).then(b.rank.cmp(&a.rank)).then(b.callpath.cmp(&a.callpath))
        };
        for (place, causes) in self.places.iter_mut().zip(self.causes) {
            place.cause = causes.into_iter().map(|(cause, waiting)| cause.cause(waiting)).max_by(order);
        }
        self.places
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn parts_add_up() {
        let wait = |callpath, waiting, rank| Wait { kind: 1, callpath, waiting, cause: Some((rank, None)) };
        let of = |waits: &[Wait]| {
            let mut blame = Blame::default();
            for &wait in waits {
                blame.add(wait);
            }
            blame
        };
        let (first, second) =
            ([wait(7, 1.0, 3), wait(9, 0.5, 4)], [wait(9, 0.25, 4), wait(8, 2.0, 3), wait(7, 1.5, 5)]);
        let places = of(&first).with(of(&second)).places();
        let expected = of(&[first.as_slice(), &second].concat()).places();
        assert_eq!(places, expected);
        assert_eq!(places[0].cause, Some(Cause { rank: 5, callpath: None, waiting: 1.5 }));
        assert_eq!((places[1].instances, places[1].waiting.to_bits()), (2, 0.75_f64.to_bits()));
    }

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
