//! What samples of the call path say about the computation between events (docs/specification.md#samples-of-the-call-path).
//!
//! ```text
//!  samples --paths--> recorded and sampled call paths --strata--> pools of like intervals --profile--> times of functions
//!                                                                                         --costs----> costs of functions
//! ```

mod costs;
mod faults;
mod functions;
mod paths;
mod profile;
mod rows;
mod strata;

pub use costs::FunctionCost;
pub(crate) use costs::find as costs;
pub use functions::Functions;
pub use paths::{Placed, Sampling};
pub use profile::FunctionTime;
pub(crate) use profile::find as profile;
pub use rows::Sample;
pub(crate) use strata::divided;
pub use strata::{of_user_time, periods};
