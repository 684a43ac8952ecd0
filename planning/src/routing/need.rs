//! What is asked of a routing, and what it answers: a kind of step, and the experts that it needs.

use serde::Serialize;

/// A kind of step.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub struct StepKind {
    /// Sequences at once.
    pub users: u32,
    /// Consecutive tokens of each.
    pub tokens: u32,
}

impl StepKind {
    /// Tokens of all sequences together.
    pub(crate) fn tokens_in_all(self) -> u64 {
        u64::from(self.users) * u64::from(self.tokens)
    }
}

/// What a step needs of a layer.
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
pub struct RoutingNeed {
    /// Distinct experts.
    pub distinct: f64,
    /// Of them, those without a slot.
    pub misses: f64,
    /// Where other models' traces stand in: the misses that the best and the worst of them would have.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub between: Option<[f64; 2]>,
}

impl RoutingNeed {
    /// Of which nothing else is known.
    #[must_use]
    pub fn new(distinct: f64, misses: f64) -> Self {
        Self { distinct, misses, between: None }
    }

    /// One of `ranks` equal parts.
    pub(crate) fn part(self, ranks: f64) -> Self {
        Self {
            distinct: self.distinct / ranks,
            misses: self.misses / ranks,
            between: self.between.map(|ends| ends.map(|end| end / ranks)),
        }
    }
}

/// A figure of which several recordings say something else.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Spread {
    /// The lowest.
    pub low: f64,
    /// The mean.
    pub middle: f64,
    /// The highest.
    pub high: f64,
}

impl Spread {
    pub(super) fn exactly(value: f64) -> Self {
        Self { low: value, middle: value, high: value }
    }

    /// Of all figures; of none it is 1.
    pub(super) fn of(figures: impl Iterator<Item = f64>) -> Self {
        let (mut count, mut sum) = (0.0, 0.0);
        let (mut low, mut high) = (f64::INFINITY, f64::NEG_INFINITY);
        for figure in figures {
            (count, sum) = (count + 1.0, sum + figure);
            (low, high) = (low.min(figure), high.max(figure));
        }
        if count == 0.0 { Self::exactly(1.0) } else { Self { low, middle: sum / count, high } }
    }
}
