//! Weights of a model in bytes, whole or on one rank.
//!
//! From formulas for a chosen format; what a header says is in [`stored`](super::stored). Experts come layer by layer, for
//! slots may differ by layer; the rest is split into the parts that a plan shows.

use super::layer::Experts;
use super::parameters::Parameters;
use super::ranks::{Parallel, share};
use super::{Model, ModelError};
use crate::format::{SlotLayout, WeightFormat};

/// How the weights outside the routed experts are stored.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum RestFormat {
    /// Matrices of attention, dense and shared parts in this format; embedding, head, routers and norms in bf16, as
    /// checkpoints are published.
    Matrices(WeightFormat),
    /// Everything in this format.
    Everything(WeightFormat),
}

/// The formats that a plan is made for.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Formats {
    /// Of routed experts.
    pub experts: WeightFormat,
    /// Of all else.
    pub rest: RestFormat,
    /// How an engine pads its slots.
    pub slot: SlotLayout,
}

impl Formats {
    /// These experts, the rest as given, slots without padding.
    pub const fn new(experts: WeightFormat, rest: RestFormat) -> Self {
        Self { experts, rest, slot: SlotLayout::CHECKPOINT }
    }
}

/// One layer's routed experts.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct LayerExperts {
    /// The layer's number in the model, from 0.
    pub layer: u32,
    /// Experts that the rank is home to.
    pub count: u32,
    /// Chosen for each token.
    pub top_k: u32,
    /// Bytes of one expert in host memory or in a file.
    pub stored: u64,
    /// Bytes of its slot.
    pub slot: u64,
}

/// Weights in bytes, on one rank.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct WeightBytes {
    /// Routed experts, one entry a layer that has them, in order.
    pub experts: Vec<LayerExperts>,
    /// Attention, recurrences, norms, routers, dense feed-forward parts.
    pub dense: u64,
    /// Shared experts.
    pub shared: u64,
    /// The token embedding.
    pub embed: u64,
    /// The output head; 0 where it is the embedding.
    pub lm_head: u64,
    /// Tables of n-grams beside the embedding: read a few rows a token, wherever they lie.
    pub tables: u64,
    /// Draft layers: all but routed experts.
    pub mtp_dense: u64,
    /// Draft layers: routed experts.
    pub mtp_experts: u64,
}

impl WeightBytes {
    /// All routed experts as stored.
    pub fn routed(&self) -> u64 {
        self.experts
            .iter()
            .map(|layer| u64::from(layer.count).saturating_mul(layer.stored))
            .fold(0, u64::saturating_add)
    }

    /// All but routed experts, tables of n-grams and draft layers.
    pub fn always(&self) -> u64 {
        [self.dense, self.shared, self.embed, self.lm_head]
            .iter()
            .fold(0, |a, b| a.saturating_add(*b))
    }

    /// Everything but draft layers.
    pub fn total(&self) -> u64 {
        self.always().saturating_add(self.routed()).saturating_add(self.tables)
    }

    /// Everything.
    pub fn with_mtp(&self) -> u64 {
        self.total().saturating_add(self.mtp_dense).saturating_add(self.mtp_experts)
    }

    /// Experts over all layers, on this rank.
    pub fn expert_count(&self) -> u64 {
        self.experts.iter().map(|layer| u64::from(layer.count)).sum()
    }

    /// Bytes of the largest slot: what every slot of one pool over all layers takes.
    pub fn largest_slot(&self) -> u64 {
        self.experts.iter().map(|layer| layer.slot).max().unwrap_or(0)
    }

    /// Whether slots differ between layers.
    pub fn slots_differ(&self) -> bool {
        self.experts.windows(2).any(|pair| pair[0].slot != pair[1].slot)
    }
}

impl Model {
    /// The model's weights in these formats, on one rank.
    pub fn weights(&self, formats: &Formats, parallel: Parallel) -> WeightBytes {
        let parameters = self.parameters();
        let experts = self
            .moe_layers()
            .map(|(layer, experts)| LayerExperts {
                layer,
                count: parallel.experts_of(experts.count),
                top_k: experts.top_k,
                stored: experts.slot_bytes(formats.experts, SlotLayout::CHECKPOINT, parallel),
                slot: experts.slot_bytes(formats.experts, formats.slot, parallel),
            })
            .collect();
        let rank = Rest::of(&parameters, parallel);
        let (mtp, mtp_routed) = self.mtp_parameters();
        let mtp_expert = self.mtp_experts().map_or(0, |experts| {
            experts.slot_bytes(formats.experts, SlotLayout::CHECKPOINT, parallel)
        });
        WeightBytes {
            experts,
            dense: rank.dense_bytes(formats.rest),
            shared: rank.shared_bytes(formats.rest),
            embed: kept(formats.rest, rank.embed),
            lm_head: kept(formats.rest, rank.lm_head),
            tables: kept(formats.rest, share(self.tables, parallel.tensor)),
            mtp_dense: Rest::of(&mtp, parallel).bytes(formats.rest),
            mtp_experts: mtp_expert
                .saturating_mul(mtp_routed.div_ceil(u64::from(parallel.expert.max(1)))),
        }
    }

    /// The formats that the checkpoint is published in.
    ///
    /// # Errors
    /// [`ModelError::Invalid`] where the configuration names a method whose format it does not give.
    pub fn native_formats(&self) -> Result<Formats, ModelError> {
        self.native.map(|(experts, rest)| Formats::new(experts, rest)).ok_or_else(|| {
            ModelError::invalid(
                &self.name,
                "quantization_config",
                "does not say how experts are stored: give a format",
            )
        })
    }

    fn mtp_experts(&self) -> Option<&Experts> {
        self.moe_layers().last().map(|(_, experts)| experts)
    }

    /// Draft layers: parameters without routed experts, and how many routed experts.
    ///
    /// Each is one more layer as the last with experts, a projection that joins two hidden states, three norms, and,
    /// where published so, copies of embedding and head.
    pub fn mtp_parameters(&self) -> (Parameters, u64) {
        let Some(layer) = self.layers.iter().rev().find(|layer| layer.experts.is_some()) else {
            return (Parameters::default(), 0);
        };
        if self.mtp_layers == 0 {
            return (Parameters::default(), 0);
        }
        let mut one = layer.parameters(self.hidden);
        one.attention += 2 * self.hidden * self.hidden;
        one.other += 3 * self.hidden;
        one.copied += 3 * self.hidden;
        one.routed = 0;
        if self.mtp_copies_embedding {
            (one.embed, one.lm_head) = (self.vocab * self.hidden, self.vocab * self.hidden);
        }
        let layers = self.mtp_layers as usize;
        let experts = layer.experts.map_or(0, |experts| u64::from(experts.count));
        (std::iter::repeat_n(one, layers).sum(), experts * layers as u64)
    }
}

/// Bytes of what published checkpoints keep in bf16.
fn kept(format: RestFormat, weights: u64) -> u64 {
    match format {
        RestFormat::Matrices(_) => WeightFormat::Bf16.bytes_of(weights),
        RestFormat::Everything(format) => format.bytes_of(weights),
    }
}

/// Bytes of matrices.
fn matrices(format: RestFormat, weights: u64) -> u64 {
    let (RestFormat::Matrices(format) | RestFormat::Everything(format)) = format;
    format.bytes_of(weights)
}

/// Weights outside the routed experts on one rank, by how they are stored.
struct Rest {
    embed: u64,
    lm_head: u64,
    shared: u64,
    matrices: u64,
    small: u64,
}

impl Rest {
    fn of(parameters: &Parameters, parallel: Parallel) -> Self {
        // Routers and norms are copied, and so are some matrices.
        let small = parameters.router + parameters.norms_after_attention + parameters.other;
        let copied = parameters.copied.saturating_sub(small);
        let all = parameters.attention + parameters.dense_mlp;
        Self {
            embed: share(parameters.embed, parallel.tensor),
            lm_head: share(parameters.lm_head, parallel.tensor),
            shared: share(parameters.shared, parallel.expert_slices()),
            matrices: copied + share(all.saturating_sub(copied), parallel.tensor),
            small,
        }
    }

    fn dense_bytes(&self, format: RestFormat) -> u64 {
        matrices(format, self.matrices).saturating_add(kept(format, self.small))
    }

    fn shared_bytes(&self, format: RestFormat) -> u64 {
        matrices(format, self.shared)
    }

    fn bytes(&self, format: RestFormat) -> u64 {
        [
            self.dense_bytes(format),
            self.shared_bytes(format),
            kept(format, self.embed),
            kept(format, self.lm_head),
        ]
        .iter()
        .fold(0, |sum, part| sum.saturating_add(*part))
    }
}
