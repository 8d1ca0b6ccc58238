//! The table of functions, from the recorder's own: the numbers in a spool are places in it.

use std::fmt::Write;
use std::path::{Path, PathBuf};
use std::{env, fs};

/// The tables, in the order of the functions' numbers.
const TABLES: [&str; 2] = ["mpi.toml", "threads.toml"];

fn main() {
    let manifest = PathBuf::from(env::var_os("CARGO_MANIFEST_DIR").expect("cargo sets it"));
    let tables = TABLES.map(|name| -> toml::Table {
        let path = manifest.join("../record").join(name);
        println!("cargo:rerun-if-changed={}", path.display());
        let text = fs::read_to_string(&path).unwrap_or_else(|error| panic!("{}: {error}", path.display()));
        text.parse().unwrap_or_else(|error| panic!("{}: {error}", path.display()))
    });
    let functions = tables.iter().flat_map(|table| table["function"].as_array().expect("a list of functions"));
    let mut code =
        String::from("/// All functions, by their numbers.\npub(crate) static FUNCTIONS: &[Function] = &[\n");
    for function in functions {
        let word = |key: &str| function[key].as_str().expect("a string");
        let (major, minor) = word("since").split_once('.').expect("a version with a point");
        let class: String = word("class").split('_').map(capitalized).collect();
        let name = word("name");
        let operation =
            operation(name, word("class")).map_or("None".into(), |found| format!("Some(CollectiveOp::{found})"));
        writeln!(code, "    Function::new({name:?}, Class::{class}, ({major}, {minor}), {operation}),")
            .expect("memory");
    }
    code.push_str("];\n");
    let target = Path::new(&env::var_os("OUT_DIR").expect("cargo sets it")).join("functions.rs");
    fs::write(target, code).expect("the build directory can be written");
}

fn capitalized(word: &str) -> String {
    let mut letters = word.chars();
    letters.next().map(|first| first.to_ascii_uppercase().to_string() + letters.as_str()).unwrap_or_default()
}

/// OTF2's name of the operation of a collective function. It has none for those between neighbours: no process waits
/// there for all others.
fn operation(name: &str, class: &str) -> Option<String> {
    let name = name.strip_prefix("MPI_")?;
    let name = match class {
        "coll" => name,
        "icoll" => name.strip_prefix('I')?,
        "coll_init" => name.strip_suffix("_init")?,
        _ => return None,
    };
    let name = name.to_ascii_uppercase();
    (!name.starts_with("NEIGHBOR_")).then_some(name)
}
