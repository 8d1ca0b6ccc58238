//! Records of a thread in few bytes: times as differences, types by their place in a list.
//!
//! ```text
//!  events   since the line before | bytes of pairs | type, value | type, value ...
//!  states   since the end of the one before | how long | which
//! ```
//!
//! Numbers have as many bytes as they need, 7 bits in each. Each chunk can be read by itself, so parts that were read at
//! once are put one after the other without a copy, but for small ones: only large blocks of memory can be spilled.

/// Types that a chunk numbers; others follow this number.
const MOST_TYPES: usize = 255;

/// Bytes of a chunk that is no longer small: its events and its states are large blocks by themselves.
const LARGE: usize = 64 << 10;
/// Bytes from which on nothing is added to a chunk.
const FULL: usize = 256 << 10;

/// What a thread was doing.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct State {
    pub(crate) begin: i64,
    pub(crate) end: i64,
    pub(crate) kind: i32,
}

#[derive(Debug, Default)]
struct Chunk {
    events: Vec<u8>,
    states: Vec<u8>,
    types: Vec<u32>,
}

/// First and last time of records, and whether none is before the one before it.
#[derive(Debug, Clone, Copy)]
struct Span {
    first: i64,
    last: i64,
    is_sorted: bool,
}

impl Span {
    const EMPTY: Self = Self { first: i64::MAX, last: i64::MIN, is_sorted: true };

    fn is_empty(self) -> bool {
        self.last == i64::MIN
    }

    fn add(&mut self, other: Self) {
        self.is_sorted &= other.is_sorted && (other.is_empty() || self.last <= other.first);
        if self.is_empty() {
            self.first = other.first;
        }
        if !other.is_empty() {
            self.last = other.last;
        }
    }

    fn note(&mut self, time: i64) {
        self.add(Self { first: time, last: time, is_sorted: true });
    }
}

/// The records of a thread. Events of one line have one time.
#[derive(Debug)]
pub(crate) struct Records {
    chunks: Vec<Chunk>,
    events: Span,
    states: Span,
    /// The end of the last state.
    end: i64,
}

impl Default for Records {
    fn default() -> Self {
        Self { chunks: Vec::new(), events: Span::EMPTY, states: Span::EMPTY, end: 0 }
    }
}

impl Records {
    pub(crate) fn is_empty(&self) -> bool {
        self.chunks.is_empty()
    }

    /// The time of the first events.
    pub(crate) fn first_time(&self) -> Option<i64> {
        (!self.events.is_empty()).then_some(self.events.first)
    }

    /// Adds what comes after.
    pub(crate) fn append(&mut self, other: Self) {
        let is_small = other.chunks.iter().map(Chunk::size).sum::<usize>() < LARGE;
        if is_small && self.chunks.last().is_some_and(|last| last.size() < FULL) {
            for line in other.lines() {
                let mut pairs = line.pairs();
                self.line(line.time, || pairs.next());
            }
            other.states().for_each(|state| self.state(state));
            return;
        }
        self.events.add(other.events);
        self.states.add(other.states);
        self.end = if other.states.is_empty() { self.end } else { other.end };
        self.chunks.extend(other.chunks);
    }

    /// Gives back the room that is not in use.
    pub(crate) fn shrink(&mut self) {
        for chunk in &mut self.chunks {
            chunk.events.shrink_to_fit();
            chunk.states.shrink_to_fit();
            chunk.types.shrink_to_fit();
        }
    }

    fn chunk(chunks: &mut Vec<Chunk>) -> &mut Chunk {
        if chunks.is_empty() {
            chunks.push(Chunk::default());
        }
        let last = chunks.len() - 1;
        &mut chunks[last]
    }

    /// Adds a line of events; `next` returns its pairs.
    #[inline]
    pub(crate) fn line(&mut self, time: i64, mut next: impl FnMut() -> Option<(u32, i64)>) {
        let Chunk { events, types, .. } = Self::chunk(&mut self.chunks);
        let since = if events.is_empty() { 0 } else { self.events.last };
        put(events, zigzag(time - since));
        let length = events.len();
        events.push(0);
        let mut place = 0;
        while let Some((kind, value)) = next() {
            place = put_type(events, types, kind, place);
            put(events, zigzag(value));
        }
        let count = events.len() - length - 1;
        if count < 0x80 {
            events[length] = count as u8;
        } else {
            let mut bytes = Vec::with_capacity(4);
            put(&mut bytes, count as u64);
            events.splice(length..=length, bytes);
        }
        self.events.note(time);
    }

    /// Adds a state.
    #[inline]
    pub(crate) fn state(&mut self, state: State) {
        let Chunk { states, .. } = Self::chunk(&mut self.chunks);
        let since = if states.is_empty() { 0 } else { self.end };
        put(states, zigzag(state.begin - since));
        put(states, zigzag(state.end - state.begin));
        put(states, zigzag(state.kind.into()));
        self.end = state.end;
        self.states.note(state.begin);
    }

    /// Types of events, some more than once.
    pub(crate) fn kinds(&self) -> impl Iterator<Item = u32> {
        self.chunks.iter().flat_map(|chunk| {
            let has_more = chunk.types.len() == MOST_TYPES;
            let others = has_more.then(|| chunk.lines().flat_map(Line::pairs).map(|(kind, _)| kind));
            chunk.types.iter().copied().chain(others.into_iter().flatten())
        })
    }

    /// Lines of events as they were added.
    pub(crate) fn lines(&self) -> impl Iterator<Item = Line<'_>> {
        self.chunks.iter().flat_map(Chunk::lines)
    }

    /// Lines of events in order of time, if they were not added so.
    pub(crate) fn sorted_lines(&self) -> Option<Vec<Line<'_>>> {
        (!self.events.is_sorted).then(|| {
            let mut lines: Vec<Line<'_>> = self.lines().collect();
            lines.sort_by_key(|line| line.time);
            lines
        })
    }

    /// States as they were added.
    pub(crate) fn states(&self) -> impl Iterator<Item = State> {
        self.chunks.iter().flat_map(|chunk| {
            let (mut bytes, mut since) = (&chunk.states[..], 0);
            std::iter::from_fn(move || {
                let begin = since + unzigzag(take(&mut bytes)?);
                let end = begin + unzigzag(take(&mut bytes)?);
                let kind = unzigzag(take(&mut bytes)?) as i32;
                since = end;
                Some(State { begin, end, kind })
            })
        })
    }

    /// Only the states, in order of time.
    pub(crate) fn into_states(mut self) -> Self {
        if self.states.is_sorted {
            for chunk in &mut self.chunks {
                (chunk.events, chunk.types) = (Vec::new(), Vec::new());
            }
            self.events = Span::EMPTY;
            return self;
        }
        let mut states: Vec<State> = self.states().collect();
        states.sort_by_key(|state| state.begin);
        let mut sorted = Self::default();
        for state in states {
            sorted.state(state);
        }
        sorted
    }
}

impl Chunk {
    fn size(&self) -> usize {
        self.events.len() + self.states.len()
    }

    fn lines(&self) -> impl Iterator<Item = Line<'_>> {
        let (mut bytes, types, mut time) = (&self.events[..], &self.types[..], 0);
        std::iter::from_fn(move || {
            time += unzigzag(take(&mut bytes)?);
            let length = take(&mut bytes)? as usize;
            let (pairs, rest) = bytes.split_at_checked(length)?;
            bytes = rest;
            Some(Line { time, bytes: pairs, types })
        })
    }
}

/// Events of one instant.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Line<'a> {
    pub(crate) time: i64,
    bytes: &'a [u8],
    types: &'a [u32],
}

impl<'a> Line<'a> {
    /// Pairs of type and value.
    pub(crate) fn pairs(self) -> impl Iterator<Item = (u32, i64)> + use<'a> {
        let Self { mut bytes, types, .. } = self;
        std::iter::from_fn(move || {
            let (&place, rest) = bytes.split_first()?;
            bytes = rest;
            let kind = match types.get(usize::from(place)) {
                Some(kind) => *kind,
                None => take(&mut bytes)? as u32,
            };
            Some((kind, unzigzag(take(&mut bytes)?)))
        })
    }
}

/// Writes a type, and returns where to look for the next: types follow each other in the same order again and again.
#[inline]
fn put_type(events: &mut Vec<u8>, types: &mut Vec<u32>, kind: u32, from: usize) -> usize {
    let known = types[from..].iter().position(|known| *known == kind).map(|place| from + place);
    let place = known.or_else(|| types[..from].iter().position(|known| *known == kind)).or_else(|| {
        (types.len() < MOST_TYPES).then(|| {
            types.push(kind);
            types.len() - 1
        })
    });
    let Some(place) = place else {
        events.push(MOST_TYPES as u8);
        put(events, kind.into());
        return from;
    };
    events.push(place as u8);
    if place + 1 < types.len() { place + 1 } else { 0 }
}

#[inline]
fn zigzag(number: i64) -> u64 {
    ((number << 1) ^ (number >> 63)).cast_unsigned()
}

#[inline]
fn unzigzag(number: u64) -> i64 {
    (number >> 1).cast_signed() ^ -((number & 1).cast_signed())
}

#[inline]
fn put(bytes: &mut Vec<u8>, mut number: u64) {
    while number >= 0x80 {
        bytes.push(number as u8 | 0x80);
        number >>= 7;
    }
    bytes.push(number as u8);
}

#[inline]
fn take(bytes: &mut &[u8]) -> Option<u64> {
    let mut number = 0;
    for (at, byte) in bytes.iter().enumerate().take(10) {
        number |= u64::from(byte & 0x7f) << (7 * at);
        if *byte < 0x80 {
            *bytes = &bytes[at + 1..];
            return Some(number);
        }
    }
    None
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    /// Lines of a few types, and of many.
    fn lines() -> impl Strategy<Value = Vec<(i64, Vec<(u32, i64)>)>> {
        let kinds = prop_oneof![0..4_u32, 0..2000_u32, any::<u32>()];
        let values = prop_oneof![0..100_i64, any::<i64>()];
        prop::collection::vec((0..=1_i64 << 53, prop::collection::vec((kinds, values), 0..60)), 0..9)
    }

    fn records(lines: &[(i64, Vec<(u32, i64)>)], states: &[State]) -> Records {
        let mut records = Records::default();
        for (time, pairs) in lines {
            let mut pairs = pairs.iter().copied();
            records.line(*time, || pairs.next());
        }
        for state in states {
            records.state(*state);
        }
        records
    }

    #[test]
    fn more_types_than_are_numbered_are_kept() {
        let pairs: Vec<(u32, i64)> = (0..600).map(|kind| (kind, 7)).collect();
        let lines = [(5, pairs.clone()), (5, pairs)];
        let kept = records(&lines, &[]);
        let found: Vec<_> = kept.lines().map(|line| (line.time, line.pairs().collect::<Vec<_>>())).collect();
        assert_eq!(found, lines);
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(64))]
        #[test]
        fn records_are_kept(lines in lines(), states in prop::collection::vec((0..1_i64 << 53, 0..1_i64 << 53, any::<i32>()), 0..9), cut in 0..9_usize) {
            let states: Vec<State> = states.into_iter().map(|(begin, end, kind)| State { begin, end, kind }).collect();
            let (first, second) = lines.split_at(cut.min(lines.len()));
            let mut kept = records(first, &states);
            kept.append(records(second, &states));
            kept.shrink();
            let found: Vec<_> = kept.lines().map(|line| (line.time, line.pairs().collect::<Vec<_>>())).collect();
            prop_assert_eq!(&found, &lines);
            prop_assert_eq!(kept.first_time(), lines.first().map(|line| line.0));
            let mut kinds: Vec<u32> = kept.kinds().collect();
            kinds.sort_unstable();
            kinds.dedup();
            let mut known: Vec<u32> = lines.iter().flat_map(|line| &line.1).map(|pair| pair.0).collect();
            known.sort_unstable();
            known.dedup();
            prop_assert_eq!(kinds, known);
            let sorted = kept.sorted_lines().map(|lines| lines.iter().map(|line| line.time).collect::<Vec<_>>());
            let mut times: Vec<i64> = lines.iter().map(|line| line.0).collect();
            let is_sorted = times.is_sorted();
            times.sort_unstable();
            prop_assert_eq!(sorted, (!is_sorted).then_some(times));
            let mut twice = [&states[..], &states[..]].concat();
            prop_assert_eq!(kept.states().collect::<Vec<_>>(), twice.clone());
            twice.sort_by_key(|state| state.begin);
            prop_assert_eq!(kept.into_states().states().collect::<Vec<_>>(), twice);
        }
    }
}
