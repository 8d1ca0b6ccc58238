//! The table of functions, from the recorder's own: the numbers in a spool are places in it.

use std::env;
use std::fmt::Write;
use std::path::PathBuf;

include!("../record/tables.rs");

fn main() {
    let manifest = PathBuf::from(env::var_os("CARGO_MANIFEST_DIR").expect("cargo sets it"));
    let mut code =
        String::from("/// All functions, by their numbers.\npub(crate) static FUNCTIONS: &[Function] = &[\n");
    let functions = rows(&manifest.join("../record"));
    for function in &functions {
        let (name, class) = (&function.region, function.text("class"));
        let (major, minor) = function.text("since").split_once('.').expect("a version with a point");
        let operation = operation(name, class).map_or("None".into(), |found| format!("Some(CollectiveOp::{found})"));
        let class = camel(class);
        writeln!(
            code,
            "    Function::new({name:?}, Class::{class}, ({major}, {minor}), {}, {operation}),",
            reads(name)
        )
        .expect("memory");
    }
    code.push_str("];\n");
    code.push_str(&libraries(&functions, camel));
    let target = Path::new(&env::var_os("OUT_DIR").expect("cargo sets it")).join("functions.rs");
    fs::write(target, code).expect("the build directory can be written");
}

fn camel(name: &str) -> String {
    name.split('_').map(capitalized).collect()
}

fn capitalized(word: &str) -> String {
    let mut letters = word.chars();
    letters.next().map(|first| first.to_ascii_uppercase().to_string() + letters.as_str()).unwrap_or_default()
}

/// OTF2's name of the operation of a collective function. For MPI it has none for those between neighbours: no process waits
/// there for all others.
fn operation(name: &str, class: &str) -> Option<String> {
    if class == "shmem_coll" {
        let of = |words: &[&str]| words.iter().any(|word| name.contains(word));
        let operation = match () {
            () if of(&["barrier", "sync"]) => "BARRIER",
            () if of(&["broadcast"]) => "BCAST",
            () if of(&["collect"]) => "ALLGATHER",
            () if of(&["alltoall"]) => "ALLTOALL",
            // All get the result; so Score-P has it.
            () => "REDUCE",
        };
        return Some(operation.into());
    }
    if class == "armci_coll" {
        let operation = match name {
            "ARMCI_Init" | "ARMCI_Init_args" | "ARMCI_Malloc" => "ALLOCATE",
            "ARMCI_Free" | "ARMCI_Finalize" => "DEALLOCATE",
            _ => "BARRIER",
        };
        return Some(operation.into());
    }
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
