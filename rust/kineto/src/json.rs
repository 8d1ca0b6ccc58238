//! The few values of a file that are looked into: properties of devices, what a rank says of itself, lists of ranks.

use crate::numbers::{signed, unquoted};

/// Values within each other, more than any writer makes.
const DEEPEST: u32 = 32;

/// A JSON value.
#[derive(Debug, Clone, PartialEq)]
pub(crate) enum Value {
    /// A number, `true`, `false` or `null`, as it is written.
    Literal(String),
    /// A string, decoded.
    Text(String),
    /// A list.
    List(Vec<Value>),
    /// Keys and values in order.
    Object(Vec<(String, Value)>),
}

impl Value {
    /// Reads a value; nothing if it is none.
    pub(crate) fn read(bytes: &[u8]) -> Option<Self> {
        Parser { bytes, at: 0 }.value(0)
    }

    /// The value of a key, the last one if there are several.
    pub(crate) fn get(&self, key: &str) -> Option<&Self> {
        match self {
            Self::Object(members) => members.iter().rev().find(|(name, _)| name == key).map(|(_, value)| value),
            _ => None,
        }
    }

    /// A whole number, also as text.
    pub(crate) fn number(&self) -> Option<i64> {
        match self {
            Self::Literal(text) | Self::Text(text) => signed(text.as_bytes()),
            _ => None,
        }
    }

    /// A string, or a literal as it is written.
    pub(crate) fn text(&self) -> Option<&str> {
        match self {
            Self::Literal(text) | Self::Text(text) => Some(text),
            _ => None,
        }
    }

    /// The elements of a list, which may be written as text.
    pub(crate) fn list(&self) -> Vec<Self> {
        match self {
            Self::List(items) => items.clone(),
            Self::Text(text) => match Self::read(text.as_bytes()) {
                Some(Self::List(items)) => items,
                _ => Vec::new(),
            },
            _ => Vec::new(),
        }
    }
}

/// The whole numbers of a list that is written as text; nothing if it is not complete (it may end in `...`).
pub(crate) fn ranks(text: &[u8]) -> Option<Vec<u32>> {
    let text = text.trim_ascii().strip_prefix(b"[")?.strip_suffix(b"]")?;
    if text.trim_ascii().is_empty() {
        return None;
    }
    text.split(|byte| *byte == b',')
        .map(|item| signed(item.trim_ascii()).and_then(|rank| rank.try_into().ok()))
        .collect()
}

/// The content of a JSON string: escapes decoded, invalid bytes and control characters replaced.
pub(crate) fn decoded(content: &[u8]) -> String {
    let mut text = String::with_capacity(content.len());
    let mut rest = content;
    while let Some(at) = rest.iter().position(|byte| *byte == b'\\' || *byte < b' ') {
        text.push_str(&String::from_utf8_lossy(&rest[..at]));
        let (character, length) = if rest[at] == b'\\' { escape(&rest[at + 1..]) } else { ('\u{FFFD}', 0) };
        text.push(character);
        rest = rest.get(at + 1 + length..).unwrap_or_default();
    }
    text.push_str(&String::from_utf8_lossy(rest));
    text
}

/// The character of an escape, and the length of it after the backslash.
fn escape(after: &[u8]) -> (char, usize) {
    let unit = |at: usize| {
        let digits = after.get(at..at + 4).and_then(|digits| std::str::from_utf8(digits).ok())?;
        u32::from_str_radix(digits, 16).ok()
    };
    match after.first() {
        Some(b'n') => ('\n', 1),
        Some(b't') => ('\t', 1),
        Some(b'r') => ('\r', 1),
        Some(b'b') => ('\u{8}', 1),
        Some(b'f') => ('\u{c}', 1),
        Some(b'u') => match unit(1) {
            Some(high @ 0xD800..=0xDBFF) if after.get(5..7) == Some(b"\\u") => match unit(7) {
                Some(low @ 0xDC00..=0xDFFF) => {
                    let code = 0x10000 + ((high - 0xD800) << 10) + (low - 0xDC00);
                    (char::from_u32(code).unwrap_or('\u{FFFD}'), 11)
                }
                _ => ('\u{FFFD}', 5),
            },
            Some(code) => (char::from_u32(code).unwrap_or('\u{FFFD}'), 5),
            None => ('\u{FFFD}', 1),
        },
        Some(&byte @ (b'"' | b'\\' | b'/')) => (char::from(byte), 1),
        // No escape: the writer forgot to double the backslash.
        _ => ('\\', 0),
    }
}

struct Parser<'a> {
    bytes: &'a [u8],
    at: usize,
}

impl Parser<'_> {
    fn peek(&mut self) -> Option<u8> {
        while self.bytes.get(self.at)?.is_ascii_whitespace() {
            self.at += 1;
        }
        self.bytes.get(self.at).copied()
    }

    fn value(&mut self, depth: u32) -> Option<Value> {
        if depth > DEEPEST {
            return None;
        }
        match self.peek()? {
            b'"' => self.string().map(Value::Text),
            b'[' => {
                let mut items = Vec::new();
                self.at += 1;
                loop {
                    match self.peek()? {
                        b']' => break,
                        b',' => self.at += 1,
                        _ => items.push(self.value(depth + 1)?),
                    }
                }
                self.at += 1;
                Some(Value::List(items))
            }
            b'{' => {
                let mut members = Vec::new();
                self.at += 1;
                loop {
                    match self.peek()? {
                        b'}' => break,
                        b',' => self.at += 1,
                        b'"' => {
                            let key = self.string()?;
                            if self.peek()? != b':' {
                                return None;
                            }
                            self.at += 1;
                            members.push((key, self.value(depth + 1)?));
                        }
                        _ => return None,
                    }
                }
                self.at += 1;
                Some(Value::Object(members))
            }
            _ => {
                let rest = &self.bytes[self.at..];
                let is_part = |byte: &u8| byte.is_ascii_alphanumeric() || matches!(byte, b'+' | b'-' | b'.');
                let length = rest.iter().position(|byte| !is_part(byte)).unwrap_or(rest.len());
                self.at += length;
                (length > 0).then(|| Value::Literal(String::from_utf8_lossy(&rest[..length]).into_owned()))
            }
        }
    }

    fn string(&mut self) -> Option<String> {
        let from = self.at;
        let mut to = from + 1;
        loop {
            match self.bytes.get(to)? {
                b'"' => break,
                b'\\' => to += 2,
                _ => to += 1,
            }
        }
        self.at = to + 1;
        Some(decoded(unquoted(&self.bytes[from..=to])))
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn strings_are_decoded() {
        for (raw, text) in [
            (r"plain", "plain"),
            (r#"a\"b\\c\/d"#, r#"a"b\c/d"#),
            (r"\u00e9\u20ac", "é€"),
            (r"\ud83d\ude00!", "😀!"),
            (r"\ud83dx", "\u{FFFD}x"),
            (r"C:\q", r"C:\q"),
        ] {
            assert_eq!(decoded(raw.as_bytes()), text);
        }
        assert_eq!(decoded(b"a\nb\xff"), "a\u{FFFD}b\u{FFFD}");
    }

    #[test]
    fn values_are_found_by_key() {
        let value = Value::read(br#"{"rank": 1, "ranks": "[0, 1]", "rank": "3", "all": [{"a": null}], }"#).unwrap();
        assert_eq!(value.get("rank").and_then(Value::number), Some(3));
        assert_eq!(value.get("ranks").unwrap().list().len(), 2);
        assert_eq!(value.get("all").unwrap().list()[0].get("a").and_then(Value::text), Some("null"));
        assert_eq!(Value::read(b"{\"a\": "), None);
    }

    #[test]
    fn a_list_that_is_cut_names_no_ranks() {
        assert_eq!(ranks(b"[0, 1, 12]"), Some(vec![0, 1, 12]));
        assert_eq!(ranks(b"[0, 1, ...]"), None);
        assert_eq!(ranks(b"[]"), None);
    }

    proptest! {
        #[test]
        fn any_bytes_are_a_value_or_none(bytes: Vec<u8>) {
            let _ = (Value::read(&bytes), decoded(&bytes), ranks(&bytes));
        }
    }
}
