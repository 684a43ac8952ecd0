//! What recorded traces of several models have in common, for models of which there is no trace.
//!
//! LRU keeps nothing that a step needs until its slots hold a whole step's experts of all layers: the
//! cliff lies at one step's experts, not at a share of all. So slots are counted in steps, and between
//! one step's experts (place 0) and all experts (place 1) on a logarithmic scale, where the curves
//! of models with 8 to 32 times a token's experts lie close together.

use std::sync::OnceLock;

use hotset_traces::{Phase, Trace};
use serde::{Deserialize, Serialize};

use super::chance::union_of_uniform;
use super::measured::Measured;
use super::need::{Spread, StepKind};
use super::shape::MeanLayer;
use crate::PlanError;

/// Places at which a curve is kept: 0, 0.05, ... 1.
const PLACES: usize = 21;
/// Powers of two up to which unions are kept: 2, 4, ... 32.
const DOUBLINGS: u32 = 5;

/// What is kept of one recorded trace.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct RecordedTrace {
    /// The model that was recorded.
    pub name: String,
    /// Where the trace comes from.
    pub source: String,
    /// Experts of its mean layer.
    pub experts: f64,
    /// Of them, those that a token uses.
    pub top_k: f64,
    /// Tokens that decode.
    pub tokens: u64,
    /// LRU's misses over needed experts, one token a step, at places 0, 0.05, ... 1.
    pub misses: Vec<f64>,
    /// Distinct experts of a step over uniform routing's, with 2, 4, ... users; as many as it has
    /// sequences for.
    pub users: Vec<f64>,
    /// The same with 2, 4, ... consecutive tokens of one sequence.
    pub windows: Vec<f64>,
}

impl RecordedTrace {
    /// Measures `trace`.
    ///
    /// # Errors
    /// [`PlanError::Setting`] where it has no decode tokens.
    pub fn of(trace: &Trace, name: &str, source: &str) -> Result<Self, PlanError> {
        let single = Measured::of(trace, StepKind { users: 1, tokens: 1 }, &())?;
        let rounded = |figure: f64| (figure * 1e4).round() / 1e4;
        let ratio = |kind: StepKind| {
            let measured = Measured::of(trace, kind, &()).ok()?;
            let uniform = union_of_uniform(measured.mean, kind.tokens_in_all());
            Some(rounded(measured.distinct / uniform))
        };
        let ratios = |kind: fn(u32) -> StepKind| -> Vec<f64> {
            (1..=DOUBLINGS).map_while(|doublings| ratio(kind(1 << doublings))).collect()
        };
        let misses = (0..PLACES).map(|n| single.miss_rate_at(n as f64 / (PLACES - 1) as f64));
        Ok(Self {
            name: name.to_owned(),
            source: source.to_owned(),
            experts: single.mean.experts,
            top_k: single.mean.top_k,
            tokens: trace.phases().iter().filter(|p| **p == Phase::Decode as u8).count() as u64,
            misses: misses.map(rounded).collect(),
            users: ratios(|users| StepKind { users, tokens: 1 }),
            windows: ratios(|tokens| StepKind { users: 1, tokens }),
        })
    }

    fn miss_rate(&self, place: f64) -> f64 {
        let (last, at) = (self.misses.len().saturating_sub(1), place.clamp(0.0, 1.0));
        let position = at * last as f64;
        let whole = (position.floor() as usize).min(last);
        let of = |index: usize| self.misses.get(index).copied().unwrap_or(0.0);
        of(whole) + (of((whole + 1).min(last)) - of(whole)) * (position - whole as f64)
    }
}

/// Recorded traces, taken together.
#[derive(Debug, Clone, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Recordings {
    #[serde(rename = "trace")]
    traces: Vec<RecordedTrace>,
}

impl Recordings {
    /// Those that come with the crate.
    ///
    /// # Panics
    /// Never: a test loads them.
    #[must_use]
    pub fn builtin() -> &'static Self {
        static BUILTIN: OnceLock<Recordings> = OnceLock::new();
        BUILTIN.get_or_init(|| {
            toml::from_str(include_str!("../../recordings.toml")).expect("built-in data are valid")
        })
    }

    /// The traces.
    #[must_use]
    pub fn traces(&self) -> &[RecordedTrace] {
        &self.traces
    }

    /// The same without the recordings of that name.
    #[must_use]
    pub fn without(&self, name: &str) -> Self {
        Self { traces: self.traces.iter().filter(|trace| trace.name != name).cloned().collect() }
    }

    /// LRU's misses over needed experts with the slots at `place`: 0 holds one step's experts, 1 all, between
    /// them a logarithmic scale; below 0 everything misses.
    #[must_use]
    pub fn miss_rate(&self, place: f64) -> Spread {
        match place {
            place if place < 0.0 => Spread::exactly(1.0),
            place if place >= 1.0 => Spread::exactly(0.0),
            place => Spread::of(self.traces.iter().map(|trace| trace.miss_rate(place))),
        }
    }

    /// Distinct experts of a step of a layer like `mean`.
    pub(super) fn distinct(&self, mean: MeanLayer, kind: StepKind) -> f64 {
        let tokens = kind.tokens_in_all();
        let uniform = union_of_uniform(mean, tokens);
        let of_users = self.ratio(kind.users, |trace| &trace.users);
        let of_windows = self.ratio(kind.tokens, |trace| &trace.windows);
        let most = mean.experts.min(mean.top_k * tokens as f64);
        (uniform * of_users * of_windows).clamp(mean.top_k.min(most), most)
    }

    /// The mean ratio at `count`, between powers of two a straight line, beyond the last the last.
    fn ratio(&self, count: u32, of: fn(&RecordedTrace) -> &Vec<f64>) -> f64 {
        let at = |doublings: u32| {
            let known = self.traces.iter().filter_map(|trace| match doublings {
                0 => Some(1.0),
                _ => of(trace).get(doublings as usize - 1).copied(),
            });
            Spread::of(known).middle
        };
        let below = count.max(1).ilog2().min(DOUBLINGS);
        let above = (below + 1).min(DOUBLINGS);
        let (from, to) = (f64::from(1u32 << below), f64::from(1u32 << above));
        let share = if above > below { (f64::from(count) - from) / (to - from) } else { 0.0 };
        at(below) + (at(above) - at(below)) * share
    }

    /// How far the others' mean is from each recording, in points of the miss rate: the mean over
    /// all places and recordings, and the recording that is worst, with its mean.
    #[must_use]
    pub fn left_out_error(&self) -> LeftOut {
        let mut left_out = LeftOut { mean_points: 0.0, worst: String::new(), worst_points: 0.0 };
        for trace in &self.traces {
            let others = self.without(&trace.name);
            let places = trace.misses.len().max(1) as f64;
            let error: f64 = (0..trace.misses.len())
                .map(|n| n as f64 / (places - 1.0).max(1.0))
                .map(|place| (others.miss_rate(place).middle - trace.miss_rate(place)).abs())
                .sum();
            let points = 100.0 * error / places;
            left_out.mean_points += points / self.traces.len() as f64;
            if points > left_out.worst_points {
                (left_out.worst, left_out.worst_points) = (trace.name.clone(), points);
            }
        }
        left_out
    }
}

/// How well recordings tell of one that is left out.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct LeftOut {
    /// Mean distance in points of the miss rate.
    pub mean_points: f64,
    /// The recording that the others tell least of.
    pub worst: String,
    /// Its mean distance.
    pub worst_points: f64,
}
