//! What people are told of each miss handler.

use super::MissHandler;
use crate::Parameter;
use crate::registry::{Info, NoNeeds};

/// The description of a miss handler.
pub type MissHandlerInfo = Info<NoNeeds>;

/// All miss handlers, in the order in which they are listed.
pub static MISS_HANDLERS: &[&MissHandlerInfo] = &[
    &FETCH,
    &HOST,
    &BALANCED,
    &FREETOKEN,
    &UPLOAD_CAP,
    &FIDDLER,
    &HYBRIMOE,
    &CPU_LAYERS,
    &DEFER,
    &DROP,
    &SUBSTITUTE,
    &LOW_PRECISION,
    &BIAS,
    &TOP,
];

const fn plain(
    name: &'static str,
    summary: &'static str,
    definition: &'static str,
    source: &'static str,
    parameters: &'static [Parameter],
) -> MissHandlerInfo {
    MissHandlerInfo { name, summary, definition, source, needs: NoNeeds, parameters }
}

const fn parameter(name: &'static str, default: &'static str, meaning: &'static str) -> Parameter {
    Parameter { name, default, meaning }
}

const SPLIT: &[Parameter] = &[
    parameter(
        "fetch",
        "from the rates",
        "share of the misses that is copied, 0 to 1, kept in 1/65536; 0: max_fetch of them",
    ),
    parameter("fetch_permille", "", "the same in per mille"),
    parameter(
        "max_fetch",
        "1",
        "misses that are copied where no share is known; given alone, always",
    ),
    parameter(
        "order",
        "recent",
        "which are copied: recent (asked for last, ties to the lower id) or lowest (ids)",
    ),
];

static FETCH: MissHandlerInfo = plain(
    "fetch",
    "every miss is copied into the cache",
    "Every expert of an event that is not resident is demanded of the cache.",
    "every engine that offloads experts",
    &[],
);

static HOST: MissHandlerInfo = plain(
    "host",
    "the host's cores serve every miss",
    "Only an event's residents are demanded of the cache; the host computes the others where they lie, so that the cache keeps what it has. With the policy static it is KTransformers' placement by frequency.",
    "llama.cpp, KTransformers: experts on the CPU",
    &[],
);

static BALANCED: MissHandlerInfo = plain(
    "balanced",
    "link and host share the misses and finish together",
    "Of an event's m misses F are copied: low = floor(f m), or low + 1 where max(F (1 - f), (m - F) f) is then smaller, f in 1/65536. Those asked for most recently are copied, ties to the lower id (the event's own experts count as asked for only afterwards); the host computes the rest, which never enters the cache. Without a share given, f = link / (link + host) of the rates while both run, or link / host at most 1 where only rates alone are known. f = 0: min(m, max_fetch).",
    "FreeToken 0.1.2, ensure_hybrid",
    SPLIT,
);

static FREETOKEN: MissHandlerInfo = plain(
    "freetoken",
    "balanced where the host is over twice the link, else fetch",
    "FreeToken's choice of a backend by rates that were measured alone: hybrid (as balanced) if the host's rate is over 2.0 times the link's, else offload (as fetch).",
    "FreeToken 0.1.2, ft bench bw",
    SPLIT,
);

static UPLOAD_CAP: MissHandlerInfo = plain(
    "upload-cap",
    "at most n copies a layer a step, the host serves the rest",
    "Of an event's misses the first n in ascending id are copied and admitted; the host computes the others.",
    "llama.cpp #27861 (--inserts) beside #24524 (misses on the CPU)",
    &[parameter("n", "2", "copies a layer a step")],
);

static FIDDLER: MissHandlerInfo = plain(
    "fiddler",
    "each missing expert where it costs less",
    "A missing expert that t of the step's tokens want is computed by the host if cpu x t < gpu, else copied. (Fiddler's comment speaks of the longer of two sums; its code minimises their sum, which is this.) The defaults are its constants.",
    "Fiddler, as its code has it",
    &[
        parameter("cpu", "7", "the host's cost of an expert for each token"),
        parameter("gpu", "70", "the cost of an expert that is copied, in the same unit"),
    ],
);

static HYBRIMOE: MissHandlerInfo = plain(
    "hybrimoe",
    "link takes the largest loads, host the smallest, by a schedule",
    "The misses are sorted by the tokens that want them. Two clocks run: the link's next is the largest load that is left and takes one copy, the host's the smallest and takes its tokens times one expert; whoever would finish its next first takes it, the link on a tie.",
    "HybriMoE, DAC 2025, hybrid scheduling",
    &[
        parameter("copy", "from the rates", "a copy's time"),
        parameter(
            "host",
            "from the rates",
            "the host's time for an expert and token, in the same unit",
        ),
    ],
);

static CPU_LAYERS: MissHandlerInfo = plain(
    "cpu-layers",
    "whole layers on the host, the others resident: n-cpu-moe",
    "The host computes every expert of the first n layers; the experts of the others are placed before the first step, as many as there are slots. Without n, the least with which they all find room.",
    "llama.cpp, --n-cpu-moe",
    &[parameter("n", "from the slots", "layers")],
);

static DEFER: MissHandlerInfo = plain(
    "defer",
    "the host serves misses, the lowest weights a layer late",
    "The host computes every miss. Of them the n with the lowest router weights (without weights: the last in rank) are deferred: the next layer begins without them and their output is added in it. In the last layer nothing is deferred. It changes what the model computes.",
    "KTransformers, expert deferral",
    &[parameter("n", "2", "experts a layer that may be late")],
);

static DROP: MissHandlerInfo = plain(
    "drop",
    "missing experts of little weight are left out",
    "A missing expert whose share of its tokens' router weight is less than `below` is not computed (the weight is not spread over the others); every other miss is fetched. A dropped expert is a miss.",
    "HOBBIT's skipping, AdapMoE; as a threshold of the share",
    &[parameter("below", "0.05", "share of a token's weight in the layer, 0 to 1")],
);

static SUBSTITUTE: MissHandlerInfo = plain(
    "substitute",
    "a resident expert that is chosen together stands in",
    "For each missing expert, best rank first, the resident expert outside the event with the largest cosine of co-selection (events with both over the root of the product of their events, counted over the run so far, this event after it) computes with its weight; ties to the lower id, each stands in once an event. Where no cosine is positive and at least `above`, it is fetched. A substituted expert is a miss, and all of its weight counts as lost.",
    "SwapMoE, BuddyMoE: substitution by likeness",
    &[parameter("above", "0", "the least cosine, 0 to 1")],
);

static LOW_PRECISION: MissHandlerInfo = plain(
    "low-precision",
    "missing experts of less weight come as smaller copies, or not",
    "An event's experts are sorted by their share of their tokens' router weight; u is the share of the event's weight at those before one. A missing expert with u <= `whole` is fetched, with u <= `low` as a copy of `size` of its bytes, else not computed. The smaller copy computes and is gone: no slot keeps it (HOBBIT has slots for them too). It is a miss, and none of its weight counts as lost; what is not computed is.",
    "HOBBIT (Tang et al., 2024), loading by cumulative gate weight; the defaults are this project's",
    &[
        parameter(
            "whole",
            "0.6",
            "share of the weight at better experts, 0 to 1, up to which all is fetched",
        ),
        parameter("low", "0.9", "the same for the smaller copy, at least `whole`"),
        parameter("size", "0.25", "the smaller copy's bytes over the whole's, above 0, at most 1"),
    ],
);

static BIAS: MissHandlerInfo = plain(
    "bias",
    "the router favours residents by a share of the logits' range",
    "An expert's logit is ln of its mean weight over the tokens that want it; D is the mean over the layer's events so far of the range from the first to the last (the running event after it). A missing expert beyond the `keep` best, the lowest first, gives way to a resident outside the event if its logit is over the last's by less than lambda x D; who stands in is as in substitute, without a least cosine, and the lowest id where nobody was chosen together with it; each stands in once an event. A trace does not record the scores of experts that were not chosen: a resident is taken to score as the event's last, so that this is the most that the bias can spare. A replaced expert is a miss, and all of its weight counts as lost.",
    "Cache-Prior, mixture of cache-conditional experts (Skliar et al., 2024)",
    &[
        parameter("lambda", "0.5", "the bias in units of D, 0 to 10"),
        parameter("keep", "1", "best experts that are never replaced (the paper's J)"),
    ],
);

static TOP: MissHandlerInfo = plain(
    "top",
    "each token uses its k best experts only",
    "The trace is replayed with the first k of each token's ranks; the others are no accesses, and their weight counts as lost. Misses are fetched.",
    "fewer experts a token, as AdapMoE and --override-kv do",
    &[parameter("k", "4", "experts a token and layer, at least 1")],
);

impl MissHandler {
    /// What people are told of it.
    #[must_use]
    pub fn info(self) -> &'static MissHandlerInfo {
        match self {
            Self::Fetch => &FETCH,
            Self::Host => &HOST,
            Self::Balanced(_) => &BALANCED,
            Self::Freetoken(_) => &FREETOKEN,
            Self::UploadCap { .. } => &UPLOAD_CAP,
            Self::Fiddler { .. } => &FIDDLER,
            Self::Hybrimoe { .. } => &HYBRIMOE,
            Self::CpuLayers { .. } => &CPU_LAYERS,
            Self::Defer { .. } => &DEFER,
            Self::Drop { .. } => &DROP,
            Self::Substitute { .. } => &SUBSTITUTE,
            Self::LowPrecision { .. } => &LOW_PRECISION,
            Self::Bias { .. } => &BIAS,
            Self::Top { .. } => &TOP,
        }
    }
}
