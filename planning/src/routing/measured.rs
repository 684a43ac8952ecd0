//! One kind of step, replayed: so many sequences at once, so many tokens of each.

use std::ops::Range;

use hotset_policies::Slots;
use hotset_sim::{
    CurveSetting, LruCurve, PhaseFilter, ReplayProgress, Scope, Semantics, Steps, Window,
    drive_watched,
};
use hotset_traces::{IdColumn, Phase, Trace};

use super::need::StepKind;
use super::place::share_at;
use super::shape::MeanLayer;
use super::stack::GroupStack;
use crate::PlanError;

/// One kind of step, measured.
#[derive(Debug, Clone)]
pub(super) struct Measured {
    /// Mean distinct experts of a layer in a step.
    pub(super) distinct: f64,
    /// Fewest slots that the curve tells of.
    from: u32,
    /// Mean misses of a layer in a step, with `from` slots, `from + 1` and so on; never rising.
    misses: Vec<f64>,
    /// The trace's mean layer, and its experts over all layers.
    pub(super) mean: MeanLayer,
    total: f64,
}

/// The decode rows of a sequence: they lie together.
pub(super) fn decode_rows(trace: &Trace, rows: Range<usize>) -> Range<usize> {
    let phases = trace.phases();
    let decode = Phase::Decode as u8;
    let start = rows.clone().find(|row| phases[*row] == decode).unwrap_or(rows.end);
    let end = (start..rows.end).find(|row| phases[*row] != decode).unwrap_or(rows.end);
    start..end
}

/// Steps of exactly `users` sequences with `tokens` decode tokens each; a sequence that ends makes
/// room for the next, and when none is left the steps end.
pub(super) fn arranged(trace: &Trace, kind: StepKind) -> Result<Steps, PlanError> {
    let (users, tokens) = (kind.users as usize, kind.tokens as usize);
    let mut waiting = trace
        .sequences()
        .iter()
        .map(|sequence| decode_rows(trace, sequence.rows.clone()))
        .filter(|rows| rows.len() >= tokens);
    let sequences = waiting.clone().count();
    let mut running: Vec<Range<usize>> = waiting.by_ref().take(users).collect();
    if running.len() < users {
        return Err(PlanError::Users {
            trace: trace.name().to_owned(),
            users: users as u32,
            tokens: tokens as u32,
            sequences,
        });
    }
    let (mut order, mut bounds) = (Vec::new(), vec![0u32]);
    'steps: loop {
        for rows in &mut running {
            if rows.len() < tokens {
                match waiting.next() {
                    Some(next) => *rows = next,
                    None => break 'steps,
                }
            }
        }
        for rows in &mut running {
            // Rows of a trace are counted in 32 bits.
            order.extend((rows.start..rows.start + tokens).map(|row| row as u32));
            rows.start += tokens;
        }
        bounds.push(order.len() as u32);
    }
    Ok(Steps::from_order(order, bounds))
}

/// Share of the tokens that warm the cache up and are not counted.
const WARMUP: usize = 4;

/// LRU's misses at every number of slots, over the counted steps.
#[derive(Debug)]
pub(super) struct LruMisses {
    /// Distinct experts that all counted steps needed together.
    pub(super) accesses: f64,
    /// Fewest slots that are told of.
    pub(super) from: u32,
    /// Misses with `from` slots, `from + 1` and so on.
    pub(super) misses: Vec<f64>,
}

/// By `hotset_sim`'s curve: equal to a replay at every capacity.
fn exact(
    trace: &Trace,
    way: (&Steps, &dyn ReplayProgress),
    cold: u64,
) -> Result<LruMisses, PlanError> {
    let setting = CurveSetting {
        scope: Scope::Global,
        semantics: Semantics::Event,
        phase: PhaseFilter::Decode,
        warmup: Some(cold),
    };
    let curve = LruCurve::until(trace, way, &setting).map_err(PlanError::replay)?;
    let from = curve.exact_from(0);
    let mut accesses = 0.0;
    let at = |slots| curve.counts(&Slots::Global(slots));
    let misses = (from..=trace.shape().total_experts()).map_while(at).map(|counts| {
        let bucket = counts.bucket(Phase::Decode, Window::Steady);
        accesses = bucket.accesses as f64;
        bucket.misses() as f64
    });
    let misses = misses.collect();
    Ok(LruMisses { accesses, from, misses })
}

/// By groups; `cold` steps warm up.
pub(super) fn grouped(
    trace: &Trace,
    way: (&Steps, &dyn ReplayProgress),
    cold: u64,
) -> Result<LruMisses, PlanError> {
    let mut stack = GroupStack::new(trace.shape(), cold);
    let decode = |phase| phase == Phase::Decode;
    match trace.ids() {
        IdColumn::U8(ids) => drive_watched(trace, ids, way, decode, &mut stack),
        IdColumn::U16(ids) => drive_watched(trace, ids, way, decode, &mut stack),
    }
    .map_err(PlanError::replay)?;
    let (widest, accesses, hits) = stack.finish();
    let accesses = accesses as f64;
    let misses = hits.into_iter().skip(widest as usize).map(|hits| (accesses - hits).max(0.0));
    Ok(LruMisses { accesses, from: widest, misses: misses.collect() })
}

/// Tokens of whole steps that are not counted, the same for every capacity.
pub(super) fn warmup_tokens(steps: &Steps, kind: StepKind) -> u64 {
    (steps.len() / WARMUP) as u64 * kind.tokens_in_all()
}

impl Measured {
    pub(super) fn of(
        trace: &Trace,
        kind: StepKind,
        progress: &dyn ReplayProgress,
    ) -> Result<Self, PlanError> {
        let steps = arranged(trace, kind)?;
        let tokens = kind.tokens_in_all();
        // Whole steps, and the same part for every capacity: a larger cache must not look worse
        // for having been full later.
        let cold = warmup_tokens(&steps, kind);
        let shape = trace.shape();
        let layers = shape.layers().len() as f64;
        let counted = (steps.len() as u64 - cold / tokens) as f64 * layers;
        // Steps of one token exactly; of several, where an exact curve takes many times as long, all
        // but the order within an event.
        let lru = match tokens {
            1 => exact(trace, (&steps, progress), cold)?,
            _ => grouped(trace, (&steps, progress), cold / tokens)?,
        };
        let (total, mut least) = (shape.total_experts(), f64::INFINITY);
        // A larger pool can be run as a smaller one.
        let misses = lru.misses.into_iter().map(|misses| {
            least = least.min(misses / counted);
            least
        });
        let misses = misses.collect();
        let distinct = lru.accesses / counted;
        Ok(Self {
            distinct,
            from: lru.from,
            misses,
            mean: MeanLayer::of(shape.layers()),
            total: f64::from(total),
        })
    }

    /// Share of the needed experts that miss with the slots at `place` between a step's experts and all.
    pub(super) fn miss_rate_at(&self, place: f64) -> f64 {
        if place < 0.0 {
            return 1.0;
        }
        self.miss_rate(share_at(place, self.distinct, self.mean.experts))
    }

    /// Share of the needed experts that miss when `share` of all have a slot; between whole slots
    /// a straight line, with fewer slots than a step's widest layer everything.
    pub(super) fn miss_rate(&self, share: f64) -> f64 {
        if share >= 1.0 || self.distinct <= 0.0 {
            return 0.0;
        }
        let slots = share * self.total - f64::from(self.from);
        if slots < 0.0 {
            return 1.0;
        }
        let whole = slots.floor();
        let index = whole as usize;
        let at = |index: usize| self.misses.get(index).copied().unwrap_or(0.0);
        let misses = at(index) + (at(index + 1) - at(index)) * (slots - whole);
        (misses / self.distinct).clamp(0.0, 1.0)
    }
}
