//! Mixers that keep a fixed state of a sequence.

/// Gated DeltaNet.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct GatedDelta {
    /// Key heads.
    pub key_heads: u64,
    /// Value heads.
    pub value_heads: u64,
    /// Width of a key head.
    pub key_width: u64,
    /// Width of a value head.
    pub value_width: u64,
    /// Taps of the convolution.
    pub kernel: u64,
}

/// Kimi Delta Attention.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct KimiDelta {
    /// Heads.
    pub heads: u64,
    /// Width of a head.
    pub width: u64,
    /// Taps of the convolution.
    pub kernel: u64,
    /// Forget and output gates are whole matrices (Ling-3), not of the rank of a head.
    pub whole_gates: bool,
}

/// Mamba-1.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Mamba1 {
    /// Its own width.
    pub inner: u64,
    /// Width of the state.
    pub state: u64,
    /// Taps of the convolution.
    pub kernel: u64,
    /// Rank of the time step.
    pub rank: u64,
    /// The convolution has a bias.
    pub conv_bias: bool,
}

/// Lightning attention: every head has keys and values of its own, an output gate and a norm.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Lightning {
    /// Heads.
    pub heads: u64,
    /// Width of a head.
    pub width: u64,
}

/// A gated short convolution.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ShortConv {
    /// Its width.
    pub width: u64,
    /// Taps.
    pub kernel: u64,
}

/// Mamba-2.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Mamba2 {
    /// Heads.
    pub heads: u64,
    /// Width of a head.
    pub width: u64,
    /// Groups that share B and C.
    pub groups: u64,
    /// Width of the state.
    pub state: u64,
    /// Taps of the convolution.
    pub kernel: u64,
    /// The convolution has a bias.
    pub conv_bias: bool,
}
