//! The shared cache's answer to an event: a plan, and the ticket of each copy.

use super::board::{Residency, Ticket};
use crate::cache::{Action, Placement, Plan};
use crate::policy::Key;

/// A [`Plan`] with the tickets of its fetches, borrowed from the cache until the next call.
#[derive(Clone, Copy)]
pub struct SharedPlan<'a> {
    /// Where each expert is.
    pub plan: Plan<'a>,
    pub(super) residency: &'a Residency,
    /// Dense key of the layer's expert 0.
    pub(super) base: Key,
}

impl<'a> SharedPlan<'a> {
    /// What to copy, and the ticket to [complete](Residency::complete) when that is done; in the order
    /// of the plan.
    pub fn copies(&self) -> impl Iterator<Item = (&'a Placement, Ticket)> + use<'a> {
        let Self { plan, residency, base } = *self;
        plan.placements
            .iter()
            .filter(|placed| placed.action == Action::Fetch)
            .filter_map(move |placed| Some((placed, residency.ticket(base + placed.expert)?)))
    }

    /// The ticket of the fetch that brought a placement's expert in, whichever plan it was of: of one
    /// that is [`Action::Pending`], the one to wait for. `None` for [`Action::Unplaced`].
    #[must_use]
    pub fn ticket(&self, placed: &Placement) -> Option<Ticket> {
        self.residency.ticket(self.base.checked_add(placed.expert)?)
    }
}
