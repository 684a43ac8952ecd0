//! How much of what is predicted is fetched, and what it may push out.

use hotset_policies::Parameter;
use hotset_policies::predict::Horizon;
use serde::{Deserialize, Serialize};

/// What of a predictor's guesses is fetched.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct Control {
    /// Layers between the one that runs and the nearest that is predicted, at least 1.
    pub lookahead: u32,
    /// Layers that are predicted from there on, nearest first, at least 1.
    pub reach: u32,
    /// Guesses of each token for each layer; 0: as many as the layer's top-k, or were recorded.
    pub width: u32,
    /// Guesses with less confidence are left out, 0 to 1.
    pub threshold: f64,
    /// MiB that a step may prefetch at most; 0: without limit.
    pub budget: f64,
    /// In which order a step's guesses are fetched.
    pub priority: Priority,
    /// Whether copies that have not begun are taken back once the router has decided otherwise.
    pub cancel: bool,
    /// What a prefetch may not push out.
    pub protect: Protect,
}

/// In which order a step's guesses are fetched.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Priority {
    /// Token by token, each in its predictor's order.
    #[default]
    Token,
    /// Over all tokens of the step, the most confident first.
    Confidence,
}

/// What a prefetch may not push out, beside what the running layer needs.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Protect {
    /// The guesses before it, resident or just fetched.
    #[default]
    Guesses,
    /// Nothing more.
    Nothing,
}

const fn parameter(name: &'static str, default: &'static str, meaning: &'static str) -> Parameter {
    Parameter { name, default, meaning }
}

impl Default for Control {
    fn default() -> Self {
        Self {
            lookahead: 1,
            reach: 1,
            width: 0,
            threshold: 0.0,
            budget: 0.0,
            priority: Priority::Token,
            cancel: false,
            protect: Protect::Guesses,
        }
    }
}

impl Control {
    /// The keys by which it is given.
    pub const KEYS: [&str; 8] =
        ["lookahead", "reach", "width", "threshold", "budget", "priority", "cancel", "protect"];

    /// What each key means, and that of when a predictor learns.
    pub const PARAMETERS: [Parameter; 9] = [
        parameter("lookahead", "1", "layers to the nearest that is predicted, at least 1"),
        parameter("reach", "1", "layers that are predicted from there on, nearest first"),
        parameter("width", "0", "guesses a token and layer; 0: the layer's top-k, or as recorded"),
        parameter("threshold", "0", "guesses with less confidence are left out, 0 to 1"),
        parameter("budget", "0", "MiB that a step may prefetch at most; 0: without limit"),
        parameter("priority", "token", "token by token, or most confident first: confidence"),
        parameter("protect", "guesses", "what a prefetch may not push out: guesses, nothing"),
        parameter("cancel", "false", "take back copies that have not begun and are not wanted"),
        parameter("learn", "both", "both; online: in the run alone; trained: before it alone"),
    ];

    /// Checks the ranges that the types do not.
    ///
    /// # Errors
    /// Names the parameter and its range.
    pub fn check(&self) -> Result<(), String> {
        if self.lookahead == 0 || self.reach == 0 {
            return Err("lookahead and reach are at least 1 layer".to_owned());
        }
        if self.lookahead.checked_add(self.reach).is_none_or(|sum| sum > 1 << 16) {
            return Err("lookahead and reach are at most 65536 layers together".to_owned());
        }
        if !(0.0..=1.0).contains(&self.threshold) {
            return Err(format!("threshold = {} is not within 0 to 1", self.threshold));
        }
        if !(self.budget >= 0.0 && self.budget.is_finite()) {
            return Err(format!("budget = {} is not a number of MiB", self.budget));
        }
        Ok(())
    }

    /// The distances at which it is predicted.
    #[must_use]
    pub fn horizon(&self) -> Horizon {
        let nearest = self.lookahead as usize;
        Horizon { nearest, farthest: nearest + self.reach as usize - 1 }
    }

    /// Bytes that a step may prefetch; `None`: any.
    #[must_use]
    pub fn budget_bytes(&self) -> Option<u64> {
        (self.budget > 0.0).then_some((self.budget * f64::from(1 << 20)) as u64)
    }
}
