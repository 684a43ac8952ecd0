//! [`ExpertCache`]: changing its slots, and checking its invariants.

use super::entry::{Entry, PENDING, PREFETCHED};
use super::room::PoolRoom;
use super::slots::check_slots;
use super::{CacheError, ExpertCache, Slots};
use crate::{Key, Policy};

/// What a [`resize`](ExpertCache::resize) did to the residents, for the engine to follow.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Resized {
    /// Dense keys of the experts that left.
    pub evicted: Vec<Key>,
    /// Experts whose slot went away while others are free. Copy them within GPU memory before the
    /// old slots are unmapped.
    pub moved: Vec<MovedExpert>,
}

/// An expert that a change of slots gives another slot.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct MovedExpert {
    /// The expert.
    pub key: Key,
    /// The slot that goes away.
    pub from: u32,
    /// The slot to copy it to.
    pub to: u32,
}

impl<P: Policy> ExpertCache<P> {
    /// Gives or takes slots while the cache is in use. Growing adds free slots behind the others.
    /// Shrinking lets the policy evict until the rest fits, then moves residents out of the slots
    /// that go away.
    ///
    /// # Errors
    /// The scope differs, the number of slots is not possible, or (when shrinking) an open demand
    /// or a copy in flight needs a slot of the pool.
    pub fn resize(&mut self, slots: &Slots) -> Result<Resized, CacheError> {
        let experts: Vec<u32> = self.bases.windows(2).map(|pair| pair[1] - pair[0]).collect();
        let capacities = match (slots, self.global) {
            (Slots::Global(slots), true) => vec![*slots],
            (Slots::Layer(each), false) => each.clone(),
            _ => return Err(CacheError::ScopeChanged),
        };
        check_slots(slots, &experts)?;
        for (index, &capacity) in capacities.iter().enumerate() {
            if capacity < self.pools[index].capacity {
                self.check_unused(index, 0..self.pools[index].capacity)?;
            }
        }
        let mut resized = Resized::default();
        for (index, &capacity) in capacities.iter().enumerate() {
            self.resize_pool(index, capacity, &mut resized);
        }
        Ok(resized)
    }

    /// Takes back slots of a pool whose contents the engine has overwritten (a prefill that
    /// borrowed them as buffers): whoever was in them is no longer resident, and the slots are
    /// free. Returns the dense keys of those experts, ascending. Pool 0 in global scope, else the
    /// layer.
    ///
    /// Slots that the pool does not have are passed over.
    ///
    /// # Errors
    /// An open demand or a copy in flight needs one of the slots.
    ///
    /// # Panics
    /// If there is no such pool.
    pub fn invalidate(
        &mut self,
        pool: usize,
        slots: std::ops::Range<u32>,
    ) -> Result<Vec<Key>, CacheError> {
        assert!(pool < self.pools.len(), "pool {pool} of {}", self.pools.len());
        self.check_unused(pool, slots.clone())?;
        let base = self.pool_base(pool);
        let mut dropped = Vec::new();
        for key in self.pool_keys(pool) {
            let entry = &mut self.entries[key as usize];
            if entry.is_resident() && slots.contains(&entry.slot()) {
                self.pools[pool].free.push(entry.slot());
                self.pools[pool].policy.remove(key - base);
                entry.word = Entry::EMPTY.word;
                dropped.push(key);
            }
        }
        Ok(dropped)
    }

    /// Takes back the slot of a prefetched expert that nobody has asked for and whose copy the
    /// engine has taken back: it is no longer resident, and its slot is free. Returns whether that
    /// was so; `false` for an expert that is absent, or was demanded since, and nothing changes
    /// then. The copy's completion must not be reported any more (see
    /// [`complete`](Self::complete)).
    ///
    /// # Panics
    /// If `layer` or `expert` is out of range; nothing has changed then.
    pub fn discard(&mut self, layer: usize, expert: u32) -> bool {
        let key = self.key(layer, expert);
        let entry = self.entries[key];
        let unused = entry.is_resident() && entry.word & PREFETCHED != 0;
        if unused {
            self.vacate(layer, key as Key);
        }
        unused
    }

    /// Takes an expert out whose copy is complete: another tier has it from now on. Its slot is
    /// free, and its policy forgets it. Returns whether it was there. Nothing asks whether an open
    /// demand needs it.
    ///
    /// # Panics
    /// If `layer` or `expert` is out of range; nothing has changed then.
    pub fn take(&mut self, layer: usize, expert: u32) -> bool {
        let key = self.key(layer, expert);
        let entry = self.entries[key];
        let here = entry.is_resident() && !entry.is_pending();
        if here {
            self.vacate(layer, key as Key);
        }
        here
    }

    /// Offers an expert that another tier gives up, by its dense key: it comes in as if it had been
    /// asked for, unless nobody that no open demand needs may leave for it. Returns whether it came
    /// in; `false` for one that is there.
    ///
    /// # Panics
    /// If no expert has this key.
    pub fn offer(&mut self, key: Key) -> bool {
        let (layer, _) = self.expert_of(key);
        if self.entries[key as usize].is_resident() {
            return false;
        }
        // Whoever an event before this one asked for may leave.
        self.begin_event();
        let index = self.pool_of(layer);
        let (base, floor) = (self.pool_base(index), self.floor());
        let keys = self.pool_keys(index);
        self.dropped.clear();
        let pool = &mut self.pools[index];
        let entries = &mut self.entries[keys.start as usize..keys.end as usize];
        let mut room = PoolRoom::new(entries, base, floor, &mut pool.free, &mut self.dropped);
        let admitted = pool.policy.admit(key - base, &mut room);
        let slot = if admitted { room.take_slot() } else { None };
        if let Some(slot) = slot {
            self.entries[key as usize].word = slot;
        }
        slot.is_some()
    }

    fn vacate(&mut self, layer: usize, key: Key) {
        let entry = &mut self.entries[key as usize];
        let slot = entry.slot();
        entry.word = Entry::EMPTY.word;
        let pool = self.pool_of(layer);
        let base = self.pool_base(pool);
        self.pools[pool].free.push(slot);
        self.pools[pool].policy.remove(key - base);
    }

    /// Checks every invariant of the cache and its policies: each resident has a slot of its own
    /// below the capacity, the other slots are free, and the policies agree about who is in.
    ///
    /// # Errors
    /// Says which invariant is broken.
    pub fn validate(&self) -> Result<(), String> {
        for (index, pool) in self.pools.iter().enumerate() {
            let base = self.pool_base(index);
            pool.policy.validate().map_err(|broken| format!("pool {index}: {broken}"))?;
            let mut owners = vec![0u32; pool.capacity as usize];
            for key in self.pool_keys(index) {
                let entry = self.entries[key as usize];
                if entry.is_resident() != pool.policy.contains(key - base) {
                    return Err(format!("pool {index}: cache and policy disagree about {key}"));
                }
                if entry.is_resident() {
                    match owners.get_mut(entry.slot() as usize) {
                        Some(owner) => *owner += 1,
                        None => return Err(format!("{key} is in slot {}", entry.slot())),
                    }
                }
            }
            for &slot in &pool.free {
                match owners.get_mut(slot as usize) {
                    Some(owner) => *owner += 1,
                    None => return Err(format!("pool {index}: free slot {slot} does not exist")),
                }
            }
            if let Some(slot) = owners.iter().position(|&owners| owners != 1) {
                return Err(format!("pool {index}: slot {slot} has {} owners", owners[slot]));
            }
        }
        Ok(())
    }

    fn resize_pool(&mut self, index: usize, capacity: u32, resized: &mut Resized) {
        let base = self.pool_base(index);
        let keys = self.pool_keys(index);
        let floor = self.floor().saturating_add(1);
        let pool = &mut self.pools[index];
        while pool.policy.len() > capacity {
            let entries = &mut self.entries[keys.start as usize..keys.end as usize];
            let mut dropped = Vec::new();
            let mut room = PoolRoom::new(entries, base, floor, &mut pool.free, &mut dropped);
            if !pool.policy.evict_one(&mut room) {
                break;
            }
            resized.evicted.push(room.evicted);
            resized.evicted.append(&mut dropped);
        }
        pool.policy.set_capacity(capacity);
        pool.capacity = capacity;
        let mut used = vec![false; capacity as usize];
        for key in keys.clone() {
            let entry = self.entries[key as usize];
            if entry.is_resident()
                && let Some(used) = used.get_mut(entry.slot() as usize)
            {
                *used = true;
            }
        }
        let pool = &mut self.pools[index];
        pool.free.clear();
        pool.free.extend((0..capacity).rev().filter(|&slot| !used[slot as usize]));
        for key in keys {
            let entry = &mut self.entries[key as usize];
            if entry.is_resident() && entry.slot() >= capacity {
                let old = entry.slot();
                if let Some(new) = pool.free.pop() {
                    entry.word = entry.word - old + new;
                    resized.moved.push(MovedExpert { key, from: old, to: new });
                }
            }
        }
    }

    /// Refuses if an open demand needs, or a copy is in flight into, one of the slots.
    fn check_unused(&self, pool: usize, slots: std::ops::Range<u32>) -> Result<(), CacheError> {
        let floor = self.open.first().map_or(u32::MAX, |&(event, _)| event);
        for key in self.pool_keys(pool) {
            let entry = self.entries[key as usize];
            if entry.is_resident()
                && slots.contains(&entry.slot())
                && (entry.word & PENDING != 0 || entry.stamp >= floor)
            {
                return Err(CacheError::SlotInUse { slot: entry.slot() });
            }
        }
        Ok(())
    }

    fn pool_base(&self, pool: usize) -> Key {
        if self.global { 0 } else { self.bases[pool] }
    }

    fn pool_keys(&self, pool: usize) -> std::ops::Range<Key> {
        if self.global {
            0..self.bases[self.bases.len() - 1]
        } else {
            self.bases[pool]..self.bases[pool + 1]
        }
    }
}
