//! Wait states as a table.

use std::sync::Arc;

use arrow_array::builder::Float64Builder;
use arrow_array::{ArrayRef, Float64Array, UInt32Array};
use pyo3::prelude::*;
use rayon::prelude::*;
use whywait_core::causes::Explanation;
use whywait_core::waits::WaitState;

use crate::arrow::{Names, Optional, Table};
use crate::errors::core_error;
use crate::result::Analysis;

/// Named columns that are built in one pass.
type Columns = Vec<(&'static str, ArrayRef)>;

/// All wait states, one row each. Groups of columns are built in parallel.
pub(crate) fn table(analysis: &Analysis, py: Python<'_>) -> PyResult<Table> {
    let groups: [fn(&Analysis) -> Columns; 5] = [places, calls, causes, shares, passed_on];
    let pool = whywait_core::pool::new(0).map_err(core_error)?;
    let columns = py.detach(|| pool.install(|| groups.par_iter().flat_map_iter(|columns| columns(analysis)).collect()));
    Table::new(columns)
}

fn places(analysis: &Analysis) -> Columns {
    let mut kinds = Names::default();
    let mut locations = Vec::with_capacity(analysis.result.waits.len());
    for wait in &analysis.result.waits {
        kinds.push(wait.kind.name());
        locations.push(wait.location.number());
    }
    vec![("kind", kinds.finish()), ("location", Arc::new(UInt32Array::from(locations)))]
}

fn calls(analysis: &Analysis) -> Columns {
    let begin = analysis.begin();
    let rows = analysis.result.waits.len();
    let mut callpaths = Vec::with_capacity(rows);
    let [mut enter, mut leave, mut waiting] = [(); 3].map(|()| Vec::with_capacity(rows));
    for wait in &analysis.result.waits {
        let call = analysis.result.call(wait);
        callpaths.push(call.callpath.number());
        enter.push(analysis.seconds(call.enter - begin));
        leave.push(analysis.seconds(call.leave - begin));
        waiting.push(analysis.seconds(wait.waiting));
    }
    vec![
        ("callpath", Arc::new(UInt32Array::from(callpaths))),
        ("enter", Arc::new(Float64Array::from(enter))),
        ("leave", Arc::new(Float64Array::from(leave))),
        ("waiting", Arc::new(Float64Array::from(waiting))),
    ]
}

fn causes(analysis: &Analysis) -> Columns {
    let begin = analysis.begin();
    let rows = analysis.result.waits.len();
    let [mut locations, mut callpaths] = [(); 2].map(|()| Optional::with_capacity(rows));
    let mut times = Float64Builder::with_capacity(rows);
    for wait in &analysis.result.waits {
        let cause = analysis.result.causing_call(wait);
        locations.push(wait.cause_location.known());
        callpaths.push(cause.map(|cause| cause.callpath.number()));
        times.append_option(cause.map(|cause| analysis.seconds(cause.enter - begin)));
    }
    vec![
        ("cause_location", locations.finish()),
        ("cause_callpath", callpaths.finish()),
        ("cause_time", Arc::new(times.finish())),
    ]
}

fn shares(analysis: &Analysis) -> Columns {
    let mut last = Names::default();
    for wait in &analysis.result.waits {
        last.push_optional(wait.last.name());
    }
    vec![
        ("last", last.finish()),
        ("direct", explained(analysis, |wait, why| wait.waiting as f64 - why.indirect)),
        ("indirect", explained(analysis, |_, why| why.indirect)),
    ]
}

fn passed_on(analysis: &Analysis) -> Columns {
    vec![
        ("propagating", explained(analysis, |_, why| why.propagating)),
        ("caused", explained(analysis, |_, why| why.caused)),
    ]
}

/// A column of durations that only waits with a cause have.
fn explained(analysis: &Analysis, ticks: impl Fn(&WaitState, &Explanation) -> f64) -> ArrayRef {
    let resolution = analysis.result.trace.resolution as f64;
    let mut explanations = analysis.result.causes.as_ref().map(|causes| causes.explanations.iter());
    let mut times = Float64Builder::with_capacity(analysis.result.waits.len());
    for wait in &analysis.result.waits {
        let why = explanations.as_mut().and_then(Iterator::next).and_then(Option::as_ref);
        times.append_option(why.map(|why| ticks(wait, why) / resolution));
    }
    Arc::new(times.finish())
}
