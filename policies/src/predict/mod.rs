//! Predictors: which experts a later layer will need, told from what earlier layers chose.
//!
//! A predictor sees a token's routes layer by layer as the router decides them, learns from them,
//! and is asked for the experts of a layer further on. It knows nothing of the cache: what becomes
//! of its guesses is [`ExpertCache::prefetch`](crate::ExpertCache::prefetch)'s business.

mod activation_map;
mod best;
mod control;
mod cross_layer;
mod expert_map;
mod layers;
mod linear;
mod popularity;
mod previous_token;
mod rank_record;
mod registry;
mod semantic;
#[cfg(test)]
mod testing;
mod vectors;

pub use activation_map::{ActivationMap, ActivationMapConfig};
pub use best::best;
pub use control::{PrefetchControl, PrefetchController, Priority, Protect};
pub use cross_layer::{CrossLayer, CrossLayerConfig, Order};
pub use expert_map::{ExpertMap, ExpertMapConfig, MapOf};
pub use layers::{Horizon, Layers, Token};
pub use linear::{Linear, LinearConfig, LinearKind};
pub use popularity::Popularity;
pub use previous_token::PreviousToken;
pub use rank_record::RankRecord;
pub use registry::{AnyPredictor, PREDICTORS, PredictorInfo, PredictorNeed, PredictorSpec};
pub use semantic::{PARAMETERS as GUIDE_PARAMETERS, Semantic};

/// An expert of a layer that is expected to be needed.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Guess {
    /// The expert, by its number within the layer.
    pub expert: u32,
    /// How sure the predictor is, 0 to 1; what it means is the predictor's own definition.
    pub confidence: f32,
}

/// What is known of a sequence before its first generated token.
#[derive(Debug, Clone, Copy, Default)]
pub struct Opening<'a> {
    /// The prompt's mean input embedding; empty where none was recorded.
    pub embedding: &'a [f32],
    /// The prompt's mean final hidden state; empty where none was recorded.
    pub embedding_out: &'a [f32],
    /// Uses of each dense expert key by the prompt's tokens; empty where they were not recorded.
    pub prompt_uses: &'a [u32],
    /// Tokens that those uses are of.
    pub prompt_tokens: u32,
    /// For a ceiling that no engine can reach: uses of each key by the tokens to come; empty
    /// otherwise.
    pub own_uses: &'a [u32],
    /// Tokens that those uses are of.
    pub own_tokens: u32,
}

/// Says which experts a layer further on will need.
///
/// Sequences that run at the same time have a *lane* each, a small number that is theirs from
/// [`begin_sequence`](Self::begin_sequence) to [`end_sequence`](Self::end_sequence). Of each token
/// the engine tells every layer in order: [`observe`](Self::observe), then
/// [`predict`](Self::predict) for as many layers further on as it wants.
pub trait Predictor {
    /// A sequence takes a lane.
    fn begin_sequence(&mut self, lane: u32, opening: &Opening<'_>) {
        let _ = (lane, opening);
    }

    /// The sequence of a lane is over.
    fn end_sequence(&mut self, lane: u32) {
        let _ = lane;
    }

    /// The router chose the experts of `token.layer`.
    fn observe(&mut self, token: &Token<'_>);

    /// Appends at most `width` guesses for layer `target`, which is behind `token.layer`, best
    /// first; none where it has nothing to go by.
    fn predict(&mut self, token: &Token<'_>, target: u32, width: usize, guesses: &mut Vec<Guess>);

    /// Stops learning from what is observed (`false`), or goes on (`true`); training a predictor
    /// and then testing it on something else is `observe` over one part and `set_learning(false)`.
    fn set_learning(&mut self, learning: bool);
}
