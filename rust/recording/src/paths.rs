//! Call paths as the recorder unwound them, to functions.

use std::path::Path;

use rustc_hash::{FxHashMap, FxHashSet};

use crate::format::Node as Raw;
use crate::function_ids::{FunctionId, Functions};
use crate::selection::Selection;
use crate::spool::{Definitions, ModuleEntry};
use crate::survey::Node;
use crate::symbols::{Function, Module};

/// The innermost functions of a sample.
#[derive(Debug, Clone, Default)]
pub(crate) struct Leaf {
    /// Outermost first; what calls them is the path of the sample's node.
    pub(crate) functions: Vec<FunctionId>,
    /// Line in the innermost, 0 if unknown.
    pub(crate) line: u32,
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
    pub(crate) fn functions(&self, node: u32) -> &[FunctionId] {
        let frame = &self.nodes[node as usize];
        &self.functions[frame.begin as usize..frame.end as usize]
    }

    /// The caller's node.
    pub(crate) fn parent(&self, node: u32) -> u32 {
        self.nodes[node as usize].parent
    }

    /// How many nodes a path has.
    pub(crate) fn depth(&self, node: u32) -> u32 {
        self.nodes[node as usize].depth
    }

    /// Whether there are any.
    pub(crate) fn is_empty(&self) -> bool {
        self.nodes.len() <= 1
    }

    /// The nodes of a path, innermost first.
    pub(crate) fn upwards(&self, node: u32) -> impl Iterator<Item = u32> + '_ {
        std::iter::successors(Some(node), |node| Some(self.parent(*node))).take_while(|node| *node != 0)
    }

    /// From the functions of one path to those of another. Of each, so many frames count, innermost ones.
    fn step(&self, from: u32, to: u32, depth: u32) -> Step {
        if self.depth(from).max(self.depth(to)) > depth {
            // What counts of deeper paths is another part of each.
            let innermost = |node| self.upwards(node).take(depth as usize).collect::<Vec<u32>>();
            let (left, entered) = self.between(&innermost(from), &innermost(to), 0);
            return Step { from, to, left, entered };
        }
        // From the innermost function of both paths to where they meet.
        let (mut left, mut entered) = (Vec::new(), Vec::new());
        let (mut up, mut down) = (from, to);
        while up != down {
            let (rises, falls) = (self.depth(up) >= self.depth(down), self.depth(down) >= self.depth(up));
            if rises {
                left.push(up);
                up = self.parent(up);
            }
            if falls {
                entered.push(down);
                down = self.parent(down);
            }
        }
        // The outermost frames that differ may be one, at another place of the same function.
        let outer = |nodes: &[u32]| nodes.last().map_or(&[][..], |node| self.functions(*node));
        let same = outer(&left).iter().zip(outer(&entered)).take_while(|(a, b)| a == b).count();
        let (left, entered) = self.between(&left, &entered, same);
        Step { from, to, left, entered }
    }

    /// The functions of nodes to leave and of nodes to enter, both innermost first, but for the first ones of the outermost.
    fn between(&self, left: &[u32], entered: &[u32], same: usize) -> (Vec<FunctionId>, Vec<FunctionId>) {
        let functions = |nodes: &[u32]| -> Vec<FunctionId> {
            let all = nodes.iter().rev().flat_map(|node| self.functions(*node));
            all.skip(same).copied().collect()
        };
        let (mut left, entered) = (functions(left), functions(entered));
        left.reverse();
        (left, entered)
    }
}

/// What to leave, and then to enter, to get from a call path to another.
#[derive(Debug, Clone, Default)]
pub(crate) struct Step {
    from: u32,
    to: u32,
    /// Innermost first.
    pub(crate) left: Vec<FunctionId>,
    /// Outermost first.
    pub(crate) entered: Vec<FunctionId>,
}

/// Steps between the paths of a thread. Most are those of a loop, so the last ones are kept.
#[derive(Debug)]
pub(crate) struct Steps {
    /// The most frames of a path that count.
    depth: u32,
    /// Each at the place that its paths choose; the empty ones lead from no path to none.
    kept: Vec<Step>,
}

/// How many steps are kept.
const STEPS: usize = 256;

impl Steps {
    /// None yet.
    pub(crate) fn new(depth: u32) -> Self {
        Self { depth, kept: vec![Step::default(); STEPS] }
    }

    /// The step from a path to another.
    #[inline]
    pub(crate) fn get(&mut self, paths: &Paths, from: u32, to: u32) -> &Step {
        let step = &mut self.kept[from.wrapping_mul(31).wrapping_add(to) as usize % STEPS];
        if (step.from, step.to) != (from, to) {
            *step = paths.step(from, to, self.depth);
        }
        step
    }
}

/// Finds the functions of the nodes of one process after the other.
#[derive(Debug)]
pub(crate) struct Symbolizer<'a> {
    selection: &'a Selection,
    /// All that were found.
    pub(crate) functions: Functions,
    modules: Opened,
}

/// Files whose functions are no part of the program's call paths: MPI itself, what starts a program, the recorder, and the
/// interpreter of Python with its access to MPI and to functions in C.
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
        "liboshmem",
        "libc",
        "libffi",
        "libgomp",
        "libomp",
        "libiomp5",
        "_ctypes",
        "_cffi_backend",
        "ld-linux-x86-64",
        "ld-linux-aarch64",
        "linux-vdso",
    ]
    .iter()
    .any(|prefix| is_library(prefix))
        || name.starts_with("libwhywait_record")
        || is_of_interpreter(path)
        || (name.starts_with("MPI.") && path.contains("mpi4py"))
}

/// Whether a file is the interpreter of Python.
fn is_of_interpreter(path: &str) -> bool {
    let name = Path::new(path).file_name().and_then(|name| name.to_str()).unwrap_or_default();
    let is_version = |rest: &str| rest.chars().all(|letter| letter.is_ascii_digit() || letter == '.');
    name.starts_with("libpython") || name.strip_prefix("python").is_some_and(is_version)
}

/// Functions that the toolchain puts around the program's own.
const STARTERS: [&str; 3] = ["_start", "__libc_start_main", "__libc_start_call_main"];

/// What compilers (GCC, and LLVM in two ways) add to the name of a function for the body of a construct of OpenMP in it.
const BODIES: [&str; 4] = ["._omp_fn.", ".omp_outlined", ".omp_task_entry", "..omp_par"];

/// The function that the body of a construct of OpenMP is in, by its name in the symbol table: empty if that does not tell.
fn enclosing(body: &str) -> Option<&str> {
    let begin = BODIES.iter().filter_map(|mark| body.find(mark)).min()?;
    Some(&body[..begin])
}

/// Whether a function is the toolchain's own: it starts the program, or holds the body of a construct of OpenMP.
fn is_made_by_compiler(name: &str) -> bool {
    STARTERS.contains(&name) || enclosing(name).is_some()
}

/// A function of Python. The statements of a file have the file's name.
fn of_python(name: &str, file: &str, line: u32) -> Function {
    let file_name = Path::new(file).file_name().filter(|_| name == "<module>");
    let name = file_name.map_or_else(|| name.to_owned(), |name| name.to_string_lossy().into_owned());
    Function { linkage_name: name.clone(), name, file: file.to_owned(), line }
}

/// Which functions of Python are on call paths.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Python {
    /// Those of the program: all but those of installed packages, unless the program is one.
    Program,
    /// All.
    All,
}

/// Whether a file belongs to Python itself.
fn is_of_python(file: &str) -> bool {
    file.starts_with("<frozen ") || (file.contains("/lib/python3") && !is_of_package(file))
}

/// Whether a file belongs to an installed package.
fn is_of_package(file: &str) -> bool {
    file.contains("/site-packages/") || file.contains("/dist-packages/")
}

/// The directory of the program, which makes the first call: its file is the first that is not Python's own.
fn home(definitions: &Definitions) -> Option<&Path> {
    let mut files = definitions.codes.iter().map(|(_, _, file, _)| file.as_str());
    let directory = files.find(|file| !is_of_python(file)).and_then(|file| Path::new(file).parent());
    directory.filter(|directory| directory.is_absolute())
}

impl<'a> Symbolizer<'a> {
    /// One that knows no function yet.
    pub(crate) fn new(selection: &'a Selection) -> Self {
        Self { selection, functions: Functions::default(), modules: FxHashMap::default() }
    }

    /// The paths of a thread with these nodes and functions of Python. In a team of OpenMP whose constructs were recorded, these are around the bodies.
    pub(crate) fn paths(
        &mut self,
        definitions: &Definitions,
        program: &str,
        python: Python,
        nodes: &[Node],
        codes: &[(u32, String, String, u32)],
        is_in_team: bool,
    ) -> Paths {
        let mut paths = Paths { nodes: vec![Frame::default()], functions: Vec::new() };
        let home = home(definitions);
        let is_wanted = |file: &str| {
            python == Python::All
                || home.is_some_and(|home| Path::new(file).starts_with(home))
                || !(is_of_python(file) || is_of_package(file))
        };
        let codes: FxHashMap<u32, FunctionId> = codes
            .iter()
            .filter(|(_, _, file, _)| is_wanted(file))
            .map(|(id, name, file, line)| (*id, of_python(name, file, *line)))
            .filter(|(_, function)| self.selection.keeps(&function.name))
            .map(|(id, function)| (id, self.functions.id(&function)))
            .collect();
        for node in &nodes[1..] {
            let begin = paths.functions.len() as u32;
            if node.address & Raw::PYTHON != 0 {
                paths.functions.extend(codes.get(&(node.address as u32)));
            } else {
                let has_caller = paths.upwards(node.parent).any(|caller| !paths.functions(caller).is_empty());
                let caller = nodes[node.parent as usize].address;
                let place = Place { address: node.address, caller, time: node.time };
                let has_caller = has_caller || is_in_team;
                self.native(&definitions.modules, program, place, has_caller, &mut paths.functions);
            }
            let parent = node.parent;
            let depth = paths.nodes[parent as usize].depth + 1;
            paths.nodes.push(Frame { parent, depth, begin, end: paths.functions.len() as u32 });
        }
        paths
    }

    /// The functions of a frame. What is around the body of a construct is known in the thread that forked; others begin with it.
    fn native(
        &mut self,
        modules: &[ModuleEntry],
        program: &str,
        place: Place,
        has_caller: bool,
        to: &mut Vec<FunctionId>,
    ) {
        let Some(module) = module_of(modules, place.address, place.time) else {
            to.push(self.functions.id(&Function::called("[unknown]")));
            return;
        };
        let path = path_of(module, program);
        if is_left_out(path) {
            return;
        }
        // A return address belongs to the instruction after the call.
        let address = place.address.wrapping_sub(1).wrapping_sub(module.base);
        let file = opened(&mut self.modules, path, module);
        let is_alias = file.functions(address).first().is_some_and(|function| function.linkage_name.starts_with("__"));
        let name = if file.is_named(address) { None } else { file.stub(address) };
        if (is_alias || !file.is_named(address))
            && let Some(name) = name.or_else(|| self.name_by_call(modules, program, module, place))
        {
            let function = Function::called(&name);
            to.extend(self.selection.keeps(&name).then(|| self.functions.id(&function)));
            let inlined = opened(&mut self.modules, path, module).functions(address).iter().skip(1);
            let kept = inlined.filter(|function| self.selection.keeps(&function.name));
            to.extend(kept.map(|function| self.functions.id(function)));
            return;
        }
        let Self { selection, functions, modules: open } = self;
        let file = opened(open, path, module);
        if !has_caller
            && let Some(body) = file.functions(address).first().cloned()
            && let Some(name) = enclosing(&body.linkage_name)
        {
            let function = file.enclosing(&body, name, |name| enclosing(name).is_some());
            to.extend(selection.keeps(&function.name).then(|| functions.id(&function)));
        }
        for function in file.functions(address) {
            if !is_made_by_compiler(&function.name) && selection.keeps(&function.name) {
                to.push(functions.id(function));
            }
        }
    }
}

/// A place in a function.
#[derive(Debug, Clone, Copy)]
struct Place {
    /// Its address, and one more.
    address: u64,
    /// Where the function returns to; 0 if that is not known.
    caller: u64,
    time: u64,
}

fn path_of<'a>(module: &'a ModuleEntry, program: &'a str) -> &'a str {
    if module.path.is_empty() { program } else { &module.path }
}

/// What collects garbage in the interpreter of Python, if that has symbols.
const COLLECTORS: [&str; 3] = ["gc_collect_main", "gc_collect_with_callback", "gc_collect_region"];

/// What blocks and unblocks signals: where these were blocked, samples come when it returns.
const BLOCKING: [&str; 2] = ["sigprocmask", "pthread_sigmask"];

impl Symbolizer<'_> {
    /// The name by which another object calls a function of a module.
    fn name_by_call(
        &mut self,
        modules: &[ModuleEntry],
        program: &str,
        module: &ModuleEntry,
        place: Place,
    ) -> Option<String> {
        let caller = module_of(modules, place.caller, place.time).filter(|_| place.caller & Raw::PYTHON == 0)?;
        let path = path_of(caller, program);
        let after = place.caller.wrapping_sub(caller.base);
        (caller.base != module.base).then(|| opened(&mut self.modules, path, caller).callee(after)).flatten()
    }

    /// The innermost functions of a sample below the path of its node, and its line. Of objects that are left out of call paths, it is the one
    /// function that the program, or another library, has called.
    pub(crate) fn leaf(
        &mut self,
        definitions: &Definitions,
        program: &str,
        nodes: &[Node],
        (node, address): (u32, u64),
        time: u64,
        has_caller: bool,
    ) -> Leaf {
        let modules = &definitions.modules;
        let Some(module) = module_of(modules, address, time) else {
            let functions = vec![self.functions.id(&Function::called("[code made at run time]"))];
            return Leaf { functions, line: 0 };
        };
        let return_address = |node: u32| nodes[node as usize].address;
        let mut place = Place { address, caller: return_address(node), time };
        if !is_left_out(path_of(module, program)) {
            let mut functions = Vec::new();
            self.native(modules, program, place, has_caller, &mut functions);
            let file = opened(&mut self.modules, path_of(module, program), module);
            let line = file.line(address.wrapping_sub(1).wrapping_sub(module.base)).map_or(0, |(_, line)| line);
            return Leaf { functions, line };
        }
        let (mut outermost, mut caller) = (module, node);
        while let Some(module) = module_of(modules, place.caller, time).filter(|_| place.caller & Raw::PYTHON == 0)
            && is_left_out(path_of(module, program))
        {
            outermost = module;
            caller = nodes[caller as usize].parent;
            place = Place { address: place.caller, caller: return_address(caller), time };
        }
        let path = path_of(outermost, program);
        let name = if is_of_interpreter(path) {
            // What a function of Python does itself is its own.
            if place.caller & Raw::PYTHON != 0 {
                return self.in_interpreter(modules, program, nodes, (node, address), time);
            }
            "[Python]".to_owned()
        } else {
            let own = place.address.wrapping_sub(1).wrapping_sub(outermost.base);
            let by_call = self.name_by_call(modules, program, outermost, place);
            by_call
                .or_else(|| Some(opened(&mut self.modules, path, outermost).functions(own).first()?.name.clone()))
                .unwrap_or_default()
        };
        let name = if BLOCKING.contains(&name.as_str()) { "[signals blocked]" } else { &name };
        // Where there is no program around it, it is what ends or begins a thread.
        let is_kept = has_caller && !STARTERS.contains(&name) && self.selection.keeps(name);
        let functions = is_kept.then(|| self.functions.id(&Function::called(name)));
        Leaf { functions: functions.into_iter().collect(), line: 0 }
    }

    /// What the interpreter does for a function of Python: nothing but its own work, unless it collects garbage.
    fn in_interpreter(
        &mut self,
        modules: &[ModuleEntry],
        program: &str,
        nodes: &[Node],
        (node, address): (u32, u64),
        time: u64,
    ) -> Leaf {
        let mut addresses = vec![address];
        let mut at = node;
        while at != 0 && nodes[at as usize].address & Raw::PYTHON == 0 {
            addresses.push(nodes[at as usize].address);
            at = nodes[at as usize].parent;
        }
        let collects = addresses.iter().any(|address| {
            module_of(modules, *address, time).is_some_and(|module| {
                let own = address.wrapping_sub(1).wrapping_sub(module.base);
                let file = opened(&mut self.modules, path_of(module, program), module);
                file.functions(own).iter().any(|function| COLLECTORS.contains(&function.name.as_str()))
            })
        });
        let functions = collects.then(|| self.functions.id(&Function::called("[garbage collection]")));
        Leaf { functions: functions.into_iter().collect(), line: 0 }
    }

    /// How to write where in the code of a library an address is: its function, or else the file and the address in it.
    pub(crate) fn spot(&mut self, definitions: &Definitions, program: &str, address: u64, time: u64) -> String {
        let Some(module) = module_of(&definitions.modules, address, time) else { return "[unknown]".into() };
        let path = path_of(module, program);
        let own = address.wrapping_sub(1).wrapping_sub(module.base);
        let file = opened(&mut self.modules, path, module);
        if file.is_named(own) {
            return file.functions(own).last().map_or_else(String::new, |function| function.name.clone());
        }
        let name = Path::new(path).file_name().unwrap_or_default().to_string_lossy();
        format!("{name}+{own:#x}")
    }

    /// The nodes of samples whose paths are not whole, as they lead through the interpreter of Python.
    pub(crate) fn partial(definitions: &Definitions, program: &str, nodes: &[Node]) -> FxHashSet<u32> {
        let (mut partial, mut in_python) = (FxHashSet::default(), FxHashSet::default());
        for (number, node) in (0_u32..).zip(nodes).skip(1) {
            let is_of_interpreter = || {
                module_of(&definitions.modules, node.address, node.time)
                    .is_some_and(|module| is_of_interpreter(path_of(module, program)))
            };
            if node.address & Raw::PYTHON != 0 || in_python.contains(&node.parent) {
                in_python.insert(number);
            } else if partial.contains(&node.parent) || is_of_interpreter() {
                partial.insert(number);
            }
        }
        partial
    }

    /// Where an address of the program's code is: the file and the line, or else the address in the file; and how to write that short.
    pub(crate) fn place(
        &mut self,
        definitions: &Definitions,
        program: &str,
        address: u64,
        time: u64,
    ) -> (String, u32, String) {
        let Some(module) = module_of(&definitions.modules, address, time).filter(|_| address != 0) else {
            return (String::new(), 0, String::new());
        };
        let path = path_of(module, program);
        let own = address.wrapping_sub(1).wrapping_sub(module.base);
        let name = |path: &str| Path::new(path).file_name().unwrap_or_default().to_string_lossy().into_owned();
        match opened(&mut self.modules, path, module).line(own) {
            Some((file, line)) => {
                let short = format!("{}:{line}", name(&file));
                (file, line, short)
            }
            None => (path.to_owned(), 0, format!("{}+{own:#x}", name(path))),
        }
    }
}

/// The object that an address was in at a time.
fn module_of(modules: &[ModuleEntry], address: u64, time: u64) -> Option<&ModuleEntry> {
    let holds = |module: &&ModuleEntry| (module.start..module.end).contains(&address);
    // Where libraries were loaded and unloaded, the last one before the call is meant.
    let loaded = modules.iter().filter(holds).filter(|module| module.time <= time).max_by_key(|module| module.time);
    loaded.or_else(|| modules.iter().find(holds))
}

type Opened = FxHashMap<(String, Vec<u8>), Module>;

fn opened<'a>(known: &'a mut Opened, path: &str, module: &ModuleEntry) -> &'a mut Module {
    known
        .entry((path.to_owned(), module.build_id.clone()))
        .or_insert_with(|| Module::open(Path::new(path), &module.build_id))
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
            "/usr/lib/x86_64-linux-gnu/libgomp.so.1",
            "/usr/lib/python3.11/lib-dynload/_ctypes.cpython-311-x86_64-linux-gnu.so",
        ] {
            assert!(is_left_out(path), "{path}");
        }
        for path in
            ["/home/me/solver", "/usr/lib/libcgns.so", "/usr/lib/libhdf5_mpi.so", "/x/libmpigrid.so", "/x/pythonic"]
        {
            assert!(!is_left_out(path), "{path}");
        }
    }

    #[test]
    fn functions_of_packages_are_left_out_unless_the_program_is_one() {
        let files = |files: [&str; 4]| {
            let mut definitions = Definitions::default();
            let codes = (1..).zip(files).map(|(id, file)| (id, format!("f{id}"), file.to_owned(), 7));
            definitions.codes.extend(codes);
            let node = |id: u64| Node { address: Raw::PYTHON | id, parent: 0, time: 0 };
            let nodes: Vec<Node> = (0..=4).map(node).collect();
            move |python| {
                let selection = Selection::default();
                let mut symbolizer = Symbolizer::new(&selection);
                let paths = symbolizer.paths(&definitions, "", python, &nodes, &definitions.codes, false);
                (1..=4).map(|node| !paths.functions(node).is_empty()).collect::<Vec<_>>()
            }
        };
        let (frozen, packages) = ("<frozen runpy>", "/usr/lib/python3.12/site-packages");
        let script = files([frozen, "/home/me/solve.py", "/usr/lib/python3.12/enum.py", &format!("{packages}/x/y.py")]);
        assert_eq!(script(Python::Program), [false, true, false, false]);
        assert_eq!(script(Python::All), [true; 4]);
        let package =
            files([frozen, &format!("{packages}/me/solve.py"), &format!("{packages}/me/in/x.py"), "<string>"]);
        assert_eq!(package(Python::Program), [false, true, true, true]);
        let other = files([frozen, &format!("{packages}/me/solve.py"), &format!("{packages}/you.py"), "<string>"]);
        assert_eq!(other(Python::Program), [false, true, false, true]);
        let relative = files(["solve.py", &format!("{packages}/x.py"), "<stdin>", frozen]);
        assert_eq!(relative(Python::Program), [true, false, true, false]);
    }

    #[test]
    fn bodies_of_constructs_are_no_functions_of_the_program() {
        for name in ["_start", ".omp_outlined.", ".omp_outlined._debug__.1", "main.omp_outlined", "main._omp_fn.0"] {
            assert!(is_made_by_compiler(name), "{name}");
        }
        assert!(!is_made_by_compiler("main") && !is_made_by_compiler("omp_solve"));
        let named = ["_ZN4mesh5solveEv._omp_fn.0", "main.omp_outlined.omp_outlined", "solve_..omp_par.1", "main"];
        assert_eq!(named.map(enclosing), [Some("_ZN4mesh5solveEv"), Some("main"), Some("solve_"), None]);
        assert_eq!(enclosing(".omp_outlined._debug__.1"), Some(""));
    }

    #[test]
    fn statements_of_a_file_have_its_name() {
        assert_eq!(of_python("<module>", "/home/me/solve.py", 1).name, "solve.py");
        assert_eq!(of_python("Grid.step", "/home/me/solve.py", 9).name, "Grid.step");
    }

    #[test]
    fn steps_are_those_between_their_paths_whatever_was_kept() {
        // Fifty functions below another, each called from two places.
        let mut paths = Paths { nodes: vec![Frame::default()], functions: vec![0] };
        for node in 1..=100_u32 {
            let (parent, begin) = if node == 1 { (0, 0) } else { (node / 3, node / 2) };
            paths.functions.push(node);
            let depth = paths.depth(parent) + 1;
            paths.nodes.push(Frame { parent, depth, begin, end: begin + 1 });
        }
        for depth in [2, 128] {
            let mut steps = Steps::new(depth);
            let pairs = (0..=100).flat_map(|from| (0..=100).map(move |to| (from, to)));
            let mut taken: Vec<FunctionId> = Vec::new();
            let mut at = 0;
            for (from, to) in pairs {
                for (from, to) in [(at, from), (from, to)] {
                    let step = steps.get(&paths, from, to);
                    for function in &step.left {
                        assert_eq!(taken.pop(), Some(*function));
                    }
                    taken.extend(&step.entered);
                    let mut expected: Vec<FunctionId> = paths
                        .upwards(to)
                        .take(depth as usize)
                        .flat_map(|node| paths.functions(node))
                        .copied()
                        .collect();
                    expected.reverse();
                    assert_eq!(taken, expected);
                }
                at = to;
            }
        }
    }
}
