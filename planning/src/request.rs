//! What is asked: a model, a machine, who uses them and how the engine works.
//!
//! Everything that a person may override has a field here; what is left `None` comes from the
//! machine or from a published rule, and the plan's lines say which.

use hotset_cost_models::model::{EngineLayout, KvFormat, Parallel};
use hotset_cost_models::{Hardware, Link, Model, SlotLayout, WeightFormat};
use serde::Serialize;

use crate::PlanError;

/// A request for a plan.
#[derive(Debug, Clone, PartialEq)]
pub struct Request {
    /// The model.
    pub model: Model,
    /// The machine.
    pub machine: Hardware,
    /// How experts reach the accelerator; `None`: the machine's own link.
    pub link: Option<Link>,
    /// How the model is spread over accelerators.
    pub parallel: Parallel,
    /// Format of the experts; `None`: as published or as a header says.
    pub format: Option<WeightFormat>,
    /// Format of everything else; `None`: as published, else bf16.
    pub rest_format: Option<WeightFormat>,
    /// How the engine pads slots.
    pub slot: SlotLayout,
    /// Bytes of the checkpoint in place of the formulas'.
    pub checkpoint: Option<Checkpoint>,
    /// Tokens that each sequence may hold.
    pub context: u64,
    /// Sequences that run at once.
    pub users: u32,
    /// Format of keys and values.
    pub kv: KvFormat,
    /// Whose pages keep them.
    pub layout: EngineLayout,
    /// Speculative decoding.
    pub speculation: Speculation,
    /// Room for what is neither weight nor cache.
    pub room: Room,
    /// What stays in host memory; `None`: nothing where all experts are resident or memory is
    /// unified, else everything if it fits, and if not what has no slot.
    pub bank: Option<Bank>,
    /// How weights are loaded.
    pub load: Load,
    /// Experts that host memory does not hold may stay on disk.
    pub disk: bool,
    /// What becomes of misses.
    pub misses: Misses,
    /// What a step takes beside what is calculated.
    pub pace: Pace,
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
pub struct Room {
    /// Share of memory to plan with; `None`: the machine's.
    pub usable_share: Option<f64>,
    /// Bytes that are free, in place of a share of all.
    pub free: Option<u64>,
    /// Tokens of a prefill chunk.
    pub chunk: u64,
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

impl Default for Room {
    fn default() -> Self {
        Self {
            usable_share: None,
            free: None,
            chunk: 2048,
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
pub enum Misses {
    /// All are fetched.
    #[default]
    Fetch,
    /// Some are fetched and the host's cores serve the others, so that both finish together.
    Balanced,
}

/// What a step takes beside what is calculated.
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
pub struct Pace {
    /// Measured milliseconds of a step of one token and of each further one, in place of the
    /// calculation.
    pub measured: Option<(f64, f64)>,
    /// Milliseconds that every step takes on top of the calculation.
    pub fixed_ms: f64,
    /// Share of its memory's rate that an accelerator reaches.
    pub efficiency: Option<f64>,
}

impl Request {
    /// A request with every choice left open: one user, 8,192 tokens.
    #[must_use]
    pub fn new(model: Model, machine: Hardware) -> Self {
        Self {
            model,
            machine,
            link: None,
            parallel: Parallel::NONE,
            format: None,
            rest_format: None,
            slot: SlotLayout::CHECKPOINT,
            checkpoint: None,
            context: 8192,
            users: 1,
            kv: KvFormat::Bf16,
            layout: EngineLayout::Algorithm,
            speculation: Speculation::default(),
            room: Room::default(),
            bank: None,
            load: Load::default(),
            disk: true,
            misses: Misses::default(),
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

    /// Refuses what contradicts itself or cannot be.
    ///
    /// # Errors
    /// [`PlanError::Setting`], [`PlanError::Contradiction`], [`PlanError::Dense`].
    pub fn check(&self) -> Result<(), PlanError> {
        if self.model.expert_count() == 0 {
            return Err(PlanError::Dense { model: self.model.name.clone() });
        }
        self.check_use()?;
        self.check_spread()?;
        self.check_room()?;
        if self.misses == Misses::Balanced && self.host_kernel_ps_per_mib().is_none() {
            let why = format!(
                "needs the speed of experts on host cores, which neither {} nor link {} gives: \
                 use a machine file with host_kernel_rate",
                self.machine.name,
                self.link().name
            );
            return Err(PlanError::setting("--miss balanced", why));
        }
        Ok(())
    }

    fn check_use(&self) -> Result<(), PlanError> {
        if self.context == 0 || self.context > MAX_CONTEXT {
            let why = format!("is {}, must be 1 to {MAX_CONTEXT} tokens", self.context);
            return Err(PlanError::setting("--context", why));
        }
        if self.users == 0 || self.users > MAX_USERS {
            let why = format!("is {}, must be 1 to {MAX_USERS}", self.users);
            return Err(PlanError::setting("--users", why));
        }
        let speculation = &self.speculation;
        if speculation.drafts > MAX_DRAFTS {
            let why = format!("is {}, must be 0 to {MAX_DRAFTS}", speculation.drafts);
            return Err(PlanError::setting("--speculate", why));
        }
        if speculation.accept.iter().any(|chance| !(0.0..=1.0).contains(chance)) {
            return Err(PlanError::setting("--accept", "takes shares from 0% to 100%"));
        }
        if speculation.drafts > 0 && speculation.accept.is_empty() {
            let why = "needs --accept: how many drafted tokens are accepted decides whether it \
                       pays, and no trace of accepted tokens tells";
            return Err(PlanError::setting("--speculate", why));
        }
        if speculation.drafts > 0 && self.model.mtp_layers == 0 && self.room.draft.is_none() {
            let why = format!(
                "{} has no draft layers: give the bytes of a draft model with --draft-model",
                self.model.name
            );
            return Err(PlanError::setting("--speculate", why));
        }
        Ok(())
    }

    fn check_spread(&self) -> Result<(), PlanError> {
        let Parallel { tensor, expert } = self.parallel;
        if tensor == 0 || expert == 0 {
            return Err(PlanError::setting("--tp and --ep", "must be at least 1"));
        }
        if tensor > 1 && expert > 1 && tensor != expert {
            let why = "experts are spread over the same accelerators as attention: give equal \
                       numbers, or leave one out";
            return Err(PlanError::both("--tp", "--ep", why));
        }
        if self.ranks() > self.machine.accelerators {
            let why = format!(
                "needs {} accelerators and {} has {}: name the machine {}x{}",
                self.ranks(),
                self.machine.name,
                self.machine.accelerators,
                self.ranks(),
                single_name(&self.machine.name)
            );
            return Err(PlanError::setting("--tp or --ep", why));
        }
        let fewest = self.model.moe_layers().map(|(_, experts)| experts.count).min().unwrap_or(0);
        if expert > fewest {
            let why = format!("is {expert}, and a layer has {fewest} experts");
            return Err(PlanError::setting("--ep", why));
        }
        if let Some(Checkpoint { total, experts }) = self.checkpoint
            && (total == 0 || total > MAX_BYTES || experts.is_some_and(|experts| experts >= total))
        {
            let why = "must be over 0 and at most 2^53 bytes, and hold more than its experts";
            return Err(PlanError::setting("--weights", why));
        }
        Ok(())
    }

    fn check_room(&self) -> Result<(), PlanError> {
        let room = &self.room;
        if room.usable_share.is_some() && room.free.is_some() {
            let why = "one is a share of all memory, the other what is free: give one of them";
            return Err(PlanError::both("--usable-share", "--free", why));
        }
        if room.usable_share.is_some_and(|share| !(share > 0.0 && share <= 1.0)) {
            return Err(PlanError::setting("--usable-share", "must be over 0% and at most 100%"));
        }
        if let Some(free) = room.free.filter(|free| *free > self.machine.memory.value) {
            let why = format!("is {free} bytes, more than the {} of the machine", {
                self.machine.memory.value
            });
            return Err(PlanError::setting("--free", why));
        }
        if room.chunk == 0 || room.chunk > MAX_CONTEXT {
            return Err(PlanError::setting("--chunk", "must be at least one token"));
        }
        if room.buffers > 0 && room.overlap {
            let why = "either prefill has buffers of its own, or it overlaps within the slots";
            return Err(PlanError::both("--prefill-buffers", "--prefill-overlap", why));
        }
        let pace = &self.pace;
        if pace.efficiency.is_some_and(|share| !(share > 0.0 && share <= 1.0)) {
            return Err(PlanError::setting("--efficiency", "must be over 0% and at most 100%"));
        }
        if pace.measured.is_some() && (pace.fixed_ms > 0.0 || pace.efficiency.is_some()) {
            let why = "a measured step has everything in it";
            return Err(PlanError::both("--measured-step", "--fixed-ms or --efficiency", why));
        }
        if pace.measured.is_some_and(|(first, more)| first <= 0.0 || more < 0.0) {
            return Err(PlanError::setting("--measured-step", "needs a positive time"));
        }
        Ok(())
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

/// `8xh200` is made of `h200`.
fn single_name(name: &str) -> &str {
    match name.split_once('x') {
        Some((count, single)) if count.parse::<u32>().is_ok() => single,
        _ => name,
    }
}

/// Sums of sizes stay below 2^63 for every context, user and draft that passes.
const MAX_CONTEXT: u64 = 1 << 32;
const MAX_USERS: u32 = 65_536;
const MAX_DRAFTS: u32 = 63;
const MAX_BYTES: u64 = 1 << 53;
