//! What flags with a fixed set of words take, and what the words mean to the libraries.

use clap::ValueEnum;
use hotset::sim::{PhaseFilter, Scope, Semantics, Shuffle};

/// Names of the scopes.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum ScopeName {
    /// One pool over all layers
    Global,
    /// The same number of slots for each layer
    Layer,
}

impl From<ScopeName> for Scope {
    fn from(name: ScopeName) -> Self {
        match name {
            ScopeName::Global => Self::Global,
            ScopeName::Layer => Self::Layer,
        }
    }
}

/// Names of the scopes, the trained one with them.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum SplitScopeName {
    /// One pool over all layers
    Global,
    /// The same number of slots for each layer
    Layer,
    /// Slots over layers as they do best on the training part
    Adaptive,
}

impl From<SplitScopeName> for Scope {
    fn from(name: SplitScopeName) -> Self {
        match name {
            SplitScopeName::Global => Self::Global,
            SplitScopeName::Layer => Self::Layer,
            SplitScopeName::Adaptive => Self::Adaptive,
        }
    }
}

/// What can be shuffled.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum ShuffleName {
    /// Whole tokens, each with its experts in all layers
    Tokens,
}

impl From<ShuffleName> for Shuffle {
    fn from(name: ShuffleName) -> Self {
        match name {
            ShuffleName::Tokens => Self::Tokens,
        }
    }
}

/// Names of the phases.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum PhaseName {
    /// Decode steps alone, as if another cache served prefill
    Decode,
    /// Prefill steps alone
    Prefill,
    /// Verify steps of speculative decoding alone
    Verify,
    /// Everything in order
    All,
}

impl From<PhaseName> for PhaseFilter {
    fn from(name: PhaseName) -> Self {
        match name {
            PhaseName::Decode => Self::Decode,
            PhaseName::Prefill => Self::Prefill,
            PhaseName::Verify => Self::Verify,
            PhaseName::All => Self::All,
        }
    }
}

/// Names of the semantics.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum SemanticsName {
    /// A layer's distinct experts arrive together; none may evict another
    Event,
    /// One access at a time, as cache simulators count
    Sequential,
}

impl From<SemanticsName> for Semantics {
    fn from(name: SemanticsName) -> Self {
        match name {
            SemanticsName::Event => Self::Event,
            SemanticsName::Sequential => Self::Sequential,
        }
    }
}
