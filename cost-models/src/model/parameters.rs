//! Parameters of a model, by what they are for.
//!
//! Every count in hotset comes from here. The total is what a model weighs, the active part what one token reads:
//! mixing them up is the most common error of sizing tools. Towers for images and sound are not counted.

mod recurrent;

use std::iter::Sum;
use std::ops::AddAssign;

use super::layer::{
    CompressedAttention, CompressedPast, HeadsAttention, Indexer, LatentAttention, Layer, Mixer,
    OutputGate, QkNorm,
};

/// Parameters, by what they are for.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Parameters {
    /// The token embedding.
    pub embed: u64,
    /// Attention or recurrence: projections, their norms, indexers, mixing of residual streams before them.
    pub attention: u64,
    /// Norms between mixer and feed-forward part.
    pub norms_after_attention: u64,
    /// Dense feed-forward parts, and the mixing of residual streams before feed-forward parts.
    pub dense_mlp: u64,
    /// Routers with their biases.
    pub router: u64,
    /// Routed experts: what a cache holds.
    pub routed: u64,
    /// Shared experts with their gates.
    pub shared: u64,
    /// The other norms, and projections into latent widths.
    pub other: u64,
    /// The output head; 0 where it is the embedding.
    pub lm_head: u64,
    /// Tables beside the embedding of which a token reads a few rows (n-grams).
    pub tables: u64,
    /// Of all but `routed`, what each tensor-parallel rank holds whole: norms, routers, down-projections of latents.
    pub copied: u64,
}

impl Parameters {
    /// All of them.
    pub fn total(&self) -> u64 {
        self.always().saturating_add(self.routed).saturating_add(self.tables)
    }

    /// Those that every token needs, embedding included, tables of n-grams not.
    pub fn always(&self) -> u64 {
        [
            self.embed,
            self.attention,
            self.norms_after_attention,
            self.dense_mlp,
            self.router,
            self.shared,
            self.other,
            self.lm_head,
        ]
        .iter()
        .fold(0, |sum, part| sum.saturating_add(*part))
    }

    /// Those that published checkpoints keep in bf16 whatever the format: embedding, head, routers, norms.
    pub fn kept_in_bf16(&self) -> u64 {
        self.embed + self.lm_head + self.router + self.norms_after_attention + self.other
    }
}

impl AddAssign for Parameters {
    fn add_assign(&mut self, more: Self) {
        self.embed += more.embed;
        self.attention += more.attention;
        self.norms_after_attention += more.norms_after_attention;
        self.dense_mlp += more.dense_mlp;
        self.router += more.router;
        self.routed += more.routed;
        self.shared += more.shared;
        self.other += more.other;
        self.lm_head += more.lm_head;
        self.tables += more.tables;
        self.copied += more.copied;
    }
}

impl Sum for Parameters {
    fn sum<I: Iterator<Item = Self>>(parts: I) -> Self {
        parts.fold(Self::default(), |mut sum, part| {
            sum += part;
            sum
        })
    }
}

/// A count, and how much of it each tensor-parallel rank holds whole.
#[derive(Clone, Copy)]
struct Count {
    all: u64,
    copied: u64,
}

impl Layer {
    /// The layer's parameters in a model of this hidden width.
    pub fn parameters(&self, hidden: u64) -> Parameters {
        let mixer = match &self.mixer {
            Mixer::None => Count { all: 0, copied: 0 },
            Mixer::Heads(heads) => heads.count(hidden),
            Mixer::Latent(latent) => latent.count(hidden),
            Mixer::Compressed(compressed) => compressed.count(hidden),
            Mixer::GatedDelta(delta) => delta.count(hidden),
            Mixer::KimiDelta(delta) => delta.count(hidden),
            Mixer::Mamba1(mamba) => mamba.count(hidden),
            Mixer::Mamba2(mamba) => mamba.count(hidden),
            Mixer::Lightning(lightning) => lightning.count(hidden),
            Mixer::ShortConv(conv) => conv.count(hidden),
        };
        let streams = stream_mixing(self.streams, self.stream_rank, hidden);
        let mut sum = Parameters {
            attention: mixer.all + streams,
            norms_after_attention: self.norm_after_mixer,
            dense_mlp: streams,
            other: self.other_norms,
            copied: mixer.copied + 2 * streams + self.norm_after_mixer + self.other_norms,
            ..Parameters::default()
        };
        if let Some(dense) = &self.dense {
            sum.dense_mlp += dense.matrices * hidden * dense.inner;
        }
        if let Some(experts) = &self.experts {
            let count = u64::from(experts.count);
            sum.router = hidden * count + experts.router_extra;
            sum.routed = count * (experts.shape.weights() + experts.shape.bias_elements());
            sum.shared = experts.shared.weights(hidden);
            sum.other += experts.latent_projections;
            sum.copied += sum.router + experts.latent_projections;
        }
        sum
    }
}

/// Of hyper-connections before one part: a projection of all streams to pre, post and combining weights.
///
/// Of low rank: down to the rank and up again from all streams.
fn stream_mixing(streams: u64, rank: Option<u64>, hidden: u64) -> u64 {
    if streams <= 1 {
        return 0;
    }
    if let Some(rank) = rank {
        return 2 * streams * hidden * rank;
    }
    let weights = (2 + streams) * streams;
    weights * streams * hidden + weights + 3
}

/// Of the projection that brings all streams together after the last layer.
pub(super) fn stream_head(streams: u64, hidden: u64) -> u64 {
    if streams <= 1 { 0 } else { streams * streams * hidden + streams + 1 }
}

impl HeadsAttention {
    fn count(&self, hidden: u64) -> Count {
        let queries = self.query_heads * self.key_width;
        let keys = self.kv_heads * self.key_width;
        let values = self.kv_heads * self.value_width;
        let mut all = self.query_heads * self.value_width * hidden;
        all += match self.query_rank {
            Some(rank) => hidden * rank + rank + rank * queries,
            None => hidden * queries,
        };
        all += self.output_gate.rows(self.query_heads, self.value_width) * hidden;
        if !self.borrows_keys {
            all += hidden * keys + if self.values_from_keys { 0 } else { hidden * values };
        }
        if self.qkv_bias {
            all += queries + keys + values;
        }
        let norms = match self.qk_norm {
            QkNorm::None => 0,
            QkNorm::Head => 2 * self.key_width,
            QkNorm::Projection => queries + keys,
        };
        let output_bias = if self.output_bias { hidden } else { 0 };
        let sinks = if self.sinks { self.query_heads } else { 0 };
        let index = self.indexer.map_or(0, |indexer| indexer.all(hidden, hidden));
        let (channels, taps) = self.convolved;
        all += channels * taps + hidden * self.query_heads * self.relative;
        let copied = norms + output_bias + index;
        Count { all: all + copied + sinks, copied }
    }
}

impl OutputGate {
    /// Rows of the gate's projection.
    pub(super) fn rows(self, heads: u64, width: u64) -> u64 {
        match self {
            Self::None => 0,
            Self::Elements => heads * width,
            Self::Heads => heads,
        }
    }
}

impl LatentAttention {
    fn count(&self, hidden: u64) -> Count {
        let down = hidden * (self.latent + self.rope) + self.latent;
        let up = self.latent * self.heads * (self.nope + self.value);
        let out = self.heads * self.value * hidden;
        let queries = self.heads * (self.nope + self.rope);
        let (query_down, query_up) = match self.query_rank {
            Some(rank) => (hidden * rank + rank, rank * queries),
            None => (0, hidden * queries),
        };
        let rank = self.query_rank.unwrap_or(hidden);
        let indexer = self.indexer.map_or(0, |indexer| indexer.all(hidden, rank));
        let gate = self.output_gate.rows(self.heads, self.value) * hidden;
        let copied = down + query_down + indexer;
        Count { all: copied + query_up + up + out + gate, copied }
    }
}

impl Indexer {
    /// Queries, keys and their norm with scale and shift.
    fn all(&self, hidden: u64, query_rank: u64) -> u64 {
        self.projections(hidden, query_rank) + hidden * self.width + 2 * self.width
    }

    /// Queries from their latent, and one weight a head from the hidden state.
    fn projections(&self, hidden: u64, query_rank: u64) -> u64 {
        query_rank * self.heads * self.width + hidden * self.heads
    }
}

impl CompressedAttention {
    fn count(&self, hidden: u64) -> Count {
        let query_down = hidden * self.query_rank + self.query_rank;
        let query_up = self.query_rank * self.heads * self.width;
        let kv = hidden * self.width + self.width;
        let grouped = (self.heads * self.width / self.output_groups.max(1))
            * self.output_groups
            * self.output_rank;
        let out = self.output_groups * self.output_rank * hidden;
        // Values and their gates, one bias for each position in an entry, and a norm; the sparse kind overlaps two
        // windows, and its indexer compresses keys in the same way.
        let entries = |width: u64, overlap: u64, ratio: u64| {
            2 * hidden * overlap * width + ratio * overlap * width + width
        };
        let past = match self.past {
            CompressedPast::None => 0,
            CompressedPast::Heavy(ratio) => entries(self.width, 1, ratio),
            CompressedPast::Sparse(ratio, indexer) => {
                entries(self.width, 2, ratio)
                    + entries(indexer.width, 2, ratio)
                    + indexer.projections(hidden, self.query_rank)
            }
        };
        let copied = query_down + kv + past;
        Count { all: copied + query_up + grouped + out + self.heads, copied }
    }
}
