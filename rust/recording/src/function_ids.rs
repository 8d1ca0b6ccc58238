//! Numbers of the functions that are on call paths.

use rustc_hash::FxHashMap;

use crate::symbols::Function;

/// Number of a function in the run.
pub(crate) type FunctionId = u32;

/// The functions of the program that are on call paths.
#[derive(Debug, Default)]
pub(crate) struct Functions {
    /// By number.
    pub(crate) list: Vec<Function>,
    known: FxHashMap<Function, FunctionId>,
}

impl Functions {
    /// The number of a function.
    pub(crate) fn id(&mut self, function: &Function) -> FunctionId {
        if let Some(id) = self.known.get(function) {
            return *id;
        }
        let id = self.list.len() as FunctionId;
        self.list.push(function.clone());
        self.known.insert(function.clone(), id);
        id
    }
}
