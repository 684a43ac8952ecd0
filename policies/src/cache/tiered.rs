//! [`HostTier`]: a cache in host memory under the accelerator's, over disk.
//!
//! The same [`ExpertCache`] twice: what the upper one has to copy is demanded of the lower one, and
//! what that misses is read from disk. Neither knows the other; the engine (or the simulator)
//! hands each plan of the upper cache on.

use serde::{Deserialize, Serialize};

use super::{Action, CacheError, ExpertCache, Placement, Plan, Slots};
use crate::policy::{Key, Policy, PoolShape};

/// Whether an expert in accelerator memory keeps its place in host memory.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum TierMode {
    /// It keeps it, until the host's own policy gives the slot away: the accelerator's hits do not
    /// reach the host, so that may be while the accelerator still holds the expert.
    #[default]
    Inclusive,
    /// It leaves the host's memory as it goes up; whoever leaves the accelerator for it is offered
    /// to the host. What is read from disk into an accelerator's slot passes the host by.
    Exclusive,
}

impl TierMode {
    /// Its name in settings and results.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::Inclusive => "inclusive",
            Self::Exclusive => "exclusive",
        }
    }
}

/// Host memory under an accelerator's cache, over disk: hand it every plan of the upper cache.
///
/// Memory: that of its [`ExpertCache`], 12 bytes an expert of the widest layer, 4 a layer, and in
/// exclusive mode 1 an expert; all of it is taken at construction. A read counts as complete once it is planned: read before the copy that
/// needs it.
///
/// ```
/// use hotset_policies::{ExpertCache, HostTier, Lru, Slots, TierMode};
///
/// // One layer of eight experts, two of them a token; two slots over four.
/// let mut gpu = ExpertCache::new(&[8], &[2], &Slots::Global(2), |_, pool| Lru::new(pool))?;
/// let mut host = HostTier::new(&[8], &[2], &Slots::Global(4), TierMode::Inclusive, |_, pool| {
///     Lru::new(pool)
/// })?;
/// for (experts, expected) in [([5u8, 3], (0, &[3, 5][..])), ([1, 2], (0, &[1, 2])), ([3, 2], (1, &[]))] {
///     let plan = gpu.demand(0, &experts);
///     let reads = host.serve(0, &plan, &[]);
///     // Read `reads.reads` from disk into host memory, then copy what `plan` says.
///     assert_eq!((reads.hits, reads.reads), expected);
///     experts.iter().for_each(|&expert| drop(gpu.complete(0, expert.into())));
///     gpu.release(0);
/// }
/// # Ok::<(), hotset_policies::CacheError>(())
/// ```
pub struct HostTier<P> {
    cache: ExpertCache<P>,
    mode: TierMode,
    read_ahead: u32,
    experts: Vec<u32>,
    /// In exclusive mode: whether the accelerator has an expert, by dense key, as far as its plans said.
    above: Vec<bool>,
    asked: Vec<u32>,
    reads: Vec<u32>,
    ahead: Vec<u32>,
}

/// What a tier does for one plan of the cache above it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct TierPlan<'a> {
    /// Experts that lay in host memory.
    pub hits: u32,
    /// Experts to read from disk: of a demand ascending in id but for those that host cores compute,
    /// which come with the others in inclusive mode and last in exclusive mode; of a prefetch in
    /// the order of its plan.
    pub reads: &'a [u32],
    /// Neighbours to read along with them, behind them.
    pub ahead: &'a [u32],
    /// Experts that left the accelerator and took a slot in host memory: copies downwards.
    pub kept: u32,
}

impl<P: Policy> HostTier<P> {
    /// A tier for a model with `experts[l]` experts in MoE layer `l`, `top_k[l]` of them used by a
    /// token. `policy` builds the policy of each pool.
    ///
    /// # Errors
    /// As [`ExpertCache::new`].
    pub fn new(
        experts: &[u32],
        top_k: &[u32],
        slots: &Slots,
        mode: TierMode,
        policy: impl FnMut(usize, &PoolShape) -> P,
    ) -> Result<Self, CacheError> {
        let cache = ExpertCache::new(experts, top_k, slots, policy)?.with_ordered_copies();
        let widest = experts.iter().copied().max().unwrap_or(0) as usize;
        let list = || Vec::with_capacity(widest);
        let experts = experts.to_vec();
        let (asked, reads, ahead) = (list(), list(), list());
        let keys = if mode == TierMode::Exclusive { cache.entries.len() } else { 0 };
        let above = vec![false; keys];
        Ok(Self { cache, mode, read_ahead: 0, experts, above, asked, reads, ahead })
    }

    /// Also reads the next `experts` of a layer behind each expert that it reads, as they lie in a
    /// file: an operating system's read-ahead. They go to host memory in both modes.
    #[must_use]
    pub fn with_read_ahead(mut self, experts: u32) -> Self {
        self.read_ahead = experts;
        self
    }

    /// The accelerator has these experts, by dense key, before its first plan: in exclusive mode nothing
    /// reads them along again. Keys that no expert has are passed over.
    pub fn begin_below(&mut self, keys: impl IntoIterator<Item = Key>) {
        for key in keys {
            if let Some(above) = self.above.get_mut(key as usize) {
                *above = true;
            }
        }
    }

    /// The cache in host memory.
    #[must_use]
    pub fn cache(&self) -> &ExpertCache<P> {
        &self.cache
    }

    /// The cache in host memory, to fill it ahead of the accelerator's
    /// ([`ExpertCache::prefetch`]): a fetch that it plans is a read.
    pub fn cache_mut(&mut self) -> &mut ExpertCache<P> {
        &mut self.cache
    }

    /// A step over `tokens` tokens begins.
    pub fn begin_step(&mut self, tokens: u32) {
        self.cache.begin_step(tokens);
    }

    /// Serves a demand's plan of the cache above: what that copies, and `computed`, experts that
    /// host cores compute where they lie, which are none of the plan's.
    ///
    /// # Panics
    /// If `layer` or an expert is out of range.
    #[inline]
    pub fn serve(&mut self, layer: usize, plan: &Plan<'_>, computed: &[u32]) -> TierPlan<'_> {
        let copied =
            |placed: &&Placement| matches!(placed.action, Action::Fetch | Action::Unplaced);
        let placements = plan.placements.iter().filter(copied);
        self.follow(layer, placements, plan, computed)
    }

    /// Serves a prefetch's plan of the cache above, whose unplaced experts are dropped; its reads are in
    /// the plan's order, the likeliest first.
    ///
    /// # Panics
    /// If `layer` or an expert is out of range.
    pub fn serve_ahead(&mut self, layer: usize, plan: &Plan<'_>) -> TierPlan<'_> {
        if self.mode == TierMode::Exclusive {
            return self.exchange_in_order(layer, plan);
        }
        let copied = |placed: &&Placement| placed.action == Action::Fetch;
        let TierPlan { hits, kept, .. } =
            self.follow(layer, plan.placements.iter().filter(copied), plan, &[]);
        let Self { asked, reads, .. } = self;
        let place = |expert: &u32| asked.iter().position(|other| other == expert);
        reads.sort_by_key(place);
        self.planned(hits, kept)
    }

    /// Takes what the accelerator gave up outside of any plan (its slots became fewer, a copy was taken
    /// back), in exclusive mode; returns how many found a slot.
    ///
    /// # Panics
    /// If no expert has one of the keys.
    pub fn come_down(&mut self, keys: &[Key]) -> u32 {
        if self.mode == TierMode::Inclusive {
            return 0;
        }
        keys.iter().map(|&key| self.offer(key)).sum()
    }

    /// [`come_down`](Self::come_down) of experts of one layer.
    ///
    /// # Panics
    /// If `layer` or an expert is out of range.
    pub fn come_down_of(&mut self, layer: usize, experts: &[u32]) -> u32 {
        if self.mode == TierMode::Inclusive {
            return 0;
        }
        experts.iter().map(|&expert| self.offer(self.cache.key(layer, expert) as Key)).sum()
    }

    /// A prediction may push out one that follows it and is then fetched again: in exclusive mode each
    /// goes down before the next comes up.
    fn exchange_in_order(&mut self, layer: usize, plan: &Plan<'_>) -> TierPlan<'_> {
        self.begin(&[]);
        let (mut hits, mut kept) = (0, 0);
        for placed in plan.placements {
            if placed.action == Action::Fetch {
                hits += self.go_up(layer, placed.expert);
            }
            kept += placed.evicted().map_or(0, |key| self.offer(key));
        }
        kept += plan.dropped.iter().map(|&key| self.offer(key)).sum::<u32>();
        self.demand(layer);
        self.planned(hits, kept)
    }

    /// An expert goes up, from host memory (1) or from disk (0).
    fn go_up(&mut self, layer: usize, expert: u32) -> u32 {
        let here = self.cache.take(layer, expert);
        if !here {
            self.reads.push(expert);
        }
        let key = self.cache.key(layer, expert);
        self.above[key] = true;
        u32::from(here)
    }

    /// An expert that leaves the accelerator is offered to host memory: 1 if it comes in.
    fn offer(&mut self, key: Key) -> u32 {
        self.above[key as usize] = false;
        u32::from(self.cache.offer(key))
    }

    /// Serves experts that are used without a slot above: host cores compute them, or they pass
    /// through a transient buffer.
    ///
    /// # Panics
    /// If `layer` or an expert is out of range.
    pub fn serve_past(&mut self, layer: usize, experts: &[u32]) -> TierPlan<'_> {
        self.begin(experts);
        let hits = self.demand(layer);
        self.planned(hits, 0)
    }

    fn begin(&mut self, asked: &[u32]) {
        self.reads.clear();
        self.ahead.clear();
        self.asked.clear();
        self.asked.extend_from_slice(asked);
    }

    fn planned(&self, hits: u32, kept: u32) -> TierPlan<'_> {
        TierPlan { hits, reads: &self.reads, ahead: &self.ahead, kept }
    }

    fn follow<'p>(
        &mut self,
        layer: usize,
        copied: impl Iterator<Item = &'p Placement>,
        plan: &Plan<'_>,
        computed: &[u32],
    ) -> TierPlan<'_> {
        self.begin(&[]);
        let mut taken = 0;
        for placed in copied {
            if self.mode == TierMode::Inclusive || placed.action == Action::Unplaced {
                self.asked.push(placed.expert);
            } else {
                taken += self.go_up(layer, placed.expert);
            }
        }
        self.asked.extend_from_slice(computed);
        let hits = taken + self.demand(layer);
        let mut kept = 0;
        if self.mode == TierMode::Exclusive {
            let evicted = plan.placements.iter().filter_map(Placement::evicted);
            for key in evicted.chain(plan.dropped.iter().copied()) {
                kept += self.offer(key);
            }
        }
        self.planned(hits, kept)
    }

    /// Demands what is asked of the host's cache, and reads ahead; returns the hits.
    fn demand(&mut self, layer: usize) -> u32 {
        let mut hits = 0;
        if !self.asked.is_empty() {
            let plan = self.cache.demand(layer, &self.asked);
            hits = plan.hits;
            let read =
                |placed: &&Placement| matches!(placed.action, Action::Fetch | Action::Unplaced);
            self.reads.extend(plan.placements.iter().filter(read).map(|placed| placed.expert));
        }
        if self.read_ahead > 0 {
            self.read_neighbours(layer);
        }
        self.cache.release(layer);
        hits
    }

    #[cold]
    fn read_neighbours(&mut self, layer: usize) {
        let experts = self.experts[layer];
        for place in 0..self.reads.len() {
            let first = self.reads[place].saturating_add(1);
            for expert in first..first.saturating_add(self.read_ahead).min(experts) {
                let key = self.cache.key(layer, expert);
                let above = self.above.get(key).is_some_and(|&above| above);
                if above || self.reads.contains(&expert) || self.ahead.contains(&expert) {
                    continue;
                }
                if self.cache.prefetch(layer, &[expert]).fetches > 0 {
                    self.ahead.push(expert);
                }
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Lru;

    fn caches(gpu: u32, host: u32, mode: TierMode) -> (ExpertCache<Lru>, HostTier<Lru>) {
        let gpu = ExpertCache::new(&[8, 8], &[2, 2], &Slots::Global(gpu), |_, pool| Lru::new(pool));
        let host =
            HostTier::new(&[8, 8], &[2, 2], &Slots::Global(host), mode, |_, pool| Lru::new(pool));
        (gpu.unwrap().with_ordered_copies(), host.unwrap())
    }

    /// Hits, reads and copies downwards of each event.
    fn run(
        (gpu, host): &mut (ExpertCache<Lru>, HostTier<Lru>),
        events: &[(usize, &[u8])],
    ) -> Vec<(u32, Vec<u32>, u32)> {
        let serve = |&(layer, experts): &(usize, &[u8])| {
            let plan = gpu.demand(layer, experts);
            let served = host.serve(layer, &plan, &[]);
            let told = (served.hits, served.reads.to_vec(), served.kept);
            gpu.release(layer);
            assert_eq!(host.cache.validate(), Ok(()));
            told
        };
        events.iter().map(serve).collect()
    }

    #[test]
    fn exclusive_tiers_hold_each_expert_once_and_what_leaves_the_gpu_comes_down() {
        let mut both = caches(2, 2, TierMode::Exclusive);
        let told = run(&mut both, &[(0, &[0, 1]), (0, &[2, 3]), (0, &[1, 2]), (1, &[0, 2])]);
        // 0 and 1 leave for 2 and 3 and come down; 1 goes up again for 3, the less recent; then both
        // leave for two of another layer.
        assert_eq!(told[0], (0, vec![0, 1], 0));
        assert_eq!(told[1], (0, vec![2, 3], 2));
        assert_eq!(told[2], (1, vec![], 1));
        assert_eq!(told[3], (0, vec![0, 2], 2));
        let up: Vec<_> = both.0.residents().collect();
        let down: Vec<_> = both.1.cache.residents().collect();
        assert_eq!((up, down), (vec![8, 10], vec![1, 2]));
    }

    #[test]
    fn what_the_accelerator_began_with_is_not_read_along() {
        for (mode, ahead) in [(TierMode::Exclusive, vec![2]), (TierMode::Inclusive, vec![1, 2])] {
            let (mut gpu, host) = caches(4, 8, mode);
            let mut host = host.with_read_ahead(2);
            gpu.place([1]);
            host.begin_below(gpu.residents().chain([99]));
            let plan = gpu.demand(0, &[0u8]);
            let served = host.serve(0, &plan, &[]);
            assert_eq!((served.reads, served.ahead), (&[0][..], &ahead[..]), "{mode:?}");
        }
    }

    #[test]
    fn what_found_no_slot_above_stays_in_host_memory() {
        let mut both = caches(1, 4, TierMode::Exclusive);
        let told = run(&mut both, &[(0, &[0, 1]), (0, &[0, 1]), (0, &[1]), (0, &[0])]);
        assert_eq!(told[0], (0, vec![0, 1], 0));
        assert_eq!(told[1], (2, vec![], 0));
        // Each goes up from the host; 1 comes down for 0.
        assert_eq!((told[2].0, told[3].0, told[3].2), (1, 1, 1));
    }

    #[test]
    fn neighbours_are_read_along_within_their_layer() {
        let (mut gpu, host) = caches(2, 8, TierMode::Inclusive);
        let mut host = host.with_read_ahead(2);
        let plan = gpu.demand(0, &[6u8, 2]);
        let served = host.serve(0, &plan, &[]);
        assert_eq!((served.reads, served.ahead), (&[2, 6][..], &[3, 4, 7][..]));
        assert_eq!(host.cache().residents().collect::<Vec<_>>(), [2, 3, 4, 6, 7]);
        assert_eq!(host.serve_past(0, &[4, 5]).reads, [5]);
    }

    #[test]
    fn what_host_cores_compute_is_asked_of_host_memory_too() {
        let (mut gpu, mut host) = caches(2, 2, TierMode::Inclusive);
        let plan = gpu.demand(0, &[1u8]);
        assert_eq!(host.serve(0, &plan, &[5]).reads, [1, 5]);
        gpu.release(0);
        let plan = gpu.demand(0, &[1u8]);
        let served = host.serve(0, &plan, &[5]);
        assert_eq!((served.hits, served.reads.len()), (1, 0));
    }
}
