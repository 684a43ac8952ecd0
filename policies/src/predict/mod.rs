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
mod info;
pub(crate) mod layers;
mod linear;
mod popularity;
pub(crate) mod predictor;
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
pub use info::{PredictorInfo, PredictorNeed};
pub use layers::{Horizon, Layers, Token, TokenPlace};
pub use linear::{Linear, LinearConfig, LinearKind};
pub use popularity::Popularity;
pub use predictor::{Guess, Opening, Predictor};
pub use previous_token::PreviousToken;
pub use rank_record::RankRecord;
pub use registry::{AnyPredictor, PREDICTORS, PredictorSpec, PredictorTooLarge};
pub use semantic::Semantic;

pub use crate::semantic::GUIDE_PARAMETERS;
