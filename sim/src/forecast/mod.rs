//! Prefetch: a source of predictions and the tokens that they are made of.
//!
//! Once a layer's own misses are queued, each token of the step is shown to the predictor, and its
//! guesses for the layers further on become prefetches under
//! [`PrefetchController`](hotset_policies::predict::PrefetchController).

mod feed;
mod follower;
mod forecaster;
mod oracle;
mod recorded;
mod score;
mod spec;

pub(crate) use follower::ProfileFollower;
pub use follower::{GuidedPolicy, trained_guide};
pub(crate) use forecaster::Forecaster;
pub use forecaster::{check_needs, trained};
pub use oracle::OracleConfig;
pub use score::{Quality, score, score_predictor, train_predictor};
pub use spec::{Forecast, Learn, Prefetch, PrefetchSource, predictors};
