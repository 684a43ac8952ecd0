//! What a layer of a model is made of, in elements.
//!
//! A layer has a mixer (attention of some kind, a recurrence, or nothing), and routed experts, a dense feed-forward
//! part, both, or neither. The variants hold what memory needs to know: the formulas are in
//! [`parameters`](super::parameters) and [`kv`](super::kv), and nowhere else.

mod recurrent;

use crate::format::ExpertShape;
pub use recurrent::{GatedDelta, KimiDelta, Lightning, Mamba1, Mamba2, ShortConv};

/// One layer.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Layer {
    /// What mixes tokens.
    pub mixer: Mixer,
    /// Routed experts, with what belongs to them.
    pub experts: Option<Experts>,
    /// A dense feed-forward part, alone or beside the experts.
    pub dense: Option<DenseMlp>,
    /// Elements of the norm between mixer and feed-forward part.
    pub norm_after_mixer: u64,
    /// Elements of the layer's other norms.
    pub other_norms: u64,
    /// Residual streams mixed around each part (DeepSeek-V4's hyper-connections); 1 is a plain residual.
    pub streams: u64,
    /// Rank of the matrices that mix them, where they are of low rank.
    pub stream_rank: Option<u64>,
}

/// How tokens see each other.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Mixer {
    /// The layer has none (Nemotron-H's expert layers).
    None,
    /// Attention with keys and values of their own for each key-value head.
    Heads(HeadsAttention),
    /// Attention over one latent for all heads (MLA).
    Latent(LatentAttention),
    /// DeepSeek-V4: a window and a compressed past, one key-value head.
    Compressed(CompressedAttention),
    /// Gated DeltaNet (Qwen3-Next, Qwen3.5): a fixed state.
    GatedDelta(GatedDelta),
    /// Kimi Delta Attention: a fixed state.
    KimiDelta(KimiDelta),
    /// Mamba-1 (Jamba): a fixed state.
    Mamba1(Mamba1),
    /// Mamba-2: a fixed state.
    Mamba2(Mamba2),
    /// Lightning attention (MiniMax-01, Ring-linear): a fixed state.
    Lightning(Lightning),
    /// A gated short convolution (LFM2): its last inputs.
    ShortConv(ShortConv),
}

/// How far back a layer's attention reaches, and so how much it keeps.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum AttentionSpan {
    /// Every token.
    Full,
    /// The last so many tokens.
    Sliding(u64),
    /// The tokens of the current chunk of so many.
    Chunked(u64),
}

/// Norms on queries and keys.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum QkNorm {
    /// None.
    None,
    /// One scale for each element of a head.
    Head,
    /// One scale for each element of the whole projection.
    Projection,
}

/// What gates the output of attention.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum OutputGate {
    /// Nothing.
    None,
    /// Every element: a projection as wide as the queries' (Qwen3-Next, AFMoE).
    Elements,
    /// Every head: one row a query head (Step-3.5, Laguna).
    Heads,
}

/// Multi-head or grouped-query attention.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct HeadsAttention {
    /// Query heads.
    pub query_heads: u64,
    /// Key-value heads.
    pub kv_heads: u64,
    /// Width of a key (and query) head.
    pub key_width: u64,
    /// Width of a value head.
    pub value_width: u64,
    /// How far it reaches.
    pub span: AttentionSpan,
    /// What gates the output.
    pub output_gate: OutputGate,
    /// Rank of the queries' down-projection, where there is one (Step-3).
    pub query_rank: Option<u64>,
    /// Channels of short convolutions on keys, values and outputs (Inkling), and their taps; none is 0.
    pub convolved: (u64, u64),
    /// Width of a head's relative positions, projected from the hidden state (Inkling); none is 0.
    pub relative: u64,
    /// Keys and values are those of an earlier layer: it has no projections for them and keeps none.
    pub borrows_keys: bool,
    /// The indexer of sparse attention, on layers that own one. Its keys are not among what a sequence keeps.
    pub indexer: Option<Indexer>,
    /// Queries, keys and values have biases.
    pub qkv_bias: bool,
    /// The output projection has a bias.
    pub output_bias: bool,
    /// Norms on queries and keys.
    pub qk_norm: QkNorm,
    /// One learned sink for each query head.
    pub sinks: bool,
    /// Values are projected by the keys' matrix (they are still kept apart).
    pub values_from_keys: bool,
}

/// Multi-head latent attention.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct LatentAttention {
    /// Query heads.
    pub heads: u64,
    /// Rank of the queries' down-projection, where there is one.
    pub query_rank: Option<u64>,
    /// Width of the latent that is kept for each token.
    pub latent: u64,
    /// Width of the rotary key that is kept beside it.
    pub rope: u64,
    /// Width of a head's keys without position.
    pub nope: u64,
    /// Width of a head's values.
    pub value: u64,
    /// The indexer of sparse attention, on layers that own one.
    pub indexer: Option<Indexer>,
    /// What gates the output.
    pub output_gate: OutputGate,
}

/// What chooses the tokens that sparse attention reads.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Indexer {
    /// Heads.
    pub heads: u64,
    /// Width of the key that is kept for each token.
    pub width: u64,
    /// Tokens that attention then reads.
    pub top_k: u64,
}

/// DeepSeek-V4's attention.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct CompressedAttention {
    /// Query heads.
    pub heads: u64,
    /// Width of a head, and of the single key-value head.
    pub width: u64,
    /// Of it, the rotary part.
    pub rope: u64,
    /// Rank of the queries' down-projection.
    pub query_rank: u64,
    /// Groups of the output's low-rank projection.
    pub output_groups: u64,
    /// Rank of each.
    pub output_rank: u64,
    /// Tokens kept one by one.
    pub window: u64,
    /// What is kept of the tokens before them.
    pub past: CompressedPast,
}

/// How DeepSeek-V4 keeps what lies before its window.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum CompressedPast {
    /// Nothing.
    None,
    /// One entry for so many tokens, chosen by an indexer (CSA; 4 tokens).
    Sparse(u64, Indexer),
    /// One entry for so many tokens, all read (HCA; 128 tokens).
    Heavy(u64),
}

/// The expert part of a layer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Experts {
    /// Routed experts.
    pub count: u32,
    /// Of them, chosen for each token.
    pub top_k: u32,
    /// One routed expert.
    pub shape: ExpertShape,
    /// What every token passes beside the routed experts.
    pub shared: SharedExperts,
    /// The router's elements beyond one row an expert: biases and scales.
    pub router_extra: u64,
    /// Elements of the projections into and out of a latent width (Nemotron-3-Super).
    pub latent_projections: u64,
}

/// The shared experts of a layer, as one feed-forward part.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct SharedExperts {
    /// Matrices: 3 with a gate, else 2.
    pub matrices: u64,
    /// Their width, all together; 0 where there are none.
    pub inner: u64,
    /// One more row decides how much of their output counts.
    pub gated: bool,
}

impl SharedExperts {
    /// Weights in a model of this hidden width.
    pub fn weights(&self, hidden: u64) -> u64 {
        let gate = if self.gated { hidden } else { 0 };
        self.matrices * self.inner * hidden + gate
    }
}

/// A dense feed-forward part.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct DenseMlp {
    /// Matrices: 3 with a gate, else 2.
    pub matrices: u64,
    /// Its own width.
    pub inner: u64,
}

impl Mixer {
    /// Whether what the layer keeps of a sequence is a fixed state and no keys or values.
    pub fn is_recurrent(&self) -> bool {
        self.state(1).is_some()
    }

    /// A word for listings.
    pub fn kind(&self) -> &'static str {
        match self {
            Self::None => "none",
            Self::Heads(heads) => match heads.span {
                AttentionSpan::Full => "full",
                AttentionSpan::Sliding(_) => "sliding",
                AttentionSpan::Chunked(_) => "chunked",
            },
            Self::Latent(_) => "latent",
            Self::Compressed(_) => "compressed",
            Self::GatedDelta(_) => "gated-delta",
            Self::KimiDelta(_) => "kimi-delta",
            Self::Mamba1(_) => "mamba1",
            Self::Mamba2(_) => "mamba2",
            Self::Lightning(_) => "lightning",
            Self::ShortConv(_) => "short-conv",
        }
    }
}
