//! Caches keyed on what a conversation is about: a store of earlier conversations, and clusters.
//!
//! Both map a prompt's embedding to an expert profile: how often each expert was used a token.
//! What is done with the profile (protect, prefetch, both) is up to the caller. Sources: FineMoE
//! (fMoE) for the store and its replacement of the most redundant; spherical k-means (I. S.
//! Dhillon, D. S. Modha, Machine Learning 42, 2001) started by k-means++ (D. Arthur, S.
//! Vassilvitskii, SODA 2007) for the clusters.

mod codes;
mod error;
mod guide;
mod guide_config;
mod kmeans;
mod profiles;
mod search;
mod store;
#[cfg(test)]
mod tests;
mod vectors;

pub use codes::MAX_DIMENSION;
pub use error::SemanticError;
pub use guide::Guide;
pub use guide_config::{GUIDE_PARAMETERS, GuideConfig, Likeness, ProfileFrom};
pub use kmeans::{Clusters, Conversations, KMeansConfig};
pub use search::{Neighbour, Search};
pub use store::{ConversationStore, Inserted, StoreConfig};
