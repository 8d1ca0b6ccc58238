//! Which call launched a kernel: by the number of the call site in both, else by the stream that the call names, else by
//! the name of the kernel in the stub around the call, else by their order, where there is one stream only.

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
    let said = Said::read(archive, trace, launches.iter().chain(runs));
    let site = |span: &Span| said.of(span, |said| said.site);
    pair(launches, runs, (&site, &site), &mut matched, &mut free);
    let asked = |launch: &Span| said.of(launch, |said| said.stream);
    let stream = |run: &Span| Some(trace.definitions.locations[run.location].id);
    pair(launches, runs, (&asked, &stream), &mut matched, &mut free);
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

/// What is said of launches and kernels beside their names: by location and time.
struct Said(FxHashMap<LocationId, Vec<(i64, Saying)>>);

#[derive(Clone, Copy, Default)]
struct Saying {
    /// Number of the call site, a parameter of both.
    site: Option<u64>,
    /// OTF2 id of the stream, an attribute of the launch.
    stream: Option<u64>,
}

impl Said {
    fn read<'a>(archive: &Archive, trace: &Trace, spans: impl Iterator<Item = &'a Span>) -> Self {
        let definitions = archive.definitions();
        let is_site = |name: u32| definitions.string(name) == "callsite id";
        let is_stream = |name: u32| matches!(definitions.string(name), "CUDA_STREAM_REF" | "HIP_STREAM_REF");
        let parameters: Vec<u32> =
            definitions.parameters.iter().filter(|parameter| is_site(parameter.name)).map(|one| one.id).collect();
        let attributes: Vec<u32> =
            definitions.attributes.iter().filter(|attribute| is_stream(attribute.name)).map(|one| one.id).collect();
        let mut said = FxHashMap::default();
        if parameters.is_empty() && attributes.is_empty() {
            return Self(said);
        }
        for span in spans {
            said.entry(span.location).or_insert_with(|| {
                let mut reader =
                    Reader { parameters: &parameters, attributes: &attributes, stream: None, found: Vec::new() };
                if let Ok(events) = archive.location(trace.definitions.locations[span.location].id) {
                    // What cannot be read ends them, as it ended the events.
                    let _ = events.read_events(&mut Vec::new(), &mut reader);
                }
                reader.found
            });
        }
        Self(said)
    }

    /// The last thing of a kind that is said in a call.
    fn of(&self, span: &Span, kind: impl Fn(&Saying) -> Option<u64>) -> Option<u64> {
        let own = self.0.get(&span.location)?;
        let end = own.partition_point(|(time, _)| *time <= span.leave);
        let mut inside = own[..end].iter().rev().take_while(|(time, _)| *time >= span.enter);
        inside.find_map(|(_, saying)| kind(saying))
    }
}

struct Reader<'a> {
    parameters: &'a [u32],
    attributes: &'a [u32],
    /// The stream that the next Enter names.
    stream: Option<u64>,
    found: Vec<(i64, Saying)>,
}

impl EventSink for Reader<'_> {
    fn enter(&mut self, time: i64, _: u32) {
        if let Some(stream) = self.stream.take() {
            self.found.push((time, Saying { stream: Some(stream), site: None }));
        }
    }

    fn leave(&mut self, _: i64, _: u32) {
        self.stream = None;
    }

    fn attributed(&mut self, attributes: &Attributes<'_>) {
        let named = attributes.into_iter().find(|named| self.attributes.contains(&named.id));
        self.stream = named.map(|named| named.value.bits);
    }

    fn record(&mut self, time: i64, record: &Event<'_>, _: &Attributes<'_>) {
        if let Event::ParameterUnsignedInt { parameter, value } = *record
            && self.parameters.contains(&parameter)
        {
            self.found.push((time, Saying { site: Some(value), stream: None }));
        }
    }
}
