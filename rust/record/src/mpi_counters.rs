//! Performance variables of MPI (MPI_T), which it counts itself: lengths of queues, messages, bytes, retries.

use crate::abi;
use crate::meaning::{ACCUMULATED, LEVEL, MAXIMUM, Meaning};
use crate::real::{self, own};
use std::ffi::{CStr, c_int};
use std::ptr;

/// Number of arguments of the longest function.
type Function = unsafe extern "C-unwind" fn(
    usize,
    usize,
    usize,
    usize,
    usize,
    usize,
    usize,
    usize,
    usize,
    usize,
    usize,
    usize,
    usize,
) -> c_int;

/// A function of MPI_T, which is never wrapped.
fn function(name: &CStr) -> Option<Function> {
    let address = real::library()?.variable(name)?;
    // SAFETY: a function of MPI; more words than it has parameters do no harm.
    Some(unsafe { std::mem::transmute::<usize, Function>(address) })
}

macro_rules! call {
    ($function:expr $(, $argument:expr)* $(,)?) => {{
        let mut words = [0_usize; 13];
        words.iter_mut().zip([$(($argument) as usize),*]).for_each(|(word, argument)| *word = argument);
        let [a, b, c, d, e, f, g, h, i, j, k, l, m] = words;
        // SAFETY: what the standard says the function takes.
        unsafe { $function(a, b, c, d, e, f, g, h, i, j, k, l, m) }
    }};
}

/// A variable that can be read from the end of MPI_Init to the begin of MPI_Finalize, at any time.
pub(crate) struct Variable {
    /// How its values relate to time.
    pub(crate) mode: u32,
    read: Function,
    session: usize,
    handle: usize,
    /// Bytes of an element, and number of elements: one for each peer where it belongs to a communicator. Their sum counts.
    size: usize,
    count: usize,
}

/// Elements that a variable may have.
pub(crate) const ELEMENTS: usize = 4096;

impl Variable {
    /// Its value; the buffer has room for all elements.
    pub(crate) fn read(&self, buffer: &mut [u64]) -> u64 {
        if call!(self.read, self.session, self.handle, buffer.as_mut_ptr()) != 0 {
            return 0;
        }
        let value = if self.size == 8 {
            buffer.iter().take(self.count).fold(0, |sum: u64, value| sum.wrapping_add(*value))
        } else {
            // SAFETY: the same bytes as twice as many numbers.
            let numbers = unsafe { std::slice::from_raw_parts(buffer.as_ptr().cast::<u32>(), self.count) };
            numbers.iter().map(|value| u64::from(*value)).sum()
        };
        self.plausible(value)
    }

    /// Its value, or none of a level below zero: in Open MPI, a queue may lose messages that it never counted.
    fn plausible(&self, value: u64) -> u64 {
        if self.mode == LEVEL && value.cast_signed() < 0 { 0 } else { value }
    }
}

/// How the numbers of classes and bindings begin in each ABI.
fn bases(abi: &str) -> (c_int, c_int) {
    match abi {
        "mpi5" => (1, 1),
        "openmpi" => (0, 0),
        _ => (240, 9700),
    }
}

/// The variables whose names match: integers that are always counted, of the process or, if it has one, of MPI_COMM_WORLD.
///
/// To call only after MPI_Init: Open MPI reads the queues of a communicator that does not exist without looking.
pub(crate) fn find(pattern: &str, has_world: bool) -> Vec<(Variable, Meaning)> {
    search(pattern, has_world).unwrap_or_default()
}

fn search(pattern: &str, has_world: bool) -> Option<Vec<(Variable, Meaning)>> {
    let abi = abi::get();
    let is_open_mpi = abi.name == "openmpi";
    let (class_base, binding_base) = bases(abi.name);
    let (mut provided, mut number, mut session) = (0_i32, 0_i32, 0_usize);
    if call!(function(c"MPI_T_init_thread")?, 0_usize, &raw mut provided) != 0
        || call!(function(c"MPI_T_pvar_get_num")?, &raw mut number) != 0
        || call!(function(c"MPI_T_pvar_session_create")?, &raw mut session) != 0
    {
        return None;
    }
    let (info, alloc) = (function(c"MPI_T_pvar_get_info")?, function(c"MPI_T_pvar_handle_alloc")?);
    let (start, read) = (function(c"MPI_T_pvar_start")?, function(c"MPI_T_pvar_read")?);
    let mut found = Vec::new();
    for index in 0..number {
        let (mut name, mut text) = ([0_u8; 256], [0_u8; 512]);
        let (mut name_length, mut text_length) = (256_i32, 512_i32);
        let (mut verbosity, mut class, mut binding, mut read_only, mut continuous, mut atomic) = (0_i32, 0, 0, 0, 0, 0);
        let (mut datatype, mut enumeration) = (0_usize, 0_usize);
        let code = call!(
            info,
            index,
            name.as_mut_ptr(),
            &raw mut name_length,
            &raw mut verbosity,
            &raw mut class,
            &raw mut datatype,
            &raw mut enumeration,
            text.as_mut_ptr(),
            &raw mut text_length,
            &raw mut binding,
            &raw mut read_only,
            &raw mut continuous,
            &raw mut atomic,
        );
        let (class, binding): (i32, i32) = (class - class_base, binding - binding_base);
        let (name, description) = (words(&name), words(&text));
        // Open MPI has numbers without a variable, and variables of transports (MTL) that crash where these are not in use.
        if code != 0 || !matches(pattern, &name) || (is_open_mpi && name.starts_with("mtl_")) {
            continue;
        }
        let Some(size) = integer_size(datatype) else { continue };
        let Some(mode) = mode(&name, class).filter(|_| binding == 0 || (binding == 1 && has_world)) else { continue };
        let (mut handle, mut count) = (0_usize, 0_i32);
        let mut world = abi.comm_world;
        // The handle itself is in memory, be it an int or a pointer.
        let object = if binding == 1 { ptr::from_mut(&mut world) as usize } else { 0 };
        if call!(alloc, session, index, object, &raw mut handle, &raw mut count) != 0
            || !(1..=ELEMENTS as i32).contains(&count)
        {
            continue;
        }
        if continuous == 0 {
            call!(start, session, handle);
        }
        let variable = Variable { mode, read, session, handle, size, count: count as usize };
        // In Open MPI, all amounts are sizes.
        let (unit, exponent) = unit(&name, class == SIZE && !is_open_mpi);
        found.push((variable, Meaning { name, mode, exponent, unit, description }));
    }
    Some(found)
}

// Classes, from the first one on: state, level, size, percentage, high watermark, low watermark, counter, aggregate, timer, generic.
const SIZE: i32 = 2;

/// What Open MPI counts if it was built to do so (software performance counters).
const SOFTWARE: &str = "runtime_spc_OMPI_SPC_";

/// How the values of a variable relate to time; none of a class of what are no amounts.
fn mode(name: &str, class: i32) -> Option<u32> {
    if let Some(counter) = name.strip_prefix(SOFTWARE) {
        // Whatever their class, which is that of sizes. Reading the largest values begins new ones.
        return Some(match counter {
            _ if counter.starts_with("MAX_") => MAXIMUM,
            _ if counter.ends_with("_IN_QUEUE") => LEVEL,
            _ => ACCUMULATED,
        });
    }
    match class {
        1 | SIZE => Some(LEVEL),
        4 => Some(MAXIMUM),
        6 | 7 => Some(ACCUMULATED),
        _ => None,
    }
}

/// The unit of a variable, and the power of ten of that unit that its values are multiples of.
fn unit(name: &str, is_size: bool) -> (&'static str, i32) {
    match name.strip_prefix(SOFTWARE) {
        Some(counter) if counter.ends_with("_TIME") => ("s", -6),
        Some(counter) if counter.contains("BYTES") => ("bytes", 0),
        None if is_size || name.contains("bytes") => ("bytes", 0),
        _ => ("#", 0),
    }
}

/// Size of a type of integers, by its name.
fn integer_size(datatype: usize) -> Option<usize> {
    let (mut name, mut length) = ([0_u8; 8192], 0_i32);
    if own!(TYPE_GET_NAME, datatype, name.as_mut_ptr(), &raw mut length) != 0 {
        return None;
    }
    match words(&name).as_str() {
        "MPI_INT" | "MPI_UNSIGNED" => Some(4),
        "MPI_UNSIGNED_LONG"
        | "MPI_UNSIGNED_LONG_LONG"
        | "MPI_COUNT"
        | "MPI_LONG"
        | "MPI_LONG_LONG"
        | "MPI_LONG_LONG_INT"
        | "MPI_UINT64_T"
        | "MPI_INT64_T" => Some(8),
        _ => None,
    }
}

fn words(text: &[u8]) -> String {
    CStr::from_bytes_until_nul(text).map_or_else(|_| String::new(), |text| text.to_string_lossy().into_owned())
}

/// Whether a name matches a pattern, in which `*` stands for anything.
fn matches(pattern: &str, name: &str) -> bool {
    let Some((first, rest)) = pattern.split_once('*') else { return pattern == name };
    let Some(mut name) = name.strip_prefix(first) else { return false };
    let mut parts: Vec<&str> = rest.split('*').collect();
    let last = parts.pop().unwrap_or_default();
    for part in parts {
        match name.find(part) {
            Some(at) => name = name.get(at + part.len()..).unwrap_or_default(),
            None => return false,
        }
    }
    name.ends_with(last)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn software_counters_of_open_mpi_are_told_by_their_names() {
        let of = |counter: &str| {
            let name = format!("{SOFTWARE}{counter}");
            (mode(&name, SIZE), unit(&name, false))
        };
        assert_eq!(of("UNEXPECTED"), (Some(ACCUMULATED), ("#", 0)));
        assert_eq!(of("BYTES_SENT_USER"), (Some(ACCUMULATED), ("bytes", 0)));
        assert_eq!(of("MATCH_TIME"), (Some(ACCUMULATED), ("s", -6)));
        assert_eq!(of("UNEXPECTED_IN_QUEUE"), (Some(LEVEL), ("#", 0)));
        assert_eq!(of("MAX_UNEXPECTED_IN_QUEUE"), (Some(MAXIMUM), ("#", 0)));
        assert_eq!(
            (mode("pml_ob1_posted_recvq_length", SIZE), unit("pml_ob1_posted_recvq_length", false)),
            (Some(LEVEL), ("#", 0))
        );
        assert_eq!(unit("mpool_hugepage_bytes_allocated", false), ("bytes", 0));
        assert_eq!(unit("pool", true), ("bytes", 0));
    }

    #[test]
    fn stars_stand_for_anything() {
        for (pattern, name) in [("*", ""), ("*", "a"), ("a*c", "abc"), ("a*c", "ac"), ("*queue*", "my_queue_length")] {
            assert!(matches(pattern, name), "{pattern} {name}");
        }
        for (pattern, name) in
            [("", "a"), ("a", "ab"), ("a*c", "abcd"), ("ab*b", "ab"), ("*ab*b", "ab"), ("*x*", "abc")]
        {
            assert!(!matches(pattern, name), "{pattern} {name}");
        }
    }
}
