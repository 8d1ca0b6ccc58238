//! The calls of MPI of a process.

use std::ops::Range;

use super::names::{Act, act};
use crate::names::Names;
use crate::rows::{MpiRow, MpiTable};

/// A call: one row, or one for each of its requests, or two for both directions.
#[derive(Debug, Clone)]
pub(crate) struct Call {
    pub(crate) begin: i64,
    pub(crate) end: i64,
    /// Its thread in the operating system.
    pub(crate) thread: u32,
    pub(crate) name: u32,
    rows: Range<u32>,
}

/// The calls of a process, those of each thread in order of their begins.
#[derive(Debug, Default)]
pub(crate) struct Program {
    rows: Vec<MpiRow>,
    pub(crate) calls: Vec<Call>,
}

impl Program {
    pub(crate) fn new(mut rows: Vec<MpiRow>, names: &Names) -> Self {
        rows.sort_by_key(|row| (row.thread, row.begin, row.end, row.name, row.table));
        let is_same = |a: &MpiRow, b: &MpiRow| {
            let is_one = match a.table {
                MpiTable::Requests => true,
                MpiTable::PointToPoint => matches!(act(names.get(a.name)), Some((Act::SendReceive, _))),
                MpiTable::Collective | MpiTable::Other => false,
            };
            let key = |row: &MpiRow| (row.thread, row.begin, row.end, row.name, row.table);
            is_one && key(a) == key(b)
        };
        let mut calls = Vec::with_capacity(rows.len());
        let mut from = 0;
        for of_call in rows.chunk_by(is_same) {
            let MpiRow { begin, end, thread, name, .. } = of_call[0];
            let until = from + of_call.len() as u32;
            calls.push(Call { begin, end, thread, name, rows: from..until });
            from = until;
        }
        Self { rows, calls }
    }

    /// The rows of a call.
    pub(super) fn rows(&self, call: u32) -> &[MpiRow] {
        let Range { start, end } = self.calls[call as usize].rows;
        &self.rows[start as usize..end as usize]
    }

    /// The calls of all threads in order of their begins.
    pub(super) fn in_order(&self) -> Vec<u32> {
        let mut order: Vec<u32> = (0..self.calls.len() as u32).collect();
        order.sort_unstable_by_key(|call| (self.calls[*call as usize].begin, *call));
        order
    }

    /// The highest rank that its calls name, in whichever communicator: there are more ranks than this one.
    pub(crate) fn highest_partner(&self) -> Option<i64> {
        let tables = [MpiTable::PointToPoint, MpiTable::Collective];
        self.rows.iter().filter(|row| tables.contains(&row.table)).map(|row| row.peer).max()
    }

    /// Moves all times.
    pub(crate) fn shift(&mut self, by: i64) {
        for call in &mut self.calls {
            call.begin = call.begin.saturating_add(by);
            call.end = call.end.saturating_add(by);
        }
    }
}
