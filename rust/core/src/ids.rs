//! Ids: typed indexes.
//!
//! Locations, processes, communicators and so on are numbered from 0, and columns refer to them by number. Each kind
//! has its own type, so that they cannot be confused; a row is as wide as with plain integers. Ids index vectors and
//! slices directly. Files and Arrow tables contain the plain numbers. OTF2's own ids have gaps; they stay plain
//! integers, named `id`.

use std::fmt;
use std::ops::{Index, IndexMut, Range};

use bitcode::{Decode, Encode};

/// A range of consecutive ids.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Encode, Decode)]
pub struct Ids<I> {
    /// The first id.
    pub start: I,
    /// One past the last id.
    pub end: I,
}

/// "No row", "no instance".
pub const NONE: u32 = u32::MAX;

macro_rules! ids {
    ($($(#[$doc:meta])* $id:ident),+ $(,)?) => {$(
        $(#[$doc])*
        #[derive(Clone, Copy, Default, PartialEq, Eq, PartialOrd, Ord, Hash, Encode, Decode)]
        #[repr(transparent)]
        pub struct $id(u32);

        impl $id {
            /// No id: it indexes nothing.
            pub const NONE: Self = Self(u32::MAX);

            /// The id with a number.
            #[inline]
            pub const fn new(number: u32) -> Self {
                Self(number)
            }

            /// The id of the item at an index.
            #[inline]
            pub const fn at(index: usize) -> Self {
                Self(index as u32)
            }

            /// The number of this id.
            #[inline]
            pub const fn number(self) -> u32 {
                self.0
            }

            /// The index of its item.
            #[inline]
            pub const fn index(self) -> usize {
                self.0 as usize
            }

            /// Its number, unless it is [`Self::NONE`].
            #[inline]
            pub fn known(self) -> Option<u32> {
                self.is_some().then_some(self.0)
            }

            /// Whether it is [`Self::NONE`].
            #[inline]
            pub const fn is_none(self) -> bool {
                self.0 == u32::MAX
            }

            /// Whether it is not [`Self::NONE`].
            #[inline]
            pub const fn is_some(self) -> bool {
                !self.is_none()
            }

        }

        #[expect(clippy::copy_iterator, reason = "a pair of numbers, which nobody advances in place")]
        impl Iterator for Ids<$id> {
            type Item = $id;

            #[inline]
            fn next(&mut self) -> Option<$id> {
                let id = self.start;
                (id < self.end).then(|| {
                    self.start.0 += 1;
                    id
                })
            }

            fn size_hint(&self) -> (usize, Option<usize>) {
                let left = self.range().len();
                (left, Some(left))
            }
        }

        impl DoubleEndedIterator for Ids<$id> {
            #[inline]
            fn next_back(&mut self) -> Option<$id> {
                (self.start < self.end).then(|| {
                    self.end.0 -= 1;
                    self.end
                })
            }
        }

        impl ExactSizeIterator for Ids<$id> {}

        impl Ids<$id> {
            /// The indexes of their items.
            #[inline]
            pub const fn range(self) -> Range<usize> {
                self.start.index()..self.end.index()
            }
        }

        impl fmt::Debug for $id {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                if self.is_none() { f.write_str("none") } else { self.0.fmt(f) }
            }
        }

        impl fmt::Display for $id {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                self.0.fmt(f)
            }
        }

        impl<T> Index<$id> for [T] {
            type Output = T;

            #[inline]
            fn index(&self, id: $id) -> &T {
                &self[id.index()]
            }
        }

        impl<T> IndexMut<$id> for [T] {
            #[inline]
            fn index_mut(&mut self, id: $id) -> &mut T {
                &mut self[id.index()]
            }
        }

        impl<T> Index<$id> for Vec<T> {
            type Output = T;

            #[inline]
            fn index(&self, id: $id) -> &T {
                &self[id.index()]
            }
        }

        impl<T> IndexMut<$id> for Vec<T> {
            #[inline]
            fn index_mut(&mut self, id: $id) -> &mut T {
                &mut self[id.index()]
            }
        }
    )+};
}

ids! {
    /// A stream of events, in [`crate::trace::DefinitionIndex::locations`].
    LocationId,
    /// A process, in [`crate::trace::DefinitionIndex::processes`].
    ProcessId,
    /// A region instance of a shard, in [`crate::trace::columns::Instances`].
    InstanceId,
    /// A node of the call tree, in [`crate::trace::CallTree::nodes`]: a call path over the whole run.
    CallPathId,
    /// A communicator, in [`crate::trace::DefinitionIndex::comms`].
    CommId,
    /// A window of one-sided communication, in [`crate::trace::DefinitionIndex::windows`].
    WindowId,
    /// A group of processes, in [`crate::trace::DefinitionIndex::groups`].
    GroupId,
    /// A region of [`crate::trace::Regions`].
    RegionKey,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_id_is_its_number_and_indexes_vectors() {
        assert_eq!(size_of::<CommId>(), size_of::<u32>());
        let mut names = Vec::from(["world", "self"]);
        names[CommId::new(1)] = "half";
        assert_eq!((names[CommId::at(0)], names[CommId::new(1)]), ("world", "half"));
        assert!(CommId::NONE.is_none() && CommId::new(0).is_some() && CommId::NONE.index() >= names.len());
        let all: Vec<u32> = Ids { start: CommId::new(2), end: CommId::new(5) }.map(CommId::number).collect();
        assert_eq!(all, [2, 3, 4]);
        let mut last = Ids { start: CommId::new(2), end: CommId::new(3) }.rev();
        assert_eq!((last.len(), last.next(), last.next()), (1, Some(CommId::new(2)), None));
        assert_eq!(format!("{:?} {:?}", CommId::new(7), CommId::NONE), "7 none");
    }
}
