//! Which members are of one operation, and which messages are the same.

use std::collections::BTreeMap;

use rustc_hash::{FxHashMap, FxHashSet};

use crate::NONE;
use crate::align::{Item, shift};
use crate::facts::{GroupFacts, Method};
use crate::kinds::{Flow, Kind};
use crate::members::{Group, Member};
use crate::rank::Rank;

/// A member's place: the rank's, and the member's on it.
type Place = (usize, u32);
/// A member's place, and which of its messages.
type PartPlace = (Place, usize);

/// A communicator: the ranks of a group whose files are there.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Comm {
    /// Its name.
    pub name: String,
    /// Places of the ranks.
    pub ranks: Vec<usize>,
}

/// The operation that a member is part of.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Operation {
    pub(crate) comm: u32,
    pub(crate) kind: Kind,
    /// Rank of the root in the communicator, or [`NONE`].
    pub(crate) root: u32,
}

/// A message that both sides know.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Message {
    pub(crate) is_send: bool,
    pub(crate) comm: u32,
    /// Rank of the other side in the communicator.
    pub(crate) peer: u32,
    pub(crate) tag: u32,
    pub(crate) bytes: u64,
}

/// What was matched.
#[derive(Debug, Default)]
pub(crate) struct Matched {
    pub(crate) comms: Vec<Comm>,
    /// By rank and member.
    pub(crate) operations: Vec<Vec<Option<Operation>>>,
    /// By rank: member and message, in order of members.
    pub(crate) messages: Vec<Vec<(u32, Message)>>,
    pub(crate) groups: Vec<GroupFacts>,
}

/// What a group is known by on all ranks.
type Key = (Option<Vec<u32>>, String, Option<u64>);

/// The members of a group by rank.
#[derive(Default)]
struct Gathered {
    name: String,
    description: String,
    /// Ranks of the world that are in it.
    ranks: Vec<u32>,
    /// Number of its ranks.
    size: usize,
    /// Members by place of their rank, in order of the program.
    lists: BTreeMap<usize, Vec<u32>>,
    messages: Vec<Place>,
    /// Whether it stands for operations whose group is not known for certain.
    is_ambiguous: bool,
}

/// Matches all operations of ranks, which are in order of their numbers; communicators follow those that are known.
pub(crate) fn match_all(ranks: &[Rank], world_size: u32, comms: Vec<Comm>) -> Matched {
    let mut matcher = Matcher {
        ranks,
        places: ranks.iter().enumerate().map(|(place, rank)| (rank.number, place)).collect(),
        matched: Matched {
            operations: ranks.iter().map(|rank| vec![None; rank.members.len()]).collect(),
            messages: ranks.iter().map(|_| Vec::new()).collect(),
            comms,
            ..Matched::default()
        },
        tags: 0,
    };
    for group in gather(ranks, world_size) {
        matcher.group(&group);
    }
    for messages in &mut matcher.matched.messages {
        messages.sort_by_key(|(member, message)| (*member, message.tag));
    }
    matcher.matched
}

/// Brings the members of each group together.
fn gather(ranks: &[Rank], world_size: u32) -> Vec<Gathered> {
    let mut groups: BTreeMap<Option<Key>, Gathered> = BTreeMap::new();
    let mut ambiguous = Gathered { name: "unknown".to_owned(), is_ambiguous: true, ..Gathered::default() };
    for (place, rank) in ranks.iter().enumerate() {
        for (number, member) in (0..).zip(&rank.members) {
            let key = member.group.as_ref().map(key);
            if member.is_ambiguous {
                ambiguous.lists.entry(place).or_default().push(number);
                continue;
            }
            let group = groups.entry(key).or_insert_with(|| Gathered::new(member.group.as_ref(), ranks, world_size));
            if member.messages.is_empty() && !member.kind.is_message() {
                group.lists.entry(place).or_default().push(number);
            } else {
                group.messages.push((place, number));
            }
        }
    }
    let mut groups: Vec<Gathered> = groups.into_values().collect();
    if !ambiguous.lists.is_empty() {
        groups.push(ambiguous);
    }
    join_renamed(&mut groups, ranks);
    for group in &mut groups {
        // A group whose members nobody lists has those that use it.
        if group.ranks.is_empty() {
            group.ranks = group.lists.keys().map(|place| ranks[*place].number).collect();
        }
        for (place, list) in &mut group.lists {
            let members = &ranks[*place].members;
            list.sort_by_key(|member| (members[*member as usize].order, members[*member as usize].begin, *member));
        }
    }
    groups
}

fn key(group: &Group) -> Key {
    (group.ranks.clone(), group.name.clone(), if group.ranks.is_some() { None } else { group.size })
}

/// Each rank numbers the groups that it makes: a group with other names on other ranks is one, if these fit together.
fn join_renamed(groups: &mut Vec<Gathered>, ranks: &[Rank]) {
    let mut at = 0;
    while at < groups.len() {
        let known = |group: &Gathered| ranks.iter().filter(|rank| group.ranks.contains(&rank.number)).count();
        let is_partial = |group: &Gathered| !group.lists.is_empty() && group.lists.len() < known(group);
        let mut next = at + 1;
        while is_partial(&groups[at]) && next < groups.len() {
            let (one, other) = (&groups[at], &groups[next]);
            let is_other_half = one.ranks == other.ranks
                && is_partial(other)
                && other.lists.keys().all(|place| !one.lists.contains_key(place));
            if is_other_half {
                let other = groups.remove(next);
                groups[at].lists.extend(other.lists);
                groups[at].messages.extend(other.messages);
            } else {
                next += 1;
            }
        }
        at += 1;
    }
}

impl Gathered {
    fn new(group: Option<&Group>, ranks: &[Rank], world_size: u32) -> Self {
        let all = || (0..world_size).collect::<Vec<u32>>();
        let Some(group) = group else {
            let (ranks, size) = (ranks.iter().map(|rank| rank.number).collect(), world_size as usize);
            return Self { ranks, size, ..Self::default() };
        };
        let size = group.size.and_then(|size| usize::try_from(size).ok());
        let members = match &group.ranks {
            Some(ranks) => ranks.clone(),
            None if size == Some(world_size as usize) => all(),
            None => Vec::new(),
        };
        let size = if members.is_empty() { size.unwrap_or(0) } else { members.len() };
        Self {
            name: group.name.clone(),
            description: group.description.clone(),
            ranks: members,
            size,
            ..Self::default()
        }
    }

    /// A name to show.
    fn label(&self) -> String {
        match (self.description.as_str(), self.name.as_str()) {
            ("" | "undefined", "") => "all ranks".to_owned(),
            ("" | "undefined", name) => format!("group {name}"),
            (description, _) => description.to_owned(),
        }
    }
}

struct Matcher<'a> {
    ranks: &'a [Rank],
    /// Place of each rank.
    places: FxHashMap<u32, usize>,
    matched: Matched,
    tags: u32,
}

impl Matcher<'_> {
    fn member(&self, (rank, member): Place) -> &Member {
        &self.ranks[rank].members[member as usize]
    }

    fn is_one_clock(&self, a: usize, b: usize) -> bool {
        let (a, b) = (&self.ranks[a], &self.ranks[b]);
        match ((&a.host, a.clock), (&b.host, b.clock)) {
            ((_, Some(a)), (_, Some(b))) => a == b,
            ((Some(a), _), (Some(b), _)) => a == b,
            _ => true,
        }
    }

    fn group(&mut self, group: &Gathered) {
        let mut known: Vec<usize> = group.ranks.iter().filter_map(|rank| self.places.get(rank).copied()).collect();
        // A damaged list may name a rank twice.
        let mut seen = FxHashSet::default();
        known.retain(|place| seen.insert(*place));
        let size = group.size.max(known.len());
        let mut facts = GroupFacts {
            name: group.label(),
            ranks: group.ranks.clone(),
            size,
            known: known.len(),
            ..GroupFacts::default()
        };
        let total: usize = group.lists.values().map(Vec::len).sum();
        let first_comm = self.matched.comms.len();
        let mut instances =
            if total == 0 || group.is_ambiguous { Vec::new() } else { self.instances(group, &known, &mut facts) };
        // Whose members do not agree are none; of the rest, some have a root that is not known.
        instances.retain(|instance| self.kind(instance, &known).is_some());
        let complete = instances.len();
        instances.retain(|instance| self.is_decided(instance, &known));
        facts.undecided = (complete - instances.len()) as u64;
        let places = |instance: &Vec<u32>| known.iter().copied().zip(instance.iter().copied()).collect::<Vec<Place>>();
        let mut instances: Vec<Vec<Place>> = instances.iter().map(places).collect();
        instances.sort_by_key(|instance| (self.member(instance[0]).begin, instance[0]));
        facts.instances = instances.len() as u64;
        facts.unmatched = (total - complete * known.len()) as u64;
        facts.is_partial = known.len() < size && !instances.is_empty();
        for instance in &instances {
            let last = instance.iter().map(|place| self.member(*place).begin).max().unwrap_or(0);
            let beyond = |place: &Place| (self.member(*place).end - last).max(0);
            facts.time_after_last = instance.iter().map(beyond).fold(facts.time_after_last, i64::saturating_add);
        }
        self.place(&instances, &known, &facts.name);
        if !group.messages.is_empty() {
            if self.matched.comms.len() == first_comm {
                self.matched.comms.push(Comm { name: facts.name.clone(), ranks: known.clone() });
            }
            self.messages(group, &known, first_comm as u32, &mut facts);
        }
        facts.comms = (first_comm as u32..self.matched.comms.len() as u32).collect();
        self.matched.groups.push(facts);
    }

    /// The kind of an instance; nothing if its members are not of one.
    fn kind(&self, instance: &[u32], known: &[usize]) -> Option<Kind> {
        let mut kinds = known.iter().copied().zip(instance.iter().copied()).map(|place| self.member(place).kind);
        let first = kinds.next()?;
        kinds.try_fold(first, Kind::common)
    }

    /// Whether it is known who needs whom.
    fn is_decided(&self, instance: &[u32], known: &[usize]) -> bool {
        let members = known.iter().copied().zip(instance.iter().copied()).map(|place| self.member(place));
        match self.kind(instance, known).map(Kind::flow) {
            Some(Flow::OneToAll | Flow::AllToOne) => {
                let mut roots = members.filter_map(|member| member.root);
                let Some(root) = roots.next() else { return false };
                self.places.get(&root).is_some_and(|place| known.contains(place)) && roots.all(|other| other == root)
            }
            kind => kind.is_some(),
        }
    }

    /// The instances in which all known ranks take part: of each its members in the order of `known`.
    fn instances(&self, group: &Gathered, known: &[usize], facts: &mut GroupFacts) -> Vec<Vec<u32>> {
        let all =
            || group.lists.iter().flat_map(|(rank, list)| list.iter().map(|member| self.member((*rank, *member))));
        if all().all(|member| member.comms.is_some()) {
            facts.method = Method::CommsId;
            return self.by_number(group, known, |member| member.comms);
        }
        if all().all(|member| member.sequence.is_some()) {
            facts.method = Method::Sequence;
            return self.by_number(group, known, |member| member.sequence);
        }
        facts.method =
            if group.name.is_empty() && group.description.is_empty() { Method::AllRanks } else { Method::Order };
        let is_inferred = self.ranks.iter().any(|rank| rank.has_several_groups);
        if facts.method == Method::Order && is_inferred && all().all(|member| member.host.is_some()) {
            facts.method = Method::CallPath;
        }
        if let Some(instances) = self.by_order(&group.lists, known) {
            return instances;
        }
        if facts.method != Method::AllRanks {
            return Vec::new();
        }
        // Without groups: the kinds that agree by themselves.
        let mut kinds: Vec<Kind> = all().map(|member| member.kind).collect();
        kinds.sort_unstable();
        kinds.dedup();
        let of_kind = |kind: Kind| {
            let only = |(rank, list): (&usize, &Vec<u32>)| {
                (*rank, list.iter().copied().filter(|member| self.member((*rank, *member)).kind == kind).collect())
            };
            let lists: BTreeMap<usize, Vec<u32>> = group.lists.iter().map(only).collect();
            self.by_order(&lists, known).unwrap_or_default()
        };
        kinds.into_iter().flat_map(of_kind).collect()
    }

    fn by_number<K: Ord>(
        &self,
        group: &Gathered,
        known: &[usize],
        number: impl Fn(&Member) -> Option<K>,
    ) -> Vec<Vec<u32>> {
        let mut found: BTreeMap<K, Vec<u32>> = BTreeMap::new();
        for (at, rank) in known.iter().enumerate() {
            for member in group.lists.get(rank).into_iter().flatten() {
                let Some(number) = number(self.member((*rank, *member))) else { continue };
                let instance = found.entry(number).or_insert_with(|| vec![NONE; known.len()]);
                // The same rank twice: the first in the program counts.
                if instance[at] == NONE {
                    instance[at] = *member;
                }
            }
        }
        found.into_values().filter(|instance| !instance.contains(&NONE)).collect()
    }

    /// Instances by order, where each rank's list is shifted against that of the first.
    fn by_order(&self, lists: &BTreeMap<usize, Vec<u32>>, known: &[usize]) -> Option<Vec<Vec<u32>>> {
        let empty = Vec::new();
        let list = |rank: usize| lists.get(&rank).unwrap_or(&empty);
        let (first, _) = known.split_first()?;
        let items = |rank: usize| -> Vec<Item> { list(rank).iter().map(|member| self.item((rank, *member))).collect() };
        let of_first = items(*first);
        let mut shifts = Vec::with_capacity(known.len());
        for rank in known {
            let is_one_clock = self.is_one_clock(*first, *rank);
            shifts.push(if rank == first { 0 } else { shift(&of_first, &items(*rank), is_one_clock)? });
        }
        let instance = |number: usize| -> Option<Vec<u32>> {
            let place = |shift: &i64| usize::try_from(number as i64 + shift).ok();
            known.iter().zip(&shifts).map(|(rank, shift)| list(*rank).get(place(shift)?).copied()).collect()
        };
        Some((0..of_first.len()).filter_map(instance).collect())
    }

    fn item(&self, place: Place) -> Item {
        let member = self.member(place);
        Item {
            kind: member.kind,
            elements: member.elements,
            begin: member.begin,
            end: member.end,
            step: member.step,
            is_root: member.root == Some(self.ranks[place.0].number),
            is_alone: member.messages.len() <= 1,
        }
    }

    /// Gives instances their communicators. The analysis counts the operations of a process on a communicator by their
    /// begins, so instances that begin in another order on another rank are on another one.
    fn place(&mut self, instances: &[Vec<Place>], known: &[usize], name: &str) {
        let first = self.matched.comms.len();
        let mut last: Vec<Vec<i64>> = Vec::new();
        for instance in instances {
            let begins: Vec<i64> = instance.iter().map(|place| self.member(*place).begin).collect();
            let is_after = |last: &Vec<i64>| last.iter().zip(&begins).all(|(last, begin)| last < begin);
            let comm = last.iter().position(is_after).unwrap_or_else(|| {
                last.push(Vec::new());
                self.matched.comms.push(Comm { name: name.to_owned(), ranks: known.to_vec() });
                last.len() - 1
            });
            last[comm] = begins;
            let kinds = instance.iter().map(|place| self.member(*place).kind);
            let kind = kinds.reduce(|a, b| a.common(b).unwrap_or(a)).unwrap_or(Kind::Other);
            let root = instance.iter().find_map(|place| self.member(*place).root);
            let root = root.and_then(|root| self.places.get(&root));
            let root =
                root.and_then(|place| known.iter().position(|rank| rank == place)).map_or(NONE, |root| root as u32);
            let comm = (first + comm) as u32;
            for (rank, member) in instance {
                self.matched.operations[*rank][*member as usize] = Some(Operation { comm, kind, root });
            }
        }
    }

    fn messages(&mut self, group: &Gathered, known: &[usize], comm: u32, facts: &mut GroupFacts) {
        // By sender and receiver: the parts of both sides.
        let mut pairs: BTreeMap<(usize, usize), [Vec<PartPlace>; 2]> = BTreeMap::new();
        for place in &group.messages {
            // A message of which nothing is known but that it is one.
            facts.message_parts += u64::from(self.member(*place).messages.is_empty());
            for (number, part) in self.member(*place).messages.iter().enumerate() {
                facts.message_parts += 1;
                let peer = part.peer.and_then(|peer| self.places.get(&peer)).filter(|peer| known.contains(peer));
                let Some(peer) = peer.copied() else { continue };
                let pair = if part.is_send { (place.0, peer) } else { (peer, place.0) };
                pairs.entry(pair).or_default()[usize::from(!part.is_send)].push((*place, number));
            }
        }
        for ((sender, receiver), [mut sends, mut receives]) in pairs {
            for list in [&mut sends, &mut receives] {
                list.sort_by_key(|(place, number)| {
                    (self.member(*place).order, self.member(*place).begin, place.1, *number)
                });
            }
            for (send, receive) in self.same_messages(&sends, &receives, self.is_one_clock(sender, receiver)) {
                let rank_of =
                    |place: usize| known.iter().position(|rank| *rank == place).map_or(NONE, |rank| rank as u32);
                let bytes = |(place, number): (Place, usize)| self.member(place).messages[number].bytes;
                let bytes = bytes(send).max(bytes(receive)).max(1);
                let tag = self.tags;
                self.tags += 1;
                facts.messages += 1;
                let (peer, is_send) = (rank_of(receiver), true);
                self.matched.messages[sender].push((send.0.1, Message { is_send, comm, peer, tag, bytes }));
                let (peer, is_send) = (rank_of(sender), false);
                self.matched.messages[receiver].push((receive.0.1, Message { is_send, comm, peer, tag, bytes }));
            }
        }
    }

    /// Which sends and receives of a pair of ranks are the same messages.
    fn same_messages(
        &self,
        sends: &[PartPlace],
        receives: &[PartPlace],
        is_one_clock: bool,
    ) -> Vec<(PartPlace, PartPlace)> {
        let numbers = |list: &[PartPlace]| -> Option<BTreeMap<u64, usize>> {
            let number = |(at, (place, part)): (usize, &PartPlace)| {
                self.member(*place).messages[*part].sequence.map(|sequence| (sequence, at))
            };
            list.iter().enumerate().map(number).collect()
        };
        // Numbers count the messages of a rank in some versions, and those of a pair in others. They identify a message
        // only if both sides have the same ones where their windows overlap.
        if let (Some(of_sends), Some(of_receives)) = (numbers(sends), numbers(receives)) {
            let from = of_sends.keys().next().max(of_receives.keys().next()).copied().unwrap_or(0);
            let to = of_sends.keys().next_back().min(of_receives.keys().next_back()).copied().unwrap_or(0);
            let is_unique = of_sends.len() == sends.len() && of_receives.len() == receives.len();
            if is_unique
                && from <= to
                && of_sends
                    .range(from..=to)
                    .map(|(number, _)| number)
                    .eq(of_receives.range(from..=to).map(|(number, _)| number))
            {
                let pairs = of_sends.range(from..=to).zip(of_receives.range(from..=to));
                return pairs.map(|((_, send), (_, receive))| (sends[*send], receives[*receive])).collect();
            }
        }
        let items = |list: &[PartPlace], kind: Kind| -> Vec<Item> {
            let item = |(place, part): &PartPlace| {
                let bytes = self.member(*place).messages[*part].bytes;
                Item { kind, elements: bytes, ..self.item(*place) }
            };
            list.iter().map(item).collect()
        };
        let shift = shift(&items(sends, Kind::Send), &items(receives, Kind::Receive), is_one_clock);
        let Some(shift) = shift else { return Vec::new() };
        let skipped = |shift: i64| usize::try_from(shift).unwrap_or(0);
        let sends = sends.iter().skip(skipped(-shift));
        sends.copied().zip(receives.iter().skip(skipped(shift)).copied()).collect()
    }
}
