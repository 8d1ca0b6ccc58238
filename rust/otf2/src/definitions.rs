//! The definitions of an archive and of a location.

use std::collections::{BTreeMap, HashMap};
use std::ops::Deref;
use std::path::{Path, PathBuf};

use crate::enums::{GroupType, Space};
use crate::error::{Error, Place, Result};
use crate::file::ChunkFile;
use crate::oddity::{Oddity, OddityKind};
use crate::records::{
    Attribute, CLOCK_OFFSET, CallingContext, ClockOffset, Comm, Definition, DefinitionRef, Group, Id, Lists, Location,
    LocationGroup, MAPPING_TABLE, MappingTable, MetricClass, Parameter, Record, Region, RmaWin, SystemTreeNode, Text,
};
use crate::wire::{Decoder, Fault};

/// All global definitions: lists by kind in file order (see [`Lists`]) and lookup by id.
#[derive(Debug, Clone, Default)]
pub struct Definitions {
    lists: Lists,
    indexes: [Index; Space::NAMED.len()],
    /// Definitions whose id was already taken, as positions in file order.
    duplicates: Vec<usize>,
}

impl Deref for Definitions {
    type Target = Lists;

    fn deref(&self) -> &Lists {
        &self.lists
    }
}

/// Declares lookups by id.
macro_rules! lookups {
    ($( $name:ident($id:ty) -> $record:ident in $space:ident; )*) => {
        impl Definitions {
            $(
                #[doc = concat!("The first ", stringify!($record), " with this id.")]
                pub fn $name(&self, id: $id) -> Option<&$record> {
                    match self.get(Space::$space, id.into())? {
                        DefinitionRef::$record(record) => Some(record),
                        _ => None,
                    }
                }
            )*
        }
    };
}

lookups! {
    text(u32) -> Text in STRING;
    attribute(u32) -> Attribute in ATTRIBUTE;
    system_tree_node(u32) -> SystemTreeNode in SYSTEM_TREE_NODE;
    location_group(u32) -> LocationGroup in LOCATION_GROUP;
    location(u64) -> Location in LOCATION;
    region(u32) -> Region in REGION;
    group(u32) -> Group in GROUP;
    metric_class(u32) -> MetricClass in METRIC;
    comm(u32) -> Comm in COMM;
    parameter(u32) -> Parameter in PARAMETER;
    rma_win(u32) -> RmaWin in RMA_WIN;
    calling_context(u32) -> CallingContext in CALLING_CONTEXT;
}

impl Definitions {
    /// Definitions made in memory, in this order.
    pub fn from_records(records: impl IntoIterator<Item = Definition>) -> Self {
        let mut definitions = Self::default();
        let mut oddities = Oddities::new(Path::new(""));
        for record in records {
            definitions.push(record, 0, &mut oddities);
        }
        definitions
    }

    /// Reads a global definition file from memory; `path` appears in errors.
    pub fn from_bytes(path: &Path, bytes: Vec<u8>, chunk_size: u64) -> Result<(Self, Vec<Oddity>)> {
        Self::read(&ChunkFile::from_bytes(path.to_owned(), bytes, chunk_size))
    }

    pub(crate) fn read(file: &ChunkFile) -> Result<(Self, Vec<Oddity>)> {
        let mut definitions = Self::default();
        let mut oddities = Oddities::new(file.path());
        let truncated = file.records(Definition::name_of, |id, payload, offset| {
            let definition = read_definition(id, payload, offset, &mut oddities)?;
            definitions.push(definition, offset, &mut oddities);
            Ok(())
        })?;
        oddities.truncated(truncated);
        if definitions.clock_properties.len() != 1 {
            oddities.note(OddityKind::Missing, 0, || {
                format!("{} ClockProperties records instead of one", definitions.clock_properties.len())
            });
        }
        let oddities = oddities.finish(|reference| definitions.get(reference.to, reference.id).is_some());
        Ok((definitions, oddities))
    }

    fn push(&mut self, definition: Definition, offset: u64, oddities: &mut Oddities) {
        let position = self.lists.len();
        let record = definition.borrowed().id();
        let kind = Definition::name_of(record);
        definition.borrowed().ids(&mut |Id { space, number: id, own }| {
            let index = &mut self.indexes[usize::from(space.0)];
            if !own {
                // Resolved when everything has been read.
                if index.get(id).is_none() {
                    oddities.unresolved.push(Reference { from: record, to: space, id, offset });
                }
            } else if !index.insert(id, position) {
                self.duplicates.push(position);
                oddities.note(OddityKind::Duplicate, offset, || format!("{kind} {id} is defined more than once"));
            }
        });
        self.lists.push(definition);
    }

    /// The first definition with this id among all kinds that share the space of ids.
    pub fn get(&self, space: Space, id: u64) -> Option<DefinitionRef<'_>> {
        self.lists.at(self.indexes.get(usize::from(space.0))?.get(id)?)
    }

    /// The string with this id; empty if there is none.
    pub fn string(&self, id: u32) -> &str {
        self.text(id).map_or("", |text| &text.string)
    }

    /// The group whose members are the ranks of a communicator that names group `id`. Where several groups share the
    /// id, it is the first that describes ranks, as opposed to the locations of ranks.
    pub fn comm_group(&self, id: u32) -> Option<&Group> {
        let first = self.group(id)?;
        let of_ranks = |group: &&Group| matches!(group.group_type, GroupType::COMM_GROUP | GroupType::COMM_SELF);
        let later = self.duplicates.iter().filter_map(|position| match self.lists.at(*position) {
            Some(DefinitionRef::Group(group)) if group.id == id => Some(group),
            _ => None,
        });
        Some(std::iter::once(first).chain(later).find(of_ranks).unwrap_or(first))
    }
}

/// The definitions of one location.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct LocalDefinitions {
    /// Translation of ids, at most one table for each kind in sound archives.
    pub mapping_tables: Vec<MappingTable>,
    /// Clock offsets by increasing time.
    pub clock_offsets: Vec<ClockOffset>,
    /// Definitions in the id space of the location; analyses need only the global ones.
    pub definitions: Vec<Definition>,
}

impl LocalDefinitions {
    /// Reads a local definition file from memory; `path` appears in errors.
    pub fn from_bytes(path: &Path, bytes: Vec<u8>, chunk_size: u64) -> Result<(Self, Vec<Oddity>)> {
        Self::read(&ChunkFile::from_bytes(path.to_owned(), bytes, chunk_size))
    }

    pub(crate) fn read(file: &ChunkFile) -> Result<(Self, Vec<Oddity>)> {
        let mut local = Self::default();
        let mut oddities = Oddities::new(file.path());
        let truncated = file.records(local_name, |id, payload, offset| {
            match id {
                MAPPING_TABLE => {
                    let table = MappingTable::read(payload)?;
                    if local.mapping_tables.iter().any(|other| other.mapping_type == table.mapping_type) {
                        oddities.note(OddityKind::Duplicate, offset, || {
                            format!("a second mapping table of type {}", table.mapping_type.0)
                        });
                    }
                    local.mapping_tables.push(table);
                }
                CLOCK_OFFSET => {
                    let clock = ClockOffset::read(payload)?;
                    if local.clock_offsets.last().is_some_and(|last| last.time >= clock.time) {
                        oddities.note(OddityKind::ClockOffset, offset, || {
                            "a clock offset that is not later than the one before".to_owned()
                        });
                    }
                    local.clock_offsets.push(clock);
                }
                _ => local.definitions.push(read_definition(id, payload, offset, &mut oddities)?),
            }
            Ok(())
        })?;
        oddities.truncated(truncated);
        Ok((local, oddities.finish(|_| true)))
    }
}

const fn local_name(id: u8) -> &'static str {
    match id {
        MAPPING_TABLE => "MappingTable",
        CLOCK_OFFSET => "ClockOffset",
        _ => Definition::name_of(id),
    }
}

fn read_definition(
    id: u8,
    payload: &mut Decoder<'_>,
    offset: u64,
    oddities: &mut Oddities,
) -> std::result::Result<Definition, Fault> {
    let bytes = payload.rest();
    let definition = Definition::read(id, payload)?;
    match &definition {
        // The file itself may contain the replacement character.
        Definition::Text(text) if text.string.contains('\u{FFFD}') && std::str::from_utf8(bytes).is_err() => {
            oddities.note(OddityKind::NotUtf8, offset, || format!("string {} is not UTF-8", text.id));
        }
        Definition::Unknown(_) => {
            oddities.note(OddityKind::UnknownRecord, offset, || format!("unknown definition record {id}"));
        }
        _ => {}
    }
    Ok(definition)
}

/// Position in file order of each id of one space.
#[derive(Debug, Clone, Default)]
struct Index {
    /// By id; [`Index::NONE`] where there is no definition.
    dense: Vec<u32>,
    sparse: HashMap<u64, u32>,
    count: u64,
}

impl Index {
    const NONE: u32 = u32::MAX;

    fn get(&self, id: u64) -> Option<usize> {
        let dense = usize::try_from(id).ok().and_then(|id| self.dense.get(id)).copied();
        match dense {
            Some(position) if position != Self::NONE => Some(position as usize),
            _ if self.sparse.is_empty() => None,
            _ => self.sparse.get(&id).map(|position| *position as usize),
        }
    }

    /// Whether the id was free.
    fn insert(&mut self, id: u64, position: usize) -> bool {
        if self.get(id).is_some() {
            return false;
        }
        self.count += 1;
        // Ids in a file may be huge: the table grows with the number of definitions, not with their ids.
        if id < 8 * self.count + 64 {
            let at = id as usize;
            if self.dense.len() <= at {
                self.dense.resize(at + 1, Self::NONE);
            }
            self.dense[at] = position as u32;
        } else {
            self.sparse.insert(id, position as u32);
        }
        true
    }
}

/// A reference to something not yet defined.
struct Reference {
    /// Number of the record that refers.
    from: u8,
    to: Space,
    id: u64,
    offset: u64,
}

/// Collects oddities of one file; many of one kind are merged into one.
struct Oddities {
    path: PathBuf,
    found: Vec<Oddity>,
    counts: BTreeMap<OddityKind, u64>,
    unresolved: Vec<Reference>,
}

/// Number of oddities of a kind that are listed individually.
const LISTED: u64 = 20;

impl Oddities {
    fn new(path: &Path) -> Self {
        Self { path: path.to_owned(), found: Vec::new(), counts: BTreeMap::new(), unresolved: Vec::new() }
    }

    fn note(&mut self, kind: OddityKind, offset: u64, text: impl FnOnce() -> String) {
        let count = self.counts.entry(kind).or_default();
        *count += 1;
        if *count <= LISTED {
            self.found.push(Oddity { kind, place: Place { path: self.path.clone(), offset }, text: text() });
        }
    }

    fn truncated(&mut self, truncated: Option<Error>) {
        if let Some(error) = truncated {
            self.note(OddityKind::Truncated, error.offset().unwrap_or(0), || error.to_string());
        }
    }

    fn finish(mut self, defined: impl Fn(&Reference) -> bool) -> Vec<Oddity> {
        for reference in std::mem::take(&mut self.unresolved) {
            let Reference { from, to, id, offset } = reference;
            let (from, to_name) = (Definition::name_of(from), to.name().unwrap_or_default());
            if defined(&reference) {
                self.note(OddityKind::ForwardReference, offset, || {
                    format!("{from} refers to {to_name} {id}, which is defined later")
                });
            } else {
                self.note(OddityKind::DanglingReference, offset, || {
                    format!("{from} refers to {to_name} {id}, which is not defined")
                });
            }
        }
        for (kind, count) in &self.counts {
            if *count > LISTED
                && let Some(last) = self.found.iter_mut().rfind(|oddity| oddity.kind == *kind)
            {
                last.text = format!("{} (and {} more of this kind)", last.text, count - LISTED);
            }
        }
        self.found
    }
}
