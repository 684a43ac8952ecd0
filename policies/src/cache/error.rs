//! What can be wrong with a cache's shape or with a call that changes its slots.

use thiserror::Error;

/// Why a cache could not be built or changed. Nothing has changed when one is returned.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
pub enum CacheError {
    /// A cache needs a layer.
    #[error("the model has no expert layer")]
    NoLayers,
    /// A layer needs an expert.
    #[error("layer {layer} has no experts")]
    NoExperts {
        /// The layer's index.
        layer: usize,
    },
    /// Keys and slots share a 32-bit word with two flags.
    #[error("{experts} experts in all are more than the cache can number (2^30 - 1)")]
    TooManyExperts {
        /// Experts over all layers.
        experts: u64,
    },
    /// No slot at all.
    #[error("a cache of 0 slots holds nothing: give it at least one")]
    NoSlots,
    /// Slots that could never be filled.
    #[error("{slots} slots for {experts} experts: more than all of them")]
    MoreSlotsThanExperts {
        /// Slots asked for.
        slots: u32,
        /// Experts that could fill them.
        experts: u32,
    },
    /// Layer scope needs one number a layer.
    #[error("slots were given for {given} layers, the model has {layers}")]
    LayerCount {
        /// Numbers given.
        given: usize,
        /// Layers of the model.
        layers: usize,
    },
    /// Slots cannot change scope.
    #[error(
        "a cache keeps its scope: resize a global cache with one number, a layer cache with one a layer"
    )]
    ScopeChanged,
    /// A slot is still needed.
    #[error(
        "slot {slot} is in use: release the layer that needs it and complete its fetch before \
         taking slots away"
    )]
    SlotInUse {
        /// The slot, in its pool.
        slot: u32,
    },
}
