//! Functions of Python on the stack of an interrupted thread.
//!
//! The interpreter may be in the middle of making a frame, so what its list of frames leads to is read by the kernel, which refuses where there is no
//! memory. Code objects that a file of samples does not have yet are copied to it at once: they may be gone soon.

use super::kernel;
use super::store::{DEEPEST, LONGEST, MOST_CODES, Store};
use crate::format::{Node, SampledCode};
use crate::python::{FILE_NAME, Interpreter, LENGTH, OWN, QUALIFIED_NAME, STATE, TAG, TYPE};

/// Places in the table of code objects, and how many of them may hold one.
const PLACES: usize = 1024;
const PROBES: usize = 8;
/// Bytes that are kept of the name of a function, and of its file.
const NAME: usize = LONGEST / 3;
const FILE: usize = LONGEST - NAME;
/// Bytes of a frame that have all that is needed of it.
const FRAME: usize = 96;

/// Functions of Python of a thread.
pub(super) struct Functions {
    /// Code objects by address, each with the address of its name, and its number in the file.
    known: Box<[(usize, usize, u32)]>,
    count: u32,
    /// Addresses of code objects, the innermost first; then what is read of them.
    codes: Box<[usize]>,
    words: Box<[[usize; 2]]>,
    parts: Box<[[usize; 2]]>,
    /// As they stand in the tree of paths.
    pub(super) found: Box<[u64]>,
}

impl Functions {
    /// None yet. The lists are made where they stay: the stack of the thread may be small.
    pub(super) fn new() -> Self {
        Self {
            known: vec![(0, 0, 0); PLACES].into(),
            count: 0,
            codes: vec![0; DEEPEST].into(),
            words: vec![[0; 2]; DEEPEST].into(),
            parts: vec![[0; 2]; 2 * DEEPEST].into(),
            found: vec![0; DEEPEST].into(),
        }
    }

    /// Forgets all: another file begins.
    pub(super) fn reset(&mut self) {
        self.known.fill((0, 0, 0));
        self.count = 0;
    }

    /// Finds the functions that the thread is in; returns how many they are, and whether they are all.
    ///
    /// # Safety
    /// For the thread's handler only, which has found that the store has room.
    pub(super) unsafe fn read(&mut self, interpreter: &Interpreter, store: &Store) -> (usize, bool) {
        let (count, mut is_whole) = self.list(interpreter);
        for at in 0..count {
            self.parts[2 * at] = [self.codes[at] + TYPE, 8];
            self.parts[2 * at + 1] = [self.codes[at] + QUALIFIED_NAME, 8];
        }
        let parts = self.parts.get(..2 * count).unwrap_or_default();
        let read = kernel::read(parts, self.words.as_mut_ptr().cast(), 16 * count) / 16;
        is_whole &= read == count;
        let (mut found, mut new) = (0, 0);
        for at in 0..read {
            let [kind, name] = self.words[at];
            if kind != interpreter.code_type {
                is_whole = false;
                continue;
            }
            let code = self.codes[at];
            let number = match self.number(code, name) {
                Ok(number) => number,
                Err(_) if new == MOST_CODES => {
                    is_whole = false;
                    continue;
                }
                Err(place) => {
                    new += 1;
                    self.count += 1;
                    self.known[place] = (code, name, self.count);
                    // SAFETY: so the caller says.
                    unsafe { describe(interpreter, code, name, self.count, store) };
                    self.count
                }
            };
            self.found[found] = Node::PYTHON | u64::from(number);
            found += 1;
        }
        (found, is_whole)
    }

    /// Lists the code objects of the thread's frames.
    fn list(&mut self, interpreter: &Interpreter) -> (usize, bool) {
        let layout = interpreter.layout;
        let mut count = 0;
        let mut frame = interpreter.thread().and_then(|thread| {
            let frame = word(thread + layout.frame)?;
            match layout.via {
                Some(via) if frame != 0 => word(frame + via),
                _ => Some(frame),
            }
        });
        while let Some(at) = frame.filter(|frame| *frame != 0) {
            let mut bytes = [0_u8; FRAME];
            if count == DEEPEST || !bytes_at(at, &mut bytes) {
                return (count, false);
            }
            let word = |offset: usize| usize::from_le_bytes(std::array::from_fn(|byte| bytes[offset + byte]));
            let code = word(layout.code) & !TAG;
            if bytes[layout.owner] < OWN && code != 0 {
                self.codes[count] = code;
                count += 1;
            }
            frame = Some(word(layout.previous));
        }
        (count, frame.is_some())
    }

    /// The number of a code object, or else where it belongs in the table.
    fn number(&self, code: usize, name: usize) -> Result<u32, usize> {
        let first = (code >> 4).wrapping_mul(0x9e37_79b9) % PLACES;
        let places = || (0..PROBES).map(|probe| (first + probe) % PLACES);
        if let Some(place) = places().find(|place| (self.known[*place].0, self.known[*place].1) == (code, name)) {
            return Ok(self.known[place].2);
        }
        // What was at the same address is gone; where all places are taken, one has to go.
        Err(places().find(|place| [0, code].contains(&self.known[*place].0)).unwrap_or(first))
    }
}

/// Copies bytes, if they are there.
fn bytes_at(address: usize, to: &mut [u8]) -> bool {
    kernel::read(&[[address, to.len()]], to.as_mut_ptr(), to.len()) == to.len()
}

fn word(address: usize) -> Option<usize> {
    let mut bytes = [0; 8];
    bytes_at(address, &mut bytes).then(|| usize::from_le_bytes(bytes))
}

/// Writes a code object to the file.
///
/// # Safety
/// As [`Functions::read`].
unsafe fn describe(interpreter: &Interpreter, code: usize, name: usize, id: u32, store: &Store) {
    let mut text = [0_u8; NAME + FILE];
    let mut line = [0; 4];
    let line = if bytes_at(code + interpreter.layout.line, &mut line) { u32::from_le_bytes(line) } else { 0 };
    let (head, rest) = text.split_at_mut(NAME);
    let name = string(interpreter, name, head);
    let file = word(code + FILE_NAME).map_or((0, 1), |file| string(interpreter, file, rest));
    // One behind the other.
    text.copy_within(NAME..NAME + file.0, name.0);
    let described = SampledCode {
        head: 0,
        id,
        line,
        lengths: [name.0 as u32, file.0 as u32],
        widths: [name.1, file.1],
        unused: [0; 4],
    };
    // SAFETY: so the caller says.
    unsafe { store.write_code(described, text.get(..name.0 + file.0).unwrap_or_default()) };
}

/// Copies the beginning of a string of the interpreter; returns its length in bytes, and the bytes of a character.
fn string(interpreter: &Interpreter, at: usize, to: &mut [u8]) -> (usize, u32) {
    let (Some(length), Some(state)) = (word(at + LENGTH), word(at + STATE)) else { return (0, 1) };
    let (width, is_compact, is_ascii) = (state >> 2 & 7, state >> 5 & 1 == 1, state >> 6 & 1 == 1);
    let characters = at + if is_ascii { interpreter.layout.ascii } else { interpreter.layout.compact };
    if !is_compact || ![1, 2, 4].contains(&width) {
        return (0, 1);
    }
    let bytes = length.saturating_mul(width).min(to.len());
    let is_there = to.get_mut(..bytes).is_some_and(|to| bytes_at(characters, to));
    (if is_there { bytes } else { 0 }, width as u32)
}
