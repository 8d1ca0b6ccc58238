//! Which call launched a kernel: by the number of the call site in both, else by the name of the kernel in the stub
//! around the call, else by their order, where there is one stream only.

use std::hash::Hash;

use rustc_hash::FxHashMap;
use whywait_otf2::{Archive, Attributes, Event, EventSink};

use super::Span;
use crate::ids::{CallPathId, LocationId};
use crate::trace::{NONE, Trace};

/// The launch of each run, by its position, or [`NONE`]. Both are in the order of time.
pub(super) fn kernels(archive: &Archive, trace: &Trace, launches: &[Span], runs: &[Span]) -> Vec<u32> {
    let mut matched = vec![NONE; runs.len()];
    let mut free = vec![true; launches.len()];
    let sites = Sites::read(archive, trace, launches.iter().chain(runs));
    let by_site = |span: &Span| sites.of(span);
    pair(launches, runs, (&by_site, &by_site), &mut matched, &mut free);
    let name =
        |callpath: CallPathId| trace.regions.get(trace.tree.region(callpath)).map_or("", |region| region.name.as_str());
    let stub = |launch: &Span| {
        let parent = trace.tree.nodes()[launch.callpath].parent;
        trace.tree.nodes().get(parent.index()).and_then(|_| name(parent).strip_prefix("__device_stub__"))
    };
    pair(launches, runs, (&stub, &|run: &Span| Some(name(run.callpath))), &mut matched, &mut free);
    if runs.iter().all(|run| run.location == runs[0].location) {
        pair(launches, runs, (&|_: &Span| Some(()), &|_: &Span| Some(())), &mut matched, &mut free);
    }
    matched
}

/// What a launch, or a run, is paired by; none if it cannot be.
type Key<'a, K> = &'a dyn Fn(&Span) -> Option<K>;

/// Pairs the k-th launch of a key with the k-th run of it, of those that are free; no run starts before its launch.
fn pair<K: Eq + Hash>(
    launches: &[Span],
    runs: &[Span],
    (of_launch, of_run): (Key<'_, K>, Key<'_, K>),
    matched: &mut [u32],
    free: &mut [bool],
) {
    let mut waiting: FxHashMap<K, Vec<u32>> = FxHashMap::default();
    for (index, launch) in launches.iter().enumerate().rev() {
        if free[index]
            && let Some(key) = of_launch(launch)
        {
            waiting.entry(key).or_default().push(index as u32);
        }
    }
    for (run, matched) in runs.iter().zip(matched).filter(|(_, matched)| **matched == NONE) {
        let Some(queue) = of_run(run).and_then(|key| waiting.get_mut(&key)) else { continue };
        if let Some(launch) = queue.pop_if(|launch| launches[*launch as usize].enter <= run.enter) {
            *matched = launch;
            free[launch as usize] = false;
        }
    }
}

/// Numbers of call sites, which launches and kernels have as a parameter: by location and time.
struct Sites(FxHashMap<LocationId, Vec<(i64, u64)>>);

impl Sites {
    fn read<'a>(archive: &Archive, trace: &Trace, spans: impl Iterator<Item = &'a Span>) -> Self {
        let definitions = archive.definitions();
        let is_site = |name: u32| definitions.string(name) == "callsite id";
        let parameters: Vec<u32> =
            definitions.parameters.iter().filter(|parameter| is_site(parameter.name)).map(|one| one.id).collect();
        let mut sites = FxHashMap::default();
        if parameters.is_empty() {
            return Self(sites);
        }
        for span in spans {
            sites.entry(span.location).or_insert_with(|| {
                let mut reader = Reader { parameters: &parameters, found: Vec::new() };
                if let Ok(events) = archive.location(trace.definitions.locations[span.location].id) {
                    // What cannot be read ends them, as it ended the events.
                    let _ = events.read_events(&mut Vec::new(), &mut reader);
                }
                reader.found
            });
        }
        Self(sites)
    }

    /// The last number in a call.
    fn of(&self, span: &Span) -> Option<u64> {
        let own = self.0.get(&span.location)?;
        let last = own.partition_point(|(time, _)| *time <= span.leave).checked_sub(1)?;
        (own[last].0 >= span.enter).then_some(own[last].1)
    }
}

struct Reader<'a> {
    parameters: &'a [u32],
    found: Vec<(i64, u64)>,
}

impl EventSink for Reader<'_> {
    fn enter(&mut self, _: i64, _: u32) {}

    fn leave(&mut self, _: i64, _: u32) {}

    fn record(&mut self, time: i64, record: &Event<'_>, _: &Attributes<'_>) {
        if let Event::ParameterUnsignedInt { parameter, value } = *record
            && self.parameters.contains(&parameter)
        {
            self.found.push((time, value));
        }
    }
}
