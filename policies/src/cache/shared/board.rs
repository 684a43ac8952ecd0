//! [`Residency`]: what every thread may know of the cache, a word an expert.

use std::sync::Arc;
#[cfg(not(all(test, hotset_loom)))]
use std::sync::atomic::{AtomicU32, AtomicU64, Ordering};

#[cfg(all(test, hotset_loom))]
use loom::sync::atomic::{AtomicU32, AtomicU64, Ordering};

use crate::cache::entry::{ABSENT, Entry, LIMIT, PENDING};
use crate::cache::slots::key_in;
use crate::policy::Key;

/// One fetch of one expert: what a copy thread is given, and gives back when the copy is done.
///
/// A number of 64 bits ([`to_bits`](Self::to_bits)), to be handed through a queue or as the argument
/// of a callback. The fetches of an expert are numbered modulo 2^32: a ticket would have to be that many
/// fetches of the same expert late to be taken for another.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct Ticket {
    key: Key,
    fetch: u32,
}

impl Ticket {
    /// The dense key of the expert.
    #[must_use]
    pub fn key(self) -> Key {
        self.key
    }

    /// The ticket as a number.
    #[must_use]
    pub fn to_bits(self) -> u64 {
        u64::from(self.fetch) << 32 | u64::from(self.key)
    }

    /// The ticket of a number that [`to_bits`](Self::to_bits) gave; any other is some ticket too, at
    /// worst that of another fetch.
    #[must_use]
    pub fn from_bits(bits: u64) -> Self {
        Self { key: bits as u32, fetch: (bits >> 32) as u32 }
    }
}

/// What became of a fetch.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum FetchState {
    /// Its copy was not reported complete.
    InFlight,
    /// Its copy is complete, and the expert is where it was copied to (or where a resize moved it).
    Complete,
    /// The expert has left since: taken back, evicted, or fetched again under another ticket. A copy
    /// that did not begin need not.
    Dropped,
}

/// Who is resident, for any thread: clones are the same. Reads and completions take no lock, wait for
/// nobody and allocate nothing.
///
/// A read says what was so at a moment during the call. A slot stays an expert's as long as a demand
/// that needs it is open: the planner [releases](super::SharedCache::release) a layer after its slots
/// were read.
#[derive(Clone)]
pub struct Residency {
    board: Arc<Board>,
}

struct Board {
    /// Dense key of each layer's expert 0, and the number of experts behind the last.
    bases: Box<[Key]>,
    /// Of each expert: the number of its latest fetch, and below it the slot and whether its copy is
    /// under way, as in an [`Entry`].
    words: Box<[AtomicU64]>,
    completions: OwnLine,
}

/// Alone in its cache line (and the one that processors fetch along with it): the planner looks here
/// at every event.
#[repr(align(128))]
struct OwnLine(AtomicU32);

fn fetch_of(word: u64) -> u32 {
    (word >> 32) as u32
}

fn slot_word(word: u64) -> u32 {
    word as u32
}

impl Residency {
    pub(super) fn new(bases: &[Key], entries: &[Entry]) -> Self {
        let words = entries.iter().map(|entry| AtomicU64::new(entry.published().into()));
        let completions = OwnLine(AtomicU32::new(0));
        let board = Board { bases: bases.into(), words: words.collect(), completions };
        Self { board: Arc::new(board) }
    }

    /// The slot of an expert whose copy is complete: what the copy thread wrote before it
    /// [completed](Self::complete) the fetch can be read.
    ///
    /// # Panics
    /// If `layer` or `expert` is out of range.
    #[must_use]
    pub fn slot_of(&self, layer: usize, expert: u32) -> Option<u32> {
        let word = slot_word(self.word(layer, expert));
        (word & PENDING == 0 && word != ABSENT).then_some(word)
    }

    /// Whether an expert holds a slot, its copy complete or under way.
    ///
    /// # Panics
    /// If `layer` or `expert` is out of range.
    #[must_use]
    pub fn is_resident(&self, layer: usize, expert: u32) -> bool {
        slot_word(self.word(layer, expert)) != ABSENT
    }

    /// The ticket of the fetch that brought an expert in, complete or not; `None` if it holds no slot.
    ///
    /// # Panics
    /// If `layer` or `expert` is out of range.
    #[must_use]
    pub fn ticket_of(&self, layer: usize, expert: u32) -> Option<Ticket> {
        self.ticket(key_in(&self.board.bases, layer, expert) as Key)
    }

    /// What became of a fetch.
    #[must_use]
    pub fn state(&self, ticket: Ticket) -> FetchState {
        match self.board.words.get(ticket.key as usize).map(|word| word.load(Ordering::Acquire)) {
            Some(word) if fetch_of(word) == ticket.fetch && slot_word(word) != ABSENT => {
                if slot_word(word) & PENDING != 0 {
                    FetchState::InFlight
                } else {
                    FetchState::Complete
                }
            }
            _ => FetchState::Dropped,
        }
    }

    /// The copy of this fetch is complete: from now on readers find its expert, and the planner knows
    /// of it in its next call. Returns whether it was under way; `false` for a fetch that was dropped
    /// or is complete already, and nothing changes then.
    pub fn complete(&self, ticket: Ticket) -> bool {
        let Some(word) = self.board.words.get(ticket.key as usize) else { return false };
        let seen = word.load(Ordering::Relaxed);
        if fetch_of(seen) != ticket.fetch || slot_word(seen) & PENDING == 0 {
            return false;
        }
        // While it is under way only its completion and its being dropped change the word: whoever
        // is faster, this one is not needed any more. Released: who finds the slot finds the copy.
        let done = seen & !u64::from(PENDING);
        let completed =
            word.compare_exchange(seen, done, Ordering::Release, Ordering::Relaxed).is_ok();
        if completed {
            // Counted after it is done: a planner that sees the number finds the word.
            self.board.completions.0.fetch_add(1, Ordering::Release);
        }
        completed
    }

    fn word(&self, layer: usize, expert: u32) -> u64 {
        let key = key_in(&self.board.bases, layer, expert);
        self.board.words[key].load(Ordering::Acquire)
    }

    /// The ticket of whoever holds a slot under this key.
    pub(super) fn ticket(&self, key: Key) -> Option<Ticket> {
        let word = self.board.words.get(key as usize)?.load(Ordering::Acquire);
        (slot_word(word) != ABSENT).then_some(Ticket { key, fetch: fetch_of(word) })
    }

    /// Completions so far, modulo 2^32.
    pub(super) fn completions(&self) -> u32 {
        self.board.completions.0.load(Ordering::Acquire)
    }

    pub(super) fn is_pending(&self, key: usize) -> bool {
        slot_word(self.board.words[key].load(Ordering::Acquire)) & PENDING != 0
    }

    /// The planner's: an expert came in, or left whose copy it knows to be complete.
    pub(super) fn publish(&self, key: usize, entry: Entry) {
        let word = &self.board.words[key];
        // Nobody else changes the number.
        let latest = fetch_of(word.load(Ordering::Relaxed));
        let fetch = latest.wrapping_add(u32::from(entry.is_resident()));
        word.store(u64::from(fetch) << 32 | u64::from(entry.published()), Ordering::Release);
    }

    /// The planner's: a fetch that may be under way is dropped. Exchanged, not stored: its completion
    /// has then come before, and is known here, or never comes.
    pub(super) fn publish_dropped(&self, key: usize) {
        let word = &self.board.words[key];
        let fetch = fetch_of(word.load(Ordering::Relaxed));
        word.swap(u64::from(fetch) << 32 | u64::from(ABSENT), Ordering::AcqRel);
    }

    /// The planner's: a complete expert got another slot.
    pub(super) fn publish_move(&self, key: usize, entry: Entry) {
        let word = &self.board.words[key];
        let fetch = fetch_of(word.load(Ordering::Relaxed));
        word.store(u64::from(fetch) << 32 | u64::from(entry.published()), Ordering::Release);
    }

    /// Whether readers are told what the planner's entry says; a copy may be complete that the planner
    /// still has as pending.
    pub(super) fn agrees(&self, key: usize, entry: Entry) -> bool {
        let told = slot_word(self.board.words[key].load(Ordering::Acquire));
        told == entry.published() || (entry.is_pending() && told == entry.published() & LIMIT)
    }
}
