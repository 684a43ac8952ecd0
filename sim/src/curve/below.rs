//! The curve of LRU in host memory under one cache: that cache replays once, and what it copies is
//! the stream whose counts at every host size are found in the same pass.

use hotset_policies::{Action, AnyPolicy, ExpertCache, Need, PoolShape};
use hotset_traces::{Phase, Trace};

use super::LruCurve;
use super::event::EventStack;
use super::tally::Tally;
use crate::capacity::dimensions;
use crate::drive::{EventSink, Way, drive_wide};
use crate::{Semantics, Setting, SimError, Steps};

impl LruCurve {
    /// LRU's counts at every number of slots in host memory (one pool, inclusive), under the cache
    /// of `upper`: accesses are what that copies, misses are reads from disk. Cold is here until
    /// the host's slots were filled. A host that holds every expert is not on the curve: it begins
    /// with them, and reads nothing.
    ///
    /// # Errors
    /// An upper cache that does more than evict and fetch, or whose policy needs the future or
    /// training; sequential semantics.
    pub fn of_host(trace: &Trace, steps: &Steps, upper: &Setting) -> Result<Self, SimError> {
        if upper.semantics != Semantics::Event {
            return Err(SimError::EventsOnly { what: "host memory under a cache" });
        }
        let policy = upper.policy.info().name;
        if !upper.is_plain() || !upper.policy.is_online() {
            return Err(SimError::HostCurve { policy: policy.to_owned() });
        }
        let shape = trace.shape();
        let (experts, top_k) = dimensions(shape);
        let total = shape.total_experts();
        // Online: it can be built.
        let build = |_: usize, pool: &PoolShape| {
            upper.policy.build(pool).unwrap_or_else(|| unreachable!("'{policy}' is online"))
        };
        let cache = ExpertCache::new(&experts, &top_k, &upper.slots, build)?;
        let widest = shape.max_experts();
        let mut below = Below {
            cache: cache.with_ordered_copies(),
            weighs: upper.policy.needs() == Need::Weights,
            tally: Tally::new(vec![total; experts.len()], upper.warmup),
            stack: EventStack::new(total, widest),
            bases: (0..experts.len()).map(|layer| shape.key_base(layer)).collect(),
            asked: Vec::with_capacity(widest as usize),
            widest: vec![0; experts.len()],
        };
        let wanted = |phase: Phase| upper.phase.wants(phase);
        drive_wide(trace, &Way::new(steps, &()), wanted, &mut below)?;
        let Below { mut tally, widest, .. } = below;
        tally.finish();
        let warmup = upper.warmup.is_some();
        Ok(Self { global: true, tally, keys: vec![total], widest, warmup })
    }
}

/// The upper cache, and the stack that its copies go through.
struct Below {
    cache: ExpertCache<AnyPolicy>,
    /// Whether the upper policy reads the router's weights.
    weighs: bool,
    tally: Tally,
    stack: EventStack,
    bases: Vec<u32>,
    asked: Vec<u32>,
    widest: Vec<u32>,
}

impl EventSink<u16> for Below {
    const WEIGHTS: bool = false;

    fn wants_weights(&self) -> bool {
        self.weighs
    }

    fn begin_step(&mut self, _: usize, phase: Phase, tokens: u32) {
        self.tally.begin_step(phase, tokens, self.stack.distinct());
        self.cache.begin_step(tokens);
    }

    fn event(&mut self, layer: usize, experts: &[u16], weights: &[f32]) {
        let plan = self.cache.demand_weighted(layer, experts, weights);
        let copied = plan
            .placements
            .iter()
            .filter(|placed| matches!(placed.action, Action::Fetch | Action::Unplaced));
        self.asked.clear();
        self.asked.extend(copied.map(|placed| placed.expert));
        self.cache.release(layer);
        let count = self.asked.len() as u32;
        if count > 0 {
            self.widest[layer] = self.widest[layer].max(count);
            let mut marks = self.tally.layer(layer, count);
            self.stack.event(self.bases[layer], &self.asked, &mut marks);
        }
    }

    fn end_step(&mut self) {}
}
