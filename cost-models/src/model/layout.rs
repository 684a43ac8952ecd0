//! What engines really allocate for a sequence: pages, padded cells, rows with scales.
//!
//! An engine's layout is larger than the algorithm's bytes, sometimes much: a hybrid model's pages are pinned to its
//! state, and an 8-bit latent keeps its rotary part in 16. Each rule names its engine; a plan shows both figures.

use super::Model;
use super::kv::{KvBytes, KvFormat, StateElements, index_key_bytes};
use super::layer::{
    AttentionSpan, CompressedAttention, CompressedPast, HeadsAttention, LatentAttention, Mixer,
};

/// Whose layout.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum EngineLayout {
    /// Bytes of the algorithm, no engine.
    Algorithm,
    /// vLLM's pages.
    Vllm {
        /// Tokens a block.
        block: u64,
        /// Tokens that one step may add to a sequence (`max_num_batched_tokens`).
        in_flight: u64,
        /// States a sequence: 1, and one for each draft token.
        state_slots: u64,
    },
    /// llama.cpp's cells, padded to 256.
    LlamaCpp {
        /// Tokens of a micro-batch (`-ub`).
        micro_batch: u64,
    },
}

/// One token's latent as attention kernels of vLLM store it in less than 16 bits.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum LatentRow {
    /// `fp8_ds_mla` of DeepSeek-V3.2 and GLM-5: 512 fp8, a scale (f32) for each 128, 64 rotary elements in bf16.
    Fp8DsMla,
    /// DeepSeek-V4's: 448 fp8, 64 rotary elements in bf16, a scale (1 byte) for each 64, padded to 8.
    Fp8V4,
    /// DeepSeek-V4.1's published size.
    Fp8V41,
    /// `nvfp4_ds_mla`'s published size.
    Nvfp4DsMla,
}

impl LatentRow {
    /// Bytes of one token in one layer.
    pub const fn bytes(self) -> u64 {
        match self {
            Self::Fp8DsMla => 512 + 4 * (512 / 128) + 2 * 64,
            Self::Fp8V4 => 448 + 2 * 64 + 8,
            Self::Fp8V41 => 528,
            Self::Nvfp4DsMla => 352,
        }
    }
}

/// vLLM aligns the pages of DeepSeek-V4's caches to this.
const V4_PAGE: u64 = 576;

impl Model {
    /// What `sequences` sequences of `context` tokens take on one of `tensor` ranks in this engine.
    pub fn kv_in(
        &self,
        engine: EngineLayout,
        context: u64,
        sequences: u64,
        format: KvFormat,
        tensor: u32,
    ) -> KvBytes {
        let one = match engine {
            EngineLayout::Algorithm => self.kv(context, format, tensor),
            EngineLayout::Vllm { block, in_flight, state_slots } => {
                let pages = Pages { block: block.max(1), in_flight, state_slots, format, tensor };
                self.vllm(context, &pages)
            }
            EngineLayout::LlamaCpp { micro_batch } => {
                return self.llama_cpp(context, sequences, micro_batch, format, tensor);
            }
        };
        KvBytes {
            tokens: one.tokens.saturating_mul(sequences),
            state: one.state.saturating_mul(sequences),
        }
    }

    fn vllm(&self, context: u64, pages: &Pages) -> KvBytes {
        let pinned = self.pinned_page(pages);
        let block = pinned.map_or(pages.block, |(block, _)| block);
        let mut sum = KvBytes::default();
        for layer in &self.layers {
            let tokens = match &layer.mixer {
                Mixer::None => 0,
                Mixer::Heads(heads) => pages.heads(heads, context, block),
                Mixer::Latent(latent) => pages.latent(latent, context, block),
                Mixer::Compressed(compressed) => {
                    let (tokens, fixed) = v4_pages(compressed, context);
                    sum.state = sum.state.saturating_add(fixed);
                    tokens
                }
                _ => {
                    let page = pinned.map_or(0, |(_, page)| page);
                    let states = page.saturating_mul(pages.state_slots.max(1));
                    sum.state = sum.state.saturating_add(states);
                    0
                }
            };
            sum.tokens = sum.tokens.saturating_add(tokens);
        }
        sum
    }

    /// Tokens a block and bytes a page of a hybrid model: vLLM has one page size for all groups of layers, so
    /// attention blocks grow until their page holds a state, and states are padded to that page.
    fn pinned_page(&self, pages: &Pages) -> Option<(u64, u64)> {
        let state = |mixer: &Mixer| mixer.state(pages.tensor).map(StateElements::bytes);
        let state = self.layers.iter().filter_map(|layer| state(&layer.mixer)).max()?;
        let row = |mixer: &Mixer| mixer.growing_row(pages.format, pages.tensor);
        let Some(row) = self.layers.iter().filter_map(|layer| row(&layer.mixer)).max() else {
            return Some((pages.block, state));
        };
        let block = state.div_ceil(row.max(1)).next_multiple_of(16).max(pages.block);
        Some((block, block.saturating_mul(row)))
    }

    fn llama_cpp(
        &self,
        context: u64,
        sequences: u64,
        micro_batch: u64,
        format: KvFormat,
        tensor: u32,
    ) -> KvBytes {
        let pad = |tokens: u64| tokens.checked_next_multiple_of(256).unwrap_or(u64::MAX);
        let all = pad(context).saturating_mul(sequences);
        let mut sum = KvBytes::default();
        for layer in &self.layers {
            let tokens = match &layer.mixer {
                Mixer::Heads(heads) => {
                    let cells = match heads.span {
                        AttentionSpan::Full => all,
                        AttentionSpan::Sliding(window) | AttentionSpan::Chunked(window) => {
                            let kept = window.saturating_mul(sequences);
                            all.min(pad(kept.saturating_add(micro_batch)))
                        }
                    };
                    cells.saturating_mul(heads.row_bytes(format, tensor))
                }
                Mixer::Latent(latent) => all.saturating_mul(latent.row_bytes(format)),
                other => {
                    let one = other.kv(context, format, tensor);
                    // Both parts of a state in f32.
                    let state = other.state(tensor).map_or(one.state, |elements| {
                        (elements.recurrence + elements.convolution) * 4
                    });
                    sum.state = sum.state.saturating_add(state.saturating_mul(sequences));
                    one.tokens.saturating_mul(sequences)
                }
            };
            sum.tokens = sum.tokens.saturating_add(tokens);
        }
        sum
    }
}

struct Pages {
    block: u64,
    in_flight: u64,
    state_slots: u64,
    format: KvFormat,
    tensor: u32,
}

impl Pages {
    fn heads(&self, heads: &HeadsAttention, context: u64, block: u64) -> u64 {
        let blocks = match heads.span {
            AttentionSpan::Full => context.div_ceil(block),
            // A window may straddle one block more than it fills.
            AttentionSpan::Sliding(window) => {
                let kept = context.min((window - 1).saturating_add(self.in_flight));
                kept.div_ceil(block).saturating_add(1)
            }
            AttentionSpan::Chunked(chunk) => {
                context.min(chunk.saturating_add(self.in_flight)).div_ceil(block)
            }
        };
        blocks.saturating_mul(block).saturating_mul(heads.row_bytes(self.format, self.tensor))
    }

    fn latent(&self, latent: &LatentAttention, context: u64, block: u64) -> u64 {
        let index = latent.indexer.map_or(0, |indexer| index_key_bytes(indexer.width));
        let sparse = self.format == KvFormat::Fp8 && (latent.latent, latent.rope) == (512, 64);
        let row = if sparse && latent.indexer.is_some() {
            LatentRow::Fp8DsMla.bytes()
        } else {
            self.format.row(latent.latent + latent.rope)
        };
        context.div_ceil(block).saturating_mul(block).saturating_mul(row + index)
    }
}

/// DeepSeek-V4 in vLLM: bytes that grow by the page, and what is fixed (window and entries in the making).
///
/// Pages hold 256 tokens; the window takes two of 64, states of the heavy kind come in blocks of 8 tokens, those of
/// the sparse kind in blocks of 4. Reproduces the engine's own figures for DeepSeek-V4-Flash.
fn v4_pages(attention: &CompressedAttention, context: u64) -> (u64, u64) {
    let align = |bytes: u64| bytes.next_multiple_of(V4_PAGE);
    let row = LatentRow::Fp8V4.bytes();
    let window = attention.window.div_ceil(64).saturating_mul(align(64 * row));
    let pages = context.div_ceil(256);
    let (page, state) = match attention.past {
        CompressedPast::None => (0, 0),
        CompressedPast::Heavy(ratio) => {
            let entries = 256 / ratio.clamp(1, 256);
            let block = align(8 * 2 * attention.width * 4);
            (align(entries * row), ratio.div_ceil(8) * block)
        }
        CompressedPast::Sparse(ratio, indexer) => {
            let entries = 256 / ratio.clamp(1, 256);
            // Values and gates of two overlapping windows, f32.
            let block = |width: u64| 2 * align(ratio * 2 * 2 * width * 4);
            let page = align(entries * row) + align(entries * index_key_bytes(indexer.width));
            (page, block(attention.width) + block(indexer.width))
        }
    };
    (pages.saturating_mul(page), window + state)
}

#[cfg(test)]
mod tests {
    use super::*;

    const VLLM: EngineLayout = EngineLayout::Vllm { block: 16, in_flight: 2048, state_slots: 1 };
    const LLAMA: EngineLayout = EngineLayout::LlamaCpp { micro_batch: 512 };

    fn model(name: &str) -> Model {
        Model::builtin(name).unwrap()
    }

    #[test]
    fn rows_of_latents_are_the_published_ones() {
        let rows =
            [LatentRow::Fp8DsMla, LatentRow::Fp8V4, LatentRow::Fp8V41, LatentRow::Nvfp4DsMla];
        assert_eq!(rows.map(LatentRow::bytes), [656, 584, 528, 352]);
    }

    #[test]
    fn sparse_latents_in_fp8_are_not_half() {
        let tokens = |name, format| model(name).kv_in(VLLM, 1024, 1, format, 1).tokens;
        assert_eq!(tokens("DeepSeek-V3.2", KvFormat::Fp8), 61 * 1024 * (656 + 132));
        assert_eq!(tokens("DeepSeek-V3.2", KvFormat::Bf16), 61 * 1024 * (1152 + 132));
        assert_eq!(tokens("DeepSeek-V3", KvFormat::Fp8), 61 * 1024 * 576);
        // Index keys on 21 of 78 layers.
        let glm = tokens("GLM-5.2", KvFormat::Bf16);
        assert_eq!(glm, 78 * 1024 * 1152 + 21 * 1024 * 132);
    }

    #[test]
    fn windows_reserve_what_a_step_may_add() {
        // gpt-oss-20b: 12 layers of each kind, 8 heads of 64 each way in bf16, a window of 128.
        let row = 2 * 8 * 64 * 2;
        let paged = model("gpt-oss-20b").kv_in(VLLM, 100_000, 1, KvFormat::Bf16, 1).tokens;
        let windowed = (127 + 2048u64).div_ceil(16) + 1;
        assert_eq!(paged, 12 * row * 100_000 + 12 * row * windowed * 16);
        let cells = model("gpt-oss-20b").kv_in(LLAMA, 100_000, 4, KvFormat::Bf16, 1).tokens;
        // 100,000 is padded to 391 x 256; four windows and a micro-batch to 1,024.
        assert_eq!(cells, 12 * row * (4 * 391 * 256 + 1024));
        let short = model("gpt-oss-20b").kv_in(LLAMA, 10, 1, KvFormat::Bf16, 1).tokens;
        assert_eq!(short, 24 * row * 256);
    }

    #[test]
    fn hybrid_pages_are_pinned_to_the_state() {
        // Qwen3.5-35B: a state of 2,146,304 bytes a layer, 2,048 bytes a token of attention: blocks of 1,056.
        let kv = model("Qwen3.5-35B-A3B").kv_in(VLLM, 1, 1, KvFormat::Bf16, 1);
        assert_eq!(kv.tokens, 10 * 1056 * 2048);
        assert_eq!(kv.state, 30 * 1056 * 2048);
        // Half the bytes an element make blocks twice as long: a short context saves nothing.
        let fp8 = model("Qwen3.5-35B-A3B").kv_in(VLLM, 1, 1, KvFormat::Fp8, 1);
        assert!(fp8.tokens >= kv.tokens * 99 / 100, "{fp8:?}");
        let llama = model("Qwen3.5-35B-A3B").kv_in(LLAMA, 1, 2, KvFormat::Bf16, 1);
        assert!(llama.state > 2 * 64_389_120, "the convolution is kept in f32");
    }

    #[test]
    fn engines_never_take_less_than_the_algorithm() {
        for name in ["gpt-oss-20b", "DeepSeek-V3", "Qwen3-Next-80B-A3B", "Llama-4-Scout", "Kimi-K3"]
        {
            for context in [1, 1000, 131_072] {
                let plain =
                    model(name).kv_in(EngineLayout::Algorithm, context, 3, KvFormat::Bf16, 1);
                for engine in [VLLM, LLAMA] {
                    let taken = model(name).kv_in(engine, context, 3, KvFormat::Bf16, 1);
                    assert!(taken.total() >= plain.total(), "{name} {context} {engine:?}");
                }
            }
        }
    }
}
