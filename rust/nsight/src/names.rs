//! Names: each distinct one is stored once.

use rustc_hash::FxHashMap;
use whywait_devices::NONE;

/// Names by number, and by the numbers that a file gives them.
#[derive(Debug, Default)]
pub(crate) struct Names {
    all: bool,
    list: Vec<String>,
    by_text: FxHashMap<String, u32>,
    by_id: FxHashMap<i64, u32>,
}

impl Names {
    /// No names; `all` keeps those that differ in a number only.
    pub(crate) fn new(all: bool) -> Self {
        Self { all, ..Self::default() }
    }

    /// The number of a name.
    pub(crate) fn add(&mut self, text: &str) -> u32 {
        if let Some(number) = self.by_text.get(text) {
            return *number;
        }
        let text = if self.all { text.to_owned() } else { without_numbers(text) };
        let next = self.list.len() as u32;
        *self.by_text.entry(text).or_insert_with_key(|text| {
            self.list.push(text.clone());
            next
        })
    }

    /// Says how the file numbers a name.
    pub(crate) fn define(&mut self, id: i64, text: &str) {
        let number = self.add(text);
        self.by_id.insert(id, number);
    }

    /// The number of the name that the file numbers like this, or [`NONE`].
    pub(crate) fn of(&self, id: Option<i64>) -> u32 {
        id.and_then(|id| self.by_id.get(&id)).copied().unwrap_or(NONE)
    }

    /// A name; empty if there is none.
    pub(crate) fn get(&self, number: u32) -> &str {
        self.list.get(number as usize).map_or("", String::as_str)
    }
}

/// A name whose values are left out: `aten::add, op_id = 314359` is `aten::add, op_id = N`.
fn without_numbers(text: &str) -> String {
    let (mut plain, mut rest) = (String::with_capacity(text.len()), text);
    while let Some(sign) = rest.find('=') {
        let (front, back) = rest.split_at(sign + 1);
        let value = back.trim_start_matches(' ');
        plain.push_str(front);
        plain.push_str(&back[..back.len() - value.len()]);
        rest = value.trim_start_matches(|character: char| character.is_ascii_digit());
        if rest.len() < value.len() {
            plain.push('N');
        }
    }
    plain + rest
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn values_are_no_part_of_a_name() {
        for (text, plain) in [
            ("aten::add, op_id = 314359", "aten::add, op_id = N"),
            ("a=1, b= 22 c", "a=N, b= N c"),
            ("sizes = [[2, 3]], seq = 7", "sizes = [[2, 3]], seq = N"),
            ("step 12", "step 12"),
            ("a == b", "a == b"),
            ("=", "="),
        ] {
            assert_eq!(without_numbers(text), plain);
        }
        let mut names = Names::new(false);
        names.define(7, "op_id = 1");
        names.define(8, "op_id = 2");
        assert_eq!((names.of(Some(7)), names.of(Some(8)), names.of(Some(9))), (0, 0, NONE));
        let mut names = Names::new(true);
        assert_ne!(names.add("op_id = 1"), names.add("op_id = 2"));
    }
}
