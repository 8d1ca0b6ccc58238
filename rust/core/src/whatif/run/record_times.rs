//! The times of the records of a simulated run (whatif.md#how-it-works).
//!
//! Every record lies between two consecutive Enters and Leaves, which the decoder counts; times alone are not enough,
//! since events of equal time may be separated. In a call, records written before the time in the library keep their
//! distance to the Enter, records written after it their distance to the Leave; elsewhere, times are interpolated
//! linearly.

use crate::whatif::changes::side::Side;

/// Measured and new times.
pub(in crate::whatif) struct Map<'a> {
    pub measured: &'a [i64],
    pub new: &'a [i64],
    /// Places between events: position of the next event, measured and new time.
    pub stops: Vec<(u32, i64, i64)>,
    /// Whether these are times of the location itself, so that its events can be counted.
    pub own: bool,
}

impl Map<'_> {
    /// New time of an event that is the last of this many. It precedes the stops behind it, also those of its time.
    pub(in crate::whatif) fn of_event(&self, count: usize, time: i64) -> i64 {
        match count.checked_sub(1).and_then(|last| self.new.get(last)) {
            Some(&new) if self.own => new,
            _ => self.new_time(count, time, Side::Both),
        }
    }

    /// New time of a record after this many events.
    pub(in crate::whatif) fn new_time(&self, behind: usize, time: i64, side: Side) -> i64 {
        let behind = if self.own { behind } else { self.measured.partition_point(|&event| event <= time) };
        let Some(last) = self.measured.len().checked_sub(1) else { return time };
        if behind == 0 {
            return self.new[0] - (self.measured[0] - time);
        }
        let from = self.stops.partition_point(|stop| (stop.0 as usize) < behind);
        let stops = self.stops[from..].iter().take_while(|stop| stop.0 as usize == behind);
        let (mut a, mut to_a) = (self.measured[behind - 1], self.new[behind - 1]);
        let mut side = side;
        for &(_, stop, to) in stops {
            if time == stop {
                return to;
            }
            if time < stop {
                return between((a, to_a), (stop, to), time);
            }
            (a, to_a, side) = (stop, to, Side::Both);
        }
        if behind > last {
            return to_a + (time - a);
        }
        let (b, to_b) = (self.measured[behind], self.new[behind]);
        match side {
            Side::Enter => (to_a + (time - a)).clamp(to_a, to_b),
            Side::Leave => (to_b - (b - time)).clamp(to_a, to_b),
            Side::Both => between((a, to_a), (b, to_b), time),
        }
    }
}

/// Linear interpolation between two points.
fn between((a, to_a): (i64, i64), (b, to_b): (i64, i64), time: i64) -> i64 {
    let share = |length: i64| (i128::from(time - a) * i128::from(length) / i128::from(b - a)) as i64;
    if b <= a { to_a } else { to_a + share(to_b - to_a) }
}
