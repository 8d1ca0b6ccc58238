//! Costs of waits between devices: the local chains of the two ranks are compared, not what two streams did.
//!
//! ```text
//!  q host     load, launch \
//!  q compute               [ gemm ]                            what delayed f: gemm, its launch, the host, ...
//!  q comm                          [ f  ]
//!  p comm                 [ e: waits | T ]                      what delayed e: likewise, on rank p
//! ```
//!
//! The *local chain* of a kernel walks backwards through what delayed its begin ([`places`], [`links`]) and never leaves the rank:
//! another kernel that communicates contributes its transfer, and its wait as a wait. The chains of e and f are compared back to the
//! latest operation that both pass and that ties the two ([`division`]): what happened on each since then ([`profile`]). The
//! equations are those of [`super`], with these two parts as intervals; propagation goes to the waits on q's part ([`booking`], for
//! single waits [`single`]): those of kernels, and of the host in MPI, which the other passes over intervals goes on with.
//!
//! *Source*: specification.md#device-collectives.

mod booking;
mod division;
mod links;
mod places;
mod profile;
mod segments;
mod single;

pub(crate) use booking::Booked;
pub(crate) use division::Chains;
pub(crate) use profile::Profiles;
pub(super) use single::row_of;
