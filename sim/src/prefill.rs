//! How an engine serves prefill from, or past, the cache that decode uses.

use std::str::FromStr;

use hotset_policies::Slots;
use hotset_traces::Shape;
use serde::{Deserialize, Serialize};

use crate::SimError;

/// What a prefill step does with the cache.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Prefill {
    /// As decode does: misses are fetched and admitted.
    #[default]
    OnDemand,
    /// Residents are used but not touched; misses go through a transient buffer and are not
    /// admitted. The cache stays as it was.
    Bypass,
    /// Whole layers stream through two buffers borrowed from slots `0..2E` (E: experts of the
    /// widest layer), as FreeToken does: the next layer's experts are all copied while a layer
    /// runs, whoever is resident. The borrowed slots are empty afterwards.
    Streamed,
}

impl Prefill {
    /// All modes.
    pub const ALL: [Self; 3] = [Self::OnDemand, Self::Bypass, Self::Streamed];

    /// Its name on the command line and in results.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::OnDemand => "on-demand",
            Self::Bypass => "bypass",
            Self::Streamed => "streamed",
        }
    }

    /// The slots that the two buffers of a streamed prefill take.
    ///
    /// # Errors
    /// There is no pool over all layers, or it has fewer slots.
    pub fn borrowed(shape: &Shape, slots: &Slots) -> Result<u32, SimError> {
        let needed = shape.max_experts().saturating_mul(2);
        match slots {
            Slots::Global(slots) if *slots >= needed => Ok(needed),
            Slots::Global(slots) => Err(SimError::NoRoomToStream { needed, slots: *slots }),
            Slots::Layer(_) => Err(SimError::StreamedNeedsGlobal),
        }
    }
}

impl FromStr for Prefill {
    type Err = SimError;

    fn from_str(text: &str) -> Result<Self, SimError> {
        let named = Self::ALL.into_iter().find(|mode| mode.name() == text);
        named.ok_or_else(|| SimError::PrefillText { text: text.to_owned() })
    }
}
