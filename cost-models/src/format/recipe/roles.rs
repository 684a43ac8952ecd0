//! What the rules ask of a tensor and of a model.

/// What a tensor is for, as far as the quantiser's rules tell tensors apart.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Role {
    /// `token_embd`.
    Embedding,
    /// `output`.
    Head,
    /// `attn_q`.
    Query,
    /// `attn_k`.
    Key,
    /// `attn_v`.
    Value,
    /// `attn_qkv`: queries, keys and values in one matrix.
    Fused,
    /// `attn_kv_b`: keys and values of all heads out of a latent.
    FromLatent,
    /// `attn_output`.
    Output,
    /// `ffn_gate*`, `ffn_up*`.
    Into,
    /// `ffn_down*`.
    Down,
    /// Any other matrix.
    Other,
    /// Vectors, routers and convolutions: always f32.
    Small,
}

/// What the rules ask of a model.
#[derive(Clone, Copy, Debug)]
pub struct Shape {
    /// Layers, draft layers included.
    pub layers: u32,
    /// Tensors of the roles [`Role::Value`], [`Role::Fused`] and [`Role::FromLatent`].
    pub values: u32,
    /// Experts of a layer.
    pub experts: u32,
    /// Query heads for each key-value head.
    pub group: u64,
    /// The head is the embedding.
    pub tied: bool,
    /// An importance matrix was given: a few recipes then spare the first down projections extra bits, or give them.
    pub imatrix: bool,
    /// Rules as they were before 2026: fused matrices have a rule of their own, matrices out of latents have none.
    pub before_2026: bool,
}

/// Where a tensor stands.
#[derive(Clone, Copy, Debug)]
pub struct Place {
    /// Its role.
    pub role: Role,
    /// Its layer.
    pub layer: u32,
    /// How many tensors that the rules take for values came before it.
    pub value: u32,
    /// It holds one matrix for each expert.
    pub routed: bool,
    /// Weights of a row.
    pub columns: u64,
}

impl Role {
    /// Whether the rules take such a tensor for attention's values.
    pub fn is_value(self, before_2026: bool) -> bool {
        match self {
            Self::Value => true,
            Self::Fused | Self::FromLatent => !before_2026,
            _ => false,
        }
    }
}
