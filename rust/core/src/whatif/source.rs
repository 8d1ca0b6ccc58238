//! Where the records of a run come from: an archive, or a simulated run that was not written.

use whywait_otf2::records::ClockProperties;
use whywait_otf2::{Archive, Attributes, Event, EventSink};

use super::stamps::Stamps;
use super::write::{Records, Rewriter};
use super::{Simulation, Simulator};
use crate::Result;
use crate::ids::LocationId;
use crate::trace::{Bounds, Trace};

/// Where the records of a run come from.
#[derive(Debug)]
pub enum Source<'a> {
    /// From its archive.
    Archive(&'a Archive),
    /// From another run, at new times.
    Simulated(Box<Simulated<'a>>),
}

/// A simulated run that was not written.
#[derive(Debug)]
pub struct Simulated<'a> {
    of: Source<'a>,
    simulator: &'a Simulator,
    simulation: &'a Simulation,
    trace: &'a Trace,
    hypotheses: &'a str,
    events: Vec<Vec<i64>>,
    stamps: Stamps,
}

impl<'a> Source<'a> {
    /// A simulated run; `trace` is the run before the change, `of` has its records, `hypotheses` says what was changed.
    pub fn simulated(
        of: Self,
        (simulator, simulation): (&'a Simulator, &'a Simulation),
        trace: &'a Trace,
        hypotheses: &'a str,
    ) -> Result<Self> {
        let events = simulator.events(trace, simulation);
        let stamps = Stamps::new(trace, &events)?;
        Ok(Self::Simulated(Box::new(Simulated { of, simulator, simulation, trace, hypotheses, events, stamps })))
    }

    /// The archive of the run that was measured.
    pub(super) fn archive(&self) -> &'a Archive {
        match self {
            Self::Archive(archive) => archive,
            Self::Simulated(run) => run.of.archive(),
        }
    }

    /// What was changed, change by change.
    pub(super) fn hypotheses(&self) -> Vec<&'a str> {
        match self {
            Self::Archive(_) => Vec::new(),
            Self::Simulated(run) => {
                let mut all = run.of.hypotheses();
                all.push(run.hypotheses);
                all
            }
        }
    }

    /// The clock properties of the run, if it has any.
    pub(super) fn clock(&self) -> Option<ClockProperties> {
        match self {
            Self::Archive(archive) => archive.definitions().clock_properties.first().cloned(),
            Self::Simulated(run) => {
                let mut clock = run.of.clock()?;
                run.simulation.set_clock(&mut clock);
                Some(clock)
            }
        }
    }

    /// Between which times its events can be.
    pub(super) fn bounds(&self, trace: &Trace) -> Bounds {
        match self {
            Self::Archive(archive) => Bounds::new(archive, &trace.definitions),
            Self::Simulated(run) => Bounds::of(self.clock().as_ref(), run.simulation.span.0),
        }
    }

    /// Sends the records of a location with this id to `sink`; those of a file that ends too early as far as it goes.
    pub(super) fn read(&self, location: LocationId, id: u64, sink: &mut dyn EventSink) -> Result<()> {
        match self {
            Self::Archive(archive) => match archive.location(id)?.read_events(&mut Vec::new(), sink) {
                Ok(_) | Err(whywait_otf2::Error::Malformed { .. }) => Ok(()),
                Err(error) => Err(error.into()),
            },
            Self::Simulated(run) => run.rewriter().location(location, &mut Forwarded(sink)),
        }
    }
}

impl Simulated<'_> {
    fn rewriter(&self) -> Rewriter<'_> {
        Rewriter::new((self.simulator, self.simulation), (self.trace, &self.of), &self.events, &self.stamps)
    }
}

/// Takes records as a reader would send them.
pub(super) struct Forwarded<'a>(pub &'a mut dyn EventSink);

impl Records for Forwarded<'_> {
    fn put(&mut self, time: i64, event: &Event<'_>, attributes: &Attributes<'_>) -> whywait_otf2::Result<()> {
        match *event {
            Event::Enter { region } => {
                self.0.attributed(attributes);
                self.0.enter(time, region);
            }
            Event::Leave { region } => {
                self.0.attributed(attributes);
                self.0.leave(time, region);
            }
            _ => self.0.record(time, event, attributes),
        }
        Ok(())
    }
}
