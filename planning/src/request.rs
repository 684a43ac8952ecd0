//! What is asked: a model, a machine, who uses them and how the engine works.
//!
//! Everything that a person may override has a field here; what is left `None` comes from the
//! machine or from a published rule, and the plan's lines say which.

use hotset_cost_models::model::{EngineLayout, KvFormat, Parallel};
use hotset_cost_models::{Hardware, Link, Model, SlotLayout, WeightFormat};
use serde::Serialize;

use crate::engine::Engine;
use crate::routing::StepKind;

/// A request for a plan: only the model and the machine must be given.
///
/// ```
/// use hotset_cost_models::{Model, find_hardware};
/// use hotset_planning::{Bank, FitVerdict, Request, fit};
///
/// let machine = find_hardware("rtx-4090").unwrap();
/// let mut request = Request::new(Model::builtin("OLMoE-1B-7B").unwrap(), machine);
/// request.users = 4;
/// request.reserve.free = Some(8 << 30);
/// assert_eq!(fit(&request)?.verdict, FitVerdict::Cached, "12 GiB of experts, 8 GiB free");
/// request.offload.bank = Some(Bank::Inclusive);
/// request.context = 0;
/// assert!(fit(&request).unwrap_err().to_string().starts_with("`Request::context` is 0"));
/// # Ok::<(), hotset_planning::PlanError>(())
/// ```
#[derive(Debug, Clone, PartialEq)]
pub struct Request {
    /// The model.
    pub model: Model,
    /// The machine.
    pub machine: Hardware,
    /// How experts reach the accelerator; `None`: the machine's own link.
    pub link: Option<Link>,
    /// The engine that runs it, whose file says what it reserves; `None`: the general rules.
    pub engine: Option<Engine>,
    /// How the model is spread over accelerators.
    pub parallel: Parallel,
    /// How weights, keys and values are stored.
    pub storage: Storage,
    /// Tokens that each sequence may hold.
    pub context: u64,
    /// Sequences that run at once.
    pub users: u32,
    /// Speculative decoding.
    pub speculation: Speculation,
    /// Room for what is neither weight nor cache.
    pub reserve: MemoryReserve,
    /// Where experts without a slot are, and how they get to where they are used.
    pub offload: Offload,
    /// What a step takes beside what is calculated.
    pub pace: Pace,
}

/// How weights, keys and values are stored.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Storage {
    /// Format of the experts; `None`: as published or as a header says.
    pub format: Option<WeightFormat>,
    /// Format of everything else; `None`: as published, else bf16.
    pub rest_format: Option<WeightFormat>,
    /// How the engine pads slots.
    pub slot: SlotLayout,
    /// Bytes of the checkpoint in place of the formulas'.
    pub checkpoint: Option<Checkpoint>,
    /// Format of keys and values.
    pub kv: KvFormat,
    /// Whose pages keep them.
    pub layout: EngineLayout,
}

/// Where experts without a slot are, and how they get to where they are used.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Offload {
    /// What stays in host memory; `None`: nothing where all experts are resident or memory is
    /// unified, else everything if it fits, and if not what has no slot.
    pub bank: Option<Bank>,
    /// How weights are loaded.
    pub load: Load,
    /// Experts that host memory does not hold may stay on disk.
    pub disk: bool,
    /// What becomes of misses.
    pub misses: MissPricing,
}

/// A checkpoint's bytes as its publisher gives them; shared out over ranks evenly.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
pub struct Checkpoint {
    /// All of it.
    pub total: u64,
    /// Of it, the routed experts; `None`: in the proportion of the formulas.
    pub experts: Option<u64>,
}

/// Speculative decoding: so many tokens are drafted, then checked in one step.
#[derive(Debug, Clone, PartialEq, Default, Serialize)]
pub struct Speculation {
    /// Tokens drafted a step; 0 is none.
    pub drafts: u32,
    /// Chance that each is accepted once those before it are; the last goes on.
    pub accept: Vec<f64>,
}

/// Room for what is neither weight nor cache, on each accelerator unless said otherwise.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct MemoryReserve {
    /// Share of memory to plan with; `None`: the machine's.
    pub usable_share: Option<f64>,
    /// Bytes that are free, in place of a share of all.
    pub free: Option<u64>,
    /// Tokens of a prefill chunk.
    pub chunk: u64,
    /// Tokens of a micro-batch, of engines that run chunks in such; `None`: theirs.
    pub micro_batch: Option<u64>,
    /// Whole layers of experts that prefill buffers apart from the slots.
    pub buffers: u32,
    /// Prefill loads the next layer's experts while one runs: slots hold two layers at least.
    pub overlap: bool,
    /// Activations; `None`: by rule from the chunk.
    pub activations: Option<u64>,
    /// Captured graphs; `None`: by rule from the tokens of a step.
    pub graphs: Option<u64>,
    /// What a process takes before it holds a weight; `None`: the machine's.
    pub process: Option<u64>,
    /// A draft model; `None`: the model's own draft layers.
    pub draft: Option<u64>,
    /// Anything else that a person knows of.
    pub other: u64,
    /// What the allocator cannot use.
    pub slack: u64,
    /// What the system keeps of host memory; `None`: the machine's.
    pub host_reserved: Option<u64>,
}

impl Default for MemoryReserve {
    fn default() -> Self {
        Self {
            usable_share: None,
            free: None,
            chunk: 2048,
            micro_batch: None,
            buffers: 0,
            overlap: false,
            activations: None,
            graphs: None,
            process: None,
            draft: None,
            other: 0,
            slack: 0,
            host_reserved: None,
        }
    }
}

/// What stays in host memory while the engine runs.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Bank {
    /// Every expert, whether it has a slot or not.
    Inclusive,
    /// Experts without a slot.
    Exclusive,
}

/// How weights are loaded.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Load {
    /// From mapped files: the system's page cache holds them while there is room.
    #[default]
    Mapped,
    /// Into host memory first, then to where they belong: for a while they are there twice.
    Copied,
    /// Past the page cache.
    Direct,
}

/// What becomes of misses.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum MissPricing {
    /// All are fetched.
    #[default]
    Fetch,
    /// Some are fetched and the host's cores serve the others, so that both finish together.
    Balanced,
    /// The host's cores serve all.
    Host,
}

/// What a step takes beside what is calculated.
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
pub struct Pace {
    /// A measured step, every expert in its slot, in place of what is calculated of it.
    pub measured: Option<MeasuredStep>,
    /// Milliseconds that every step takes on top of the calculation.
    pub fixed_ms: f64,
    /// Share of its memory's rate that an accelerator reaches.
    pub efficiency: Option<f64>,
}

/// What somebody measured of whole steps with every expert in its slot, in milliseconds: what misses cost
/// is added to it.
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
pub struct MeasuredStep {
    /// A step of one token.
    pub first_ms: f64,
    /// What each further token of a step adds.
    pub further_ms: f64,
}

impl Request {
    /// A request with every choice left open: one user, 8,192 tokens.
    #[must_use]
    pub fn new(model: Model, machine: Hardware) -> Self {
        Self {
            model,
            machine,
            link: None,
            engine: None,
            parallel: Parallel::NONE,
            storage: Storage {
                format: None,
                rest_format: None,
                slot: SlotLayout::CHECKPOINT,
                checkpoint: None,
                kv: KvFormat::Bf16,
                layout: EngineLayout::Algorithm,
            },
            context: 8192,
            users: 1,
            speculation: Speculation::default(),
            reserve: MemoryReserve::default(),
            offload: Offload {
                bank: None,
                load: Load::default(),
                disk: true,
                misses: MissPricing::default(),
            },
            pace: Pace { measured: None, fixed_ms: 0.0, efficiency: None },
        }
    }

    /// The link that is used.
    #[must_use]
    pub fn link(&self) -> &Link {
        self.link.as_ref().unwrap_or(&self.machine.link)
    }

    /// Accelerators that the model is spread over.
    #[must_use]
    pub fn ranks(&self) -> u32 {
        self.parallel.tensor.max(self.parallel.expert).max(1)
    }

    /// Of them, those that share one host.
    #[must_use]
    pub fn ranks_per_host(&self) -> u32 {
        self.ranks().min(self.machine.per_host.max(1))
    }

    /// Tokens that one step runs.
    #[must_use]
    pub fn tokens_per_step(&self) -> u64 {
        u64::from(self.users) * (1 + u64::from(self.speculation.drafts))
    }

    /// The kind of step that decoding runs.
    pub(crate) fn step_kind(&self) -> StepKind {
        StepKind { users: self.users, tokens: 1 + self.speculation.drafts }
    }

    /// Picoseconds a MiB of experts on host cores, where somebody measured it.
    pub(crate) fn host_kernel_ps_per_mib(&self) -> Option<f64> {
        if let Some(kernel) = self.link().host_kernel {
            return Some(kernel.ps_per_mib as f64);
        }
        let rate = self.machine.host_kernel_rate.as_ref()?.value;
        Some((1u64 << 20) as f64 / rate as f64 * 1e12)
    }
}
