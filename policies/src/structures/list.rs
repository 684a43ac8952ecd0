//! Index-linked circular lists in one slab: the working part of the list-based policies.
//!
//! A slab holds `keys` nodes and `lists` sentinels; each key is in at most one list. Front is
//! where keys enter, back is where they leave.

use crate::policy::Key;
use crate::structures::memory::array;

/// Marks a node that is in no list.
const ABSENT: u32 = u32::MAX;

#[derive(Debug, Clone, Copy)]
struct Node {
    prev: u32,
    next: u32,
}

/// Doubly linked lists over the dense keys of a pool. Pushing, unlinking and moving are O(1).
#[derive(Debug, Clone)]
pub struct Links {
    nodes: Vec<Node>,
    keys: u32,
}

/// Identifies one of a slab's lists: the index of its sentinel.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct List(u32);

impl Links {
    /// `lists` empty lists over keys `0..keys`.
    #[must_use]
    pub fn new(keys: u32, lists: u32) -> Self {
        let mut nodes = vec![Node { prev: ABSENT, next: ABSENT }; (keys + lists) as usize];
        for sentinel in keys..keys + lists {
            nodes[sentinel as usize] = Node { prev: sentinel, next: sentinel };
        }
        Self { nodes, keys }
    }

    /// Bytes that `lists` lists over so many keys allocate.
    pub(crate) fn memory(keys: u32, lists: u32) -> u64 {
        array::<Node>(u64::from(keys) + u64::from(lists))
    }

    /// The list with number `index`.
    #[must_use]
    #[inline(always)]
    pub fn list(&self, index: u32) -> List {
        debug_assert!(self.keys + index < self.nodes.len() as u32);
        List(self.keys + index)
    }

    /// Whether `key` is in any list.
    #[must_use]
    #[inline(always)]
    pub fn contains(&self, key: Key) -> bool {
        self.nodes[key as usize].prev != ABSENT
    }

    /// Puts an absent key at the front of `list`.
    #[inline(always)]
    pub fn push_front(&mut self, list: List, key: Key) {
        let nodes = &mut self.nodes[..];
        let first = nodes[list.0 as usize].next;
        nodes[key as usize] = Node { prev: list.0, next: first };
        nodes[first as usize].prev = key;
        nodes[list.0 as usize].next = key;
    }

    /// Takes a key out of the list that it is in.
    #[inline(always)]
    pub fn unlink(&mut self, key: Key) {
        let nodes = &mut self.nodes[..];
        let Node { prev, next } = nodes[key as usize];
        nodes[prev as usize].next = next;
        nodes[next as usize].prev = prev;
        nodes[key as usize].prev = ABSENT;
    }

    /// Moves a key to the front of `list`, from whichever list it is in.
    #[inline(always)]
    pub fn move_to_front(&mut self, list: List, key: Key) {
        let nodes = &mut self.nodes[..];
        let first = nodes[list.0 as usize].next;
        if first == key {
            return;
        }
        // The key is not in front, so taking it out leaves the front where it is.
        let Node { prev, next } = nodes[key as usize];
        nodes[prev as usize].next = next;
        nodes[next as usize].prev = prev;
        nodes[key as usize] = Node { prev: list.0, next: first };
        nodes[first as usize].prev = key;
        nodes[list.0 as usize].next = key;
    }

    /// The key at the front (entered last).
    #[must_use]
    #[inline(always)]
    pub fn front(&self, list: List) -> Option<Key> {
        self.key(self.nodes[list.0 as usize].next)
    }

    /// The key at the back (the next to leave).
    #[must_use]
    #[inline(always)]
    pub fn back(&self, list: List) -> Option<Key> {
        self.key(self.nodes[list.0 as usize].prev)
    }

    /// The neighbour of `key` towards the front.
    #[must_use]
    #[inline(always)]
    pub fn toward_front(&self, key: Key) -> Option<Key> {
        self.key(self.nodes[key as usize].prev)
    }

    /// The neighbour of `key` towards the back.
    #[must_use]
    #[inline(always)]
    pub fn toward_back(&self, key: Key) -> Option<Key> {
        self.key(self.nodes[key as usize].next)
    }

    /// The first key from the back for which `wanted` holds.
    #[must_use]
    #[inline(always)]
    pub fn find_from_back(&self, list: List, wanted: impl Fn(Key) -> bool) -> Option<Key> {
        let mut place = self.nodes[list.0 as usize].prev;
        while place < self.keys {
            if wanted(place) {
                return Some(place);
            }
            place = self.nodes[place as usize].prev;
        }
        None
    }

    /// The list's keys from front to back.
    pub fn iter(&self, list: List) -> impl Iterator<Item = Key> + '_ {
        std::iter::successors(self.front(list), |&key| self.toward_back(key))
    }

    /// Checks that forward and backward links agree and returns the list's length.
    ///
    /// # Errors
    /// Names the key whose links disagree.
    pub fn validate(&self, list: List) -> Result<u32, String> {
        let mut place = list.0;
        for length in 0..=self.keys {
            let next = self.nodes[place as usize].next;
            let back = self.nodes.get(next as usize).map(|node| node.prev);
            if back != Some(place) {
                return Err(format!("links disagree between {place} and {next}"));
            }
            if next == list.0 {
                return Ok(length);
            }
            place = next;
        }
        Err("the list does not close".to_owned())
    }

    #[inline(always)]
    fn key(&self, place: u32) -> Option<Key> {
        (place < self.keys).then_some(place)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn moves_between_and_within_lists() {
        let mut links = Links::new(5, 2);
        let (a, b) = (links.list(0), links.list(1));
        for key in 0..4 {
            links.push_front(a, key);
        }
        links.move_to_front(a, 3); // already in front
        links.move_to_front(a, 2); // next to the front
        links.move_to_front(b, 0);
        assert_eq!(links.iter(a).collect::<Vec<_>>(), [2, 3, 1]);
        assert_eq!(links.iter(b).collect::<Vec<_>>(), [0]);
        assert_eq!((links.front(a), links.back(a)), (Some(2), Some(1)));
        links.unlink(3);
        links.push_front(a, 4);
        assert_eq!(links.iter(a).collect::<Vec<_>>(), [4, 2, 1]);
        assert!(!links.contains(3));
        assert_eq!((links.validate(a), links.validate(b)), (Ok(3), Ok(1)));
        assert_eq!(links.find_from_back(a, |key| key > 1), Some(2));
        assert_eq!(links.find_from_back(a, |key| key > 4), None);
    }
}
