//! What a cache must know of a model: how many experts each layer has, and how many a token uses.

/// A model as a cache sees it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ModelShape<'a> {
    /// Experts of each MoE layer.
    pub experts: &'a [u32],
    /// Experts that a token uses in each.
    pub top_k: &'a [u32],
}
