//! Call paths as the recorder unwound them, to functions.

use std::path::Path;

use rustc_hash::FxHashMap;

use crate::format::Node as Raw;
use crate::spool::{Definitions, ModuleEntry};
use crate::survey::Node;
use crate::symbols::{Function, Module};

/// Number of a function in the run.
pub(crate) type FunctionId = u32;

/// The functions of the program that are on call paths.
#[derive(Debug, Default)]
pub(crate) struct Functions {
    /// By number.
    pub(crate) list: Vec<Function>,
    known: FxHashMap<Function, FunctionId>,
}

impl Functions {
    fn id(&mut self, function: &Function) -> FunctionId {
        if let Some(id) = self.known.get(function) {
            return *id;
        }
        let id = self.list.len() as FunctionId;
        self.list.push(function.clone());
        self.known.insert(function.clone(), id);
        id
    }
}

/// The call paths of a thread.
#[derive(Debug, Default)]
pub(crate) struct Paths {
    nodes: Vec<Frame>,
    functions: Vec<FunctionId>,
}

/// One frame of the stack: a function and what was inlined into it at the place of the call.
#[derive(Debug, Clone, Copy, Default)]
struct Frame {
    parent: u32,
    depth: u32,
    begin: u32,
    end: u32,
}

impl Paths {
    /// The functions of a node, outermost first, without those of its callers.
    #[must_use]
    pub(crate) fn functions(&self, node: u32) -> &[FunctionId] {
        let frame = &self.nodes[node as usize];
        &self.functions[frame.begin as usize..frame.end as usize]
    }

    /// The caller's node.
    #[must_use]
    pub(crate) fn parent(&self, node: u32) -> u32 {
        self.nodes[node as usize].parent
    }

    /// How many nodes a path has.
    #[must_use]
    pub(crate) fn depth(&self, node: u32) -> u32 {
        self.nodes[node as usize].depth
    }

    /// Whether there are any.
    #[must_use]
    pub(crate) fn is_empty(&self) -> bool {
        self.nodes.len() <= 1
    }
}

/// Finds the functions of the nodes of one process after the other.
#[derive(Debug, Default)]
pub(crate) struct Symbolizer {
    /// All that were found.
    pub(crate) functions: Functions,
    modules: FxHashMap<(String, Vec<u8>), Module>,
}

/// Files whose functions are no part of the program's call paths: MPI itself, what starts a program, the recorder, and the
/// interpreter of Python with its access to MPI.
fn is_left_out(path: &str) -> bool {
    let name = Path::new(path).file_name().and_then(|name| name.to_str()).unwrap_or_default();
    let is_library = |prefix: &str| {
        name.strip_prefix(prefix).is_some_and(|rest| rest.starts_with(['.', '-', '_']) || rest.is_empty())
    };
    [
        "libmpi",
        "libmpich",
        "libmpichfort",
        "libmpifort",
        "libmpi_mpifh",
        "libmpi_usempif08",
        "libmpi_usempi",
        "libc",
        "ld-linux-x86-64",
        "ld-linux-aarch64",
    ]
    .iter()
    .any(|prefix| is_library(prefix))
        || name.starts_with("libwhywait_record")
        || name.starts_with("libpython")
        || name
            .strip_prefix("python")
            .is_some_and(|rest| rest.chars().all(|letter| letter.is_ascii_digit() || letter == '.'))
        || (name.starts_with("MPI.") && path.contains("mpi4py"))
}

/// Functions that the toolchain puts around the program's own.
const STARTERS: [&str; 3] = ["_start", "__libc_start_main", "__libc_start_call_main"];

impl Symbolizer {
    /// The paths of a thread with these nodes.
    pub(crate) fn paths(&mut self, definitions: &Definitions, program: &str, nodes: &[Node]) -> Paths {
        let mut paths = Paths { nodes: vec![Frame::default()], functions: Vec::new() };
        let codes: FxHashMap<u32, usize> =
            definitions.codes.iter().enumerate().map(|(index, code)| (code.0, index)).collect();
        for node in &nodes[1..] {
            let begin = paths.functions.len() as u32;
            if node.address & Raw::PYTHON != 0 {
                if let Some(index) = codes.get(&(node.address as u32)) {
                    let (_, name, file, line) = &definitions.codes[*index];
                    let function =
                        Function { name: name.clone(), linkage_name: name.clone(), file: file.clone(), line: *line };
                    paths.functions.push(self.functions.id(&function));
                }
            } else {
                self.native(&definitions.modules, program, node, &mut paths.functions);
            }
            let parent = node.parent;
            let depth = paths.nodes[parent as usize].depth + 1;
            paths.nodes.push(Frame { parent, depth, begin, end: paths.functions.len() as u32 });
        }
        paths
    }

    fn native(&mut self, modules: &[ModuleEntry], program: &str, node: &Node, to: &mut Vec<FunctionId>) {
        let Self { functions, modules: open } = self;
        let holds = |module: &&ModuleEntry| (module.start..module.end).contains(&node.address);
        // Where libraries were loaded and unloaded, the last one before the call is meant.
        let module = modules
            .iter()
            .filter(holds)
            .filter(|module| module.time <= node.time)
            .max_by_key(|module| module.time)
            .or_else(|| modules.iter().find(holds));
        let Some(module) = module else {
            let unknown =
                Function { name: "[unknown]".into(), linkage_name: "[unknown]".into(), file: String::new(), line: 0 };
            to.push(functions.id(&unknown));
            return;
        };
        let path = if module.path.is_empty() { program } else { &module.path };
        if is_left_out(path) {
            return;
        }
        let file = open
            .entry((path.to_owned(), module.build_id.clone()))
            .or_insert_with(|| Module::open(Path::new(path), &module.build_id));
        // A return address belongs to the instruction after the call.
        for function in file.functions(node.address.wrapping_sub(1).wrapping_sub(module.base)) {
            if !STARTERS.contains(&function.name.as_str()) {
                to.push(functions.id(function));
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn libraries_around_the_program_are_left_out() {
        for path in [
            "/usr/lib/x86_64-linux-gnu/libmpi.so.40.30.4",
            "/usr/lib/libmpichfort.so.12",
            "/usr/lib/x86_64-linux-gnu/libc.so.6",
            "/venv/lib/python3.12/site-packages/whywait/_record/libwhywait_record.so",
            "/usr/bin/python3.11",
            "/venv/lib/python3.12/site-packages/mpi4py/MPI.mpich.cpython-312-x86_64-linux-gnu.so",
            "/lib64/ld-linux-x86-64.so.2",
        ] {
            assert!(is_left_out(path), "{path}");
        }
        for path in
            ["/home/me/solver", "/usr/lib/libcgns.so", "/usr/lib/libhdf5_mpi.so", "/x/libmpigrid.so", "/x/pythonic"]
        {
            assert!(!is_left_out(path), "{path}");
        }
    }
}
