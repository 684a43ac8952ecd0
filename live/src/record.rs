//! What the loop decided, as a log that `hotset conform` reads.

use hotset_conformance::{Decision, Evicted, Expert, Fetched, Held};
use hotset_policies::{Action, Key};
use hotset_sim::DeviceEvent;

/// A decision an event; steps are numbered as they ran.
#[derive(Debug, Clone, Default)]
pub struct Log {
    /// Dense key of each layer's expert 0, to say who was evicted.
    bases: Vec<Key>,
    /// The decisions.
    pub decisions: Vec<Decision>,
}

impl Log {
    /// A log over layers whose expert 0 has these dense keys.
    #[must_use]
    pub fn new(bases: Vec<Key>) -> Self {
        Self { bases, decisions: Vec::new() }
    }

    fn expert(&self, key: Key) -> Expert {
        let layer = self.bases.partition_point(|&base| base <= key).saturating_sub(1);
        Expert { layer: layer as u32, expert: key - self.bases[layer] }
    }

    pub(crate) fn event(&mut self, step: usize, event: &DeviceEvent<'_>) {
        let mut decision = Decision::of(event.layer as u32);
        decision.step = Some(step as u64);
        for placement in event.placements {
            let expert = placement.expert;
            match placement.action {
                Action::Hit | Action::PrefetchHit | Action::Pending => {
                    decision.hits.push(Held { expert, slot: Some(placement.slot) });
                }
                Action::Fetch => {
                    let evicted = match placement.evicted() {
                        Some(key) => Evicted::Expert(self.expert(key)),
                        None => Evicted::Nobody,
                    };
                    let slot = Some(placement.slot);
                    decision.fetches.push(Fetched { expert, slot, evicted });
                }
                Action::Unplaced => decision.unplaced.push(expert),
            }
        }
        decision.unplaced.extend_from_slice(event.on_host);
        decision.dropped = Some(event.dropped.iter().map(|&key| self.expert(key)).collect());
        self.decisions.push(decision);
    }
}
