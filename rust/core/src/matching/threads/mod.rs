//! Threads of a process: whom they need.

pub(crate) mod lives;
pub(crate) mod locks;
pub(crate) mod rounds;
pub(crate) mod teams;
