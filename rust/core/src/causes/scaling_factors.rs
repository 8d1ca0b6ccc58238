//! Scaling factors: the share of each tick of delay, of work and of waiting in the wait that is distributed over them.
//!
//! *Synchronization*: `D(c) = [d_q(c) − d_p(c)]+`, `D = Σ D(c)`, `W` = waits of the causing process in its interval:
//! each tick of delay and each tick of waiting gets `1 / (D + W)` of what is distributed (equations 4.2, 4.9 to 4.13).
//!
//! *Contention*: `r = min(W / ω, 1)`, `r = 1` if `d+ < d−`: each tick of waiting gets `r / W`, each tick of the
//! interval, whatever the waiter did, `(1 − r) / d+` (equations 4.14 to 4.17).

use super::cost_model::CostModel;
use crate::schema::Class;

/// The rates at which a wait is distributed.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Rates {
    /// What is distributed directly, ticks.
    pub direct: i64,
    /// Share of each tick of delay in what is distributed.
    pub work: f64,
    /// Share of each tick of waiting in what is distributed.
    pub wait: f64,
    /// The delays and waits that get shares, ticks.
    pub explained: i64,
}

impl Rates {
    /// A wait for a process that was late (equations 4.9, 4.10).
    pub(super) fn of_synchronization(waiting: i64, delay: i64, waited: i64, class: Class, model: CostModel) -> Self {
        let explained = delay + waited;
        if explained == 0 {
            return Self { direct: waiting, ..Self::default() };
        }
        let rate = 1.0 / explained as f64;
        // Scalasca 2.6 never charges more for a message than the delay explains.
        let is_capped = model == CostModel::Scalasca && class.is_message();
        let direct = if is_capped { waiting.min(explained) } else { waiting };
        Self { direct, work: rate, wait: rate, explained }.bounded(model)
    }

    /// A wait for the end of what another process did (equations 4.14 to 4.17). That process `worked` and `waited` in
    /// its interval, the waiter `waiter_worked` in its own.
    pub(super) fn of_contention(waiting: i64, worked: i64, waited: i64, waiter_worked: i64, model: CostModel) -> Self {
        // Without its waits the causing process would have been in time.
        let is_quick = worked == 0 || worked < waiter_worked;
        let share = if is_quick { 1.0 } else { (waited as f64 / waiting as f64).min(1.0) };
        let work = if is_quick { 0.0 } else { (1.0 - share) / worked as f64 };
        let wait = if waited > 0 { share / waited as f64 } else { 0.0 };
        let explained = waited + if work > 0.0 { worked } else { 0 };
        Self { direct: waiting, work, wait, explained }.bounded(model)
    }

    /// No tick is charged for more than one.
    fn bounded(mut self, model: CostModel) -> Self {
        if model == CostModel::Bounded && self.explained < self.direct {
            let most = 1.0 / self.direct as f64;
            (self.work, self.wait) = (self.work.min(most), self.wait.min(most));
        }
        self
    }
}
