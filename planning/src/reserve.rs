//! What an engine keeps beside weights and sequences, by its file: in place of the general rules.

use hotset_cost_models::hardware::Basis;

use crate::Request;
use crate::engine::buffers::{Graph, Placed};
use crate::engine::memory::{BufferRules, EngineMemory, ProfileRules};
use crate::memory::MemoryLine;
use crate::weights::RankWeights;

const MIB: f64 = (1u64 << 20) as f64;
const GIB: f64 = (1u64 << 30) as f64;
/// llama.cpp's micro-batch.
pub(crate) const MICRO_BATCH: u64 = 512;

/// An engine's lines.
pub(crate) struct EngineLines {
    /// In place of activations and graphs.
    pub accelerator: Vec<MemoryLine>,
    /// What the process takes, where the engine's file says it.
    pub process: Option<MemoryLine>,
    /// On the host while it runs.
    pub host: Vec<MemoryLine>,
    /// The embedding is among the host's.
    pub embedding_on_host: bool,
}

/// The lines of the request's engine for sequences of `context` tokens, with experts as `placed`; nothing where no
/// engine is named or its memory is not known.
pub(crate) fn lines(
    request: &Request,
    weights: &RankWeights,
    context: u64,
    placed: Placed,
) -> Option<EngineLines> {
    let engine = request.engine.as_ref()?;
    let memory = engine.memory.as_ref()?;
    let mut lines = match (&memory.buffers, &memory.profile) {
        (Some(rules), _) => planned(request, weights, context, (rules, placed)),
        (None, Some(rules)) => measured(request, rules),
        (None, None) => return None,
    };
    lines.process = process(memory);
    lines.embedding_on_host = memory.embedding_on_host && !request.machine.unified;
    if lines.embedding_on_host {
        let source = format!("{} keeps it on the host", engine.name);
        let embedding = weights.bytes.embed;
        lines.host.push(MemoryLine::new("embedding", embedding, weights.basis, source));
    }
    Some(lines)
}

fn process(memory: &EngineMemory) -> Option<MemoryLine> {
    let figure = memory.process_mib.as_ref()?;
    let bytes = (figure.value * MIB) as u64;
    Some(MemoryLine::new("process", bytes, figure.basis, figure.source.clone()))
}

/// Buffers of a planned graph.
fn planned(
    request: &Request,
    weights: &RankWeights,
    context: u64,
    (rules, experts): (&BufferRules, Placed),
) -> EngineLines {
    let layers = weights.bytes.experts.iter();
    let largest = layers.map(|l| u64::from(l.count).saturating_mul(l.stored)).max().unwrap_or(0);
    let matrices = request.model.moe_layers().map(|(_, experts)| experts.shape.matrices).max();
    let micro_batch = request.reserve.micro_batch.unwrap_or(MICRO_BATCH);
    let graph = Graph {
        model: &request.model,
        micro_batch,
        cells: context,
        flash: true,
        latent: None,
        most_spread: None,
        kv_bytes: request.storage.kv.row(32) as f64 / 32.0,
        experts,
        expert_matrix: largest / u64::from(matrices.unwrap_or(3).max(1)),
    };
    let calculated =
        |name, bytes, source: String| MemoryLine::new(name, bytes, Basis::Calculated, source);
    let spread = rules.device;
    let fitted = format!(
        "micro-batch of {micro_batch}: logits, attention or copied experts, whichever is largest; {} of {} \
         reports within {} to {} of it",
        spread.inside, spread.reports, spread.low, spread.high
    );
    let device = match request.reserve.activations {
        Some(given) => {
            MemoryLine::new("compute buffer", given, Basis::Assumed, "`MemoryReserve::activations`")
        }
        None => calculated("compute buffer", rules.device(&graph), fitted),
    };
    let sorted =
        "rows of a micro-batch sorted by expert, taken by kernels while they run".to_owned();
    let mut accelerator = vec![device, calculated("kernels' pool", rules.pool(&graph), sorted)];
    let taken = format!("mask and embedded tokens of a micro-batch of {micro_batch}");
    let host = calculated("host buffer", rules.host(&graph), taken);
    let logits = request.model.vocab.saturating_mul(4).saturating_mul(request.users.into());
    let output = calculated("output buffer", logits, "logits of each sequence, f32".to_owned());
    let mut lines = vec![host, output];
    if request.machine.unified {
        accelerator.append(&mut lines);
    }
    EngineLines { accelerator, process: None, host: lines, embedding_on_host: false }
}

/// What a profile run finds.
fn measured(request: &Request, rules: &ProfileRules) -> EngineLines {
    let tokens = request.reserve.chunk as f64;
    let elements = rules.elements(tokens, &request.model, request.parallel.tensor);
    let bytes = &rules.activation_bytes;
    let activations = match request.reserve.activations {
        Some(given) => {
            MemoryLine::new("activations", given, Basis::Assumed, "`MemoryReserve::activations`")
        }
        None => MemoryLine::new(
            "activations",
            (elements * bytes.value) as u64,
            bytes.basis,
            format!("a step of {tokens} tokens; {}", bytes.source),
        ),
    };
    let figure = &rules.graphs_gib;
    let graphs = match request.reserve.graphs {
        Some(given) => MemoryLine::new("graphs", given, Basis::Assumed, "`MemoryReserve::graphs`"),
        None => MemoryLine::new(
            "graphs",
            (figure.value * GIB) as u64,
            figure.basis,
            figure.source.clone(),
        ),
    };
    let accelerator = vec![activations, graphs];
    EngineLines { accelerator, process: None, host: Vec::new(), embedding_on_host: false }
}
