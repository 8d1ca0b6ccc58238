//! Samples of a thread: what occurs in its file, the functions they were in, and one after the other as they are written.

use std::collections::BTreeMap;
use std::fs::File;
use std::io::{ErrorKind, Read};
use std::path::Path;

use rustc_hash::{FxHashMap, FxHashSet};

use crate::error::{Error, Result};
use crate::format::{self, Extension, Mechanism, SLOT, sample};
use crate::paths::{Leaf, Paths};
use crate::spool::{Fields, Slot, Slots, extension, word};
use crate::survey::Node;

/// A sample.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Sample {
    pub(crate) time: u64,
    /// What called the function, in the tree of the samples.
    pub(crate) node: u32,
    /// The place in the function, and one more.
    pub(crate) address: u64,
    pub(crate) flags: u8,
    /// CPU time of the thread.
    pub(crate) cpu: u64,
    /// [`COUNTS`], of each the low half.
    pub(crate) counts: [u32; COUNTS],
    pub(crate) lost: u32,
}

/// Counts that come with a sample: CPU time in the kernel, two kinds of page faults and of context switches.
pub(crate) const COUNTS: usize = 5;

impl Sample {
    fn of(slot: &Slot) -> Option<Self> {
        let (kind, flags) = extension(slot)?;
        let half = |number: usize| (word(slot, 5 + number / 2) >> (32 * (number % 2))) as u32;
        (kind == Extension::Sample as u8).then(|| Self {
            time: word(slot, 1),
            node: word(slot, 2) as u32,
            address: word(slot, 3),
            flags: flags as u8,
            cpu: word(slot, 4),
            counts: std::array::from_fn(half),
            lost: half(COUNTS),
        })
    }

    /// Whether it has a flag.
    pub(crate) fn is(&self, flag: u8) -> bool {
        self.flags & flag != 0
    }

    /// Where it was: the path and the place in the function.
    pub(crate) fn key(&self) -> (u32, u64) {
        (self.node, self.address)
    }
}

/// What the samples of a thread are, by a first look at all.
#[derive(Debug, Default)]
pub(crate) struct Sampled {
    /// [`Mechanism`]
    pub(crate) is_perf: bool,
    /// Mean CPU time from one to the next, in ns.
    pub(crate) period: u64,
    /// Number of slots that make sense.
    pub(crate) slots: u64,
    pub(crate) samples: u64,
    /// CPU time from the first to the last, in ns.
    pub(crate) cpu: u64,
    /// Samples of page faults, which are no samples of time.
    pub(crate) faults: u64,
    pub(crate) incomplete: u64,
    pub(crate) late: u64,
    pub(crate) lost: u64,
    pub(crate) nodes: Vec<Node>,
    /// Functions of Python: number, name, file, and line.
    pub(crate) codes: Vec<(u32, String, String, u32)>,
    /// Where samples were, each with the time when it was first seen; and places in calls.
    pub(crate) places: FxHashMap<(u32, u64), u64>,
    pub(crate) in_calls: FxHashMap<u64, u64>,
    pub(crate) damage: Option<String>,
}

impl Sampled {
    pub(crate) fn read(path: &Path) -> Result<Self> {
        let root = Node { address: 0, parent: 0, time: 0 };
        let mut header = [0; size_of::<format::SamplesHeader>()];
        let is_whole = File::open(path).and_then(|mut file| match file.read_exact(&mut header) {
            Err(error) if error.kind() == ErrorKind::UnexpectedEof => Ok(false),
            read => read.map(|()| true),
        });
        if !is_whole.map_err(Error::io(path))? {
            let damage = Some(format!("{}, byte 0: the header is not whole", path.display()));
            return Ok(Self { damage, nodes: vec![root], period: 1, ..Self::default() });
        }
        let mut fields = Fields(&header[size_of::<format::FileHeader>()..]);
        let mechanism = fields.u32().unwrap_or(0);
        let period = fields.u32().and_then(|_| fields.u64()).unwrap_or(0).max(1);
        let is_perf = mechanism == Mechanism::Perf as u32;
        let mut sampled = Self { is_perf, period, nodes: vec![root], ..Self::default() };
        let mut slots = Slots::open(path)?;
        let (mut first, mut pending) = (None, 1);
        while let Some(slot) = slots.next()? {
            let fine = if let Some(sample) = Sample::of(slot) {
                let is_known = (sample.node as usize) < sampled.nodes.len();
                if is_known {
                    for node in &mut sampled.nodes[pending..] {
                        node.time = sample.time;
                    }
                    pending = sampled.nodes.len();
                    sampled.add(&sample, *first.get_or_insert(sample.cpu));
                }
                is_known
            } else if let Some(mut code) = Code::of(slot) {
                let mut is_whole = true;
                let mut count = 1;
                while is_whole && !code.is_whole() {
                    is_whole = slots.next()?.is_some_and(|slot| code.add(slot));
                    count += u64::from(is_whole);
                }
                if is_whole {
                    sampled.codes.push(code.described());
                    sampled.slots += count - 1;
                }
                is_whole
            } else {
                sampled.extend(slot)
            };
            if !fine {
                sampled.damage = Some(format!("{}: it is no sample", slots.place()));
                break;
            }
            sampled.slots += 1;
        }
        Ok(sampled)
    }

    fn add(&mut self, sample: &Sample, first: u64) {
        if sample.is(sample::FAULT) {
            self.faults += 1;
        } else {
            self.samples += 1;
            self.cpu = sample.cpu.saturating_sub(first);
        }
        self.lost += u64::from(sample.lost);
        self.late += u64::from(sample.is(sample::LATE));
        if sample.is(sample::INSIDE) {
            self.in_calls.entry(sample.address).or_insert(sample.time);
        } else {
            // On a stack of its own, nothing was to be found.
            self.incomplete += u64::from(sample.flags & (sample::INCOMPLETE | sample::OWN_STACK) == sample::INCOMPLETE);
            self.places.entry(sample.key()).or_insert(sample.time);
        }
    }

    /// Adds nodes; false if they are not the next ones.
    fn extend(&mut self, slot: &Slot) -> bool {
        let Some((kind, items)) = extension(slot) else { return false };
        let mut all = kind == Extension::Nodes as u8;
        for item in 0..items.min(3) {
            let (address, numbers) = (word(slot, 2 + 2 * item), word(slot, 3 + 2 * item));
            let (number, parent) = (numbers as u32 as usize, (numbers >> 32) as u32);
            all &= number == self.nodes.len() && (parent as usize) < number;
            if all {
                self.nodes.push(Node { address, parent, time: 0 });
            }
        }
        all
    }
}

/// A function of Python as a file describes it.
struct Code {
    id: u32,
    line: u32,
    lengths: [usize; 2],
    widths: [u32; 2],
    text: Vec<u8>,
}

impl Code {
    fn of(slot: &Slot) -> Option<Self> {
        let (kind, _) = extension(slot)?;
        let half = |number: usize| (word(slot, 1 + number / 2) >> (32 * (number % 2))) as u32;
        (kind == Extension::SampledCode as u8).then(|| Self {
            id: half(0),
            line: half(1),
            lengths: [half(2) as usize, half(3) as usize],
            widths: [half(4), half(5)],
            text: Vec::new(),
        })
    }

    fn is_whole(&self) -> bool {
        self.text.len() >= self.lengths[0].saturating_add(self.lengths[1])
    }

    /// Adds a slot of text; false if it is another.
    fn add(&mut self, slot: &Slot) -> bool {
        let is_text = extension(slot).is_some_and(|(kind, _)| kind == Extension::Text as u8);
        self.text.extend(slot.iter().skip(SLOT - format::TEXT));
        is_text
    }

    fn described(&self) -> (u32, String, String, u32) {
        let (name, rest) = self.text.split_at(self.lengths[0]);
        let text = |bytes: &[u8], width: u32| -> String {
            let characters = bytes.chunks_exact(width.clamp(1, 4) as usize).map(|bytes| {
                let number = bytes.iter().rev().fold(0_u32, |number, byte| number << 8 | u32::from(*byte));
                char::from_u32(number).unwrap_or(char::REPLACEMENT_CHARACTER)
            });
            characters.collect()
        };
        let [first, second] = self.widths;
        (self.id, text(name, first), text(&rest[..self.lengths[1]], second), self.line)
    }
}

/// Samples of a thread with their functions.
#[derive(Debug, Default)]
pub(crate) struct Symbolized {
    pub(crate) paths: Paths,
    /// By node and address.
    pub(crate) leaves: FxHashMap<(u32, u64), Leaf>,
    /// Names of places in calls, with their strings in the archive.
    pub(crate) spots: BTreeMap<u64, (String, u32)>,
    /// Those paths that do not begin where the thread does.
    pub(crate) partial: FxHashSet<u32>,
    /// What interrupted the thread, in the archive: the clock, and page faults.
    pub(crate) generators: [u32; 2],
    pub(crate) slots: u64,
}

/// The samples of a thread, one after the other.
#[derive(Debug)]
pub(crate) struct Reader {
    slots: Slots,
    left: u64,
    next: Option<Sample>,
}

impl Reader {
    /// Begins before the first of so many slots.
    pub(crate) fn open(path: &Path, left: u64) -> Result<Self> {
        let mut reader = Self { slots: Slots::open(path)?, left, next: None };
        reader.advance()?;
        Ok(reader)
    }

    fn advance(&mut self) -> Result<()> {
        self.next = None;
        while self.next.is_none() && self.left > 0 {
            self.left -= 1;
            let Some(slot) = self.slots.next()? else { break };
            self.next = Sample::of(slot);
        }
        Ok(())
    }

    /// The next sample, if it is not after a time.
    #[inline]
    pub(crate) fn until(&mut self, time: u64) -> Result<Option<Sample>> {
        let next = self.next.filter(|sample| sample.time <= time);
        if next.is_some() {
            self.advance()?;
        }
        Ok(next)
    }
}
