//! What the launcher asked for.

use crate::table::{GROUPS, Group};

/// The part of the run that is recorded.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) enum Window {
    Whole,
    /// Seconds after MPI_Init.
    Time(f64, f64),
    /// From one call of MPI_Pcontrol to another, counted from 1.
    Calls(u64, u64),
}

/// Options of the recording.
#[derive(Debug)]
#[allow(clippy::struct_excessive_bools, reason = "each is an option of its own")]
pub(crate) struct Options {
    /// As they were given.
    pub(crate) text: String,
    pub(crate) groups: Vec<Group>,
    pub(crate) callpaths: bool,
    /// Whether functions of Python belong to them.
    pub(crate) python: bool,
    /// Bytes that the slots of the process may take.
    pub(crate) max_size: u64,
    pub(crate) window: Window,
    pub(crate) sync: bool,
    pub(crate) helper: bool,
    pub(crate) quiet: bool,
    /// Rank 0 says at the end what to do with the archive.
    pub(crate) announce: bool,
    /// Each test is recorded by itself.
    pub(crate) keep_tests: bool,
    /// Counters to read at each call.
    pub(crate) counters: Vec<String>,
    /// Samples of a thread in a second of its CPU time.
    pub(crate) sample: u32,
}

impl Options {
    /// Reads `name=value;name=value`; what it does not know is the launcher's business.
    pub(crate) fn parse(text: &str) -> Self {
        let mut options = Self {
            text: text.to_owned(),
            groups: names("env,p2p,coll,cg,rma,io,spawn,shmem,armci"),
            callpaths: true,
            python: true,
            max_size: 4 << 30,
            window: Window::Whole,
            sync: true,
            helper: true,
            quiet: false,
            announce: false,
            keep_tests: false,
            counters: Vec::new(),
            sample: 0,
        };
        for (name, value) in text.split(';').filter_map(|option| option.split_once('=')) {
            match name {
                "groups" => options.groups = names(value),
                "callpaths" => options.callpaths = value != "0",
                "python" => options.python = value != "off",
                "max_size" => options.max_size = value.parse().unwrap_or(options.max_size),
                "window" => options.window = window(value).unwrap_or(Window::Whole),
                "sync" => options.sync = value != "0",
                "helper" => options.helper = value != "0",
                "quiet" => options.quiet = value == "1",
                "announce" => options.announce = value == "1",
                "keep_tests" => options.keep_tests |= value == "1",
                // Score-P does so.
                "model" => options.keep_tests |= value == "scorep7",
                "sample" => options.sample = value.parse().unwrap_or(0),
                "counters" => options.counters = value.split(',').map(str::to_owned).collect(),
                _ => {}
            }
        }
        options
    }
}

/// `FROM:TO` or `call:N..M`; an end that is left out is that of the run.
fn window(text: &str) -> Option<Window> {
    let end = |text: &str| if text.is_empty() { Some(f64::INFINITY) } else { text.parse().ok() };
    if let Some(calls) = text.strip_prefix("call:") {
        let (from, to) = calls.split_once("..")?;
        return Some(Window::Calls(from.parse().ok()?, to.parse().unwrap_or(u64::MAX)));
    }
    let (from, to) = text.split_once(':')?;
    Some(Window::Time(if from.is_empty() { 0.0 } else { from.parse().ok()? }, end(to)?))
}

fn names(list: &str) -> Vec<Group> {
    let known = |name: &str| GROUPS.iter().find(|(known, _)| *known == name).map(|(_, group)| *group);
    list.split(',').filter_map(known).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn options_override_defaults() {
        let options = Options::parse("groups=coll,cg_query;unknown=1;max_size=x;helper=0;python=off");
        assert_eq!(options.groups, [Group::Coll, Group::CgQuery]);
        assert_eq!((options.max_size, options.helper, options.callpaths), (4 << 30, false, true));
        assert!(!options.python && Options::parse("python=all").python);
        assert_eq!(Options::parse("").groups.len(), 9);
    }

    #[test]
    fn windows_are_of_time_or_of_calls() {
        let window = |text: &str| Options::parse(&format!("window={text}")).window;
        assert_eq!(window("1.5:3"), Window::Time(1.5, 3.0));
        assert_eq!(window(":3"), Window::Time(0.0, 3.0));
        assert_eq!(window("2:"), Window::Time(2.0, f64::INFINITY));
        assert_eq!(window("call:2..5"), Window::Calls(2, 5));
        assert_eq!(window("call:2.."), Window::Calls(2, u64::MAX));
        assert_eq!(window("x"), Window::Whole);
    }
}
