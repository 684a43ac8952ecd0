//! [`ExpertCache`]: what is resident before anything is asked for.

use super::ExpertCache;
use super::room::PoolRoom;
use crate::policy::{Key, Policy};

impl<P: Policy> ExpertCache<P> {
    /// Brings in the experts of these dense keys before the first event, in the order given: each
    /// takes a free slot as if it had been asked for. Nobody leaves for them; those that find no
    /// free slot, are there already, or that the policy refuses are passed over. Returns how many
    /// came in. The engine has copied them when it asks for the first event.
    ///
    /// # Panics
    /// If no expert has one of the keys.
    ///
    /// ```
    /// use hotset_policies::{ExpertCache, Lru, Slots};
    ///
    /// let slots = Slots::Global(2);
    /// let mut cache = ExpertCache::new(&[2, 2], &[1, 1], &slots, |_, pool| Lru::new(pool))?;
    /// assert_eq!(cache.place([3, 0, 1]), 2);
    /// assert_eq!(cache.demand(1, &[1u8]).hits, 1);
    /// # Ok::<(), hotset_policies::CacheError>(())
    /// ```
    pub fn place(&mut self, keys: impl IntoIterator<Item = Key>) -> u32 {
        let mut placed = 0;
        for key in keys {
            let (layer, _) = self.expert_of(key);
            let index = self.pool_of(layer);
            let (base, end) = if self.global {
                (0, self.entries.len() as u32)
            } else {
                (self.bases[layer], self.bases[layer + 1])
            };
            let pool = &mut self.pools[index];
            if self.entries[key as usize].is_resident() || pool.policy.len() >= pool.capacity {
                continue;
            }
            let entries = &mut self.entries[base as usize..end as usize];
            let mut room = PoolRoom::new(entries, base, 0, &mut pool.free, &mut self.dropped);
            let mut admitted = pool.policy.admit(key - base, &mut room);
            if !admitted && P::OBSERVES {
                // Whoever counts uploads a step begins anew: this is none of a step.
                pool.policy.begin_step(0);
                admitted = pool.policy.admit(key - base, &mut room);
            }
            if admitted && let Some(slot) = room.take_slot() {
                self.entries[key as usize].word = slot;
                placed += 1;
            }
        }
        placed
    }
}

#[cfg(test)]
mod tests {
    use crate::{ExpertCache, Lru, PolicySpec, Slots};

    #[test]
    fn a_cap_on_uploads_does_not_hold_for_what_is_placed() {
        let spec: PolicySpec = "lru+upload-cap:n=1".parse().unwrap();
        let build = |_, pool: &_| spec.build(pool).unwrap();
        let mut cache = ExpertCache::new(&[4], &[2], &Slots::Global(3), build).unwrap();
        assert_eq!(cache.place([2, 1, 0]), 3);
    }

    #[test]
    fn placed_experts_take_free_slots_only_and_the_last_is_the_most_recent() {
        let slots = Slots::Layer(vec![2, 1]);
        let mut cache = ExpertCache::new(&[3, 2], &[1, 1], &slots, |_, pool| Lru::new(pool))
            .unwrap()
            .with_ordered_copies();
        assert_eq!(cache.place([2, 0, 1, 4, 3, 2]), 3);
        assert_eq!(cache.residents().collect::<Vec<_>>(), [0, 2, 4]);
        assert_eq!(cache.validate(), Ok(()));
        // 2 came in first: it leaves for 1.
        assert_eq!(cache.demand(0, &[1u8]).placements[0].evicted(), Some(2));
        assert_eq!(cache.validate(), Ok(()));
    }
}
