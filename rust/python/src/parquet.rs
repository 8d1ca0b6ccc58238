//! Writes Python's tables to Parquet files.

use std::fs::File;
use std::io::BufWriter;
use std::path::PathBuf;
use std::sync::Mutex;

use arrow_schema::Schema;
use pyo3::prelude::*;
use whywait_parquet::{Error, Writer};

use crate::arrow::{arrow_error, batches, schema};
use crate::errors::{Error as WhywaitError, UsageError};

/// Writes a Parquet file, group of rows by group of rows.
///
/// `schema` is what the file keeps; columns of what is written may be dictionaries of that. `metadata` goes into the
/// file as it is, and `repeating` are columns of real numbers that repeat.
#[pyclass(frozen, module = "whywait._native")]
pub(crate) struct TableWriter(Mutex<Option<Writer<BufWriter<File>>>>);

/// Bytes that are written at a time.
const BLOCK: usize = 1 << 20;

#[pymethods]
impl TableWriter {
    #[new]
    fn new(
        path: PathBuf,
        schema: Bound<'_, PyAny>,
        metadata: Vec<(String, String)>,
        repeating: Vec<String>,
    ) -> PyResult<Self> {
        let schema: Schema = self::schema(&schema)?;
        let file = BufWriter::with_capacity(BLOCK, File::create(path)?);
        let writer = Writer::new(file, schema.into(), metadata, repeating).map_err(error)?;
        Ok(Self(Mutex::new(Some(writer))))
    }

    /// Write a table as a group of rows.
    fn write(&self, py: Python<'_>, table: Bound<'_, PyAny>) -> PyResult<()> {
        let batches = batches(&table)?.collect::<Result<Vec<_>, _>>().map_err(arrow_error)?;
        py.detach(|| match self.0.lock().expect("no panic before").as_mut() {
            Some(writer) => writer.write(&batches).map_err(error),
            None => Err(UsageError::new_err("the file is closed")),
        })
    }

    /// Write the footer.
    fn close(&self, py: Python<'_>) -> PyResult<()> {
        let writer = self.0.lock().expect("no panic before").take();
        py.detach(|| writer.map_or(Ok(()), Writer::close)).map_err(error)
    }
}

fn error(error: Error) -> PyErr {
    match error {
        Error::Io(error) => error.into(),
        error => WhywaitError::new_err(error.to_string()),
    }
}
