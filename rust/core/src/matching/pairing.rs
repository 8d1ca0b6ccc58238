//! Pairs of launches and runs that are alike: of one stream, one call site, or one kernel.
//!
//! A run can belong to a launch that was entered before it began, but not to one whose work a call had awaited that
//! returned before the run began. As many as possible are paired, in their order. Those that remain are the earliest
//! launches and the latest runs that can: a kernel that was lost then shifts no other one.
//!
//! *Source*: accelerators.md#who-launched-what.

use std::collections::BinaryHeap;

use crate::ids::NONE;

/// When a run began, and since when its stream has not been awaited.
#[derive(Clone, Copy, Debug)]
pub(super) struct Begun {
    /// Its begin, ticks.
    pub begin: i64,
    /// Launches before this time had ended, ticks.
    pub floor: i64,
}

/// The position of each run's launch, or [`NONE`]. Launches, by their Enters, and runs are in order of time.
pub(super) fn pair(launches: &[i64], runs: &[Begun]) -> Vec<u32> {
    let chosen = assign(launches, runs, |begin| -begin);
    let mut of_launches: Vec<u32> = chosen.iter().copied().filter(|&launch| launch != NONE).collect();
    of_launches.sort_unstable();
    let of_runs: Vec<u32> = (0..).zip(&chosen).filter(|(_, launch)| **launch != NONE).map(|(run, _)| run).collect();
    let enters: Vec<i64> = of_launches.iter().map(|&launch| launches[launch as usize]).collect();
    let begun: Vec<Begun> = of_runs.iter().map(|&run| runs[run as usize]).collect();
    let mut launch = vec![NONE; runs.len()];
    for (run, found) in of_runs.into_iter().zip(assign(&enters, &begun, |begin| begin)) {
        launch[run as usize] = of_launches.get(found as usize).copied().unwrap_or(NONE);
    }
    launch
}

/// Gives each launch, from the last to the first, the run with the highest floor; of equal ones that with the highest
/// preference, which follows from the begin.
fn assign(launches: &[i64], runs: &[Begun], preference: impl Fn(i64) -> i64) -> Vec<u32> {
    let mut launch = vec![NONE; runs.len()];
    let mut open: BinaryHeap<(i64, i64, u32)> = BinaryHeap::new();
    let mut rest = runs.len();
    for (number, &enter) in launches.iter().enumerate().rev() {
        while rest > 0 && runs[rest - 1].begin >= enter {
            rest -= 1;
            let Begun { begin, floor } = runs[rest];
            open.push((floor, preference(begin), rest as u32));
        }
        // Runs above the launch can belong to no earlier one either.
        while open.peek().is_some_and(|&(floor, ..)| floor > enter) {
            open.pop();
        }
        if let Some((.., run)) = open.pop() {
            launch[run as usize] = number as u32;
        }
    }
    launch
}

#[cfg(test)]
mod tests {
    use super::*;

    fn paired(launches: &[i64], runs: &[(i64, i64)]) -> Vec<Option<u32>> {
        let runs: Vec<Begun> = runs.iter().map(|&(begin, floor)| Begun { begin, floor }).collect();
        pair(launches, &runs).into_iter().map(|launch| (launch != NONE).then_some(launch)).collect()
    }

    #[test]
    fn in_order() {
        assert_eq!(paired(&[1, 2, 3], &[(5, 0), (6, 0), (7, 0)]), [Some(0), Some(1), Some(2)]);
        assert_eq!(paired(&[1, 2], &[(5, 2), (6, 0)]), [Some(1), Some(0)]);
    }

    #[test]
    fn a_lost_kernel_shifts_no_other() {
        assert_eq!(paired(&[1, 3, 5, 7], &[(2, 0), (6, 0), (8, 0)]), [Some(0), Some(2), Some(3)]);
        assert_eq!(paired(&[1, 3, 5], &[(2, 0), (4, 2), (4, 4), (6, 4)]), [Some(0), Some(1), None, Some(2)]);
    }

    #[test]
    fn a_lost_launch_shifts_no_other() {
        assert_eq!(paired(&[1, 5], &[(2, 0), (4, 0), (6, 0)]), [Some(0), None, Some(1)]);
        assert_eq!(paired(&[], &[(2, 0)]), [None]);
    }

    #[test]
    fn what_was_awaited_has_ended() {
        assert_eq!(paired(&[1, 3], &[(4, 2)]), [Some(1)]);
        assert_eq!(paired(&[1], &[(4, 2)]), [None]);
    }
}
