//! A model's bytes in a GGUF file of a named mix, tensor by tensor.

mod assign;
mod counts;

use std::collections::BTreeMap;

use super::bytes::{LayerExperts, WeightBytes};
use super::tensors::{Part, Tensor};
use super::{Model, Stored};
use crate::format::{GgmlType, Mix, Role};

/// What the bytes of a mix rest on.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Basis {
    /// The quantiser's rules, tensor by tensor.
    Rules,
    /// A table of the file's tensor types, which tensors have them inferred.
    Counts,
    /// A name alone whose rules are not public: the range is what to believe.
    Guess,
}

/// What a model takes in a GGUF file.
#[derive(Clone, Debug, PartialEq)]
pub struct GgufBytes {
    /// By part, whole; slots as stored.
    pub weights: WeightBytes,
    /// Bytes of each layer without its routed experts, draft layers not among them.
    pub layers: Vec<u64>,
    /// Bytes outside the layers beside embedding and head.
    pub outside: u64,
    /// The least that such a file takes, in bytes.
    pub low: u64,
    /// The most.
    pub high: u64,
    /// What this rests on.
    pub basis: Basis,
    /// Tensors by type, as a load log prints them.
    pub types: Vec<(GgmlType, u32)>,
    /// Weights of all tensors, for bits a weight.
    pub elements: u64,
    /// The types of the expert tensors, with how many layers use each, for a person.
    pub expert_types: Vec<String>,
}

impl GgufBytes {
    /// All tensors, those of draft layers included.
    pub fn total(&self) -> u64 {
        self.weights.with_mtp()
    }

    /// Routed experts, those of draft layers left out.
    pub fn experts(&self) -> u64 {
        self.weights.routed()
    }

    /// The token embedding, which llama.cpp keeps on the host.
    pub fn embedding(&self) -> u64 {
        self.weights.embed
    }

    /// The output head; 0 where it is the embedding.
    pub fn head(&self) -> u64 {
        self.weights.lm_head
    }

    /// All but embedding, routed experts and draft layers: what goes to the GPU where all experts stay on the host.
    pub fn dense_gpu(&self) -> u64 {
        [self.weights.dense, self.weights.shared, self.weights.lm_head]
            .iter()
            .fold(0, |sum, part| sum.saturating_add(*part))
    }

    /// Part by part half of the way to another file of the same model.
    fn halfway(mut self, other: &Self) -> Self {
        let middle = |mine: &mut u64, other: u64| *mine = *mine / 2 + other / 2;
        let (mine, others) = (&mut self.weights, &other.weights);
        for (mine, other) in mine.experts.iter_mut().zip(&others.experts) {
            middle(&mut mine.stored, other.stored);
            middle(&mut mine.slot, other.slot);
        }
        middle(&mut mine.dense, others.dense);
        middle(&mut mine.shared, others.shared);
        middle(&mut mine.embed, others.embed);
        middle(&mut mine.lm_head, others.lm_head);
        middle(&mut mine.tables, others.tables);
        middle(&mut mine.mtp_dense, others.mtp_dense);
        middle(&mut mine.mtp_experts, others.mtp_experts);
        for (mine, other) in self.layers.iter_mut().zip(&other.layers) {
            middle(mine, *other);
        }
        middle(&mut self.outside, other.outside);
        self
    }

    /// Bits a weight over the whole file.
    pub fn bits(&self) -> f64 {
        self.total() as f64 * 8.0 / self.elements.max(1) as f64
    }
}

impl Model {
    /// What the model takes in a GGUF file of this mix, whole.
    ///
    /// ```
    /// use hotset_cost_models::{Mix, Model};
    ///
    /// let model = Model::builtin("Qwen3-30B-A3B").unwrap();
    /// let file = model.gguf_bytes(&Mix::parse("Q4_K_M").unwrap());
    /// assert_eq!(file.total() >> 20, 17_691); // 17.28 GiB
    /// ```
    pub fn gguf_bytes(&self, mix: &Mix) -> GgufBytes {
        assign::assign(self, mix)
    }

    /// The model as a file of this mix holds it: whatever weighs it then uses these bytes.
    #[must_use]
    pub fn quantised(mut self, mix: &Mix) -> Self {
        let bytes = self.gguf_bytes(mix);
        if bytes.basis == Basis::Guess {
            self.notes.push(format!(
                "the rules of `{mix}` are not public: between {:.1} and {:.1} GiB; a file's header, or its load log's \
                 table of types, says more",
                gib(bytes.low),
                gib(bytes.high)
            ));
        }
        self.stored = Some(Stored {
            source: format!("tensor types of {mix}"),
            weights: bytes.weights,
            parameters: None,
            skipped: 0,
            by_rules: true,
            expert_types: bytes.expert_types,
        });
        self
    }
}

fn gib(bytes: u64) -> f64 {
    bytes as f64 / f64::from(1 << 30)
}

/// The bytes of tensors of these types, by part.
fn sum(model: &Model, list: &[Tensor], types: &[GgmlType]) -> GgufBytes {
    let count = model.layers.len();
    let mut sum = GgufBytes {
        weights: WeightBytes::default(),
        layers: vec![0; count],
        outside: 0,
        low: 0,
        high: 0,
        basis: Basis::Rules,
        types: Vec::new(),
        elements: 0,
        expert_types: Vec::new(),
    };
    let mut routed = vec![0u64; count];
    let mut kinds: Vec<Vec<&str>> = vec![Vec::new(); count];
    for (tensor, kind) in list.iter().zip(types) {
        let kind = kind.for_columns(tensor.columns);
        let bytes = tensor.bytes(kind);
        sum.elements = sum.elements.saturating_add(tensor.elements());
        match sum.types.iter_mut().find(|known| known.0 == kind) {
            Some(known) => known.1 += 1,
            None => sum.types.push((kind, 1)),
        }
        let layer = tensor.layer as usize;
        let weights = &mut sum.weights;
        let part = match tensor.part {
            Part::Embedding => &mut weights.embed,
            Part::Head => &mut weights.lm_head,
            Part::Table => &mut weights.tables,
            Part::Outside => {
                sum.outside += bytes;
                &mut weights.dense
            }
            Part::Routed if layer >= count => &mut weights.mtp_experts,
            Part::Dense | Part::Shared if layer >= count => &mut weights.mtp_dense,
            Part::Routed => {
                if tensor.role != Role::Small {
                    kinds[layer].push(kind.name());
                }
                &mut routed[layer]
            }
            Part::Dense => {
                sum.layers[layer] += bytes;
                &mut weights.dense
            }
            Part::Shared => {
                sum.layers[layer] += bytes;
                &mut weights.shared
            }
        };
        *part = part.saturating_add(bytes);
    }
    sum.types.sort_unstable();
    for (layer, experts) in model.moe_layers() {
        let stored = routed[layer as usize].div_ceil(u64::from(experts.count.max(1)));
        let (count, top_k) = (experts.count, experts.top_k);
        sum.weights.experts.push(LayerExperts { layer, count, top_k, stored, slot: stored });
    }
    sum.expert_types = counted(kinds);
    (sum.low, sum.high) = (sum.total(), sum.total());
    sum
}

/// The types of a layer's expert tensors, as `12 x q4_k + q6_k`.
fn counted(kinds: Vec<Vec<&str>>) -> Vec<String> {
    let mut counted: BTreeMap<String, u32> = BTreeMap::new();
    for mut kinds in kinds.into_iter().filter(|kinds| !kinds.is_empty()) {
        kinds.sort_unstable();
        kinds.dedup();
        *counted.entry(kinds.join(" + ")).or_default() += 1;
    }
    counted.into_iter().map(|(kinds, count)| format!("{count} x {kinds}")).collect()
}
