//! Memory, line by line: what an accelerator and its host must hold, and why.
//!
//! A line without a source is a guess that nobody can correct, so each says where its bytes come
//! from. Slots are not among them: they get what the lines leave.

use hotset_cost_models::hardware::Basis;
use hotset_cost_models::model::Mixer;
use serde::Serialize;

use crate::Request;
use crate::request::Load;
use crate::reserve::EngineLines;
use crate::weights::RankWeights;

/// Bytes for one purpose.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct MemoryLine {
    /// The purpose.
    pub name: &'static str,
    /// Bytes.
    pub bytes: u64,
    /// How far to trust them.
    pub basis: Basis,
    /// Where they come from.
    pub source: String,
}

impl MemoryLine {
    pub(crate) fn new(
        name: &'static str,
        bytes: u64,
        basis: Basis,
        source: impl Into<String>,
    ) -> Self {
        Self { name, bytes, basis, source: source.into() }
    }
}

pub(crate) fn gib(bytes: u64) -> f64 {
    bytes as f64 / (1u64 << 30) as f64
}

pub(crate) fn sum(lines: &[MemoryLine]) -> u64 {
    lines.iter().map(|line| line.bytes).fold(0, u64::saturating_add)
}

const MIB: u64 = 1 << 20;
/// NVIDIA's aiconfigurator: 342 to 392 MiB for NCCL.
const COMMUNICATION: u64 = 392 * MIB;
/// Its least activations.
const LEAST_ACTIVATIONS: u64 = 70 * MIB;
/// SGLang's rule: so much for each size of batch that graphs are captured for.
const GRAPH: u64 = 2 * MIB;

/// What one accelerator holds beside slots, for `users` sequences of `context` tokens.
pub(crate) fn accelerator(
    request: &Request,
    weights: &RankWeights,
    (users, context): (u32, u64),
    engine: Option<EngineLines>,
) -> Vec<MemoryLine> {
    let bytes = &weights.bytes;
    let on_host = engine.as_ref().is_some_and(|engine| engine.embedding_on_host);
    let of_weights =
        |name, bytes| MemoryLine::new(name, bytes, weights.basis, weights.source.clone());
    let mut lines = vec![
        of_weights("attention and dense layers", bytes.dense),
        of_weights("shared experts", bytes.shared),
        of_weights("embedding", if on_host { 0 } else { bytes.embed }),
        // A head that is the embedding is there in its own right where that is on the host.
        of_weights(
            "output head",
            match (on_host, bytes.lm_head) {
                (true, 0) => bytes.embed,
                (_, head) => head,
            },
        ),
    ];
    lines.extend(draft(request, weights));
    lines.extend(kept(request, users, context));
    let (own, process) = engine.map_or((None, None), |e| (Some(e.accelerator), e.process));
    lines.push(prefill_buffers(request, weights));
    lines.extend(own.unwrap_or_else(|| transient(request, users)));
    let room = &request.reserve;
    lines.push(match (room.process, process) {
        (Some(given), _) => {
            MemoryLine::new("process", given, Basis::Assumed, "`MemoryReserve::process`")
        }
        (None, Some(own)) => own,
        (None, None) => {
            let context = &request.machine.context;
            MemoryLine::new("process", context.value, context.basis, context.source.clone())
        }
    });
    if request.ranks() > 1 {
        let source = "aiconfigurator's upper figure for NCCL";
        lines.push(MemoryLine::new("communication", COMMUNICATION, Basis::Published, source));
    }
    if room.other > 0 {
        lines.push(MemoryLine::new("other", room.other, Basis::Assumed, "`MemoryReserve::other`"));
    }
    let slack = if room.slack > 0 {
        "`MemoryReserve::slack`"
    } else {
        "left to what is not usable of memory"
    };
    lines.push(MemoryLine::new("slack", room.slack, Basis::Assumed, slack));
    lines
}

fn draft(request: &Request, weights: &RankWeights) -> Option<MemoryLine> {
    if request.speculation.drafts == 0 {
        return None;
    }
    Some(match request.reserve.draft {
        Some(given) => {
            MemoryLine::new("draft model", given, Basis::Assumed, "`MemoryReserve::draft`")
        }
        None => {
            let own = weights.bytes.mtp_dense.saturating_add(weights.bytes.mtp_experts);
            let source = format!("the model's {} draft layers", request.model.mtp_layers);
            MemoryLine::new("draft model", own, weights.basis, source)
        }
    })
}

/// Keys, values and states.
fn kept(request: &Request, users: u32, context: u64) -> Vec<MemoryLine> {
    let (model, tensor) = (&request.model, request.parallel.tensor);
    let kv = model.kv_in(request.storage.layout, context, users.into(), request.storage.kv, tensor);
    let drafts = u64::from(request.speculation.drafts);
    let source = format!("{users} x {context} tokens in {}", request.storage.kv.name());
    let mut lines = vec![MemoryLine::new("keys and values", kv.tokens, Basis::Calculated, source)];
    if kv.state > 0 {
        let source = format!("the same for every context, {users} sequences");
        lines.push(MemoryLine::new("recurrent state", kv.state, Basis::Calculated, source));
    }
    if drafts > 0 && request.reserve.draft.is_none() {
        let of_one = model.mtp_kv(context, request.storage.kv, tensor).total();
        let bytes = of_one.saturating_mul(users.into());
        lines.push(MemoryLine::new("keys of draft layers", bytes, Basis::Calculated, "as above"));
    }
    lines
}

/// Whole layers that prefill holds apart from the slots.
fn prefill_buffers(request: &Request, weights: &RankWeights) -> MemoryLine {
    let room = &request.reserve;
    let layer = weights.bytes.experts.iter().map(|l| u64::from(l.count).saturating_mul(l.slot));
    let buffers = layer.max().unwrap_or(0).saturating_mul(room.buffers.into());
    let why = match (room.buffers, room.overlap) {
        (0, false) => "none: prefill borrows slots, of which one layer's are kept",
        (0, true) => "none: prefill borrows slots, of which two layers' are kept",
        _ => "`MemoryReserve::buffers`, whole layers",
    };
    MemoryLine::new("prefill buffers", buffers, Basis::Calculated, why)
}

/// What activations and graphs take for a while; engines reserve it for good.
fn transient(request: &Request, users: u32) -> Vec<MemoryLine> {
    let room = &request.reserve;
    let activations = match room.activations {
        Some(given) => {
            MemoryLine::new("activations", given, Basis::Assumed, "`MemoryReserve::activations`")
        }
        None => {
            let source = format!("aiconfigurator's rule for a chunk of {} tokens", room.chunk);
            MemoryLine::new("activations", activations(request, users), Basis::Published, source)
        }
    };
    let tokens = u64::from(users) * (1 + u64::from(request.speculation.drafts));
    let graphs = match room.graphs {
        Some(given) => MemoryLine::new("graphs", given, Basis::Assumed, "`MemoryReserve::graphs`"),
        None => {
            let source = format!("SGLang's rule: 2 MiB for each batch size up to {tokens}");
            MemoryLine::new("graphs", GRAPH.saturating_mul(tokens), Basis::Published, source)
        }
    };
    vec![activations, graphs]
}

/// `2 C n d c`, at least 70 MiB, and logits of a step in f32.
fn activations(request: &Request, users: u32) -> u64 {
    let per_rank = match request.parallel.tensor {
        1 => 22,
        2 => 13,
        _ => 10,
    };
    let widths = request.model.layers.iter().map(|layer| heads_width(&layer.mixer));
    let width = widths.max().unwrap_or(0).max(request.model.hidden);
    let hidden = 2 * per_rank * u128::from(request.reserve.chunk) * u128::from(width);
    let tokens = u64::from(users) * (1 + u64::from(request.speculation.drafts));
    let logits = tokens.saturating_mul(request.model.vocab).saturating_mul(4);
    u64::try_from(hidden).unwrap_or(u64::MAX).max(LEAST_ACTIVATIONS).saturating_add(logits)
}

/// Heads times their width.
fn heads_width(mixer: &Mixer) -> u64 {
    match mixer {
        Mixer::Heads(heads) => heads.query_heads * heads.value_width,
        Mixer::Latent(latent) => latent.heads * latent.value,
        Mixer::Compressed(compressed) => compressed.heads * compressed.width,
        Mixer::GatedDelta(delta) => delta.value_heads * delta.value_width,
        Mixer::KimiDelta(delta) => delta.heads * delta.width,
        Mixer::Mamba1(mamba) => mamba.inner,
        Mixer::Mamba2(mamba) => mamba.heads * mamba.width,
        Mixer::Lightning(lightning) => lightning.heads * lightning.width,
        Mixer::ShortConv(conv) => conv.width,
        Mixer::None => 0,
    }
}

/// What loading needs of host memory for a while.
pub(crate) struct LoadingBytes {
    /// Bytes that must be there.
    pub needed: u64,
    /// Bytes that the page cache takes if it may.
    pub page_cache: u64,
}

pub(crate) fn loading(request: &Request, whole_on_host: u64) -> LoadingBytes {
    let (needed, page_cache) = match request.offload.load {
        Load::Mapped => (0, whole_on_host),
        Load::Copied => (whole_on_host, whole_on_host),
        Load::Direct => (0, 0),
    };
    LoadingBytes { needed, page_cache }
}
