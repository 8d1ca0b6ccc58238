//! From lines to numbers: records of each thread, and messages.
//!
//! Lines are read in blocks, and those of a block in parts, several at once. What a part found is appended to what the
//! parts before it found, so the result does not depend on how lines are divided.

use std::io::Read;

use memchr::memchr;
use rayon::iter::{
    IndexedParallelIterator as _, IntoParallelIterator as _, IntoParallelRefMutIterator as _, ParallelIterator as _,
};

use crate::header::{Header, MOST_TIME};
use crate::parallel::map;
use crate::records::{Records, State};

/// Bytes that are read at a time.
const BLOCK: usize = 16 << 20;
/// Stands for a thread that the header does not have.
const FOREIGN: u32 = u32::MAX;

/// A message as recorded.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Message {
    pub(crate) sender: u32,
    pub(crate) receiver: u32,
    /// When the sending call began, and when the message left.
    pub(crate) sent: [i64; 2],
    /// When the receive was posted, and when the message had arrived.
    pub(crate) received: [i64; 2],
    pub(crate) size: i64,
    pub(crate) tag: i64,
}

/// A communicator: application, number and tasks, all counted from 1.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Communicator {
    pub(crate) application: u32,
    pub(crate) number: i64,
    pub(crate) tasks: Vec<u32>,
}

/// What is wrong with lines.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct Odd {
    /// Lines that are no records.
    pub(crate) unreadable: u64,
    /// Number of the first one.
    pub(crate) first_unreadable: u64,
    /// Records of unknown kinds, by their first character.
    pub(crate) unknown: Vec<(u8, u64)>,
    /// Records of threads that the header does not have.
    pub(crate) wrong_threads: u64,
    /// Types without a value.
    pub(crate) no_values: u64,
    /// Records before which a later one comes.
    pub(crate) unordered: u64,
}

impl Odd {
    fn unknown(&mut self, kind: u8, count: u64) {
        match self.unknown.iter_mut().find(|(known, _)| *known == kind) {
            Some((_, known)) => *known += count,
            None => self.unknown.push((kind, count)),
        }
    }
}

/// What the lines of a trace say.
#[derive(Debug, Default)]
pub(crate) struct Scanned {
    /// By the number of the thread.
    pub(crate) threads: Vec<Records>,
    pub(crate) messages: Vec<Message>,
    pub(crate) communicators: Vec<Communicator>,
    pub(crate) comments: Vec<String>,
    pub(crate) odd: Odd,
    /// Number of records.
    pub(crate) records: u64,
    /// Number of lines after the header.
    pub(crate) lines: u64,
    /// Whether the file ends within a line.
    pub(crate) is_cut: bool,
    /// Times of the first and last record of states and events.
    order: Option<(i64, i64)>,
    /// The latest time of all.
    pub(crate) last: i64,
}

/// Numbers of threads: those of a task follow each other, tasks in order of the header.
#[derive(Debug)]
pub(crate) struct Places {
    /// For each application, the first thread of each task, and the end.
    first: Vec<Vec<u32>>,
    /// Whether other applications are left out.
    is_part: bool,
}

impl Places {
    pub(crate) fn new(header: &Header, is_part: bool) -> Self {
        let mut next = 0;
        let mut first = Vec::new();
        for tasks in &header.applications {
            let mut places: Vec<u32> = Vec::with_capacity(tasks.len() + 1);
            for task in tasks {
                places.push(next);
                next += task.threads;
            }
            places.push(next);
            first.push(places);
        }
        Self { first, is_part }
    }

    pub(crate) fn count(&self) -> usize {
        self.first.last().and_then(|places| places.last()).copied().unwrap_or(0) as usize
    }

    fn thread(&self, application: i64, task: i64, thread: i64) -> Option<u32> {
        let places = self.first.get(index(application)?)?;
        let task = index(task)?;
        let range = *places.get(task)?..*places.get(task + 1)?;
        let place = range.start.checked_add(u32::try_from(index(thread)?).ok()?)?;
        range.contains(&place).then_some(place)
    }
}

/// An index for a number that counts from 1.
fn index(number: i64) -> Option<usize> {
    usize::try_from(number).ok()?.checked_sub(1)
}

impl Scanned {
    fn new(places: &Places) -> Self {
        let threads = (0..places.count()).map(|_| Records::default()).collect();
        Self { threads, ..Self::default() }
    }

    fn append(&mut self, part: Self) {
        self.threads.par_iter_mut().zip(part.threads.into_par_iter()).for_each(|(thread, more)| thread.append(more));
        self.messages.extend(part.messages);
        self.communicators.extend(part.communicators);
        self.comments.extend(part.comments);
        if self.odd.unreadable == 0 && part.odd.unreadable > 0 {
            self.odd.first_unreadable = self.lines + part.odd.first_unreadable;
        }
        self.odd.unreadable += part.odd.unreadable;
        self.odd.wrong_threads += part.odd.wrong_threads;
        self.odd.no_values += part.odd.no_values;
        self.odd.unordered += part.odd.unordered;
        for (kind, count) in part.odd.unknown {
            self.odd.unknown(kind, count);
        }
        if let (Some(before), Some(after)) = (self.order, part.order) {
            self.odd.unordered += u64::from(after.0 < before.1);
        }
        let first = self.order.or(part.order).map(|order| order.0);
        self.order = first.zip(part.order.or(self.order).map(|order| order.1));
        self.records += part.records;
        self.lines += part.lines;
        self.is_cut |= part.is_cut;
        self.last = self.last.max(part.last);
    }

    fn in_order(&mut self, time: i64) {
        let (first, last) = self.order.unwrap_or((time, time));
        self.odd.unordered += u64::from(time < last);
        self.order = Some((first, time));
        self.last = self.last.max(time);
    }

    /// Reads the lines of a part.
    fn scan(bytes: &[u8], places: &Places) -> Self {
        let mut scanned = Self::new(places);
        let mut rest = bytes;
        while !rest.is_empty() {
            let end = memchr(b'\n', rest);
            let line = &rest[..end.unwrap_or(rest.len())];
            rest = end.map_or(&[], |end| &rest[end + 1..]);
            if end.is_none() {
                scanned.is_cut = true;
                break;
            }
            scanned.lines += 1;
            if scanned.line(line.strip_suffix(b"\r").unwrap_or(line), places).is_none() {
                if scanned.odd.unreadable == 0 {
                    scanned.odd.first_unreadable = scanned.lines;
                }
                scanned.odd.unreadable += 1;
            }
        }
        scanned.threads.iter_mut().for_each(Records::shrink);
        scanned
    }

    /// Reads a line; `None` if it is none.
    fn line(&mut self, line: &[u8], places: &Places) -> Option<()> {
        let Some((&kind, rest)) = line.split_first() else { return Some(()) };
        let mut fields = Fields { bytes: rest };
        match kind {
            b'#' => self.comments.push(String::from_utf8_lossy(rest).into_owned()),
            b'1'..=b'3' if rest.first() == Some(&b':') => self.record(kind, &mut fields, places)?,
            b'c' | b'C' if rest.first() == Some(&b':') => self.communicator(&mut fields)?,
            // Its two groups are of no use: messages name no communicator.
            b'i' | b'I' if rest.first() == Some(&b':') => {}
            _ => {
                self.records += 1;
                self.odd.unknown(kind, 1);
            }
        }
        Some(())
    }

    fn communicator(&mut self, fields: &mut Fields<'_>) -> Option<()> {
        let application = u32::try_from(fields.next()?).ok()?;
        let number = fields.next()?;
        fields.next()?;
        let mut tasks = Vec::new();
        while let Some(task) = fields.next() {
            tasks.push(u32::try_from(task).ok()?);
        }
        fields.bytes.is_empty().then(|| self.communicators.push(Communicator { application, number, tasks }))
    }

    fn record(&mut self, kind: u8, fields: &mut Fields<'_>, places: &Places) -> Option<()> {
        let thread = fields.thread(places)?;
        match kind {
            b'1' => {
                let [begin, end, kind] = [fields.time()?, fields.time()?, fields.next()?];
                self.records += 1;
                if thread == FOREIGN {
                    return self.wrong_thread(places);
                }
                self.in_order(begin);
                self.last = self.last.max(end);
                let state = State { begin, end, kind: i32::try_from(kind).unwrap_or(-1) };
                self.threads[thread as usize].state(state);
            }
            b'2' => {
                let time = fields.time()?;
                self.records += 1;
                if thread == FOREIGN {
                    return self.wrong_thread(places);
                }
                self.in_order(time);
                let records = &mut self.threads[thread as usize];
                records.line(time, || {
                    let number = fields.next()?;
                    let value = fields.next();
                    self.odd.no_values += u64::from(value.is_none());
                    // No recorder has larger types.
                    Some((u32::try_from(number).unwrap_or(0), value?))
                });
            }
            _ => {
                let sent = [fields.time()?, fields.time()?];
                let receiver = fields.thread(places)?;
                let received = [fields.time()?, fields.time()?];
                let [size, tag] = [fields.next()?, fields.next()?];
                self.records += 1;
                if thread == FOREIGN || receiver == FOREIGN {
                    return self.wrong_thread(places);
                }
                self.last = self.last.max(sent[1]).max(received[1]);
                self.messages.push(Message { sender: thread, receiver, sent, received, size, tag });
            }
        }
        Some(())
    }

    #[expect(clippy::unnecessary_wraps, reason = "it ends a line that could be read")]
    fn wrong_thread(&mut self, places: &Places) -> Option<()> {
        self.odd.wrong_threads += u64::from(!places.is_part);
        Some(())
    }
}

/// Numbers of a line, each after a colon.
struct Fields<'a> {
    bytes: &'a [u8],
}

impl Fields<'_> {
    /// The next number; `None` at the end of the line, or where no number is.
    #[inline]
    fn next(&mut self) -> Option<i64> {
        let (b':', mut rest) = self.bytes.split_first()? else { return None };
        let is_negative = rest.first() == Some(&b'-');
        if is_negative {
            rest = &rest[1..];
        }
        let mut number: u64 = 0;
        let mut length = 0;
        while let Some(digit) = rest.get(length).map(|byte| byte.wrapping_sub(b'0')).filter(|digit| *digit < 10) {
            // Twenty digits can be more than 64 bits.
            number = if length < 18 {
                number * 10 + u64::from(digit)
            } else {
                number.checked_mul(10)?.checked_add(u64::from(digit))?
            };
            length += 1;
        }
        if length == 0 {
            return None;
        }
        self.bytes = &rest[length..];
        // Counters that failed have values of 64 bits without a sign.
        let value = number.cast_signed();
        Some(if is_negative { value.wrapping_neg() } else { value })
    }

    /// The next number, if it can be a time.
    #[inline]
    fn time(&mut self) -> Option<i64> {
        self.next().filter(|time| (0..=MOST_TIME).contains(time))
    }

    /// The object of a record: its thread, or [`FOREIGN`].
    #[inline]
    fn thread(&mut self, places: &Places) -> Option<u32> {
        let [_, application, task, thread] = [self.next()?, self.next()?, self.next()?, self.next()?];
        Some(places.thread(application, task, thread).unwrap_or(FOREIGN))
    }
}

/// Reads all lines of `input`.
pub(crate) fn scan(mut input: impl Read, places: &Places) -> std::io::Result<Scanned> {
    let parts = rayon::current_num_threads();
    let mut all = Scanned::new(places);
    let mut block = Vec::with_capacity(BLOCK + (BLOCK >> 4));
    loop {
        let room = (BLOCK.saturating_sub(block.len())).max(BLOCK >> 4) as u64;
        let read = match input.by_ref().take(room).read_to_end(&mut block) {
            Ok(read) => read,
            // A compressed file that ends too early, or whose rest is damaged.
            Err(error) if is_damage(&error) => {
                all.block(&block, places, parts);
                all.is_cut = true;
                return Ok(all);
            }
            Err(error) => return Err(error),
        };
        if read == 0 {
            // The last line can be cut off and end nevertheless.
            let last = memchr::memrchr(b'\n', &block[..block.len().saturating_sub(1)]).map_or(0, |end| end + 1);
            if is_short(&block[last..]) {
                block.truncate(last);
                all.is_cut = true;
            }
            all.block(&block, places, parts);
            all.threads.iter_mut().for_each(Records::shrink);
            return Ok(all);
        }
        // All but the last line, whether it is whole or not.
        let end = memchr::memrchr(b'\n', &block).and_then(|end| memchr::memrchr(b'\n', &block[..end]));
        if let Some(end) = end {
            all.block(&block[..=end], places, parts);
            block.drain(..=end);
        }
    }
}

/// Whether a record has fewer fields than it must have.
fn is_short(line: &[u8]) -> bool {
    let line = line.trim_ascii_end();
    let fields = line.split(|byte| *byte == b':').count();
    let least = match line {
        [b'1' | b'2', b':', ..] => 8,
        [b'3', b':', ..] => 15,
        _ => return false,
    };
    // Each type of events has a value.
    fields < least || line[0] == b'2' && fields % 2 != 0 || line.ends_with(b":")
}

/// Whether an error is that compressed data end too early, or are damaged.
pub(crate) fn is_damage(error: &std::io::Error) -> bool {
    use std::io::ErrorKind;
    matches!(error.kind(), ErrorKind::UnexpectedEof | ErrorKind::InvalidData | ErrorKind::InvalidInput)
}

impl Scanned {
    /// Adds the lines of a block, read in parts.
    fn block(&mut self, block: &[u8], places: &Places, parts: usize) {
        for part in map(divide(block, parts), |part| Self::scan(part, places)) {
            self.append(part);
        }
    }
}

/// Lines in `parts` parts of about the same length.
fn divide(mut bytes: &[u8], parts: usize) -> Vec<&[u8]> {
    let mut divided = Vec::with_capacity(parts);
    for left in (1..=parts).rev() {
        let from = bytes.len() / left;
        let end = memchr(b'\n', &bytes[from..]).map_or(bytes.len(), |end| from + end + 1);
        let (part, rest) = bytes.split_at(end);
        divided.push(part);
        bytes = rest;
    }
    divided
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn of_block(block: &[u8], places: &Places, parts: usize) -> Scanned {
        let mut scanned = Scanned::new(places);
        scanned.block(block, places, parts);
        scanned
    }

    fn places() -> Places {
        Places::new(&Header::read("#Paraver (1):9_ns:0:2:2(1:1,2:1),1(1:1)").unwrap(), false)
    }

    #[test]
    fn records_are_read() {
        let lines = b"1:9:1:2:2:5:7:15\r\n2:1:1:1:1:3:50000001:-2:42:18446744073709551615:7\n\n\
            3:1:1:1:1:1:2:2:1:2:1:3:4:8:0\n3:1:1:1:1:1:2:1:3:1:1:3:4:8:0\n4:1:1\nc:1:2:2:1:2\n#x\n2:1:1\n1:1:1:1:1:2:3:1";
        for parts in [1, 2, 7] {
            let scanned = of_block(lines, &places(), parts);
            let states: Vec<State> = scanned.threads[2].states().collect();
            assert_eq!(states, [State { begin: 5, end: 7, kind: 15 }]);
            let lines = scanned.threads[0].lines().map(|line| (line.time, line.pairs().collect()));
            let lines: Vec<(i64, Vec<(u32, i64)>)> = lines.collect();
            assert_eq!(lines, [(3, vec![(50_000_001, -2), (42, -1)])]);
            let message = Message { sender: 0, receiver: 1, sent: [1, 2], received: [3, 4], size: 8, tag: 0 };
            assert_eq!(scanned.messages, [message], "{parts}");
            assert_eq!(scanned.communicators[0].tasks, [1, 2]);
            assert_eq!(scanned.comments, ["x"]);
            let odd = Odd {
                unreadable: 1,
                first_unreadable: 9,
                unknown: vec![(b'4', 1)],
                wrong_threads: 1,
                no_values: 1,
                unordered: 1,
            };
            assert_eq!((scanned.odd, scanned.is_cut, scanned.lines, scanned.records), (odd, true, 9, 5));
        }
    }

    proptest! {
        #[test]
        fn any_bytes_can_be_read(bytes in prop::collection::vec(prop::sample::select(b"123456789:-\n#c".to_vec()), 0..300)) {
            let one = of_block(&bytes, &places(), 1);
            let seven = of_block(&bytes, &places(), 7);
            prop_assert_eq!(one.odd.clone(), seven.odd);
            prop_assert_eq!((one.lines, one.records, one.messages), (seven.lines, seven.records, seven.messages));
        }
    }
}
