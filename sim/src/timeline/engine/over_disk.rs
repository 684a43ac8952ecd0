//! What a timeline does where a disk lies under host memory.

use hotset_policies::{Action, Placement, Plan};

use super::Timeline;
use crate::timeline::demand::LayerDemand;

impl Timeline {
    /// Experts that a prefetch brings to host memory alone.
    pub fn read_ahead(&mut self, layer: usize, plan: &Plan<'_>) {
        let fetched = |placement: &&Placement| placement.action == Action::Fetch;
        for placement in plan.placements.iter().filter(fetched) {
            self.clock.read(layer, placement.expert, "ahead");
        }
    }

    /// When a copy of an expert may begin, for the disk's part.
    pub(super) fn ready(&self, layer: usize, expert: u32) -> u64 {
        let Some(disk) = &self.clock.disk else { return 0 };
        let done = disk.arrival(layer, expert);
        let beside = if disk.through { self.costs.size(layer).demand(1) } else { 0 };
        done.saturating_sub(beside)
    }

    /// Reads what host memory does not hold, then queues the copies: those that lie there first, the
    /// others as their reads are done.
    #[inline(never)]
    pub(super) fn demand_over_disk(&mut self, demand: &LayerDemand<'_>) {
        let (layer, tier) = (demand.layer, &demand.tier);
        for &expert in tier.reads {
            self.clock.read(layer, expert, "read");
        }
        for &expert in tier.ahead {
            self.clock.read(layer, expert, "ahead");
        }
        if let Some(disk) = &self.clock.disk {
            let done = tier.computed.iter().map(|&expert| disk.arrival(layer, expert));
            self.running.host_read = done.max().unwrap_or(0);
        }
        if demand.placements.is_empty() {
            self.copy_after_disk(layer, demand.copies, None);
            return;
        }
        let copied =
            |placement: &&Placement| matches!(placement.action, Action::Fetch | Action::Unplaced);
        let mut late = std::mem::take(&mut self.late);
        late.clear();
        for placement in demand.placements.iter().filter(copied) {
            let ready = self.ready(layer, placement.expert);
            if ready > self.clock.now {
                late.push((ready, placement.expert));
            } else {
                self.copy_after_disk(layer, 1, Some((placement.expert, ready)));
            }
        }
        late.sort_unstable();
        for &(ready, expert) in &late {
            self.running.read = ready;
            self.copy_after_disk(layer, 1, Some((expert, ready)));
        }
        self.late = late;
    }

    fn copy_after_disk(&mut self, layer: usize, copies: u32, one: Option<(u32, u64)>) {
        for _ in 0..copies {
            let begin = self.clock.next_copy();
            let (expert, ready) = one.unzip();
            let ready = ready.unwrap_or(0);
            let size = self.costs.size(layer);
            self.running.alone = self.clock.copies.demand_once(size, ready);
            self.clock.record_copy("demand", layer, expert, begin.max(ready));
        }
    }
}
