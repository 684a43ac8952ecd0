//! Synthetic traces: any size, any shape, the same on every machine for the same seed.
//!
//! Each expert's score is a Zipf popularity, an offset of the current topic, autoregressive noise
//! (neighbouring tokens resemble each other) and white noise; the top-k scores are chosen. Only
//! additions and multiplications of floats are used, which are exact everywhere.

use rand_pcg::Pcg64Mcg;
use rand_pcg::rand_core::Rng;
use rayon::prelude::*;
use serde_json::json;

use crate::builder::TraceBuilder;
use crate::column::Ids;
use crate::error::{Error, Result};
use crate::math::ln;
use crate::sequence::{Phase, Sequence};
use crate::shape::Shape;
use crate::trace::Trace;

/// What to generate. The defaults are 48 layers of 128 experts with top-8, 50,000 decode tokens.
#[derive(Debug, Clone, PartialEq)]
pub struct SynthConfig {
    /// MoE layers.
    pub layers: u32,
    /// Experts a layer.
    pub experts: u32,
    /// Experts a token uses in a layer.
    pub top_k: u32,
    /// Tokens in all.
    pub tokens: usize,
    /// Tokens a sequence; the last one may be shorter.
    pub sequence_tokens: usize,
    /// Of those, how many are prefill; the rest is decode.
    pub prompt_tokens: usize,
    /// Seed of everything random.
    pub seed: u64,
    /// Weight of `-ln(rank)` in an expert's score: 0 makes all experts equally popular.
    pub popularity: f32,
    /// Standard deviation of the topics' offsets.
    pub topic: f32,
    /// Mean tokens until the topic changes.
    pub topic_tokens: u32,
    /// How many topics there are.
    pub topics: u32,
    /// Weight of the autoregressive noise, whose correlation from token to token is 0.7.
    pub correlated: f32,
    /// Weight of the white noise.
    pub white: f32,
}

impl Default for SynthConfig {
    fn default() -> Self {
        Self {
            layers: 48,
            experts: 128,
            top_k: 8,
            tokens: 50_000,
            sequence_tokens: 512,
            prompt_tokens: 0,
            seed: 0,
            popularity: 0.35,
            topic: 0.6,
            topic_tokens: 256,
            topics: 64,
            correlated: 0.7,
            white: 0.3,
        }
    }
}

/// Correlation of the autoregressive noise, and what keeps its variance at 1: `sqrt(1 - 0.7^2)`.
const RHO: f32 = 0.7;
const INNOVATION: f32 = 0.714_142_8;

/// Generates a trace; layers are made in parallel, each from a random stream of its own.
///
/// # Errors
/// [`Error::Shape`] for an impossible model; [`Error::Column`] for no tokens, no topics, sequences
/// of no tokens, or parameters that are not finite.
pub fn generate(config: &SynthConfig) -> Result<Trace> {
    let shape = Shape::uniform(config.layers, config.experts, config.top_k)?;
    let numbers = [config.popularity, config.topic, config.correlated, config.white];
    if config.sequence_tokens == 0 || config.topics == 0 || config.topic_tokens == 0 {
        return Err(Error::column("synth", "sequence tokens, topics and topic tokens start at 1"));
    }
    if numbers.iter().any(|number| !number.is_finite()) {
        return Err(Error::column("synth", format!("parameters must be finite: {numbers:?}")));
    }
    let (row, top_k) = (shape.row_len(), config.top_k as usize);
    if config.tokens.checked_mul(row).is_none() || u32::try_from(config.tokens).is_err() {
        return Err(Error::column("synth", format!("{} tokens are too many", config.tokens)));
    }
    let topics = topics(config);
    let layers: Vec<Vec<u16>> =
        (0..config.layers).into_par_iter().map(|layer| layer_ids(config, layer, &topics)).collect();
    let mut ids = vec![0u16; config.tokens * row];
    ids.par_chunks_mut(row).enumerate().for_each(|(token, row)| {
        for (chosen, layer) in row.chunks_exact_mut(top_k).zip(&layers) {
            chosen.copy_from_slice(&layer[token * top_k..(token + 1) * top_k]);
        }
    });
    let sequences = sequences(config);
    let in_prompt = |sequence: &Sequence| {
        (0..sequence.rows.len()).map(|position| position < config.prompt_tokens)
    };
    let phase = |prompt| if prompt { Phase::Prefill as u8 } else { Phase::Decode as u8 };
    let phases = sequences.iter().flat_map(in_prompt).map(phase).collect();
    let provenance = json!({ "generator": "hotset synth/1", "config": format!("{config:?}") });
    TraceBuilder::new(format!("synthetic, seed {}", config.seed), shape, Ids::U16(ids))
        .phases(phases)
        .sequences(sequences)
        .provenance(provenance.to_string())
        .build()
}

fn sequences(config: &SynthConfig) -> Vec<Sequence> {
    let starts = (0..config.tokens).step_by(config.sequence_tokens);
    let sequence = |(id, start): (u32, usize)| {
        let end = (start + config.sequence_tokens).min(config.tokens);
        Sequence {
            id,
            label: String::new(),
            document: None,
            prompt_tokens: config.prompt_tokens.min(end - start) as u32,
            has_repetition: None,
            rows: start..end,
        }
    };
    (0..).zip(starts).map(sequence).collect()
}

/// The random stream number `stream` of a seed.
fn stream(seed: u64, stream: u64) -> Pcg64Mcg {
    // One round of SplitMix64 on each half keeps neighbouring seeds and streams apart.
    let mix = |mut x: u64| {
        x = (x ^ x >> 30).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        x = (x ^ x >> 27).wrapping_mul(0x94d0_49bb_1331_11eb);
        x ^ x >> 31
    };
    let high = mix(seed.wrapping_add(0x9e37_79b9_7f4a_7c15));
    let low = mix(high ^ stream.wrapping_mul(0x9e37_79b9_7f4a_7c15).wrapping_add(1));
    Pcg64Mcg::new(u128::from(high) << 64 | u128::from(low))
}

/// Each token's topic: topic n is drawn in proportion to 1/(n + 1), and kept for a geometric time.
fn topics(config: &SynthConfig) -> Vec<u32> {
    let mut rng = stream(config.seed, 0);
    let mut cumulated = Vec::with_capacity(config.topics as usize);
    let mut total = 0u64;
    for n in 0..u64::from(config.topics) {
        total += (1 << 32) / (n + 1);
        cumulated.push(total);
    }
    let change = u64::MAX / u64::from(config.topic_tokens);
    let mut topic = 0;
    (0..config.tokens)
        .map(|token| {
            if token == 0 || rng.next_u64() < change {
                let drawn = rng.next_u64() % total;
                topic = cumulated.partition_point(|&end| end <= drawn) as u32;
            }
            topic
        })
        .collect()
}

/// Two nearly normal numbers of mean 0 and variance 1: sums of four bytes, centred and scaled.
fn normal_pair(rng: &mut Pcg64Mcg) -> (f32, f32) {
    // A byte has variance (256^2 - 1) / 12, four have 21845; the scale is 1 / sqrt(21845).
    const SCALE: f32 = 0.006_765_875;
    let bits = rng.next_u64();
    // Pairs of bytes are added in 16-bit lanes, then pairs of lanes in 32-bit halves.
    let pairs = (bits & 0x00ff_00ff_00ff_00ff) + (bits >> 8 & 0x00ff_00ff_00ff_00ff);
    let sums = (pairs & 0x0000_ffff_0000_ffff) + (pairs >> 16 & 0x0000_ffff_0000_ffff);
    let centred = |sum: u64| (sum as i32 - 510) as f32 * SCALE;
    (centred(sums & 0xffff), centred(sums >> 32))
}

/// One layer's ids, `[tokens][top_k]`, best first.
fn layer_ids(config: &SynthConfig, layer: u32, topics: &[u32]) -> Vec<u16> {
    let mut rng = stream(config.seed, 1 + u64::from(layer));
    let experts = config.experts as usize;
    let popularity = popularity(config, &mut rng);
    let offsets: Vec<f32> = (0..config.topics as usize * experts)
        .map(|at| popularity[at % experts] + config.topic * normal_pair(&mut rng).0)
        .collect();
    let mut noise: Vec<f32> = (0..experts).map(|_| normal_pair(&mut rng).0).collect();
    let mut ids = Vec::with_capacity(topics.len() * config.top_k as usize);
    let mut scores = vec![0f32; experts];
    let mut best = Vec::with_capacity(config.top_k as usize);
    for &topic in topics {
        let base = &offsets[topic as usize * experts..][..experts];
        for ((score, noise), base) in scores.iter_mut().zip(&mut noise).zip(base) {
            let (step, white) = normal_pair(&mut rng);
            *noise = RHO * *noise + INNOVATION * step;
            *score = base + config.correlated * *noise + config.white * white;
        }
        top(&scores, config.top_k as usize, &mut best);
        ids.extend(best.iter().map(|&(_, expert)| expert));
    }
    ids
}

/// Zipf popularities around 0, dealt to the experts in random order.
fn popularity(config: &SynthConfig, rng: &mut Pcg64Mcg) -> Vec<f32> {
    let ranks = 1..=config.experts;
    let mean =
        ranks.clone().map(|rank| ln(f64::from(rank))).sum::<f64>() / f64::from(config.experts);
    let mut values: Vec<f32> =
        ranks.map(|rank| config.popularity * (mean - ln(f64::from(rank))) as f32).collect();
    for last in (1..values.len()).rev() {
        values.swap(last, (rng.next_u64() % (last as u64 + 1)) as usize);
    }
    values
}

/// The `k` highest scores, highest first; of equal ones the lower expert first.
fn top(scores: &[f32], k: usize, best: &mut Vec<(f32, u16)>) {
    best.clear();
    for (expert, &score) in scores.iter().enumerate() {
        if best.len() == k {
            if score <= best[k - 1].0 {
                continue;
            }
            best.pop();
        }
        let mut at = best.len();
        best.push((score, expert as u16));
        while at > 0 && best[at - 1].0 < score {
            best.swap(at - 1, at);
            at -= 1;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn small() -> SynthConfig {
        SynthConfig { layers: 3, experts: 32, top_k: 4, tokens: 1000, ..SynthConfig::default() }
    }

    #[test]
    fn a_seed_always_gives_the_same_trace() {
        let trace = generate(&small()).unwrap();
        assert_eq!(generate(&small()).unwrap().content_digest(), trace.content_digest());
        let other = SynthConfig { seed: 1, ..small() };
        assert_ne!(generate(&other).unwrap().digest(), trace.digest());
        // Recorded once; a change of it changes every benchmark and must be deliberate.
        assert_eq!(trace.digest(), "6bb275074260341c3c6da24eb341bc7c");
    }

    #[test]
    fn sequences_and_phases_are_as_asked() {
        let config = SynthConfig { sequence_tokens: 300, prompt_tokens: 100, ..small() };
        let trace = generate(&config).unwrap();
        let lengths: Vec<usize> = trace.sequences().iter().map(|s| s.rows.len()).collect();
        assert_eq!(lengths, [300, 300, 300, 100]);
        assert_eq!(trace.phases().iter().filter(|&&p| p == Phase::Prefill as u8).count(), 400);
        assert_eq!((trace.positions()[299], trace.positions()[300]), (299, 0));
    }

    #[test]
    fn noise_has_mean_0_and_variance_1() {
        let mut rng = stream(7, 7);
        let draws: Vec<f32> =
            (0..50_000).flat_map(|_| <[f32; 2]>::from(normal_pair(&mut rng))).collect();
        let mean = draws.iter().sum::<f32>() / draws.len() as f32;
        let variance = draws.iter().map(|x| x * x).sum::<f32>() / draws.len() as f32;
        // The standard errors are 0.003 and 0.004.
        assert!(mean.abs() < 0.01 && (variance - 1.0).abs() < 0.015, "{mean} {variance}");
    }

    #[test]
    fn the_highest_scores_are_chosen_in_order() {
        let mut best = Vec::new();
        top(&[0.5, 2.0, -1.0, 2.0, 3.0], 3, &mut best);
        assert_eq!(best, [(3.0, 4), (2.0, 1), (2.0, 3)]);
    }

    #[test]
    fn absurd_configurations_are_refused() {
        let message = |config| generate(&config).unwrap_err().to_string();
        assert!(message(SynthConfig { tokens: 0, ..small() }).contains("no sequences"));
        assert!(message(SynthConfig { top_k: 33, ..small() }).contains("top-k 33"));
        assert!(message(SynthConfig { tokens: usize::MAX, ..small() }).contains("too many"));
        assert!(message(SynthConfig { topics: 0, ..small() }).contains("start at 1"));
        assert!(message(SynthConfig { white: f32::NAN, ..small() }).contains("finite"));
    }
}
