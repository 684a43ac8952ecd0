//! What a plan with experts on the host says.

use serde::Serialize;

use super::Worth;
use crate::Coefficient;
use crate::memory_line::MemoryLine;

/// A plan with experts on the host.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct PlacedReport {
    /// The model.
    pub model: String,
    /// The machine.
    pub machine: String,
    /// The engine whose figures are used.
    pub engine: String,
    /// Whether it fits.
    pub fits: bool,
    /// What to type.
    pub settings: Vec<String>,
    /// Layers with experts, and of them those on the host.
    pub expert_layers: u32,
    /// Of them, computed on the host.
    pub host_layers: u32,
    /// Layers on each accelerator.
    pub stages: Vec<Stage>,
    /// What the host holds.
    pub host: Vec<MemoryLine>,
    /// What it may hold.
    pub host_budget_bytes: u64,
    /// The line that binds, as `accelerator 1` or `host`, with what is left of it.
    pub tightest: Tightest,
    /// How fast it is; absent where it does not fit.
    pub speed: Option<PlacedSpeed>,
    /// What one more of something gives.
    pub worth: Vec<Worth>,
    /// What the speed rests on.
    pub coefficients: Vec<Coefficient>,
    /// What was assumed.
    pub notes: Vec<String>,
}

/// What one accelerator holds.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Stage {
    /// Layers, those with experts on the host among them.
    pub layers: u32,
    /// Lines.
    pub lines: Vec<MemoryLine>,
    /// What it may hold.
    pub budget_bytes: u64,
}

/// The memory that is nearest to full.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Tightest {
    /// Which.
    pub name: String,
    /// Bytes left; negative where they are short.
    pub left_bytes: i64,
}

/// Tokens a second with the range that reports of this kind give.
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
pub struct PlacedSpeed {
    /// The middle.
    pub tokens_per_s: f64,
    /// The lower end.
    pub low: f64,
    /// The upper end.
    pub high: f64,
    /// Of ten reports of this kind, so many lie inside; absent where no range is fitted or a run was measured.
    pub of_ten_inside: Option<f64>,
    /// The measured step over the calculated one, where one was given: every time is multiplied by it.
    pub measured_over_calculated: Option<f64>,
    /// Milliseconds a step: weights on accelerators, keys and values, layers, experts on the host.
    pub parts_ms: [f64; 4],
    /// Prefill, tokens a second, where the machine says how fast it computes.
    pub prefill_tokens_per_s: Option<f64>,
    /// Seconds to the first token of a prompt as long as the context, less one answer's token.
    pub first_token_s: Option<f64>,
    /// Seconds to read the file from storage once, where the machine has some.
    pub load_s: Option<f64>,
}
