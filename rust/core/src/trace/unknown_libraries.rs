//! Communication libraries whose waiting the analysis does not know: their calls are told by their names.

/// How the names of the calls of each library begin. `A` stands for any upper-case letter.
const CALLS: &[(&str, &str)] = &[
    ("upcxx::", "upcxx"),
    ("upcr_", "upcr"),
    ("_upcr_", "upcr"),
    ("gasnet_", "gasnet"),
    ("gex_", "gasnet"),
    ("chpl_comm_", "chapel"),
    ("gaspi_", "gaspi"),
    ("pgaspi_", "gaspi"),
    ("comex_", "comex"),
    ("dart_", "dart"),
    ("dash::", "dash"),
    ("hpx::", "hpx"),
    ("CkA", "charm"),
    ("CmiA", "charm"),
    ("legion_", "legion"),
    ("Realm::", "legion"),
    ("nvshmem", "nvshmem"),
    ("ucp_", "ucx"),
    ("ucs_", "ucx"),
    ("fi_", "libfabric"),
];

/// The libraries, each once.
pub fn all() -> impl Iterator<Item = &'static str> {
    let is_first = |i: usize| CALLS[..i].iter().all(|(_, library)| *library != CALLS[i].1);
    (0..CALLS.len()).filter(move |&i| is_first(i)).map(|i| CALLS[i].1)
}

/// The library that a function belongs to.
///
/// ```
/// use whywait_core::trace::unknown_libraries::library_of;
///
/// assert_eq!(library_of("upcxx::future<int> upcxx::rget<int>(upcxx::global_ptr<int>)"), Some("upcxx"));
/// assert_eq!(library_of("void relax(upcxx::global_ptr<int>)"), None);
/// ```
pub fn library_of(name: &str) -> Option<&'static str> {
    let function = function(name);
    let begins = |prefix: &str| match prefix.strip_suffix('A') {
        Some(prefix) => {
            function.strip_prefix(prefix).is_some_and(|rest| rest.starts_with(|c: char| c.is_ascii_uppercase()))
        }
        None => function.starts_with(prefix),
    };
    CALLS.iter().find(|(prefix, _)| begins(prefix)).map(|(_, library)| *library)
}

/// A C++ function without its return type and parameters; other names as they are.
fn function(name: &str) -> &str {
    let (mut depth, mut begin) = (0_usize, 0);
    for (i, c) in name.char_indices() {
        match c {
            '<' => depth += 1,
            '>' => depth = depth.saturating_sub(1),
            ' ' if depth == 0 => begin = i + 1,
            '(' if depth == 0 => return &name[begin..i],
            _ => {}
        }
    }
    name
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn calls_are_told_by_how_their_names_begin() {
        for (name, library) in [
            ("upcxx::barrier()", "upcxx"),
            ("gex_AM_Poll", "gasnet"),
            ("CkStartScheduler", "charm"),
            ("CmiSyncSend", "charm"),
            ("pgaspi_write", "gaspi"),
            ("void hpx::wait_all<int>(int)", "hpx"),
            ("fi_cq_read", "libfabric"),
        ] {
            assert_eq!(library_of(name), Some(library), "{name}");
        }
        for name in ["main", "Check", "CmiddleOf", "upcxx::future<int> mine(int)", "find_", "dashboard::draw()"] {
            assert_eq!(library_of(name), None, "{name}");
        }
    }

    #[test]
    fn each_library_is_named_once() {
        let names: Vec<&str> = all().collect();
        assert_eq!(names.iter().filter(|name| **name == "gasnet").count(), 1);
        assert!(names.contains(&"ucx") && names.contains(&"upcxx"));
    }
}
