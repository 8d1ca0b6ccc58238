//! One-sided operations that are not complete yet, for each window of a process.

use rustc_hash::FxHashMap;

use crate::unify::Id;

/// An operation that its origin does not know to be complete at the target.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Operation {
    /// Counted for each process over all windows; later ones are larger.
    pub(crate) matching: u64,
    /// Whether it reads from the target.
    pub(crate) is_get: bool,
    /// Whether it is complete at the origin.
    pub(crate) is_local: bool,
}

/// How far an operation is complete.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Completion {
    /// At the origin: its buffer can be used again.
    Local,
    /// At the target, too.
    Remote,
}

/// Operations by window and target.
#[derive(Debug, Default)]
pub(crate) struct Pending {
    windows: FxHashMap<Id, FxHashMap<i32, Vec<Operation>>>,
    scratch: Vec<Operation>,
}

impl Pending {
    /// Adds an operation.
    pub(crate) fn start(&mut self, window: Id, target: i32, matching: u64, is_get: bool) {
        let operation = Operation { matching, is_get, is_local: false };
        self.windows.entry(window).or_default().entry(target).or_default().push(operation);
    }

    /// Completes a request: at the origin, and for gets also at the target.
    pub(crate) fn request(&mut self, window: Id, matching: u64, is_get: bool, mut note: impl FnMut(u64, Completion)) {
        note(matching, Completion::Local);
        if is_get {
            note(matching, Completion::Remote);
        }
        let mut targets = self.windows.entry(window).or_default().values_mut();
        let found = targets.find_map(|operations| {
            let index = operations.binary_search_by_key(&matching, |operation| operation.matching).ok()?;
            Some((operations, index))
        });
        match found {
            Some((operations, index)) if is_get => drop(operations.remove(index)),
            Some((operations, index)) => operations[index].is_local = true,
            None => {}
        }
    }

    /// Completes all operations on a target (or on all) at both ends, as unlock and flush do. Returns whether there were any.
    pub(crate) fn flush(&mut self, window: Id, target: Option<i32>, mut note: impl FnMut(u64, Completion)) -> bool {
        self.take(window, target);
        for operation in &self.scratch {
            if !operation.is_local {
                note(operation.matching, Completion::Local);
            }
            note(operation.matching, Completion::Remote);
        }
        !self.scratch.is_empty()
    }

    /// Completes all operations on a target (or on all) at the origin.
    pub(crate) fn flush_local(&mut self, window: Id, target: Option<i32>, mut note: impl FnMut(u64, Completion)) {
        self.scratch.clear();
        if let Some(targets) = self.windows.get_mut(&window) {
            let one = target.and_then(|target| targets.get_mut(&target));
            let found: Vec<&mut Vec<Operation>> = match (one, target) {
                (Some(one), _) => vec![one],
                (None, Some(_)) => vec![],
                (None, None) => targets.values_mut().collect(),
            };
            for operation in found.into_iter().flatten().filter(|operation| !operation.is_local) {
                operation.is_local = true;
                self.scratch.push(*operation);
            }
        }
        self.scratch.sort_unstable_by_key(|operation| operation.matching);
        for operation in &self.scratch {
            note(operation.matching, Completion::Local);
        }
    }

    /// Ends an epoch of fences or of start and complete: latest first, and of gets the origin then knows that they are
    /// complete at the target. Returns whether there were any operations.
    pub(crate) fn end_epoch(&mut self, window: Id, mut note: impl FnMut(u64, Completion)) -> bool {
        self.take(window, None);
        for operation in self.scratch.iter().rev().filter(|operation| !operation.is_local) {
            note(operation.matching, Completion::Local);
        }
        for operation in self.scratch.iter().rev().filter(|operation| operation.is_get) {
            note(operation.matching, Completion::Remote);
        }
        !self.scratch.is_empty()
    }

    /// Moves operations to the scratch, in the order in which they were started.
    fn take(&mut self, window: Id, target: Option<i32>) {
        self.scratch.clear();
        let Some(targets) = self.windows.get_mut(&window) else { return };
        if let Some(target) = target {
            self.scratch.extend(targets.get_mut(&target).into_iter().flat_map(std::mem::take));
        } else {
            self.scratch.extend(targets.values_mut().flat_map(std::mem::take));
            self.scratch.sort_unstable_by_key(|operation| operation.matching);
        }
    }

    /// Forgets a window.
    pub(crate) fn free(&mut self, window: Id) {
        self.windows.remove(&window);
    }
}

#[cfg(test)]
mod tests {
    use Completion::{Local, Remote};

    use super::*;

    fn pending() -> Pending {
        let mut pending = Pending::default();
        pending.start(0, 1, 1, false);
        pending.start(0, 2, 2, true);
        pending.start(0, 1, 3, false);
        pending.start(9, 1, 4, false);
        pending
    }

    fn noted(act: impl FnOnce(&mut Pending, &mut dyn FnMut(u64, Completion))) -> Vec<(u64, Completion)> {
        let mut noted = Vec::new();
        act(&mut pending(), &mut |matching, completion| noted.push((matching, completion)));
        noted
    }

    #[test]
    fn a_fence_completes_backwards_and_gets_last() {
        let noted = noted(|pending, note| assert!(pending.end_epoch(0, note)));
        assert_eq!(noted, [(3, Local), (2, Local), (1, Local), (2, Remote)]);
    }

    #[test]
    fn a_flush_completes_one_target() {
        let noted = noted(|pending, note| {
            pending.flush_local(0, Some(1), &mut *note);
            assert!(pending.flush(0, Some(1), &mut *note));
            assert!(!pending.flush(0, Some(1), &mut *note));
            pending.flush(0, None, note);
        });
        assert_eq!(noted, [(1, Local), (3, Local), (1, Remote), (3, Remote), (2, Local), (2, Remote)]);
    }

    #[test]
    fn requests_complete_puts_locally_and_gets_altogether() {
        let noted = noted(|pending, note| {
            pending.request(0, 2, true, &mut *note);
            pending.request(0, 3, false, &mut *note);
            pending.flush(0, None, note);
        });
        assert_eq!(noted, [(2, Local), (2, Remote), (3, Local), (1, Local), (1, Remote), (3, Remote)]);
    }
}
