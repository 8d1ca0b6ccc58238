//! Definitions that are made in memory.

use std::collections::HashMap;

use crate::enums::{GroupFlag, GroupType, GroupTypePre12, Paradigm, SystemTreeDomain};
use crate::records::{ClockProperties, Definition, Group, SystemTreeNode, SystemTreeNodeDomain, Text};

/// Definitions being collected. Strings are handed out first, since all others name them; the first one is empty, as
/// readers expect of what has no name.
#[derive(Debug)]
pub struct Catalog {
    strings: Vec<String>,
    known: HashMap<String, u32>,
    records: Vec<Definition>,
}

impl Default for Catalog {
    fn default() -> Self {
        let mut catalog = Self { strings: Vec::new(), known: HashMap::new(), records: Vec::new() };
        catalog.string("");
        catalog
    }
}

impl Catalog {
    /// The id of a string.
    pub fn string(&mut self, text: &str) -> u32 {
        if let Some(id) = self.known.get(text) {
            return *id;
        }
        let id = self.strings.len() as u32;
        self.strings.push(text.to_owned());
        self.known.insert(text.to_owned(), id);
        id
    }

    /// Adds a definition; its strings are ids of this catalog.
    pub fn add(&mut self, record: impl Into<Definition>) {
        self.records.push(record.into());
    }

    /// Adds a node of the system tree, by name and class.
    pub fn node(&mut self, id: u32, name: &str, class: &str, parent: u32) {
        let (name, class_name) = (self.string(name), self.string(class));
        self.add(SystemTreeNode { id, name, class_name, parent });
    }

    /// Adds what a node of the system tree is.
    pub fn domain(&mut self, system_tree_node: u32, system_tree_domain: SystemTreeDomain) {
        self.add(SystemTreeNodeDomain { system_tree_node, system_tree_domain });
    }

    /// Adds a group without a name.
    pub fn group(&mut self, id: u32, group_type: GroupType, paradigm: Paradigm, members: Vec<u64>) {
        let group_flags = GroupFlag::NONE;
        let group_type_pre12 = GroupTypePre12::of(group_type, paradigm, group_flags);
        self.add(Group { id, name: 0, group_type_pre12, members, group_type, paradigm, group_flags });
    }

    /// All definitions, in the order of an archive.
    pub fn finish(self, clock: ClockProperties) -> impl Iterator<Item = Definition> {
        let strings = (0..).zip(self.strings).map(|(id, string)| Text { id, string }.into());
        [clock.into()].into_iter().chain(strings).chain(self.records)
    }
}
