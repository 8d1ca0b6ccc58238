//! The call tree: call paths interned as small integers.

use bitcode::{Decode, Encode};
use rustc_hash::FxHashMap;

/// "No call path": the parent of a root, the state of a location before its first Enter.
pub const NO_CALLPATH: u32 = u32::MAX;

/// One node of the tree.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Encode, Decode)]
pub struct CallPath {
    /// The caller, or [`NO_CALLPATH`] at a root.
    pub parent: u32,
    /// The region, as a key of [`crate::trace::regions::Regions`].
    pub region: u32,
}

/// Call paths in the order of their first occurrence; a parent always stands before its children.
#[derive(Clone, Debug, Default)]
pub struct CallTree {
    nodes: Vec<CallPath>,
    /// The expectations of each node.
    expected: Vec<Expected>,
    children: FxHashMap<(u32, u32), u32>,
}

/// Where a call probably leads: programs call the same function again and again, or the same sequence of functions.
#[derive(Clone, Copy, Debug)]
struct Expected {
    /// The child that was asked for last.
    child: u32,
    /// Region of that child.
    region: u32,
    /// The sibling that was asked for after this node the last time.
    sibling: u32,
}

impl CallTree {
    /// The call path of `region` called from `parent`; a new one if it did not occur before.
    #[inline(always)]
    pub fn child(&mut self, parent: u32, region: u32) -> u32 {
        match self.expected.get(parent as usize) {
            Some(expected) if expected.region == region && expected.child != NO_CALLPATH => expected.child,
            _ => self.sibling(parent, region),
        }
    }

    /// The same if the child is another one than the last time.
    fn sibling(&mut self, parent: u32, region: u32) -> u32 {
        let last = self.expected.get(parent as usize).map_or(NO_CALLPATH, |expected| expected.child);
        let next = self.expected.get(last as usize).map_or(NO_CALLPATH, |expected| expected.sibling);
        match self.nodes.get(next as usize) {
            Some(node) if node.region == region => {
                let expected = &mut self.expected[parent as usize];
                (expected.child, expected.region) = (next, region);
                next
            }
            _ => self.find(parent, region),
        }
    }

    #[inline(never)]
    fn find(&mut self, parent: u32, region: u32) -> u32 {
        let next = self.nodes.len() as u32;
        let child = *self.children.entry((parent, region)).or_insert(next);
        if child == next {
            self.nodes.push(CallPath { parent, region });
            self.expected.push(Expected { child: NO_CALLPATH, region: 0, sibling: NO_CALLPATH });
        }
        if let Some(expected) = self.expected.get_mut(parent as usize) {
            let last = std::mem::replace(&mut expected.child, child);
            expected.region = region;
            if let Some(last) = self.expected.get_mut(last as usize) {
                last.sibling = child;
            }
        }
        child
    }

    /// All nodes; the index of a node is its call path.
    #[must_use]
    pub fn nodes(&self) -> &[CallPath] {
        &self.nodes
    }

    /// Number of call paths.
    #[must_use]
    pub fn len(&self) -> usize {
        self.nodes.len()
    }

    /// Whether nothing was entered yet.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.nodes.is_empty()
    }

    /// The region of a call path.
    #[must_use]
    #[inline]
    pub fn region(&self, callpath: u32) -> u32 {
        self.nodes[callpath as usize].region
    }

    /// Adds all call paths of another tree that are missing here; returns the call path here for each of its nodes.
    ///
    /// Merging shards in order gives the numbering that a single pass over all locations would have given.
    pub fn merge(&mut self, other: &[CallPath]) -> Vec<u32> {
        let mut here: Vec<u32> = Vec::with_capacity(other.len());
        for node in other {
            let parent = if node.parent == NO_CALLPATH { NO_CALLPATH } else { here[node.parent as usize] };
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
        let main = tree.child(NO_CALLPATH, 7);
        let send = tree.child(main, 3);
        let recv = tree.child(main, 4);
        assert_ne!(send, recv);
        assert_eq!(tree.child(main, 3), send);
        assert_eq!(tree.child(main, 4), recv);
        assert_ne!(tree.child(recv, 3), send);
        assert_eq!(tree.child(NO_CALLPATH, 7), main);
    }

    #[test]
    fn merging_in_order_numbers_like_one_pass() {
        let mut whole = CallTree::default();
        let mut first = CallTree::default();
        let mut second = CallTree::default();
        for tree in [&mut whole, &mut first] {
            let main = tree.child(NO_CALLPATH, 0);
            tree.child(main, 1);
        }
        for tree in [&mut whole, &mut second] {
            let main = tree.child(NO_CALLPATH, 0);
            let two = tree.child(main, 2);
            tree.child(two, 1);
            tree.child(main, 1);
        }
        let mut merged = CallTree::default();
        merged.merge(first.nodes());
        let here = merged.merge(second.nodes());
        assert_eq!(merged.nodes(), whole.nodes());
        assert_eq!(here, [0, 2, 3, 1]);
    }
}
