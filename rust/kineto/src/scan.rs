//! A file's bytes to the fields of its events, through a buffer of constant size.
//!
//! The scanner knows JSON as the profiler writes it and as files are damaged: what it passes over, it passes over without
//! decoding, and an event that cannot be read costs that event alone (it goes on at the next one).

use std::io::{ErrorKind, Read};

use memchr::{memchr, memchr2};

/// Bytes read at a time.
const CHUNK: usize = 256 << 10;
/// An event longer than this cannot be read.
const LONGEST: usize = 64 << 20;
/// Arrays and objects within each other, more than any writer makes.
const DEEPEST: u32 = 64;

/// Declares the fields that are kept, with their keys.
macro_rules! fields {
    ($name:ident, $of:ident { $( $field:ident = $key:literal ),* $(,)? } $inner:ident { $( $arg:ident = $arg_key:literal ),* $(,)? }) => {
        /// A field of an event that is kept.
        #[derive(Debug, Clone, Copy, PartialEq, Eq)]
        #[expect(missing_docs, reason = "named as in the file")]
        pub enum $name { $($field,)* $($arg,)* Args }

        impl $name {
            const fn $of(key: &[u8]) -> Option<Self> {
                match key { $($key => Some(Self::$field),)* b"args" => Some(Self::Args), _ => None }
            }

            const fn $inner(key: &[u8]) -> Option<Self> {
                match key { $($arg_key => Some(Self::$arg),)* _ => None }
            }
        }
    };
}

fields! {
    Field, of_event {
        Phase = b"ph", Category = b"cat", Name = b"name", Process = b"pid", Thread = b"tid", Time = b"ts",
        Duration = b"dur", Id = b"id",
    }
    of_args {
        Correlation = b"correlation", External = b"External id", Stream = b"stream", Device = b"device", Sequence = b"Seq",
        Comms = b"Comms Id", Collective = b"Collective name", GroupName = b"Process Group Name",
        GroupRanks = b"Process Group Ranks", GroupDescription = b"Process Group Description", GroupSize = b"Group size",
        Rank = b"Rank", Source = b"Src Rank", Destination = b"Dst Rank", ElementsIn = b"In msg nelems",
        ElementsOut = b"Out msg nelems", ElementType = b"dtype", Backward = b"Sequence number",
        ForwardThread = b"Fwd thread id", Inputs = b"Concrete Inputs", Dimensions = b"Input Dims", Types = b"Input type",
        AwaitedStream = b"wait_on_stream", AwaitedEvent = b"wait_on_cuda_event_record_corr_id", Called = b"name",
        DeviceId = b"Device Id", DeviceType = b"Device Type", Allocated = b"Total Allocated", Reserved = b"Total Reserved",
    }
}

const FIELDS: usize = Field::Args as usize;

/// The fields of one event, as they are in the file.
#[derive(Debug)]
pub struct Fields<'a> {
    bytes: &'a [u8],
    places: &'a Places,
}

/// Where the fields of an event are.
#[derive(Debug)]
struct Places {
    present: u64,
    at: [(u32, u32); FIELDS],
}

impl Fields<'_> {
    /// The value of a field: a number, or a string with its quotes.
    #[must_use]
    #[inline]
    pub fn get(&self, field: Field) -> Option<&[u8]> {
        if self.places.present & (1 << field as u32) == 0 {
            return None;
        }
        let (from, to) = self.places.at[field as usize];
        self.bytes.get(from as usize..to as usize)
    }

    /// The content of a string, or any other value as it is written.
    #[must_use]
    #[inline]
    pub fn text(&self, field: Field) -> Option<&[u8]> {
        self.get(field).map(crate::numbers::unquoted)
    }
}

/// Takes what a file holds.
pub trait Sink {
    /// An event.
    fn event(&mut self, event: &Fields<'_>);
    /// A value that is not an event, by its key.
    fn metadata(&mut self, key: &[u8], value: &[u8]);
}

/// What was found besides events.
#[derive(Debug, Default, Clone, PartialEq, Eq)]
pub struct Summary {
    /// Number of events.
    pub events: u64,
    /// Number of events that could not be read, and where the first one is.
    pub unreadable: u64,
    /// Offset of the first unreadable event in the inflated file.
    pub first_unreadable: u64,
    /// Where the file ends too early, in the inflated file.
    pub truncated: Option<u64>,
    /// What follows the end of the data or does not agree with it, as the decompressor says.
    pub defect: Option<String>,
    /// Whether it has events at all: an array of objects, or a key `traceEvents`.
    pub has_events: bool,
}

/// Why an item cannot be read.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Stop {
    /// The bytes end within it.
    End,
    /// It is not JSON.
    Bad,
}

type Read2<T> = Result<T, Stop>;

/// Where in the file's structure the scanner is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum State {
    /// Before the first bracket.
    Start,
    /// Within the outer object.
    Object,
    /// Within the array of events; whether an object is around it.
    Events(bool),
    /// After the last bracket.
    Done,
}

/// Reads a file to its end.
pub fn scan(input: impl Read, sink: &mut impl Sink) -> std::io::Result<Summary> {
    let mut buffer = Buffer { input, bytes: Vec::new(), start: 0, dropped: 0, at_end: false, defect: None };
    let mut places = Places { present: 0, at: [(0, 0); FIELDS] };
    let mut summary = Summary::default();
    let mut state = State::Start;
    buffer.fill()?;
    if buffer.bytes.starts_with(b"\xef\xbb\xbf") {
        buffer.start = 3;
    }
    while state != State::Done {
        match step(&buffer.bytes, buffer.start, state, &mut places, sink, &mut summary) {
            Ok((next, after)) => (buffer.start, state) = (next, after),
            Err(Stop::End) if buffer.at_end => {
                if state != State::Start {
                    summary.truncated = Some(buffer.offset(buffer.bytes.len()));
                }
                break;
            }
            Err(Stop::End) if buffer.bytes.len() - buffer.start < LONGEST => buffer.fill()?,
            Err(_) if state == State::Start => break,
            Err(_) => {
                buffer.start = skip_space(&buffer.bytes, buffer.start).unwrap_or(buffer.start);
                if summary.unreadable == 0 {
                    summary.first_unreadable = buffer.offset(buffer.start);
                }
                summary.unreadable += 1;
                if !buffer.find_event(&mut places)? {
                    summary.truncated = Some(buffer.offset(buffer.bytes.len()));
                    break;
                }
                summary.has_events = true;
                // Events that follow metadata that cannot be read are in an object.
                state = State::Events(state != State::Events(false));
            }
        }
    }
    if state == State::Done {
        buffer.drain()?;
    }
    summary.defect = buffer.defect;
    Ok(summary)
}

/// Bytes that are read and not yet scanned.
struct Buffer<R> {
    input: R,
    bytes: Vec<u8>,
    start: usize,
    /// Bytes before the first in the buffer.
    dropped: u64,
    at_end: bool,
    defect: Option<String>,
}

impl<R: Read> Buffer<R> {
    fn offset(&self, at: usize) -> u64 {
        self.dropped + at as u64
    }

    /// Reads more. What is scanned goes; the buffer grows if one item fills it.
    fn fill(&mut self) -> std::io::Result<()> {
        self.bytes.drain(..self.start);
        self.dropped += self.start as u64;
        self.start = 0;
        let before = self.bytes.len();
        let wanted = before.max(CHUNK).min(LONGEST.saturating_sub(before).max(CHUNK));
        self.bytes.resize(before + wanted, 0);
        let mut filled = before;
        while filled < self.bytes.len() {
            match self.input.read(&mut self.bytes[filled..]) {
                Ok(0) => self.at_end = true,
                Ok(count) => {
                    filled += count;
                    continue;
                }
                Err(error) if error.kind() == ErrorKind::Interrupted => continue,
                // A cut or damaged compressed file: what came before it counts.
                Err(error) if is_damage(error.kind()) => {
                    self.at_end = true;
                    self.defect = Some(error.to_string());
                }
                Err(error) => return Err(error),
            }
            break;
        }
        self.bytes.truncate(filled);
        Ok(())
    }

    /// Reads what follows the last bracket, which checks the sum of a compressed file.
    fn drain(&mut self) -> std::io::Result<()> {
        while !self.at_end {
            self.start = self.bytes.len();
            self.fill()?;
        }
        Ok(())
    }

    /// Goes on at the next event after one that cannot be read; whether there is one.
    fn find_event(&mut self, places: &mut Places) -> std::io::Result<bool> {
        let mut at = self.start + 1;
        loop {
            let found = memchr(b'{', self.bytes.get(at..).unwrap_or_default()).map(|found| at + found);
            let Some(found) = found else {
                if self.at_end {
                    return Ok(false);
                }
                // Enough to see what precedes a bracket.
                self.start = self.bytes.len().saturating_sub(64).max(self.start);
                let searched = self.bytes.len() - self.start;
                self.fill()?;
                at = searched;
                continue;
            };
            let before = self.bytes[..found].trim_ascii_end().last();
            if matches!(before, Some(b',' | b'[')) {
                match event(&self.bytes, found, places) {
                    Err(Stop::End) if !self.at_end && self.bytes.len() - found < LONGEST => {
                        self.start = found.saturating_sub(64).max(self.start);
                        let ahead = found - self.start;
                        self.fill()?;
                        at = ahead;
                        continue;
                    }
                    Ok(_) if places.present & (1 << Field::Phase as u32) != 0 => {
                        self.start = found;
                        return Ok(true);
                    }
                    _ if begins_with_phase(&self.bytes[found..]) => {
                        self.start = found;
                        return Ok(true);
                    }
                    _ => {}
                }
            }
            at = found + 1;
        }
    }
}

fn is_damage(kind: ErrorKind) -> bool {
    matches!(kind, ErrorKind::UnexpectedEof | ErrorKind::InvalidData | ErrorKind::InvalidInput)
}

/// Whether the first key of an object is that of an event's phase.
fn begins_with_phase(object: &[u8]) -> bool {
    object.get(1..).is_some_and(|rest| rest.trim_ascii_start().starts_with(b"\"ph\""))
}

/// Reads one item; where the next one begins, and the state after it.
#[inline]
fn step(
    bytes: &[u8],
    at: usize,
    state: State,
    places: &mut Places,
    sink: &mut impl Sink,
    summary: &mut Summary,
) -> Read2<(usize, State)> {
    let at = skip_space(bytes, at)?;
    let byte = bytes[at];
    match state {
        State::Start => match byte {
            b'{' => Ok((at + 1, State::Object)),
            b'[' => {
                summary.has_events = true;
                Ok((at + 1, State::Events(false)))
            }
            _ => Err(Stop::Bad),
        },
        State::Events(inside) => match byte {
            b'{' => {
                let next = event(bytes, at, places)?;
                summary.events += 1;
                sink.event(&Fields { bytes, places });
                Ok((next, state))
            }
            b',' => Ok((at + 1, state)),
            b']' => Ok((at + 1, if inside { State::Object } else { State::Done })),
            _ => Err(Stop::Bad),
        },
        State::Object => match byte {
            b',' => Ok((at + 1, state)),
            b'}' => Ok((at + 1, State::Done)),
            b'"' => {
                let end = string(bytes, at)?;
                let key = &bytes[at + 1..end - 1];
                let colon = skip_space(bytes, end)?;
                if bytes[colon] != b':' {
                    return Err(Stop::Bad);
                }
                let from = skip_space(bytes, colon + 1)?;
                if key == b"traceEvents" && bytes[from] == b'[' {
                    summary.has_events = true;
                    return Ok((from + 1, State::Events(true)));
                }
                let to = value(bytes, from)?;
                let next = skip_space(bytes, to)?;
                if !matches!(bytes[next], b',' | b'}') {
                    return Err(Stop::Bad);
                }
                sink.metadata(key, &bytes[from..to]);
                Ok((next, state))
            }
            _ => Err(Stop::Bad),
        },
        State::Done => Ok((at, state)),
    }
}

/// Reads the object at `at`; where it ends.
fn event(bytes: &[u8], at: usize, places: &mut Places) -> Read2<usize> {
    places.present = 0;
    members(bytes, at, places, Field::of_event)
}

/// Reads the members of the object at `at`, and those of its arguments.
#[inline]
fn members(bytes: &[u8], at: usize, places: &mut Places, of: impl Fn(&[u8]) -> Option<Field> + Copy) -> Read2<usize> {
    let mut at = at + 1;
    loop {
        at = skip_space(bytes, at)?;
        match bytes[at] {
            b'"' => {}
            b'}' => return Ok(at + 1),
            b',' => {
                at += 1;
                continue;
            }
            _ => return Err(Stop::Bad),
        }
        let end = string(bytes, at)?;
        let field = of(&bytes[at + 1..end - 1]);
        at = skip_space(bytes, end)?;
        if bytes[at] != b':' {
            return Err(Stop::Bad);
        }
        let from = skip_space(bytes, at + 1)?;
        at = match field {
            Some(Field::Args) if bytes[from] == b'{' => arguments(bytes, from, places)?,
            _ => value(bytes, from)?,
        };
        if let Some(field) = field.filter(|field| *field != Field::Args) {
            places.at[field as usize] = (from as u32, at as u32);
            places.present |= 1 << field as u32;
        }
        at = skip_space(bytes, at)?;
        match bytes[at] {
            b',' => at += 1,
            b'}' => return Ok(at + 1),
            _ => return Err(Stop::Bad),
        }
    }
}

fn arguments(bytes: &[u8], at: usize, places: &mut Places) -> Read2<usize> {
    members(bytes, at, places, Field::of_args)
}

#[inline]
fn skip_space(bytes: &[u8], mut at: usize) -> Read2<usize> {
    loop {
        match bytes.get(at) {
            Some(b' ' | b'\n' | b'\r' | b'\t') => at += 1,
            Some(_) => return Ok(at),
            None => return Err(Stop::End),
        }
    }
}

/// Passes over the string at `at`; where its closing quote ends.
#[inline]
fn string(bytes: &[u8], at: usize) -> Read2<usize> {
    let mut at = at + 1;
    loop {
        let rest = bytes.get(at..).ok_or(Stop::End)?;
        let found = at + memchr2(b'"', b'\\', rest).ok_or(Stop::End)?;
        if bytes[found] == b'"' {
            return Ok(found + 1);
        }
        at = found + 2;
    }
}

/// Passes over the value at `at`.
#[inline]
fn value(bytes: &[u8], at: usize) -> Read2<usize> {
    match bytes[at] {
        b'"' => string(bytes, at),
        b'{' | b'[' => nested(bytes, at),
        _ => literal(bytes, at),
    }
}

/// Passes over a number or a name.
#[inline]
fn literal(bytes: &[u8], at: usize) -> Read2<usize> {
    let length =
        bytes[at..].iter().position(|byte| !byte.is_ascii_alphanumeric() && !matches!(byte, b'-' | b'+' | b'.'));
    match length.ok_or(Stop::End)? {
        0 => Err(Stop::Bad),
        length => Ok(at + length),
    }
}

/// Passes over an array or object. Strings must be followed by what can follow them: an unescaped quote shows at once.
fn nested(bytes: &[u8], mut at: usize) -> Read2<usize> {
    let mut depth = 0;
    loop {
        match *bytes.get(at).ok_or(Stop::End)? {
            b'"' => {
                at = skip_space(bytes, string(bytes, at)?)?;
                if !matches!(bytes[at], b',' | b':' | b']' | b'}') {
                    return Err(Stop::Bad);
                }
                continue;
            }
            b'{' | b'[' if depth == DEEPEST => return Err(Stop::Bad),
            b'{' | b'[' => depth += 1,
            b'}' | b']' => {
                depth -= 1;
                if depth == 0 {
                    return Ok(at + 1);
                }
            }
            _ => {}
        }
        at += 1;
    }
}
