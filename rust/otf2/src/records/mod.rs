//! Records as typed values. One table for each family declares number, name and fields of every record; struct or enum
//! variant, decoder, encoder, id translation and field visitor all come from it.

mod attributes;
mod codec;
mod definitions;
mod events;
mod old;
mod value;

pub use crate::idmap::IdPairs;
pub use attributes::{AttributeValue, Attributes, AttributesIter};
pub use definitions::*;
pub use events::{Event, EventSink};
pub use value::{List, ListIter, MetricValues, StringRefs, TypedValue, Value};

pub(crate) use attributes::{ATTRIBUTE_LIST, TIMESTAMP, TIMESTAMP_SIZE};
pub(crate) use codec::{Id, Record, Translator};
pub(crate) use events::{ENTER, LEAVE, SAMPLE};
