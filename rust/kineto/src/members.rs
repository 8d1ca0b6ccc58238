//! Kernels that communicate, and what is known of the operations that they are part of.

use std::collections::BTreeMap;

use rustc_hash::{FxHashMap, FxHashSet};
use whywait_devices::{Flow, Group, Kind, Member, NONE, Part};

use crate::columns::{Described, Record, Task, Work};
use crate::elements::element_size;
use crate::info::Info;
use crate::json::ranks;
use crate::launches::Launch;
use crate::names::Names;
use crate::options::Options;
use crate::steps::Steps;

/// What describes work and its launches while a rank is built.
pub(crate) struct Material<'a> {
    pub(crate) names: &'a Names,
    pub(crate) works: &'a [Work],
    pub(crate) described: &'a [Described],
    pub(crate) records: &'a [Record],
    pub(crate) launches: &'a [Launch],
    pub(crate) by_correlation: &'a FxHashMap<u64, u32>,
    pub(crate) info: &'a Info,
    pub(crate) steps: &'a Steps,
    pub(crate) options: &'a Options,
}

impl Material<'_> {
    /// What launched a work.
    pub(crate) fn launch(&self, work: &Work) -> Option<&Launch> {
        self.launches.get(*self.by_correlation.get(&work.correlation?)? as usize)
    }
}

/// Finds the kernels that communicate; for each work its member, or [`NONE`].
pub(crate) fn find(material: &Material<'_>) -> (Vec<Member>, Vec<u32>) {
    let works = material.works;
    let communicating = communicating(material);
    let mut order: Vec<u32> = (0..works.len() as u32).filter(|work| communicating[*work as usize].is_some()).collect();
    // Records come before the launch that they describe, on its thread.
    let launched = |work: u32| material.launch(&works[work as usize]).map(|launch| (launch.thread, launch.begin));
    order.sort_by_key(|work| (launched(*work).is_none(), launched(*work), works[*work as usize].begin));
    let mut records: BTreeMap<u32, Vec<u32>> = BTreeMap::new();
    for (number, record) in (0..).zip(material.records) {
        records.entry(record.thread).or_default().push(number);
    }
    for list in records.values_mut() {
        list.sort_by_key(|record| material.records[*record as usize].begin);
    }
    let mut by_external: FxHashMap<u64, u32> = FxHashMap::default();
    for (number, record) in (0..).zip(material.records) {
        if record.external > 0 {
            by_external.entry(record.external).or_insert(number);
        }
    }
    let mut finder = Finder { material, groups: FxHashMap::default(), used: FxHashMap::default() };
    let mut members = Vec::with_capacity(order.len());
    let mut of_work = vec![NONE; works.len()];
    for work in order {
        let own = &works[work as usize];
        let Some(by_name) = communicating[work as usize] else { continue };
        let described = material.described.get(own.described as usize).copied();
        let parts = match material.launch(own) {
            Some(launch) => {
                let list = records.get(&launch.thread).map_or(&[][..], Vec::as_slice);
                let parts = finder.since_last(launch.thread, list, launch.begin);
                // What only brackets others, such as a manager that coalesces them, describes none.
                let own = material.records.get(launch.record as usize);
                let names_one = own.is_some_and(|record| finder.names_operation(&record.described));
                if own.is_some() && (names_one || parts.is_empty()) { vec![launch.record] } else { parts }
            }
            None => Vec::new(),
        };
        let parts: Vec<Described> = match parts.as_slice() {
            [] => {
                let other = by_external.get(&own.external).filter(|_| described.is_none());
                other.map(|record| material.records[*record as usize].described).into_iter().collect()
            }
            parts => parts.iter().map(|record| material.records[*record as usize].described).collect(),
        };
        of_work[work as usize] = members.len() as u32;
        members.push(finder.member(own, by_name, described, &parts));
    }
    (members, of_work)
}

/// Which works communicate, and the kind that their names tell.
fn communicating(material: &Material<'_>) -> Vec<Option<Kind>> {
    let mut by_name: FxHashMap<u32, Option<Kind>> = FxHashMap::default();
    let mut named_records: FxHashSet<u32> = FxHashSet::default();
    let record_of = |work: &Work| material.launch(work).map(|launch| launch.record).filter(|record| *record != NONE);
    let mut all: Vec<Option<Kind>> = Vec::with_capacity(material.works.len());
    for work in material.works {
        let kind = if work.task == Task::Kernel {
            let kind = || material.options.kernels.kind(material.names.get(work.name));
            let by_name = *by_name.entry(work.name).or_insert_with(kind);
            by_name.or((work.described != NONE).then_some(Kind::Other))
        } else {
            None
        };
        if kind.is_some()
            && let Some(record) = record_of(work)
        {
            named_records.insert(record);
        }
        all.push(kind);
    }
    // A library without a known name: the last kernel of a communication call, unless that prepares or copies data.
    let mut last: FxHashMap<u32, usize> = FxHashMap::default();
    for (at, work) in material.works.iter().enumerate() {
        if let (Task::Kernel, Some(record)) = (work.task, record_of(work))
            && !named_records.contains(&record)
            && !material.names.get(work.name).contains("at::")
        {
            let latest = last.entry(record).or_insert(at);
            if material.works[*latest].begin < work.begin {
                *latest = at;
            }
        }
    }
    for at in last.into_values() {
        all[at] = Some(Kind::Other);
    }
    all
}

struct Finder<'a> {
    material: &'a Material<'a>,
    groups: FxHashMap<(u32, u32, Option<u64>), Option<Group>>,
    /// How many records of a thread come before its last communication launch.
    used: FxHashMap<u32, usize>,
}

impl Finder<'_> {
    /// The communication records of a thread since its last communication launch.
    fn since_last(&mut self, thread: u32, list: &[u32], until: i64) -> Vec<u32> {
        let from = self.used.entry(thread).or_default();
        let record = |number: u32| -> &Record { &self.material.records[number as usize] };
        let to = *from + list[*from..].partition_point(|number| record(*number).begin <= until);
        let range = *from..to;
        *from = to;
        list[range].iter().copied().filter(|number| self.names_operation(&record(*number).described)).collect()
    }

    /// Whether it is an operation that is described, rather than a wait or a preparation.
    fn names_operation(&self, described: &Described) -> bool {
        Kind::of_operation(self.material.names.get(described.operation)).is_some()
    }

    fn kind(&self, described: &Described) -> Option<Kind> {
        (described.operation != NONE)
            .then(|| Kind::of_operation(self.material.names.get(described.operation)).unwrap_or(Kind::Other))
    }

    fn member(&mut self, work: &Work, by_name: Kind, own: Option<Described>, parts: &[Described]) -> Member {
        let launch = self.material.launch(work);
        let is_one = parts.len() <= 1;
        let described = match (own, parts) {
            // The kernel's own words and those of the call agree, or the call is another one.
            (Some(own), [call]) if self.kind(&own) == self.kind(call) => Some(own.or(*call)),
            (Some(own), _) if is_one => Some(own),
            (_, [first, ..]) => Some(*first),
            (own, []) => own,
        };
        let annotated = launch.and_then(|launch| launch.kind);
        let mut kind = described.as_ref().and_then(|described| self.kind(described)).or(annotated).unwrap_or(by_name);
        let mut messages = Vec::new();
        let (mut sent, mut received) = (0, 0);
        let one = described.as_slice();
        let parts = if is_one { one } else { parts };
        for part in parts {
            let of_part = self.kind(part).unwrap_or(kind);
            if of_part.is_message() {
                messages.push(self.message(part, of_part));
            } else {
                let size = element_size(self.material.names.get(part.element));
                sent += part.elements_in.unwrap_or(0).saturating_mul(size);
                received += part.elements_out.unwrap_or(0).saturating_mul(size);
            }
        }
        if !is_one && messages.is_empty() && parts.iter().any(|part| self.kind(part) != Some(kind)) {
            kind = Kind::Other;
        }
        if let (false, [first, ..]) = (is_one, messages.as_slice()) {
            kind = if messages.len() < parts.len() {
                messages.clear();
                Kind::Other
            } else if first.is_send {
                Kind::Send
            } else {
                Kind::Receive
            };
        }
        let elements = described.and_then(|described| described.elements_in).unwrap_or(0);
        if kind == Kind::AllReduce && elements <= 1 && launch.is_some_and(|launch| launch.in_barrier) {
            kind = Kind::Barrier;
        }
        let group = described.as_ref().and_then(|described| self.group(described));
        let ranks = group.as_ref().and_then(|group| group.ranks.as_deref());
        let is_rooted = matches!(kind.flow(), Flow::OneToAll | Flow::AllToOne);
        let root = described.and_then(|described| described.rank).filter(|_| is_rooted);
        let root = root.and_then(|root| match ranks {
            Some(ranks) => ranks.get(root as usize).copied(),
            None => u32::try_from(root).ok(),
        });
        Member {
            begin: work.begin,
            end: work.end,
            order: launch.map_or(work.begin, |launch| launch.begin),
            kind,
            step: launch.and_then(|launch| self.material.steps.at(launch.begin)),
            group,
            sequence: described.and_then(|described| described.sequence),
            comms: described.and_then(|described| described.comms),
            root,
            sent,
            received,
            elements,
            messages,
            host: None,
            is_ambiguous: false,
        }
    }

    /// A message as a record describes it. The peer is a rank of the group, or given as a rank of the world.
    fn message(&mut self, described: &Described, kind: Kind) -> Part {
        let is_send = kind == Kind::Send;
        let ranks = self.group(described).and_then(|group| group.ranks);
        let of_world = if is_send { described.destination } else { described.source };
        let of_world = of_world.and_then(|peer| u32::try_from(peer).ok());
        let of_group = || described.rank.and_then(|rank| ranks.as_ref()?.get(rank as usize).copied());
        let peer = match (&ranks, of_world) {
            (Some(ranks), Some(peer)) if !ranks.contains(&peer) => ranks.get(peer as usize).copied(),
            (_, Some(peer)) => Some(peer),
            (_, None) => of_group(),
        };
        let elements = if is_send { described.elements_in } else { described.elements_out };
        let bytes = elements.unwrap_or(0).saturating_mul(element_size(self.material.names.get(described.element)));
        Part { is_send, peer, sequence: described.sequence, bytes }
    }

    /// The group that a record names. Its members are those of the rank's list of groups; the record's own may be cut.
    fn group(&mut self, described: &Described) -> Option<Group> {
        let material = self.material;
        let read = || {
            let text = |name: u32| if name == NONE { "" } else { material.names.get(name) };
            let (name, mut description) = (text(described.group), text(described.description));
            let listed = material.info.group(name).filter(|_| described.group != NONE);
            let own = (described.ranks != NONE).then(|| ranks(text(described.ranks).as_bytes())).flatten();
            let fits = |ranks: &Vec<u32>| described.size.is_none_or(|size| size == ranks.len() as u64);
            let ranks = listed.map(|group| group.ranks.clone()).filter(fits).or(own);
            if description.is_empty() {
                description = listed.map_or("", |group| &group.description);
            }
            if name.is_empty() && ranks.is_none() {
                return None;
            }
            let (name, description) = (name.to_owned(), description.to_owned());
            Some(Group { name, description, ranks, size: described.size })
        };
        let key = (described.group, described.ranks, described.size);
        self.groups.entry(key).or_insert_with(read).clone()
    }
}
