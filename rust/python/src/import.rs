//! Merges counters that were recorded in separate files into a trace.

use std::path::PathBuf;

use pyo3::prelude::*;
use whywait_otf2::Definitions;
use whywait_otf2::enums::{
    Base, LocationType, MetricMode, MetricOccurrence, MetricScope, MetricType, RecorderKind, Type,
};
use whywait_otf2::records::{Definition, Location, MetricClass, MetricInstance, MetricMember, Text, TypedValue};
use whywait_otf2::writer::{SampledLocation, WriteOptions, copy_and_add};

use crate::errors::{UsageError, archive_error};
use crate::job::detached;
use crate::run::Run;

/// Members of a metric class: a record stores their number in a byte.
const MEMBERS: usize = 200;

/// An integer counter: name, unit, OTF2 mode and decimal exponent.
#[derive(FromPyObject)]
#[pyo3(from_item_all)]
pub(crate) struct Imported {
    name: String,
    unit: String,
    mode: u8,
    exponent: i64,
}

/// The samples of a process: its location group, and times (ticks) with one value per counter.
#[derive(FromPyObject)]
#[pyo3(from_item_all)]
pub(crate) struct Samples {
    group: u32,
    times: Vec<i64>,
    values: Vec<Vec<i64>>,
}

/// The first unused ids.
struct FreeIds {
    text: u32,
    member: u32,
    metric: u32,
    location: u64,
}

impl FreeIds {
    fn new(definitions: &Definitions) -> Self {
        let behind = |ids: &mut dyn Iterator<Item = u32>| ids.max().map_or(0, |last| last.saturating_add(1));
        let classes = definitions.metric_classes.iter().map(|class| class.id);
        Self {
            text: behind(&mut definitions.strings.iter().map(|text| text.id)),
            member: behind(&mut definitions.metric_members.iter().map(|member| member.id)),
            metric: behind(&mut classes.chain(definitions.metric_instances.iter().map(|instance| instance.id))),
            location: definitions.locations.iter().map(|one| one.id).max().map_or(0, |last| last.saturating_add(1)),
        }
    }
}

/// Writes a copy of an archive with additional counters of its processes, each process at its own metric location.
#[pyfunction]
pub(crate) fn import_counters(
    py: Python<'_>,
    run: &Bound<'_, Run>,
    destination: PathBuf,
    label: String,
    counters: Vec<Imported>,
    samples: Vec<Samples>,
) -> PyResult<()> {
    let whole =
        |of: &Samples| of.times.len() == of.values.len() && of.values.iter().all(|row| row.len() == counters.len());
    if !samples.iter().all(whole) {
        return Err(UsageError::new_err("each counter needs one value per time"));
    }
    let archive = run.get().archive()?.clone();
    let write = move || {
        let (further, recordings) = additions(archive.definitions(), &label, &counters, &samples);
        copy_and_add(&archive, &destination, WriteOptions::default(), further, &recordings)
    };
    detached(py, write)?.map(|_| ()).map_err(archive_error)
}

fn additions(
    definitions: &Definitions,
    label: &str,
    counters: &[Imported],
    samples: &[Samples],
) -> (Vec<Definition>, Vec<SampledLocation>) {
    let mut free = FreeIds::new(definitions);
    let mut further: Vec<Definition> = Vec::new();
    let mut text = |further: &mut Vec<Definition>, string: &str| {
        further.push(Text { id: free.text, string: string.to_owned() }.into());
        free.text += 1;
        free.text - 1
    };
    let none = text(&mut further, "");
    let location_name = text(&mut further, label);
    let mut members = Vec::with_capacity(counters.len());
    for counter in counters {
        let [name, unit] = [&counter.name, &counter.unit].map(|string| text(&mut further, string));
        members.push(free.member);
        further.push(
            MetricMember {
                id: free.member,
                name,
                description: none,
                metric_type: MetricType::OTHER,
                metric_mode: MetricMode(counter.mode),
                value_type: Type::INT64,
                base: Base::DECIMAL,
                exponent: counter.exponent,
                unit,
            }
            .into(),
        );
        free.member += 1;
    }
    let classes: Vec<u32> = (free.metric..).take(members.len().div_ceil(MEMBERS)).collect();
    for (&id, members) in classes.iter().zip(members.chunks(MEMBERS)) {
        further.push(
            MetricClass {
                id,
                metric_members: members.to_vec(),
                metric_occurrence: MetricOccurrence::ASYNCHRONOUS,
                recorder_kind: RecorderKind::ABSTRACT,
            }
            .into(),
        );
    }
    let mut instances = free.metric + classes.len() as u32..;
    let mut recordings = Vec::with_capacity(samples.len());
    for of in samples {
        further.push(
            Location {
                id: free.location,
                name: location_name,
                location_type: LocationType::METRIC,
                number_of_events: 0,
                location_group: of.group,
            }
            .into(),
        );
        let own: Vec<u32> = instances.by_ref().take(classes.len()).collect();
        for (&metric_class, &id) in classes.iter().zip(&own) {
            further.push(
                MetricInstance {
                    id,
                    metric_class,
                    recorder: free.location,
                    metric_scope: MetricScope::LOCATION_GROUP,
                    scope: u64::from(of.group),
                }
                .into(),
            );
        }
        let typed =
            |row: &[i64]| row.iter().map(|&value| TypedValue { kind: Type::INT64, bits: value as u64 }).collect();
        let mut records = Vec::with_capacity(of.times.len() * own.len());
        for (&time, row) in of.times.iter().zip(&of.values) {
            let parts = own.iter().zip(row.chunks(MEMBERS));
            records.extend(parts.map(|(&metric, values)| (time.max(0) as u64, metric, typed(values))));
        }
        recordings.push(SampledLocation { location: free.location, samples: records });
        free.location += 1;
    }
    (further, recordings)
}
