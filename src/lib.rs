//! hotset: replay MoE router traces through a real expert cache and price every miss.
//!
//! The library is a facade. [`policies`] is what an engine links: [`policies::ExpertCache`] and
//! the policies behind it. [`traces`] reads and writes recorded routing, [`cost_models`] knows
//! links and formats, [`sim`] replays, [`experiments`] compares ways to
//! predict and to evict, [`planning`] fits models to machines, [`reports`] renders;
//! [`conform`] compares an engine's own decisions with a policy's, and [`scenario`] has unit tests
//! for its cache as data; `live` runs that cache on a GPU. [`host`] is the command line for programs.

// The command line's files call the libraries as any other program does.
extern crate self as hotset;

mod cli;
mod commands;
mod fault;
mod flags;
pub mod host;
mod input;
mod interrupt;
mod names;
mod output;
mod parse;
mod progress;
mod run;
mod session;
mod typed;

pub use hotset_conformance as conform;
pub use hotset_conformance::scenario;
pub use hotset_cost_models as cost_models;
pub use hotset_experiments as experiments;
#[cfg(feature = "cuda")]
pub use hotset_live as live;
pub use hotset_planning as planning;
pub use hotset_policies as policies;
pub use hotset_reports as reports;
pub use hotset_sim as sim;
pub use hotset_traces as traces;

/// The example of `docs/conform.md` is compiled and run as a test.
#[cfg(doctest)]
#[doc = include_str!("../docs/conform.md")]
struct ConformExample;

/// The example of `docs/embedding.md` likewise.
#[cfg(doctest)]
#[doc = include_str!("../docs/embedding.md")]
struct EmbeddingExample;
