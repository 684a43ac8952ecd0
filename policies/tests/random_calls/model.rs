//! The cache's books kept a second time, plainly: who is in which slot, who is in flight, and who
//! may not leave.

use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::ops::Range;

use hotset_policies::{
    Action, ExpertCache, FetchState, Key, MovedExpert, PolicySpec, Resized, Slots, Ticket,
};

use super::driven::{Answer, Driven, Placed};

/// Layers of 6, 3 and 5 experts.
pub const EXPERTS: [u32; 3] = [6, 3, 5];
const BASES: [Key; 3] = [0, 6, 9];
const KEYS: usize = 14;

#[derive(Debug, Clone, Copy)]
struct Held {
    slot: u32,
    pending: bool,
    /// Brought in by a prefetch and not demanded since.
    unasked: bool,
    /// Of the fetch that brought it in, where the cache gives tickets.
    ticket: Option<Ticket>,
}

/// Tickets that are remembered, to be completed late.
const TICKETS: usize = 40;

pub struct Model<C> {
    cache: C,
    global: bool,
    capacities: Vec<u32>,
    ordered: bool,
    protects: bool,
    held: BTreeMap<Key, Held>,
    /// The event that last needed each key.
    needed: [u64; KEYS],
    now: u64,
    open: Vec<(u64, usize)>,
    tickets: VecDeque<Ticket>,
}

impl<C: Driven> Model<C> {
    /// An empty cache; `options` 0 to 3: with or without ordered copies and protected prefetches.
    pub fn new(policy: &PolicySpec, slots: Slots, options: u32) -> Self {
        let build = |_: usize, pool: &_| policy.build(pool).unwrap();
        let mut cache = ExpertCache::new(&EXPERTS, &[2, 2, 2], &slots, build).unwrap();
        let (ordered, protects) = (options & 1 == 1, options & 2 == 0);
        if ordered {
            cache = cache.with_ordered_copies();
        }
        if !protects {
            cache = cache.with_unprotected_prefetch();
        }
        cache.begin_step(1);
        let (global, capacities) = match slots {
            Slots::Global(slots) => (true, vec![slots]),
            Slots::Layer(each) => (false, each),
        };
        Self {
            cache: C::over(cache),
            global,
            capacities,
            ordered,
            protects,
            held: BTreeMap::new(),
            needed: [0; KEYS],
            now: 0,
            open: Vec::new(),
            tickets: VecDeque::new(),
        }
    }

    pub fn cache_mut(&mut self) -> &mut C {
        &mut self.cache
    }

    /// The cache's own invariants, and that its residents are the model's.
    pub fn check(&self) -> Result<(), String> {
        self.cache.validate()?;
        let (found, expected): (Vec<Key>, Vec<Key>) =
            (self.cache.residents(), self.held.keys().copied().collect());
        if found != expected {
            return Err(format!("{found:?} are resident, not {expected:?}"));
        }
        for (&key, held) in &self.held {
            let (layer, expert) = self.cache.expert_of(key);
            let slot = (!held.pending).then_some(held.slot);
            if self.cache.slot_of(layer, expert) != slot {
                return Err(format!("key {key} is not in slot {slot:?}"));
            }
        }
        Ok(())
    }

    fn pool(&self, key: Key) -> usize {
        if self.global { 0 } else { BASES.partition_point(|&base| base <= key) - 1 }
    }

    fn floor(&self) -> u64 {
        self.open.first().map_or(self.now, |&(event, _)| event)
    }

    /// `key` left for an expert of `pool`: it was there, complete, and no event needed it.
    fn leave(&mut self, key: Key, pool: usize) -> Held {
        let held = self.held.remove(&key).expect("who leaves was resident");
        assert!(!held.pending, "{key} left in flight");
        assert!(self.needed[key as usize] < self.floor(), "{key} left while it was needed");
        assert_eq!(self.pool(key), pool);
        held
    }

    fn place(&mut self, key: Key, slot: u32, unasked: bool, ticket: Option<Ticket>) {
        let pool = self.pool(key);
        assert!(slot < self.capacities[pool]);
        let owner =
            self.held.iter().find(|(other, held)| self.pool(**other) == pool && held.slot == slot);
        assert!(owner.is_none(), "slot {slot} is taken by {owner:?}");
        if let Some(ticket) = ticket {
            assert!(!self.tickets.contains(&ticket), "{ticket:?} was given before");
            assert_eq!(ticket.key(), key);
            self.tickets.push_front(ticket);
            self.tickets.truncate(TICKETS);
        }
        self.held.insert(key, Held { slot, pending: !self.ordered, unasked, ticket });
    }

    /// Follows a plan's evictions and fetches.
    fn follow(&mut self, layer: usize, answer: &Answer, prefetch: bool) {
        let pool = if self.global { 0 } else { layer };
        // A key may have come in and left again within one unprotected prefetch.
        let mut dropped: BTreeSet<Key> = answer.dropped.iter().copied().collect();
        for &Placed { expert, slot, action, evicted, ticket } in &answer.placements {
            let key = BASES[layer] + expert;
            if let Some(left) = evicted {
                let of = self.leave(left, pool);
                assert!(action != Action::Fetch || of.slot == slot, "the first victim's slot");
            }
            let gone: Vec<Key> =
                dropped.iter().copied().filter(|key| self.held.contains_key(key)).collect();
            if action == Action::Fetch {
                for left in gone {
                    if self.held.get(&left).is_some_and(|held| held.slot == slot) {
                        self.leave(left, pool);
                        dropped.remove(&left);
                    }
                }
                self.place(key, slot, prefetch, ticket);
            }
        }
        for left in dropped {
            self.leave(left, pool);
        }
    }

    pub fn demand(&mut self, layer: usize, experts: &[u32], weighted: bool) {
        let distinct: BTreeSet<u32> = experts.iter().copied().collect();
        let weights = vec![0.5; if weighted { experts.len() } else { 0 }];
        let answer = self.cache.demand(layer, experts, &weights);
        self.open_demand(layer);
        for expert in &distinct {
            self.needed[(BASES[layer] + expert) as usize] = self.now;
        }
        let pool = if self.global { 0 } else { layer };
        let overflow = distinct.len() > self.capacities[pool] as usize;
        let placed: BTreeSet<u32> = answer.placements.iter().map(|placed| placed.expert).collect();
        assert_eq!((&placed, placed.len()), (&distinct, answer.placements.len()));
        for &Placed { expert, slot, action, .. } in &answer.placements {
            let expected = match self.held.get_mut(&(BASES[layer] + expert)) {
                Some(held) => {
                    assert_eq!(held.slot, slot);
                    let unasked = std::mem::replace(&mut held.unasked, false);
                    match (held.pending, unasked) {
                        (true, _) => Some(Action::Pending),
                        (false, true) => Some(Action::PrefetchHit),
                        (false, false) => Some(Action::Hit),
                    }
                }
                None if overflow => Some(Action::Unplaced),
                None => None,
            };
            let fits = match expected {
                Some(expected) => action == expected,
                None => matches!(action, Action::Fetch | Action::Unplaced),
            };
            assert!(fits, "{action:?} of {expert}, expected {expected:?}");
        }
        self.follow(layer, &answer, false);
    }

    fn open_demand(&mut self, layer: usize) {
        self.now += 1;
        self.release_in_books(layer);
        self.open.push((self.now, layer));
    }

    /// A demand that `call` makes and sees panic: it counts as open, and the experts before the
    /// wrong one are kept.
    pub fn refused_demand(&mut self, layer: usize, experts: &[u32], call: impl FnOnce(&mut C)) {
        call(&mut self.cache);
        // Whether the demand was opened before the panic depends on the policy's observing and on
        // the number of experts; a release makes both the same.
        self.cache.release(layer);
        self.release_in_books(layer);
        let known = experts.iter().take_while(|&&expert| expert < EXPERTS[layer]);
        self.now += 1;
        for expert in known {
            self.needed[(BASES[layer] + expert) as usize] = self.now;
        }
    }

    pub fn prefetch(&mut self, layer: usize, experts: &[u32]) {
        let answer = self.cache.prefetch(layer, experts);
        self.now += 1;
        let distinct: BTreeSet<u32> = experts.iter().copied().collect();
        assert_eq!(answer.placements.len(), distinct.len());
        if self.protects {
            self.follow_protected(layer, &answer);
        } else {
            self.follow(layer, &answer, true);
        }
    }

    /// Each prediction is kept from its turn on.
    fn follow_protected(&mut self, layer: usize, answer: &Answer) {
        let pool = if self.global { 0 } else { layer };
        for placement in &answer.placements {
            self.needed[(BASES[layer] + placement.expert) as usize] = self.now;
            let part = Answer { placements: vec![*placement], dropped: Vec::new() };
            self.follow(layer, &part, true);
        }
        for &left in &answer.dropped {
            self.leave(left, pool);
        }
    }

    pub fn complete(&mut self, layer: usize, expert: u32) {
        let held = self.held.get_mut(&(BASES[layer] + expert));
        let was_pending = held.is_some_and(|held| std::mem::replace(&mut held.pending, false));
        assert_eq!(self.cache.complete(layer, expert), was_pending);
    }

    /// Reports a copy by a ticket of one of the latest fetches, dropped or complete as it may be.
    pub fn complete_ticket(&mut self, which: usize) {
        let Some(&ticket) = self.tickets.get(which) else { return };
        let mut held = self.held.get_mut(&ticket.key()).filter(|held| held.ticket == Some(ticket));
        let state = match &held {
            None => FetchState::Dropped,
            Some(held) if held.pending => FetchState::InFlight,
            Some(_) => FetchState::Complete,
        };
        assert_eq!(self.cache.state(ticket), state);
        let completed = self.cache.complete_ticket(ticket);
        assert_eq!(completed, state == FetchState::InFlight);
        if completed && let Some(held) = &mut held {
            held.pending = false;
        }
    }

    pub fn release(&mut self, layer: usize) {
        self.cache.release(layer);
        self.release_in_books(layer);
    }

    fn release_in_books(&mut self, layer: usize) {
        self.open.retain(|&(_, open)| open != layer);
    }

    pub fn discard(&mut self, layer: usize, expert: u32) {
        let key = BASES[layer] + expert;
        let unasked = self.held.get(&key).is_some_and(|held| held.unasked);
        if unasked {
            self.held.remove(&key);
        }
        assert_eq!(self.cache.discard(layer, expert), unasked);
    }

    pub fn slot_of(&mut self, layer: usize, expert: u32) {
        let held = self.held.get(&(BASES[layer] + expert));
        let slot = held.filter(|held| !held.pending).map(|held| held.slot);
        assert_eq!(self.cache.slot_of(layer, expert), slot);
    }

    pub fn resize(&mut self, sizes: &[u32; 3]) {
        let slots = if self.global {
            Slots::Global(sizes.iter().sum())
        } else {
            Slots::Layer(sizes.to_vec())
        };
        let Ok(Resized { evicted, moved }) = self.cache.resize(&slots) else { return };
        for key in evicted {
            self.held.remove(&key).expect("who leaves was resident");
        }
        for MovedExpert { key, from: old, to: new } in moved {
            let held = self.held.get_mut(&key).expect("who moves is resident");
            assert_eq!(std::mem::replace(&mut held.slot, new), old);
        }
        self.capacities = if self.global { vec![sizes.iter().sum()] } else { sizes.to_vec() };
    }

    pub fn invalidate(&mut self, pool: usize, slots: Range<u32>) {
        let pool = if self.global { 0 } else { pool };
        let Ok(gone) = self.cache.invalidate(pool, slots.clone()) else { return };
        let expected: Vec<Key> = self
            .held
            .iter()
            .filter(|(key, held)| self.pool(**key) == pool && slots.contains(&held.slot))
            .map(|(key, _)| *key)
            .collect();
        assert_eq!(gone, expected);
        self.held.retain(|key, _| !gone.contains(key));
    }
}
