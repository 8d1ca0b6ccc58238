//! Local ids of a location to ids of the global definitions.

use crate::enums::{MappingType, Type};

/// Number of mapping types that the format knows.
const KINDS: usize = MappingType::NAMED.len();

/// Entries of a translation table as stored in the file.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum IdPairs {
    /// The global id of each local id 0, 1, ...
    Dense(Vec<u64>),
    /// Local and global ids in any order.
    Sparse(Vec<(u64, u64)>),
}

/// One translation table. An id that it does not cover stays as it is.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub enum IdMap {
    /// Every id stays as it is.
    #[default]
    Identity,
    /// The global id of each local id 0, 1, ...
    Dense(Box<[u64]>),
    /// Pairs of local and global id, ascending by local id.
    Sparse(Box<[(u64, u64)]>),
}

impl IdMap {
    /// The table as stored in a file; for a repeated local id, the last pair counts.
    pub fn new(pairs: &IdPairs) -> Self {
        match pairs {
            IdPairs::Dense(global) => Self::dense(global.clone()),
            IdPairs::Sparse(pairs) => {
                let Some(largest) = pairs.iter().map(|(local, _)| *local).max() else {
                    return IdMap::Identity;
                };
                if largest < 4 * pairs.len() as u64 + 64 {
                    let mut global: Vec<u64> = (0..=largest).collect();
                    for (local, to) in pairs {
                        global[*local as usize] = *to;
                    }
                    return Self::dense(global);
                }
                let mut sorted = pairs.clone();
                sorted.sort_by_key(|(local, _)| *local);
                sorted.reverse();
                sorted.dedup_by_key(|(local, _)| *local);
                sorted.reverse();
                if sorted.iter().all(|(local, global)| local == global) {
                    return IdMap::Identity;
                }
                IdMap::Sparse(sorted.into())
            }
        }
    }

    fn dense(global: Vec<u64>) -> Self {
        if global.iter().enumerate().all(|(local, global)| local as u64 == *global) {
            return IdMap::Identity;
        }
        IdMap::Dense(global.into())
    }

    /// The global id of a local one.
    #[inline]
    pub fn get(&self, local: u64) -> u64 {
        match self {
            IdMap::Identity => local,
            IdMap::Dense(global) => usize::try_from(local).ok().and_then(|at| global.get(at)).copied().unwrap_or(local),
            IdMap::Sparse(pairs) => {
                pairs.binary_search_by_key(&local, |(from, _)| *from).map_or(local, |at| pairs[at].1)
            }
        }
    }
}

/// The translation tables of a location, by mapping type.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct IdMaps {
    maps: [IdMap; KINDS],
}

impl IdMaps {
    /// Tables that leave every id as it is.
    pub const IDENTITY: &'static IdMaps = &IdMaps { maps: [const { IdMap::Identity }; KINDS] };

    /// The tables of a local definition file. The first of several tables for one type counts; unknown types are
    /// ignored.
    pub fn new<'a>(tables: impl DoubleEndedIterator<Item = (MappingType, &'a IdPairs)>) -> Self {
        let mut maps = Self::default();
        for (kind, pairs) in tables.rev() {
            if let Some(map) = maps.maps.get_mut(usize::from(kind.0)) {
                *map = IdMap::new(pairs);
            }
        }
        maps
    }

    /// The table of one type.
    pub fn of(&self, kind: MappingType) -> &IdMap {
        self.maps.get(usize::from(kind.0)).unwrap_or(&IdMap::Identity)
    }

    /// Translates a reference of the type with number `KIND`.
    #[inline]
    pub(crate) fn get<const KIND: u8>(&self, local: u32) -> u32 {
        // The format keeps 64 bits for every id; references other than locations have 32.
        self.maps[usize::from(KIND)].get(u64::from(local)) as u32
    }

    /// Translates the bits of a value if its type is a reference.
    #[inline]
    pub(crate) fn value(&self, kind: Type, bits: u64) -> u64 {
        if kind < Type::STRING || kind > Type::LOCATION_GROUP {
            return bits;
        }
        let global = self.maps[usize::from(kind.0 - Type::STRING.0)].get(bits);
        if kind == Type::LOCATION { global } else { global & u64::from(u32::MAX) }
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn uncovered_ids_stay() {
        let dense = IdMap::new(&IdPairs::Dense(vec![5, 1]));
        assert_eq!([0, 1, 2, u64::MAX].map(|id| dense.get(id)), [5, 1, 2, u64::MAX]);
        let sparse = IdMap::new(&IdPairs::Sparse(vec![(1 << 40, 2), (7, 3)]));
        assert!(matches!(sparse, IdMap::Sparse(_)));
        assert_eq!([1 << 40, 7, 8, u64::MAX].map(|id| sparse.get(id)), [2, 3, 8, u64::MAX]);
    }

    #[test]
    fn identities_are_found() {
        for pairs in [
            IdPairs::Dense(vec![]),
            IdPairs::Dense(vec![0, 1, 2]),
            IdPairs::Sparse(vec![]),
            IdPairs::Sparse(vec![(2, 2), (0, 0)]),
            IdPairs::Sparse(vec![(u64::MAX, u64::MAX)]),
        ] {
            assert_eq!(IdMap::new(&pairs), IdMap::Identity);
        }
    }

    #[test]
    fn values_are_translated_by_their_type() {
        let pairs = IdPairs::Dense(vec![9, 8]);
        let maps = IdMaps::new([(MappingType::REGION, &pairs), (MappingType(99), &pairs)].into_iter());
        assert_eq!(maps.value(Type::REGION, 1), 8);
        assert_eq!(maps.value(Type::COMM, 1), 1);
        assert_eq!(maps.value(Type::UINT32, 1), 1);
        assert_eq!(maps.value(Type(200), 1), 1);
        assert_eq!(maps.get::<{ MappingType::REGION.0 }>(u32::MAX), u32::MAX);
    }

    #[test]
    fn the_first_table_of_a_type_counts() {
        let tables = [5, 6].map(|global| IdPairs::Dense(vec![global]));
        let maps = IdMaps::new(tables.iter().map(|pairs| (MappingType::COMM, pairs)));
        assert_eq!(maps.of(MappingType::COMM).get(0), 5);
    }

    proptest! {
        #[test]
        fn the_last_pair_of_an_id_counts(
            pairs in prop::collection::vec((0_u64..500, 0_u64..1000), 0..40), scale in 1_u64..1 << 50,
        ) {
            let pairs: Vec<(u64, u64)> = pairs.into_iter().map(|(local, global)| (local * scale, global)).collect();
            let map = IdMap::new(&IdPairs::Sparse(pairs.clone()));
            for local in (0..500).map(|id| id * scale) {
                let expected = pairs.iter().rfind(|(from, _)| *from == local).map_or(local, |(_, to)| *to);
                prop_assert_eq!(map.get(local), expected);
            }
        }
    }
}
