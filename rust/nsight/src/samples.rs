//! Call paths of samples: functions from the outermost one of the program on.

use rustc_hash::FxHashMap;
use whywait_devices::NONE;
use whywait_otf2::Numbered;

/// What is around all functions of a program or of a thread: it is on no call path.
const STARTS: [&str; 12] = [
    "main",
    "MAIN__",
    "_start",
    "__libc_start_main",
    "__libc_start_main_impl",
    "__libc_start_call_main",
    "start_thread",
    "clone",
    "__clone",
    "clone3",
    "__clone3",
    "__GI___clone3",
];

/// The call paths of a report, as a tree.
#[derive(Debug, Default)]
pub(crate) struct Stacks {
    /// The path around each, and the name of its function.
    nodes: Numbered<(u32, u32)>,
    /// By the number of the sample.
    of_samples: FxHashMap<i64, u32>,
    /// The functions of the sample that is being read, and how far each is from the innermost one.
    frames: Vec<(i64, u32)>,
    sample: Option<i64>,
    /// Whether functions of one sample came apart from each other.
    pub(crate) are_mixed: bool,
}

impl Stacks {
    /// Adds a function of a sample, [`NONE`] for what is around a program; those of one sample follow each other.
    pub(crate) fn add(&mut self, sample: i64, depth: i64, function: u32) {
        if self.sample != Some(sample) {
            self.end();
            self.sample = Some(sample);
        }
        self.frames.push((depth, function));
    }

    /// Ends the sample that is being read.
    pub(crate) fn end(&mut self) {
        let Some(sample) = self.sample.take() else { return };
        self.frames.sort_unstable();
        let inside = self.frames.iter().take_while(|(_, function)| *function != NONE);
        let count = inside.count();
        let nodes = &mut self.nodes;
        let path = self.frames[..count].iter().rev().fold(NONE, |around, (_, function)| {
            // A function that calls itself is one, as are those without names.
            let is_same = nodes.list.get(around as usize).is_some_and(|(_, outer)| outer == function);
            if is_same { around } else { nodes.add((around, *function)) }
        });
        self.frames.clear();
        self.are_mixed |= self.of_samples.insert(sample, path).is_some();
    }

    /// The call path of a sample: [`NONE`] if it is that of the program itself, nothing if it is not recorded.
    pub(crate) fn of(&self, sample: i64) -> Option<u32> {
        self.of_samples.get(&sample).copied()
    }

    /// The path around one, and the name of its function.
    pub(crate) fn node(&self, path: u32) -> Option<(u32, u32)> {
        self.nodes.list.get(path as usize).copied()
    }
}

/// Whether a function is around all others of a program or thread.
pub(crate) fn is_start(name: &str) -> bool {
    STARTS.contains(&name)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn paths_begin_in_the_program() {
        let mut stacks = Stacks::default();
        // main calls 1, which calls 2 and itself; frames come from the inside.
        for (sample, frames) in [(7, vec![2, 1, NONE, 9]), (8, vec![1, 1, NONE]), (9, vec![NONE, 9]), (10, vec![2])] {
            for (depth, function) in (0..).zip(frames) {
                stacks.add(sample, depth, function);
            }
        }
        stacks.end();
        let path = |sample| {
            let mut names = Vec::new();
            let mut next = stacks.of(sample)?;
            while let Some((around, name)) = stacks.node(next) {
                names.push(name);
                next = around;
            }
            Some(names)
        };
        assert_eq!(path(7), Some(vec![2, 1]));
        assert_eq!(path(8), Some(vec![1]));
        assert_eq!(path(9), Some(vec![]));
        assert_eq!(path(10), Some(vec![2]));
        assert_eq!(path(11), None);
        assert!(is_start("main") && !is_start("domain"));
    }
}
