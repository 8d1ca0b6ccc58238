//! Wait states as a table, and how such a table is read.

use std::iter::repeat;
use std::sync::Arc;

use arrow_array::builder::{BooleanBuilder, Float64Builder, UInt32Builder};
use arrow_array::{ArrayRef, Float64Array, RecordBatch, UInt32Array};
use arrow_buffer::NullBufferBuilder;
use arrow_schema::ArrowError;
use pyo3::prelude::*;
use rayon::prelude::*;

use crate::analysis::Analysis;
use crate::arrow::{Names, Table, arrow_error, batches};
use crate::errors::{UsageError, core_error};
use crate::job::detached;

/// Named columns that are built in one pass.
type Columns = Vec<(&'static str, ArrayRef)>;

/// Number of waits whose causes are fetched from memory together.
const BATCH: usize = 1 << 12;

/// All wait states, one row each. Groups of columns are built in parallel, the one that takes longest first.
pub(crate) fn table(analysis: &Analysis, py: Python<'_>) -> PyResult<Table> {
    let groups: [fn(&Analysis) -> Columns; 4] = [causes, places, calls, explanations];
    let pool = whywait_core::parallel::pool::new(0).map_err(core_error)?;
    let columns = py.detach(|| {
        pool.install(|| groups.par_iter().with_max_len(1).flat_map_iter(|columns| columns(analysis)).collect())
    });
    Table::new(columns)
}

/// What `of` finds in each batch of a table of wait states that begins at a row, put together by `with` in their order;
/// `None` without batches.
pub(crate) fn fold<T: Send>(
    py: Python<'_>,
    waits: &Bound<'_, PyAny>,
    of: impl Fn(usize, &RecordBatch) -> Option<T> + Sync,
    with: impl Fn(T, T) -> T + Send,
) -> PyResult<Option<T>> {
    let numbered = batches(waits)?.scan(0, |next, batch| {
        let first = *next;
        *next += batch.as_ref().map_or(0, RecordBatch::num_rows);
        Some((first, batch))
    });
    let of = |(first, batch): (usize, Result<RecordBatch, ArrowError>)| {
        let found = of(first, &batch.map_err(arrow_error)?);
        Ok((first, found.ok_or_else(|| UsageError::new_err("these are no wait states"))?))
    };
    let pool = whywait_core::parallel::pool::new(0).map_err(core_error)?;
    detached(py, || {
        pool.install(|| {
            let mut parts = numbered.par_bridge().map(of).collect::<PyResult<Vec<_>>>()?;
            // Always in the same order, because sums of floats depend on it.
            parts.sort_by_key(|&(first, _)| first);
            Ok(parts.into_iter().map(|(_, part)| part).reduce(with))
        })
    })?
}

fn places(analysis: &Analysis) -> Columns {
    let rows = analysis.result.waits.len();
    let [mut kinds, mut last] = [(); 2].map(|()| Names::with_capacity(rows));
    let mut locations = Vec::with_capacity(rows);
    let mut inferred = BooleanBuilder::with_capacity(rows);
    for wait in &analysis.result.waits {
        kinds.push(wait.kind.name());
        locations.push(wait.location.number());
        last.push_optional(wait.last.name());
        inferred.append_value(wait.is_inferred);
    }
    vec![
        ("kind", kinds.finish()),
        ("location", Arc::new(UInt32Array::from(locations))),
        ("last", last.finish()),
        ("inferred", Arc::new(inferred.finish())),
    ]
}

fn calls(analysis: &Analysis) -> Columns {
    let begin = analysis.begin();
    let rows = analysis.result.waits.len();
    let mut callpaths = Vec::with_capacity(rows);
    let [mut enter, mut leave, mut waiting] = [(); 3].map(|()| Vec::with_capacity(rows));
    let mut hidden = Float64Builder::with_capacity(rows);
    for wait in &analysis.result.waits {
        let call = analysis.result.call(wait);
        callpaths.push(call.callpath.number());
        enter.push(analysis.seconds(call.enter - begin));
        leave.push(analysis.seconds(call.leave - begin));
        waiting.push(analysis.seconds(wait.waiting));
        let whole = wait.is_of_devices().then(|| analysis.result.devices.whole_wait((wait.location, wait.instance)));
        hidden.append_option(whole.flatten().map(|whole| analysis.seconds(whole - wait.waiting)));
    }
    vec![
        ("callpath", Arc::new(UInt32Array::from(callpaths))),
        ("enter", Arc::new(Float64Array::from(enter))),
        ("leave", Arc::new(Float64Array::from(leave))),
        ("waiting", Arc::new(Float64Array::from(waiting))),
        ("hidden", Arc::new(hidden.finish())),
    ]
}

fn causes(analysis: &Analysis) -> Columns {
    let begin = analysis.begin();
    let rows = analysis.result.waits.len();
    let [mut locations, mut callpaths] = [(); 2].map(|()| UInt32Builder::with_capacity(rows));
    let mut times = Float64Builder::with_capacity(rows);
    let mut enters = Vec::with_capacity(BATCH);
    for waits in analysis.result.waits.of_shards().flat_map(|waits| waits.chunks(BATCH)) {
        analysis.result.causing_enters(waits, &mut enters);
        for (wait, enter) in waits.iter().zip(&enters) {
            locations.append_option(wait.cause_location.known());
            callpaths.append_option(enter.map(|(_, callpath)| callpath.number()));
            times.append_option(enter.map(|(time, _)| analysis.seconds(time - begin)));
        }
    }
    vec![
        ("cause_location", Arc::new(locations.finish())),
        ("cause_callpath", Arc::new(callpaths.finish())),
        ("cause_time", Arc::new(times.finish())),
    ]
}

fn explanations(analysis: &Analysis) -> Columns {
    let resolution = analysis.result.trace.resolution as f64;
    // Without causes, nothing is known of any wait.
    let found = analysis.result.causes.iter().flat_map(|causes| causes.explanations.iter());
    let rows = analysis.result.waits.len();
    let [mut direct, mut indirect, mut propagating, mut caused] = [(); 4].map(|()| Vec::with_capacity(rows));
    let mut is_known = NullBufferBuilder::new(rows);
    for (wait, explanation) in analysis.result.waits.iter().zip(found.copied().chain(repeat(None))) {
        is_known.append(explanation.is_some());
        let known = explanation.unwrap_or_default();
        direct.push((wait.waiting as f64 - known.indirect) / resolution);
        indirect.push(known.indirect / resolution);
        propagating.push(known.propagating / resolution);
        caused.push(known.caused / resolution);
    }
    let is_known = is_known.finish();
    let columns = [("direct", direct), ("indirect", indirect), ("propagating", propagating), ("caused", caused)];
    columns.map(|(name, times)| (name, Arc::new(Float64Array::new(times.into(), is_known.clone())) as ArrayRef)).into()
}
