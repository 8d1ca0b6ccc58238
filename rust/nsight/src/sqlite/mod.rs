//! The file format of SQLite, read only: all rows of a table in order, and of each row the columns that are wanted.
//!
//! There is no SQL here and no index; nothing knows what is in the tables.

mod pages;
mod record;
mod statement;

use std::collections::HashSet;
use std::fs;
use std::io::{self, Read};
use std::path::{Path, PathBuf};

use pages::{Fault, Pages};
pub use record::Row;
use statement::Statement;

/// How a file of SQLite begins.
pub const MAGIC: &[u8; 16] = b"SQLite format 3\0";
/// The first page of all, with the table of tables.
const SCHEMA: u32 = 1;
/// Length of the header of a file.
const HEADER: usize = 100;

/// How text is encoded.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Encoding {
    Utf8,
    Utf16Little,
    Utf16Big,
}

/// A table as it is declared.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Table {
    /// Its name.
    pub name: String,
    /// Names of its columns.
    pub columns: Vec<String>,
    /// The column that the number of a row stands for.
    row_number: Option<usize>,
    /// Whether rows are in an index rather than in the order of their numbers.
    pub has_no_row_numbers: bool,
    root: u32,
}

impl Table {
    /// The place of a column, by its name without regard to case.
    #[must_use]
    pub fn column(&self, name: &str) -> Option<usize> {
        self.columns.iter().position(|column| column.eq_ignore_ascii_case(name))
    }
}

/// What could not be read of a table.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Defects {
    /// Number of pages that were looked at.
    pub pages: u64,
    /// Number of pages that cannot be read, and the first of them.
    pub unreadable: u64,
    /// See `unreadable`.
    pub first_unreadable: u32,
    /// Number of pages after the end of the file.
    pub missing: u64,
    /// Number of rows that cannot be read, or of which a value is of another type than it should be.
    pub odd_rows: u64,
}

impl Defects {
    /// Whether so much is damaged that what is left says little: more than one page of a hundred.
    #[must_use]
    pub fn are_many(&self) -> bool {
        self.unreadable * 100 > self.pages
    }
}

/// A database.
#[derive(Debug)]
pub struct Database {
    path: PathBuf,
    page_size: usize,
    /// Bytes of a page that are the format's.
    usable: usize,
    /// Number of pages that the file has, and that it should have.
    pages: u32,
    declared: u32,
    encoding: Encoding,
    /// All tables.
    pub tables: Vec<Table>,
}

fn invalid(why: &str) -> io::Error {
    io::Error::new(io::ErrorKind::InvalidData, why)
}

impl Database {
    /// Opens a file and reads which tables it has.
    pub fn open(path: &Path) -> io::Result<Self> {
        let mut file = fs::File::open(path)?;
        let length = file.metadata()?.len();
        let mut header = [0; HEADER];
        file.read_exact(&mut header).map_err(|_| invalid("it is no SQLite database: it is shorter than a header"))?;
        if &header[..16] != MAGIC {
            return Err(invalid("it is no SQLite database"));
        }
        let word = |at: usize| u32::from_be_bytes([header[at], header[at + 1], header[at + 2], header[at + 3]]);
        let page_size = match u16::from_be_bytes([header[16], header[17]]) {
            1 => 65_536,
            size => usize::from(size),
        };
        let usable = page_size.saturating_sub(usize::from(header[20]));
        if !page_size.is_power_of_two() || page_size < 512 || usable < 480 {
            return Err(invalid(&format!("it has pages of {page_size} bytes, of which {usable} are used")));
        }
        let encoding = match word(56) {
            0 | 1 => Encoding::Utf8,
            2 => Encoding::Utf16Little,
            3 => Encoding::Utf16Big,
            other => return Err(invalid(&format!("its text has the unknown encoding {other}"))),
        };
        let pages = u32::try_from(length.div_ceil(page_size as u64)).unwrap_or(u32::MAX);
        // The number of pages counts if the program that wrote the file last knew of it.
        let declared = if word(24) == word(92) && word(28) > 0 { word(28) } else { pages };
        let path = path.to_owned();
        let mut database = Self { path, page_size, usable, pages, declared, encoding, tables: Vec::new() };
        database.read_schema()?;
        Ok(database)
    }

    /// Whether the file is shorter than it should be.
    #[must_use]
    pub fn is_truncated(&self) -> bool {
        self.pages < self.declared
    }

    /// What keeps the file from being all there is: another one beside it, whose name ends like this.
    #[must_use]
    pub fn unfinished(&self) -> Option<&'static str> {
        let beside = |ending: &str| {
            let mut name = self.path.clone().into_os_string();
            name.push(ending);
            PathBuf::from(name)
        };
        let has_content = |ending: &str| fs::metadata(beside(ending)).is_ok_and(|file| file.len() > 0);
        let is_hot = |ending: &str| {
            let mut head = Vec::new();
            let read = fs::File::open(beside(ending)).and_then(|file| file.take(8).read_to_end(&mut head));
            read.is_ok() && head.iter().any(|byte| *byte != 0)
        };
        match (has_content("-wal"), is_hot("-journal")) {
            (true, _) => Some("-wal"),
            (_, true) => Some("-journal"),
            _ => None,
        }
    }

    fn read_schema(&mut self) -> io::Result<()> {
        let columns = ["type", "name", "tbl_name", "rootpage", "sql"].map(str::to_owned).to_vec();
        let name = "sqlite_schema".to_owned();
        let schema = Table { name, columns, row_number: None, has_no_row_numbers: false, root: SCHEMA };
        let mut tables: Vec<Table> = Vec::new();
        let mut names = HashSet::new();
        let defects = self.scan(&schema, &[Some(0), Some(1), Some(3), Some(4)], |row| {
            let (kind, name, sql) = (row.text(0), row.text(1), row.text(3));
            let root = row.integer(2).and_then(|root| u32::try_from(root).ok());
            let (Some("table"), Some(name), Some(root), Some(sql)) = (kind.as_deref(), name, root, sql) else { return };
            let Some(Statement { columns, row_number, has_no_row_numbers }) = Statement::parse(&sql) else { return };
            if names.insert(name.to_ascii_lowercase()) {
                tables.push(Table { name: name.into_owned(), columns, row_number, has_no_row_numbers, root });
            }
        })?;
        if tables.is_empty() && defects.unreadable > 0 {
            return Err(invalid("the list of its tables cannot be read"));
        }
        self.tables = tables;
        Ok(())
    }

    /// Whether a table has rows.
    pub fn has_rows(&self, table: &Table) -> io::Result<bool> {
        let (mut cells, mut children) = (Vec::new(), Vec::new());
        match Pages::open(self)?.tree_page(table.root, &mut cells, &mut children) {
            Err(Fault::Io(error)) => Err(error),
            _ => Ok(!cells.is_empty() || !children.is_empty()),
        }
    }

    /// Sends all rows of a table, each with the wanted columns; those that are `None`, or that a row does not have, are null.
    pub fn scan(
        &self,
        table: &Table,
        wanted: &[Option<usize>],
        mut each: impl FnMut(&mut Row<'_>),
    ) -> io::Result<Defects> {
        let mut pages = Pages::open(self)?;
        let mut defects = Defects::default();
        let record = record::Record::new(wanted, table.row_number);
        let mut fields = vec![record::Field::default(); wanted.len()];
        // Pages that are to be looked at, the next one last.
        let mut ahead = vec![table.root];
        let (mut cells, mut children, mut whole) = (Vec::new(), Vec::new(), Vec::new());
        while let Some(page) = ahead.pop() {
            defects.pages += 1;
            let found = pages.tree_page(page, &mut cells, &mut children);
            match found {
                Ok(()) => {}
                Err(Fault::Io(error)) => return Err(error),
                Err(Fault::Missing) => {
                    defects.missing += 1;
                    continue;
                }
                Err(Fault::Damaged) => {
                    if defects.unreadable == 0 {
                        defects.first_unreadable = page;
                    }
                    defects.unreadable += 1;
                    continue;
                }
            }
            ahead.extend(children.drain(..).rev());
            for cell in cells.drain(..) {
                let is_read = match pages.payload(&cell, &mut whole)? {
                    Some(payload) => record.find(payload, &mut fields),
                    None => false,
                };
                if !is_read {
                    defects.odd_rows += 1;
                    continue;
                }
                let payload = if whole.is_empty() { pages.local(&cell) } else { &whole };
                let mut row = Row::new(payload, &fields, cell.row, self.encoding);
                each(&mut row);
                defects.odd_rows += u64::from(row.is_odd());
            }
        }
        Ok(defects)
    }
}
