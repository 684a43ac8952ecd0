//! What is chosen by name: descriptions, parameters, errors, and how a policy is built from them.
//! The list of the policies themselves is that of `eviction`.

mod any_policy;
mod config;
mod error;
mod given;
mod info;
mod list;
mod listed;
mod params;
mod spec;

pub use any_policy::AnyPolicy;
pub use config::{Config, NoConfig, read_config};
pub(crate) use config::{check_discount, share};
pub use error::PolicyError;
pub use given::GivenPolicy;
pub use hotset_names::{nearest, suggestion};
pub use info::{Info, Need, Needs, NoNeeds, Parameter, PolicyInfo};
pub(crate) use list::policies;
pub use listed::{Bound, Listed, Trained, Visitor};
pub use params::parse as parse_parameters;
