//! What the model drives: the cache, alone or shared.

use std::ops::Range;

use hotset_policies::{
    Action, AnyPolicy, CacheError, ExpertCache, FetchState, Key, Plan, Residency, Resized,
    SharedCache, SharedPlan, Slots, Ticket,
};

/// A placement, taken out of the cache's hands.
#[derive(Clone, Copy)]
pub struct Placed {
    pub expert: u32,
    pub slot: u32,
    pub action: Action,
    pub evicted: Option<Key>,
    /// Of a fetch, where the cache gives tickets.
    pub ticket: Option<Ticket>,
}

/// A plan's parts.
pub struct Answer {
    pub placements: Vec<Placed>,
    pub dropped: Vec<Key>,
}

impl Answer {
    fn of(plan: &Plan<'_>) -> Self {
        let placements = plan
            .placements
            .iter()
            .map(|placed| Placed {
                expert: placed.expert,
                slot: placed.slot,
                action: placed.action,
                evicted: placed.evicted(),
                ticket: None,
            })
            .collect();
        Self { placements, dropped: plan.dropped.to_vec() }
    }

    fn of_shared(shared: &SharedPlan<'_>) -> Self {
        let mut answer = Self::of(&shared.plan);
        for (copied, ticket) in shared.copies() {
            for placed in &mut answer.placements {
                if placed.expert == copied.expert {
                    placed.ticket = Some(ticket);
                }
            }
            assert_eq!(shared.ticket(copied), Some(ticket));
        }
        answer
    }
}

pub trait Driven {
    fn over(cache: ExpertCache<AnyPolicy>) -> Self;
    fn demand(&mut self, layer: usize, experts: &[u32], weights: &[f32]) -> Answer;
    fn prefetch(&mut self, layer: usize, experts: &[u32]) -> Answer;
    fn complete(&mut self, layer: usize, expert: u32) -> bool;
    fn complete_ticket(&mut self, ticket: Ticket) -> bool;
    fn state(&self, ticket: Ticket) -> FetchState;
    fn release(&mut self, layer: usize);
    fn discard(&mut self, layer: usize, expert: u32) -> bool;
    fn slot_of(&self, layer: usize, expert: u32) -> Option<u32>;
    fn resize(&mut self, slots: &Slots) -> Result<Resized, CacheError>;
    fn invalidate(&mut self, pool: usize, slots: Range<u32>) -> Result<Vec<Key>, CacheError>;
    fn residents(&self) -> Vec<Key>;
    fn expert_of(&self, key: Key) -> (usize, u32);
    fn validate(&self) -> Result<(), String>;
}

impl Driven for ExpertCache<AnyPolicy> {
    fn over(cache: ExpertCache<AnyPolicy>) -> Self {
        cache
    }
    fn demand(&mut self, layer: usize, experts: &[u32], weights: &[f32]) -> Answer {
        Answer::of(&self.demand_weighted(layer, experts, weights))
    }
    fn prefetch(&mut self, layer: usize, experts: &[u32]) -> Answer {
        Answer::of(&self.prefetch(layer, experts))
    }
    fn complete(&mut self, layer: usize, expert: u32) -> bool {
        self.complete(layer, expert)
    }
    fn complete_ticket(&mut self, _: Ticket) -> bool {
        unreachable!("it gives none")
    }
    fn state(&self, _: Ticket) -> FetchState {
        unreachable!("it gives none")
    }
    fn release(&mut self, layer: usize) {
        self.release(layer);
    }
    fn discard(&mut self, layer: usize, expert: u32) -> bool {
        self.discard(layer, expert)
    }
    fn slot_of(&self, layer: usize, expert: u32) -> Option<u32> {
        self.slot_of(layer, expert)
    }
    fn resize(&mut self, slots: &Slots) -> Result<Resized, CacheError> {
        self.resize(slots)
    }
    fn invalidate(&mut self, pool: usize, slots: Range<u32>) -> Result<Vec<Key>, CacheError> {
        self.invalidate(pool, slots)
    }
    fn residents(&self) -> Vec<Key> {
        self.residents().collect()
    }
    fn expert_of(&self, key: Key) -> (usize, u32) {
        self.expert_of(key)
    }
    fn validate(&self) -> Result<(), String> {
        self.validate()
    }
}

/// The shared cache, read and completed from outside.
pub struct Shared {
    cache: SharedCache<AnyPolicy>,
    residency: Residency,
}

impl Driven for Shared {
    fn over(cache: ExpertCache<AnyPolicy>) -> Self {
        let cache = SharedCache::new(cache);
        Self { residency: cache.residency(), cache }
    }
    fn demand(&mut self, layer: usize, experts: &[u32], weights: &[f32]) -> Answer {
        Answer::of_shared(&self.cache.demand_weighted(layer, experts, weights))
    }
    fn prefetch(&mut self, layer: usize, experts: &[u32]) -> Answer {
        Answer::of_shared(&self.cache.prefetch(layer, experts))
    }
    fn complete(&mut self, layer: usize, expert: u32) -> bool {
        let ticket = self.residency.ticket_of(layer, expert);
        ticket.is_some_and(|ticket| self.complete_ticket(ticket))
    }
    fn complete_ticket(&mut self, ticket: Ticket) -> bool {
        self.residency.complete(Ticket::from_bits(ticket.to_bits()))
    }
    fn state(&self, ticket: Ticket) -> FetchState {
        self.residency.state(ticket)
    }
    fn release(&mut self, layer: usize) {
        self.cache.release(layer);
    }
    fn discard(&mut self, layer: usize, expert: u32) -> bool {
        self.cache.discard(layer, expert)
    }
    fn slot_of(&self, layer: usize, expert: u32) -> Option<u32> {
        self.residency.slot_of(layer, expert)
    }
    fn resize(&mut self, slots: &Slots) -> Result<Resized, CacheError> {
        self.cache.resize(slots)
    }
    fn invalidate(&mut self, pool: usize, slots: Range<u32>) -> Result<Vec<Key>, CacheError> {
        self.cache.invalidate(pool, slots)
    }
    fn residents(&self) -> Vec<Key> {
        let residents: Vec<Key> = self.cache.cache().residents().collect();
        let experts = residents.iter().map(|&key| self.expert_of(key));
        assert!(
            experts.into_iter().all(|(layer, expert)| self.residency.is_resident(layer, expert))
        );
        residents
    }
    fn expert_of(&self, key: Key) -> (usize, u32) {
        self.cache.cache().expert_of(key)
    }
    fn validate(&self) -> Result<(), String> {
        self.cache.validate()
    }
}
