//! Slots split over layers by what each layer makes of them: the split with the fewest misses on a
//! training part, found exactly.
//!
//! Source: S. Zhong et al., "AdapMoE: Adaptive Sensitivity-based Expert Gating and Management for
//! Efficient MoE Inference", ICCAD 2024, where a dynamic program shares the cache out by expected
//! loads. Here a layer's loads are LRU's misses on the training sequences at every number of slots.

use hotset_policies::Slots;
use hotset_traces::Trace;
use rayon::prelude::*;

use crate::{CurveSetting, Futures, LruCurve, Scope, Setting, SimError, Steps, replay};

/// The best split of every number of slots.
#[derive(Debug, Clone)]
pub struct AdaptiveSplit {
    /// `least[s]`: misses of the best split of `s` slots.
    least: Vec<u64>,
    /// `given[l][s]`: slots of layer `l` in the best split of `s` slots over layers `0..=l`.
    given: Vec<Vec<u32>>,
}

impl AdaptiveSplit {
    /// Bytes that the splits of layers of so many experts each take.
    pub(crate) fn memory(experts: impl Iterator<Item = u32>) -> u64 {
        let (mut slots, mut bytes) = (0u64, 0u64);
        for experts in experts {
            slots += u64::from(experts);
            // The choices of this layer; and its curve, twice.
            bytes = bytes.saturating_add(4 * slots + 16 * u64::from(experts));
        }
        bytes.saturating_add(16 * slots)
    }

    /// Learns the split from LRU's misses on `training`. A layer's curve comes from one pass; for
    /// fewer slots than its widest event has experts (see [`LruCurve::exact_from`]) from a replay
    /// each, all layers at once.
    ///
    /// # Errors
    /// As [`replay()`].
    pub fn train(
        training: &Trace,
        steps: &Steps,
        setting: &CurveSetting,
    ) -> Result<Self, SimError> {
        let setting = CurveSetting { scope: Scope::Layer, ..*setting };
        let curve = LruCurve::of(training, steps, &setting);
        let experts: Vec<u32> =
            training.shape().layers().iter().map(|layer| layer.experts).collect();
        let exact = |layer: usize| curve.exact_from(layer).min(experts[layer]);
        let replayed = (0..experts.len()).map(exact).max().unwrap_or(0);
        let futures = Futures::new(training, steps, setting.semantics, setting.phase);
        let few: Vec<Vec<u64>> = (1..replayed)
            .into_par_iter()
            .map(|slots| {
                let each = experts.iter().map(|&experts| slots.min(experts)).collect();
                let lru = Setting {
                    semantics: setting.semantics,
                    phase: setting.phase,
                    ..Setting::new(lru(), Slots::Layer(each))
                };
                Ok(replay(training, steps, &futures, &lru)?.total().demand_fetches)
            })
            .collect::<Result<_, SimError>>()?;
        let misses = |layer: usize, slots: u32| match (slots, curve.misses(layer, slots)) {
            (0, _) => curve.accesses(layer),
            (_, Some(misses)) => misses,
            (slots, None) => few[slots as usize - 1][layer],
        };
        let curves: Vec<Vec<u64>> = (0..experts.len())
            .map(|layer| (0..=experts[layer]).map(|slots| misses(layer, slots)).collect())
            .collect();
        Ok(Self::of_curves(&curves))
    }

    /// The best splits for layers whose misses with `s` slots are `curves[layer][s]`, from no slot
    /// to all that the layer can use. Of equally good splits later layers get fewer slots. Time:
    /// all slots times all slots.
    #[must_use]
    pub fn of_curves(curves: &[Vec<u64>]) -> Self {
        let mut least = vec![0];
        let mut given = Vec::with_capacity(curves.len());
        for curve in curves {
            let total = least.len() + curve.len() - 1;
            let (mut better, mut choice) = (vec![u64::MAX; total], vec![0; total]);
            for (own, &misses) in curve.iter().enumerate() {
                for (before, &others) in least.iter().enumerate() {
                    let sum = others + misses;
                    let slots = before + own;
                    if sum < better[slots] {
                        (better[slots], choice[slots]) = (sum, own as u32);
                    }
                }
            }
            least = better;
            given.push(choice);
        }
        Self { least, given }
    }

    /// Slots of each layer when there are `total`: as many in all, or all that the layers can use.
    #[must_use]
    pub fn slots(&self, total: u32) -> Vec<u32> {
        let mut left = (total as usize).min(self.least.len() - 1);
        let mut each: Vec<u32> = self
            .given
            .iter()
            .rev()
            .map(|given| {
                let own = given[left];
                left -= own as usize;
                own
            })
            .collect();
        each.reverse();
        each
    }

    /// Misses of that split on the training part.
    #[must_use]
    pub fn training_misses(&self, total: u32) -> u64 {
        self.least[(total as usize).min(self.least.len() - 1)]
    }
}

fn lru() -> hotset_policies::PolicySpec {
    hotset_policies::PolicySpec::Lru(hotset_policies::NoConfig {})
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    /// Three layers, four slots. Layer A gains 10 by its first slot, then nothing more until a
    /// third: 9 at once (a loop of three). B gains 6, 5, 1. C gains 4.
    ///
    /// Greedily A takes one (10), B two (6, 5), C one (4): 25. Three slots for A bring 19, and one
    /// for B 6: also 25. With five slots: greedy 26 (B's third), but A three, B two: 30.
    #[test]
    fn a_hand_worked_case_that_greed_gets_wrong() {
        let curves = [vec![20, 10, 10, 1], vec![12, 6, 1, 0], vec![4, 0]];
        let split = AdaptiveSplit::of_curves(&curves);
        assert_eq!(split.training_misses(0), 36);
        assert_eq!((split.slots(1), split.training_misses(1)), (vec![1, 0, 0], 26));
        assert_eq!((split.slots(3), split.training_misses(3)), (vec![1, 2, 0], 15));
        assert_eq!(split.training_misses(4), 11);
        assert_eq!((split.slots(5), split.training_misses(5)), (vec![3, 2, 0], 6));
        assert_eq!((split.slots(7), split.training_misses(7)), (vec![3, 3, 1], 1));
        assert_eq!(split.slots(99), [3, 3, 1]);
    }

    proptest! {
        #[test]
        fn is_the_best_of_all_splits(
            curves in prop::collection::vec(prop::collection::vec(0u64..50, 1..5), 1..5),
        ) {
            let split = AdaptiveSplit::of_curves(&curves);
            let most: usize = curves.iter().map(|curve| curve.len() - 1).sum();
            let mut best = vec![u64::MAX; most + 1];
            let mut each = vec![0usize; curves.len()];
            'all: loop {
                let misses = each.iter().zip(&curves).map(|(&slots, curve)| curve[slots]).sum();
                let slots: usize = each.iter().sum();
                best[slots] = best[slots].min(misses);
                for (slots, curve) in each.iter_mut().zip(&curves) {
                    *slots += 1;
                    if *slots < curve.len() {
                        continue 'all;
                    }
                    *slots = 0;
                }
                break;
            }
            for (total, &best) in best.iter().enumerate() {
                prop_assert_eq!(split.training_misses(total as u32), best);
                let each = split.slots(total as u32);
                prop_assert_eq!(each.iter().sum::<u32>(), total as u32);
                let misses = each.iter().zip(&curves).map(|(&s, curve)| curve[s as usize]);
                prop_assert_eq!(misses.sum::<u64>(), best);
            }
        }
    }
}
