//! What an analysis relies on, whatever the bytes of a trace were.

use whywait_otf2::{Attributes, Event, EventSink, Recording};

/// Checks the events of a location.
struct Check {
    /// Whether the region that was entered last is the first to be left.
    is_nested: bool,
    now: Option<i64>,
    open: Vec<u32>,
    events: u64,
}

impl Check {
    fn event(&mut self, time: i64) {
        assert!(self.now.is_none_or(|now| now <= time), "time goes back");
        self.now = Some(time);
        self.events += 1;
    }
}

impl EventSink for Check {
    fn enter(&mut self, time: i64, region: u32) {
        self.event(time);
        self.open.push(region);
    }

    fn leave(&mut self, time: i64, region: u32) {
        self.event(time);
        let at = self.open.iter().rposition(|open| *open == region).expect("a region is left that was entered");
        assert!(!self.is_nested || at + 1 == self.open.len(), "regions are nested");
        self.open.remove(at);
    }

    fn record(&mut self, time: i64, _: &Event<'_>, _: &Attributes<'_>) {
        self.event(time);
    }
}

/// Checks all events of a recording: times are in order, regions end, and there are as many as its definitions say.
pub(super) fn check(recording: &dyn Recording, is_nested: bool) {
    for location in &recording.definitions().locations {
        let mut check = Check { is_nested, now: None, open: Vec::new(), events: 0 };
        let events = recording.events(location.id).expect("a location that is defined");
        let summary = events.read(&mut Vec::new(), &mut check).expect("events are made in memory");
        assert!(check.open.is_empty(), "regions end");
        assert_eq!((summary.events, location.number_of_events), (check.events, check.events));
    }
}
