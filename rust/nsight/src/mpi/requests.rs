//! Requests of non-blocking calls: which call completes each.

use rustc_hash::{FxHashMap, FxHashSet};

use super::names::{Mode, act, completes_all, starts};
use super::program::Program;
use crate::names::Names;
use crate::rows::{ABSENT, MpiRow, MpiTable};

/// A request that was started.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Request {
    /// The call that started it.
    pub(super) call: u32,
    /// What it does: the call and the row that defined it, the same as the one that started it unless it is persistent.
    pub(super) defined: (u32, u32),
    /// The call that completed it; none if that is not traced.
    pub(super) completed: Option<u32>,
}

/// The requests of a process, whose calls are in this order, in order of their starts; and when the last call is over that names
/// one which was started before the first call.
pub(super) fn find(program: &Program, order: &[u32], names: &Names) -> (Vec<Request>, i64) {
    let mut settled = order.first().map_or(0, |call| program.calls[*call as usize].begin);
    let mut known: FxHashSet<i64> = FxHashSet::default();
    let mut requests: Vec<Request> = Vec::new();
    // By handle: the request that has it, and what defines persistent ones.
    let mut open: FxHashMap<i64, usize> = FxHashMap::default();
    let mut defined: FxHashMap<i64, (u32, u32)> = FxHashMap::default();
    for call in order.iter().copied() {
        let name = names.get(program.calls[call as usize].name);
        for (place, row) in (0..).zip(program.rows(call)) {
            let Some(handle) = handle(row) else { continue };
            if row.table != MpiTable::Requests {
                known.insert(handle);
            } else if !known.contains(&handle) {
                settled = settled.max(program.calls[call as usize].end);
            }
            let defining = match row.table {
                MpiTable::PointToPoint if act(name).is_some_and(|(_, mode)| mode == Mode::Defining) => {
                    defined.insert(handle, (call, place));
                    continue;
                }
                MpiTable::PointToPoint | MpiTable::Collective => Some((call, place)),
                MpiTable::Requests if starts(name) => defined.get(&handle).copied(),
                MpiTable::Requests => {
                    if let Some(request) = open.get(&handle) {
                        requests[*request].completed = Some(call);
                    }
                    // Of calls that complete some of several and name all, it is the last one that does.
                    if completes_all(name) {
                        open.remove(&handle);
                    }
                    continue;
                }
                MpiTable::Other => None,
            };
            if let Some(defined) = defining {
                open.insert(handle, requests.len());
                requests.push(Request { call, defined, completed: None });
            }
        }
    }
    (requests, settled)
}

fn handle(row: &MpiRow) -> Option<i64> {
    (row.request != ABSENT && row.request != 0).then_some(row.request)
}
