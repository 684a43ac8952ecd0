//! Buffers of engines that plan a graph (ggml): formulas from the model's shape, figures from the engine's file.
//!
//! The accelerator's buffer is as large as the largest thing that is alive at once: logits of a micro-batch, attention
//! over the context, or experts that the host keeps and a batch has copied. The host's holds what goes in (mask and
//! embedded tokens) and, where it computes experts or everything, the same as an accelerator would.

use hotset_cost_models::Model;
use hotset_cost_models::model::Mixer;
use hotset_cost_models::model::layer::LatentAttention;

use super::memory::{BufferRules, Latent};

const MIB: u64 = 1 << 20;

/// What is run.
#[derive(Clone, Copy, Debug)]
pub struct Graph<'a> {
    /// The model.
    pub model: &'a Model,
    /// Tokens of a micro-batch.
    pub micro_batch: u64,
    /// Cells of keys and values that attention sees.
    pub cells: u64,
    /// Flash attention: scores are never whole.
    pub flash: bool,
    /// How latents are used; `None`: as the engine does by default.
    pub latent: Option<Latent>,
    /// Bytes that spread keys and values are held to at a time, where they are.
    pub most_spread: Option<u64>,
    /// Bytes of an element of keys and values.
    pub kv_bytes: f64,
    /// Where experts are.
    pub experts: Placed,
    /// The largest layer's matrix of all experts, bytes.
    pub expert_matrix: u64,
}

/// Where experts are.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Placed {
    /// All on accelerators.
    Accelerator,
    /// Some layers' on the host.
    Host,
    /// Everything is on the host.
    NoAccelerator,
    /// Whole layers, attention with them, are on the host.
    LayersOnHost,
}

impl BufferRules {
    /// The largest buffer of an accelerator, bytes.
    #[must_use]
    pub fn device(&self, graph: &Graph<'_>) -> u64 {
        let copied = match graph.experts {
            Placed::Host if self.copies(graph) => self.copied(graph),
            _ => 0,
        };
        self.head(graph).max(self.attention(graph, 2.0)).max(self.experts(graph)).max(copied)
    }

    /// The host's buffer, bytes.
    #[must_use]
    pub fn host(&self, graph: &Graph<'_>) -> u64 {
        let row = graph.model.hidden.saturating_mul(4);
        match graph.experts {
            Placed::NoAccelerator => self.head(graph).max(self.attention(graph, graph.kv_bytes)),
            Placed::LayersOnHost => self.attention(graph, graph.kv_bytes),
            placed => {
                // The mask is f32 where something runs on the host, perhaps f16 where flash attention alone reads it.
                let whole = placed == Placed::Host || !graph.flash;
                let mask = if whole { 4.0 } else { self.mask_bytes.value };
                let taken = ((graph.cells as f64 * mask) as u64).saturating_add(row);
                let computed = placed == Placed::Host && !self.copies(graph);
                let experts = if computed { widest_expert_row(graph.model) } else { 0 };
                graph.micro_batch.saturating_mul(taken.saturating_add(experts))
            }
        }
    }

    /// What the device's kernels take for a while beside planned buffers: rows sorted by expert.
    #[must_use]
    pub fn pool(&self, graph: &Graph<'_>) -> u64 {
        graph.micro_batch.saturating_mul(widest_expert_row(graph.model))
    }

    fn copies(&self, graph: &Graph<'_>) -> bool {
        let experts = graph.model.moe_layers().map(|(_, experts)| experts).next();
        let Some(experts) = experts else { return false };
        let an_expert =
            graph.micro_batch as f64 * f64::from(experts.top_k) / f64::from(experts.count.max(1));
        graph.micro_batch as f64 >= self.copied_tokens.value
            && an_expert >= self.copied_tokens_an_expert.value
    }

    /// Logits and the hidden states that they come from.
    fn head(&self, graph: &Graph<'_>) -> u64 {
        let hidden = (graph.model.hidden as f64 * self.hidden_rows.value) as u64;
        let row = graph.model.vocab.saturating_add(hidden).saturating_mul(4);
        graph.micro_batch.saturating_mul(row)
    }

    /// Experts of the host copied for one layer, and the micro-batch's way through them.
    fn copied(&self, graph: &Graph<'_>) -> u64 {
        let matrices = (graph.expert_matrix as f64 * self.copied_matrices.value) as u64;
        let experts = graph.model.moe_layers().map(|(_, experts)| experts);
        let inner = experts.map(|e| u64::from(e.top_k) * u64::from(e.shape.inner_width)).max();
        let row = inner.unwrap_or(0).saturating_add(graph.model.hidden).saturating_mul(4);
        matrices.saturating_add(graph.micro_batch.saturating_mul(row))
    }

    /// A micro-batch's way through a layer's experts.
    fn experts(&self, graph: &Graph<'_>) -> u64 {
        let beside = graph.model.hidden.saturating_mul(4 * 2);
        graph.micro_batch.saturating_mul(widest_expert_row(graph.model).saturating_add(beside))
    }

    /// Attention of the widest layer over all cells.
    fn attention(&self, graph: &Graph<'_>, kv_bytes: f64) -> u64 {
        let layers = graph.model.layers.iter();
        let of = |mixer: &Mixer| match mixer {
            Mixer::Heads(heads) => self.scores(graph, heads.query_heads),
            Mixer::Latent(latent) => self.latent(graph, latent, kv_bytes),
            Mixer::Compressed(compressed) => self.scores(graph, compressed.heads),
            _ => 0,
        };
        layers.map(|layer| of(&layer.mixer)).max().unwrap_or(0)
    }

    /// Scores of all heads where they are whole, beside what the head takes.
    fn scores(&self, graph: &Graph<'_>, heads: u64) -> u64 {
        if graph.flash {
            return 0;
        }
        let cell = graph.micro_batch.saturating_mul(4).saturating_mul(heads.saturating_add(1));
        cell.saturating_mul(graph.cells).saturating_add(self.head(graph))
    }

    fn latent(&self, graph: &Graph<'_>, latent: &LatentAttention, kv_bytes: f64) -> u64 {
        let kind = graph.latent.unwrap_or(self.latent);
        if kind != Latent::Spread || !graph.flash {
            return self.scores(graph, latent.heads);
        }
        let width = latent.nope + latent.rope + latent.value;
        let spread = (latent.heads * width) as f64 * kv_bytes * graph.cells as f64;
        // The f32 from which they are made, in slices of heads where a bound is given.
        let raw = latent.heads.saturating_mul(latent.nope + latent.value).saturating_mul(4);
        let mut raw = raw.saturating_mul(graph.cells);
        if let Some(most) = graph.most_spread {
            while raw > most.max(MIB) {
                raw /= 2;
            }
        }
        let mask = graph.micro_batch.saturating_mul(6).saturating_mul(graph.cells);
        let rows = graph.model.hidden as f64 * self.latent_rows.value * 4.0;
        let rows = (graph.micro_batch as f64 * rows) as u64;
        (spread as u64).saturating_add(raw).saturating_add(mask).saturating_add(rows)
    }
}

/// Bytes of one token's way through the experts that it chose: what goes in and comes out of each, f32.
fn widest_expert_row(model: &Model) -> u64 {
    let row = |experts: &hotset_cost_models::model::Experts| {
        let width = model.hidden.saturating_add(experts.shape.inner_width.into());
        width.saturating_mul(u64::from(experts.top_k)).saturating_mul(4)
    };
    model.moe_layers().map(|(_, experts)| row(experts)).max().unwrap_or(0)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::engine::find_engine;

    fn rules(engine: &str) -> BufferRules {
        find_engine(engine).unwrap().memory.unwrap().buffers.unwrap()
    }

    fn graph(model: &Model, micro_batch: u64, cells: u64) -> Graph<'_> {
        Graph {
            model,
            micro_batch,
            cells,
            flash: true,
            latent: None,
            most_spread: None,
            kv_bytes: 2.0,
            experts: Placed::Accelerator,
            expert_matrix: 0,
        }
    }

    #[test]
    fn logits_by_hand() {
        let model = Model::builtin("Qwen3-30B-A3B").unwrap();
        // 512 tokens of 151,936 logits and two hidden states of 2,048, f32: 304.75 MiB.
        let bytes = rules("llama.cpp").device(&graph(&model, 512, 4096));
        assert_eq!(bytes, 512 * 4 * (151_936 + 2 * 2048));
        // Scores of 32 heads and the mask without flash attention.
        let whole = Graph { flash: false, ..graph(&model, 512, 4096) };
        assert_eq!(rules("llama.cpp").device(&whole), bytes + 4 * 512 * 33 * 4096);
    }

    #[test]
    fn the_host_computes_experts_of_small_batches() {
        let model = Model::builtin("DeepSeek-V3").unwrap();
        let on_host = |ub| Graph { experts: Placed::Host, ..graph(&model, ub, 2048) };
        // 16 tokens an expert: eight experts' inputs and outputs, the mask, the embedded tokens.
        let small = rules("ik_llama.cpp").host(&on_host(512));
        assert_eq!(small, 512 * 4 * (8 * (7168 + 2048) + 7168 + 2048));
        // 64 tokens an expert: they are copied to the accelerator.
        assert_eq!(rules("ik_llama.cpp").host(&on_host(2048)), 2048 * 4 * (7168 + 2048));
        assert_eq!(rules("llama.cpp").host(&on_host(512)), 512 * 4 * (7168 + 2048));
    }

    #[test]
    fn spread_latents_are_held_to_a_bound() {
        let model = Model::builtin("DeepSeek-V3").unwrap();
        let at = |most_spread| Graph { most_spread, ..graph(&model, 2048, 32768) };
        let rules = rules("ik_llama.cpp");
        let bounded = rules.device(&at(Some(512 << 20)));
        // 4 GiB in f32 are made in eight slices.
        assert_eq!(rules.device(&at(None)) - bounded, (4096 - 512) << 20);
    }
}
