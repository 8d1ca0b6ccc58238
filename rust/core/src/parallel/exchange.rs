//! The only way in which shards exchange data.
//!
//! A stage produces, for its whole shard, the rows that other shards need; one exchange moves them all, and the next
//! stage consumes them. Stages do not know where other shards live: in the same process, where rows move without a
//! copy, or in another one, to which a [`Transport`] sends them as bytes.
//!
//! The processes of an analysis execute the same steps, each with its own block of shards, and the same exchanges in
//! the same order.

use std::ops::Range;
use std::sync::Arc;

use bitcode::{Buffer, DecodeOwned, Encode};
use bytes::Bytes;

use crate::parallel::iter::prelude::*;
use crate::{Error, Result};

/// Rows that a process gathers from another at a time.
const GATHERED: usize = 1 << 18;

/// Data that can be sent to another process.
pub trait Row: Encode + DecodeOwned + Send {}

impl<T: Encode + DecodeOwned + Send> Row for T {}

/// Moves bytes between the processes of an analysis.
pub trait Transport: Send + Sync + std::fmt::Debug {
    /// Number of processes.
    fn size(&self) -> usize;

    /// Number of this process.
    fn rank(&self) -> usize;

    /// Delivers the i-th buffer to process i; returns the buffers received, by sender. Collective over all processes.
    ///
    /// If it fails, it fails in all processes.
    fn deliver(&self, outgoing: Vec<Bytes>) -> Result<Vec<Bytes>>;
}

/// Rows that one shard sends to the others, by destination shard.
#[derive(Debug)]
pub struct Outbox<T>(Vec<Parcel<T>>);

/// Rows for one shard, in parts: no row moves once it is there.
#[derive(Debug)]
struct Parcel<T> {
    full: Vec<Vec<T>>,
    last: Vec<T>,
}

/// Bytes of a part, and rows of the first.
const PART: usize = 1 << 20;
const FIRST: usize = 4;

impl<T> Default for Parcel<T> {
    fn default() -> Self {
        Self { full: Vec::new(), last: Vec::new() }
    }
}

impl<T> Parcel<T> {
    /// The last part, with room for this many rows.
    #[inline]
    fn with_room(&mut self, rows: usize) -> &mut Vec<T> {
        if self.last.capacity() - self.last.len() < rows {
            self.begin(rows);
        }
        &mut self.last
    }

    /// Begins a part with room for at least this many rows.
    #[cold]
    #[inline(never)]
    fn begin(&mut self, rows: usize) {
        let usual = (2 * self.last.capacity()).clamp(FIRST, PART / size_of::<T>().max(1));
        let full = std::mem::replace(&mut self.last, Vec::with_capacity(usual.max(rows)));
        if !full.is_empty() {
            self.full.push(full);
        }
    }

    /// The parts, in their order; none is empty.
    fn into_parts(self) -> impl Iterator<Item = Vec<T>> {
        self.full.into_iter().chain([self.last]).filter(|part| !part.is_empty())
    }
}

impl<T> Outbox<T> {
    /// Adds a row for the shard that owns its destination.
    #[inline]
    pub fn push(&mut self, shard: u32, row: T) {
        self.0[shard as usize].with_room(1).push(row);
    }

    /// Adds a header row and its rows for the shard that owns their destination; they arrive in one part.
    #[inline]
    pub fn extend(&mut self, shard: u32, head: T, rows: &[T])
    where
        T: Copy,
    {
        let part = self.0[shard as usize].with_room(1 + rows.len());
        part.push(head);
        part.extend_from_slice(rows);
    }
}

/// Rows that arrived at one shard, in parts: by source shard, in the order of sending.
#[derive(Debug)]
pub struct Inbox<T>(Vec<Vec<T>>);

impl<T> Inbox<T> {
    /// All rows, by source shard and within it in the order of sending.
    pub fn rows(&self) -> InboxRows<'_, T> {
        InboxRows { left: self.len(), part: [].iter(), parts: self.0.iter() }
    }

    /// All rows in this order.
    pub fn into_vec(self) -> Vec<T> {
        let rows = self.len();
        let mut parts = self.0.into_iter();
        let mut all = parts.next().unwrap_or_default();
        all.reserve_exact(rows - all.len());
        parts.for_each(|mut part| all.append(&mut part));
        all
    }

    /// The parts, none of them empty.
    pub fn parts(&self) -> impl Iterator<Item = &[T]> {
        self.0.iter().map(Vec::as_slice)
    }

    /// Number of rows.
    pub fn len(&self) -> usize {
        self.0.iter().map(Vec::len).sum()
    }

    /// Whether nothing arrived.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }
}

/// The rows of an [`Inbox`].
#[derive(Clone, Debug)]
pub struct InboxRows<'a, T> {
    left: usize,
    part: std::slice::Iter<'a, T>,
    parts: std::slice::Iter<'a, Vec<T>>,
}

impl<'a, T> Iterator for InboxRows<'a, T> {
    type Item = &'a T;

    #[inline]
    fn next(&mut self) -> Option<&'a T> {
        loop {
            if let Some(row) = self.part.next() {
                self.left -= 1;
                return Some(row);
            }
            self.part = self.parts.next()?.iter();
        }
    }

    fn size_hint(&self) -> (usize, Option<usize>) {
        (self.left, Some(self.left))
    }
}

impl<T> ExactSizeIterator for InboxRows<'_, T> {}

/// Distribution of shards over processes, and the transport between them.
#[derive(Clone, Debug)]
pub struct Exchange {
    transport: Option<Arc<dyn Transport>>,
    rank: usize,
    /// First shard of each process, and the number of shards at the end.
    first: Vec<u32>,
}

impl Exchange {
    /// Distributes shards over all processes in contiguous blocks of about the same weight. `joined` says which shards must
    /// be in the process of the one before.
    pub fn new(transport: Option<Arc<dyn Transport>>, weights: &[u64], joined: &[bool]) -> Self {
        let (processes, rank) = transport.as_ref().map_or((1, 0), |transport| (transport.size(), transport.rank()));
        let total = weights.iter().map(|&weight| u128::from(weight)).sum::<u128>().max(1);
        let mut groups: Vec<(u32, u128)> = Vec::new();
        for (shard, &weight) in weights.iter().enumerate() {
            match groups.last_mut().filter(|_| joined.get(shard) == Some(&true)) {
                Some((_, group)) => *group += u128::from(weight),
                None => groups.push((shard as u32, u128::from(weight))),
            }
        }
        let mut first = vec![0];
        let mut before = 0;
        for (shard, weight) in groups {
            // The middle of a group decides about its process.
            let middle = 2 * before + weight;
            while middle * processes as u128 >= 2 * total * first.len() as u128 && first.len() < processes {
                first.push(shard);
            }
            before += weight;
        }
        first.resize(processes + 1, weights.len() as u32);
        Self { transport, rank, first }
    }

    /// Number of processes.
    pub fn processes(&self) -> usize {
        self.first.len() - 1
    }

    /// How the processes are connected.
    #[cfg(test)]
    pub(crate) fn transport(&self) -> Option<Arc<dyn Transport>> {
        self.transport.clone()
    }

    /// Number of this process.
    #[inline]
    pub fn rank(&self) -> usize {
        self.rank
    }

    /// Whether this process receives the results.
    pub fn is_root(&self) -> bool {
        self.rank() == 0
    }

    /// Number of shards of all processes.
    pub fn shards(&self) -> usize {
        self.first[self.processes()] as usize
    }

    /// Shards of a process.
    #[inline]
    pub fn shards_of(&self, process: usize) -> Range<u32> {
        self.first[process]..self.first[process + 1]
    }

    /// Shards of this process.
    #[inline]
    pub fn own(&self) -> Range<u32> {
        self.shards_of(self.rank())
    }

    /// The shard that evaluates the `sequence`-th instance of something: spread evenly, the same everywhere.
    pub(crate) fn evaluator(&self, something: u32, sequence: u32) -> u32 {
        let mixed = ((u64::from(something) << 32) | u64::from(sequence)).wrapping_mul(0x9E37_79B9_7F4A_7C15);
        (((mixed >> 32) * self.shards() as u64) >> 32) as u32
    }

    /// The process of a shard.
    pub fn process_of(&self, shard: u32) -> usize {
        self.first.partition_point(|&first| first <= shard) - 1
    }

    /// An empty outbox.
    pub fn outbox<T>(&self) -> Outbox<T> {
        Outbox((0..self.shards()).map(|_| Parcel::default()).collect())
    }

    /// Delivers each row to the shard that owns its destination; from one outbox for each shard of this process to one
    /// inbox for each.
    ///
    /// Within a process this transposes the table of parcels: no row is copied.
    pub fn alltoallv<T: Row>(&self, mut outgoing: Vec<Outbox<T>>) -> Result<Vec<Inbox<T>>> {
        let own = self.own();
        let arrived = match &self.transport {
            None => Vec::new(),
            Some(_) => self.carry(&mut outgoing)?,
        };
        let mut inboxes: Vec<Inbox<T>> = own.clone().map(|_| Inbox(Vec::new())).collect();
        let mut add = |shard: u32, part: Vec<T>| inboxes[(shard - own.start) as usize].0.push(part);
        let mut arrived = arrived.into_iter().enumerate();
        for (_, boxes) in arrived.by_ref().take(self.rank()) {
            boxes.into_iter().flatten().for_each(|(shard, part)| add(shard, part));
        }
        for outbox in outgoing {
            for (shard, parcel) in own.clone().zip(outbox.0.into_iter().skip(own.start as usize)) {
                parcel.into_parts().for_each(|part| add(shard, part));
            }
        }
        for (_, boxes) in arrived {
            boxes.into_iter().flatten().for_each(|(shard, part)| add(shard, part));
        }
        Ok(inboxes)
    }

    /// Sends rows to other processes; returns the rows received from each, by source shard.
    fn carry<T: Row>(&self, outgoing: &mut [Outbox<T>]) -> Result<Vec<Vec<Boxes<T>>>> {
        let of_thread = outgoing.len().div_ceil(rayon::current_num_threads()).max(1);
        let mut parcels = Vec::with_capacity(self.processes());
        for process in 0..self.processes() {
            if process == self.rank() {
                parcels.push(Bytes::new());
                continue;
            }
            let shards = self.shards_of(process);
            // Parts one after the other, each preceded by its length.
            let encode = |outboxes: &mut [Outbox<T>]| {
                let of_others =
                    outboxes.iter().flat_map(|outbox| &outbox.0[shards.start as usize..shards.end as usize]);
                let rows = of_others.flat_map(|parcel| parcel.full.iter().chain([&parcel.last]).map(Vec::len));
                // Encoded columns are seldom larger than the rows.
                let mut parts = Vec::with_capacity(rows.sum::<usize>() * size_of::<T>());
                let mut buffer = Buffer::new();
                for outbox in outboxes {
                    let of_shard = |shard: u32| {
                        std::mem::take(&mut outbox.0[shard as usize]).into_parts().map(move |part| (shard, part))
                    };
                    let boxes: Boxes<T> = shards.clone().flat_map(of_shard).collect();
                    let part = buffer.encode(&boxes);
                    parts.extend((part.len() as u64).to_le_bytes());
                    parts.extend(part);
                }
                parts
            };
            let mut parts: Vec<Vec<u8>> =
                outgoing.chunks_mut(of_thread).collect::<Vec<_>>().into_par_iter().map(encode).collect();
            parcels.push(Bytes::from(if parts.len() == 1 { parts.remove(0) } else { parts.concat() }));
        }
        let arrived = self.deliver(parcels)?;
        let own = self.own();
        let read = |parcel: Bytes| {
            let parts: Vec<&[u8]> = unpack(&parcel)?;
            parts.into_par_iter().map(decode::<Boxes<T>>).collect()
        };
        let arrived: Vec<Vec<Boxes<T>>> = arrived.into_iter().map(read).collect::<Result<_>>()?;
        let is_known = |(shard, _): &(u32, Vec<T>)| own.contains(shard);
        if arrived.iter().flatten().flatten().all(is_known) { Ok(arrived) } else { Err(misunderstood()) }
    }

    fn deliver(&self, outgoing: Vec<Bytes>) -> Result<Vec<Bytes>> {
        let Some(transport) = &self.transport else { return Ok(outgoing) };
        let arrived = transport.deliver(outgoing)?;
        if arrived.len() == self.processes() { Ok(arrived) } else { Err(misunderstood()) }
    }

    /// Delivers bytes; returns the value received from each process, and `kept` in place of this one's.
    fn values<T: Row>(&self, outgoing: Vec<Bytes>, mut kept: Option<T>) -> Result<Vec<T>> {
        let mut values = Vec::with_capacity(self.processes());
        for (process, bytes) in self.deliver(outgoing)?.iter().enumerate() {
            let value = if process == self.rank() { kept.take() } else { Some(decode(bytes)?) };
            values.extend(value);
        }
        Ok(values)
    }

    /// Sends the i-th value to process i; returns the values received, by sender.
    pub fn alltoall<T: Row>(&self, mut values: Vec<T>) -> Result<Vec<T>> {
        let others = values.split_off(self.rank() + 1);
        let kept = values.pop();
        let bytes = |values: Vec<T>| values.into_iter().map(|value| encode(&value));
        let outgoing = bytes(values).chain([Bytes::new()]).chain(bytes(others)).collect();
        self.values(outgoing, kept)
    }

    /// The value of each process, at all of them.
    pub fn allgather<T: Row>(&self, value: T) -> Result<Vec<T>> {
        let bytes = if self.processes() == 1 { Bytes::new() } else { encode(&value) };
        let mut outgoing = vec![bytes; self.processes()];
        outgoing[self.rank()] = Bytes::new();
        self.values(outgoing, Some(value))
    }

    /// A value that the first process knows, at all of them.
    pub(crate) fn broadcast<T: Row>(&self, value: impl FnOnce() -> T) -> Result<T> {
        let values = self.allgather(self.is_root().then(value))?;
        Ok(values.into_iter().flatten().next().expect("the first process has a value"))
    }

    /// The value of each process at the first process; nothing at the others.
    pub fn gather<T: Row>(&self, value: T) -> Result<Vec<T>> {
        let mut outgoing = vec![Bytes::new(); self.processes()];
        if self.is_root() {
            return self.values(outgoing, Some(value));
        }
        outgoing[0] = encode(&value);
        drop(value);
        self.deliver(outgoing)?;
        Ok(Vec::new())
    }

    /// The value of each process at the first process; its own at the others.
    pub fn gather_or_keep<T: Row>(&self, value: T) -> Result<Vec<T>> {
        if self.is_root() {
            return self.gather(value);
        }
        let mut outgoing = vec![Bytes::new(); self.processes()];
        outgoing[0] = encode(&value);
        self.deliver(outgoing)?;
        Ok(vec![value])
    }

    /// Position of a shard among those of this process.
    #[inline]
    pub fn position(&self, shard: u32) -> usize {
        (shard - self.own().start) as usize
    }

    /// Passes items to the processes that have their shards, and those for this process to `each`: first its own, then those
    /// of others. Collective.
    pub(crate) fn to_owners<T: Row + Clone>(
        &self,
        items: impl IntoIterator<Item = T>,
        shard_of: impl Fn(&T) -> u32,
        mut each: impl FnMut(T),
    ) -> Result<()> {
        let mut outgoing = vec![Vec::new(); self.processes()];
        for item in items {
            match self.process_of(shard_of(&item)) {
                process if process == self.rank() => each(item),
                process => outgoing[process].push(item),
            }
        }
        self.alltoall(outgoing)?.into_iter().flatten().for_each(each);
        Ok(())
    }

    /// The answers of the processes that have the shards of some questions, in the order of these. Collective.
    pub(crate) fn ask<Q: Row + Clone, A: Row>(
        &self,
        questions: &[Q],
        shard_of: impl Fn(&Q) -> u32,
        answer: impl Fn(&Q) -> A,
    ) -> Result<Vec<A>> {
        let process_of = |question: &Q| self.process_of(shard_of(question));
        let mut outgoing = vec![Vec::new(); self.processes()];
        for question in questions {
            outgoing[process_of(question)].push(question.clone());
        }
        let asked = self.alltoall(outgoing)?;
        let answers = asked.iter().map(|questions| questions.iter().map(&answer).collect()).collect();
        let answers: Vec<Vec<A>> = self.alltoall(answers)?;
        let mut answers: Vec<_> = answers.into_iter().map(Vec::into_iter).collect();
        questions.iter().map(|question| answers[process_of(question)].next().ok_or_else(misunderstood)).collect()
    }

    /// Passes what each process makes to `take` at the first: process by process, and chunk by chunk, so that none holds
    /// more than one of its chunks. Collective.
    pub(crate) fn gather_in_turn<T: Row>(
        &self,
        chunks: usize,
        mut make: impl FnMut(usize) -> Result<T>,
        mut take: impl FnMut(T) -> Result<()>,
    ) -> Result<()> {
        for (process, chunks) in self.allgather(chunks)?.into_iter().enumerate() {
            for chunk in 0..chunks {
                let own = (process == self.rank()).then(|| make(chunk)).transpose()?;
                if process == 0 {
                    own.map_or(Ok(()), &mut take)?;
                    continue;
                }
                let mut outgoing = vec![Bytes::new(); self.processes()];
                if let Some(own) = own {
                    outgoing[0] = encode(&own);
                }
                let arrived = self.deliver(outgoing)?;
                if self.is_root() {
                    take(decode(&arrived[process])?)?;
                }
            }
        }
        Ok(())
    }

    /// The same shards, all of them in this process.
    pub(crate) fn alone(&self) -> Self {
        Self { transport: None, rank: 0, first: vec![0, self.shards() as u32] }
    }

    /// All rows at the first process, in the order of the processes; nothing at the others.
    pub fn gatherv<T: Row>(&self, rows: impl IntoIterator<Item = T>) -> Result<Vec<T>> {
        let rows: Vec<T> = rows.into_iter().collect();
        let (mut all, rows) = if self.is_root() { (rows, Vec::new()) } else { (Vec::new(), rows) };
        self.gather_slices(&[rows], |mut slice| all.append(&mut slice))?;
        Ok(all)
    }

    /// Passes the parts of all processes but the first to `arrive` at the first, in slices. Senders encode a slice while
    /// the first process receives the previous one.
    pub(crate) fn gather_slices<T: Row>(&self, parts: &[Vec<T>], mut arrive: impl FnMut(Vec<T>)) -> Result<()> {
        let mut slices = parts.iter().flat_map(|part| part.chunks(GATHERED));
        let counts = self.allgather(slices.clone().count())?;
        for process in (1..).zip(&counts[1..]).flat_map(|(process, &count)| std::iter::repeat_n(process, count)) {
            let mut outgoing = vec![Bytes::new(); self.processes()];
            if self.is_root() {
                self.values(outgoing, None)?
                    .into_iter()
                    .filter(|slice: &Vec<T>| !slice.is_empty())
                    .for_each(&mut arrive);
            } else {
                let own = if process == self.rank() { slices.next() } else { None };
                outgoing[0] = encode(own.unwrap_or_default());
                self.deliver(outgoing)?;
            }
        }
        Ok(())
    }

    /// A sum over all processes.
    pub fn sum(&self, value: usize) -> Result<usize> {
        Ok(self.allgather(value)?.into_iter().sum())
    }

    /// Whether something holds for any process.
    pub fn any(&self, value: bool) -> Result<bool> {
        Ok(self.allgather(value)?.contains(&true))
    }
}

/// Parts by destination shard.
type Boxes<T> = Vec<(u32, Vec<T>)>;

fn encode<T: Encode + ?Sized>(value: &T) -> Bytes {
    bitcode::encode(value).into()
}

fn decode<T: DecodeOwned>(bytes: &[u8]) -> Result<T> {
    bitcode::decode(bytes).map_err(|_| misunderstood())
}

fn misunderstood() -> Error {
    Error::Usage(
        "the processes of the analysis sent each other data that they cannot read: do all run the same version?"
            .to_owned(),
    )
}

fn unpack(mut parcel: &[u8]) -> Result<Vec<&[u8]>> {
    let mut parts = Vec::new();
    while let Some((length, rest)) = parcel.split_first_chunk() {
        let length = usize::try_from(u64::from_le_bytes(*length)).unwrap_or(usize::MAX);
        let (part, rest) = rest.split_at_checked(length).ok_or_else(misunderstood)?;
        parts.push(part);
        parcel = rest;
    }
    if parcel.is_empty() { Ok(parts) } else { Err(misunderstood()) }
}

/// Processes simulated by threads, to test an analysis with several processes.
#[cfg(test)]
pub(crate) mod threads {
    use std::sync::{Arc, Mutex, mpsc};

    use super::{Bytes, Result, Transport};

    /// The transport of one simulated process.
    #[derive(Debug)]
    struct Thread {
        rank: usize,
        senders: Vec<mpsc::Sender<Bytes>>,
        receivers: Vec<Mutex<mpsc::Receiver<Bytes>>>,
    }

    impl Transport for Thread {
        fn size(&self) -> usize {
            self.senders.len()
        }

        fn rank(&self) -> usize {
            self.rank
        }

        fn deliver(&self, outgoing: Vec<Bytes>) -> Result<Vec<Bytes>> {
            for (sender, parcel) in self.senders.iter().zip(outgoing) {
                sender.send(parcel).unwrap();
            }
            Ok(self.receivers.iter().map(|receiver| receiver.lock().unwrap().recv().unwrap()).collect())
        }
    }

    /// Runs `work` in several simulated processes at once.
    pub(crate) fn run<R: Send>(processes: usize, work: impl Fn(Arc<dyn Transport>) -> R + Sync) -> Vec<R> {
        let mut threads: Vec<Thread> =
            (0..processes).map(|rank| Thread { rank, senders: Vec::new(), receivers: Vec::new() }).collect();
        for from in 0..processes {
            for to in 0..processes {
                let (sender, receiver) = mpsc::channel();
                threads[from].senders.push(sender);
                threads[to].receivers.push(Mutex::new(receiver));
            }
        }
        std::thread::scope(|scope| {
            let running: Vec<_> = threads.into_iter().map(|thread| scope.spawn(|| work(Arc::new(thread)))).collect();
            running.into_iter().map(|thread| thread.join().unwrap()).collect()
        })
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn rows_arrive_at_their_destination_in_order_of_source() {
        let exchange = Exchange::new(None, &[1, 1], &[]);
        let mut a = exchange.outbox();
        a.push(1, "a1".to_owned());
        a.push(0, "a0".to_owned());
        a.push(1, "a2".to_owned());
        let mut b = exchange.outbox();
        b.push(1, "b1".to_owned());
        let inboxes = exchange.alltoallv(vec![a, b]).unwrap();
        assert_eq!(inboxes[0].rows().collect::<Vec<_>>(), ["a0"]);
        assert_eq!(inboxes[1].rows().collect::<Vec<_>>(), ["a1", "a2", "b1"]);
    }

    proptest! {
        #[test]
        fn rows_stay_in_order_and_with_their_heads(lengths in prop::collection::vec(0usize..40, 0..60)) {
            let exchange = Exchange::new(None, &[1], &[]);
            let mut outbox = exchange.outbox();
            let mut sent = Vec::new();
            for length in lengths {
                let rows: Vec<usize> = (1..=length).collect();
                if length == 0 { outbox.push(0, 0) } else { outbox.extend(0, length, &rows) }
                sent.push(length);
                sent.extend(rows);
            }
            let inbox = &exchange.alltoallv(vec![outbox]).unwrap()[0];
            prop_assert_eq!(inbox.rows().copied().collect::<Vec<_>>(), sent);
            for mut part in inbox.parts() {
                prop_assert!(!part.is_empty());
                while let Some((&length, rest)) = part.split_first() {
                    prop_assert!(rest.len() >= length, "the rows of a head are in another part");
                    part = &rest[length..];
                }
            }
        }

        #[test]
        fn several_processes_exchange_what_one_does(
            weights in prop::collection::vec(0u64..9, 0..7),
            processes in 1usize..5,
            sent in prop::collection::vec((0usize..7, 0usize..7), 0..40),
        ) {
            let fill = |exchange: &Exchange, shard: u32| {
                let mut outbox = exchange.outbox();
                for (number, &(from, to)) in sent.iter().enumerate() {
                    if from == shard as usize && to < weights.len() {
                        outbox.push(to as u32, number);
                    }
                }
                outbox
            };
            let go = |transport| {
                let exchange = Exchange::new(transport, &weights, &[]);
                let outgoing = exchange.own().map(|shard| fill(&exchange, shard)).collect();
                let inboxes = exchange.alltoallv(outgoing).unwrap();
                inboxes.iter().map(|inbox| inbox.rows().copied().collect()).collect::<Vec<Vec<usize>>>()
            };
            let split = threads::run(processes, |transport| go(Some(transport)));
            prop_assert_eq!(split.concat(), go(None));
        }

        #[test]
        fn all_processes_have_about_the_same(
            shards in prop::collection::vec((1u64..9, prop::bool::weighted(0.3)), 0..50),
            processes in 1usize..6,
        ) {
            let (weights, joined): (Vec<u64>, Vec<bool>) = shards.into_iter().unzip();
            let mut groups: Vec<u64> = Vec::new();
            for (weight, is_joined) in weights.iter().zip(&joined) {
                match groups.last_mut().filter(|_| *is_joined) {
                    Some(group) => *group += weight,
                    None => groups.push(*weight),
                }
            }
            let largest = groups.into_iter().max().unwrap_or(0);
            let owned = threads::run(processes, |transport| {
                let exchange = Exchange::new(Some(transport), &weights, &joined);
                for shard in exchange.own() {
                    assert_eq!(exchange.process_of(shard), exchange.rank());
                }
                exchange.own()
            });
            let mut next = 0;
            let total: u64 = weights.iter().sum();
            for own in owned {
                prop_assert_eq!(own.start, next);
                prop_assert!(own.is_empty() || own.start == 0 || !joined[own.start as usize]);
                next = own.end;
                let weight: u64 = weights[own.start as usize..own.end as usize].iter().sum();
                prop_assert!(weight <= total / processes as u64 + largest + 1);
            }
            prop_assert_eq!(next as usize, weights.len());
        }
    }

    #[test]
    fn sums_are_over_all() {
        let sums = threads::run(3, |transport| {
            let exchange = Exchange::new(Some(transport), &[], &[]);
            let rank = exchange.rank();
            let swapped = exchange.alltoall((0..3).map(|to| (rank, to)).collect()).unwrap();
            assert_eq!(swapped, [(0, rank), (1, rank), (2, rank)]);
            assert!(exchange.any(rank == 2).unwrap());
            assert_eq!(exchange.gather(rank).unwrap(), if rank == 0 { vec![0, 1, 2] } else { vec![] });
            exchange.sum(rank + 1).unwrap()
        });
        assert_eq!(sums, [6, 6, 6]);
    }
}
