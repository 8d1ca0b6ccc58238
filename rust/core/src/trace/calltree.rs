//! The call tree: call paths interned as small integers.

use bitcode::{Decode, Encode};
use rustc_hash::FxHashMap;

use super::regions::Regions;
use crate::ids::{CallPathId, RegionKey};

/// One node of the tree.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Encode, Decode)]
pub struct CallPath {
    /// The caller, or none at a root.
    pub parent: CallPathId,
    /// The region, as a key of [`crate::trace::regions::Regions`].
    pub region: RegionKey,
}

/// Call paths in the order of their first occurrence; a parent always stands before its children.
#[derive(Clone, Debug, Default, Encode, Decode)]
pub struct CallTree {
    nodes: Vec<CallPath>,
    /// The prediction of each node.
    expected: Vec<Expected>,
    children: FxHashMap<(CallPathId, RegionKey), CallPathId>,
}

/// A prediction of the next child: programs call the same function again and again, or the same sequence of functions.
#[derive(Clone, Copy, Debug, Encode, Decode)]
struct Expected {
    /// The child that was called last.
    child: CallPathId,
    /// Region of that child.
    region: RegionKey,
    /// The sibling that was called after this node the last time.
    sibling: CallPathId,
}

impl CallTree {
    /// The call path of `region` called from `parent`; a new one on its first call.
    #[inline(always)]
    pub fn child(&mut self, parent: CallPathId, region: RegionKey) -> CallPathId {
        match self.expected.get(parent.index()) {
            Some(expected) if expected.region == region && expected.child.is_some() => expected.child,
            _ => self.sibling(parent, region),
        }
    }

    /// The same if the prediction fails.
    fn sibling(&mut self, parent: CallPathId, region: RegionKey) -> CallPathId {
        let last = self.expected.get(parent.index()).map_or(CallPathId::NONE, |expected| expected.child);
        let next = self.expected.get(last.index()).map_or(CallPathId::NONE, |expected| expected.sibling);
        match self.nodes.get(next.index()) {
            Some(node) if node.region == region => {
                let expected = &mut self.expected[parent];
                (expected.child, expected.region) = (next, region);
                next
            }
            _ => self.find(parent, region),
        }
    }

    #[inline(never)]
    fn find(&mut self, parent: CallPathId, region: RegionKey) -> CallPathId {
        let next = CallPathId::at(self.nodes.len());
        let child = *self.children.entry((parent, region)).or_insert(next);
        if child == next {
            self.nodes.push(CallPath { parent, region });
            self.expected.push(Expected {
                child: CallPathId::NONE,
                region: Regions::UNDEFINED,
                sibling: CallPathId::NONE,
            });
        }
        if let Some(expected) = self.expected.get_mut(parent.index()) {
            let last = std::mem::replace(&mut expected.child, child);
            expected.region = region;
            if let Some(last) = self.expected.get_mut(last.index()) {
                last.sibling = child;
            }
        }
        child
    }

    /// All nodes; the index of a node is its call path.
    pub fn nodes(&self) -> &[CallPath] {
        &self.nodes
    }

    /// Number of call paths.
    pub fn len(&self) -> usize {
        self.nodes.len()
    }

    /// Whether there are no call paths.
    pub fn is_empty(&self) -> bool {
        self.nodes.is_empty()
    }

    /// The region of a call path.
    #[inline]
    pub fn region(&self, callpath: CallPathId) -> RegionKey {
        self.nodes[callpath].region
    }

    /// The caller of a call path, or none at a root.
    #[inline]
    pub fn parent(&self, callpath: CallPathId) -> CallPathId {
        self.nodes[callpath].parent
    }

    /// The call path of `region` called from `parent`, if there is one.
    pub fn known_child(&self, parent: CallPathId, region: RegionKey) -> Option<CallPathId> {
        self.children.get(&(parent, region)).copied()
    }

    /// Adds the call paths of another tree that are missing here; returns the call path here of each of its nodes.
    ///
    /// Merging shards in order gives the numbering that a single pass over all locations would have given.
    pub fn merge(&mut self, other: &[CallPath]) -> Vec<CallPathId> {
        let mut here: Vec<CallPathId> = Vec::with_capacity(other.len());
        for node in other {
            let parent = if node.parent.is_none() { CallPathId::NONE } else { here[node.parent] };
            here.push(self.child(parent, node.region));
        }
        here
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_same_path_is_the_same_node() {
        let mut tree = CallTree::default();
        let main = tree.child(CallPathId::NONE, RegionKey::new(7));
        let send = tree.child(main, RegionKey::new(3));
        let recv = tree.child(main, RegionKey::new(4));
        assert_ne!(send, recv);
        assert_eq!(tree.child(main, RegionKey::new(3)), send);
        assert_eq!(tree.child(main, RegionKey::new(4)), recv);
        assert_ne!(tree.child(recv, RegionKey::new(3)), send);
        assert_eq!(tree.child(CallPathId::NONE, RegionKey::new(7)), main);
    }

    #[test]
    fn merging_in_order_numbers_like_one_pass() {
        let mut whole = CallTree::default();
        let mut first = CallTree::default();
        let mut second = CallTree::default();
        for tree in [&mut whole, &mut first] {
            let main = tree.child(CallPathId::NONE, RegionKey::new(0));
            tree.child(main, RegionKey::new(1));
        }
        for tree in [&mut whole, &mut second] {
            let main = tree.child(CallPathId::NONE, RegionKey::new(0));
            let two = tree.child(main, RegionKey::new(2));
            tree.child(two, RegionKey::new(1));
            tree.child(main, RegionKey::new(1));
        }
        let mut merged = CallTree::default();
        merged.merge(first.nodes());
        let here = merged.merge(second.nodes());
        assert_eq!(merged.nodes(), whole.nodes());
        assert_eq!(here, [0, 2, 3, 1].map(CallPathId::new));
    }
}
