//! What the events say about the reasons of lost time, for the rules of findings.
//!
//! | question | file |
//! |---|---|
//! | Do calls take long while other locations of the node compute? | [`crowding`] |
//! | Do the same calls and functions take longer in one process, or on one node? | [`slow_places`] |
//! | Do sends take until their receiver calls the library? | [`rendezvous`] |
//! | Do requests take as long as without the computation that should hide them? | [`overlap`] |
//! | Could messages or collective operations be combined? | [`bursts`] |
//! | Do threads queue for a lock? | [`convoys`] |
//! | Do barriers order anything? | [`barriers`] |
//! | Does own code take longer now on one location and now on another? | [`turns`] |
//!
//! All of them look at the calls in the focus: [`calls`].
//!
//! Several processes ask each other about the partners of a call, and about locations of a node that they share; the first
//! one has what is found.
//!
//! *Source*: findings.md.

mod barriers;
mod bursts;
mod calls;
mod convoys;
mod crowding;
mod overlap;
mod rendezvous;
mod slow_places;
mod turns;

use crate::Result;
use crate::matching::threads::locks::ThreadLock;

pub use barriers::NeedlessBarriers;
pub use bursts::{Combinable, Repeated};
pub use convoys::Convoy;
pub use crowding::Crowded;
pub use overlap::Unprogressed;
pub use rendezvous::HeldUp;
pub use slow_places::SlowPlace;
pub use turns::Turns;

pub(super) use calls::{Calls, innermost};

/// What speaks for one reason or another.
#[derive(Clone, Debug, Default)]
pub struct Reasons {
    /// Nodes on which calls take long while other locations compute.
    pub crowded: Vec<Crowded>,
    /// Processes and nodes that need longer for the same calls and functions.
    pub slow_places: Vec<SlowPlace>,
    /// Calls that send, by call path, and how long they are held up by receivers that do not call the library.
    pub held_up: Vec<HeldUp>,
    /// Calls that complete requests, by call path, and how long transfers take that had enough time before.
    pub unprogressed: Vec<Unprogressed>,
    /// Calls that send, by call path, and how many of their messages could be combined.
    pub combinable: Vec<Combinable>,
    /// Collective operations that follow at once on another of their kind, by call path.
    pub repeated: Vec<Repeated>,
    /// Locks of threads, by the call path that waits for them.
    pub convoys: Vec<Convoy>,
    /// Barriers that order nothing visible, by call path.
    pub barriers: Vec<NeedlessBarriers>,
    /// Own code whose pieces can be compared, by call path.
    pub turns: Vec<Turns>,
}

impl Reasons {
    /// Looks for all of them in the focus.
    pub(super) fn find(calls: &Calls<'_>, locks: &[Vec<Vec<ThreadLock>>]) -> Result<Self> {
        if calls.focus.is_empty() {
            return Ok(Self::default());
        }
        let (combinable, repeated) = bursts::find(calls)?;
        Ok(Self {
            crowded: crowding::find(calls)?,
            slow_places: slow_places::find(calls)?,
            held_up: rendezvous::find(calls)?,
            unprogressed: overlap::find(calls)?,
            combinable,
            repeated,
            convoys: convoys::find(calls, locks)?,
            barriers: barriers::find(calls)?,
            turns: turns::find(calls)?,
        })
    }
}
