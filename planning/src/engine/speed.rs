//! How fast an engine's kernels are.

use serde::Deserialize;

/// An engine's speed.
#[derive(Clone, Debug, Default, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct EngineSpeed {}
