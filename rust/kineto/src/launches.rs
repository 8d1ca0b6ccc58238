//! Which call launched each work, and from where.

use rustc_hash::FxHashMap;
use whywait_devices::{Contexts, Kind, NONE};

use crate::columns::{Category, Record};
use crate::names::{Meaning, Names};
use crate::thread::Host;

/// What launched a work.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Launch {
    pub(crate) begin: i64,
    pub(crate) thread: u32,
    /// The call path of the launching call, without the call.
    pub(crate) context: u32,
    /// What describes the communication call around it.
    pub(crate) record: u32,
    /// The kind of the operation around it, by its annotation.
    pub(crate) kind: Option<Kind>,
    /// Whether it is within a barrier.
    pub(crate) in_barrier: bool,
    /// Of several calls with one number, the most likely is taken.
    likelihood: u8,
}

/// Finds what launched each work, and from where.
pub(crate) struct Launcher<'a> {
    pub(crate) names: &'a Names,
    pub(crate) correlations: &'a [u64],
    pub(crate) records: &'a [Record],
    pub(crate) launches: Vec<Launch>,
    /// The launch of each work, by their common number.
    pub(crate) by_correlation: FxHashMap<u64, u32>,
    pub(crate) contexts: Contexts,
}

impl Launcher<'_> {
    /// Finds those of a thread.
    pub(crate) fn find(&mut self, host: &Host<'_>) {
        let mut known = vec![NONE; host.placed.len()];
        let has_ops = host.spans.iter().any(|span| span.category == Category::Op);
        for (at, part) in (0..).zip(host.placed) {
            let span = &host.spans[part.span as usize];
            if !matches!(span.category, Category::Call | Category::DriverCall) || part.is_rest {
                continue;
            }
            let Some(number) = self.correlations.get(span.detail as usize) else { continue };
            let Some(place) = self.by_correlation.get(number).copied() else { continue };
            let likelihood = u8::from(span.category == Category::Call) + 2 * u8::from(has_ops);
            if self.launches.get(place as usize).is_some_and(|launch| launch.likelihood >= likelihood) {
                continue;
            }
            let context = self.context(host, part.parent, &mut known);
            let (record, kind, in_barrier) = self.around(host, at);
            let (begin, thread) = (part.begin, host.number);
            let launch = Launch { begin, thread, context, record, kind, in_barrier, likelihood };
            if let Some(other) = self.launches.get_mut(place as usize) {
                *other = launch;
            } else {
                self.by_correlation.insert(*number, self.launches.len() as u32);
                self.launches.push(launch);
            }
        }
    }

    /// The call path of a place.
    fn context(&mut self, host: &Host<'_>, place: u32, known: &mut [u32]) -> u32 {
        let mut chain = Vec::new();
        let mut at = place;
        let mut context = NONE;
        while let Some(part) = host.placed.get(at as usize) {
            if known[at as usize] != NONE {
                context = known[at as usize];
                break;
            }
            chain.push(at);
            at = part.parent;
        }
        for at in chain.into_iter().rev() {
            if let Some(path) = host.backward.get(&at) {
                for region in host.paths.path(*path) {
                    context = self.contexts.node(context, region);
                }
            }
            if host.placed[at as usize].is_kept {
                context = self.contexts.node(context, host.regions[at as usize]);
            }
            known[at as usize] = context;
        }
        context
    }

    /// What is known of communication around a launch.
    fn around(&self, host: &Host<'_>, place: u32) -> (u32, Option<Kind>, bool) {
        let (mut record, mut kind, mut in_barrier) = (NONE, None, false);
        let mut at = place;
        while let Some(part) = host.placed.get(at as usize) {
            let span = &host.spans[part.span as usize];
            let name = self.names.get(span.name);
            match self.names.meaning(span.name) {
                Meaning::Communication if record == NONE && (span.detail as usize) < self.records.len() => {
                    record = span.detail;
                }
                Meaning::DeviceOperation if kind.is_none() => {
                    kind = name.split_once(':').and_then(|(_, name)| Kind::of_operation(name));
                }
                Meaning::Issue => in_barrier |= name == "c10d::barrier",
                _ => {}
            }
            at = part.parent;
        }
        (record, kind, in_barrier)
    }
}
