//! The slots in an engine's own numbering: any numbers, as long as they are used consistently.

use std::collections::HashMap;

use hotset_policies::Key;

/// Who holds which slot, as far as the engine said so. A pool's slots are numbered by themselves
/// (or through all pools: a pool never sees another's).
#[derive(Debug, Default)]
pub(crate) struct SlotBook {
    slot_of: HashMap<Key, u32>,
    holder: HashMap<(u32, u32), Key>,
}

/// Why a slot cannot be right.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum SlotFault {
    /// The expert is in another slot.
    Elsewhere(u32),
    /// Another expert is in the slot.
    Taken(Key),
}

impl SlotBook {
    pub fn slot_of(&self, key: Key) -> Option<u32> {
        self.slot_of.get(&key).copied()
    }

    /// `key` left its slot.
    pub fn left(&mut self, pool: u32, key: Key) {
        if let Some(slot) = self.slot_of.remove(&key) {
            self.holder.remove(&(pool, slot));
        }
    }

    /// `key` is in `slot`.
    pub fn holds(&mut self, pool: u32, slot: u32, key: Key) -> Result<(), SlotFault> {
        if let Some(&known) = self.slot_of.get(&key) {
            return if known == slot { Ok(()) } else { Err(SlotFault::Elsewhere(known)) };
        }
        if let Some(&other) = self.holder.get(&(pool, slot)) {
            return Err(SlotFault::Taken(other));
        }
        self.slot_of.insert(key, slot);
        self.holder.insert((pool, slot), key);
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_slot_an_expert_and_one_expert_a_slot() {
        let mut book = SlotBook::default();
        assert_eq!(book.holds(0, 900, 1), Ok(()));
        assert_eq!(book.holds(0, 900, 1), Ok(()));
        assert_eq!(book.holds(0, 901, 1), Err(SlotFault::Elsewhere(900)));
        assert_eq!(book.holds(0, 900, 2), Err(SlotFault::Taken(1)));
        assert_eq!(book.holds(1, 900, 12), Ok(()));
        book.left(0, 1);
        assert_eq!(book.holds(0, 900, 2), Ok(()));
        assert_eq!(book.slot_of(1), None);
    }
}
