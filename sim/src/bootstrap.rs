//! Intervals by the bootstrap over sequences: draw as many sequences as there are, with
//! replacement, and see how far the figure moves (B. Efron, Annals of Statistics 7, 1979).
//!
//! All arms are drawn alike, so that what is compared ran on the same sequences.

use rand::{RngExt, SeedableRng};
use rand_pcg::Pcg64Mcg;
use serde::Serialize;

use crate::SimError;

/// A figure and the interval that 95% of the resamples fall into.
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
pub struct Interval {
    /// Over all sequences as they are.
    pub estimate: f64,
    /// 2.5% of the resamples lie below.
    pub low: f64,
    /// 2.5% lie above.
    pub high: f64,
}

impl Interval {
    /// Whether all of it lies above `value`.
    #[must_use]
    pub fn above(&self, value: f64) -> bool {
        self.low > value
    }

    /// Whether all of it lies below `value`.
    #[must_use]
    pub fn below(&self, value: f64) -> bool {
        self.high < value
    }
}

/// Draws of units, the same for everything that is compared.
#[derive(Debug, Clone)]
pub struct Resamples {
    units: usize,
    /// How often each unit was drawn, `[resamples][units]`.
    drawn: Vec<u32>,
    seed: u64,
}

impl Resamples {
    /// So many draws of `units` units out of as many.
    ///
    /// # Errors
    /// [`SimError::Resamples`] for fewer than 100 or more than 100,000 draws.
    pub fn new(units: usize, resamples: usize, seed: u64) -> Result<Self, SimError> {
        if !(100..=100_000).contains(&resamples) {
            return Err(SimError::Resamples { asked: resamples });
        }
        let mut rng = Pcg64Mcg::seed_from_u64(seed);
        let mut drawn = vec![0; units * resamples];
        for row in drawn.chunks_exact_mut(units.max(1)) {
            (0..units).for_each(|_| row[rng.random_range(0..units)] += 1);
        }
        Ok(Self { units, drawn, seed })
    }

    /// The figure's value in every resample. `figure` is told how often each unit counts.
    pub fn values(&self, figure: impl Fn(&[u32]) -> f64) -> Vec<f64> {
        self.drawn.chunks_exact(self.units.max(1)).map(figure).collect()
    }

    /// With fewer units than this there is no interval: how far they differ is not known.
    pub const FEWEST: usize = 5;

    /// The interval of a figure; not a number at both ends with fewer than
    /// [`FEWEST`](Self::FEWEST) units. Resamples in which it is not a number (nothing to divide by) are
    /// left out.
    pub fn interval(&self, figure: impl Fn(&[u32]) -> f64) -> Interval {
        self.test(figure).interval
    }

    /// The interval of a figure, and the test of whether it is nothing.
    pub fn test(&self, figure: impl Fn(&[u32]) -> f64) -> Test {
        let estimate = figure(&vec![1; self.units]);
        if self.units < Self::FEWEST {
            return Test::without_draws(estimate);
        }
        Test::of(estimate, self.values(figure))
    }

    /// The test of the difference between a figure of these units and one of others, drawn apart.
    pub fn difference(
        &self,
        figure: impl Fn(&[u32]) -> f64,
        other: &Self,
        of_other: impl Fn(&[u32]) -> f64,
    ) -> Test {
        let estimate = figure(&vec![1; self.units]) - of_other(&vec![1; other.units]);
        if self.units.min(other.units) < Self::FEWEST {
            return Test::without_draws(estimate);
        }
        // Drawn from one seed, the two rows of draws would go together: turn one of them.
        let mut others = other.values(of_other);
        let turn = others.len() / 2 * usize::from(self.seed == other.seed);
        others.rotate_left(turn);
        let values = self.values(figure).into_iter().zip(others).map(|(a, b)| a - b).collect();
        Test::of(estimate, values)
    }
}

/// A figure's interval, and how likely draws as far from nothing are if it is nothing.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Test {
    /// The interval.
    pub interval: Interval,
    /// Twice the share of draws on the other side of nothing or on it, the figure itself counted
    /// among them; not a number where there is no interval.
    pub p: f64,
}

impl Test {
    /// A figure without an interval: too few units.
    #[must_use]
    pub fn without_draws(estimate: f64) -> Self {
        let interval = Interval { estimate, low: f64::NAN, high: f64::NAN };
        Self { interval, p: f64::NAN }
    }

    fn of(estimate: f64, mut values: Vec<f64>) -> Self {
        values.retain(|value| value.is_finite());
        values.sort_unstable_by(f64::total_cmp);
        let at = |share: f64| match values.len() {
            0 => f64::NAN,
            n => values[((share * (n - 1) as f64).round() as usize).min(n - 1)],
        };
        let interval = Interval { estimate, low: at(0.025), high: at(0.975) };
        if values.is_empty() || !estimate.is_finite() {
            return Self { interval, p: f64::NAN };
        }
        let not_above = values.partition_point(|&value| value <= 0.0);
        let not_below = values.len() - values.partition_point(|&value| value < 0.0);
        let beyond = not_above.min(not_below) + 1;
        Self { interval, p: (2.0 * beyond as f64 / (values.len() + 1) as f64).min(1.0) }
    }
}

/// A sum over units, each as often as it was drawn.
#[must_use]
pub fn drawn_sum(units: &[u64], drawn: Option<&[u32]>) -> f64 {
    match drawn {
        None => units.iter().map(|&unit| unit as f64).sum(),
        Some(drawn) => units.iter().zip(drawn).map(|(&unit, &n)| unit as f64 * f64::from(n)).sum(),
    }
}

impl Test {
    /// What the same units took, over what they took another, minus 1.
    #[must_use]
    pub fn of_change(mine: &[u64], others: &[u64], draws: Option<&Resamples>) -> Self {
        let figure = |drawn: Option<&[u32]>| {
            let (mine, others) = (drawn_sum(mine, drawn), drawn_sum(others, drawn));
            if others > 0.0 { mine / others - 1.0 } else { f64::from(u8::from(mine > 0.0)) }
        };
        match draws {
            Some(draws) => draws.test(|drawn| figure(Some(drawn))),
            None => Self::without_draws(figure(None)),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn mean(of: &[f64]) -> impl Fn(&[u32]) -> f64 {
        move |drawn| {
            let sum: f64 = drawn.iter().zip(of).map(|(&n, value)| f64::from(n) * value).sum();
            sum / drawn.iter().sum::<u32>() as f64
        }
    }

    #[test]
    fn the_mean_of_many_is_within_two_standard_errors() {
        // 0..100 evenly: the mean is 49.5, its standard error 28.87 / 10.
        let values: Vec<f64> = (0..100).map(f64::from).collect();
        let draws = Resamples::new(100, 4000, 3).unwrap();
        let found = draws.interval(mean(&values));
        assert_eq!(found.estimate, 49.5);
        assert!((found.low - (49.5 - 1.96 * 2.887)).abs() < 0.5, "{found:?}");
        assert!((found.high - (49.5 + 1.96 * 2.887)).abs() < 0.5, "{found:?}");
        assert_eq!(found, Resamples::new(100, 4000, 3).unwrap().interval(mean(&values)));
    }

    #[test]
    fn what_does_not_vary_has_no_width_and_what_differs_is_told() {
        let draws = Resamples::new(5, 100, 1).unwrap();
        let same = draws.interval(mean(&[2.0; 5]));
        assert_eq!((same.estimate, same.low, same.high), (2.0, 2.0, 2.0));
        assert!(same.above(1.9) && same.below(2.1) && !same.above(2.0));
        let apart = draws.difference(mean(&[3.0; 5]), &draws, mean(&[2.0; 5])).interval;
        assert_eq!((apart.estimate, apart.low, apart.high), (1.0, 1.0, 1.0));
        // The same units against themselves, drawn apart: no difference, but not for certain.
        let values = [1.0, 2.0, 3.0, 4.0, 5.0];
        let none = draws.difference(mean(&values), &draws, mean(&values)).interval;
        assert!(none.estimate == 0.0 && none.low < -0.5 && none.high > 0.5, "{none:?}");
        assert!(Resamples::new(5, 99, 1).is_err());
    }

    #[test]
    fn p_is_twice_the_share_of_draws_beyond_nothing() {
        // 99 draws, 4 of them at or below nothing: 2 (4 + 1) / (99 + 1).
        let values = (0..99).map(|draw| if draw < 4 { -1.0 } else { 2.0 }).collect();
        assert_eq!(Test::of(1.0, values).p, 0.1);
        assert_eq!(Test::of(-1.0, vec![-1.0; 99]).p, 0.02);
        assert_eq!(Test::of(0.0, vec![0.0; 99]).p, 1.0);
        assert!(Test::of(f64::NAN, vec![]).p.is_nan());
        assert!(Resamples::new(4, 100, 1).unwrap().test(|_| 1.0).p.is_nan());
    }
}
