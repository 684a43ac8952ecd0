//! Taking back prefetches whose copies have not begun.
//!
//! Copies run in order, so those behind a copy that is taken back arrive earlier by what it would
//! have taken.

use std::collections::VecDeque;
use std::ops::Range;

use super::copies::{Copies, Ticket};

/// The prefetches that are queued, oldest first.
#[derive(Debug, Default)]
pub(super) struct Cancellable {
    queue: VecDeque<Queued>,
}

#[derive(Debug, Clone, Copy)]
struct Queued {
    key: u32,
    /// How much later it arrives than what is queued before it, and when.
    took: u64,
    at: u64,
}

impl Cancellable {
    /// A prefetch of `key` is queued behind what keeps the link busy until `before`.
    pub fn push(&mut self, key: u32, before: u64, ticket: Ticket) {
        self.queue.push_back(Queued { key, took: ticket.at.saturating_sub(before), at: ticket.at });
    }

    /// Of the copies for `keys` that have not begun, takes back those that `unwanted` names; the
    /// others will be waited for and are no longer kept track of. What is queued behind moves up.
    /// Returns how many were taken back.
    pub fn cancel(
        &mut self,
        copies: &mut Copies,
        tickets: &mut [Ticket],
        keys: Range<u32>,
        mut unwanted: impl FnMut(u32) -> bool,
    ) -> u32 {
        while let Some(front) = self.queue.front()
            && !copies.not_begun(front.at, front.took)
        {
            self.queue.pop_front();
        }
        let (mut saved, mut cancelled) = (0u64, 0);
        self.queue.retain_mut(|queued| {
            let asked = keys.contains(&queued.key);
            if asked && unwanted(queued.key) {
                saved += queued.took;
                cancelled += 1;
                return false;
            }
            // The expert may have left and been queued again since: then its ticket is another's.
            let ticket = &mut tickets[queued.key as usize];
            if ticket.at == queued.at {
                ticket.at -= saved;
            }
            queued.at -= saved;
            !asked
        });
        copies.take_back(saved);
        cancelled
    }
}
