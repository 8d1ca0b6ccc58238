//! The clocks of reports: when each session began on a clock that those of its node have in common.

use std::collections::BTreeMap;

use crate::report::{Clock, Report};

/// UTC of two sessions of one node may differ from their distance on its clock by this much, ns: beyond, it is another machine.
const FURTHEST: i64 = 1_000_000_000;

/// When sessions began, and what is known about it.
#[derive(Debug, Default, PartialEq, Eq)]
pub(crate) struct Begins {
    /// For each report the time that its times count from.
    pub(crate) bases: Vec<i64>,
    /// For each report its clock.
    pub(crate) clocks: Vec<u32>,
    /// For each report the machine whose time its times are of; one by itself if nothing says when it began.
    pub(crate) machines: Vec<u32>,
    /// How they were found, in words.
    pub(crate) how: &'static str,
    /// Whether the clocks of several sessions of one node may differ.
    pub(crate) are_separate: bool,
    /// Reports that are said to be of one node but are of different ones, or of different times.
    pub(crate) strangers: Vec<usize>,
}

/// Relates the sessions of reports to each other.
pub(crate) fn begins(reports: &[Report]) -> Begins {
    let machine = |report: &Report| report.hardware.clone().or_else(|| report.host.clone()).unwrap_or_default();
    of_clocks(&reports.iter().map(|report| (machine(report), report.clock)).collect::<Vec<_>>())
}

fn of_clocks(clocks: &[(String, Clock)]) -> Begins {
    let mut begins = Begins { how: "UTC of each session", ..Begins::default() };
    if clocks.iter().any(|(_, clock)| clock.is_normalized) {
        begins.how = "normalized by nsys";
    }
    // The first session of each machine: by its clock, so that the order of files does not matter.
    let mut first: BTreeMap<&str, (i64, i64)> = BTreeMap::new();
    let mut sessions: BTreeMap<&str, usize> = BTreeMap::new();
    for (machine, clock) in clocks.iter().filter(|(_, clock)| !clock.is_normalized) {
        *sessions.entry(machine).or_default() += 1;
        if let (Some(system), Some(utc)) = (clock.system, clock.utc) {
            let known = first.entry(machine).or_insert((system, utc));
            *known = (*known).min((system, utc));
        }
    }
    // Each machine has a clock, and each session that nothing relates to others of its machine has one.
    let mut known: BTreeMap<(&str, Option<usize>), u32> = BTreeMap::new();
    let mut machines = BTreeMap::new();
    for (place, (machine, clock)) in clocks.iter().enumerate() {
        let mut is_separate = false;
        let utc = clock.utc.unwrap_or(0);
        let base = match (clock.system, first.get(machine.as_str())) {
            _ if clock.is_normalized => 0,
            (Some(system), Some((first, anchor))) => {
                let base = anchor.saturating_add(system.saturating_sub(*first));
                if base.saturating_sub(utc).saturating_abs() > FURTHEST {
                    begins.strangers.push(place);
                    is_separate = true;
                    utc
                } else {
                    begins.how = "the clock of each node (systemClockNs)";
                    base
                }
            }
            _ => {
                is_separate = sessions.get(machine.as_str()).is_some_and(|count| *count > 1);
                utc
            }
        };
        begins.bases.push(base);
        let next = known.len() as u32;
        let own = is_separate.then_some(place);
        begins.clocks.push(*known.entry((machine.as_str(), own)).or_insert(next));
        begins.are_separate |= is_separate;
        let has_time = clock.is_normalized || clock.utc.is_some();
        let alone = (!has_time || begins.strangers.last() == Some(&place)).then_some(place);
        let next = machines.len() as u32;
        begins.machines.push(*machines.entry((machine.as_str(), alone)).or_insert(next));
    }
    begins
}

#[cfg(test)]
mod tests {
    use super::*;

    fn clock(machine: &str, utc: i64, system: Option<i64>) -> (String, Clock) {
        (machine.to_owned(), Clock { utc: Some(utc), system, is_normalized: false })
    }

    #[test]
    fn sessions_of_one_machine_are_as_far_apart_as_on_its_clock() {
        let clocks =
            [clock("a", 5_001_000, Some(1000)), clock("a", 5_000_000, Some(500)), clock("b", 5_000_000, Some(7))];
        let found = of_clocks(&clocks);
        assert_eq!((found.bases, found.are_separate), (vec![5_000_500, 5_000_000, 5_000_000], false));
        assert_eq!(found.clocks, [0, 0, 1]);
    }

    #[test]
    fn sessions_that_cannot_be_of_one_machine_are_apart() {
        let far = [clock("a", 0, Some(0)), clock("a", 5, Some(2 * FURTHEST))];
        let found = of_clocks(&far);
        assert_eq!((found.bases, found.strangers, found.are_separate), (vec![0, 5], vec![1], true));
        let old = of_clocks(&[clock("a", 10, None), clock("a", 25, None)]);
        assert_eq!((old.bases, old.are_separate, old.how), (vec![10, 25], true, "UTC of each session"));
        assert_eq!((old.clocks, old.machines, found.machines), (vec![0, 1], vec![0, 0], vec![0, 1]));
        assert!(!of_clocks(&[clock("a", 10, None)]).are_separate);
    }
}
