//! Taking back prefetches whose copies have not begun.
//!
//! Copies run in order, so those behind a copy that is taken back arrive earlier by what it would
//! have taken.

use std::collections::VecDeque;

use super::copies::{Copies, Ticket};

/// The prefetches that are queued, oldest first.
#[derive(Debug, Default)]
pub(super) struct Cancellable {
    queue: VecDeque<Queued>,
}

#[derive(Debug, Clone, Copy)]
struct Queued {
    key: u32,
    /// What it takes of the link, and when it arrives.
    work: u64,
    at: u64,
}

impl Cancellable {
    /// A prefetch of `key` is queued.
    pub fn push(&mut self, key: u32, work: u64, ticket: Ticket) {
        self.queue.push_back(Queued { key, work, at: ticket.at });
    }

    /// Takes back what has not begun and `unwanted` names, and moves the others up. Returns how
    /// many that were.
    pub fn cancel(
        &mut self,
        copies: &mut Copies,
        tickets: &mut [Ticket],
        mut unwanted: impl FnMut(u32) -> bool,
    ) -> u32 {
        while let Some(front) = self.queue.front()
            && !copies.not_begun(front.at, front.work)
        {
            self.queue.pop_front();
        }
        let (mut saved, mut cancelled) = (0u64, 0);
        self.queue.retain_mut(|queued| {
            if unwanted(queued.key) {
                saved += queued.work;
                cancelled += 1;
                return false;
            }
            // The expert may have left and been queued again since: then its ticket is another's.
            let ticket = &mut tickets[queued.key as usize];
            if ticket.at == queued.at {
                ticket.at -= saved;
            }
            queued.at -= saved;
            true
        });
        copies.take_back(saved);
        cancelled
    }
}
