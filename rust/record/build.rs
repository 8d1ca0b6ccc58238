//! Makes the exported functions and their description out of the tables.

use std::env;
use std::fmt::Write;

include!("tables.rs");

/// What an argument can be; its place in this list is its column in `Function::roles`.
const ROLES: &[&str] = &[
    "sbuf",
    "rbuf",
    "buf",
    "scount",
    "stype",
    "rcount",
    "rtype",
    "scounts",
    "stypes",
    "rcounts",
    "rtypes",
    "tcount",
    "ttype",
    "partitions",
    "dest",
    "source",
    "root",
    "target",
    "tag",
    "rtag",
    "comm",
    "newcomm",
    "win",
    "newwin",
    "file",
    "newfile",
    "group",
    "message",
    "request",
    "n",
    "requests",
    "status",
    "statuses",
    "flag",
    "index",
    "outcount",
    "indices",
    "lock",
    "assert",
    "mode",
    "text",
    "thread",
    "routine",
    "argument",
    "start",
    "stride",
    "members",
    "offset",
    "whence",
    "fd",
    "newfd",
    "stream",
    "access",
    "size",
    "items",
    "vector",
    "line",
    "string",
    "active",
    "partition",
    "last",
    "list",
    "levels",
    "vectors",
    "handle",
    "mutex",
    "from",
    "control",
];

fn camel(name: &str) -> String {
    name.split('_').map(|word| word[..1].to_uppercase() + &word[1..]).collect()
}

fn main() {
    // The stub that catches a call stores the argument registers, two more words, and finds the other arguments after those.
    let target = env::var("CARGO_CFG_TARGET_ARCH").unwrap();
    let registers = if target == "aarch64" { 8 } else { 6 };
    let word = |argument: usize| if argument < registers { argument } else { argument + 2 };

    let functions = rows(Path::new("."));
    let (mut classes, mut groups) = (Vec::new(), Vec::new());
    let (mut constants, mut rows, mut exports, mut armci) = (String::new(), String::new(), String::new(), Vec::new());
    let mut variadic = String::new();
    for (index, function) in functions.iter().enumerate() {
        let (class, group) = (function.text("class"), function.text("group"));
        let of_mpi = function.name.strip_prefix("MPI_");
        let name = of_mpi.unwrap_or(&function.name);
        let (owner, real) = match of_mpi {
            Some(name) => ("Mpi", format!("PMPI_{name}")),
            None if ["threads", "posix"].contains(&group) => {
                ("System", function.find("real").unwrap_or(name).to_owned())
            }
            None if group == "armci" => ("Armci", name.to_owned()),
            None => ("Shmem", name.to_owned()),
        };
        for (list, item) in [(&mut classes, class), (&mut groups, group)] {
            if !list.contains(&item) {
                list.push(item);
            }
        }
        let mut roles = vec!["NO"; ROLES.len()].iter().map(ToString::to_string).collect::<Vec<_>>();
        let (mut arguments, mut least, mut floats) = (0, 0, function.name.ends_with("_g"));
        for role in function.args.split_whitespace() {
            if ["floating", "memory"].contains(&role) {
                // It takes none of the words: a register of its own, or two words on the stack.
                floats = true;
                least = if role == "memory" { registers + 2 } else { least };
                continue;
            }
            if role != "-" {
                let column = ROLES.iter().position(|known| *known == role);
                let column = column.unwrap_or_else(|| panic!("{name}: unknown argument {role}"));
                assert!(roles[column] == "NO", "{name}: {role} twice");
                roles[column] = word(arguments).to_string();
            }
            arguments += 1;
        }
        let has_flag = function.args.split_whitespace().any(|role| role == "flag") && class != "pcontrol";
        let tests = has_flag || ["testsome", "shmem_test"].contains(&class);
        let large = function.find("large");
        let large_arguments =
            function.entry.get("large_args").and_then(toml::Value::as_integer).map_or(arguments, |n| n as usize);
        let upper = name.to_uppercase();
        writeln!(constants, "pub(crate) const {upper}: usize = {index};").unwrap();
        writeln!(
            rows,
            "    Function {{ name: c{real:?}, owner: Owner::{owner}, class: Class::{}, library: Library::{}, group: Group::{}, narrows: {}, scatters: {}, neighbours: {}, tests: {tests}, asks: {}, reads: {}, has_code: {}, arguments: {}, element: {}, roles: [{}] }},",
            camel(class),
            library(class),
            camel(group),
            large == Some("counts"),
            name.contains("catter") && roles[16] != "NO",
            name.contains("eighbor"),
            name.starts_with("Request_get_status"),
            reads(name),
            ["Mpi", "System"].contains(&owner) && group != "posix",
            arguments.max(large_arguments).max(least),
            function.element,
            roles.join(", "),
        )
        .unwrap();
        // Elsewhere than on x86-64, `catch` does not keep floating-point registers.
        let floats = floats && owner != "Mpi" && target != "x86_64";
        if function.entry.contains_key("caught") || floats {
            continue;
        }
        if let Some(named) = function.entry.get("variadic") {
            // Where arguments that vary are depends on the machine.
            if target == "x86_64" {
                writeln!(variadic, "    {name} = {}, {named};", index * 4).unwrap();
            }
            continue;
        }
        if owner == "Armci" {
            armci.push(format!("({index}, {name})"));
        }
        if of_mpi.is_none() {
            writeln!(exports, "    {name} = {};", index * 4).unwrap();
            continue;
        }
        for (twin, suffix) in [(0, ""), (1, "_c")].iter().take(1 + usize::from(large.is_some())) {
            for (profiling, prefix) in [(0, ""), (1, "P")] {
                writeln!(exports, "    {prefix}MPI_{name}{suffix} = {};", index * 4 + twin * 2 + profiling).unwrap();
            }
        }
    }

    let list = |name: &str, items: &[&str], from: fn(&str) -> String| {
        let items: Vec<String> = items.iter().map(|item| from(item)).collect();
        let items = items.join(", ");
        format!(
            "#[derive(Clone, Copy, PartialEq, Eq, Debug)]\n#[allow(dead_code, reason = \"the table is whole\")]\n#[repr(u8)]\npub(crate) enum {name} {{ {items} }}\n"
        )
    };
    let mut names = String::new();
    for group in &groups {
        write!(names, "(\"{group}\", Group::{}), ", camel(group)).unwrap();
    }
    let source = format!(
        "{}\n{}\n{}\n{}\npub(crate) const GROUPS: &[(&str, Group)] = &[{names}];\npub(crate) const ROLES: usize = {};\n\
         pub(crate) static FUNCTIONS: [Function; {}] = [\n{rows}];\n/// Numbers of the functions.\n#[allow(dead_code, reason = \"the table is whole\")]\npub(crate) mod number {{\n{constants}}}\n",
        list("Class", &classes, camel),
        libraries(&functions, camel),
        list("Group", &groups, camel),
        list("Role", ROLES, camel),
        ROLES.len(),
        functions.len(),
    );
    let exports = format!(
        "export! {{\n{exports}}}\n#[cfg(target_arch = \"x86_64\")]\nexport_variadic! {{\n{variadic}}}\n\
         /// Functions of ARMCI, by their numbers.\nstatic ARMCI: [(usize, unsafe extern \"C-unwind\" fn() -> c_int); {}] = [{}];\n",
        armci.len(),
        armci.join(", "),
    );
    let directory = env::var("OUT_DIR").unwrap();
    fs::write(Path::new(&directory).join("table.rs"), source).unwrap();
    fs::write(Path::new(&directory).join("exports.rs"), exports).unwrap();
}
