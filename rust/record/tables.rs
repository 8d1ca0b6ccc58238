// The tables of functions, for the build scripts of the recorder and of the reader: the number of a function is its place in them.

use std::collections::BTreeSet;
use std::fs;
use std::path::Path;

/// The tables, in the order of the functions' numbers.
const TABLES: [&str; 5] = ["mpi.toml", "threads.toml", "shmem.toml", "posix.toml", "armci.toml"];

/// One function.
struct Row {
    /// What the table says.
    entry: toml::Table,
    name: String,
    /// Name of its region.
    #[allow(dead_code, reason = "for the reader")]
    region: String,
    /// What each argument is.
    #[allow(dead_code, reason = "for the recorder")]
    args: String,
    /// Bytes of an element, 0 if the name does not tell.
    #[allow(dead_code, reason = "for the recorder")]
    element: i64,
}

impl Row {
    fn text(&self, key: &str) -> &str {
        self.find(key).unwrap_or_else(|| panic!("{}: {key} is missing", self.name))
    }

    fn find(&self, key: &str) -> Option<&str> {
        self.entry.get(key).and_then(toml::Value::as_str)
    }
}

/// All functions, from the tables in a directory.
fn rows(directory: &Path) -> Vec<Row> {
    let mut rows = Vec::new();
    for name in TABLES {
        let path = directory.join(name);
        println!("cargo:rerun-if-changed={}", path.display());
        let text = fs::read_to_string(&path).unwrap_or_else(|error| panic!("{}: {error}", path.display()));
        let table: toml::Table = text.parse().unwrap_or_else(|error| panic!("{}: {error}", path.display()));
        for entry in table["function"].as_array().expect("a list of functions") {
            let entry = entry.as_table().expect("a function");
            let is_twin = [false, true];
            let twins = if entry.contains_key("context") { &is_twin[..] } else { &is_twin[..1] };
            for twin in twins {
                expand(entry, &table, *twin, &mut rows);
            }
        }
    }
    rows
}

/// Adds the functions that an entry stands for.
fn expand(entry: &toml::Table, table: &toml::Table, is_twin: bool, rows: &mut Vec<Row>) {
    let (name, args) = (entry["name"].as_str().expect("a name"), entry["args"].as_str().expect("arguments"));
    let (name, args) = if is_twin {
        (name.replacen("shmem_", "shmem_ctx_", 1), format!("- {args}"))
    } else {
        (name.to_owned(), args.to_owned())
    };
    let of = |key: &str| entry.get(key).and_then(toml::Value::as_str);
    let Some(list) = of("of") else {
        let region = of("region").unwrap_or(&name).to_owned();
        let others = of("also").unwrap_or_default().split_whitespace().map(str::to_owned);
        for name in others.chain([name]) {
            rows.push(Row { entry: entry.clone(), name, region: region.clone(), args: args.clone(), element: 0 });
        }
        return;
    };
    for word in table["lists"][list].as_str().expect("words").split(' ') {
        let value = match word {
            "float" | "double" | "Float" | "Double" => "floating",
            "longdouble" => "memory",
            _ => "-",
        };
        let name = name.replace("{}", word);
        rows.push(Row {
            entry: entry.clone(),
            region: name.clone(),
            name,
            args: args.replace("value", value),
            element: table["sizes"][word].as_integer().expect("a size"),
        });
    }
}

/// Whether a function of files reads, to judge by its name.
fn reads(name: &str) -> bool {
    ["read", "get", "scan"].iter().any(|word| name.contains(word))
}

/// The library, or the part of MPI, that functions of a class belong to.
fn library(class: &str) -> &'static str {
    match class {
        "plain" | "init" | "session_init" | "finalize" | "abort" | "pcontrol" => "Life",
        "coll" | "icoll" | "coll_init" => "Collectives",
        "type_free" => "Communicators",
        "request_free" | "cancel" => "Requests",
        // No calls.
        "thread_begin" | "thread_end" | "omp" => "Moments",
        _ => {
            let prefixes = [
                ("start", "Requests"),
                ("wait", "Requests"),
                ("test", "Requests"),
                ("comm_", "Communicators"),
                ("intercomm_", "Communicators"),
                ("win_", "OneSided"),
                ("rma", "OneSided"),
                ("atomic", "OneSided"),
                ("file_", "Files"),
                ("io", "Files"),
                ("iio", "Files"),
                ("thread_", "Threads"),
                ("shmem_", "Shmem"),
                ("posix_aio", "Aio"),
                ("posix_", "Posix"),
                ("armci_", "Armci"),
            ];
            prefixes.iter().find(|(prefix, _)| class.starts_with(prefix)).map_or("PointToPoint", |(_, library)| library)
        }
    }
}

/// Source text: the libraries, and of which one each class is.
fn libraries(rows: &[Row], variant: fn(&str) -> String) -> String {
    let classes: BTreeSet<&str> = rows.iter().map(|row| row.text("class")).collect();
    let names: BTreeSet<&str> = classes.iter().map(|class| library(class)).collect();
    let arm = |name: &&str| {
        let own = classes.iter().filter(|class| library(class) == *name).map(|class| format!("Self::{}", variant(class)));
        format!("{} => Library::{name},", own.collect::<Vec<_>>().join(" | "))
    };
    let arms: String = names.iter().map(arm).collect();
    let names = names.into_iter().collect::<Vec<_>>().join(", ");
    format!(
        "/// A library, or a part of MPI.\n#[derive(Clone, Copy, PartialEq, Eq, Debug)]\npub(crate) enum Library {{ {names} }}\n\
         impl Class {{\n/// The library that its functions belong to.\n\
         pub(crate) const fn library(self) -> Library {{ match self {{ {arms} }} }}\n}}\n"
    )
}
