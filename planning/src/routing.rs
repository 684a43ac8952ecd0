//! What a step needs of each layer and what of it misses, measured from a trace.
//!
//! Batches of unrelated sequences and windows of one sequence's consecutive tokens need different
//! numbers of experts, so both are replayed as an engine would run them: so many sequences at
//! once, so many tokens of each in a step. LRU's misses at every capacity come from one pass.

use std::collections::BTreeMap;
use std::sync::Mutex;

use hotset_cost_models::Model;
use hotset_policies::Slots;
use hotset_sim::{CurveSetting, LruCurve, Scope, Semantics, Steps, TraceSummary, Window};
use hotset_traces::{Phase, Trace};
use rayon::prelude::*;
use serde::Serialize;

use crate::PlanError;

/// A kind of step: sequences at once, and tokens of each.
pub type StepKind = (u32, u32);

/// How a model's tokens choose experts.
#[derive(Debug)]
pub struct Routing<'a> {
    source: Source<'a>,
    experts: f64,
    top_k: f64,
}

#[derive(Debug)]
enum Source<'a> {
    /// No trace: every expert as likely as any other, every token independent.
    Uniform,
    /// A trace, of this model or of another one.
    Trace { trace: &'a Trace, stand_in: bool, curves: Mutex<BTreeMap<StepKind, Measured>> },
}

/// One kind of step, measured.
#[derive(Debug, Clone)]
struct Measured {
    /// Mean distinct experts of a layer in a step.
    distinct: f64,
    /// Fewest slots that the curve tells of.
    from: u32,
    /// Mean misses of a layer in a step, with `from` slots, `from + 1` and so on; never rising.
    misses: Vec<f64>,
    /// Experts and top-k of a layer, and experts over all layers, of the trace.
    experts: f64,
    top_k: f64,
    total: f64,
}

/// What a step needs of a layer.
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
pub struct Need {
    /// Distinct experts.
    pub distinct: f64,
    /// Of them, those without a slot.
    pub misses: f64,
}

/// What the routing rests on, for results.
#[derive(Debug, Clone, PartialEq, Serialize)]
#[serde(tag = "kind", rename_all = "kebab-case")]
pub enum RoutingSummary {
    /// No trace was given.
    Uniform,
    /// A trace with the model's layers, experts and top-k.
    OwnTrace {
        /// The trace.
        trace: TraceSummary,
    },
    /// Another model's trace.
    StandIn {
        /// The trace.
        trace: TraceSummary,
        /// How it stands in.
        how: &'static str,
    },
}

const HOW: &str = "misses at the same share of each layer's experts; distinct experts as the \
                   trace's relate to uniform routing of its own shape";

impl<'a> Routing<'a> {
    /// Routing without a trace: every expert alike. Misses are then too many, as real routing is
    /// skewed and repeats itself.
    #[must_use]
    pub fn uniform(model: &Model) -> Self {
        let (experts, top_k) = shape_of(model);
        Self { source: Source::Uniform, experts, top_k }
    }

    /// Routing as `trace` has it; `stand_in` allows another model's.
    ///
    /// # Errors
    /// [`PlanError::OtherModel`], [`PlanError::Setting`] for a trace without decode tokens.
    pub fn of_trace(model: &Model, trace: &'a Trace, stand_in: bool) -> Result<Self, PlanError> {
        let (experts, top_k) = shape_of(model);
        let of_trace = trace.shape().layers().iter().map(|layer| (layer.experts, layer.top_k));
        let of_model = model.moe_layers().map(|(_, experts)| (experts.count, experts.top_k));
        let same = of_trace.eq(of_model);
        if !same && !stand_in {
            let layers = trace.shape().layers();
            return Err(PlanError::OtherModel {
                trace: trace.name().to_owned(),
                trace_shape: told(layers.iter().map(|layer| (layer.experts, layer.top_k))),
                model: model.name.clone(),
                model_shape: told(model.moe_layers().map(|(_, e)| (e.count, e.top_k))),
            });
        }
        if trace.phases().iter().all(|phase| *phase != Phase::Decode as u8) {
            let why = format!("'{}' has no decode tokens", trace.name());
            return Err(PlanError::setting("--trace", why));
        }
        let curves = Mutex::new(BTreeMap::new());
        let source = Source::Trace { trace, stand_in: !same, curves };
        Ok(Self { source, experts, top_k })
    }

    /// Measures these kinds of steps, in parallel; asked again, they cost nothing.
    ///
    /// # Errors
    /// [`PlanError::Users`].
    pub fn prepare(&self, kinds: &[StepKind]) -> Result<(), PlanError> {
        let Source::Trace { trace, curves, .. } = &self.source else { return Ok(()) };
        let known = |kind: &StepKind| lock(curves).contains_key(kind);
        let missing: Vec<StepKind> = kinds.iter().copied().filter(|kind| !known(kind)).collect();
        let measured: Vec<(StepKind, Measured)> = missing
            .par_iter()
            .map(|&kind| Ok((kind, Measured::of(trace, kind)?)))
            .collect::<Result<_, PlanError>>()?;
        lock(curves).extend(measured);
        Ok(())
    }

    /// Whether this trace can make such steps.
    ///
    /// # Errors
    /// [`PlanError::Users`].
    pub fn supports(&self, (users, tokens): StepKind) -> Result<(), PlanError> {
        let Source::Trace { trace, .. } = &self.source else { return Ok(()) };
        let long_enough = |sequence: &std::ops::Range<usize>| {
            decode_rows(trace, sequence.clone()).len() >= tokens as usize
        };
        let sequences = trace.sequences().iter().filter(|s| long_enough(&s.rows)).count();
        if (users as usize) <= sequences {
            return Ok(());
        }
        Err(PlanError::Users { trace: trace.name().to_owned(), users, tokens, sequences })
    }

    /// What a step of this kind needs of a layer when `share` of its experts have a slot.
    ///
    /// # Errors
    /// [`PlanError::Users`].
    pub fn need(&self, kind: StepKind, share: f64) -> Result<Need, PlanError> {
        let tokens = u64::from(kind.0) * u64::from(kind.1);
        let uniform = union_of_uniform(self.experts, self.top_k, tokens);
        let Source::Trace { stand_in, curves, .. } = &self.source else {
            let misses = if share >= 1.0 { 0.0 } else { uniform * (1.0 - share) };
            return Ok(Need { distinct: uniform, misses });
        };
        self.prepare(&[kind])?;
        let curves = lock(curves);
        let Some(measured) = curves.get(&kind) else {
            return Ok(Need { distinct: uniform, misses: uniform });
        };
        let distinct = if *stand_in {
            let of_trace = union_of_uniform(measured.experts, measured.top_k, tokens);
            let most = self.experts.min(self.top_k * tokens as f64);
            (uniform * measured.distinct / of_trace).clamp(self.top_k.min(most), most)
        } else {
            measured.distinct
        };
        let rate = measured.miss_rate(share);
        Ok(Need { distinct, misses: distinct * rate })
    }

    /// What the routing rests on.
    #[must_use]
    pub fn summary(&self) -> RoutingSummary {
        match &self.source {
            Source::Uniform => RoutingSummary::Uniform,
            Source::Trace { trace, stand_in: true, .. } => {
                RoutingSummary::StandIn { trace: TraceSummary::of(trace), how: HOW }
            }
            Source::Trace { trace, .. } => {
                RoutingSummary::OwnTrace { trace: TraceSummary::of(trace) }
            }
        }
    }

    /// Misses of a layer if the most used experts over all layers are pinned in slots for `share` of
    /// them, known in advance; `None` without a trace of the model's own.
    pub(crate) fn pinned(&self, (users, tokens): StepKind, share: f64) -> Option<f64> {
        let Source::Trace { trace, stand_in: false, .. } = &self.source else { return None };
        let inclusion = window_inclusion(trace, tokens as usize);
        let layers = inclusion.len().max(1) as f64;
        let in_step = |chance: &f64| 1.0 - power(1.0 - chance, users.into());
        let mut needed: Vec<f64> = inclusion.iter().flatten().map(in_step).collect();
        needed.sort_by(f64::total_cmp);
        let without = ((1.0 - share) * needed.len() as f64).round() as usize;
        Some(needed.iter().take(without).sum::<f64>() / layers)
    }

    /// Unions of so many users with windows of so many tokens: what uniform routing, skew without
    /// order, and the trace itself say; `None` without a trace.
    ///
    /// # Errors
    /// [`PlanError::Users`].
    pub fn unions(&self, (users, tokens): StepKind) -> Result<Option<Unions>, PlanError> {
        let Source::Trace { trace, .. } = &self.source else { return Ok(None) };
        let need = self.need((users, tokens), 1.0)?;
        let inclusion = window_inclusion(trace, tokens as usize);
        let of_layer = |layer: &Vec<f64>| -> f64 {
            layer.iter().map(|chance| 1.0 - power(1.0 - chance, users.into())).sum()
        };
        let sum: f64 = inclusion.iter().map(of_layer).sum();
        let all = u64::from(users) * u64::from(tokens);
        let layers = trace.shape().layers();
        let mean = |of: fn(&hotset_traces::LayerShape) -> u32| {
            layers.iter().map(|layer| f64::from(of(layer))).sum::<f64>() / layers.len() as f64
        };
        Ok(Some(Unions {
            users,
            tokens,
            uniform: union_of_uniform(mean(|l| l.experts), mean(|l| l.top_k), all),
            windows: sum / layers.len() as f64,
            replayed: need.distinct,
        }))
    }
}

/// Distinct experts that a layer needs in one step, three ways.
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
pub struct Unions {
    /// Sequences at once.
    pub users: u32,
    /// Consecutive tokens of each.
    pub tokens: u32,
    /// Every expert alike, every token independent.
    pub uniform: f64,
    /// Windows of consecutive tokens as the trace has them, of unrelated sequences.
    pub windows: f64,
    /// Replayed with the trace's own sequences beside each other.
    pub replayed: f64,
}

fn lock<T>(mutex: &Mutex<T>) -> std::sync::MutexGuard<'_, T> {
    // A panic elsewhere leaves whole entries: the map is sound.
    mutex.lock().unwrap_or_else(std::sync::PoisonError::into_inner)
}

/// Mean experts and top-k of the layers.
fn shape_of(model: &Model) -> (f64, f64) {
    let layers = model.moe_layers().count().max(1) as f64;
    let experts: f64 = model.moe_layers().map(|(_, experts)| f64::from(experts.count)).sum();
    let top_k: f64 = model.moe_layers().map(|(_, experts)| f64::from(experts.top_k)).sum();
    (experts / layers, top_k / layers)
}

fn told(layers: impl Iterator<Item = (u32, u32)>) -> String {
    let layers: Vec<(u32, u32)> = layers.collect();
    let (experts, top_k) = layers.first().copied().unwrap_or_default();
    let mixed = if layers.iter().any(|layer| *layer != (experts, top_k)) { ", mixed" } else { "" };
    format!("{} layers x {experts} experts, top-{top_k}{mixed}", layers.len())
}

/// `E (1 - (1 - k/E)^T)`.
pub(crate) fn union_of_uniform(experts: f64, top_k: f64, tokens: u64) -> f64 {
    if experts <= 0.0 {
        return 0.0;
    }
    experts * (1.0 - power(1.0 - top_k / experts, tokens))
}

/// `base` to a whole power by squaring: multiplications alone, so the same digits everywhere.
pub(crate) fn power(mut base: f64, mut exponent: u64) -> f64 {
    let mut product = 1.0;
    while exponent > 0 {
        if exponent & 1 == 1 {
            product *= base;
        }
        base *= base;
        exponent >>= 1;
    }
    product
}

/// The decode rows of a sequence: they lie together.
fn decode_rows(trace: &Trace, rows: std::ops::Range<usize>) -> std::ops::Range<usize> {
    let phases = trace.phases();
    let decode = Phase::Decode as u8;
    let start = rows.clone().find(|row| phases[*row] == decode).unwrap_or(rows.end);
    let end = (start..rows.end).find(|row| phases[*row] != decode).unwrap_or(rows.end);
    start..end
}

/// Steps of exactly `users` sequences with `tokens` decode tokens each; a sequence that ends makes
/// room for the next, and when none is left the steps end.
fn arranged(trace: &Trace, (users, tokens): StepKind) -> Result<Steps, PlanError> {
    let (users, tokens) = (users as usize, tokens as usize);
    let mut waiting = trace
        .sequences()
        .iter()
        .map(|sequence| decode_rows(trace, sequence.rows.clone()))
        .filter(|rows| rows.len() >= tokens);
    let sequences = waiting.clone().count();
    let mut running: Vec<std::ops::Range<usize>> = waiting.by_ref().take(users).collect();
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

impl Measured {
    fn of(trace: &Trace, kind: StepKind) -> Result<Self, PlanError> {
        let steps = arranged(trace, kind)?;
        let tokens = u64::from(kind.0) * u64::from(kind.1);
        // Whole steps, and the same part for every capacity: a larger cache must not look worse
        // for having been full later.
        let cold = (steps.len() / WARMUP) as u64 * tokens;
        let setting = CurveSetting {
            scope: Scope::Global,
            semantics: Semantics::Event,
            phase: Some(Phase::Decode),
            warmup: Some(cold),
        };
        let curve = LruCurve::of(trace, &steps, &setting);
        let shape = trace.shape();
        let layers = shape.layers().len() as f64;
        let from = curve.exact_from(0);
        let total = shape.total_experts();
        let counted = (steps.len() as u64 - cold / tokens) as f64 * layers;
        let mut misses = Vec::with_capacity((total - from) as usize + 1);
        let mut distinct = 0.0;
        let mut least = f64::INFINITY;
        for slots in from..=total {
            let Some(counts) = curve.counts(&Slots::Global(slots)) else { break };
            let bucket = counts.bucket(Phase::Decode, Window::Steady);
            distinct = bucket.accesses as f64 / counted;
            // A larger pool can be run as a smaller one.
            least = least.min(bucket.misses() as f64 / counted);
            misses.push(least);
        }
        let mean = |of: fn(&hotset_traces::LayerShape) -> u32| {
            shape.layers().iter().map(|layer| f64::from(of(layer))).sum::<f64>() / layers
        };
        Ok(Self {
            distinct,
            from,
            misses,
            experts: mean(|layer| layer.experts),
            top_k: mean(|layer| layer.top_k),
            total: f64::from(total),
        })
    }

    /// Share of the needed experts that miss when `share` of all have a slot; between whole slots
    /// a straight line, with fewer slots than a step's widest layer everything.
    fn miss_rate(&self, share: f64) -> f64 {
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

/// For each layer and expert, in which share of the windows of `tokens` consecutive decode tokens
/// it is needed.
fn window_inclusion(trace: &Trace, tokens: usize) -> Vec<Vec<f64>> {
    let windows: Vec<std::ops::Range<usize>> = trace
        .sequences()
        .iter()
        .flat_map(|sequence| {
            let rows = decode_rows(trace, sequence.rows.clone());
            let count = rows.len() / tokens.max(1);
            (0..count).map(move |n| rows.start + n * tokens..rows.start + (n + 1) * tokens)
        })
        .collect();
    let layers = trace.shape().layers();
    let of_layer = |layer: usize| {
        let mut needed = vec![0u32; layers[layer].experts as usize];
        let mut last = vec![usize::MAX; needed.len()];
        for (number, window) in windows.iter().enumerate() {
            for row in window.clone() {
                for expert in trace.layer_ids(row, layer).iter() {
                    let expert = expert as usize;
                    if last[expert] != number {
                        last[expert] = number;
                        needed[expert] += 1;
                    }
                }
            }
        }
        needed.iter().map(|count| f64::from(*count) / windows.len().max(1) as f64).collect()
    };
    (0..layers.len()).into_par_iter().map(of_layer).collect()
}

#[cfg(test)]
mod tests {
    use hotset_traces::bundled;

    use super::*;

    fn olmoe() -> Model {
        Model::builtin("OLMoE-1B-7B").unwrap()
    }

    #[test]
    fn powers_are_products() {
        assert_eq!(power(0.5, 0), 1.0);
        assert_eq!(power(0.5, 5), 1.0 / 32.0);
        assert_eq!(union_of_uniform(4.0, 1.0, 2), 4.0 * (1.0 - 0.75 * 0.75));
        assert_eq!(union_of_uniform(8.0, 2.0, 1), 2.0);
    }

    #[test]
    fn steps_hold_the_same_users_throughout() {
        let trace = bundled().unwrap();
        let steps = arranged(&trace, (3, 4)).unwrap();
        // 48 sequences of 256 decode tokens: 16 rounds of 3, 64 windows each.
        assert_eq!(steps.len(), 16 * 64);
        for step in [0, 64, steps.len() - 1] {
            let places = steps.places(step);
            assert_eq!(places.len(), 12);
            let of: Vec<usize> = places.map(|place| trace.sequence_of(steps.row(place))).collect();
            assert_eq!(of[0], of[3]);
            assert_ne!(of[3], of[4]);
        }
        assert!(matches!(
            arranged(&trace, (49, 1)),
            Err(PlanError::Users { sequences: 48, users: 49, .. })
        ));
    }

    #[test]
    fn misses_never_rise_with_slots_and_end_at_nothing() {
        let trace = bundled().unwrap();
        let routing = Routing::of_trace(&olmoe(), &trace, false).unwrap();
        let miss = |share| routing.need((1, 1), share).unwrap().misses;
        let misses: Vec<f64> = (0..=100).map(|n| miss(f64::from(n) / 100.0)).collect();
        assert!(misses.windows(2).all(|pair| pair[1] <= pair[0]));
        assert_eq!(misses[0], 8.0, "without slots everything");
        assert_eq!(misses[100], 0.0);
        assert!(misses[25] > 2.0 && misses[25] < 6.0, "{}", misses[25]);
    }

    #[test]
    fn batches_and_windows_need_different_numbers() {
        let trace = bundled().unwrap();
        let routing = Routing::of_trace(&olmoe(), &trace, false).unwrap();
        let batch = routing.unions((8, 1)).unwrap().unwrap();
        let window = routing.unions((1, 8)).unwrap().unwrap();
        // Skew without order says nearly what unrelated sequences need; fewer than uniform.
        assert!((batch.windows / batch.replayed - 1.0).abs() < 0.05, "{batch:?}");
        assert!(batch.replayed < batch.uniform);
        // Consecutive tokens share far more.
        assert!(window.replayed < 0.9 * batch.replayed, "{window:?} {batch:?}");
        assert!((window.windows - window.replayed).abs() < 0.5, "{window:?}");
        for union in [batch, window] {
            assert!(union.replayed >= 8.0 && union.replayed <= 64.0);
        }
        assert_eq!(batch.uniform, window.uniform);
    }

    #[test]
    fn another_models_trace_stands_in_only_when_asked() {
        let trace = bundled().unwrap();
        let model = Model::builtin("Qwen3-30B-A3B").unwrap();
        let error = Routing::of_trace(&model, &trace, false).unwrap_err().to_string();
        assert!(error.contains("16 layers x 64 experts, top-8"), "{error}");
        assert!(error.contains("48 layers x 128 experts, top-8"), "{error}");
        assert!(error.contains("--stand-in"), "{error}");
        let routing = Routing::of_trace(&model, &trace, true).unwrap();
        let own = Routing::of_trace(&olmoe(), &trace, false).unwrap();
        let rate = |routing: &Routing<'_>, share| {
            let need = routing.need((1, 1), share).unwrap();
            need.misses / need.distinct
        };
        assert_eq!(rate(&routing, 0.25), rate(&own, 0.25), "the same share, the same misses");
        assert_eq!(routing.need((1, 1), 0.5).unwrap().distinct, 8.0);
        assert!(matches!(routing.summary(), RoutingSummary::StandIn { .. }));
    }

    #[test]
    fn without_a_trace_all_experts_are_alike() {
        let routing = Routing::uniform(&olmoe());
        let need = routing.need((1, 1), 0.25).unwrap();
        assert_eq!((need.distinct, need.misses), (8.0, 6.0));
        assert_eq!(routing.unions((8, 1)).unwrap(), None);
    }
}
