//! Addresses in the files of a program to functions: symbol tables, then DWARF, which also knows what was inlined. Where both were
//! stripped, the tables for unwinding still tell where functions begin.

use std::fmt::Write;
use std::fs;
use std::path::{Path, PathBuf};

use addr2line::Loader;
use gimli::UnwindSection;
use object::{Object, ObjectSection, ObjectSegment, ObjectSymbol, ObjectSymbolTable, SymbolKind};
use rustc_hash::FxHashMap;

/// A function of the program.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub(crate) struct Function {
    /// Name as in the source, or `file+0x1a2b` with its first address if there are no symbols.
    pub(crate) name: String,
    /// Name as in the symbol table.
    pub(crate) linkage_name: String,
    /// Source file; empty if unknown.
    pub(crate) file: String,
    /// Line where it begins, 0 if unknown.
    pub(crate) line: u32,
}

impl Function {
    /// One of which nothing is known but its name.
    pub(crate) fn called(name: &str) -> Self {
        Self { name: name.to_owned(), linkage_name: name.to_owned(), file: String::new(), line: 0 }
    }
}

/// One file that the program had mapped.
pub(crate) struct Module {
    path: PathBuf,
    loader: Option<Loader>,
    /// The file that has the symbols.
    symbols: PathBuf,
    /// Where functions are, if there are no symbols; `None` until it is needed.
    extents: Option<Extents>,
    /// What its calls of other files lead to; `None` until it is needed.
    calls: Option<Calls>,
    /// Functions by address, and whether they have names.
    known: FxHashMap<u64, (Vec<Function>, bool)>,
}

impl std::fmt::Debug for Module {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Module").field("path", &self.path).finish_non_exhaustive()
    }
}

/// Where Linux distributions keep the symbols that they take out of programs.
const DEBUG_FILES: &str = "/usr/lib/debug/.build-id";

impl Module {
    /// The file at `path`, if it still is the one with this build id (empty: if it had none).
    pub(crate) fn open(path: &Path, build_id: &[u8]) -> Self {
        let (symbols, loader) = load(path, build_id).unzip();
        let (path, symbols) = (path.to_owned(), symbols.unwrap_or_default());
        Self { path, loader, symbols, extents: None, calls: None, known: FxHashMap::default() }
    }

    /// File and line of an address, if there is debugging information.
    pub(crate) fn line(&self, address: u64) -> Option<(String, u32)> {
        let location = self.loader.as_ref()?.find_location(address).ok()??;
        Some((location.file?.to_owned(), location.line?))
    }

    /// The functions at an address of the file (the virtual address that the file states), outermost first: one, and
    /// those that were inlined into it.
    pub(crate) fn functions(&mut self, address: u64) -> &[Function] {
        &self.found(address).0
    }

    /// Whether the function at an address of the file has a name.
    pub(crate) fn is_named(&mut self, address: u64) -> bool {
        self.found(address).1
    }

    fn found(&mut self, address: u64) -> &(Vec<Function>, bool) {
        let Self { path, loader, extents, known, .. } = self;
        known.entry(address).or_insert_with(|| {
            let extents = extents.get_or_insert_with(|| match loader {
                Some(_) => Extents::of(path).unwrap_or_default(),
                None => Extents::default(),
            });
            let begin = extents.begin(address);
            let found = loader.as_ref().map(|loader| look_up(loader, address, begin)).unwrap_or_default();
            if !found.is_empty() {
                return (found, true);
            }
            (vec![unnamed(path, begin.unwrap_or(address), extents.entry)], false)
        })
    }

    /// The function that a stub of the linker at an address of the file leads to.
    pub(crate) fn stub(&mut self, address: u64) -> Option<String> {
        // They are as long as this, and lie as far apart.
        self.calls()?.stub(address & !15)
    }

    fn calls(&mut self) -> Option<&Calls> {
        let Self { path, loader, calls, .. } = self;
        // Another build would have other calls.
        loader.as_ref()?;
        Some(calls.get_or_insert_with(|| Calls::of(path).unwrap_or_default()))
    }

    /// What the call that returns to an address of the file leads to, if that is in another file: the name by which it was linked.
    pub(crate) fn callee(&mut self, address: u64) -> Option<String> {
        self.calls()?.callee(address)
    }

    /// The function that the compiler took `body` out of: that of this name in the symbol table, or, if the body's name does not tell,
    /// the last one that begins before it in the same source file.
    pub(crate) fn enclosing(
        &mut self,
        body: &Function,
        linkage_name: &str,
        is_body: impl Fn(&str) -> bool,
    ) -> Function {
        let begin = if linkage_name.is_empty() {
            let line = |address| self.line(address).filter(|(file, line)| *file == body.file && *line <= body.line);
            let functions = self.addresses(|name| !is_body(name));
            functions.into_iter().filter_map(|address| Some((line(address)?.1, address))).max()
        } else {
            self.addresses(|name| name == linkage_name).first().map(|address| (0, *address))
        };
        if let Some((_, address)) = begin
            && let Some(function) = self.functions(address).first()
        {
            return function.clone();
        }
        if linkage_name.is_empty() {
            return body.clone();
        }
        Function { name: demangled(linkage_name), linkage_name: linkage_name.to_owned(), ..body.clone() }
    }

    /// Where the functions begin whose names in the symbol table are wanted.
    fn addresses(&self, is_wanted: impl Fn(&str) -> bool) -> Vec<u64> {
        let Ok(file) = fs::File::open(&self.symbols) else { return Vec::new() };
        let cache = object::ReadCache::new(file);
        let Ok(file) = object::File::parse(&cache) else { return Vec::new() };
        let functions = file.symbols().filter(|symbol| symbol.kind() == SymbolKind::Text && symbol.is_definition());
        functions.filter(|symbol| symbol.name().is_ok_and(&is_wanted)).map(|symbol| symbol.address()).collect()
    }
}

/// Where the functions of a file are, by its tables for unwinding.
#[derive(Debug, Default)]
struct Extents {
    /// First address and length, ascending.
    list: Vec<(u64, u64)>,
    /// Where the program starts.
    entry: u64,
}

impl Extents {
    fn of(path: &Path) -> Option<Self> {
        let cache = object::ReadCache::new(fs::File::open(path).ok()?);
        let file = object::File::parse(&cache).ok()?;
        let section = file.section_by_name(".eh_frame")?;
        let data = section.uncompressed_data().ok()?;
        let frames = gimli::EhFrame::new(&data, gimli::NativeEndian);
        let text = file.section_by_name(".text").map_or(0, |text| text.address());
        let bases = gimli::BaseAddresses::default().set_eh_frame(section.address()).set_text(text);
        let mut list = Vec::new();
        let mut entries = frames.entries(&bases);
        while let Ok(Some(entry)) = entries.next() {
            if let gimli::CieOrFde::Fde(partial) = entry
                && let Ok(description) = partial.parse(|_, bases, offset| frames.cie_from_offset(bases, offset))
            {
                list.push((description.initial_address(), description.len()));
            }
        }
        list.sort_unstable();
        Some(Self { list, entry: file.entry() })
    }

    /// Where the function that an address belongs to begins, if that is known.
    fn begin(&self, address: u64) -> Option<u64> {
        let after = self.list.partition_point(|(begin, _)| *begin <= address);
        let extent = after.checked_sub(1).map(|at| self.list[at]);
        extent.filter(|(begin, length)| address - begin < *length).map(|(begin, _)| begin)
    }
}

/// Calls of a file that the linker leads to other files, by way of a table of addresses.
#[derive(Debug, Default)]
struct Calls {
    file: Option<fs::File>,
    /// Loaded parts: first address, length, and offset in the file.
    parts: Vec<(u64, u64, u64)>,
    /// Names of functions by where their addresses are.
    slots: FxHashMap<u64, String>,
}

impl Calls {
    fn of(path: &Path) -> Option<Self> {
        let cache = object::ReadCache::new(fs::File::open(path).ok()?);
        let file = object::File::parse(&cache).ok()?;
        if file.architecture() != object::Architecture::X86_64 {
            return None;
        }
        let parts = file.segments().map(|segment| {
            let (offset, length) = segment.file_range();
            (segment.address(), length, offset)
        });
        let parts = parts.collect();
        let symbols = file.dynamic_symbol_table()?;
        let mut slots = FxHashMap::default();
        for (at, relocation) in file.dynamic_relocations()? {
            if let object::RelocationTarget::Symbol(index) = relocation.target()
                && let Ok(name) = symbols.symbol_by_index(index).and_then(|symbol| symbol.name())
            {
                slots.insert(at, name.to_owned());
            }
        }
        Some(Self { file: fs::File::open(path).ok(), parts, slots })
    }

    /// Bytes of the file from an address on.
    fn read<const N: usize>(&self, address: u64) -> Option<[u8; N]> {
        use std::os::unix::fs::FileExt;
        let holds = |(begin, length, _): &&(u64, u64, u64)| address >= *begin && address - begin < *length;
        let (begin, _, offset) = self.parts.iter().find(holds)?;
        let mut bytes = [0; N];
        self.file.as_ref()?.read_exact_at(&mut bytes, offset + (address - begin)).ok()?;
        Some(bytes)
    }

    /// The name that a call returns from: `call` through the table, or to a stub that jumps through it.
    fn callee(&self, after: u64) -> Option<String> {
        let [first, second, distance @ ..] = self.read::<6>(after.wrapping_sub(6))?;
        let to = after.wrapping_add_signed(i64::from(i32::from_le_bytes(distance)));
        match (first, second) {
            (0xff, 0x15) => self.slots.get(&to).map(|name| demangled(name)),
            (_, 0xe8) => self.stub(to),
            _ => None,
        }
    }

    /// The name that a stub leads to.
    fn stub(&self, begin: u64) -> Option<String> {
        let code = self.read::<12>(begin)?;
        // What marks the target of a jump, and a prefix, may come first.
        let mut at = if code.starts_with(&[0xf3, 0x0f, 0x1e, 0xfa]) { 4 } else { 0 };
        at += usize::from(code[at] == 0xf2);
        let [0xff, 0x25, distance @ ..] = *code.get(at..at + 6)?.first_chunk::<6>()? else { return None };
        let slot = (begin + at as u64 + 6).wrapping_add_signed(i64::from(i32::from_le_bytes(distance)));
        self.slots.get(&slot).map(|name| demangled(name))
    }
}

/// What knows the symbols of a file, and the file that has them.
fn load(path: &Path, build_id: &[u8]) -> Option<(PathBuf, Loader)> {
    let data = fs::File::open(path).ok()?;
    // SAFETY of the map is the loader's business; here only the header and the notes are read, into memory.
    let cache = object::ReadCache::new(data);
    let file = object::File::parse(&cache).ok()?;
    if file.build_id().ok().flatten().unwrap_or_default() != build_id {
        return None;
    }
    if let [first, rest @ ..] = build_id
        && !file.has_debug_symbols()
    {
        let mut name = format!("{first:02x}/");
        for byte in rest {
            let _ = write!(name, "{byte:02x}");
        }
        let separate = Path::new(DEBUG_FILES).join(name + ".debug");
        if let Ok(loader) = Loader::new(&separate) {
            return Some((separate, loader));
        }
    }
    Some((path.to_owned(), Loader::new(path).ok()?))
}

/// The functions at an address, outermost first. What is there begins at `begin`, if that is known: the symbol before it may be that of another function.
fn look_up(loader: &Loader, address: u64, begin: Option<u64>) -> Vec<Function> {
    let symbol = loader.find_symbol_info(address).filter(|symbol| begin.is_none_or(|begin| symbol.address() >= begin));
    let mut functions = Vec::new();
    if let Ok(mut frames) = loader.find_frames(address) {
        while let Ok(Some(frame)) = frames.next() {
            let Some(function) = frame.function else { continue };
            let Ok(linkage_name) = function.raw_name() else { continue };
            functions.push(Function {
                name: demangled(&linkage_name),
                linkage_name: linkage_name.into_owned(),
                file: frame.location.and_then(|location| location.file).unwrap_or_default().to_owned(),
                line: 0,
            });
        }
    }
    functions.reverse();
    // Debugging information names the place in the function; its first instruction is where the function begins.
    if let Some(symbol) = symbol {
        let begin = loader.find_location(symbol.address()).ok().flatten();
        match functions.first_mut() {
            Some(outermost) => outermost.line = begin.and_then(|begin| begin.line).unwrap_or(0),
            None => functions.push(Function {
                name: demangled(symbol.name()),
                linkage_name: symbol.name().to_owned(),
                file: begin.as_ref().and_then(|begin| begin.file).unwrap_or_default().to_owned(),
                line: begin.and_then(|begin| begin.line).unwrap_or(0),
            }),
        }
    }
    functions
}

fn unnamed(path: &Path, address: u64, entry: u64) -> Function {
    let file = path.file_name().map_or_else(|| "unknown".into(), |name| name.to_string_lossy());
    let name = if address == entry { "_start".into() } else { format!("{file}+{address:#x}") };
    Function::called(&name)
}

/// A name as in the source, without parameters: in C++ these may take pages. The linkage name tells functions of one name apart.
fn demangled(name: &str) -> String {
    if let Ok(rust) = rustc_demangle::try_demangle(name) {
        return format!("{rust:#}");
    }
    if name.starts_with("_Z")
        && let Ok(symbol) = cpp_demangle::Symbol::new(name)
        && let Ok(text) =
            symbol.demangle_with_options(&cpp_demangle::DemangleOptions::new().no_return_type().no_params())
    {
        return text;
    }
    name.to_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_those_of_the_source() {
        assert_eq!(demangled("main"), "main");
        assert_eq!(demangled("_ZN4mesh6refineEid"), "mesh::refine");
        assert_eq!(demangled("_ZN3fooIiE3barERKSs"), "foo<int>::bar");
        assert_eq!(demangled("_RNvC5solve4step"), "solve::step");
        assert_eq!(demangled("_Z"), "_Z");
    }

    #[inline(never)]
    fn here() -> u64 {
        std::hint::black_box(here as *const () as u64)
    }

    #[test]
    fn functions_of_this_program_have_names() {
        let path = std::env::current_exe().unwrap();
        let maps = fs::read_to_string("/proc/self/maps").unwrap();
        let line = maps.lines().find(|line| line.ends_with(path.to_str().unwrap())).unwrap();
        let base = u64::from_str_radix(line.split('-').next().unwrap(), 16).unwrap();
        let data = fs::read(&path).unwrap();
        let id = object::File::parse(&*data).unwrap().build_id().unwrap().unwrap_or_default().to_vec();
        let mut module = Module::open(&path, &id);
        let names: Vec<_> = module.functions(here() - base).iter().map(|function| function.name.clone()).collect();
        assert!(names.last().unwrap().ends_with("symbols::tests::here"), "{names:?}");
        let mut other = Module::open(&path, b"another build");
        assert_eq!(other.functions(0x1a2b)[0].name, format!("{}+0x1a2b", path.file_name().unwrap().to_str().unwrap()));

        let own = module.functions(here() - base)[0].clone();
        let body = Function { name: "body".into(), linkage_name: "body".into(), ..own.clone() };
        let enclosing = |module: &mut Module, name: &str| module.enclosing(&body, name, |_| false);
        assert_eq!(enclosing(&mut module, &own.linkage_name), own, "it has a symbol");
        assert_eq!(enclosing(&mut module, "_ZN4mesh6refineEid").name, "mesh::refine", "it was inlined everywhere");
        assert_eq!(enclosing(&mut other, ""), body, "nothing tells");
        if own.line != 0 {
            assert_eq!(enclosing(&mut module, ""), own, "by its lines");
        }
    }
}
