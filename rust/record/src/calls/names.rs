//! Names that the program gives to what it made.

use crate::context::Context;
use crate::format::Entry;
use crate::spool::Payload;
use crate::table::Role;
use crate::{real, state};

/// Second half of a call that names something.
pub(super) fn name(context: &mut Context, what: u32, id: Option<u32>) {
    if let Some(id) = id.filter(|_| context.code == 0) {
        let text = real::text(context.word(Role::Text));
        state::define(Entry::Name, &Payload::default().u32(what).u32(id).text(text));
    }
    context.leave(0, 0, 0, 0);
}
