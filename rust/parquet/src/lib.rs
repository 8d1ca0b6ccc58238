//! Writes Parquet files of tables whose columns repeat few values: call paths, locations, names of metrics.
//!
//! Such a column arrives as a dictionary, whether or not the file declares it as one: keys, and a small table of values
//! (texts, ranks of locations, the names of call paths). Parquet stores just that, so keys are copied in one pass, and
//! values are visited once per row group. A general writer would first expand the values and then hash each of them to
//! find the keys again.
//!
//! The values of a nested column, as the names of a call path, are shredded and packed once, too: a row appends their bits.
//!
//! Consecutive numbers, as of the locations in a table with a row for each, are packed by their differences instead. Real
//! numbers that change from row to row, as times do, are split into their bytes before they are compressed.
//!
//! Format: [Apache Parquet](https://parquet.apache.org/docs/file-format/), with one data page per column chunk.

mod chunk;
mod column;
mod delta;
mod hybrid;
mod parts;
mod schema;
mod values;

use std::io::Write;
use std::sync::Arc;

use arrow_array::{ArrayRef, RecordBatch};
use arrow_schema::{DataType, SchemaRef};
use parquet::errors::ParquetError;
use parquet::file::metadata::KeyValue;
use parquet::file::properties::WriterProperties;
use parquet::file::writer::SerializedFileWriter;
use parquet::schema::types::SchemaDescriptor;
use rayon::prelude::*;
use rayon::{ThreadPool, ThreadPoolBuilder};
use zstd::bulk::Compressor;

use crate::chunk::Chunk;

/// Errors of this crate.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// The file cannot be written.
    #[error(transparent)]
    Io(#[from] std::io::Error),
    /// A column has an unsupported type, or not the declared one.
    #[error("column {0} cannot hold {1}")]
    Type(String, DataType),
    /// A null in a column that is declared as not nullable.
    #[error("a value of column {0} is absent")]
    Null(String),
    /// Pieces do not have the columns of the file.
    #[error("a piece of {0} columns for a table of {1}")]
    Columns(usize, usize),
    /// An error of the Parquet library.
    #[error(transparent)]
    Parquet(ParquetError),
}

impl From<ParquetError> for Error {
    fn from(error: ParquetError) -> Self {
        match error {
            // Report errors of the system, such as a full disk, as such.
            ParquetError::External(error) => match error.downcast() {
                Ok(error) => Self::Io(*error),
                Err(error) => Self::Parquet(ParquetError::External(error)),
            },
            error => Self::Parquet(error),
        }
    }
}

/// Result of this crate.
pub type Result<T> = std::result::Result<T, Error>;

/// Below this number of rows, threads do not pay off.
const FEW_ROWS: usize = 1 << 14;

/// A fast level of compression; slower ones gain little.
const LEVEL: i32 = 1;

/// Writes a file, one row group at a time.
#[derive(Debug)]
pub struct Writer<W: Write + Send> {
    file: SerializedFileWriter<W>,
    columns: Columns,
    pool: Option<ThreadPool>,
}

/// The columns of a file.
#[derive(Debug)]
struct Columns {
    schema: SchemaRef,
    leaves: SchemaDescriptor,
    repeating: Vec<String>,
}

impl<W: Write + Send> Writer<W> {
    /// Begin a file.
    ///
    /// # Parameters
    /// `metadata` is written unchanged; `repeating` are columns of real numbers with few distinct values.
    ///
    /// # Errors
    /// If `out` cannot be written, or a column has an unsupported type.
    pub fn new(out: W, schema: SchemaRef, metadata: Vec<(String, String)>, repeating: Vec<String>) -> Result<Self> {
        let root = schema::root(schema.fields())?;
        let metadata = metadata.into_iter().map(|(key, value)| KeyValue::new(key, value)).collect();
        let properties = WriterProperties::builder()
            .set_created_by(concat!("whywait ", env!("CARGO_PKG_VERSION")).to_owned())
            .set_key_value_metadata(Some(metadata))
            .set_offset_index_disabled(true)
            .build();
        let leaves = SchemaDescriptor::new(root.clone());
        let file = SerializedFileWriter::new(out, root, Arc::new(properties))?;
        Ok(Self { file, columns: Columns { schema, leaves, repeating }, pool: None })
    }

    /// Write a row group.
    ///
    /// # Errors
    /// If a piece does not have the columns of the file, or the file cannot be written.
    pub fn write(&mut self, pieces: &[RecordBatch]) -> Result<()> {
        let rows = pieces.iter().map(RecordBatch::num_rows).sum();
        if rows == 0 {
            return Ok(());
        }
        let columns = &self.columns;
        let count = columns.schema.fields().len();
        if let Some(piece) = pieces.iter().find(|piece| piece.num_columns() != count) {
            return Err(Error::Columns(piece.num_columns(), count));
        }
        if rows >= FEW_ROWS && self.pool.is_none() {
            self.pool = Some(ThreadPoolBuilder::new().build().map_err(std::io::Error::other)?);
        }
        let encode = |column| columns.encode(column, pieces, rows);
        let chunks: Vec<Vec<Chunk>> = match &self.pool {
            Some(pool) if rows >= FEW_ROWS => {
                pool.install(|| (0..count).into_par_iter().map(encode).collect::<Result<_>>())?
            }
            _ => (0..count).map(encode).collect::<Result<_>>()?,
        };
        let mut group = self.file.next_row_group()?;
        for chunk in chunks.into_iter().flatten() {
            group.append_column(&chunk.bytes, chunk.close)?;
        }
        group.close()?;
        Ok(())
    }

    /// Write the footer.
    ///
    /// # Errors
    /// If the file cannot be written.
    pub fn close(self) -> Result<()> {
        self.file.close()?;
        Ok(())
    }
}

impl Columns {
    fn encode(&self, column: usize, pieces: &[RecordBatch], rows: usize) -> Result<Vec<Chunk>> {
        let field = self.schema.field(column);
        let leaves: Vec<_> = (0..self.leaves.num_columns())
            .filter(|&leaf| self.leaves.get_column_root_idx(leaf) == column)
            .map(|leaf| self.leaves.column(leaf))
            .collect();
        let arrays: Vec<ArrayRef> = pieces.iter().map(|piece| piece.column(column).clone()).collect();
        let column = column::shred(field, &arrays, &leaves, self.repeating.contains(field.name()))?;
        let mut compressor = Compressor::new(LEVEL)?;
        column.leaves.iter().map(|leaf| chunk::encode(leaf, column.order.as_ref(), rows, &mut compressor)).collect()
    }
}
