//! Pages of a file, and the cells in them.

use std::fs::File;
use std::io::{self, Read, Seek, SeekFrom};

use super::record::varint;
use super::{Database, HEADER, SCHEMA};

/// Pages that follow each other are read this many bytes at once.
const AHEAD: usize = 1 << 18;
/// Kinds of pages of a table.
const INNER: u8 = 5;
const LEAF: u8 = 13;

/// Why a page cannot be used.
pub(super) enum Fault {
    Io(io::Error),
    /// It is after the end of the file.
    Missing,
    Damaged,
}

/// A row in the page that was looked at last.
#[derive(Debug, Clone, Copy)]
pub(super) struct Cell {
    pub(super) row: i64,
    /// Place and length of what is in the page itself.
    at: usize,
    local: usize,
    /// Length of all.
    length: usize,
}

/// The pages of a file, each handed out once.
pub(super) struct Pages {
    file: File,
    page_size: usize,
    usable: usize,
    count: u32,
    /// Pages that were handed out, a bit each.
    seen: Vec<u64>,
    /// The page that was looked at last.
    page: Vec<u8>,
    /// Bytes read ahead, and the page that they begin with.
    ahead: Vec<u8>,
    first: u32,
    last: u32,
}

impl Pages {
    pub(super) fn open(database: &Database) -> io::Result<Self> {
        let Database { page_size, usable, pages, .. } = *database;
        Ok(Self {
            file: File::open(&database.path)?,
            page_size,
            usable,
            count: pages,
            seen: vec![0; pages as usize / 64 + 1],
            page: Vec::new(),
            ahead: Vec::new(),
            first: 0,
            last: 0,
        })
    }

    /// The bytes of a page that was not read before.
    fn fetch(&mut self, number: u32) -> Result<&[u8], Fault> {
        if number == 0 {
            return Err(Fault::Damaged);
        }
        if number > self.count {
            return Err(Fault::Missing);
        }
        let (word, bit) = (number as usize / 64, 1 << (number % 64));
        if self.seen[word] & bit != 0 {
            return Err(Fault::Damaged);
        }
        self.seen[word] |= bit;
        let held = (self.ahead.len() / self.page_size) as u32;
        if number < self.first || number - self.first >= held {
            // What follows the page before will be followed by more.
            let wanted = if number == self.last + 1 { AHEAD.max(self.page_size) } else { self.page_size };
            let offset = u64::from(number - 1) * self.page_size as u64;
            self.file.seek(SeekFrom::Start(offset)).map_err(Fault::Io)?;
            self.ahead.clear();
            (&self.file).take(wanted as u64).read_to_end(&mut self.ahead).map_err(Fault::Io)?;
            self.first = number;
        }
        self.last = number;
        let at = (number - self.first) as usize * self.page_size;
        // The last page of a file that is cut.
        self.ahead.get(at..at + self.page_size).ok_or(Fault::Missing)
    }

    /// Looks at a page of a table: its rows, or the pages below it.
    pub(super) fn tree_page(
        &mut self,
        number: u32,
        cells: &mut Vec<Cell>,
        children: &mut Vec<u32>,
    ) -> Result<(), Fault> {
        cells.clear();
        children.clear();
        let mut page = std::mem::take(&mut self.page);
        let fetched = self.fetch(number).map(|bytes| {
            page.clear();
            page.extend_from_slice(bytes);
        });
        self.page = page;
        fetched?;
        let start = if number == SCHEMA { HEADER } else { 0 };
        let is_whole = match self.page.get(start) {
            Some(&INNER) => self.inner(start, children).is_some(),
            Some(&LEAF) => self.leaf(start, cells).is_some(),
            _ => false,
        };
        if is_whole {
            return Ok(());
        }
        cells.clear();
        children.clear();
        Err(Fault::Damaged)
    }

    fn short(&self, at: usize) -> Option<usize> {
        Some(usize::from(u16::from_be_bytes(self.page.get(at..at + 2)?.try_into().ok()?)))
    }

    fn word(&self, at: usize) -> Option<u32> {
        Some(u32::from_be_bytes(self.page.get(at..at + 4)?.try_into().ok()?))
    }

    fn inner(&self, start: usize, children: &mut Vec<u32>) -> Option<()> {
        let count = self.short(start + 3)?;
        for cell in 0..count {
            let at = self.short(start + 12 + 2 * cell)?;
            children.push(self.word(at)?);
        }
        children.push(self.word(start + 8)?);
        Some(())
    }

    fn leaf(&self, start: usize, cells: &mut Vec<Cell>) -> Option<()> {
        let count = self.short(start + 3)?;
        for cell in 0..count {
            let at = self.short(start + 8 + 2 * cell)?;
            let (length, size) = varint(self.page.get(at..self.usable)?)?;
            let at = at + size;
            let (row, size) = varint(self.page.get(at..self.usable)?)?;
            let at = at + size;
            let length = usize::try_from(length).ok()?;
            let local = self.local_length(length);
            let rest = if local < length { 4 } else { 0 };
            if at + local + rest > self.usable {
                return None;
            }
            cells.push(Cell { row: row.cast_signed(), at, local, length });
        }
        Some(())
    }

    /// How much of a payload is in the page itself.
    fn local_length(&self, length: usize) -> usize {
        let most = self.usable - 35;
        if length <= most {
            return length;
        }
        let least = (self.usable - 12) * 32 / 255 - 23;
        let local = least + (length - least) % (self.usable - 4);
        if local <= most { local } else { least }
    }

    /// What of a row is in the page itself.
    pub(super) fn local(&self, cell: &Cell) -> &[u8] {
        &self.page[cell.at..cell.at + cell.local]
    }

    /// The whole row: in `whole` if it is longer than the page has room for, which is empty otherwise; nothing if a part of it
    /// is missing.
    pub(super) fn payload<'a>(&'a mut self, cell: &Cell, whole: &'a mut Vec<u8>) -> io::Result<Option<&'a [u8]>> {
        whole.clear();
        if cell.local == cell.length {
            return Ok(Some(self.local(cell)));
        }
        whole.extend_from_slice(self.local(cell));
        let mut next = self.word(cell.at + cell.local).unwrap_or(0);
        let part = self.usable - 4;
        while whole.len() < cell.length {
            let usable = self.usable;
            let page = match self.fetch(next) {
                Ok(page) => &page[..usable],
                Err(Fault::Io(error)) => return Err(error),
                Err(Fault::Missing | Fault::Damaged) => return Ok(None),
            };
            next = u32::from_be_bytes([page[0], page[1], page[2], page[3]]);
            let missing = cell.length - whole.len();
            whole.extend_from_slice(&page[4..4 + part.min(missing)]);
        }
        Ok(Some(whole))
    }
}
