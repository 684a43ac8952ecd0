//! An event before and after its misses are split.

/// A layer of a step, and the experts that it asks for.
#[derive(Debug, Clone, Copy)]
pub struct Asked<'a, E> {
    /// The layer.
    pub layer: usize,
    /// Its distinct experts, best rank first.
    pub experts: &'a [E],
    /// The router's weight of each, summed over the step's tokens; empty where there are none.
    pub weights: &'a [f32],
    /// How many of the step's tokens want each; empty: one does.
    pub tokens: &'a [u32],
    /// Tokens of the step.
    pub step_tokens: u32,
}

impl<'a, E> Asked<'a, E> {
    /// What one token asks of a layer.
    #[must_use]
    pub fn by_one_token(layer: usize, experts: &'a [E], weights: &'a [f32]) -> Self {
        Self { layer, experts, weights, tokens: &[], step_tokens: 1 }
    }

    /// Tokens that want the expert of this place.
    pub(super) fn tokens_of(&self, place: usize) -> u32 {
        self.tokens.get(place).copied().unwrap_or(1)
    }
}

/// An event as its [`MissDispatcher`](super::MissDispatcher) split it. Every expert asked for is one
/// of: resident, to be fetched, served by the host, a smaller copy, dropped, substituted.
#[derive(Debug, Clone, Copy)]
pub struct Dispatched<'a, E> {
    /// What to demand of the cache: the residents in the order given, then who stands in for others,
    /// then what is to be fetched.
    pub demanded: &'a [E],
    /// The router's weight of each of those; empty where none were given.
    pub weights: &'a [f32],
    /// How many experts the host serves.
    pub host: u32,
    /// Tokens that want those, beyond one each.
    pub host_further: u32,
    /// Tokens that want any of those that are fetched whole or served by the host, beyond one each.
    pub miss_further: u32,
    /// Of those that the host serves, whose output is added in the next layer.
    pub deferred: u32,
    /// How many are not computed at all.
    pub dropped: u32,
    /// How many come as smaller copies that no slot keeps.
    pub low: u32,
    /// The size of those as a share of the whole, in millionths.
    pub low_size_ppm: u32,
    /// How many others stand in for, which are resident: of `demanded`, hits of nobody.
    pub substituted: u32,
    /// The share of the event's router weight that went to dropped or substituted experts, in
    /// billionths.
    pub lost_ppb: u64,
}
