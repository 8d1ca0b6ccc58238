//! Calling contexts of a location: with samples, they stand in the place of entries to regions and exits from them, as Score-P has it.
//!
//! A context is a path of regions. Regions of events are entered and left by records; the functions around them follow from these. Contexts are
//! numbered by each location as they occur, and once all are known for the whole archive.

use rustc_hash::FxHashMap;
use whywait_otf2::enums::MappingType;
use whywait_otf2::records::{
    CallingContext, CallingContextProperty, IdPairs, MappingTable, SourceCodeLocation, TypedValue, UNDEFINED,
};
use whywait_otf2::{Event, enums::Type};

use crate::definitions::Catalog;
use crate::function_ids::{FunctionId, Functions};

/// A context of a location.
#[derive(Debug, Clone, Copy)]
struct Context {
    /// The one around it, [`UNDEFINED`] for none.
    parent: u32,
    region: u32,
    depth: u32,
    /// The line of the samples in it, if it is the same for all.
    line: Line,
}

/// The line of samples.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Line {
    Unknown,
    One(u32),
    Several,
}

impl Line {
    fn with(self, other: Self) -> Self {
        match (self, other) {
            (line, Self::Unknown) | (Self::Unknown, line) => line,
            (a, b) if a == b => a,
            _ => Self::Several,
        }
    }
}

/// The contexts of a location, and where it is.
#[derive(Debug)]
pub(crate) struct Contexts {
    list: Vec<Context>,
    children: FxHashMap<(u32, u32), u32>,
    /// The context of what is open.
    at: u32,
    /// That of the last record.
    before: u32,
    /// Those of what is open that were entered by a record.
    entered: Vec<u32>,
}

impl Contexts {
    pub(crate) fn new() -> Self {
        let (list, children, entered) = (Vec::new(), FxHashMap::default(), Vec::new());
        Self { list, children, at: UNDEFINED, before: UNDEFINED, entered }
    }

    /// The context of what is open.
    pub(crate) fn at(&self) -> u32 {
        self.at
    }

    /// The context of a region in another one.
    pub(crate) fn child(&mut self, parent: u32, region: u32) -> u32 {
        let Self { list, children, .. } = self;
        *children.entry((parent, region)).or_insert_with(|| {
            let depth = list.get(parent as usize).map_or(0, |parent| parent.depth) + 1;
            list.push(Context { parent, region, depth, line: Line::Unknown });
            list.len() as u32 - 1
        })
    }

    /// The region that a context ends with.
    pub(crate) fn region(&self, context: u32) -> Option<u32> {
        self.list.get(context as usize).map(|context| context.region)
    }

    /// The context around another one.
    pub(crate) fn parent(&self, context: u32) -> u32 {
        self.list.get(context as usize).map_or(UNDEFINED, |context| context.parent)
    }

    fn depth(&self, context: u32) -> u32 {
        self.list.get(context as usize).map_or(0, |context| context.depth)
    }

    /// A function is open from now on.
    pub(crate) fn open(&mut self, region: u32) {
        self.at = self.child(self.at, region);
    }

    /// The record of the entry to a region.
    pub(crate) fn enter(&mut self, region: u32) -> Event<'static> {
        self.at = self.child(self.at, region);
        self.entered.push(self.at);
        let unwind_distance = self.distance(self.at);
        Event::CallingContextEnter { calling_context: self.at, unwind_distance }
    }

    /// The record of the exit from what was opened last, if its entry had one.
    pub(crate) fn leave(&mut self) -> Option<Event<'static>> {
        let left = self.at;
        self.at = self.parent(left);
        self.entered.pop_if(|entered| *entered == left)?;
        self.before = self.at;
        Some(Event::CallingContextLeave { calling_context: left })
    }

    /// The record of a sample in a context, at a line (0: unknown).
    pub(crate) fn sample(&mut self, context: u32, line: u32, interrupt_generator: u32) -> Event<'static> {
        if line != 0
            && let Some(context) = self.list.get_mut(context as usize)
        {
            context.line = context.line.with(Line::One(line));
        }
        let unwind_distance = self.distance(context);
        Event::CallingContextSample { calling_context: context, unwind_distance, interrupt_generator }
    }

    /// How far from a context to the innermost one that went on since the last record; its own record comes now.
    fn distance(&mut self, context: u32) -> u32 {
        let (mut a, mut b) = (context, std::mem::replace(&mut self.before, context));
        while a != b {
            if self.depth(a) >= self.depth(b) {
                a = self.parent(a);
            } else {
                b = self.parent(b);
            }
        }
        self.depth(context) - self.depth(a) + 1
    }
}

/// The contexts of the archive.
#[derive(Debug, Default)]
pub(crate) struct Unified {
    list: Vec<Context>,
    known: FxHashMap<(u32, u32), u32>,
}

impl Unified {
    /// Adds those of a location; returns how its numbers translate.
    pub(crate) fn add(&mut self, contexts: &Contexts) -> MappingTable {
        let mut numbers: Vec<u64> = Vec::with_capacity(contexts.list.len());
        for context in &contexts.list {
            let parent = numbers.get(context.parent as usize).map_or(UNDEFINED, |parent| *parent as u32);
            let number = *self.known.entry((parent, context.region)).or_insert_with(|| {
                self.list.push(Context { parent, line: Line::Unknown, ..*context });
                self.list.len() as u32 - 1
            });
            let line = &mut self.list[number as usize].line;
            *line = line.with(context.line);
            numbers.push(u64::from(number));
        }
        MappingTable { mapping_type: MappingType::CALLING_CONTEXT, id_map: IdPairs::Dense(numbers) }
    }

    /// Defines all, with the lines where their functions begin, and that of their samples if it is one.
    pub(crate) fn define(&self, first_function: u32, functions: &Functions, to: &mut Catalog) {
        let mut places: FxHashMap<FunctionId, u32> = FxHashMap::default();
        let line_name = to.string("line");
        let mut count = 0;
        for (id, context) in (0..).zip(&self.list) {
            let function = context.region.checked_sub(first_function);
            let place = function.and_then(|id| Some((id, functions.list.get(id as usize)?)));
            let place = place.filter(|(_, function)| !function.file.is_empty() && function.line != 0);
            let source_code_location = place.map_or(UNDEFINED, |(number, function)| {
                *places.entry(number).or_insert_with(|| {
                    let file = to.string(&function.file);
                    to.add(SourceCodeLocation { id: count, file, line_number: function.line });
                    count += 1;
                    count - 1
                })
            });
            let Context { parent, region, line, .. } = *context;
            to.add(CallingContext { id, region, source_code_location, parent });
            if let Line::One(line) = line {
                let value = TypedValue { kind: Type::UINT32, bits: u64::from(line) };
                to.add(CallingContextProperty { calling_context: id, name: line_name, value });
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Kind, context, and unwind distance of a record.
    fn told(event: &Event<'_>) -> (char, u32, u32) {
        match event {
            Event::CallingContextEnter { calling_context, unwind_distance } => {
                ('e', *calling_context, *unwind_distance)
            }
            Event::CallingContextLeave { calling_context } => ('l', *calling_context, 0),
            Event::CallingContextSample { calling_context, unwind_distance, .. } => {
                ('s', *calling_context, *unwind_distance)
            }
            _ => ('?', 0, 0),
        }
    }

    #[test]
    fn unwind_distances_are_those_of_the_specification() {
        let (main, step, exchange, waitall, unpack, physics, kernel, allreduce) = (0, 1, 2, 3, 4, 5, 6, 7);
        let mut contexts = Contexts::new();
        for function in [main, step, exchange] {
            contexts.open(function);
        }
        let mut records = vec![contexts.enter(waitall)];
        records.extend(contexts.leave());
        let inside_step = contexts.parent(contexts.at());
        let inside_unpack = contexts.child(contexts.at(), unpack);
        let inside_physics = contexts.child(inside_step, physics);
        let inside_kernel = contexts.child(inside_physics, kernel);
        for context in [inside_unpack, inside_kernel, inside_kernel] {
            records.push(contexts.sample(context, 0, 0));
        }
        assert!(contexts.leave().is_none(), "exchange has no record");
        records.push(contexts.enter(allreduce));
        let distances: Vec<_> = records.iter().map(told).map(|(kind, _, distance)| (kind, distance)).collect();
        assert_eq!(distances, [('e', 5), ('l', 0), ('s', 2), ('s', 3), ('s', 1), ('e', 2)]);
    }

    #[test]
    fn contexts_of_locations_are_those_of_the_same_regions() {
        let mut locations = [Contexts::new(), Contexts::new()];
        locations[0].open(4);
        locations[0].open(5);
        for region in [6, 4, 5] {
            locations[1].open(region);
            locations[1].leave();
        }
        locations[1].open(4);
        locations[1].open(5);
        let mut unified = Unified::default();
        let maps = locations.each_ref().map(|contexts| unified.add(contexts).id_map);
        let (IdPairs::Dense(first), IdPairs::Dense(second)) = (&maps[0], &maps[1]) else { panic!("{maps:?}") };
        assert_eq!(first, &[0, 1]);
        // Those of 6, of 4, of 5 alone, and of 5 in 4.
        assert_eq!(second, &[2, 0, 3, 1]);
    }
}
