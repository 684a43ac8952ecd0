//! The check itself: one event after another, in memory that does not grow with the log.

use hotset_policies::{AdmissionSpec, AnyPolicy, ExpertCache, ExpertId, Key, PolicySpec, Slots};

use crate::compare::{Comparison, Finding, Mark, in_rank_order};
use crate::compared::Compared;
use crate::decision::{Decision, Evicted, expert_of, reference};
use crate::divergence::{Divergence, EVENT_RULE};
use crate::error::ConformError;
use crate::shape::ModelShape;
use crate::slot_book::SlotBook;

/// A policy's own cache beside an engine's decisions.
///
/// The engine is expected to complete each event's copies and release its experts before the next
/// event, and to prefetch nothing.
pub struct Conformance {
    cache: ExpertCache<AnyPolicy>,
    definition: String,
    admission: AdmissionSpec,
    /// Dense key of each layer's expert 0, and the number of experts behind the last.
    bases: Vec<Key>,
    global: bool,
    /// For each expert of a layer, the last event that it was part of.
    marks: Vec<Mark>,
    slots: SlotBook,
    /// Whether the engine ever named a slot.
    numbered: bool,
    steps: u64,
    step_opened: bool,
    engine_step: Option<u64>,
    compared: Compared,
}

impl Conformance {
    /// Nothing is resident and no event was checked.
    ///
    /// # Errors
    /// A policy that needs the future or training, or an impossible cache.
    pub fn new(
        policy: &PolicySpec,
        model: &ModelShape<'_>,
        slots: &Slots,
    ) -> Result<Self, ConformError> {
        let not_online = || ConformError::NotOnline { policy: policy.info().name };
        if !policy.is_online() {
            return Err(not_online());
        }
        let mut pools = Vec::new();
        for pool in slots.pools(model.experts, model.top_k)? {
            pools.push(policy.build(&pool).ok_or_else(not_online)?);
        }
        let mut pools = pools.into_iter();
        let cache = ExpertCache::new(model.experts, model.top_k, slots, |_, pool| {
            pools.next().or_else(|| policy.build(pool)).unwrap_or_else(|| {
                unreachable!("one policy was built for each pool of the same slots")
            })
        })?;
        let mut bases = vec![0];
        for &experts in model.experts {
            bases.push(bases[bases.len() - 1] + experts);
        }
        let mut definition = policy.info().definition.to_owned();
        if policy.admission() != AdmissionSpec::Always {
            let admission = policy.admission();
            let rule = admission.info().definition;
            definition = format!("{definition} Admission {admission}: {rule}");
        }
        let widest = model.experts.iter().copied().max().unwrap_or(0);
        Ok(Self {
            cache: cache.with_ordered_copies(),
            definition,
            admission: policy.admission(),
            bases,
            global: matches!(slots, Slots::Global(_)),
            marks: vec![Mark::default(); widest as usize],
            slots: SlotBook::default(),
            numbered: false,
            steps: 0,
            step_opened: false,
            engine_step: None,
            compared: Compared::default(),
        })
    }

    /// A step over `tokens` tokens begins; its events follow.
    pub fn begin_step(&mut self, tokens: u32) {
        self.cache.begin_step(tokens);
        self.steps += 1;
        self.step_opened = true;
    }

    /// What was compared so far.
    #[must_use]
    pub fn compared(&self) -> Compared {
        self.compared
    }

    /// What the policy does in the next event, in place of an engine; its slots are numbered from
    /// 0 in each pool.
    ///
    /// # Errors
    /// A layer or an expert that the model does not have.
    pub fn decide<E: ExpertId>(
        &mut self,
        layer: usize,
        experts: &[E],
        weights: &[f32],
    ) -> Result<Decision, ConformError> {
        self.check_demand(layer, experts)?;
        let plan = self.cache.demand_weighted(layer, experts, weights);
        let mut decision = reference(&plan, layer as u32, &self.bases);
        decision.step = Some(self.steps.saturating_sub(1));
        self.cache.release(layer);
        self.compared.events += 1;
        Ok(decision)
    }

    /// Checks what an engine did when `layer` asked for `experts`, best rank first.
    ///
    /// # Errors
    /// [`ConformError::Diverged`] if the policy does something else; otherwise the decision is not
    /// about this event, or not about this model.
    pub fn event<E: ExpertId>(
        &mut self,
        layer: usize,
        experts: &[E],
        weights: &[f32],
        decision: &Decision,
    ) -> Result<(), ConformError> {
        self.check_demand(layer, experts)?;
        self.check_ids(decision)?;
        let event = self.compared.events;
        if decision.layer as usize != layer {
            let (given, step) = (decision.layer, self.steps.saturating_sub(1));
            return Err(ConformError::OutOfOrder { given, event, step, expected: layer });
        }
        self.check_step(decision)?;

        let plan = self.cache.demand_weighted(layer, experts, weights);
        for (place, placement) in (0..).zip(plan.placements) {
            self.marks[placement.expert as usize] = Mark { event: event + 1, place };
        }
        let comparison =
            Comparison { plan: &plan, decision, bases: &self.bases, admission: self.admission };
        let numbered = self.numbered
            || decision.hits.iter().any(|held| held.slot.is_some())
            || decision.fetches.iter().any(|fetched| fetched.slot.is_some());
        self.numbered = numbered;
        let finding = comparison
            .actions(&mut self.marks, event + 1)
            .or_else(|| comparison.victims(&mut self.compared))
            .or_else(|| comparison.dropped())
            .or_else(|| {
                let pool = if self.global { 0 } else { layer as u32 };
                if numbered {
                    comparison.slots(&mut self.slots, pool, &mut self.compared)
                } else {
                    None
                }
            });
        if let Some(Finding { what, rule }) = finding {
            let policy = reference(&plan, layer as u32, &self.bases);
            let asked = plan.placements.iter().map(|placement| placement.expert).collect();
            let divergence = Divergence {
                event,
                step: self.steps.saturating_sub(1),
                layer: layer as u32,
                what,
                rule,
                definition: self.definition.clone(),
                events: EVENT_RULE,
                asked: in_rank_order(experts, asked),
                engine: decision.clone(),
                resident_before: self.resident_before(&policy),
                policy,
            };
            return Err(ConformError::Diverged(Box::new(divergence)));
        }
        self.compared.events += 1;
        self.compared.hits += u64::from(plan.hits);
        self.compared.fetches += u64::from(plan.fetches);
        self.compared.unplaced += u64::from(plan.unplaced);
        self.cache.release(layer);
        Ok(())
    }

    fn check_layer(&self, layer: u64) -> Result<u32, ConformError> {
        let layers = self.bases.len() - 1;
        match u32::try_from(layer) {
            Ok(known) if (known as usize) < layers => Ok(known),
            _ => Err(ConformError::UnknownLayer { layer, last: layers - 1 }),
        }
    }

    fn check_expert(&self, layer: u32, expert: u32) -> Result<(), ConformError> {
        let experts = self.bases[layer as usize + 1] - self.bases[layer as usize];
        if expert < experts {
            return Ok(());
        }
        Err(ConformError::UnknownExpert { expert, layer, last: experts - 1 })
    }

    fn check_demand<E: ExpertId>(&self, layer: usize, experts: &[E]) -> Result<(), ConformError> {
        let layer = self.check_layer(layer as u64)?;
        experts.iter().try_for_each(|expert| self.check_expert(layer, expert.index()))
    }

    /// Every layer and expert that the decision names exists.
    fn check_ids(&self, decision: &Decision) -> Result<(), ConformError> {
        let layer = self.check_layer(u64::from(decision.layer))?;
        for held in &decision.hits {
            self.check_expert(layer, held.expert)?;
        }
        for fetched in &decision.fetches {
            self.check_expert(layer, fetched.expert)?;
            if let Evicted::Expert(other) = fetched.evicted {
                self.check_expert(self.check_layer(u64::from(other.layer))?, other.expert)?;
            }
        }
        for &expert in &decision.unplaced {
            self.check_expert(layer, expert)?;
        }
        for other in decision.dropped.iter().flatten() {
            self.check_expert(self.check_layer(u64::from(other.layer))?, other.expert)?;
        }
        Ok(())
    }

    fn check_step(&mut self, decision: &Decision) -> Result<(), ConformError> {
        let Some(given) = decision.step else {
            return Ok(());
        };
        if let Some(before) = self.engine_step {
            let fits = if self.step_opened { given > before } else { given == before };
            if !fits {
                return Err(ConformError::Step { given, before });
            }
        }
        self.engine_step = Some(given);
        self.step_opened = false;
        Ok(())
    }

    /// Who was resident before an event that the cache has already run.
    fn resident_before(&self, event: &Decision) -> Vec<Vec<u32>> {
        let mut by_layer = vec![Vec::new(); self.bases.len() - 1];
        for key in self.cache.residents() {
            let expert = expert_of(&self.bases, key);
            by_layer[expert.layer as usize].push(expert.expert);
        }
        let came = |expert: &u32| event.fetches.iter().any(|fetched| fetched.expert == *expert);
        by_layer[event.layer as usize].retain(|expert| !came(expert));
        let left = event.fetches.iter().filter_map(|fetched| match fetched.evicted {
            Evicted::Expert(expert) => Some(expert),
            _ => None,
        });
        for expert in left.chain(event.dropped.iter().flatten().copied()) {
            by_layer[expert.layer as usize].push(expert.expert);
        }
        for layer in &mut by_layer {
            layer.sort_unstable();
        }
        by_layer
    }
}
