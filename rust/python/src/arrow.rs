//! Tables that any Arrow library can import without a copy.

use std::sync::Arc;

use arrow_array::builder::UInt16Builder;
use arrow_array::ffi_stream::{FFI_ArrowArrayStream, RecordBatchStreamReader};
use arrow_array::{ArrayRef, RecordBatch, RecordBatchIterator, StringArray, UInt16DictionaryArray};
use arrow_schema::{ArrowError, Field, Schema};
use pyo3::prelude::*;
use pyo3::types::PyCapsule;

use crate::errors::TraceError;

/// A table in Arrow memory, handed over through the Arrow `PyCapsule` interface.
#[pyclass(frozen, module = "whywait._native")]
#[derive(Clone, Debug)]
pub(crate) struct Table(RecordBatch);

#[pymethods]
impl Table {
    /// The table as an Arrow stream of one batch.
    #[pyo3(signature = (requested_schema=None))]
    fn __arrow_c_stream__<'py>(
        &self,
        py: Python<'py>,
        requested_schema: Option<Bound<'py, PyAny>>,
    ) -> PyResult<Bound<'py, PyCapsule>> {
        // A consumer may request another schema, but the interface allows a producer to ignore that.
        drop(requested_schema);
        let reader = RecordBatchIterator::new([Ok(self.0.clone())], self.0.schema());
        PyCapsule::new_with_value(py, FFI_ArrowArrayStream::new(Box::new(reader)), c"arrow_array_stream")
    }

    fn __len__(&self) -> usize {
        self.0.num_rows()
    }

    fn __repr__(&self) -> String {
        let names: Vec<_> = self.0.schema().fields().iter().map(|field| field.name().clone()).collect();
        format!("<Table of {} rows: {}>", self.0.num_rows(), names.join(", "))
    }
}

impl Table {
    /// A table of named columns of equal length.
    pub(crate) fn new(columns: Vec<(&str, ArrayRef)>) -> PyResult<Self> {
        let fields: Vec<Field> = columns
            .iter()
            .map(|(name, array)| Field::new(*name, array.data_type().clone(), array.null_count() > 0))
            .collect();
        let arrays = columns.into_iter().map(|(_, array)| array).collect();
        RecordBatch::try_new(Arc::new(Schema::new(fields)), arrays).map(Self).map_err(arrow_error)
    }
}

/// A table of any library, imported batch by batch through the Arrow `PyCapsule` interface.
pub(crate) fn batches(table: &Bound<'_, PyAny>) -> PyResult<RecordBatchStreamReader> {
    let capsule = table.call_method0("__arrow_c_stream__")?.cast_into::<PyCapsule>()?;
    let stream = capsule.pointer_checked(Some(c"arrow_array_stream"))?.cast::<FFI_ArrowArrayStream>();
    // SAFETY: the name of the capsule guarantees the type of its pointer, and nothing else consumes it.
    #[expect(unsafe_code, reason = "the interface hands over a pointer")]
    let reader = unsafe { RecordBatchStreamReader::from_raw(stream.as_ptr()) };
    reader.map_err(arrow_error)
}

/// The Python exception for an error of Arrow.
pub(crate) fn arrow_error(error: ArrowError) -> PyErr {
    TraceError::new_err(error.to_string())
}

/// A column of names with few distinct values.
#[derive(Default)]
pub(crate) struct Names {
    distinct: Vec<&'static str>,
    keys: UInt16Builder,
    /// The key of the latest name, which is usually the next one too.
    last: u16,
}

impl Names {
    /// An empty column with room for some rows.
    pub(crate) fn with_capacity(rows: usize) -> Self {
        Self { keys: UInt16Builder::with_capacity(rows), ..Self::default() }
    }

    pub(crate) fn push(&mut self, name: &'static str) {
        if self.distinct.get(usize::from(self.last)).is_none_or(|&last| last != name) {
            let known = self.distinct.iter().position(|&known| known == name).unwrap_or_else(|| {
                self.distinct.push(name);
                self.distinct.len() - 1
            });
            self.last = u16::try_from(known).expect("few names");
        }
        self.keys.append_value(self.last);
    }

    pub(crate) fn push_optional(&mut self, name: Option<&'static str>) {
        match name {
            Some(name) => self.push(name),
            None => self.keys.append_null(),
        }
    }

    pub(crate) fn finish(mut self) -> ArrayRef {
        Arc::new(UInt16DictionaryArray::new(self.keys.finish(), Arc::new(StringArray::from(self.distinct))))
    }
}
