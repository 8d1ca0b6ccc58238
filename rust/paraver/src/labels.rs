//! What numbers mean: the `.pcf` of a trace, and the names of threads and nodes in its `.row`.

use rustc_hash::FxHashMap;

/// The labels of a trace.
#[derive(Debug, Default)]
pub(crate) struct Labels {
    types: FxHashMap<u32, String>,
    /// The table of values of each type; several types can share one.
    table_of: FxHashMap<u32, usize>,
    tables: Vec<FxHashMap<i64, String>>,
    states: FxHashMap<i64, String>,
}

enum Section {
    Other,
    States,
    Types,
    Values,
}

impl Labels {
    /// Reads a `.pcf`.
    pub(crate) fn read(text: &str) -> Self {
        let mut labels = Self::default();
        let mut section = Section::Other;
        for line in text.lines().map(str::trim) {
            match line {
                "" => section = Section::Other,
                "STATES" => section = Section::States,
                "EVENT_TYPE" => {
                    labels.tables.push(FxHashMap::default());
                    section = Section::Types;
                }
                "VALUES" => section = Section::Values,
                _ => labels.line(&section, line),
            }
        }
        labels
    }

    fn line(&mut self, section: &Section, line: &str) {
        let Some((first, rest)) = split_number(line) else { return };
        match section {
            Section::Other => {}
            Section::States => drop(self.states.insert(first, rest.to_owned())),
            Section::Types => {
                // The first number is a color.
                let Some((number, label)) = split_number(rest) else { return };
                let Ok(number) = u32::try_from(number) else { return };
                self.types.insert(number, label.to_owned());
                self.table_of.insert(number, self.tables.len() - 1);
            }
            Section::Values => {
                if let Some(table) = self.tables.last_mut() {
                    table.insert(first, whole(rest).to_owned());
                }
            }
        }
    }

    /// The name of a type.
    pub(crate) fn of_type(&self, kind: u32) -> Option<&str> {
        self.types.get(&kind).map(String::as_str).filter(|label| !label.is_empty())
    }

    /// The name of a value.
    pub(crate) fn of_value(&self, kind: u32, value: i64) -> Option<&str> {
        let label = self.tables.get(*self.table_of.get(&kind)?)?.get(&value)?;
        Some(label.as_str()).filter(|label| !label.is_empty())
    }

    /// The name of a state.
    pub(crate) fn of_state(&self, state: i64) -> Option<&str> {
        self.states.get(&state).map(String::as_str).filter(|label| !label.is_empty())
    }
}

/// A number, and what follows it.
fn split_number(line: &str) -> Option<(i64, &str)> {
    let (first, rest) = line.split_once(char::is_whitespace).unwrap_or((line, ""));
    Some((first.parse().ok()?, rest.trim_start()))
}

/// A long name is shortened in the middle, and whole in brackets.
fn whole(label: &str) -> &str {
    let in_brackets = || label.strip_suffix(']')?.split_once(" [");
    match in_brackets() {
        Some((short, name)) if short.contains("..") => name,
        _ => label,
    }
}

/// Where a code location is: `92 (file.c, library)`.
pub(crate) fn split_location(label: &str) -> (u32, &str) {
    let (line, rest) = label.split_once(' ').unwrap_or((label, ""));
    let file = rest.strip_prefix('(').and_then(|rest| rest.split([',', ')']).next()).unwrap_or_default();
    (line.parse().unwrap_or(0), file)
}

/// The names of a `.row`: of nodes, and of threads.
#[derive(Debug, Default)]
pub(crate) struct Names {
    pub(crate) nodes: Vec<String>,
    pub(crate) threads: Vec<String>,
}

/// How names of streams of devices begin.
const STREAMS: [&str; 3] = ["CUDA", "HIP", "OpenCL"];

impl Names {
    /// Takes out the names of threads of applications that are left out: their numbers of threads, and which are kept.
    pub(crate) fn keep(&mut self, applications: impl Iterator<Item = (usize, bool)>) {
        let mut names = std::mem::take(&mut self.threads).into_iter();
        for (count, is_kept) in applications {
            let of_application: Vec<String> = names.by_ref().take(count).collect();
            if is_kept {
                self.threads.extend(of_application);
            }
        }
    }

    /// Whether a thread is a stream of a device.
    pub(crate) fn is_stream(&self, thread: usize) -> bool {
        self.threads.get(thread).is_some_and(|name| STREAMS.iter().any(|begin| name.starts_with(begin)))
    }

    /// Reads a `.row`.
    pub(crate) fn read(text: &str) -> Self {
        let mut names = Self::default();
        let mut lines = text.lines().map(str::trim);
        while let Some(line) = lines.next() {
            let mut words = line.split_whitespace();
            let (Some("LEVEL"), Some(level)) = (words.next(), words.next()) else { continue };
            let count = words.nth(1).and_then(|count| count.parse().ok()).unwrap_or(0);
            let list = lines.by_ref().take(count).map(str::to_owned);
            match level {
                "NODE" => names.nodes = list.collect(),
                "THREAD" => names.threads = list.collect(),
                _ => drop(list.count()),
            }
        }
        names
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn labels_are_found() {
        let labels = Labels::read(
            "STATES\n0    Idle\n13   Group Communication\n\nSTATES_COLOR\n0    {117,195,255}\n\n\
             EVENT_TYPE\n0    70000001    Caller at level 1\n0    70000002    Caller at level 2\nVALUES\n0   End\n\
             3 balance..ad [module_MOD_balance_load]\n4 f [abi:cxx11]\n\n\
             EVENT_TYPE\n0 80000001 Line\nVALUES\n5   92 (file.c, library)\n",
        );
        assert_eq!(labels.of_state(13), Some("Group Communication"));
        assert_eq!(labels.of_state(0), Some("Idle"));
        assert_eq!(labels.of_type(70_000_002), Some("Caller at level 2"));
        assert_eq!(labels.of_value(70_000_002, 3), Some("module_MOD_balance_load"));
        assert_eq!(labels.of_value(70_000_001, 4), Some("f [abi:cxx11]"));
        assert_eq!(labels.of_value(70_000_001, 5), None);
        assert_eq!(split_location(labels.of_value(80_000_001, 5).unwrap()), (92, "file.c"));
        assert_eq!((split_location("12"), split_location("Unresolved")), ((12, ""), (0, "")));
    }

    #[test]
    fn names_of_nodes_and_threads_are_found() {
        let names =
            Names::read("LEVEL CPU SIZE 1\n1.a\n\nLEVEL NODE SIZE 1\na\n\nLEVEL THREAD SIZE 2\nTHREAD 1.1.1\nx\n");
        assert_eq!(
            (names.nodes, names.threads),
            (vec!["a".to_owned()], vec!["THREAD 1.1.1".to_owned(), "x".to_owned()])
        );
        assert_eq!(Names::read("LEVEL NODE SIZE 99999999999\na").nodes, ["a"]);
    }
}
