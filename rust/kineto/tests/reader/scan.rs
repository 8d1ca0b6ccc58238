//! The scanner on its own: whatever the bytes, it finds the events that are there.

use std::io::Read;

use proptest::prelude::*;
use whywait_kineto::scan::{Field, Fields, Sink, Summary, scan};

#[derive(Default, Debug, PartialEq, Eq)]
struct Collected {
    events: Vec<(String, String, String)>,
    metadata: Vec<(String, String)>,
}

impl Sink for Collected {
    fn event(&mut self, event: &Fields<'_>) {
        let text = |field| String::from_utf8_lossy(event.text(field).unwrap_or_default()).into_owned();
        self.events.push((text(Field::Name), text(Field::Time), text(Field::Correlation)));
    }

    fn metadata(&mut self, key: &[u8], value: &[u8]) {
        let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
        self.metadata.push((text(key), text(value)));
    }
}

fn scanned(bytes: &[u8]) -> (Collected, Summary) {
    let mut collected = Collected::default();
    let summary = scan(bytes, &mut collected).unwrap();
    (collected, summary)
}

fn names(bytes: &str) -> Vec<String> {
    scanned(bytes.as_bytes()).0.events.into_iter().map(|(name, ..)| name).collect()
}

#[test]
fn events_and_metadata_are_told_apart() {
    let (found, summary) = scanned(
        br#" { "a" : [ {"ph": "X", "name": "none"} ], "traceEvents" : [ {"ph":"X","args":{"correlation":7,"name":"arg"},"name":"k",
        "ts":1.5} , {"ph":"M","name":"m","args":{"grid":[1,[2]],"x":{"correlation":9}}},], "z":null } "#,
    );
    assert_eq!(found.events[0], ("k".to_owned(), "1.5".to_owned(), "7".to_owned()));
    assert_eq!(found.events[1], ("m".to_owned(), String::new(), String::new()), "what is deeper is no argument");
    assert_eq!(found.metadata.iter().map(|(key, _)| key.as_str()).collect::<Vec<_>>(), ["a", "z"]);
    assert_eq!((summary.events, summary.unreadable, summary.truncated), (2, 0, None));
}

#[test]
fn one_damaged_event_costs_itself() {
    for damaged in [
        r#"{"ph": "X", "name": "a "quoted" name", "args": {"x": 1}}"#,
        r#"{"ph": "X", "name": "a", "args": {"path": "C:\"}}"#,
        r#"{"ph": "X", "name": "a", "ts": }"#,
        r#"{"ph": "X", "name": "a" "ts": 1}"#,
        r#"{"ph": "X", "name": "a", "args": {"list": ["a"b"], "c": 1}}"#,
        r#"{"ph": "X", "name": "a", "args": {]}"#,
        r"@",
    ] {
        let text = format!(
            r#"{{"traceEvents": [{{"ph": "X", "name": "first"}}, {damaged},
            {{"ph": "X", "name": "second"}}, {{"name": "third", "ph": "X"}}], "after": 1}}"#
        );
        let (found, summary) = scanned(text.as_bytes());
        let names: Vec<&str> = found.events.iter().map(|(name, ..)| name.as_str()).collect();
        assert_eq!(names, ["first", "second", "third"], "{damaged}");
        assert_eq!((summary.unreadable, summary.truncated), (1, None), "{damaged}");
        assert_eq!(found.metadata, [("after".to_owned(), "1".to_owned())], "{damaged}");
        assert_eq!(summary.first_unreadable as usize, text.find(damaged).unwrap(), "{damaged}");
    }
}

#[test]
fn strange_but_readable_files_are_read() {
    assert_eq!(names("\u{feff}[{\"ph\":\"X\",\"name\":\"a\"}]"), ["a"]);
    assert_eq!(names(r#"[{"ph":"X","name":"a"},{"ph":"X","name":"b""#), ["a"]);
    assert_eq!(names(r#"[{"ph":"X","name":"a","name":"b","ts":NaN,"dur":-Infinity},,]"#), ["b"]);
    assert_eq!(names("[{\"ph\":\"X\",\"name\":\"a\nb\"}]"), ["a\nb"]);
    assert_eq!(names(r#"{"bad": "a"b", "traceEvents": [{"ph":"X","name":"a"}]}"#), ["a"]);
    for text in ["", "  ", "hello", "12", "\"text\"", "{", "[", "{}", "[]", r#"{"a": 1}"#] {
        let (found, summary) = scanned(text.as_bytes());
        assert!(found.events.is_empty() && summary.unreadable == 0, "{text}");
    }
}

/// Events with names of any length, so that some are across the ends of what is read at once.
fn long(count: usize, seed: usize) -> (String, Vec<String>) {
    let names: Vec<String> = (0..count).map(|at| format!("{at}{}", "x".repeat((at * 7919 + seed) % 2000))).collect();
    let events: Vec<String> = names
        .iter()
        .map(|name| {
            format!(r#"{{"ph": "X", "cat": "kernel", "name": "{name}", "args": {{"grid": [1, 2], "s": "\"]}}"}}}}"#)
        })
        .collect();
    (format!("{{\"traceEvents\": [{}]}}", events.join(",\n")), names)
}

#[test]
fn events_across_the_ends_of_buffers_are_whole() {
    for seed in 0..3 {
        let (text, right) = long(900, seed * 131);
        assert!(text.len() > 3 * (256 << 10));
        assert_eq!(names(&text), right);
        // Damage in one event costs that one, wherever it is.
        let at = text.len() / 2;
        let at = at + text[at..].find("\"cat\"").unwrap();
        let damaged = format!("{}\"{}", &text[..at], &text[at..]);
        let (found, summary) = scanned(damaged.as_bytes());
        assert_eq!((found.events.len(), summary.unreadable), (right.len() - 1, 1));
    }
}

#[test]
fn one_event_may_be_larger_than_the_buffer() {
    let name = "n".repeat(3 << 20);
    let text = format!(r#"[{{"ph":"X","name":"a"}},{{"ph":"X","name":"{name}"}},{{"ph":"X","name":"b"}}]"#);
    assert_eq!(names(&text), ["a", name.as_str(), "b"]);
}

#[test]
fn an_event_that_never_ends_is_given_up() {
    // Longer than any event may be.
    let text = format!(r#"[{{"ph":"X","name":"a"}},{{"ph":"X","args":{{"l":[{}"#, "1,".repeat(35 << 20));
    let rest = r#"2]}},{"ph":"X","name":"b"}]"#;
    let mut collected = Collected::default();
    let summary = scan(text.as_bytes().chain(rest.as_bytes()), &mut collected).unwrap();
    let names: Vec<&str> = collected.events.iter().map(|(name, ..)| name.as_str()).collect();
    assert_eq!((names, summary.unreadable), (vec!["a", "b"], 1));
}

proptest! {
    #[test]
    fn any_bytes_are_read_to_their_end(bytes: Vec<u8>) {
        let _ = scanned(&bytes);
    }

    #[test]
    fn any_text_of_the_alphabet_of_events_is_read(text in r#"[\[\]{}",: \\aphX1]{0,120}"#) {
        let (found, summary) = scanned(text.as_bytes());
        prop_assert_eq!(found.events.len() as u64, summary.events);
    }

    #[test]
    fn a_cut_file_has_the_events_before_the_cut(share in 0.0..1.0) {
        let (text, right) = long(40, 3);
        let cut = (text.len() as f64 * share) as usize;
        let (found, summary) = scanned(&text.as_bytes()[..cut]);
        let names: Vec<&str> = found.events.iter().map(|(name, ..)| name.as_str()).collect();
        prop_assert_eq!(&names[..], &right[..names.len()]);
        prop_assert_eq!(summary.unreadable, 0);
        prop_assert!(cut < 2 || summary.truncated == Some(cut as u64));
        let whole = text[..cut].matches("}},\n").count();
        prop_assert!(names.len() == whole || names.len() == whole + 1);
    }
}
