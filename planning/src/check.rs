//! What of a request contradicts itself or cannot be.

use hotset_cost_models::model::Parallel;

use crate::request::{Bank, Checkpoint, MissPricing};
use crate::{PlanError, Request};

impl Request {
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
        self.check_reserve()?;
        if self.machine.unified && self.offload.bank == Some(Bank::Exclusive) {
            let why = "is for a host with memory of its own: a unified machine holds what has no \
                       slot in the same memory as what has one";
            return Err(PlanError::setting("`Offload::bank` exclusive", why));
        }
        if self.offload.misses == MissPricing::Balanced && self.host_kernel_ps_per_mib().is_none() {
            let why = format!(
                "needs the speed of experts on host cores, which neither {} nor link {} gives: \
                 give a machine file that has it (base = \"{}\", host_kernel_rate = \"60GB/s\"), or a link \
                 that was measured with it",
                self.machine.name,
                self.link().name,
                single_name(&self.machine.name)
            );
            return Err(PlanError::setting("`Offload::misses` balanced", why));
        }
        Ok(())
    }

    fn check_use(&self) -> Result<(), PlanError> {
        if self.context == 0 || self.context > MAX_CONTEXT {
            let why = format!("is {}, must be 1 to {MAX_CONTEXT} tokens", self.context);
            return Err(PlanError::setting("`Request::context`", why));
        }
        if self.users == 0 || self.users > MAX_USERS {
            let why = format!("is {}, must be 1 to {MAX_USERS}", self.users);
            return Err(PlanError::setting("`Request::users`", why));
        }
        let speculation = &self.speculation;
        if speculation.drafts > MAX_DRAFTS {
            let why = format!("is {}, must be 0 to {MAX_DRAFTS}", speculation.drafts);
            return Err(PlanError::setting("`Speculation::drafts`", why));
        }
        if speculation.accept.iter().any(|chance| !(0.0..=1.0).contains(chance)) {
            return Err(PlanError::setting(
                "`Speculation::accept`",
                "takes shares from 0% to 100%",
            ));
        }
        if speculation.drafts > 0 && speculation.accept.is_empty() {
            let why = "needs `Speculation::accept`: how many drafted tokens are accepted decides whether it \
                       pays, and no trace of accepted tokens tells";
            return Err(PlanError::setting("`Speculation::drafts`", why));
        }
        if speculation.drafts > 0 && self.model.mtp_layers == 0 && self.reserve.draft.is_none() {
            let why = format!(
                "{} has no draft layers: give the bytes of a draft model with `MemoryReserve::draft`",
                self.model.name
            );
            return Err(PlanError::setting("`Speculation::drafts`", why));
        }
        Ok(())
    }

    fn check_spread(&self) -> Result<(), PlanError> {
        let Parallel { tensor, expert } = self.parallel;
        if tensor == 0 || expert == 0 {
            return Err(PlanError::setting(
                "`Parallel::tensor` and `Parallel::expert`",
                "must be at least 1",
            ));
        }
        if tensor > 1 && expert > 1 && tensor != expert {
            let why = "experts are spread over the same accelerators as attention: give equal \
                       numbers, or leave one out";
            return Err(PlanError::both("`Parallel::tensor`", "`Parallel::expert`", why));
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
            return Err(PlanError::setting("`Parallel::tensor` or `Parallel::expert`", why));
        }
        let fewest = self.model.moe_layers().map(|(_, experts)| experts.count).min().unwrap_or(0);
        if expert > fewest {
            let why = format!("is {expert}, and a layer has {fewest} experts");
            return Err(PlanError::setting("`Parallel::expert`", why));
        }
        if let Some(Checkpoint { total, experts }) = self.storage.checkpoint
            && (total == 0 || total > MAX_BYTES || experts.is_some_and(|experts| experts >= total))
        {
            let why = "must be over 0 and at most 2^53 bytes, and hold more than its experts";
            return Err(PlanError::setting("`Storage::checkpoint`", why));
        }
        Ok(())
    }

    fn check_reserve(&self) -> Result<(), PlanError> {
        let room = &self.reserve;
        if room.usable_share.is_some() && room.free.is_some() {
            let why = "one is a share of all memory, the other what is free: give one of them";
            return Err(PlanError::both(
                "`MemoryReserve::usable_share`",
                "`MemoryReserve::free`",
                why,
            ));
        }
        if room.usable_share.is_some_and(|share| !(share > 0.0 && share <= 1.0)) {
            return Err(PlanError::setting(
                "`MemoryReserve::usable_share`",
                "must be over 0% and at most 100%",
            ));
        }
        if let Some(free) = room.free.filter(|free| *free > self.machine.memory.value) {
            let why = format!("is {free} bytes, more than the {} of the machine", {
                self.machine.memory.value
            });
            return Err(PlanError::setting("`MemoryReserve::free`", why));
        }
        if room.chunk == 0 || room.chunk > MAX_CONTEXT {
            return Err(PlanError::setting("`MemoryReserve::chunk`", "must be at least one token"));
        }
        if room.buffers > 0 && room.overlap {
            let why = "either prefill has buffers of its own, or it overlaps within the slots";
            return Err(PlanError::both(
                "`MemoryReserve::buffers`",
                "`MemoryReserve::overlap`",
                why,
            ));
        }
        let pace = &self.pace;
        if pace.efficiency.is_some_and(|share| !(share > 0.0 && share <= 1.0)) {
            return Err(PlanError::setting(
                "`Pace::efficiency`",
                "must be over 0% and at most 100%",
            ));
        }
        if pace.measured.is_some() && (pace.fixed_ms > 0.0 || pace.efficiency.is_some()) {
            let why = "a measured step has kernels and the engine's own in it";
            return Err(PlanError::both(
                "`Pace::measured`",
                "`Pace::fixed_ms` or `Pace::efficiency`",
                why,
            ));
        }
        if pace.measured.is_some_and(|step| step.first_ms <= 0.0 || step.further_ms < 0.0) {
            return Err(PlanError::setting("`Pace::measured`", "needs a positive time"));
        }
        Ok(())
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
