//! Tokens a second of a fitted setting, as a range.
//!
//! Three prices of the same step: nothing overlaps (the slowest), the timeline of an engine that
//! waits for a layer's copies, and everything overlaps (the fastest). What no model knows, an
//! engine's own overhead, is a setting: a fixed time a step, or a measured step.

use serde::Serialize;

use crate::routing::RoutingNeed;

/// How fast a setting is.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Speed {
    /// Tokens that a step runs: users times drafted and one more.
    pub tokens_run: u64,
    /// Tokens that it gives, of all users.
    pub tokens_given: f64,
    /// Distinct experts of a layer, and those that miss, on one accelerator.
    pub need: RoutingNeed,
    /// MiB that a step copies to one accelerator.
    pub moved_mib: f64,
    /// Where a step's time goes, each part alone.
    pub parts: StepParts,
    /// Nothing overlaps: the slowest.
    pub no_overlap: Rate,
    /// Copies of a layer in one burst that its kernel waits for, host cores beside them.
    pub timeline: Rate,
    /// The timeline with the most and with the fewest misses of the recordings that stand in for a
    /// trace.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub timeline_between: Option<[Rate; 2]>,
    /// Everything overlaps, kernels at the memory's full rate: the fastest.
    pub perfect: Rate,
}

/// A step's time and what follows from it.
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
pub struct Rate {
    /// Milliseconds a step.
    pub step_ms: f64,
    /// Tokens a second of all users together.
    pub tokens_per_s: f64,
    /// Tokens a second of each.
    pub tokens_per_s_each: f64,
}

/// Where a step's time goes, each part alone, in milliseconds.
#[derive(Debug, Clone, Copy, PartialEq, Default, Serialize)]
pub struct StepParts {
    /// Weights outside the routed experts, keys and values.
    pub dense_ms: f64,
    /// Routed experts, read from the accelerator's memory.
    pub experts_ms: f64,
    /// The output head.
    pub head_ms: f64,
    /// Draft layers.
    pub draft_ms: f64,
    /// Sums between accelerators.
    pub exchange_ms: f64,
    /// What every step takes on top, as given.
    pub fixed_ms: f64,
    /// Copies over the link, in bursts.
    pub link_ms: f64,
    /// Experts on host cores.
    pub host_ms: f64,
    /// Experts from disk.
    pub disk_ms: f64,
}

impl StepParts {
    /// What the accelerator itself takes.
    pub(crate) fn kernels(&self) -> f64 {
        self.dense_ms
            + self.experts_ms
            + self.head_ms
            + self.draft_ms
            + self.exchange_ms
            + self.fixed_ms
    }
}

/// Tokens that a step of one sequence gives: itself, and drafts until one is rejected.
pub(crate) fn expected_tokens(drafts: u32, accept: &[f64]) -> f64 {
    let Some(last) = accept.last() else { return 1.0 };
    let mut reached = 1.0;
    let mut tokens = 1.0;
    for draft in 0..drafts as usize {
        reached *= accept.get(draft).unwrap_or(last);
        tokens += reached;
    }
    tokens
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn tokens_until_a_draft_is_rejected() {
        assert_eq!(expected_tokens(0, &[0.5]), 1.0);
        assert!((expected_tokens(1, &[0.82, 0.66]) - 1.82).abs() < 1e-12);
        assert!((expected_tokens(2, &[0.82, 0.66]) - (1.82 + 0.82 * 0.66)).abs() < 1e-12);
        // (1 - a^(g+1)) / (1 - a) for equal chances.
        assert!((expected_tokens(3, &[0.5]) - (1.0 - 0.0625) / 0.5).abs() < 1e-12);
    }
}
