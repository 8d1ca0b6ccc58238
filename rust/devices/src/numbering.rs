//! Which rank a file is of: as it says, else by its name, else by the order of names.

use std::path::{Path, PathBuf};

use regex_lite::Regex;

use crate::files::file_name;

/// What comes before the rank in the names of files.
pub const RANK_PATTERNS: &[&str] = &["rank[-_]?", "worker[-_]?", r"(?:^|[^a-z])r"];

/// The rank of each file, and whether that is a guess.
pub fn numbers(files: &[PathBuf], said: &[Option<u32>], patterns: &[&str]) -> Vec<(u32, bool)> {
    let by_name = by_name(files, said, patterns);
    let mut next = 0;
    let number = |place: usize| match (said[place], by_name.as_ref().map(|numbers| numbers[place])) {
        (Some(rank), _) | (None, Some(rank)) => (rank, false),
        (None, None) => {
            while said.contains(&Some(next)) {
                next += 1;
            }
            next += 1;
            (next - 1, said.len() > 1)
        }
    };
    (0..files.len()).map(number).collect()
}

/// The last two parts of a path: the rank may be in the name of the directory.
fn path_name(path: &Path) -> String {
    let parent = path.parent().map(file_name).unwrap_or_default();
    format!("{parent}/{}", file_name(path))
}

/// Ranks by the names of files, if one pattern fits all names and what files say of themselves.
pub fn by_name(files: &[PathBuf], said: &[Option<u32>], patterns: &[&str]) -> Option<Vec<u32>> {
    let names: Vec<String> = files.iter().map(|file| path_name(file)).collect();
    patterns.iter().find_map(|pattern| {
        let pattern = Regex::new(&format!("(?i){pattern}([0-9]+)")).ok()?;
        let numbers: Option<Vec<u32>> = names
            .iter()
            .map(|name| {
                // A rank in the name of the file counts more than one in the name of its directory.
                let file = name.rsplit('/').next().unwrap_or(name);
                let captures = pattern.captures_iter(file).last().or_else(|| pattern.captures_iter(name).last())?;
                captures.get(1)?.as_str().parse().ok()
            })
            .collect();
        let numbers = numbers?;
        let agrees = numbers.iter().zip(said).all(|(number, said)| said.is_none_or(|said| said == *number));
        // A number that all names share is that of something else.
        let differ = numbers.len() == 1 || numbers.iter().any(|number| *number != numbers[0]);
        (agrees && differ).then_some(numbers)
    })
}
