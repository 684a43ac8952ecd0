//! The rows of a comparison: counts and prices of each policy, size, phase and window.

use hotset_cost_models::Link;
use hotset_policies::PolicySpec;
use hotset_traces::Phase;

use super::execution::ReplayResult;
use super::jobs::Cell;
use crate::intervals::{Intervals, RowFigures};
use crate::open_loop::OpenLoop;
use crate::placing::{Load, Placed};
use crate::prepare::{Preparation, is_sized};
use crate::report::{LinkPrice, Row};
use crate::size::Size;
use crate::{Bucket, Prices, SimError, Tiered, Window};

/// All rows, in the order of the cells.
pub(super) fn rows(
    prepared: &Preparation<'_>,
    cells: &[Cell],
    results: &[ReplayResult],
) -> Result<Vec<Row>, SimError> {
    let request = prepared.request();
    let phases = request.phase.present(prepared.trace())?;
    let mut intervals = Intervals::of(prepared);
    let mut rows = Vec::new();
    for cell in cells {
        let (result, bound) = (&results[cell.replay], &results[cell.bound]);
        let load =
            prepared.load(&request.policies[cell.policy].value, &prepared.sizes()[cell.size]);
        let tiered = request.policies[cell.policy].value != PolicySpec::BeladyBypass;
        for &phase in &phases {
            for window in [Window::All, Window::Cold, Window::Steady] {
                let counted = &result.counts.bucket(phase, window);
                if counted.tokens == 0 {
                    continue;
                }
                let (policy, size) =
                    (&request.policies[cell.policy].text, &prepared.sizes()[cell.size]);
                let belady_misses = match load.experts() {
                    0 => bound.counts.bucket(phase, window).misses(),
                    placed => {
                        let whole = bound.counts.bucket(phase, Window::All).misses();
                        whole.saturating_sub(placed)
                    }
                };
                let bound = cell.bound().info().name;
                let of = RowOf {
                    policy,
                    size,
                    phase,
                    window,
                    result,
                    counted,
                    bound,
                    belady_misses,
                    load: &load,
                    tiered,
                };
                let mut row = row(prepared, &of);
                if let Some(intervals) = &mut intervals {
                    let (hit_rate, links) = (row.hit_rate, &row.links[..]);
                    let figures = RowFigures { phase, window, hit_rate, links };
                    row.sampled = Some(intervals.row(result.counts.sequences(), &figures)?);
                }
                rows.push(row);
            }
        }
    }
    Ok(rows)
}

/// What one row is of.
struct RowOf<'a> {
    policy: &'a str,
    size: &'a Size,
    phase: Phase,
    window: Window,
    result: &'a ReplayResult,
    counted: &'a Bucket,
    bound: &'static str,
    belady_misses: u64,
    load: &'a Load,
    /// Whether a cache in host memory lay under its cache.
    tiered: bool,
}

fn row(prepared: &Preparation<'_>, of: &RowOf<'_>) -> Row {
    let request = prepared.request();
    let capacity_slots = of.size.slots.total();
    let ratio = |part: u64, of: u64| (of > 0).then(|| part as f64 / of as f64);
    let (shape, bucket) = (prepared.shape(), of.counted);
    let sized = is_sized(shape);
    let bytes = bucket.moved_bytes(shape);
    Row {
        policy: of.policy.to_owned(),
        scope: of.size.scope,
        capacity_slots,
        capacity_share: f64::from(capacity_slots) / f64::from(shape.total_experts()),
        phase: of.phase,
        window: of.window,
        semantics: request.semantics,
        miss: None,
        tokens: bucket.tokens,
        accesses: bucket.accesses,
        hits: bucket.hits,
        misses: bucket.misses(),
        hit_rate: ratio(bucket.hits, bucket.accesses),
        demand_fetches: bucket.demanded(),
        unplaced: bucket.unplaced,
        overflow_events: bucket.overflow_events,
        prefetches: bucket.prefetched(),
        prefetches_used: bucket.prefetches_used,
        prefetches_wasted: bucket.prefetches_wasted,
        prefetches_cancelled: bucket.prefetches_cancelled,
        host_served: bucket.host_served,
        low_precision: bucket.low_precision.iter().sum(),
        refetches: bucket.refetches,
        moved_per_token: bucket.moved() as f64 / bucket.tokens as f64,
        mib_per_token: sized.then(|| bytes as f64 / f64::from(1 << 20) / bucket.tokens as f64),
        bound: of.bound,
        belady_misses: of.belady_misses,
        belady_ratio: ratio(bucket.misses(), of.belady_misses),
        open_loop: OpenLoop::of(prepared, of.phase, bucket),
        tiers: Tiered::of(prepared.host().filter(|_| of.tiered), shape, bucket),
        sampled: None,
        placed: Placed::of(of.load, shape, &request.links, sized),
        links: if sized {
            let price = |(index, link): (usize, &Link)| {
                let spent =
                    of.result.times.get(index).map(|times| times.bucket(of.phase, of.window));
                let compute =
                    u128::from(request.time.compute.token_ps(shape)) * u128::from(bucket.tokens);
                let prices = Prices::of(link, shape, bucket, compute, spent).over_disk(
                    request.time.disk.as_ref(),
                    shape,
                    bucket,
                );
                LinkPrice::per_token(&link.name, &prices, bucket.tokens)
            };
            request.links.iter().enumerate().map(price).collect()
        } else {
            Vec::new()
        },
    }
}
