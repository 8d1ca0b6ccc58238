//! Functions of Python on the stack of a thread.
//!
//! The interpreter keeps its frames in a list of its own. A thread that calls MPI has usually given up the interpreter's lock, so none of its
//! functions may be called; but the thread's own frames do not change while it is in the call, and are read where they lie. Where that is depends on
//! the version ([`Layout`]). Nothing happens in the interpreter itself, so functions that do not call MPI cost nothing.

use crate::format::{Entry, Node};
use crate::modules;
use crate::spool::Payload;
use crate::state;
use std::collections::HashMap;
use std::ffi::{CStr, c_ulong};
use std::ops::Range;
use std::sync::{Mutex, OnceLock, PoisonError};

/// Where the fields of the interpreter's structures are, in bytes.
///
/// *Source*: the headers of each version, `internal/pycore_frame.h` (`pycore_interpframe_structs.h` since 3.14), `cpython/pystate.h`,
/// `cpython/code.h`, and `cpython/unicodeobject.h`, for builds with the interpreter's lock.
pub(crate) struct Layout {
    /// Of the thread's state: the innermost frame, or (3.11, 3.12) what leads to it, and where it is in that.
    pub(crate) frame: usize,
    pub(crate) via: Option<usize>,
    /// Of a frame: the code, the caller's frame, and who owns it.
    pub(crate) code: usize,
    pub(crate) previous: usize,
    pub(crate) owner: usize,
    /// Of a code object.
    pub(crate) line: usize,
    /// Of a string: its characters if all are ASCII, and otherwise.
    pub(crate) ascii: usize,
    pub(crate) compact: usize,
}

const LAYOUTS: [(u8, Layout); 4] = [
    (11, Layout { frame: 56, via: Some(8), code: 32, previous: 48, owner: 69, line: 72, ascii: 48, compact: 72 }),
    (12, Layout { frame: 56, via: Some(0), code: 0, previous: 8, owner: 70, line: 68, ascii: 40, compact: 56 }),
    (13, Layout { frame: 72, via: None, code: 0, previous: 8, owner: 70, line: 68, ascii: 40, compact: 56 }),
    (14, Layout { frame: 72, via: None, code: 0, previous: 8, owner: 74, line: 68, ascii: 40, compact: 56 }),
];

// The same in all these versions.
pub(crate) const TYPE: usize = 8;
pub(crate) const FILE_NAME: usize = 112;
pub(crate) const QUALIFIED_NAME: usize = 128;
pub(crate) const LENGTH: usize = 16;
pub(crate) const STATE: usize = 32;

/// Deeper stacks are cut.
const DEEPEST: usize = 1024;
/// Owners from here on are the interpreter itself, which has frames by which it enters itself.
pub(crate) const OWN: u8 = 3;
/// A frame's code is a tagged pointer since 3.14.
pub(crate) const TAG: usize = 7;

/// The interpreter of the process.
pub(crate) struct Interpreter {
    pub(crate) layout: &'static Layout,
    thread_state: unsafe extern "C" fn() -> usize,
    pub(crate) code_type: usize,
    /// Where its code lies.
    pub(crate) range: Range<usize>,
}

static INTERPRETER: OnceLock<Option<Interpreter>> = OnceLock::new();

/// Looks for the interpreter; called once, before anything is recorded.
pub(crate) fn begin() {
    INTERPRETER.get_or_init(find);
}

/// The interpreter, if the process has one whose frames can be read.
#[inline]
pub(crate) fn interpreter() -> Option<&'static Interpreter> {
    INTERPRETER.get().and_then(Option::as_ref)
}

fn symbol(name: &CStr) -> Option<usize> {
    // SAFETY: the name is a string.
    let found = unsafe { libc::dlsym(libc::RTLD_DEFAULT, name.as_ptr()) } as usize;
    (found != 0).then_some(found)
}

fn find() -> Option<Interpreter> {
    // SAFETY: it is a constant of this type in all versions that have it, those since 3.11.
    let version = unsafe { *(symbol(c"Py_Version")? as *const c_ulong) };
    let minor = (version >> 16 & 0xff) as u8;
    let (_, layout) = LAYOUTS.iter().find(|(known, _)| version >> 24 == 3 && *known == minor)?;
    let function = symbol(c"PyGILState_GetThisThreadState")?;
    let range = modules::current()?.range_of(function)?;
    // SAFETY: a function of the interpreter that has no arguments, and that needs no lock.
    let thread_state = unsafe { std::mem::transmute::<usize, unsafe extern "C" fn() -> usize>(function) };
    Some(Interpreter { layout, thread_state, code_type: symbol(c"PyCode_Type")?, range })
}

/// # Safety
/// There must be a word at the address.
unsafe fn word(address: usize) -> usize {
    // SAFETY: the caller says so.
    unsafe { *(address as *const usize) }
}

impl Interpreter {
    /// The state of this thread, if Python runs in it.
    pub(crate) fn thread(&self) -> Option<usize> {
        // SAFETY: it looks at a thread-specific value and no more.
        let state = unsafe { (self.thread_state)() };
        (state != 0).then_some(state)
    }

    /// The innermost frame of this thread; 0 if Python does not run in it.
    fn innermost(&self) -> usize {
        // SAFETY: the state of this thread, if there is one, and what belongs to it.
        unsafe {
            let state = (self.thread_state)();
            if state == 0 {
                return 0;
            }
            let frame = word(state + self.layout.frame);
            match self.layout.via {
                Some(via) if frame != 0 => word(frame + via),
                _ => frame,
            }
        }
    }

    /// The code of a frame; `None` if it is one of the interpreter's own.
    fn code(&self, frame: usize) -> Option<Code> {
        // SAFETY: the frame is on the stack of this thread, and keeps its code, which keeps its name.
        unsafe {
            let code = word(frame + self.layout.code) & !TAG;
            let is_program = *((frame + self.layout.owner) as *const u8) < OWN;
            let is_code = is_program && code != 0 && word(code + TYPE) == self.code_type;
            is_code.then(|| Code { code, name: word(code + QUALIFIED_NAME) })
        }
    }

    /// A string of the interpreter.
    ///
    /// # Safety
    /// The address must be that of one.
    unsafe fn text(&self, string: usize) -> String {
        // SAFETY: the caller says that these are the fields of a string, which do not change.
        unsafe {
            let (length, state) = (word(string + LENGTH), *((string + STATE) as *const u32));
            let (kind, is_compact, is_ascii) = (state >> 2 & 7, state >> 5 & 1 == 1, state >> 6 & 1 == 1);
            let characters = string + if is_ascii { self.layout.ascii } else { self.layout.compact };
            if !is_compact || length > 1 << 16 {
                return String::from("[unknown]");
            }
            let character = |at: usize| match kind {
                1 => u32::from(*((characters + at) as *const u8)),
                2 => u32::from(*((characters + 2 * at) as *const u16)),
                _ => *((characters + 4 * at) as *const u32),
            };
            (0..length).map(|at| char::from_u32(character(at)).unwrap_or(char::REPLACEMENT_CHARACTER)).collect()
        }
    }

    /// The number of a code object in the definitions, which it is added to if it is new.
    fn number(&self, code: Code) -> u32 {
        static KNOWN: Mutex<Option<HashMap<Code, u32>>> = Mutex::new(None);
        let mut known = KNOWN.lock().unwrap_or_else(PoisonError::into_inner);
        let known = known.get_or_insert_default();
        let next = known.len() as u32 + 1;
        *known.entry(code).or_insert_with(|| {
            // SAFETY: as in `code`: these are fields of a code object that is on the stack.
            let (line, name, file) = unsafe {
                let line = *((code.code + self.layout.line) as *const u32);
                (line, self.text(code.name), self.text(word(code.code + FILE_NAME)))
            };
            state::define(
                Entry::Code,
                &Payload::default().u32(next).u32(line).text(name.as_bytes()).text(file.as_bytes()),
            );
            next
        })
    }
}

/// A code object; its name tells it from another one that is later at the same address.
#[derive(Clone, Copy, Default, PartialEq, Eq, Hash)]
struct Code {
    code: usize,
    name: usize,
}

/// Size of a thread's table of code objects.
const TABLE: usize = 256;

/// The functions of Python that a thread was in at its last call.
#[derive(Default)]
pub(crate) struct Functions {
    /// The innermost first.
    codes: Vec<Code>,
    /// Numbers of code objects that were seen last.
    numbers: Vec<(Code, u32)>,
}

impl Functions {
    /// Reads them; returns whether they changed.
    pub(crate) fn read(&mut self, interpreter: &Interpreter) -> bool {
        let mut frame = interpreter.innermost();
        let (mut count, mut changed) = (0, false);
        while frame != 0 && count < DEEPEST {
            if let Some(code) = interpreter.code(frame) {
                match self.codes.get_mut(count) {
                    Some(last) if *last == code => {}
                    Some(last) => (*last, changed) = (code, true),
                    None => {
                        self.codes.push(code);
                        changed = true;
                    }
                }
                count += 1;
            }
            // SAFETY: a frame of this thread.
            frame = unsafe { word(frame + interpreter.layout.previous) };
        }
        changed |= count != self.codes.len();
        self.codes.truncate(count);
        changed
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.codes.is_empty()
    }

    /// What stands for them in the tree of call paths, the outermost first.
    pub(crate) fn addresses(&mut self, interpreter: &Interpreter) -> impl Iterator<Item = u64> {
        let Self { codes, numbers } = self;
        if numbers.is_empty() {
            numbers.resize(TABLE, (Code::default(), 0));
        }
        codes.iter().rev().map(|code| {
            let place = &mut numbers[(code.code >> 4) % TABLE];
            if place.0 != *code {
                *place = (*code, interpreter.number(*code));
            }
            Node::PYTHON | u64::from(place.1)
        })
    }
}
