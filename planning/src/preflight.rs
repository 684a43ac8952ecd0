//! Preflight: what each accelerator and each host of a cluster must have free before an engine
//! starts, as a contract that a script can check.

use hotset_sim::SCHEMA;
use serde::Serialize;

use crate::fit::fit;
use crate::memory;
use crate::verdict::{Fit, FitVerdict};
use crate::weights::weights;
use crate::{PlanError, Request};

/// The contract of every rank: all ranks' are the same, the larger share where things do not
/// divide.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Preflight {
    /// The schema of results.
    pub schema: &'static str,
    /// hotset's version.
    pub hotset: &'static str,
    /// The model.
    pub model: String,
    /// The machine.
    pub machine: String,
    /// Ranks, and how many share a host.
    pub ranks: u32,
    /// Of them, in one host.
    pub ranks_per_host: u32,
    /// Whether every rank and host holds what it must.
    pub passes: bool,
    /// How it fits.
    pub verdict: FitVerdict,
    /// The rule: which verdicts pass.
    pub rule: &'static str,
    /// Of one rank: weights that it holds while it runs.
    pub rank_weights_bytes: u64,
    /// Of one rank: everything that it holds while it runs, what is reserved for prefill with it.
    pub rank_steady_bytes: u64,
    /// Of one rank: what it may hold.
    pub rank_budget_bytes: u64,
    /// Of one rank: the budget less what it holds; negative where it is short.
    pub rank_margin_bytes: i64,
    /// Of one host: what it holds while it runs.
    pub host_steady_bytes: u64,
    /// Of one host: the most that it holds, while weights are loaded.
    pub host_peak_bytes: u64,
    /// Of one host: what it may hold.
    pub host_budget_bytes: u64,
    /// How it fits in full.
    pub fit: Fit,
}

impl Preflight {
    /// Every text of the contract that may name a field of the request.
    pub fn texts_mut(&mut self) -> impl Iterator<Item = &mut String> {
        self.fit.texts_mut()
    }
}

/// Checks `request`; with `cached`, a model that is not wholly resident passes too.
///
/// # Errors
/// [`PlanError`].
pub fn preflight(request: &Request, cached: bool) -> Result<Preflight, PlanError> {
    let fitted = fit(request)?;
    let weights = weights(request)?.bytes;
    let passes = match fitted.verdict {
        FitVerdict::Resident => true,
        FitVerdict::Cached => cached,
        FitVerdict::WithDisk | FitVerdict::DoesNotFit => false,
    };
    // Held against what all experts need, unless a cache is enough.
    let steady = match cached && fitted.verdict == FitVerdict::Cached {
        true => fitted.used_bytes(),
        false => fitted.needed_for_all_bytes,
    };
    let host = memory::sum(&fitted.host);
    let always = weights.always();
    let resident = match cached {
        true => fitted.slots_bytes,
        false => weights.experts.iter().map(|l| u64::from(l.count).saturating_mul(l.slot)).sum(),
    };
    Ok(Preflight {
        schema: SCHEMA,
        hotset: env!("CARGO_PKG_VERSION"),
        model: request.model.name.clone(),
        machine: request.machine.name.clone(),
        ranks: request.ranks(),
        ranks_per_host: request.ranks_per_host(),
        passes,
        verdict: fitted.verdict,
        rule: if cached { "resident or cached" } else { "resident" },
        rank_weights_bytes: always.saturating_add(resident),
        rank_steady_bytes: steady,
        rank_budget_bytes: fitted.budget.bytes,
        rank_margin_bytes: difference(fitted.budget.bytes, steady),
        host_steady_bytes: host,
        host_peak_bytes: host.max(fitted.load_transient_bytes),
        host_budget_bytes: fitted.host_budget.bytes,
        fit: fitted,
    })
}

fn difference(budget: u64, used: u64) -> i64 {
    let wide = i128::from(budget) - i128::from(used);
    i64::try_from(wide).unwrap_or(if wide < 0 { i64::MIN } else { i64::MAX })
}
