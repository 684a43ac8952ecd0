//! Draws from a seeded generator that are the same on every machine.

use rand_pcg::Pcg64Mcg;
use rand_pcg::rand_core::Rng;

/// A number from 0 to below `bound`, which is at least 1.
pub(crate) fn below(random: &mut Pcg64Mcg, bound: usize) -> usize {
    // The high half of the product: even but for less than one part in 2^32.
    ((u128::from(random.next_u64()) * bound as u128) >> 64) as usize
}

/// Whether something of this chance comes true: never at 0, always at 1.
pub(crate) fn chance(random: &mut Pcg64Mcg, chance: f64) -> bool {
    // 53 bits make a fraction from 0 to below 1, every one of which is exact.
    ((random.next_u64() >> 11) as f64) * (1.0 / (1u64 << 53) as f64) < chance
}

/// Any order, all the same likely (Fisher and Yates).
pub(crate) fn shuffle<T>(random: &mut Pcg64Mcg, items: &mut [T]) {
    for last in (1..items.len()).rev() {
        items.swap(last, below(random, last + 1));
    }
}

#[cfg(test)]
mod tests {
    use rand_pcg::rand_core::SeedableRng;

    use super::*;

    #[test]
    fn draws_are_even_and_orders_all_come() {
        let mut random = Pcg64Mcg::seed_from_u64(5);
        let mut drawn = [0u32; 3];
        (0..30_000).for_each(|_| drawn[below(&mut random, 3)] += 1);
        // The standard error of each is 82.
        assert!(drawn.iter().all(|&n| n.abs_diff(10_000) < 330), "{drawn:?}");
        let hits = (0..10_000).filter(|_| chance(&mut random, 0.25)).count();
        // The standard error is 43.
        assert!(hits.abs_diff(2_500) < 175, "{hits}");
        assert!((0..1000).all(|_| chance(&mut random, 1.0) && !chance(&mut random, 0.0)));
        let mut orders = std::collections::BTreeSet::new();
        for _ in 0..200 {
            let mut order = [0, 1, 2];
            shuffle(&mut random, &mut order);
            orders.insert(order);
        }
        assert_eq!(orders.len(), 6);
    }
}
