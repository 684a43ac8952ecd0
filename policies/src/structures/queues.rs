//! Several lists over the keys of a pool, with their lengths and which list each key is in: what
//! the policies with segments and ghosts are made of.

use crate::policy::Key;
use crate::structures::list::{Links, List};
use crate::structures::memory::{array, sum};

/// `N` lists in one slab; a key is in at most one of them. They are numbered `0..N`.
#[derive(Debug, Clone)]
pub struct Queues<const N: usize> {
    links: Links,
    of: Vec<u8>,
    len: [u32; N],
    keys: u32,
}

impl<const N: usize> Queues<N> {
    /// The number that [`of`](Self::of) gives for a key that is in no list.
    pub const NOWHERE: u8 = N as u8;

    /// Empty lists over keys `0..keys`.
    #[must_use]
    pub fn new(keys: u32) -> Self {
        let of = vec![Self::NOWHERE; keys as usize];
        Self { links: Links::new(keys, N as u32), of, len: [0; N], keys }
    }

    /// Bytes that the lists of so many keys allocate.
    pub(crate) fn memory(keys: u32) -> u64 {
        sum([Links::memory(keys, N as u32), array::<u8>(keys)])
    }

    #[inline(always)]
    fn list(&self, list: u8) -> List {
        self.links.list(u32::from(list))
    }

    /// The list that `key` is in.
    #[must_use]
    #[inline(always)]
    pub fn of(&self, key: Key) -> u8 {
        self.of[key as usize]
    }

    /// Length of a list.
    #[must_use]
    #[inline(always)]
    pub fn len(&self, list: u8) -> u32 {
        self.len[list as usize]
    }

    /// Puts a key that is in no list at the front of one.
    #[inline(always)]
    pub fn push_front(&mut self, list: u8, key: Key) {
        self.links.push_front(self.list(list), key);
        self.of[key as usize] = list;
        self.len[list as usize] += 1;
    }

    /// Moves a key to the front of the list that it is in.
    #[inline(always)]
    pub fn refresh(&mut self, list: u8, key: Key) {
        self.links.move_to_front(self.list(list), key);
    }

    /// Moves a key from list `from` to the front of list `to`.
    #[inline(always)]
    pub fn transfer(&mut self, from: u8, to: u8, key: Key) {
        self.links.move_to_front(self.list(to), key);
        self.of[key as usize] = to;
        self.len[from as usize] -= 1;
        self.len[to as usize] += 1;
    }

    /// Takes a key out of the list that it is in.
    #[inline(always)]
    pub fn unlink(&mut self, key: Key) {
        let list = std::mem::replace(&mut self.of[key as usize], Self::NOWHERE);
        self.links.unlink(key);
        self.len[list as usize] -= 1;
    }

    /// The key at the back of a list.
    #[must_use]
    #[inline(always)]
    pub fn back(&self, list: u8) -> Option<Key> {
        self.links.back(self.list(list))
    }

    /// Takes the key at the back out of a list that is longer than `longest`.
    #[inline(always)]
    pub fn trim_back(&mut self, list: u8, longest: u32) {
        if self.len(list) > longest
            && let Some(key) = self.back(list)
        {
            self.unlink(key);
        }
    }

    /// The first key from the back of a list for which `wanted` holds.
    #[must_use]
    #[inline(always)]
    pub fn find_from_back(&self, list: u8, wanted: impl Fn(Key) -> bool) -> Option<Key> {
        self.links.find_from_back(self.list(list), wanted)
    }

    /// The list's keys from front to back.
    pub fn iter(&self, list: u8) -> impl Iterator<Item = Key> + '_ {
        self.links.iter(self.list(list))
    }

    /// Checks links, lengths and which list each key says it is in.
    ///
    /// # Errors
    /// Says which of them is broken.
    pub fn validate(&self) -> Result<(), String> {
        for list in 0..N as u8 {
            let length = self.links.validate(self.list(list))?;
            if length != self.len(list) || self.iter(list).any(|key| self.of(key) != list) {
                return Err(format!("list {list} of {length} keys, counted {}", self.len(list)));
            }
        }
        let placed = (0..self.keys).filter(|&key| self.of(key) != Self::NOWHERE).count();
        if placed != self.len.iter().sum::<u32>() as usize {
            return Err(format!("{placed} keys say that they are in a list"));
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn keys_are_in_one_list_and_lengths_follow() {
        let mut queues = Queues::<2>::new(4);
        for key in 0..3 {
            queues.push_front(0, key);
        }
        queues.transfer(0, 1, 1);
        queues.refresh(0, 0);
        assert_eq!(queues.iter(0).collect::<Vec<_>>(), [0, 2]);
        assert_eq!((queues.len(0), queues.len(1), queues.of(1), queues.of(3)), (2, 1, 1, 2));
        assert_eq!(queues.validate(), Ok(()));
        queues.trim_back(0, 2); // not longer than that
        queues.trim_back(0, 1);
        assert_eq!((queues.back(0), queues.of(2), queues.validate()), (Some(0), 2, Ok(())));
    }
}
