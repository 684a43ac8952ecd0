//! Which phases of a trace are replayed.

use hotset_traces::{Phase, Trace};
use serde::Serialize;

use crate::SimError;

/// Which steps are replayed.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Hash, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum PhaseFilter {
    /// The prefill steps alone.
    Prefill,
    /// The decode steps alone, as if another cache served prefill.
    Decode,
    /// The verify steps alone.
    Verify,
    /// Everything in order; each phase is reported by itself.
    #[default]
    All,
}

impl PhaseFilter {
    /// The only phase that is replayed, if it is one.
    #[must_use]
    pub fn only(self) -> Option<Phase> {
        match self {
            Self::Prefill => Some(Phase::Prefill),
            Self::Decode => Some(Phase::Decode),
            Self::Verify => Some(Phase::Verify),
            Self::All => None,
        }
    }

    /// The phases that are replayed and that the trace has, in their order.
    ///
    /// # Errors
    /// [`SimError::NoTokens`] where the only phase that is replayed has none.
    pub fn present(self, trace: &Trace) -> Result<Vec<Phase>, SimError> {
        let present = |phase: Phase| trace.phases().contains(&(phase as u8));
        match self.only() {
            Some(phase) if present(phase) => Ok(vec![phase]),
            Some(phase) => Err(SimError::NoTokens { phase: phase.name() }),
            None => Ok(Phase::ALL.into_iter().filter(|&phase| present(phase)).collect()),
        }
    }

    /// Whether the steps of `phase` are replayed.
    #[must_use]
    #[inline(always)]
    pub fn wants(self, phase: Phase) -> bool {
        self.only().is_none_or(|only| only == phase)
    }
}

impl From<Phase> for PhaseFilter {
    fn from(phase: Phase) -> Self {
        match phase {
            Phase::Prefill => Self::Prefill,
            Phase::Decode => Self::Decode,
            Phase::Verify => Self::Verify,
        }
    }
}
