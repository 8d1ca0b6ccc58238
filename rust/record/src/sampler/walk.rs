//! The call path of an interrupted thread, found in its signal handler: without a lock, an allocation, the loader, or a read outside of the thread's
//! stack.

use super::kernel;
use super::python::Functions;
use super::store::{DEEPEST, MOST_NODES, Store};
use crate::format::{Node, sample};
use crate::modules::{self, Modules};
use crate::python::{self, Interpreter};
use crate::unwind;
use framehop::{CacheNative, FrameAddress, MustNotAllocateDuringUnwind, UnwindRegsNative, Unwinder};
use std::mem::offset_of;
use std::ops::Range;
use std::sync::atomic::{AtomicUsize, Ordering::Relaxed};

/// Frames that are kept where the interpreter of Python itself was interrupted: they tell what it did.
const OF_INTERPRETER: usize = 4;
/// Places in the table of nodes; half of them are used.
const PLACES: usize = 1 << 17;

/// Where signal handlers of the program return to.
static RESTORER: AtomicUsize = AtomicUsize::new(0);

/// Takes the return address of signal handlers from that of a signal that was set by the C library.
pub(super) fn learn_restorer(signal: std::ffi::c_int) {
    RESTORER.store(kernel::action(signal).restorer, Relaxed);
}

/// Registers of the interrupted thread.
#[derive(Clone, Copy)]
pub(super) struct Place {
    pub(super) address: usize,
    pub(super) sp: usize,
    pub(super) fp: usize,
}

impl Place {
    pub(super) fn of(context: &libc::ucontext_t) -> Self {
        let register = |number: libc::c_int| context.uc_mcontext.gregs[number as usize] as usize;
        Self { address: register(libc::REG_RIP), sp: register(libc::REG_RSP), fp: register(libc::REG_RBP) }
    }
}

/// The call paths of a thread.
pub(super) struct Walker {
    cache: CacheNative<MustNotAllocateDuringUnwind>,
    /// Return addresses, the innermost first.
    frames: Box<[u64]>,
    functions: Functions,
    /// Nodes that were found last by how far from the outermost they are.
    last: Box<[Node]>,
    /// Nodes by parent and address: open addressing.
    places: &'static mut [Node],
    count: u32,
    /// Nodes that the last walk added, and how many.
    pub(super) added: Box<[Node]>,
    pub(super) added_count: usize,
}

impl Walker {
    /// A walker; none if there is no memory.
    pub(super) fn new() -> Option<Self> {
        const LENGTH: usize = PLACES * size_of::<Node>();
        const PROTECTION: libc::c_int = libc::PROT_READ | libc::PROT_WRITE;
        const KIND: libc::c_int = libc::MAP_PRIVATE | libc::MAP_ANONYMOUS | libc::MAP_NORESERVE;
        // SAFETY: a new mapping.
        let table = unsafe { libc::mmap(std::ptr::null_mut(), LENGTH, PROTECTION, KIND, -1, 0) };
        if table == libc::MAP_FAILED {
            return None;
        }
        // SAFETY: the mapping is that long, zero, and only this refers to it.
        let places = unsafe { std::slice::from_raw_parts_mut(table.cast(), PLACES) };
        // Made where they stay: the stack of the thread may be small.
        let (frames, added) = (vec![0; DEEPEST].into(), vec![Node::default(); MOST_NODES].into());
        Some(Self {
            cache: CacheNative::new_in(),
            frames,
            functions: Functions::new(),
            last: vec![Node::default(); DEEPEST].into(),
            places,
            count: 0,
            added,
            added_count: 0,
        })
    }

    /// Forgets all paths: the thread that has ended leaves its walker to another.
    pub(super) fn reset(&mut self) {
        self.count = 0;
        self.functions.reset();
        self.last.fill(Node::default());
        // SAFETY: private memory, which becomes zero.
        unsafe { libc::madvise(self.places.as_mut_ptr().cast(), size_of_val(self.places), libc::MADV_DONTNEED) };
    }

    /// The node of what called the function that was interrupted, by the thread's stack, and flags of the sample.
    /// Functions of Python that are new go to the store.
    ///
    /// # Safety
    /// For the thread's handler only, which has found that the store has room.
    pub(super) unsafe fn walk(&mut self, place: Place, stack: &Range<usize>, store: &Store) -> (u32, u8) {
        self.added_count = 0;
        if !stack.contains(&place.sp) {
            return (0, sample::OWN_STACK | sample::INCOMPLETE);
        }
        let Some(modules) = modules::current() else { return (0, sample::INCOMPLETE) };
        let (count, is_whole) = self.follow(modules, place, stack.end);
        let interpreter = python::interpreter().map(|found| (found, self.in_interpreter(found, place.address, count)));
        let (interpreter, inner, outer) = match interpreter {
            Some((interpreter, Some((inner, outer)))) => (interpreter, inner, outer),
            // The frames end before they come to the interpreter, whose functions are around them all the same.
            Some((interpreter, None)) if !is_whole => (interpreter, count, count),
            _ => {
                let (node, is_known) = self.path(0, 0..count, false);
                return (node, if is_whole && is_known { 0 } else { sample::INCOMPLETE });
            }
        };
        // SAFETY: so the caller says.
        let (functions, are_all) = unsafe { self.functions.read(interpreter, store) };
        let (around, first) = self.path(0, outer..count, false);
        let (innermost, second) = self.path(around, 0..functions, true);
        let (node, third) = self.path(innermost, 0..inner, false);
        (node, if is_whole && are_all && first && second && third { 0 } else { sample::INCOMPLETE })
    }

    /// Of so many frames, those that lie within the innermost one of the interpreter (of itself, some), and from where on those lie that are around
    /// its outermost.
    fn in_interpreter(&self, interpreter: &Interpreter, address: usize, count: usize) -> Option<(usize, usize)> {
        let frames = self.frames.get(..count)?;
        let is_of = |frame: &u64| interpreter.range.contains(&(*frame as usize).wrapping_sub(1));
        let outer = frames.iter().rposition(is_of).map(|at| at + 1);
        let inner = frames.iter().position(is_of);
        if interpreter.range.contains(&address) {
            let outer = outer.unwrap_or(0);
            Some((outer.min(OF_INTERPRETER), outer))
        } else {
            inner.zip(outer)
        }
    }

    /// The node of frames, or of functions of Python, below another node: their places in the list, the innermost first. Whether all could be added.
    fn path(&mut self, around: u32, places: Range<usize>, in_python: bool) -> (u32, bool) {
        // As in the tree of calls, many equal frames in a row are a few.
        let (mut node, mut last, mut equal) = (around, 0, 0_u8);
        for (step, at) in places.rev().enumerate() {
            let list = if in_python { &self.functions.found } else { &self.frames };
            let address = list.get(at).copied().unwrap_or(0);
            equal = if address == last { equal.saturating_add(1) } else { 1 };
            last = address;
            if equal > unwind::EQUAL {
                continue;
            }
            // Most paths begin as the one before.
            let known = self.last.get(step).filter(|known| (known.parent, known.address) == (node, address));
            if let Some(known) = known {
                node = known.node;
                continue;
            }
            let Some(found) = self.node(node, address) else { return (node, false) };
            if let Some(place) = self.last.get_mut(step) {
                *place = Node { address, node: found, parent: node };
            }
            node = found;
        }
        (node, true)
    }

    /// Follows the stack; returns how many return addresses there are, and whether they are all.
    fn follow(&mut self, modules: &Modules, place: Place, end: usize) -> (usize, bool) {
        let Self { cache, frames, .. } = self;
        // What lies below is not in use.
        let used = place.sp..end;
        let mut read = |from: u64| {
            let from = from as usize;
            if used.contains(&from) && used.end - from >= 8 {
                // SAFETY: on the part of the thread's stack that is in use.
                Ok(unsafe { (from as *const u64).read_unaligned() })
            } else {
                Err(())
            }
        };
        let restorer = RESTORER.load(Relaxed);
        let mut registers = UnwindRegsNative::new(place.address as u64, place.sp as u64, place.fp as u64);
        let mut lookup = FrameAddress::from_instruction_pointer(place.address as u64);
        let mut count = 0;
        // Mostly, the next frame is in the same object.
        let mut object = 0..0;
        loop {
            let before = registers.sp();
            let next = match modules.unwinder.unwind_frame(lookup, &mut registers, cache, &mut read) {
                Ok(None) => return (count, true),
                Ok(Some(next)) => next,
                Err(_) => return (count, false),
            };
            // A frame that is no further out would be followed by the same ones for ever.
            let is_stuck = count > 0 && registers.sp() <= before;
            if is_stuck || count == DEEPEST {
                return (count, false);
            }
            let call = (next as usize).wrapping_sub(1);
            if !object.contains(&call) {
                let Some(found) = modules.range_of(call) else { return (count, false) };
                object = found;
            }
            if next as usize == restorer {
                // A handler of the program was interrupted: what the kernel has stored tells where its signal came.
                let Some(interrupted) = interrupted(registers.sp(), &mut read) else { return (count, false) };
                frames[count] = interrupted.address as u64 + 1;
                registers =
                    UnwindRegsNative::new(interrupted.address as u64, interrupted.sp as u64, interrupted.fp as u64);
                lookup = FrameAddress::from_instruction_pointer(interrupted.address as u64);
            } else {
                let Some(address) = FrameAddress::from_return_address(next) else { return (count, false) };
                frames[count] = next;
                lookup = address;
            }
            count += 1;
        }
    }

    /// The child of a node with an address; none if the table is full.
    fn node(&mut self, parent: u32, address: u64) -> Option<u32> {
        let at = unwind::Tree::find(self.places, parent, address);
        let place = self.places.get_mut(at)?;
        if place.node == 0 {
            if self.count as usize >= PLACES / 2 {
                return None;
            }
            self.count += 1;
            *place = Node { address, node: self.count, parent };
            *self.added.get_mut(self.added_count)? = *place;
            self.added_count += 1;
        }
        Some(place.node)
    }
}

/// What a signal interrupted, from the stack pointer where its handler returns.
fn interrupted(sp: u64, read: &mut impl FnMut(u64) -> Result<u64, ()>) -> Option<Place> {
    let registers = sp + offset_of!(libc::ucontext_t, uc_mcontext) as u64;
    let mut register = |number: libc::c_int| read(registers + 8 * number as u64).ok().map(|word| word as usize);
    Some(Place { address: register(libc::REG_RIP)?, sp: register(libc::REG_RSP)?, fp: register(libc::REG_RBP)? })
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::hint::black_box;

    #[inline(never)]
    fn deep(depth: usize, walker: &mut Walker, stack: &Range<usize>) -> (u32, u8) {
        if depth > 0 {
            let found = deep(depth - 1, walker, stack);
            return (found.0, black_box(found.1));
        }
        let (address, sp, fp): (usize, usize, usize);
        // SAFETY: reads registers.
        unsafe {
            std::arch::asm!("lea {}, [rip]", "mov {}, rsp", "mov {}, rbp", out(reg) address, out(reg) sp, out(reg) fp);
        };
        // SAFETY: no function of Python is found.
        unsafe { walker.walk(Place { address, sp, fp }, stack, &Store::nowhere()) }
    }

    /// The nodes of some depths, all called from one place.
    #[inline(never)]
    fn nodes(depths: &[usize], walker: &mut Walker, stack: &Range<usize>) -> Vec<u32> {
        let mut found = vec![0; depths.len()];
        for (node, &depth) in found.iter_mut().zip(depths) {
            *node = deep(depth, walker, stack).0;
        }
        found
    }

    #[test]
    fn the_same_stack_has_the_same_node() {
        modules::refreshed();
        let (mut walker, stack) = (Walker::new().unwrap(), crate::stack::of_thread());
        let equal = usize::from(unwind::EQUAL);
        let depths = [3, 3, 5, 2 * equal, 3 * equal];
        let nodes = nodes(black_box(&depths), &mut walker, &stack);
        assert!(nodes[0] > 3 && nodes[2] > nodes[1], "{nodes:?}");
        assert_eq!(nodes[0], nodes[1]);
        assert_eq!(nodes[3], nodes[4], "recursion is cut");
        assert_ne!(deep(2 * DEEPEST, &mut walker, &stack).1 & sample::INCOMPLETE, 0);
        walker.reset();
        assert_eq!(deep(1, &mut walker, &(0..0)), (0, sample::OWN_STACK | sample::INCOMPLETE));
    }

    #[test]
    fn any_stack_and_any_registers_end() {
        modules::refreshed();
        let mut random = 1_u64;
        let mut next = move || crate::sampler::handler::uneven(&mut random, 1 << 40) as usize;
        let store = Store::nowhere();
        let mut stack = vec![0_usize; 512];
        let range = stack.as_ptr_range();
        let range = range.start as usize..range.end as usize;
        let mut walker = Walker::new().unwrap();
        let codes = [Walker::walk as *const () as usize, libc::getpid as *const () as usize, 0, usize::MAX - 100];
        for round in 0..50_000 {
            for word in &mut stack {
                *word = match next() % 4 {
                    0 => range.start.wrapping_add(next() % (range.len() + 64)).wrapping_sub(32),
                    1 => next(),
                    _ => codes[next() % codes.len()].wrapping_add(next() % 4096),
                };
            }
            let mut any = |at: usize| if at.is_multiple_of(5) { next() } else { range.start + next() % range.len() };
            let (sp, fp) = (any(1 + round % 2), any(round));
            let address = codes[round % codes.len()].wrapping_add(round % 4096);
            // SAFETY: no function of Python is found.
            unsafe { walker.walk(Place { address, sp, fp }, &range, &store) };
            assert!(walker.added_count <= MOST_NODES);
            if round % 1000 == 0 {
                walker.reset();
            }
        }
    }
}
