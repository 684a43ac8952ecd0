//! Splits each event into what is demanded of the cache and what the host serves.

use super::MissHandler;
use crate::{ExpertCache, ExpertId, Policy};

/// Applies a [`MissHandler`] to the events of one cache, and remembers when each expert was last
/// asked for. Memory: 8 bytes an expert; nothing is allocated between events.
///
/// # Example
/// ```
/// use hotset_policies::miss::{MissDispatcher, MissHandler};
/// use hotset_policies::{ExpertCache, Lru, Slots};
///
/// // One layer of four experts and two slots; of two misses the link takes one, the host one.
/// let balanced: MissHandler = "balanced:fetch_permille=500".parse().unwrap();
/// let mut dispatcher = MissDispatcher::new(balanced, &[4]);
/// let mut cache = ExpertCache::new(&[4], &[2], &Slots::Global(2), |_, pool| Lru::new(pool))
///     .unwrap()
///     .with_ordered_copies();
/// let event = dispatcher.choose(&cache, 0, &[3u16, 1], &[]);
/// // Neither was used before: the lower id is copied, the host serves the other.
/// assert_eq!((event.demanded, event.host), (&[1][..], 1));
/// assert_eq!(cache.demand(0, event.demanded).fetches, 1);
/// cache.release(0);
/// ```
#[derive(Debug, Clone)]
pub struct MissDispatcher<E> {
    handler: MissHandler,
    /// Dense key of each layer's expert 0.
    bases: Vec<u32>,
    /// The event that last asked for each key; 0: none.
    last_event: Vec<u64>,
    events: u64,
    demanded: Vec<E>,
    weights: Vec<f32>,
    absent: Vec<Absent>,
}

/// An expert that is not resident. Ordered by how soon it is fetched: used most recently first,
/// then by id.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
struct Absent {
    age: u64,
    expert: u32,
    rank: usize,
}

/// An event as its [`MissDispatcher`] split it.
#[derive(Debug, Clone, Copy)]
pub struct Dispatched<'a, E> {
    /// What to demand of the cache: the residents in the order given, then what is to be fetched.
    pub demanded: &'a [E],
    /// The router's weight of each of those; empty where none were given.
    pub weights: &'a [f32],
    /// How many experts the host serves.
    pub host: u32,
}

impl<E: ExpertId> MissDispatcher<E> {
    /// A dispatcher for a model with `experts[l]` experts in MoE layer `l`.
    #[must_use]
    pub fn new(handler: MissHandler, experts: &[u32]) -> Self {
        let mut total = 0;
        let mut bases = Vec::with_capacity(experts.len());
        for &experts in experts {
            bases.push(total);
            total += experts;
        }
        let widest = experts.iter().copied().max().unwrap_or(0) as usize;
        Self {
            handler,
            bases,
            last_event: vec![0; total as usize],
            events: 0,
            demanded: Vec::with_capacity(widest),
            weights: Vec::new(),
            absent: Vec::with_capacity(widest),
        }
    }

    /// Splits the event of `layer` that asks for the distinct `experts`, with the router's weight
    /// of each, or none. The event counts as a use of all of them.
    ///
    /// # Panics
    /// If `layer` or an expert id is out of range.
    pub fn choose<P: Policy>(
        &mut self,
        cache: &ExpertCache<P>,
        layer: usize,
        experts: &[E],
        weights: &[f32],
    ) -> Dispatched<'_, E> {
        self.events += 1;
        self.demanded.clear();
        self.weights.clear();
        self.absent.clear();
        for (rank, expert) in experts.iter().enumerate() {
            let last = &mut self.last_event[(self.bases[layer] + expert.index()) as usize];
            if cache.slot_of(layer, expert.index()).is_some() {
                self.demanded.push(*expert);
                self.weights.extend(weights.get(rank));
            } else {
                self.absent.push(Absent { age: u64::MAX - *last, expert: expert.index(), rank });
            }
            *last = self.events;
        }
        self.absent.sort_unstable();
        let fetched = self.handler.fetched(self.absent.len() as u32);
        for absent in &self.absent[..fetched as usize] {
            self.demanded.push(experts[absent.rank]);
            self.weights.extend(weights.get(absent.rank));
        }
        Dispatched {
            demanded: &self.demanded,
            weights: &self.weights,
            host: self.absent.len() as u32 - fetched,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Lru, Slots};

    /// Two of four experts fit. Experts 0 and 1 are used, then 2 and 3, then all four: of three
    /// events' misses half are copied, and the most recent are those.
    #[test]
    fn the_most_recent_misses_are_copied_and_the_host_serves_the_rest() {
        let balanced = MissHandler::Balanced { fetch_permille: 500 };
        let mut dispatcher = MissDispatcher::new(balanced, &[4]);
        let mut cache = ExpertCache::new(&[4], &[2], &Slots::Global(3), |_, pool| Lru::new(pool))
            .unwrap()
            .with_ordered_copies();
        let mut run = |experts: &[u16]| {
            let event = dispatcher.choose(&cache, 0, experts, &[]);
            let (demanded, host) = (event.demanded.to_vec(), event.host);
            cache.demand(0, &demanded);
            cache.release(0);
            (demanded, host)
        };
        // 1 of 2 misses: 0, the lower id. Then 2. Then 0 and 2 are there, and of 1 and 3 the one
        // that was used later is copied: 3.
        assert_eq!(run(&[1, 0]), (vec![0], 1));
        assert_eq!(run(&[3, 2]), (vec![2], 1));
        assert_eq!(run(&[1, 2, 3, 0]), (vec![2, 0, 3], 1));
        assert_eq!(run(&[0, 2, 3]), (vec![0, 2, 3], 0));
    }

    #[test]
    fn weights_follow_their_experts() {
        let mut dispatcher = MissDispatcher::new(MissHandler::Fetch, &[2, 4]);
        let cache = ExpertCache::new(&[2, 4], &[1, 2], &Slots::Global(2), |_, pool| Lru::new(pool));
        let event = dispatcher.choose(cache.as_ref().unwrap(), 1, &[3u8, 1], &[0.75, 0.25]);
        assert_eq!(event.demanded, [1, 3]);
        assert_eq!((event.weights, event.host), (&[0.25, 0.75][..], 0));
    }
}
