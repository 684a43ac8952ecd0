//! What a sequence keeps on the accelerator: keys and values, and the fixed states of recurrent layers.
//!
//! Bytes by the algorithm, without an engine's pages (those are in [`layout`](super::layout)). Windows and states make
//! the curve over the context bend, so nothing here is a slope: ask for the context, and invert by search.

use super::layer::{
    AttentionSpan, CompressedAttention, CompressedPast, GatedDelta, HeadsAttention, KimiDelta,
    LatentAttention, Lightning, Mamba1, Mamba2, Mixer, ShortConv,
};
use super::{Model, ranks};

/// How keys and values are stored.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum KvFormat {
    /// 2 bytes an element (fp16 as well).
    Bf16,
    /// 1 byte an element.
    Fp8,
    /// GGUF's 8 bits: 34 bytes for 32 elements.
    Q8_0,
    /// GGUF's 4 bits: 18 bytes for 32 elements.
    Q4_0,
}

impl KvFormat {
    /// Every format.
    pub const ALL: [Self; 4] = [Self::Bf16, Self::Fp8, Self::Q8_0, Self::Q4_0];

    /// The name on a command line.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Bf16 => "bf16",
            Self::Fp8 => "fp8",
            Self::Q8_0 => "q8_0",
            Self::Q4_0 => "q4_0",
        }
    }

    /// The format of this name; fp16 is stored like bf16.
    pub fn from_name(name: &str) -> Option<Self> {
        let name = if name == "fp16" || name == "f16" { "bf16" } else { name };
        Self::ALL.into_iter().find(|format| format.name() == name)
    }

    /// Bytes of one row of so many elements.
    pub fn row(self, elements: u64) -> u64 {
        match self {
            Self::Bf16 => elements.saturating_mul(2),
            Self::Fp8 => elements,
            Self::Q8_0 => elements.div_ceil(32).saturating_mul(34),
            Self::Q4_0 => elements.div_ceil(32).saturating_mul(18),
        }
    }
}

/// What one sequence keeps, in bytes.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct KvBytes {
    /// Keys, values, latents and index keys: grows with the context.
    pub tokens: u64,
    /// Recurrent and compressor states: the same for every context.
    pub state: u64,
}

impl KvBytes {
    /// Both.
    pub fn total(self) -> u64 {
        self.tokens.saturating_add(self.state)
    }

    fn add(self, more: Self) -> Self {
        Self {
            tokens: self.tokens.saturating_add(more.tokens),
            state: self.state.saturating_add(more.state),
        }
    }
}

impl Model {
    /// What one sequence of `context` tokens keeps on one rank of `tensor` tensor-parallel ranks (1: the whole).
    ///
    /// Key-value heads are split, and copied once there are more ranks than heads; latents and index keys are whole on
    /// every rank. Draft (MTP) layers are not counted: see [`mtp_kv`](Model::mtp_kv).
    pub fn kv(&self, context: u64, format: KvFormat, tensor: u32) -> KvBytes {
        self.layers
            .iter()
            .map(|layer| layer.mixer.kv(context, format, tensor))
            .fold(KvBytes::default(), KvBytes::add)
    }

    /// What the draft layers of multi-token prediction keep: each is a layer as the model's last.
    pub fn mtp_kv(&self, context: u64, format: KvFormat, tensor: u32) -> KvBytes {
        let Some(last) = self.layers.last() else { return KvBytes::default() };
        let one = last.mixer.kv(context, format, tensor);
        let layers = u64::from(self.mtp_layers);
        KvBytes {
            tokens: one.tokens.saturating_mul(layers),
            state: one.state.saturating_mul(layers),
        }
    }

    /// The longest context, up to `limit`, of which `sequences` sequences fit into `budget` bytes; 0 if none does.
    pub fn longest_context(
        &self,
        budget: u64,
        sequences: u64,
        format: KvFormat,
        tensor: u32,
        limit: u64,
    ) -> u64 {
        let fits =
            |context| self.kv(context, format, tensor).total().saturating_mul(sequences) <= budget;
        let (mut fitting, mut failing) = (0, limit.saturating_add(1));
        while failing - fitting > 1 {
            let middle = fitting + (failing - fitting) / 2;
            if fits(middle) { fitting = middle } else { failing = middle }
        }
        fitting
    }
}

impl Mixer {
    /// What this layer keeps of one sequence on one tensor-parallel rank.
    pub fn kv(&self, context: u64, format: KvFormat, tensor: u32) -> KvBytes {
        match self {
            Self::None => KvBytes::default(),
            Self::Heads(heads) => heads.kv(context, format, tensor),
            Self::Latent(latent) => latent.kv(context, format),
            Self::Compressed(compressed) => compressed.kv(context, format),
            recurrent => {
                let state = recurrent.state(tensor).map_or(0, StateElements::bytes);
                KvBytes { tokens: 0, state }
            }
        }
    }

    /// The state of a recurrent layer on one rank.
    pub fn state(&self, tensor: u32) -> Option<StateElements> {
        match self {
            Self::GatedDelta(delta) => Some(delta.state(tensor)),
            Self::KimiDelta(delta) => Some(delta.state(tensor)),
            Self::Mamba1(mamba) => Some(mamba.state(tensor)),
            Self::Mamba2(mamba) => Some(mamba.state(tensor)),
            Self::Lightning(lightning) => Some(lightning.state(tensor)),
            Self::ShortConv(conv) => Some(conv.state(tensor)),
            Self::None | Self::Heads(_) | Self::Latent(_) | Self::Compressed(_) => None,
        }
    }

    /// Bytes that one more token of full attention keeps on one rank; `None` for windows and states.
    pub fn growing_row(&self, format: KvFormat, tensor: u32) -> Option<u64> {
        match self {
            Self::Heads(heads) if heads.span == AttentionSpan::Full && !heads.borrows_keys => {
                Some(heads.row_bytes(format, tensor))
            }
            Self::Latent(latent) => Some(latent.row_bytes(format)),
            _ => None,
        }
    }
}

impl AttentionSpan {
    /// Tokens kept of a context.
    pub fn kept(self, context: u64) -> u64 {
        match self {
            Self::Full => context,
            Self::Sliding(window) | Self::Chunked(window) => context.min(window),
        }
    }
}

impl HeadsAttention {
    /// Bytes of one token's keys and values on one rank.
    pub fn row_bytes(&self, format: KvFormat, tensor: u32) -> u64 {
        if self.borrows_keys {
            return 0;
        }
        let heads = ranks::share(self.kv_heads, tensor);
        format.row(heads * self.key_width).saturating_add(format.row(heads * self.value_width))
    }

    fn kv(&self, context: u64, format: KvFormat, tensor: u32) -> KvBytes {
        let kept = self.span.kept(context);
        let (channels, taps) = self.convolved;
        // The last inputs of convolutions, in bf16.
        let state = ranks::share(channels, tensor) * taps.saturating_sub(1) * 2;
        KvBytes { tokens: kept.saturating_mul(self.row_bytes(format, tensor)), state }
    }
}

/// An index key is fp8 with one f32 scale for 128 elements, whatever the format of the cache.
pub(super) fn index_key_bytes(width: u64) -> u64 {
    width.saturating_add(width.div_ceil(128).saturating_mul(4))
}

impl LatentAttention {
    /// Bytes of one token: its latent and rotary key once for all heads, and its index key where the layer keeps one.
    pub fn row_bytes(&self, format: KvFormat) -> u64 {
        let index = self.indexer.map_or(0, |indexer| index_key_bytes(indexer.width));
        format.row(self.latent + self.rope).saturating_add(index)
    }

    fn kv(&self, context: u64, format: KvFormat) -> KvBytes {
        KvBytes { tokens: context.saturating_mul(self.row_bytes(format)), state: 0 }
    }
}

impl CompressedAttention {
    fn kv(&self, context: u64, format: KvFormat) -> KvBytes {
        let row = format.row(self.width);
        let window = context.min(self.window).saturating_mul(row);
        // Values and gates (f32) of the entry in the making; the sparse kind makes two at a time, and index keys too.
        let making = |width: u64, overlap: u64, ratio: u64| 2 * ratio * overlap * width * 4;
        let (past, state) = match self.past {
            CompressedPast::None => (0, 0),
            CompressedPast::Heavy(ratio) => {
                ((context / ratio).saturating_mul(row), making(self.width, 1, ratio))
            }
            CompressedPast::Sparse(ratio, indexer) => (
                (context / ratio).saturating_mul(row + index_key_bytes(indexer.width)),
                making(self.width, 2, ratio) + making(indexer.width, 2, ratio),
            ),
        };
        KvBytes { tokens: window.saturating_add(past), state }
    }
}

/// Elements of a recurrent layer's state on one rank.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct StateElements {
    /// The recurrence.
    pub recurrence: u64,
    /// The last inputs of the convolution: one less than its taps.
    pub convolution: u64,
}

impl StateElements {
    /// The recurrence in f32, the convolution in bf16.
    pub fn bytes(self) -> u64 {
        self.recurrence * 4 + self.convolution * 2
    }
}

impl GatedDelta {
    fn state(&self, tensor: u32) -> StateElements {
        let values = ranks::share(self.value_heads, tensor);
        let keys = ranks::share(self.key_heads, tensor);
        let inputs = 2 * keys * self.key_width + values * self.value_width;
        StateElements {
            recurrence: values * self.key_width * self.value_width,
            convolution: inputs * self.kernel.saturating_sub(1),
        }
    }
}

impl KimiDelta {
    fn state(&self, tensor: u32) -> StateElements {
        let heads = ranks::share(self.heads, tensor);
        StateElements {
            recurrence: heads * self.width * self.width,
            convolution: 3 * heads * self.width * self.kernel.saturating_sub(1),
        }
    }
}

impl Mamba2 {
    /// Groups are padded to the ranks.
    fn state(&self, tensor: u32) -> StateElements {
        let inner = ranks::share(self.heads, tensor) * self.width;
        let groups = ranks::share(self.groups, tensor);
        StateElements {
            recurrence: inner * self.state,
            convolution: (inner + 2 * groups * self.state) * self.kernel.saturating_sub(1),
        }
    }
}

impl Mamba1 {
    fn state(&self, tensor: u32) -> StateElements {
        let inner = ranks::share(self.inner, tensor);
        StateElements {
            recurrence: inner * self.state,
            convolution: inner * self.kernel.saturating_sub(1),
        }
    }
}

impl Lightning {
    fn state(&self, tensor: u32) -> StateElements {
        let heads = ranks::share(self.heads, tensor);
        StateElements { recurrence: heads * self.width * self.width, convolution: 0 }
    }
}

impl ShortConv {
    fn state(&self, tensor: u32) -> StateElements {
        let inputs = ranks::share(self.width, tensor);
        StateElements { recurrence: 0, convolution: inputs * self.kernel.saturating_sub(1) }
    }
}
