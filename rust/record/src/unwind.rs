//! Call paths: which functions of the program the call of MPI is in.
//!
//! Most stacks are those of the call before, but for the innermost frames. So the stack is unwound frame by frame only until a frame of the last walk is met, with
//! its return address in the same place; then the other return addresses are compared where they lie, and if they are the same, so is the rest.
//!
//! In Python, the functions of Python take the place of the frames from the outermost to the innermost one of the interpreter.

use crate::format::Node;
use crate::modules;
use crate::python::{self, Functions, Interpreter};
use crate::stack;
use framehop::{CacheNative, FrameAddress, MustNotAllocateDuringUnwind, UnwindRegsNative, Unwinder};
use std::ops::Range;
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};

/// A stack deeper than this is cut.
const DEEPEST: usize = 4096;
/// Recursion deeper than this many equal frames in a row is one.
pub(crate) const EQUAL: u8 = 8;
/// How many places in one function that call MPI are remembered.
const SITES: usize = 8;

static ON: AtomicBool = AtomicBool::new(false);

/// Call paths are recorded from now on, those in Python too if asked for.
pub(crate) fn begin(with_python: bool) {
    modules::refreshed();
    if with_python {
        python::begin();
    }
    ON.store(true, Relaxed);
}

/// A frame of the last walk.
#[derive(Clone, Copy)]
struct Step {
    /// Where its return address lies, and the address.
    place: usize,
    address: usize,
    node: u32,
    /// How many frames in a row have this address.
    equal: u8,
}

/// Call paths of a thread.
pub(crate) struct Paths {
    cache: CacheNative<MustNotAllocateDuringUnwind>,
    /// The stack; empty until it is known.
    stack: Range<usize>,
    /// The last walk, the outermost frame first.
    last: Vec<Step>,
    /// Innermost frames that were seen last with the same frames around them.
    sites: Vec<Step>,
    /// Frames of the present walk that the last one does not have, the innermost first.
    fresh: Vec<(usize, usize)>,
    tree: Tree,
    python: InPython,
    /// Nodes that the walk added.
    pub(crate) added: Vec<Node>,
}

/// The last call path through functions of Python.
#[derive(Default)]
struct InPython {
    functions: Functions,
    /// Nodes of the same call without them, of the frame around them, of the innermost of them, and of the whole.
    native: u32,
    around: u32,
    innermost: u32,
    node: u32,
}

impl Paths {
    pub(crate) fn new() -> Self {
        Self {
            cache: CacheNative::new_in(),
            stack: 0..0,
            last: Vec::new(),
            sites: Vec::with_capacity(SITES),
            fresh: Vec::new(),
            tree: Tree::default(),
            python: InPython::default(),
            added: Vec::new(),
        }
    }

    /// The node of the stack that made a call: by the return address, and the stack and frame pointers after the return. Objects that were loaded
    /// since the last walk are listed if the call may ask the loader for them.
    #[expect(clippy::inline_always, reason = "otherwise each call saves and restores all registers for it")]
    #[inline(always)]
    pub(crate) fn walk(&mut self, caller: (usize, usize, usize), may_list: bool) -> u32 {
        if !ON.load(Relaxed) {
            return 0;
        }
        let native = self.native(caller, may_list);
        match python::interpreter() {
            None => native,
            Some(interpreter) => self.through_python(interpreter, native, caller.0),
        }
    }

    /// The node of a call that Python's functions may have made, from the last walk and its return address.
    #[inline(never)]
    fn through_python(&mut self, interpreter: &Interpreter, native: u32, address: usize) -> u32 {
        let changed = self.python.functions.read(interpreter);
        if self.python.functions.is_empty() {
            return native;
        }
        if !changed && native == self.python.native {
            return self.python.node;
        }
        let Self { last, tree, python, added, .. } = self;
        let of_interpreter = |step: &Step| interpreter.range.contains(&step.address.wrapping_sub(1));
        let around =
            last.iter().position(of_interpreter).and_then(|at| at.checked_sub(1)).map_or(0, |at| last[at].node);
        if changed || around != python.around {
            let mut above = (around, 0, 0);
            for function in python.functions.addresses(interpreter) {
                let equal = if function == above.1 { u8::saturating_add(above.2, 1) } else { 1 };
                let node = if equal > EQUAL { above.0 } else { tree.node(above.0, function, added) };
                above = (node, function, equal);
            }
            (python.around, python.innermost) = (around, above.0);
        }
        let mut node = python.innermost;
        // The innermost frame may be at another place than that of the last walk.
        let inner = last.iter().rposition(of_interpreter).map_or(&[][..], |at| &last[at + 1..]);
        if let [between @ .., _] = inner {
            for step in between {
                node = tree.node(node, step.address as u64, added);
            }
            node = tree.node(node, address as u64, added);
        }
        (python.native, python.node) = (native, node);
        node
    }

    /// The node of the stack that made a call, without what it was in Python.
    #[inline]
    fn native(&mut self, (address, sp, fp): (usize, usize, usize), may_list: bool) -> u32 {
        // The common case: the same call again, or another one of the same function.
        if let Some(top) = self.last.last()
            && top.place == place(sp)
            && self.holds(self.last.len() - 1)
            && let Some(site) = self.sites.iter().find(|site| site.address == address)
        {
            return site.node;
        }
        self.unwind(address, sp, fp, may_list)
    }

    /// Whether the first `count` frames of the last walk are still there. They lie further out on the stack than a frame that is.
    #[inline]
    fn holds(&self, count: usize) -> bool {
        self.last.get(..count).is_some_and(|steps| {
            // SAFETY: the places were read in the last walk, and are on the part of this stack that is in use.
            steps.iter().rev().all(|step| unsafe { *(step.place as *const usize) } == step.address)
        })
    }

    /// Whether an address is on the stack of the thread.
    pub(crate) fn is_on_stack(&mut self, address: usize) -> bool {
        if self.stack.is_empty() {
            self.stack = stack::of_thread();
        }
        self.stack.contains(&address)
    }

    /// Whether a stack, from a place given as for a walk, has a frame around it that ends at a stack pointer; so it is if that cannot be known.
    pub(crate) fn passes(&mut self, (address, sp, fp): (usize, usize, usize), end: usize) -> bool {
        let Some(modules) = modules::current() else { return true };
        let stack = self.stack.clone();
        let mut read = |from: u64| {
            let from = from as usize;
            if stack.contains(&from) && stack.end - from >= 8 {
                // SAFETY: on the thread's stack.
                Ok(unsafe { (from as *const u64).read_unaligned() })
            } else {
                Err(())
            }
        };
        let (mut address, mut registers) = (address, registers(address, sp, fp));
        let mut interrupted = false;
        for _ in 0..DEEPEST {
            if (registers.sp() as usize) >= end {
                return registers.sp() as usize == end;
            }
            let Some(lookup) = frame_address(address, interrupted) else { return true };
            interrupted = ends_handler(modules, address);
            if interrupted {
                let Some(before) = before_signal(&registers, &mut read) else { return true };
                (address, registers) = (before.0, before.2);
                continue;
            }
            match modules.unwinder.unwind_frame(lookup, &mut registers, &mut self.cache, &mut read) {
                Ok(Some(next)) => address = next as usize,
                _ => return true,
            }
        }
        true
    }

    #[inline(never)]
    fn unwind(&mut self, address: usize, sp: usize, fp: usize, may_list: bool) -> u32 {
        if self.stack.is_empty() {
            self.stack = stack::of_thread();
        }
        self.fresh.clear();
        let mut complete = true;
        let (mut address, mut at) = (address, place(sp));
        let mut registers = registers(address, sp, fp);
        // Frames of the last walk that may still be there.
        let mut known = self.last.len();
        let Some(mut modules) = modules::current() else { return 0 };
        // On a stack of the program's own making nothing is known of its end.
        let mut read = |from: u64| {
            let from = from as usize;
            if self.stack.contains(&from) && from.is_multiple_of(8) && self.stack.end - from >= 8 {
                // SAFETY: on the thread's stack.
                Ok(unsafe { *(from as *const u64) })
            } else {
                Err(())
            }
        };
        if !self.stack.contains(&sp) {
            known = 0;
        }
        let mut interrupted = false;
        loop {
            while known > 0 && self.last[known - 1].place < at {
                known -= 1;
            }
            if known > 0 && self.last[known - 1].place == at && self.last[known - 1].address == address && {
                // SAFETY: as in `holds`.
                self.last[..known - 1].iter().rev().all(|step| unsafe { *(step.place as *const usize) } == step.address)
            } {
                break;
            }
            if !modules.knows(address.wrapping_sub(1)) {
                match may_list.then(modules::refreshed).flatten() {
                    Some(new) if new.knows(address.wrapping_sub(1)) => modules = new,
                    // Code that was made at run time.
                    _ => {
                        complete = false;
                        known = 0;
                        break;
                    }
                }
            }
            self.fresh.push((at, address));
            let Some(lookup) = frame_address(address, interrupted) else { break };
            interrupted = ends_handler(modules, address);
            if interrupted
                && self.fresh.len() < DEEPEST
                && let Some(before) = before_signal(&registers, &mut read)
            {
                (address, at, registers) = before;
                continue;
            }
            match modules.unwinder.unwind_frame(lookup, &mut registers, &mut self.cache, &mut read) {
                Ok(Some(next)) if self.fresh.len() < DEEPEST => {
                    address = next as usize;
                    at = place(registers.sp() as usize);
                }
                // The outermost frame often ends in an error.
                _ => {
                    known = 0;
                    break;
                }
            }
        }
        let around = self.last.len().saturating_sub(1);
        let same =
            known == around && self.fresh.len() == 1 && self.last.last().is_some_and(|top| top.place == place(sp));
        if !same || self.sites.len() == SITES {
            self.sites.clear();
        }
        self.last.truncate(known);
        let mut step = self.last.last().copied().unwrap_or(Step { place: 0, address: 0, node: 0, equal: 0 });
        if !complete {
            step.node = self.tree.node(0, 0, &mut self.added);
        }
        while let Some((place, address)) = self.fresh.pop() {
            let equal = if address == step.address { step.equal.saturating_add(1) } else { 1 };
            let node =
                if equal > EQUAL { step.node } else { self.tree.node(step.node, address as u64, &mut self.added) };
            step = Step { place, address, node, equal };
            self.last.push(step);
        }
        // What cannot be compared later is not kept.
        if !complete || !cfg!(target_arch = "x86_64") || !self.stack.contains(&sp) {
            self.last.clear();
        }
        self.sites.push(step);
        step.node
    }
}

/// The address of a frame: of the next instruction where a signal interrupted it, else that after a call.
fn frame_address(address: usize, interrupted: bool) -> Option<FrameAddress> {
    if interrupted {
        return Some(FrameAddress::from_instruction_pointer(address as u64));
    }
    FrameAddress::from_return_address(address as u64)
}

/// What a signal handler returns to: the system call that goes on with what was interrupted.
#[cfg(target_arch = "x86_64")]
const END_OF_HANDLER: [u8; 9] = [0x48, 0xc7, 0xc0, 0x0f, 0, 0, 0, 0x0f, 0x05];
#[cfg(target_arch = "aarch64")]
const END_OF_HANDLER: [u8; 8] = [0x68, 0x11, 0x80, 0xd2, 0x01, 0, 0, 0xd4];

/// Whether a signal handler returns to an address, so that the frame around it was interrupted anywhere.
fn ends_handler(modules: &modules::Modules, address: usize) -> bool {
    let last = address.wrapping_add(END_OF_HANDLER.len() - 1);
    // SAFETY: code of a loaded object.
    modules.knows(address)
        && modules.knows(last)
        && unsafe { (address as *const [u8; END_OF_HANDLER.len()]).read_unaligned() } == END_OF_HANDLER
}

/// What a signal interrupted, from where its handler returns: the address, where that lies, and the registers. The kernel has stored them on the stack.
#[cfg(target_arch = "x86_64")]
fn before_signal(
    registers: &UnwindRegsNative,
    read: &mut impl FnMut(u64) -> Result<u64, ()>,
) -> Option<(usize, usize, UnwindRegsNative)> {
    use std::mem::offset_of;
    let context = registers.sp() + offset_of!(libc::ucontext_t, uc_mcontext) as u64;
    let mut register = |number: libc::c_int| read(context + 8 * number as u64).ok();
    let (address, sp, fp) = (register(libc::REG_RIP)?, register(libc::REG_RSP)?, register(libc::REG_RBP)?);
    let lies = context + 8 * libc::REG_RIP as u64;
    Some((address as usize, lies as usize, UnwindRegsNative::new(address, sp, fp)))
}

/// Not known here.
#[cfg(target_arch = "aarch64")]
fn before_signal(
    _: &UnwindRegsNative,
    _: &mut impl FnMut(u64) -> Result<u64, ()>,
) -> Option<(usize, usize, UnwindRegsNative)> {
    None
}

/// Where the return address lies, given the stack pointer after the return.
fn place(sp: usize) -> usize {
    sp.wrapping_sub(8)
}

#[cfg(target_arch = "x86_64")]
fn registers(address: usize, sp: usize, fp: usize) -> UnwindRegsNative {
    UnwindRegsNative::new(address as u64, sp as u64, fp as u64)
}

#[cfg(target_arch = "aarch64")]
fn registers(address: usize, sp: usize, fp: usize) -> UnwindRegsNative {
    UnwindRegsNative::new(address as u64, sp as u64, fp as u64)
}

/// Nodes by parent and address: open addressing.
#[derive(Default)]
pub(crate) struct Tree {
    places: Vec<Node>,
    count: u32,
}

impl Tree {
    /// Where a node is among others, or would be.
    pub(crate) fn find(places: &[Node], parent: u32, address: u64) -> usize {
        let mask = places.len().wrapping_sub(1);
        let key = address ^ u64::from(parent).wrapping_mul(0x00c6_a4a7_935b_d1e9);
        let mut at = (key.wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 32) as usize & mask;
        while let Some(node) = places.get(at).filter(|node| node.node != 0) {
            if node.parent == parent && node.address == address {
                break;
            }
            at = (at + 1) & mask;
        }
        at
    }

    /// The child of a node with an address, which is added if there is none.
    fn node(&mut self, parent: u32, address: u64, added: &mut Vec<Node>) -> u32 {
        let at = Self::find(&self.places, parent, address);
        match self.places.get(at) {
            Some(found) if found.node != 0 => found.node,
            _ => self.add(parent, address, added),
        }
    }

    #[cold]
    fn add(&mut self, parent: u32, address: u64, added: &mut Vec<Node>) -> u32 {
        if self.count as usize * 2 >= self.places.len() {
            let mut places = vec![Node::default(); (self.places.len() * 2).max(256)];
            for node in self.places.iter().filter(|node| node.node != 0) {
                let at = Self::find(&places, node.parent, node.address);
                places[at] = *node;
            }
            self.places = places;
        }
        self.count += 1;
        let node = Node { address, node: self.count, parent };
        let at = Self::find(&self.places, parent, address);
        self.places[at] = node;
        added.push(node);
        node.node
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Walks the stack from the innermost of some frames, so often.
    #[cfg(target_arch = "x86_64")]
    #[inline(never)]
    fn deep(frames: usize, times: usize, paths: &mut Paths, nodes: &mut Vec<u32>) -> usize {
        if frames > 0 {
            return deep(frames - 1, times, paths, nodes) + std::hint::black_box(1);
        }
        for _ in 0..times {
            let (address, sp, fp): (usize, usize, usize);
            // SAFETY: reads registers.
            unsafe {
                std::arch::asm!("lea {}, [rip]", "mov {}, rsp", "mov {}, rbp", out(reg) address, out(reg) sp, out(reg) fp);
            };
            nodes.push(paths.walk((address, sp, fp), true));
        }
        0
    }

    #[cfg(target_arch = "x86_64")]
    std::arch::global_asm!(
        // A function that ends with a frame of its own, and right after it one that is interrupted at its first instruction.
        ".type whywait_before, @function",
        "whywait_before:",
        ".cfi_startproc",
        "sub rsp, 40",
        ".cfi_adjust_cfa_offset 40",
        "ud2",
        ".cfi_endproc",
        ".globl whywait_interrupted",
        ".type whywait_interrupted, @function",
        "whywait_interrupted:",
        ".cfi_startproc",
        "ud2",
        "ret",
        ".cfi_endproc",
    );

    #[cfg(target_arch = "x86_64")]
    static FOUND: std::sync::Mutex<Option<(Paths, usize, bool)>> = std::sync::Mutex::new(None);

    #[cfg(target_arch = "x86_64")]
    unsafe extern "C" fn interrupt(_: libc::c_int, _: *mut libc::siginfo_t, context: *mut libc::c_void) {
        let (address, sp, fp): (usize, usize, usize);
        // SAFETY: reads registers.
        unsafe {
            std::arch::asm!("lea {}, [rip]", "mov {}, rsp", "mov {}, rbp", out(reg) address, out(reg) sp, out(reg) fp);
        };
        if let Some((paths, end, passes)) = &mut *FOUND.lock().unwrap() {
            *passes = paths.passes((address, sp, fp), *end);
        }
        // SAFETY: the kernel's description of what was interrupted: on after the two bytes of the instruction.
        unsafe { (*context.cast::<libc::ucontext_t>()).uc_mcontext.gregs[libc::REG_RIP as usize] += 2 };
    }

    #[cfg(target_arch = "x86_64")]
    #[test]
    fn what_a_signal_interrupts_is_unwound_from_where_it_was() {
        modules::refreshed().unwrap();
        let mut paths = Paths::new();
        assert!(paths.is_on_stack((&raw const paths).addr()));
        // SAFETY: the handler fits, and the function that is called changes nothing but what is said.
        unsafe {
            let mut action: libc::sigaction = std::mem::zeroed();
            action.sa_sigaction = interrupt as *const () as usize;
            action.sa_flags = libc::SA_SIGINFO;
            libc::sigaction(libc::SIGILL, &raw const action, std::ptr::null_mut());
            let sp: usize;
            std::arch::asm!("mov {}, rsp", out(reg) sp);
            *FOUND.lock().unwrap() = Some((paths, sp, false));
            std::arch::asm!("call whywait_interrupted", clobber_abi("C"));
        }
        assert!(FOUND.lock().unwrap().take().is_some_and(|(_, _, passes)| passes));
    }

    /// Number of nodes from one to the root.
    #[cfg(target_arch = "x86_64")]
    fn depth(added: &[Node], mut node: u32) -> usize {
        let mut depth = 0;
        while node != 0 {
            depth += 1;
            node = added[node as usize - 1].parent;
        }
        depth
    }

    #[cfg(target_arch = "x86_64")]
    #[test]
    fn a_stack_is_known_again_and_others_are_told_apart() {
        begin(false);
        let (mut paths, mut nodes) = (Paths::new(), Vec::new());
        deep(0, 3, &mut paths, &mut nodes);
        deep(5, 3, &mut paths, &mut nodes);
        let added = paths.added.len();
        deep(5, 1, &mut paths, &mut nodes);
        deep(0, 1, &mut paths, &mut nodes);
        // The calls from this function differ, those within one do not.
        assert!(nodes[0] == nodes[1] && nodes[1] == nodes[2] && nodes[3] == nodes[4] && nodes[4] == nodes[5]);
        assert_ne!(nodes[0], nodes[3]);
        assert_eq!(depth(&paths.added, nodes[3]), depth(&paths.added, nodes[0]) + 5);
        assert_eq!(depth(&paths.added, nodes[6]), depth(&paths.added, nodes[3]));
        assert_eq!(depth(&paths.added, nodes[7]), depth(&paths.added, nodes[0]));
        // Only what is between the walk and the call in this function is new.
        assert!(paths.added.len() - added <= 7 + 2, "{} nodes", paths.added.len() - added);
        assert!(depth(&paths.added, nodes[0]) > 3);
    }

    #[cfg(target_arch = "x86_64")]
    #[test]
    fn a_return_address_that_changed_further_out_is_seen() {
        begin(false);
        let (mut paths, mut nodes) = (Paths::new(), Vec::new());
        for _ in 0..2 {
            deep(3, 1, &mut paths, &mut nodes);
        }
        deep(3, 1, &mut paths, &mut nodes);
        assert_eq!(nodes[0], nodes[1]);
        assert_ne!(nodes[1], nodes[2]);
    }

    #[cfg(target_arch = "x86_64")]
    #[test]
    fn calls_of_one_function_in_turns_are_told_apart() {
        begin(false);
        let (mut paths, mut nodes) = (Paths::new(), Vec::new());
        let (here, sp, fp): (usize, usize, usize);
        // SAFETY: reads registers.
        unsafe {
            std::arch::asm!("lea {}, [rip]", "mov {}, rsp", "mov {}, rbp", out(reg) here, out(reg) sp, out(reg) fp);
        };
        for round in 0..3 {
            for site in 0..SITES + 4 {
                let node = paths.walk((here + site, sp, fp), true);
                if round == 0 {
                    assert!(!nodes.contains(&node));
                    nodes.push(node);
                }
                assert_eq!(nodes[site], node);
            }
        }
    }

    #[cfg(target_arch = "x86_64")]
    #[test]
    fn deep_recursion_is_collapsed() {
        begin(false);
        let (mut paths, mut nodes) = (Paths::new(), Vec::new());
        deep(7, 1, &mut paths, &mut nodes);
        let before = depth(&paths.added, nodes[0]);
        deep(100, 1, &mut paths, &mut nodes);
        assert!(depth(&paths.added, nodes[1]) <= before + 3);
    }

    #[test]
    fn nodes_are_told_apart_by_parent_and_address() {
        let (mut tree, mut added) = (Tree::default(), Vec::new());
        let mut expected = Vec::new();
        for address in 1..2000 {
            let outer = tree.node(0, address, &mut added);
            let inner = tree.node(outer, 7, &mut added);
            expected.push((address, outer, inner));
        }
        assert_eq!(added.len(), 2 * expected.len());
        for (address, outer, inner) in expected {
            assert_eq!((tree.node(0, address, &mut added), tree.node(outer, 7, &mut added)), (outer, inner));
        }
        assert_eq!(added.iter().map(|node| node.node).collect::<Vec<_>>(), (1..=3998).collect::<Vec<_>>());
    }
}
