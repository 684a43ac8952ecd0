//! Which experts are chosen together: who may stand in for whom.

/// How often the experts of each layer were asked for, alone and in pairs, so far. Memory: four bytes
/// for each pair of a layer's experts.
#[derive(Debug, Clone)]
pub(super) struct CoSelection {
    layers: Vec<LayerPairs>,
}

#[derive(Debug, Clone)]
struct LayerPairs {
    experts: usize,
    uses: Vec<u32>,
    /// `[expert][other]`.
    pairs: Vec<u32>,
}

impl CoSelection {
    pub fn new(experts: &[u32]) -> Self {
        let layer = |&experts: &u32| {
            let experts = experts as usize;
            LayerPairs { experts, uses: vec![0; experts], pairs: vec![0; experts * experts] }
        };
        Self { layers: experts.iter().map(layer).collect() }
    }

    pub fn memory(experts: &[u32]) -> u64 {
        let layer = |&experts: &u32| 4 * u64::from(experts).saturating_mul(u64::from(experts) + 1);
        experts.iter().map(layer).fold(0, u64::saturating_add)
    }

    /// An event asked for these distinct experts.
    pub fn learn(&mut self, layer: usize, experts: impl Iterator<Item = u32> + Clone) {
        let of = &mut self.layers[layer];
        for expert in experts.clone() {
            of.uses[expert as usize] = of.uses[expert as usize].saturating_add(1);
            let row = &mut of.pairs[expert as usize * of.experts..][..of.experts];
            for other in experts.clone() {
                row[other as usize] = row[other as usize].saturating_add(1);
            }
        }
    }

    /// Of the experts that `may` allows the one chosen most often together with `expert`, both counts
    /// considered: the largest `pairs^2 / uses`, which is the cosine of their columns squared but for
    /// `expert`'s own uses; ties to the lower id. Its cosine is at least `above` millionths; `None`
    /// where nobody's is, or nobody was ever chosen with it.
    pub fn nearest(
        &self,
        layer: usize,
        expert: u32,
        above: u32,
        may: impl Fn(u32) -> bool,
    ) -> Option<u32> {
        let of = &self.layers[layer];
        let row = &of.pairs[expert as usize * of.experts..][..of.experts];
        let mut best: Option<(u32, u128, u128)> = None;
        for (other, (&pairs, &uses)) in (0u32..).zip(row.iter().zip(&of.uses)) {
            if pairs == 0 || other == expert || !may(other) {
                continue;
            }
            let (square, uses) = (u128::from(pairs) * u128::from(pairs), u128::from(uses));
            if best.is_none_or(|(_, top, of)| square * of > top * uses) {
                best = Some((other, square, uses));
            }
        }
        let own = u128::from(of.uses[expert as usize]);
        let above = u128::from(above) * u128::from(above);
        best.filter(|(_, square, uses)| square * 1_000_000_000_000 >= above * own * uses)
            .map(|(other, ..)| other)
    }

    /// The lowest expert of a layer that `may` allows.
    pub fn lowest(&self, layer: usize, may: impl Fn(u32) -> bool) -> Option<u32> {
        (0..self.layers[layer].experts as u32).find(|&other| may(other))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_nearest_is_chosen_together_most_for_its_own_uses() {
        let mut pairs = CoSelection::new(&[2, 4]);
        for event in [[0, 1], [0, 1], [0, 2], [1, 3], [1, 3], [1, 2]] {
            pairs.learn(1, event.into_iter());
        }
        // Of 0's three events two were with 1, which was used five times (4/5), and one with 2,
        // which was used twice (1/2).
        assert_eq!(pairs.nearest(1, 0, 0, |_| true), Some(1));
        assert_eq!(pairs.nearest(1, 0, 0, |other| other != 1), Some(2));
        assert_eq!(pairs.nearest(1, 0, 0, |other| other == 3), None);
        // The cosine with 1 is 2 / sqrt(3 x 5) = 0.516.
        assert_eq!(pairs.nearest(1, 0, 516_000, |_| true), Some(1));
        assert_eq!(pairs.nearest(1, 0, 517_000, |_| true), None);
        assert_eq!(CoSelection::memory(&[2, 4]), 4 * (6 + 20));
    }
}
