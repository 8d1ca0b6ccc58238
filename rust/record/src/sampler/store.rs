//! The file of a thread's samples, written in its signal handler. The helper gets it new chunks.

use crate::format::{
    Extension, Mechanism, Node, Nodes, SAMPLES_CHUNK, SLOT, Sample, SampledCode, TEXT, Text, extension,
};
use crate::spool::{self, Chunk, Slots};
use std::cell::UnsafeCell;
use std::ptr;
use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, AtomicPtr, AtomicU64, Ordering};

/// A path has its innermost frames, so many.
pub(super) const DEEPEST: usize = 256;
/// Nodes that a sample may add: frames, and functions of Python.
pub(super) const MOST_NODES: usize = 2 * DEEPEST;
/// Slots that a sample may need.
const MOST: usize = (MOST_NODES.div_ceil(3) + 1 + MOST_CODES * (1 + LONGEST.div_ceil(TEXT))) * SLOT;
/// Functions of Python that a sample may add, and the longest text of one.
pub(super) const MOST_CODES: usize = 24;
pub(super) const LONGEST: usize = 768;

/// A file of samples: its end belongs to the thread, the rest is shared with the helper.
pub(super) struct Store {
    pub(super) number: u32,
    pub(super) mechanism: Mechanism,
    file: Mutex<Slots>,
    /// The next chunk, once the helper has it ready, and the one before the present, for the helper to unmap.
    next: AtomicPtr<u8>,
    full: AtomicPtr<u8>,
    /// The thread would like another chunk.
    asks: AtomicBool,
    end: UnsafeCell<End>,
}

/// Where the thread writes.
struct End {
    chunk: *mut u8,
    cursor: *mut u8,
    /// Samples since the last one that found no room.
    lost: u32,
    /// All samples so far.
    written: u64,
}

// SAFETY: `end` is the thread's, or nobody's.
unsafe impl Sync for Store {}
// SAFETY: as above.
unsafe impl Send for Store {}

fn chunk_at(address: *mut u8) -> Chunk {
    Chunk { address, size: SAMPLES_CHUNK }
}

impl Store {
    /// The file of the thread with a number, and its first chunk.
    pub(super) fn create(number: u32, mechanism: Mechanism, period: u64) -> Result<Self, spool::Stop> {
        let spool = spool::get().ok_or_else(|| spool::Stop::Error(std::io::ErrorKind::NotFound.into()))?;
        let mut file = Slots::of_samples(spool, number, mechanism, period).map_err(spool::Stop::Error)?;
        let chunk = file.chunk(spool)?;
        spool::populate(chunk);
        let (chunk, null) = (chunk.address, ptr::null_mut());
        Ok(Self {
            number,
            mechanism,
            file: Mutex::new(file),
            next: AtomicPtr::new(null),
            full: AtomicPtr::new(null),
            asks: AtomicBool::new(false),
            end: UnsafeCell::new(End { chunk, cursor: chunk, lost: 0, written: 0 }),
        })
    }

    /// A store that has room for nothing.
    #[cfg(test)]
    pub(super) fn nowhere() -> Self {
        let null = ptr::null_mut();
        Self {
            number: 0,
            mechanism: Mechanism::Timer,
            file: Mutex::new(Slots::nowhere()),
            next: AtomicPtr::new(null),
            full: AtomicPtr::new(null),
            asks: AtomicBool::new(false),
            end: UnsafeCell::new(End { chunk: null, cursor: null, lost: 0, written: 0 }),
        }
    }

    /// How many samples were written.
    pub(super) fn written(&self) -> u64 {
        // SAFETY: of this thread.
        unsafe { (*self.end.get()).written }
    }

    /// Whether there is room for a sample; if not, it counts as lost.
    ///
    /// # Safety
    /// For the thread's handler only.
    pub(super) unsafe fn has_room(&self) -> bool {
        // SAFETY: so the caller says.
        let end = unsafe { &mut *self.end.get() };
        let left = (end.chunk as usize + SAMPLES_CHUNK).saturating_sub(end.cursor as usize);
        if left < MOST + SAMPLES_CHUNK / 4 {
            self.asks.store(true, Ordering::Relaxed);
        }
        let has_room = left >= MOST || !self.next.load(Ordering::Acquire).is_null();
        end.lost = end.lost.saturating_add(u32::from(!has_room));
        has_room
    }

    /// Writes new nodes and a sample.
    ///
    /// # Safety
    /// For the thread's handler only, which has found that there is room.
    pub(super) unsafe fn write(&self, nodes: &[Node], flags: u8, sample: Sample) {
        // SAFETY: so the caller says.
        let end = unsafe { &mut *self.end.get() };
        for nodes in nodes.chunks(3) {
            let mut items = [Node::default(); 3];
            for (item, node) in items.iter_mut().zip(nodes) {
                *item = *node;
            }
            self.put(end, extension(Extension::Nodes, nodes.len() as u8), Nodes { head: 0, unused: 0, items });
        }
        let lost = std::mem::take(&mut end.lost);
        self.put(end, extension(Extension::Sample, flags), Sample { lost, ..sample });
        end.written += 1;
    }

    /// Writes a function of Python with its text.
    ///
    /// # Safety
    /// As [`Self::write`].
    pub(super) unsafe fn write_code(&self, code: SampledCode, text: &[u8]) {
        // SAFETY: so the caller says.
        let end = unsafe { &mut *self.end.get() };
        let slots = text.chunks(TEXT);
        self.put(end, extension(Extension::SampledCode, slots.len() as u8), code);
        for part in slots {
            let mut bytes = [0; TEXT];
            for (to, from) in bytes.iter_mut().zip(part) {
                *to = *from;
            }
            self.put(end, extension(Extension::Text, 0), Text { head: 0, bytes });
        }
    }

    /// Writes a slot, whose head comes last.
    fn put<T>(&self, end: &mut End, head: u64, content: T) {
        const { assert!(size_of::<T>() == SLOT) };
        if end.cursor as usize >= end.chunk as usize + SAMPLES_CHUNK {
            let next = self.next.swap(ptr::null_mut(), Ordering::AcqRel);
            if next.is_null() {
                return;
            }
            self.full.store(end.chunk, Ordering::Release);
            (end.chunk, end.cursor) = (next, next);
        }
        let slot = end.cursor;
        // SAFETY: a slot of the chunk, which is zero; all kinds begin with their head.
        unsafe {
            slot.cast::<T>().write(content);
            AtomicU64::from_ptr(slot.cast()).store(head, Ordering::Release);
        }
        end.cursor = slot.wrapping_add(SLOT);
    }

    /// Has the next chunk ready if it is wanted; for the helper.
    pub(super) fn prepare(&self) {
        if !self.asks.swap(false, Ordering::Relaxed) || !self.next.load(Ordering::Relaxed).is_null() {
            return;
        }
        let mut file = self.file.lock().unwrap_or_else(std::sync::PoisonError::into_inner);
        let full = self.full.swap(ptr::null_mut(), Ordering::AcqRel);
        if !full.is_null() {
            spool::unmap(chunk_at(full));
        }
        // What fails is tried again when it is asked for again; meanwhile samples are lost, and counted.
        if let Some(Ok(chunk)) = spool::get().map(|spool| file.chunk(spool)) {
            spool::populate(chunk);
            self.next.store(chunk.address, Ordering::Release);
        }
    }

    /// Cuts the file after what was written: the thread has ended, and nobody else uses it.
    pub(super) fn close(self) {
        let Self { file, next, full, end, .. } = self;
        let End { chunk, cursor, .. } = end.into_inner();
        let mut unused = (chunk as usize + SAMPLES_CHUNK).saturating_sub(cursor as usize);
        let next = next.into_inner();
        unused += if next.is_null() { 0 } else { SAMPLES_CHUNK };
        [chunk, next, full.into_inner()].into_iter().filter(|chunk| !chunk.is_null()).for_each(|chunk| {
            spool::unmap(chunk_at(chunk));
        });
        file.into_inner().unwrap_or_else(std::sync::PoisonError::into_inner).close(unused);
    }
}
