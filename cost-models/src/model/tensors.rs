//! The tensors of a model as llama.cpp's converter writes them: roles, rows and columns, layer by layer.
//!
//! Names are not kept: a recipe asks for a role, a plan for the part of the model. Vectors, routers, convolutions and
//! biases are [`Role::Small`], which every file keeps in f32.

mod latent;
mod recurrent;

use super::Model;
use super::layer::{Experts, HeadsAttention, Layer, Mixer, OutputGate, QkNorm};
use crate::format::{GgmlType, Role};

/// Which part of the model a tensor belongs to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Part {
    /// Routed experts of a layer.
    Routed,
    /// Shared experts of a layer.
    Shared,
    /// Everything else in a layer.
    Dense,
    /// The token embedding.
    Embedding,
    /// The output head.
    Head,
    /// A table of n-grams.
    Table,
    /// What lies outside the layers beside all these.
    Outside,
}

/// One tensor; of routed experts, one matrix of all experts of a layer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Tensor {
    /// What it is for.
    pub role: Role,
    /// Where it belongs.
    pub part: Part,
    /// Its layer, from 0; draft layers come after the model's. 0 outside of layers.
    pub layer: u32,
    /// Rows, those of all experts together.
    pub rows: u64,
    /// Weights of a row.
    pub columns: u64,
}

impl Tensor {
    /// Its weights.
    pub fn elements(&self) -> u64 {
        self.rows.saturating_mul(self.columns)
    }

    /// Its bytes in this type, or the one that its width falls back to.
    pub fn bytes(&self, kind: GgmlType) -> u64 {
        kind.tensor_bytes(self.rows, self.columns)
    }
}

/// How the converter of the time wrote latent attention.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum LatentTensors {
    /// Keys and values of all heads in one matrix (before 2025-04).
    Joined,
    /// One matrix for keys, one for values.
    Split,
    /// Both forms (ik_llama.cpp's files).
    Both,
}

/// Every tensor of a model, in the order of a file.
pub fn tensors(model: &Model, latent: LatentTensors, drafts: bool) -> Vec<Tensor> {
    let mut list = List { tensors: Vec::new(), hidden: model.hidden, layer: 0, latent };
    list.outside(Role::Embedding, Part::Embedding, model.vocab);
    if !model.tied {
        list.outside(Role::Head, Part::Head, model.vocab);
    }
    list.small(Part::Outside, model.hidden);
    list.push(Role::Other, Part::Table, model.tables / model.hidden.max(1), model.hidden);
    for layer in &model.layers {
        list.layer(layer);
        list.layer += 1;
    }
    let last = model.layers.iter().rev().find(|layer| layer.experts.is_some());
    if let (true, Some(last)) = (drafts, last) {
        for _ in 0..model.mtp_layers {
            list.layer(last);
            list.dense(Role::Other, model.hidden, 2 * model.hidden);
            for _ in 0..3 {
                list.small(Part::Dense, model.hidden);
            }
            if model.mtp_copies_embedding {
                list.dense(Role::Other, model.vocab, model.hidden);
                list.dense(Role::Other, model.vocab, model.hidden);
            }
            list.layer += 1;
        }
    }
    list.tensors
}

struct List {
    tensors: Vec<Tensor>,
    hidden: u64,
    layer: u32,
    latent: LatentTensors,
}

impl List {
    fn push(&mut self, role: Role, part: Part, rows: u64, columns: u64) {
        if rows > 0 && columns > 0 {
            self.tensors.push(Tensor { role, part, layer: self.layer, rows, columns });
        }
    }

    fn outside(&mut self, role: Role, part: Part, rows: u64) {
        self.push(role, part, rows, self.hidden);
    }

    fn dense(&mut self, role: Role, rows: u64, columns: u64) {
        self.push(role, Part::Dense, rows, columns);
    }

    /// A vector, or a matrix that is kept in f32.
    fn small(&mut self, part: Part, elements: u64) {
        self.push(Role::Small, part, 1, elements);
    }

    fn vectors(&mut self, elements: &[u64]) {
        for elements in elements {
            self.small(Part::Dense, *elements);
        }
    }

    fn layer(&mut self, layer: &Layer) {
        match &layer.mixer {
            Mixer::None => {}
            Mixer::Heads(heads) => self.heads(heads),
            Mixer::Latent(latent) => self.latent(latent),
            Mixer::Compressed(compressed) => self.compressed(compressed),
            Mixer::GatedDelta(delta) => self.gated_delta(delta),
            Mixer::KimiDelta(delta) => self.kimi_delta(delta),
            Mixer::Mamba1(mamba) => self.mamba1(mamba),
            Mixer::Mamba2(mamba) => self.mamba2(mamba),
            Mixer::Lightning(lightning) => self.lightning(lightning),
            Mixer::ShortConv(conv) => self.short_conv(conv),
        }
        self.streams(layer);
        self.vectors(&[layer.norm_after_mixer]);
        // One norm or several: of the same width.
        let norms = layer.other_norms / self.hidden.max(1);
        for _ in 0..norms.min(16) {
            self.small(Part::Dense, layer.other_norms / norms);
        }
        if let Some(dense) = layer.dense {
            self.feed_forward(Part::Dense, dense.matrices, self.hidden, dense.inner, 1);
        }
        if let Some(experts) = &layer.experts {
            self.experts(experts);
        }
    }

    fn feed_forward(&mut self, part: Part, matrices: u64, io: u64, inner: u64, count: u64) {
        for _ in 1..matrices.clamp(1, 3) {
            self.push(Role::Into, part, inner.saturating_mul(count), io);
        }
        self.push(Role::Down, part, io.saturating_mul(count), inner);
    }

    fn experts(&mut self, experts: &Experts) {
        let (count, hidden) = (u64::from(experts.count), self.hidden);
        self.small(Part::Dense, hidden * count);
        self.small(Part::Dense, experts.router_extra);
        let shape = &experts.shape;
        let (io, inner) = (u64::from(shape.io_width), u64::from(shape.inner_width));
        self.feed_forward(Part::Routed, shape.matrices.into(), io, inner, count);
        if shape.biases {
            for width in [inner, inner, io] {
                self.small(Part::Routed, width * count);
            }
        }
        let shared = experts.shared;
        self.feed_forward(Part::Shared, shared.matrices, hidden, shared.inner, 1);
        if shared.gated {
            self.small(Part::Shared, hidden);
        }
        let latent = experts.latent_projections / 2 / hidden.max(1);
        self.dense(Role::Other, latent, hidden);
        self.dense(Role::Other, hidden, latent);
    }

    fn heads(&mut self, heads: &HeadsAttention) {
        let hidden = self.hidden;
        let queries = heads.query_heads * heads.key_width;
        let keys = heads.kv_heads * heads.key_width;
        let values = heads.kv_heads * heads.value_width;
        match heads.query_rank {
            Some(rank) => {
                self.dense(Role::Other, rank, hidden);
                self.dense(Role::Query, queries, rank);
                self.vectors(&[rank]);
            }
            // A gate of every element is part of the queries' matrix.
            None if heads.output_gate == OutputGate::Elements => {
                self.dense(Role::Query, 2 * queries, hidden);
            }
            None => self.dense(Role::Query, queries, hidden),
        }
        if heads.output_gate == OutputGate::Heads {
            self.dense(Role::Other, heads.query_heads, hidden);
        }
        if !heads.borrows_keys {
            self.dense(Role::Key, keys, hidden);
            if !heads.values_from_keys {
                self.dense(Role::Value, values, hidden);
            }
        }
        if let Some(indexer) = heads.indexer {
            self.indexer(indexer, hidden);
        }
        self.dense(Role::Other, heads.query_heads * heads.relative, hidden);
        if heads.convolved.0 > 0 {
            self.vectors(&[heads.convolved.0 * heads.convolved.1]);
        }
        self.dense(Role::Output, hidden, heads.query_heads * heads.value_width);
        if heads.qkv_bias {
            self.vectors(&[queries, keys, values]);
        }
        if heads.output_bias {
            self.vectors(&[hidden]);
        }
        match heads.qk_norm {
            QkNorm::None => {}
            QkNorm::Head => self.vectors(&[heads.key_width; 2]),
            QkNorm::Projection => self.vectors(&[queries, keys]),
        }
        if heads.sinks {
            self.vectors(&[heads.query_heads]);
        }
    }

    /// Matrices that mix residual streams: small, but of low rank where they are large.
    fn streams(&mut self, layer: &Layer) {
        if layer.streams <= 1 {
            return;
        }
        let all = layer.streams * self.hidden;
        for _ in 0..2 {
            match layer.stream_rank {
                Some(rank) => {
                    self.dense(Role::Other, rank, all);
                    self.dense(Role::Other, all, rank);
                }
                None => self.vectors(&[(2 + layer.streams) * layer.streams * all]),
            }
        }
    }
}
