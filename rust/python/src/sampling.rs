//! Samples of the call path, as tables.

use std::collections::BTreeMap;

use pyo3::prelude::*;
use whywait_core::sampling::{FunctionTime, Sample, of_user_time, periods};
use whywait_otf2::Definitions;
use whywait_otf2::enums::InterruptGeneratorMode;

use crate::analysis::Analysis;
use crate::arrow::Table;
use crate::rows::Rows;

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
    let user_only = of_user_time(trace);
    let is_call = |sample: &Sample| {
        sample.recorded.is_some() && trace.regions.class(trace.tree.region(sample.recorded)).library().is_some()
    };
    let is_count = |sample: &Sample| modes.get(&sample.generator) == Some(&InterruptGeneratorMode::COUNT);
    let weight = |sample: &Sample| Some(periods.get(&sample.generator)? / trace.resolution as f64);
    Rows::of(&samples)
        .column("time", |sample| analysis.seconds(sample.time - begin))
        .column("location", |sample| sample.location.number())
        .column("callpath", |sample| sample.callpath.known())
        .column("recorded_callpath", |sample| sample.recorded.known())
        .names("kind", |sample| if is_count(sample) { "count" } else { "time" })
        .column("in_call", is_call)
        .column("weight", weight)
        .column("user_only", |sample| user_only.contains(&trace.definitions.locations[sample.location].id))
        .column("address", |sample| sample.address.map(|text| definitions.string(text)))
        .column("line", |sample| lines.get(&sample.context).copied())
        .column("system_time", |sample| sample.usage.system_time as f64 * 1e-6)
        .column("minor_faults", |sample| sample.usage.minor_faults)
        .column("major_faults", |sample| sample.usage.major_faults)
        .column("voluntary_switches", |sample| sample.usage.voluntary_switches)
        .column("involuntary_switches", |sample| sample.usage.involuntary_switches)
        .finish()
}

/// The line of each calling context that has one.
fn lines(definitions: &Definitions) -> BTreeMap<u32, u32> {
    let properties = definitions.calling_context_properties.iter();
    let named = properties.filter(|property| definitions.string(property.name) == LINE);
    named.filter_map(|property| Some((property.calling_context, u32::try_from(property.value.bits).ok()?))).collect()
}

/// How long each sampled call path ran in the focus.
pub(crate) fn profile(analysis: &Analysis) -> PyResult<Table> {
    let resolution = analysis.result.trace.resolution as f64;
    Rows::of(&analysis.result.functions.times)
        .column("location", |time| time.location.number())
        .column("recorded_callpath", |time| time.recorded.number())
        .column("callpath", |time| time.callpath.known())
        .column("time", |time| analysis.seconds(time.time))
        .column("low", |time| time.low / resolution)
        .column("high", |time| time.high / resolution)
        .column("deviation", |time| time.variance.sqrt() / resolution)
        .column("inclusive_deviation", |time| time.inclusive_variance.sqrt() / resolution)
        .column("samples", |time| time.samples)
        .column("critical", |time| analysis.seconds(time.critical))
        .column("inclusive_critical_deviation", |time| time.inclusive_critical_variance.sqrt() / resolution)
        .column("unresolved", |time| analysis.seconds(time.unresolved))
        .column("system_time", |time| time.usage.system_time as f64 * 1e-6)
        .column("faults", |time| time.usage.minor_faults + time.usage.major_faults)
        .column("voluntary_switches", |time| time.usage.voluntary_switches)
        .column("involuntary_switches", |time| time.usage.involuntary_switches)
        .column("doubtful", |time| time.is_doubtful)
        .finish()
}

/// What sampled call paths cost others.
pub(crate) fn delay_functions(analysis: &Analysis) -> PyResult<Table> {
    let resolution = analysis.result.trace.resolution as f64;
    Rows::of(&analysis.result.functions.costs)
        .column("location", |cost| cost.location.number())
        .column("recorded_callpath", |cost| cost.recorded.number())
        .column("callpath", |cost| cost.callpath.known())
        .column("cost", |cost| cost.cost / resolution)
        .column("deviation", |cost| cost.variance.sqrt() / resolution)
        .column("inclusive_deviation", |cost| cost.inclusive_variance.sqrt() / resolution)
        .column("samples", |cost| cost.samples)
        .column("waiter_samples", |cost| cost.waiter_samples)
        .finish()
}
