//! Distinct experts of a step, three ways: every expert alike, skew without order, replayed.
//!
//! Consecutive tokens of one sequence share experts, unrelated sequences hardly do, so windows and
//! batches are told apart.

use hotset_traces::Trace;
use rayon::prelude::*;
use serde::Serialize;

use super::chance::{power, union_of_uniform};
use super::counted::Counted;
use super::measured::decode_rows;
use super::need::StepKind;
use super::shape::MeanLayer;
use super::{Routing, Source};
use crate::PlanError;

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

impl Routing<'_> {
    /// Misses of a layer if the most used experts over all layers are pinned in slots for `share` of
    /// them, known in advance; `None` without a trace of the model's own.
    pub(crate) fn pinned(&self, kind: StepKind, share: f64) -> Option<f64> {
        let Source::Trace { trace, stand_in: false, .. } = &self.source else { return None };
        let chances = self.window_inclusion(trace, kind.tokens as usize);
        self.check_watch().ok()?;
        Some(Counted::of_chances(&chances).need(kind.users.into(), share).misses)
    }

    /// Unions of so many users with windows of so many tokens: what uniform routing, skew without
    /// order, and the trace itself say; `None` without a trace.
    ///
    /// # Errors
    /// [`PlanError::Users`].
    pub fn unions(&self, kind: StepKind) -> Result<Option<Unions>, PlanError> {
        let StepKind { users, tokens } = kind;
        let Source::Trace { trace, .. } = &self.source else { return Ok(None) };
        let need = self.need(kind, 1.0)?;
        let inclusion = self.window_inclusion(trace, tokens as usize);
        self.check_watch()?;
        let of_layer = |layer: &Vec<f64>| -> f64 {
            layer.iter().map(|chance| 1.0 - power(1.0 - chance, users.into())).sum()
        };
        let sum: f64 = inclusion.iter().map(of_layer).sum();
        let layers = trace.shape().layers();
        Ok(Some(Unions {
            users,
            tokens,
            uniform: union_of_uniform(MeanLayer::of(layers), kind.tokens_in_all()),
            windows: sum / layers.len() as f64,
            replayed: need.distinct,
        }))
    }

    /// For each layer and expert, in which share of the windows of `tokens` consecutive decode tokens
    /// it is needed; of layers that come after somebody asked to stop, nothing.
    fn window_inclusion(&self, trace: &Trace, tokens: usize) -> Vec<Vec<f64>> {
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
            if self.check_watch().is_err() {
                return Vec::new();
            }
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
}
