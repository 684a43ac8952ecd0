//! What a timeline's copies brought, or will bring, ahead of its demand.

use hotset_policies::{Action, Placement};
use hotset_traces::Shape;

use super::cancel::Cancellable;
use super::copies::{Copies, Ticket};

/// The copy that last brought each expert ahead, and the queue of those that may be taken back.
#[derive(Debug)]
pub(super) struct CopiedAhead {
    /// Dense key of each layer's expert 0, and one behind the last.
    bases: Vec<u32>,
    tickets: Vec<Ticket>,
    /// Prefetches that may be taken back, if they are kept track of.
    queue: Option<Box<Cancellable>>,
}

impl CopiedAhead {
    pub fn new(shape: &Shape) -> Self {
        let layers = shape.layers().len();
        let ends = (0..layers).map(|layer| shape.key_base(layer)).chain([shape.total_experts()]);
        Self {
            bases: ends.collect(),
            tickets: vec![Ticket::default(); shape.total_experts() as usize],
            queue: None,
        }
    }

    /// Keeps track of the prefetches that are queued, so that they can be taken back.
    pub fn keep_track(&mut self) {
        self.queue = Some(Box::default());
    }

    /// An expert's copy is queued behind what keeps the link busy until `busy`.
    #[inline(always)]
    pub fn push(&mut self, layer: usize, expert: u32, busy: u64, ticket: Ticket) {
        let key = self.bases[layer] + expert;
        self.tickets[key as usize] = ticket;
        if let Some(queue) = &mut self.queue {
            queue.push(key, busy, ticket);
        }
    }

    /// Takes back the copies for `layer` that have not begun and that are `unwanted`. Returns how
    /// many they were.
    pub fn cancel(
        &mut self,
        layer: usize,
        copies: &mut Copies,
        mut unwanted: impl FnMut(u32) -> bool,
    ) -> u32 {
        let Self { bases, tickets, queue } = self;
        let Some(queue) = queue else { return 0 };
        let base = bases[layer];
        queue.cancel(copies, tickets, base..bases[layer + 1], |key| unwanted(key - base))
    }

    /// The event waits for those of its experts that were brought ahead, and for what is still to
    /// be written where it writes. Returns how many had not arrived.
    pub fn need(&self, layer: usize, placements: &[Placement], copies: &mut Copies) -> u32 {
        let mut late = 0;
        for placement in placements {
            match placement.action {
                Action::PrefetchHit => {
                    let key = self.bases[layer] + placement.expert;
                    late += u32::from(copies.need(self.tickets[key as usize]));
                }
                Action::Fetch => {
                    if let Some(key) = placement.evicted() {
                        copies.follow(self.tickets[key as usize]);
                    }
                }
                _ => {}
            }
        }
        late
    }
}
