//! Runs scenarios through the reference cache: to fill in answers, or to compare them.

use hotset_policies::{Action, AnyPolicy, ExpertCache, Key, MovedExpert, Plan, PolicySpec};
use thiserror::Error;

use crate::decision::{Evicted, Expert, Fetched, Held};

use super::{Call, Moved, Planned, SCHEMA, Scenario, ScenarioFile};

/// The first call whose answer is another one.
#[derive(Debug, Clone, PartialEq, Error)]
pub enum Mismatch {
    /// A file of another format.
    #[error("the file's schema is '{0}', not '{SCHEMA}'")]
    Schema(String),
    /// A scenario that cannot be set up.
    #[error("scenario '{scenario}': {reason}")]
    Setup {
        /// The scenario.
        scenario: String,
        /// Why.
        reason: String,
    },
    /// Another answer.
    #[error("scenario '{scenario}', call {index}:\nexpected {expected:?}\nanswered {answered:?}")]
    Answer {
        /// The scenario.
        scenario: String,
        /// The call, from 0.
        index: usize,
        /// As the file says.
        expected: Box<Call>,
        /// As the reference does.
        answered: Box<Call>,
    },
    /// The cache is broken after the call.
    #[error("scenario '{scenario}', call {index}: {broken}")]
    Invariant {
        /// The scenario.
        scenario: String,
        /// The call, from 0.
        index: usize,
        /// What is broken.
        broken: String,
    },
}

impl ScenarioFile {
    /// Runs every scenario through the reference cache.
    ///
    /// # Errors
    /// The first answer that differs.
    pub fn check(&self) -> Result<(), Mismatch> {
        if self.schema != SCHEMA {
            return Err(Mismatch::Schema(self.schema.clone()));
        }
        self.scenarios.iter().try_for_each(Scenario::check)
    }
}

impl Scenario {
    fn check(&self) -> Result<(), Mismatch> {
        let mut cache = self.cache()?;
        for (index, expected) in self.calls.iter().enumerate() {
            let answered = self.answer(&mut cache, index, expected)?;
            if answered != *expected {
                return Err(Mismatch::Answer {
                    scenario: self.name.clone(),
                    index,
                    expected: Box::new(expected.clone()),
                    answered: Box::new(answered),
                });
            }
        }
        Ok(())
    }

    /// The same with the reference's answers.
    pub(super) fn answered(mut self) -> Result<Self, Mismatch> {
        let mut cache = self.cache()?;
        for index in 0..self.calls.len() {
            self.calls[index] = self.answer(&mut cache, index, &self.calls[index])?;
        }
        Ok(self)
    }

    fn cache(&self) -> Result<ExpertCache<AnyPolicy>, Mismatch> {
        let setup = |reason: String| Mismatch::Setup { scenario: self.name.clone(), reason };
        let policy: PolicySpec = self.policy.parse().map_err(|error| setup(format!("{error}")))?;
        let slots = self.slots.slots();
        let pools = slots
            .pools(&self.experts, &self.top_k)
            .map_err(|error| setup(error.to_string()))?
            .iter()
            .map(|pool| policy.build(pool))
            .collect::<Option<Vec<AnyPolicy>>>()
            .ok_or_else(|| setup(format!("'{}' cannot run without a trace", self.policy)))?;
        let mut pools = pools.into_iter();
        let cache = ExpertCache::new(&self.experts, &self.top_k, &slots, |_, _| {
            pools.next().unwrap_or_else(|| unreachable!("one policy a pool of the same slots"))
        })
        .map_err(|error| setup(error.to_string()))?;
        Ok(if self.ordered_copies { cache.with_ordered_copies() } else { cache })
    }

    fn answer(
        &self,
        cache: &mut ExpertCache<AnyPolicy>,
        index: usize,
        call: &Call,
    ) -> Result<Call, Mismatch> {
        let named = match *call {
            Call::Demand { layer, ref experts, .. } | Call::Prefetch { layer, ref experts, .. } => {
                Some((layer, experts.as_slice()))
            }
            Call::Complete { layer, ref expert, .. } | Call::SlotOf { layer, ref expert, .. } => {
                Some((layer, std::slice::from_ref(expert)))
            }
            Call::Release { layer } => Some((layer, &[][..])),
            Call::Invalidate { pool, .. } => Some((pool, &[][..])),
            Call::BeginStep { .. } | Call::Resize { .. } => None,
        };
        if let Some((layer, experts)) = named {
            let known = self.experts.get(layer as usize).copied().unwrap_or(0);
            if known == 0 || experts.iter().any(|&expert| expert >= known) {
                let reason = format!("call {index} names what the model does not have");
                return Err(Mismatch::Setup { scenario: self.name.clone(), reason });
            }
        }
        let answered = perform(cache, call.clone());
        match cache.validate() {
            Ok(()) => Ok(answered),
            Err(broken) => Err(Mismatch::Invariant { scenario: self.name.clone(), index, broken }),
        }
    }
}

/// Makes the call and writes the answer into it.
fn perform(cache: &mut ExpertCache<AnyPolicy>, mut call: Call) -> Call {
    match &mut call {
        Call::BeginStep { tokens } => cache.begin_step(*tokens),
        Call::Demand { layer, experts, weights, plan, residents } => {
            let made = Owned::of(&cache.demand_weighted(*layer as usize, experts, weights));
            *plan = made.planned(cache);
            *residents = by_layer(cache);
        }
        Call::Prefetch { layer, experts, plan, residents } => {
            let made = Owned::of(&cache.prefetch(*layer as usize, experts));
            *plan = made.planned(cache);
            *residents = by_layer(cache);
        }
        Call::Complete { layer, expert, was_pending } => {
            *was_pending = cache.complete(*layer as usize, *expert);
        }
        Call::Release { layer } => cache.release(*layer as usize),
        Call::SlotOf { layer, expert, slot } => *slot = cache.slot_of(*layer as usize, *expert),
        Call::Resize { slots, refused, evicted, moved, residents } => {
            let resized = cache.resize(&slots.slots());
            *refused = resized.is_err();
            let resized = resized.unwrap_or_default();
            *evicted = resized.evicted.iter().map(|&key| expert_of(cache, key)).collect();
            *moved = resized
                .moved
                .iter()
                .map(|&MovedExpert { key, from, to }| {
                    let Expert { layer, expert } = expert_of(cache, key);
                    Moved { layer, expert, from, to }
                })
                .collect();
            *residents = by_layer(cache);
        }
        Call::Invalidate { pool, first, end, refused, left, residents } => {
            let invalidated = cache.invalidate(*pool as usize, *first..*end);
            *refused = invalidated.is_err();
            let keys = invalidated.unwrap_or_default();
            *left = keys.iter().map(|&key| expert_of(cache, key)).collect();
            *residents = by_layer(cache);
        }
    }
    call
}

fn expert_of(cache: &ExpertCache<AnyPolicy>, key: Key) -> Expert {
    let (layer, expert) = cache.expert_of(key);
    Expert { layer: layer as u32, expert }
}

fn by_layer(cache: &ExpertCache<AnyPolicy>) -> Vec<Vec<u32>> {
    let mut layers = vec![Vec::new(); cache.layers()];
    for key in cache.residents() {
        let (layer, expert) = cache.expert_of(key);
        layers[layer].push(expert);
    }
    layers
}

/// A plan that no longer borrows the cache.
struct Owned {
    placements: Vec<hotset_policies::Placement>,
    dropped: Vec<Key>,
    wasted: u32,
    overflow: bool,
}

impl Owned {
    fn of(plan: &Plan<'_>) -> Self {
        Self {
            placements: plan.placements.to_vec(),
            dropped: plan.dropped.to_vec(),
            wasted: plan.wasted,
            overflow: plan.overflow,
        }
    }

    fn planned(&self, cache: &ExpertCache<AnyPolicy>) -> Planned {
        let mut planned = Planned {
            dropped: self.dropped.iter().map(|&key| expert_of(cache, key)).collect(),
            wasted: self.wasted,
            overflow: self.overflow,
            ..Planned::default()
        };
        for placement in &self.placements {
            let (expert, slot) = (placement.expert, Some(placement.slot));
            match placement.action {
                Action::Hit => planned.hits.push(Held { expert, slot }),
                Action::PrefetchHit => {
                    planned.hits.push(Held { expert, slot });
                    planned.prefetch_hits.push(expert);
                }
                Action::Pending => planned.pending.push(Held { expert, slot }),
                Action::Fetch => {
                    let evicted = placement
                        .evicted()
                        .map_or(Evicted::Nobody, |key| Evicted::Expert(expert_of(cache, key)));
                    planned.fetches.push(Fetched { expert, slot, evicted });
                }
                Action::Unplaced => planned.unplaced.push(expert),
            }
        }
        planned
    }
}
