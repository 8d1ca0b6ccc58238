// The tables of functions, for the build scripts of the recorder and of the reader: the number of a function is its place in them.

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
