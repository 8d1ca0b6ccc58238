//! Threads of the host: what is on call paths, when, and what is recorded with it.

use rustc_hash::FxHashMap;
use whywait_devices::{Detail, Placed, Visit, Wide};

use crate::backward::Forward;
use crate::columns::{Category, Span};
use crate::names::{Meaning, Names};

/// A thread while its visits and launches are found.
pub(crate) struct Host<'a> {
    pub(crate) number: u32,
    pub(crate) spans: &'a [Span],
    pub(crate) placed: &'a [Placed],
    pub(crate) regions: &'a [u32],
    pub(crate) backward: &'a FxHashMap<u32, u32>,
    pub(crate) details: &'a FxHashMap<u32, Detail>,
    pub(crate) paths: &'a Forward,
}

impl Host<'_> {
    /// Its visits, in order.
    pub(crate) fn visits(&self, names: &Names, correlations: &[u64]) -> Vec<Visit> {
        let mut visits = Vec::with_capacity(self.placed.iter().filter(|part| part.is_kept).count());
        for (at, part) in (0..).zip(self.placed) {
            let (begin, end) = (part.begin, part.end);
            if let Some(path) = self.backward.get(&at) {
                let around = self.paths.path(*path);
                visits.extend(around.into_iter().map(|region| Visit { begin, end, region, detail: Detail::None }));
            }
            if !part.is_kept {
                continue;
            }
            let span = &self.spans[part.span as usize];
            let own = self.details.get(&at).copied();
            let detail = own.unwrap_or_else(|| match (span.category, names.meaning(span.name)) {
                (Category::Call | Category::DriverCall, _) if !part.is_rest => correlations
                    .get(span.detail as usize)
                    .map_or(Detail::None, |number| Detail::Correlation(Wide::new(*number))),
                (_, Meaning::Step(number)) => Detail::Step(Wide::new(number.cast_unsigned())),
                _ => Detail::None,
            });
            visits.push(Visit { begin, end, region: self.regions[at as usize], detail });
        }
        visits
    }
}
