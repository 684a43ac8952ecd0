//! Does it fit: slots out of what the lines leave, the host's side, and the verdict.
//!
//! On a unified machine there is one pool: what the host holds comes off the same bytes, and a bank
//! there is a second copy.

use hotset_cost_models::hardware::Basis;

use crate::engine::buffers::Placed;
use crate::memory;
use crate::memory_line::MemoryLine;
use crate::request::Bank;
use crate::reserve;
use crate::verdict::{Binding, Fit, FitVerdict};
use crate::weights::{RankWeights, weights};
use crate::{PlanError, Request};

/// The host's line of experts.
pub(crate) const EXPERT_BANK: &str = "expert bank";

/// Fits `request` as it is.
///
/// # Errors
/// [`PlanError`]: settings that cannot be, formats that nobody gave.
pub fn fit(request: &Request) -> Result<Fit, PlanError> {
    request.check()?;
    let weights = weights(request)?;
    Ok(Fitting::new(request, &weights).fit(request.users, request.context, None))
}

/// A request with its weights, to be fitted for several numbers of users and tokens.
pub(crate) struct Fitting<'a> {
    request: &'a Request,
    pub weights: &'a RankWeights,
    budget: MemoryLine,
    host_budget: MemoryLine,
    experts: u64,
    all_slots_bytes: u64,
    slot: u64,
    least: u64,
    /// Routed experts of one host as stored.
    bank: u64,
    /// Everything of one host as stored.
    whole: u64,
}

impl<'a> Fitting<'a> {
    pub fn new(request: &'a Request, weights: &'a RankWeights) -> Self {
        let bytes = &weights.bytes;
        let largest = bytes.experts.iter().map(|layer| u64::from(layer.count)).max().unwrap_or(0);
        let layers = if request.reserve.overlap { 2 } else { 1 };
        let all = |layer: &hotset_cost_models::model::LayerExperts| {
            u64::from(layer.count).saturating_mul(layer.slot)
        };
        let ranks = u64::from(request.ranks_per_host());
        Self {
            request,
            weights,
            budget: budget(request),
            host_budget: host_budget(request),
            experts: bytes.expert_count(),
            all_slots_bytes: bytes.experts.iter().map(all).fold(0, u64::saturating_add),
            slot: bytes.largest_slot().max(1),
            least: largest.saturating_mul(layers).min(bytes.expert_count()),
            bank: bytes.routed().saturating_mul(ranks),
            whole: bytes.total().saturating_mul(ranks),
        }
    }

    /// With `users` sequences of `context` tokens; at most `most` slots.
    pub fn fit(&self, users: u32, context: u64, most: Option<u64>) -> Fit {
        let whole = self.lines((users, context), Placed::Accelerator);
        let unified = self.request.machine.unified;
        let bank = self.request.offload.bank;
        let loading = memory::loading(self.request, self.whole);
        // On a unified machine what the host holds comes off the accelerator's pool.
        let in_pool = if unified && bank.is_some() { self.bank } else { 0 };
        let limit = self.budget.bytes;
        let everything = memory::sum(&whole.0).saturating_add(self.all_slots_bytes);
        let resident = everything.saturating_add(in_pool) <= limit
            && bank.is_none()
            && most.is_none_or(|most| most >= self.experts);
        // What an engine reserves may depend on whether the host has experts.
        let (accelerator, host) = match resident || self.request.engine.is_none() {
            true => whole,
            false => self.lines((users, context), Placed::Host),
        };
        let fixed = memory::sum(&accelerator);
        let needed = fixed.saturating_add(self.all_slots_bytes).saturating_add(in_pool);
        let mut fit = Fit {
            verdict: FitVerdict::Resident,
            binding: Binding::Nothing,
            short_bytes: 0,
            budget: self.budget.clone(),
            accelerator,
            slots: self.experts,
            experts: self.experts,
            least_slots: self.least,
            slot_bytes: self.slot,
            slots_bytes: self.all_slots_bytes,
            left_bytes: limit.saturating_sub(needed),
            host_budget: self.host_budget.clone(),
            host,
            load_transient_bytes: loading.needed,
            page_cache_bytes: loading.page_cache,
            on_disk_bytes: 0,
            needed_for_all_bytes: needed,
        };
        if resident {
            self.load(&mut fit);
            return fit;
        }
        let memory = if unified { Binding::UnifiedMemory } else { Binding::AcceleratorMemory };
        let floor = self.least.saturating_mul(self.slot);
        let taken = fixed.saturating_add(in_pool);
        let Some(free) = limit.checked_sub(taken.saturating_add(floor)) else {
            fit.verdict = FitVerdict::DoesNotFit;
            fit.binding = memory;
            fit.short_bytes = taken.saturating_add(floor) - limit;
            (fit.slots, fit.slots_bytes, fit.left_bytes) = (0, 0, 0);
            return fit;
        };
        let extra = free / self.slot;
        let slots = self.least.saturating_add(extra).min(self.experts);
        fit.slots = most.map_or(slots, |most| slots.min(most.max(self.least)));
        let all = fit.slots == self.experts;
        fit.slots_bytes =
            if all { self.all_slots_bytes } else { fit.slots.saturating_mul(self.slot) };
        fit.left_bytes = limit.saturating_sub(taken.saturating_add(fit.slots_bytes));
        if !all {
            fit.binding = memory;
            fit.short_bytes = needed.saturating_sub(limit);
        }
        self.place(&mut fit);
        fit
    }

    /// What an accelerator and its host hold beside slots and experts.
    fn lines(
        &self,
        (users, context): (u32, u64),
        placed: Placed,
    ) -> (Vec<MemoryLine>, Vec<MemoryLine>) {
        let mut engine = reserve::lines(self.request, self.weights, context, placed);
        let host = engine.as_mut().map(|engine| std::mem::take(&mut engine.host));
        let sequences = (users, context);
        let accelerator = memory::accelerator(self.request, self.weights, sequences, engine);
        (accelerator, host.unwrap_or_default())
    }

    /// Where experts without a slot are.
    fn place(&self, fit: &mut Fit) {
        let ranks = u64::from(self.request.ranks_per_host());
        let without = self.bank.saturating_sub(fit.slots_bytes.saturating_mul(ranks));
        let all = fit.slots == self.experts;
        if self.request.machine.unified {
            match (self.request.offload.bank, all) {
                (Some(_), _) => {
                    fit.verdict = if all { FitVerdict::Resident } else { FitVerdict::Cached };
                    let source = "every expert, in the same memory as its slot's copy";
                    fit.host.push(MemoryLine::new(
                        EXPERT_BANK,
                        self.bank,
                        Basis::Calculated,
                        source,
                    ));
                }
                (None, true) => {}
                (None, false) => self.to_disk(fit, without),
            }
            return self.load(fit);
        }
        // Beside what the engine keeps there.
        let held = self.host_budget.bytes.saturating_sub(memory::sum(&fit.host));
        let (kept, source) = match self.request.offload.bank {
            Some(Bank::Inclusive) => (self.bank, "every expert, with a slot or without"),
            Some(Bank::Exclusive) => (without, "experts without a slot"),
            None if self.bank <= held => (self.bank, "every expert, with a slot or without"),
            None => (without, "experts without a slot: all of them would not fit"),
        };
        if kept <= held {
            fit.verdict = if all { FitVerdict::Resident } else { FitVerdict::Cached };
            fit.host.push(MemoryLine::new(EXPERT_BANK, kept, Basis::Calculated, source));
        } else {
            let short = kept - held;
            let source = "as many as host memory holds";
            fit.host.push(MemoryLine::new(EXPERT_BANK, held, Basis::Calculated, source));
            fit.binding = Binding::HostMemory;
            fit.short_bytes = short;
            self.to_disk(fit, short);
        }
        self.load(fit);
    }

    fn to_disk(&self, fit: &mut Fit, bytes: u64) {
        fit.on_disk_bytes = bytes;
        let reads = self.request.offload.disk && self.request.machine.disk_rate.is_some();
        fit.verdict = if reads { FitVerdict::WithDisk } else { FitVerdict::DoesNotFit };
    }

    /// Loading needs room as well: beside what the host holds, on a unified machine beside all.
    fn load(&self, fit: &mut Fit) {
        if !fit.verdict.in_memory() {
            return;
        }
        let (limit, beside) = if self.request.machine.unified {
            (self.host_budget.bytes, fit.used_bytes().saturating_add(fit.host_used_bytes()))
        } else {
            // The bank itself is what is being loaded.
            (self.host_budget.bytes, 0)
        };
        let needs = beside.saturating_add(fit.load_transient_bytes);
        if needs > limit && fit.load_transient_bytes > 0 {
            fit.verdict = FitVerdict::DoesNotFit;
            fit.binding = Binding::LoadTransient;
            fit.short_bytes = needs - limit;
        }
    }
}

/// What an accelerator may hold.
fn budget(request: &Request) -> MemoryLine {
    let machine = &request.machine;
    if let Some(free) = request.reserve.free {
        return MemoryLine::new("usable memory", free, Basis::Assumed, "`MemoryReserve::free`");
    }
    let engine = request.engine.as_ref().and_then(|engine| engine.memory.as_ref());
    let own = engine.and_then(|memory| memory.usable_share.as_ref());
    let (share, basis, source) = match (request.reserve.usable_share, own) {
        (Some(share), _) => (share, Basis::Assumed, "`MemoryReserve::usable_share`".to_owned()),
        (None, Some(own)) => (own.value, own.basis, own.source.clone()),
        (None, None) => {
            let share = &machine.usable_share;
            (share.value, share.basis, share.source.clone())
        }
    };
    // Below 2^53: the product is the same on every machine.
    let bytes = (machine.memory.value as f64 * share).floor() as u64;
    let whole = format!("{:.1}% of the memory: {source}", share * 100.0);
    if machine.unified && host_budget(request).bytes < bytes {
        let source = "the pool less what the system keeps";
        return MemoryLine::new("usable memory", host_budget(request).bytes, basis, source);
    }
    MemoryLine::new("usable memory", bytes, basis, whole)
}

/// What a host may hold.
fn host_budget(request: &Request) -> MemoryLine {
    let machine = &request.machine;
    let (reserved, basis, source) = match request.reserve.host_reserved {
        Some(given) => (given, Basis::Assumed, "`MemoryReserve::host_reserved`".to_owned()),
        None => {
            let reserved = &machine.host_reserved;
            (reserved.value, reserved.basis, reserved.source.clone())
        }
    };
    let bytes = machine.host_memory.value.saturating_sub(reserved);
    MemoryLine::new(
        "usable host memory",
        bytes,
        basis,
        format!("less what the system keeps: {source}"),
    )
}
