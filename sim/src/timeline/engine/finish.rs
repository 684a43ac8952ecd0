//! [`Timeline`]: what the running layer waits for, and its kernels.

use super::{Running, Timeline};

impl Timeline {
    /// The layer's experts run once they are there.
    #[inline(always)]
    pub fn finish_layer(&mut self) {
        if self.running.beside || self.clock.host_is_busy() {
            return self.finish_beside();
        }
        let left = self.await_copies(self.running.distinct, 0);
        self.run_experts(left);
    }

    /// A layer of which a part is none of the accelerator's, or comes from disk.
    fn finish_beside(&mut self) {
        let Running { layer, host, deferred, dropped, host_further, read, host_read, .. } =
            self.running;
        let mut host_done = 0;
        let size = self.costs.size(layer);
        if host > 0 || self.clock.host_is_busy() {
            let work = |experts: u32, further: u32| {
                let more = size.host_more.saturating_mul(u64::from(further));
                size.host.saturating_mul(u64::from(experts)).saturating_add(more)
            };
            let (now, later) = (work(host - deferred, host_further), work(deferred, 0));
            host_done = self.clock.serve_on_host(layer, now, later);
        }
        if host_read > self.clock.now {
            // The one that comes last is computed when it is there.
            host_done = host_done.max(host_read.saturating_add(size.host));
            self.clock.keep_host_busy(host_done);
        }
        let left = self.await_copies(self.running.distinct - host - dropped, read);
        self.clock.wait_for_disk(layer, host_read);
        self.clock.wait_for_host(layer, host_done);
        self.run_experts(left);
    }

    /// Waits for what the layer copies, which is read from disk at `read`. Returns how many of its
    /// experts on the accelerator have still to run.
    #[inline(always)]
    fn await_copies(&mut self, on_gpu: u32, read: u64) -> u32 {
        let Running { layer, distinct, waiting, alone, .. } = self.running;
        if waiting == 0 {
            return on_gpu;
        }
        let mut left = on_gpu;
        let ready = on_gpu - waiting;
        let now = self.clock.now;
        if self.hits_first && ready > 0 && self.clock.copies.arrived(now) > now {
            let experts = self.costs.experts(layer, self.step.tokens, ready, distinct);
            self.clock.kernel(layer, experts, "experts (hits)");
            left = waiting;
        }
        self.clock.wait_for_disk(layer, read);
        self.clock.wait_for_copies(layer, alone);
        left
    }

    #[inline(always)]
    fn run_experts(&mut self, left: u32) {
        let Running { layer, distinct, .. } = self.running;
        let experts = self.costs.experts(layer, self.step.tokens, left, distinct);
        self.clock.kernel(layer, experts, "experts");
    }
}
