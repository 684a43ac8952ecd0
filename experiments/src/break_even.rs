//! The precision above which prefetch pays over a link: computed, and found by replay.
//!
//! Of `a` copies that a layer prefetches, `u` are used. Each spares a demand copy `t` that the
//! layer would have waited for; each of the others pushes out an expert that is missed `rho` times.
//! The copies run beside the layer's compute `c`, which they slow by the share `s`, and what of
//! them exceeds it is waited for. So prefetch pays if
//! `(u - rho (a - u)) t > max(0, a t - c) + s min(a t, c)`, which for the precision `p = u / a` is
//! `p > (x + rho) / (1 + rho)` with `x = (max(0, a t - c) + s min(a t, c)) / (a t)`.

use hotset_cost_models::Link;
use hotset_sim::{Forecast, OracleConfig, Prefetch, PrefetchSource};
use serde::Serialize;

use crate::run::{Ground, Outcome, run};
use crate::{Arm, ExperimentError, Protocol};

/// The break-even of prefetch over one link.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct BreakEven {
    /// The link.
    pub link: String,
    /// Guesses a token and layer.
    pub width: u32,
    /// Copies a layer that are prefetched, at the precision that was found.
    pub copies_per_layer: f64,
    /// What such a copy takes behind others, and what a layer computes, in microseconds.
    pub copy_us: f64,
    /// Compute a layer, in microseconds.
    pub compute_us: f64,
    /// Misses that a prefetch which nothing asks for causes.
    pub pollution: f64,
    /// Share of the copies that must be used for prefetch to pay, from the formula.
    pub computed: f64,
    /// The same by replay of an oracle of ever closer precision; absent: prefetch pays at no
    /// precision, or at every one (then `computed` says which).
    pub replayed: Option<f64>,
    /// What the replay says where there is no break-even.
    pub always: Option<bool>,
    /// Share of the guesses (resident ones too) that must be right, at the replayed break-even.
    pub guess_precision: Option<f64>,
}

/// An oracle that guesses `width` experts a layer, of which the share `precision` is right.
fn oracle(width: u32, top_k: u32, precision: f64, seed: u64) -> Arm {
    let recall = (precision * f64::from(width) / f64::from(top_k)).min(1.0);
    let config = OracleConfig { precision, recall, seed };
    let mut arm = Arm::lru();
    arm.name = format!("lru/oracle:precision={precision}");
    arm.prefetch = Prefetch::By(Forecast::new(PrefetchSource::Oracle(config)));
    arm
}

/// A replay of the oracle, against LRU.
struct Point {
    precision: f64,
    fetch_precision: f64,
    copies_per_layer: f64,
    pollution: f64,
    gain_ps: i128,
}

fn point(
    ground: &Ground<'_>,
    lru: &Outcome,
    width: u32,
    precision: f64,
) -> Result<Point, ExperimentError> {
    let shape = ground.shape;
    let top_k = shape.layers().iter().map(|layer| layer.top_k).min().unwrap_or(1);
    let arm = oracle(width, top_k, precision, ground.protocol.seed);
    let outcome = run(ground, &arm)?;
    let (with, without) = (outcome.counts, lru.counts);
    let used = with.prefetches_used as f64;
    let unused = with.prefetches as f64 - used;
    let more = with.demand_fetches as f64 + used - without.demand_fetches as f64;
    let layers = (shape.layers().len().saturating_sub(1).max(1)) as f64 * with.tokens as f64;
    Ok(Point {
        precision,
        fetch_precision: used / (with.prefetches as f64).max(1.0),
        copies_per_layer: with.prefetches as f64 / layers,
        pollution: if unused > 0.0 { (more / unused).max(0.0) } else { 0.0 },
        gain_ps: lru.prices[0].timeline as i128 - outcome.prices[0].timeline as i128,
    })
}

/// Finds the break-even of `width` guesses a layer over one link, in `halvings` halvings.
pub(crate) fn break_even(
    ground: &Ground<'_>,
    link: &Link,
    width: u32,
    halvings: u32,
) -> Result<BreakEven, ExperimentError> {
    let shape = ground.shape;
    let protocol = Protocol { links: vec![link.clone()], ..ground.protocol.clone() };
    let ground = Ground { protocol: &protocol, ..*ground };
    let lru = run(&ground, &Arm::lru())?;
    let at = |precision| point(&ground, &lru, width, precision);
    let top_k = shape.layers().iter().map(|layer| layer.top_k).min().unwrap_or(1);
    // More guesses than the layer uses cannot all be right.
    let (mut low, mut high) = (at(0.01)?, at((f64::from(top_k) / f64::from(width)).min(1.0))?);
    let always = (low.gain_ps > 0).then_some(true).or((high.gain_ps <= 0).then_some(false));
    if always.is_none() {
        for _ in 0..halvings {
            let middle = at((low.precision + high.precision) / 2.0)?;
            if middle.gain_ps > 0 {
                high = middle;
            } else {
                low = middle;
            }
        }
    }
    let near = match always {
        Some(true) => &low,
        _ => &high,
    };
    let layers = shape.layers().len().max(1) as f64;
    let bytes = shape.layers().iter().map(|layer| layer.expert_bytes).max().unwrap_or(0);
    let copy = link.queued_ps(bytes) as f64;
    let compute = protocol.time.compute.token_ps(shape) as f64 / layers;
    let slowed = if protocol.time.contention {
        f64::from(link.contention.kernel_beside_copy_permille) / 1000.0 - 1.0
    } else {
        0.0
    };
    let work = near.copies_per_layer * copy;
    let paid = (work - compute).max(0.0) + slowed * work.min(compute);
    let share = if work > 0.0 { paid / work } else { 0.0 };
    let between = |of: fn(&Point) -> f64| (of(&low) + of(&high)) / 2.0;
    Ok(BreakEven {
        link: link.name.clone(),
        width,
        copies_per_layer: near.copies_per_layer,
        copy_us: copy / 1e6,
        compute_us: compute / 1e6,
        pollution: near.pollution,
        computed: (share + near.pollution) / (1.0 + near.pollution),
        replayed: always.is_none().then(|| between(|point| point.fetch_precision)),
        always,
        guess_precision: always.is_none().then(|| between(|point| point.precision)),
    })
}
