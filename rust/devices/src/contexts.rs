//! Call paths as a tree: each node is a region below another.

use rustc_hash::FxHashMap;

/// Nodes by number; a parent comes before its children.
#[derive(Debug, Default)]
pub struct Contexts {
    /// Parent and region of each.
    pub list: Vec<(u32, u32)>,
    by_step: FxHashMap<(u32, u32), u32>,
}

impl Contexts {
    /// The node of a region below another node.
    pub fn node(&mut self, parent: u32, region: u32) -> u32 {
        let next = self.list.len() as u32;
        let node = *self.by_step.entry((parent, region)).or_insert(next);
        if node == next {
            self.list.push((parent, region));
        }
        node
    }

    /// The regions from the root to a node.
    pub fn path(&self, mut node: u32) -> Vec<u32> {
        let mut regions = Vec::new();
        while let Some((parent, region)) = self.list.get(node as usize) {
            regions.push(*region);
            node = *parent;
        }
        regions.reverse();
        regions
    }
}
