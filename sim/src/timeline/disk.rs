//! The disk's side of a timeline: when each expert is in host memory.
//!
//! Reads run in the order asked: one on an idle disk takes its latency and its transfer, one behind
//! others what it adds to them.

use hotset_cost_models::Disk;
use hotset_traces::Shape;

/// Reads that are queued, and when each expert's last read is done.
#[derive(Debug)]
pub(super) struct DiskQueue {
    /// When the last read is done.
    pub free: u64,
    /// Whether a copy may run beside the read of its own expert.
    pub through: bool,
    /// Dense key of each layer's expert 0, and what a read takes alone and behind others.
    layers: Vec<(u32, u64, u64)>,
    done: Vec<u64>,
}

impl DiskQueue {
    pub fn new(shape: &Shape, disk: &Disk) -> Self {
        let layer = |(index, layer): (usize, &hotset_traces::LayerShape)| {
            let bytes = layer.expert_bytes;
            (shape.key_base(index), disk.read_ps(bytes), disk.queued_ps(bytes))
        };
        Self {
            free: 0,
            through: disk.through,
            layers: shape.layers().iter().enumerate().map(layer).collect(),
            done: vec![0; shape.total_experts() as usize],
        }
    }

    /// Reads an expert, asked for now; returns when it is done.
    pub fn read(&mut self, layer: usize, expert: u32, now: u64) -> u64 {
        let (base, alone, queued) = self.layers[layer];
        let behind = self.free.saturating_add(queued);
        self.free = behind.max(now.saturating_add(alone));
        self.done[(base + expert) as usize] = self.free;
        self.free
    }

    /// When an expert's last read is, or was, done.
    pub fn arrival(&self, layer: usize, expert: u32) -> u64 {
        self.done[(self.layers[layer].0 + expert) as usize]
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn reads_pipeline_behind_each_other_and_pay_the_latency_on_an_idle_disk() {
        // 1 MiB at 100 ps, 30 of latency.
        let shape = Shape::uniform(1, 4, 1).unwrap().with_expert_bytes(1 << 20);
        let mut disk = Disk::of_rate("d", 1e9, 0.0);
        (disk.latency_ps, disk.transfers[0].ps) = (30, 100);
        let mut queue = DiskQueue::new(&shape, &disk);
        assert_eq!([0, 1].map(|expert| queue.read(0, expert, 5)), [135, 235]);
        // Asked for before the disk is idle for as long as its latency: that is hidden in part.
        assert_eq!(queue.read(0, 2, 210), 340);
        assert_eq!([0, 1, 2, 3].map(|expert| queue.arrival(0, expert)), [135, 235, 340, 0]);
    }
}
