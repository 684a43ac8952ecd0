//! What an engine allocates beside weights, keys and values.

use serde::Deserialize;

/// An engine's memory.
#[derive(Clone, Debug, Default, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct EngineMemory {}
