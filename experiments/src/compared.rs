//! Arms against any one of them, corrected for how many are compared.
//!
//! Of many arms that change nothing some lie apart by chance. Holm's step-down procedure (S. Holm,
//! Scandinavian Journal of Statistics 6, 1979) keeps the chance of even one wrong answer in a family
//! of tests at 5%, whatever they have to do with each other.

use serde::Serialize;

use crate::Test;
use crate::figures::Figures;
use crate::protocol::references;
use crate::run::{Outcome, Runs};
use crate::{Arm, Interval, Protocol, Resamples};

/// The chance of a wrong answer in a family of tests.
pub(crate) const LEVEL: f64 = 0.05;

/// A figure that was tested in a family of such.
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
pub struct Tested {
    /// The figure, with the 95% that hold it alone.
    #[serde(flatten)]
    pub interval: Interval,
    /// How likely draws as far from nothing are if it is nothing; absent without an interval.
    pub p: Option<f64>,
    /// The same after Holm's correction for the whole family: an answer holds up to 0.05.
    pub p_holm: Option<f64>,
}

impl Tested {
    /// Corrects a family of tests. Those without an interval are no part of it.
    pub(crate) fn family(tests: impl IntoIterator<Item = Test>) -> Vec<Self> {
        let told = |p: f64| (!p.is_nan()).then_some(p);
        let mut tested: Vec<Self> = tests
            .into_iter()
            .map(|test| Self { interval: test.interval, p: told(test.p), p_holm: None })
            .collect();
        let mut order: Vec<usize> =
            (0..tested.len()).filter(|&index| tested[index].p.is_some()).collect();
        let p = |index: &usize| tested[*index].p.unwrap_or(1.0);
        order.sort_by(|a, b| p(a).total_cmp(&p(b)));
        let mut least = 0.0f64;
        for (rank, &index) in order.iter().enumerate() {
            let corrected = (order.len() - rank) as f64 * tested[index].p.unwrap_or(1.0);
            least = least.max(corrected.min(1.0));
            tested[index].p_holm = Some(least);
        }
        tested
    }

    /// `yes` if the figure is more than nothing, `no` if less, else `undecided`; in the family.
    pub(crate) fn answer(&self) -> &'static str {
        match (self.p_holm.is_some_and(|p| p <= LEVEL), self.interval.estimate > 0.0) {
            (false, _) => "undecided",
            (true, true) => "yes",
            (true, false) => "no",
        }
    }

    /// Whether it is less than nothing, in the family.
    pub(crate) fn is_less(&self) -> bool {
        self.answer() == "no"
    }

    /// Whether it is more than nothing, in the family.
    pub(crate) fn is_more(&self) -> bool {
        self.answer() == "yes"
    }
}

/// An arm against another on the same sequences.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Comparison {
    /// The arm.
    pub arm: String,
    /// What it is compared with.
    pub against: String,
    /// Hit rate minus the other's, in points; the family is all arms against this one.
    pub hit_points: Tested,
    /// Over each link.
    pub links: Vec<LinkComparison>,
}

/// An arm's time over a link against another's.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct LinkComparison {
    /// The link.
    pub link: String,
    /// Timeline over the other's, minus 1; the family is all arms against this one over this link.
    pub timeline_change: Tested,
}

/// What a comparison is made of.
pub(crate) struct Compared<'a> {
    pub arms: &'a [Arm],
    pub outcomes: &'a [Outcome],
    pub units: &'a [usize],
    pub draws: &'a Resamples,
}

impl Compared<'_> {
    /// All other arms against each of the protocol's references, LRU first.
    pub fn all(&self, protocol: &Protocol) -> Vec<Comparison> {
        let references = references(&protocol.against);
        let place = |reference: &Arm| self.arms.iter().position(|arm| arm.name == reference.name);
        references
            .iter()
            .filter_map(place)
            .flat_map(|reference| self.against(protocol, reference))
            .collect()
    }

    fn against(&self, protocol: &Protocol, reference: usize) -> Vec<Comparison> {
        let others: Vec<usize> = (0..self.arms.len()).filter(|&arm| arm != reference).collect();
        let family = |test: &dyn Fn(&Figures<'_>) -> Test| {
            Tested::family(others.iter().map(|&arm| test(&self.figures(arm, reference))))
        };
        let points = family(&|figures| self.draws.test(|drawn| figures.hit_points(drawn)));
        let times = (0..protocol.links.len()).map(|link| {
            family(&|figures| self.draws.test(|drawn| figures.timeline_change(drawn, link)))
        });
        let times: Vec<Vec<Tested>> = times.collect();
        let comparison = |(row, &arm): (usize, &usize)| Comparison {
            arm: self.arms[arm].name.clone(),
            against: self.arms[reference].name.clone(),
            hit_points: points[row],
            links: protocol
                .links
                .iter()
                .zip(&times)
                .map(|(link, times)| LinkComparison {
                    link: link.name.clone(),
                    timeline_change: times[row],
                })
                .collect(),
        };
        others.iter().enumerate().map(comparison).collect()
    }

    fn figures(&self, arm: usize, reference: usize) -> Figures<'_> {
        let (arm, reference) = (&self.outcomes[arm], &self.outcomes[reference]);
        Figures { arm, reference, units: self.units, runs: Runs::All }
    }
}

/// Draws so few that no answer of a family this large could hold.
pub(crate) fn too_few_draws(arms: usize, resamples: usize) -> Option<String> {
    let family = arms.saturating_sub(1);
    let needed = (2.0 * family as f64 / LEVEL).ceil() as usize;
    (resamples < needed).then(|| {
        format!(
            "{family} arms are compared at once: with {resamples} draws the least p is {:.3} after \
             Holm's correction, so no answer can hold: give at least {needed} `Protocol::resamples`",
            (2.0 * family as f64 / (resamples + 1) as f64).min(1.0)
        )
    })
}

/// The arms of a protocol with those that the others are compared with.
pub(crate) fn with_references(mut arms: Vec<Arm>, protocol: &Protocol) -> Vec<Arm> {
    for reference in references(&protocol.against) {
        if !arms.iter().any(|arm| arm.name == reference.name) {
            arms.push(reference);
        }
    }
    arms
}

#[cfg(test)]
mod tests {
    use super::*;

    fn test(p: f64) -> Test {
        Test { interval: Interval { estimate: 1.0, low: 0.5, high: 1.5 }, p }
    }

    #[test]
    fn holm_multiplies_by_how_many_are_left_and_never_falls() {
        // Four of five have a p: 0.01 x 4, 0.02 x 3, 0.03 x 2 (which may not fall below 0.06), 0.9 x 1.
        let ps = [0.02, f64::NAN, 0.9, 0.01, 0.03];
        let found = Tested::family(ps.map(test));
        let corrected: Vec<Option<f64>> = found.iter().map(|tested| tested.p_holm).collect();
        assert_eq!(corrected, [Some(0.06), None, Some(0.9), Some(0.04), Some(0.06)]);
        let answers: Vec<&str> = found.iter().map(Tested::answer).collect();
        assert_eq!(answers, ["undecided", "undecided", "undecided", "yes", "undecided"]);
    }

    #[test]
    fn draws_must_be_enough_for_the_family() {
        // 12 arms against one: 2 x 12 / 0.05 = 480 draws.
        assert_eq!(too_few_draws(13, 480), None);
        assert!(too_few_draws(13, 479).unwrap().contains("at least 480"));
    }
}
