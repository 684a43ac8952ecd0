//! Small traces for tests: random from a seed, or written out.

use hotset_traces::{Ids, LayerShape, Sequence, Shape, Trace, TraceBuilder, Weights};

/// A stream of numbers from a seed (SplitMix64).
pub struct Numbers(pub u64);

impl Numbers {
    /// A number below `bound`.
    pub fn below(&mut self, bound: u32) -> u32 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut word = self.0;
        word = (word ^ (word >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        word = (word ^ (word >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        ((word ^ (word >> 31)) % u64::from(bound)) as u32
    }

    /// `count` distinct experts of `experts`, the low ones more often.
    pub fn experts(&mut self, count: u32, experts: u32) -> Vec<u16> {
        let mut chosen = Vec::new();
        while chosen.len() < count as usize {
            let expert = self.below(experts).min(self.below(experts)) as u16;
            if !chosen.contains(&expert) {
                chosen.push(expert);
            }
        }
        chosen
    }
}

/// Three sequences with prompts, answers and some verified drafts over layers that differ in
/// experts and sizes, with predictions one and two layers ahead, right about half of the time.
pub fn random_trace(seed: u64) -> Trace {
    random_builder(seed).build().unwrap()
}

/// [`random_trace`] with weights that halve with each rank.
pub fn random_weighted(seed: u64) -> Trace {
    let builder = random_builder(seed);
    let bare = random_trace(seed);
    let layers = bare.shape().layers().iter();
    let row: Vec<f32> =
        layers.flat_map(|layer| (1..=layer.top_k).map(|rank| 0.5f32.powi(rank as i32))).collect();
    builder.weights(Weights::F32(row.repeat(bare.tokens()))).build().unwrap()
}

fn random_builder(seed: u64) -> TraceBuilder {
    let mut numbers = Numbers(seed);
    let layers: Vec<LayerShape> = (0..1 + numbers.below(4))
        .map(|number| LayerShape {
            number,
            experts: 4 + numbers.below(6),
            top_k: 1 + numbers.below(3),
            expert_bytes: 4096 << numbers.below(13),
        })
        .collect();
    let (mut ids, mut phases, mut sequences) = (Vec::new(), Vec::new(), Vec::new());
    for id in 0..3 {
        let start = phases.len();
        let prompt = 1 + numbers.below(12);
        phases.extend(std::iter::repeat_n(0u8, prompt as usize));
        for _ in 0..1 + numbers.below(25) {
            phases.push(if numbers.below(5) == 0 { 2 } else { 1 });
        }
        let (label, document, has_repetition) = (String::new(), None, None);
        let rows = start..phases.len();
        sequences.push(Sequence {
            id,
            label,
            document,
            prompt_tokens: prompt,
            has_repetition,
            rows,
        });
    }
    for _ in 0..phases.len() {
        for layer in &layers {
            ids.extend(numbers.experts(layer.top_k, layer.experts));
        }
    }
    let width = 3;
    let mut predictions = Vec::new();
    for ahead in 0..2 {
        for _ in 0..phases.len() {
            for (index, layer) in layers.iter().enumerate() {
                let known = if index > ahead { width as u32 } else { 0 };
                let mut entry = numbers.experts(known, layer.experts);
                entry.resize(width, u16::MAX);
                predictions.extend(entry);
            }
        }
    }
    TraceBuilder::new("random", Shape::new(layers).unwrap(), Ids::U16(ids))
        .sequences(sequences)
        .phases(phases)
        .predictions(2, width, Ids::U16(predictions))
}

/// Decode tokens of one sequence, `rows[token][layer]` experts each, of `experts` in each layer.
pub fn decode_trace(experts: u32, bytes: u64, rows: &[&[&[u8]]]) -> TraceBuilder {
    let (layers, top_k) = (rows[0].len() as u32, rows[0][0].len() as u32);
    let shape = Shape::uniform(layers, experts, top_k).unwrap().with_expert_bytes(bytes);
    let ids = rows.iter().flat_map(|row| row.concat()).collect();
    TraceBuilder::new("by hand", shape, Ids::U8(ids))
}
