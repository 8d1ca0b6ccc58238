//! Samples of the call path, as tables.

use std::collections::BTreeMap;
use std::sync::Arc;

use arrow_array::{BooleanArray, Float64Array, StringArray, UInt32Array, UInt64Array};
use pyo3::prelude::*;
use whywait_core::ids::CallPathId;
use whywait_core::sampling::{FunctionCost, FunctionTime, Sample, of_user_time, periods};
use whywait_core::trace::call_samples::Usage;
use whywait_otf2::Definitions;
use whywait_otf2::enums::InterruptGeneratorMode;

use crate::analysis::Analysis;
use crate::arrow::{Names, Table};

/// Names of the metrics that samples give.
pub(crate) const TIME: &str = "sampled_time";
pub(crate) const COUNT: &str = "samples";

/// Names of the metrics that samples give.
#[pyfunction]
pub(crate) fn sampled_metrics() -> Vec<&'static str> {
    vec![TIME, COUNT]
}

/// Call path and location, as numbers.
type Place = (u32, u32);

/// The ticks and samples of each call path and location. Time in the system or without a core is that of the recorded call
/// path itself.
pub(crate) fn by_place(times: &[FunctionTime]) -> Vec<(Place, (i64, u64))> {
    let mut sums: BTreeMap<Place, (i64, u64)> = BTreeMap::new();
    for time in times {
        let callpath = if time.callpath.is_some() { time.callpath } else { time.recorded };
        let (ticks, samples) = sums.entry((callpath.number(), time.location.number())).or_default();
        *ticks += time.time;
        *samples += time.samples;
    }
    // Callers of functions that samples saw may have nothing of their own.
    sums.into_iter().filter(|&(_, has)| has != (0, 0)).collect()
}

/// Name of the property of a calling context with the line of a sample.
const LINE: &str = "line";

/// All samples: time, location, call path, that of the events, what triggered it, whether in a call of a library, line, and
/// what was used of the system since the sample before.
pub(crate) fn samples(analysis: &Analysis, py: Python<'_>) -> PyResult<Table> {
    let trace = &analysis.result.trace;
    let begin = analysis.begin();
    let samples = analysis.collective(py, |result| result.sampling.rows(&result.trace))?;
    let definitions = trace.records();
    let modes: BTreeMap<u32, InterruptGeneratorMode> =
        definitions.interrupt_generators.iter().map(|of| (of.id, of.interrupt_generator_mode)).collect();
    let lines = lines(definitions);
    let periods = periods(trace);
    let weights = samples.iter().map(|sample| Some(periods.get(&sample.generator)? / trace.resolution as f64));
    let user_only = of_user_time(trace);
    let is_user_only =
        samples.iter().map(|sample| Some(user_only.contains(&trace.definitions.locations[sample.location].id)));
    let addresses = samples.iter().map(|sample| sample.address.map(|text| definitions.string(text)));
    let mut kinds = Names::with_capacity(samples.len());
    for sample in &samples {
        let is_count = modes.get(&sample.generator) == Some(&InterruptGeneratorMode::COUNT);
        kinds.push(if is_count { "count" } else { "time" });
    }
    let callpaths = |get: fn(&Sample) -> CallPathId| {
        Arc::new(samples.iter().map(|sample| get(sample).known()).collect::<UInt32Array>())
    };
    let is_call = |sample: &Sample| {
        sample.recorded.is_some() && trace.regions.class(trace.tree.region(sample.recorded)).library().is_some()
    };
    let used = |get: fn(&Usage) -> u64| {
        Arc::new(UInt64Array::from_iter_values(samples.iter().map(|sample| get(&sample.usage))))
    };
    let seconds = |ticks: i64| ticks as f64 / trace.resolution as f64;
    let times = samples.iter().map(|sample| seconds(sample.time - begin));
    let system_times = samples.iter().map(|sample| sample.usage.system_time as f64 * 1e-6);
    Table::new(vec![
        ("time", Arc::new(Float64Array::from_iter_values(times))),
        ("location", Arc::new(UInt32Array::from_iter_values(samples.iter().map(|sample| sample.location.number())))),
        ("callpath", callpaths(|sample| sample.callpath)),
        ("recorded_callpath", callpaths(|sample| sample.recorded)),
        ("kind", kinds.finish()),
        ("in_call", Arc::new(samples.iter().map(|sample| Some(is_call(sample))).collect::<BooleanArray>())),
        ("weight", Arc::new(weights.collect::<Float64Array>())),
        ("user_only", Arc::new(is_user_only.collect::<BooleanArray>())),
        ("address", Arc::new(addresses.collect::<StringArray>())),
        ("line", Arc::new(samples.iter().map(|sample| lines.get(&sample.context).copied()).collect::<UInt32Array>())),
        ("system_time", Arc::new(Float64Array::from_iter_values(system_times))),
        ("minor_faults", used(|usage| usage.minor_faults)),
        ("major_faults", used(|usage| usage.major_faults)),
        ("voluntary_switches", used(|usage| usage.voluntary_switches)),
        ("involuntary_switches", used(|usage| usage.involuntary_switches)),
    ])
}

/// The line of each calling context that has one.
fn lines(definitions: &Definitions) -> BTreeMap<u32, u32> {
    let properties = definitions.calling_context_properties.iter();
    let named = properties.filter(|property| definitions.string(property.name) == LINE);
    named.filter_map(|property| Some((property.calling_context, u32::try_from(property.value.bits).ok()?))).collect()
}

/// How long each sampled call path ran in the focus.
pub(crate) fn profile(analysis: &Analysis) -> PyResult<Table> {
    let times: &[FunctionTime] = &analysis.result.functions.times;
    let number = |get: fn(&FunctionTime) -> u32| Arc::new(UInt32Array::from_iter_values(times.iter().map(get)));
    let ticks = |get: fn(&FunctionTime) -> f64| {
        let resolution = analysis.result.trace.resolution as f64;
        Arc::new(Float64Array::from_iter_values(times.iter().map(|time| get(time) / resolution)))
    };
    let counts =
        |get: fn(&Usage) -> u64| Arc::new(UInt64Array::from_iter_values(times.iter().map(|time| get(&time.usage))));
    let system_time =
        Arc::new(Float64Array::from_iter_values(times.iter().map(|time| time.usage.system_time as f64 * 1e-6)));
    Table::new(vec![
        ("location", number(|time| time.location.number())),
        ("recorded_callpath", number(|time| time.recorded.number())),
        ("callpath", Arc::new(times.iter().map(|time| time.callpath.known()).collect::<UInt32Array>())),
        ("time", ticks(|time| time.time as f64)),
        ("low", ticks(|time| time.low)),
        ("high", ticks(|time| time.high)),
        ("deviation", ticks(|time| time.variance.sqrt())),
        ("inclusive_deviation", ticks(|time| time.inclusive_variance.sqrt())),
        ("samples", Arc::new(UInt64Array::from_iter_values(times.iter().map(|time| time.samples)))),
        ("critical", ticks(|time| time.critical as f64)),
        ("inclusive_critical_deviation", ticks(|time| time.inclusive_critical_variance.sqrt())),
        ("unresolved", ticks(|time| time.unresolved as f64)),
        ("system_time", system_time),
        ("faults", counts(|usage| usage.minor_faults + usage.major_faults)),
        ("voluntary_switches", counts(|usage| usage.voluntary_switches)),
        ("involuntary_switches", counts(|usage| usage.involuntary_switches)),
        ("doubtful", Arc::new(times.iter().map(|time| Some(time.is_doubtful)).collect::<BooleanArray>())),
    ])
}

/// What sampled call paths cost others.
pub(crate) fn delay_functions(analysis: &Analysis) -> PyResult<Table> {
    let costs: &[FunctionCost] = &analysis.result.functions.costs;
    let number = |get: fn(&FunctionCost) -> u32| Arc::new(UInt32Array::from_iter_values(costs.iter().map(get)));
    let ticks = |get: fn(&FunctionCost) -> f64| {
        let resolution = analysis.result.trace.resolution as f64;
        Arc::new(Float64Array::from_iter_values(costs.iter().map(|cost| get(cost) / resolution)))
    };
    let counts = |get: fn(&FunctionCost) -> u64| Arc::new(UInt64Array::from_iter_values(costs.iter().map(get)));
    Table::new(vec![
        ("location", number(|cost| cost.location.number())),
        ("recorded_callpath", number(|cost| cost.recorded.number())),
        ("callpath", Arc::new(costs.iter().map(|cost| cost.callpath.known()).collect::<UInt32Array>())),
        ("cost", ticks(|cost| cost.cost)),
        ("deviation", ticks(|cost| cost.variance.sqrt())),
        ("inclusive_deviation", ticks(|cost| cost.inclusive_variance.sqrt())),
        ("samples", counts(|cost| cost.samples)),
        ("waiter_samples", counts(|cost| cost.waiter_samples)),
    ])
}
