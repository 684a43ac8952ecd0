//! Engines that measure a run and give what is left to keys and values.

use hotset_cost_models::WeightFormat;
use hotset_cost_models::model::{Formats, RestFormat, WeightBytes};

use super::super::{Prediction, WhyNot};
use super::EXACT;
use super::case::Case;
use super::kept;

const GIB: f64 = (1u64 << 30) as f64;

/// The formats that a row's text means.
fn formats(case: &Case<'_>) -> Result<Formats, WhyNot> {
    let text = case.row.format.to_lowercase();
    let of = |word: &str| {
        // The first that occurs: `mxfp4 experts, rest fp8` names experts first.
        let known: [(&str, WeightFormat); 9] = [
            ("nvfp4", WeightFormat::Nvfp4),
            ("mxfp4", WeightFormat::Mxfp4),
            ("awq", WeightFormat::Int4Group128),
            ("gptq", WeightFormat::Int4Group128),
            ("int4", WeightFormat::Int4Group32),
            ("fp8", WeightFormat::Fp8Block128),
            ("bf16", WeightFormat::Bf16),
            ("fp16", WeightFormat::Bf16),
            ("f16", WeightFormat::Bf16),
        ];
        let found = known.into_iter().filter_map(|(name, format)| Some((word.find(name)?, format)));
        found.min_by_key(|(place, _)| *place).map(|(_, format)| format)
    };
    let everything = text.contains("awq") || text.contains("gptq") || text.contains("wna16");
    let unknown = || WhyNot::new(format!("format '{}' is not known", case.row.format));
    let mentions = text.split([',', '+']).map(str::trim);
    let mut rest = None;
    let mut experts = None;
    for part in mentions {
        let format = of(part);
        if part.contains("rest") {
            rest = rest.or(format);
        } else if part.contains("on cpu") {
            // On the host in a format of its own.
        } else {
            experts = experts.or(format);
        }
    }
    if everything {
        let all = WeightFormat::Int4Group128;
        return Ok(Formats::new(all, RestFormat::Matrices(all)));
    }
    // `fp8 + mxfp4` and the like: as published, where the experts' format is the published one.
    let native = case.model.native.filter(|(published, _)| {
        text.contains(published.name()) || experts == Some(*published) || text.contains("published")
    });
    if let Some((experts, published)) = native {
        return Ok(Formats::new(experts, rest.map_or(published, RestFormat::Matrices)));
    }
    let experts = experts.or(rest).ok_or_else(unknown)?;
    let rest = rest.unwrap_or(match experts {
        // Whole checkpoints in eight bits have eight bits everywhere but in embedding and head.
        WeightFormat::Fp8Block128 | WeightFormat::Fp8Tensor => experts,
        _ => WeightFormat::Bf16,
    });
    Ok(Formats::new(experts, RestFormat::Matrices(rest)))
}

/// Weights on one rank, rows padded as the engine pads them.
fn on_rank(case: &Case<'_>) -> Result<(WeightBytes, f64), WhyNot> {
    let formats = formats(case)?;
    let bytes = case.model.weights(&formats, case.parallel());
    Ok((bytes, case.memory.padded(formats.experts, &case.model)))
}

/// Bytes of weights on one rank.
pub(super) fn rank_bytes(case: &Case<'_>) -> Result<f64, WhyNot> {
    let (bytes, padded) = on_rank(case)?;
    let (mut routed, mut always) = (bytes.routed() as f64 * padded, bytes.always() as f64);
    if case.drafts() {
        routed += bytes.mtp_experts as f64;
        always += bytes.mtp_dense as f64;
    }
    if case.row.format.to_lowercase().contains("experts on cpu") {
        routed = 0.0;
    }
    let ranks = case.ranks().map_or(1.0, f64::from);
    Ok((routed + always) / ranks)
}

pub(super) fn weights(case: &Case<'_>) -> Result<Prediction, WhyNot> {
    case.foreign_draft()?;
    Ok(Prediction::within(rank_bytes(case)?, 0.03))
}

/// Share of memory that the engine may plan with.
fn share(case: &Case<'_>) -> Result<f64, WhyNot> {
    let names = [
        "gpu-memory-utilization",
        "gpu_memory_utilization",
        "mem-fraction-static",
        "mem_fraction_static",
        "util",
    ];
    let given = case.told.words.after(&names).filter(|share| (0.0..=1.0).contains(share));
    let usual = case.memory.usable_share.as_ref().map(|share| share.value);
    given.or(usual).ok_or_else(|| WhyNot::new("no usable share is known"))
}

fn memory(case: &Case<'_>) -> Result<f64, WhyNot> {
    let gib = case.row.gpu_mem_gib;
    gib.map(|gib| gib * GIB).ok_or_else(|| WhyNot::new("the memory of a device is not stated"))
}

/// Activations of a step's tokens.
pub(super) fn activations(case: &Case<'_>) -> Result<Prediction, WhyNot> {
    let rules = case.profile()?;
    let usual = rules.tokens_on(case.row.gpu_mem_gib.map(|gib| gib * GIB));
    let tokens = case.row.batch.map_or(usual, |tokens| tokens as f64);
    let elements = rules.elements(tokens, &case.model, case.parallel().tensor);
    let bytes = &rules.activation_bytes;
    Ok(Prediction {
        predicted: elements * bytes.value,
        low: elements * bytes.low(),
        high: elements * bytes.high(),
    })
}

/// What the engine takes beside weights, keys and values.
pub(super) fn beside(case: &Case<'_>) -> Result<Prediction, WhyNot> {
    if case.told.has(&["workspace"]) || case.row.notes.trim_start().starts_with("non-torch") {
        return Err(WhyNot::new("one backend's workspace alone, which depends on its version"));
    }
    let (rules, step) = (case.profile()?, activations(case)?);
    let fixed = &rules.fixed_gib;
    let mut beside = Prediction {
        predicted: step.predicted + fixed.value * GIB,
        low: step.low + fixed.low() * GIB,
        high: step.high + fixed.high() * GIB,
    };
    if shared_memory(&case.row.gpu) {
        let system = &rules.system_gib;
        beside.predicted += system.value * GIB;
        beside.low += system.low() * GIB;
        beside.high += system.high() * GIB;
    }
    Ok(beside)
}

/// Whether the system and the accelerator have one memory.
pub(super) fn shared_memory(gpu: &str) -> bool {
    let gpu = gpu.to_lowercase();
    ["unified", "spark", "gb10", "strix", "8060s", "apple", "jetson"]
        .iter()
        .any(|n| gpu.contains(n))
}

pub(super) fn graphs(case: &Case<'_>) -> Result<Prediction, WhyNot> {
    let gib = &case.profile()?.graphs_gib;
    Ok(Prediction { predicted: gib.value * GIB, low: gib.low() * GIB, high: gib.high() * GIB })
}

/// What is left to keys and values: negative where weights alone are too large.
pub(super) fn left(case: &Case<'_>) -> Result<Prediction, WhyNot> {
    case.foreign_draft()?;
    let usable = share(case)? * memory(case)?;
    let (weights, beside) = (rank_bytes(case)?, beside(case)?);
    Ok(Prediction {
        predicted: usable - weights - beside.predicted,
        low: usable - weights * 1.03 - beside.high,
        high: usable - weights * 0.97 - beside.low,
    })
}

pub(super) fn available(case: &Case<'_>) -> Result<Prediction, WhyNot> {
    let left = left(case)?;
    match left.predicted > 0.0 {
        true => Ok(Prediction { low: left.low.max(0.0), ..left }),
        false => Err(WhyNot::new("weights and activations leave nothing by this account")),
    }
}

/// Bytes that the report says keys and values have, `KV 46.80 GiB` or `K 5.60 + V 5.60`.
fn pool(case: &Case<'_>) -> Result<f64, WhyNot> {
    let words = &case.told.words;
    let both = words.numbers(&["k", "#", "v", "#"]).map(|both| both.iter().sum::<f64>());
    let pool = both.or_else(|| words.after(&["kv"]));
    pool.map(|gib| gib * GIB).ok_or_else(|| WhyNot::new("the bytes of the pool are not stated"))
}

/// Whether something of a sequence does not grow with it: tokens are then no capacity.
fn fixed_parts(case: &Case<'_>) -> bool {
    use hotset_cost_models::model::{AttentionSpan, Mixer};
    case.model.layers.iter().any(|layer| match &layer.mixer {
        Mixer::Heads(heads) => heads.span != AttentionSpan::Full,
        Mixer::Latent(_) | Mixer::None => false,
        _ => true,
    })
}

/// Sequences of the row's length that a pool holds.
fn sequences(case: &Case<'_>) -> Result<f64, WhyNot> {
    let kv = kept::bytes(case, case.context()?, 1)?;
    Ok(pool(case)? / kv.total().max(1) as f64)
}

pub(super) fn tokens(case: &Case<'_>) -> Result<Prediction, WhyNot> {
    case.foreign_draft()?;
    if case.told.has(&["divides", "by", "layer", "groups"]) {
        return Err(WhyNot::new("this version prints the count divided by layer groups"));
    }
    let ranks = f64::from(case.spread("dcp").unwrap_or(1));
    if fixed_parts(case) {
        let tokens = sequences(case)? * case.context()? as f64 * ranks;
        return Ok(Prediction::within(tokens, 0.05));
    }
    let long = 1 << 20;
    let token = kept::bytes(case, long, 1)?.tokens as f64 / long as f64;
    Ok(Prediction::within(pool(case)? / token.max(1.0) * ranks, 2.0 * EXACT))
}

pub(super) fn concurrency(case: &Case<'_>) -> Result<Prediction, WhyNot> {
    case.foreign_draft()?;
    Ok(Prediction::within(sequences(case)?, 0.05))
}

/// Whether memory runs out: weights and a run leave too little for one sequence of the length asked.
pub(super) fn runs_out(case: &Case<'_>) -> Result<Prediction, WhyNot> {
    let left = left(case)?;
    let needs = match case.row.context {
        Some(context) => kept::bytes(case, context, 1)?.total() as f64,
        None => 0.0,
    };
    let out = |left: f64| left < needs || left <= 0.0;
    let gib = |bytes: f64| bytes / GIB;
    if out(left.low) != out(left.high) {
        return Err(WhyNot::new(format!(
            "too close: {:.1} to {:.1} GiB are left for {:.1} GiB of keys and values",
            gib(left.low),
            gib(left.high),
            gib(needs)
        )));
    }
    let verdict = f64::from(u8::from(out(left.predicted)));
    Ok(Prediction::within(verdict, 0.0))
}
