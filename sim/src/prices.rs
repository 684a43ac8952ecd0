//! The prices of one phase and window over one link, from its counts and, if it has one, its
//! timeline.

use hotset_cost_models::{Disk, Link};
use hotset_traces::Shape;
use serde::Serialize;

use crate::host_memory::disk_reads;
use crate::timeline::Splits;
use crate::{Bucket, Spent};

/// Prices of a whole phase and window, in picoseconds. Without contention
/// `serial >= timeline >= perfect` and `serial >= prefetch_hidden >= perfect`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Prices {
    /// Compute, every transfer and the host's work, one after another; each transfer alone.
    pub serial: u128,
    /// The timeline, if there is one.
    pub timeline: Option<u128>,
    /// Compute, demand and host, and what prefetch exceeds compute by.
    pub prefetch_hidden: u128,
    /// The longest of compute, of all transfers behind each other, and of the host's work.
    pub perfect: u128,
    /// What the link works, its transfers behind each other.
    pub link_work: u128,
    /// Where the timeline's time went.
    pub spent: Option<Spent>,
}

impl Prices {
    /// Prices counts; `compute` is that of all their tokens, in picoseconds, and gives way to the
    /// timeline's.
    #[must_use]
    pub fn of(
        link: &Link,
        shape: &Shape,
        bucket: &Bucket,
        compute: u128,
        spent: Option<Spent>,
    ) -> Self {
        let sum = |copies: &[u64], of: &dyn Fn(u64) -> u64| -> u128 {
            let layers = copies.iter().zip(shape.layers());
            layers.map(|(&n, layer)| u128::from(n) * u128::from(of(layer.expert_bytes))).sum()
        };
        let alone = |bytes| link.demand_ps(bytes, 1);
        let queued = |bytes| link.queued_ps(bytes);
        let low = |of: &dyn Fn(u64) -> u64| {
            sum(&bucket.low_precision, &|bytes| of(bucket.low_bytes(bytes)))
        };
        let demand = sum(&bucket.demand_fetches, &alone) + low(&alone);
        let prefetch = sum(&bucket.prefetches, &alone);
        let link_work =
            sum(&bucket.demand_fetches, &queued) + sum(&bucket.prefetches, &queued) + low(&queued);
        let compute = spent.map_or(compute, |spent| u128::from(spent.compute));
        let host = spent.map_or(0, |spent| u128::from(spent.host_work));
        Self {
            serial: compute + demand + prefetch + host,
            timeline: spent.map(|spent| u128::from(spent.wall())),
            prefetch_hidden: compute + demand + host + prefetch.saturating_sub(compute),
            perfect: compute.max(link_work).max(host),
            link_work,
            spent,
        }
    }

    /// With what host memory did not hold read from disk.
    #[must_use]
    pub fn over_disk(self, disk: Option<&Disk>, shape: &Shape, bucket: &Bucket) -> Self {
        let Some(disk) = disk else { return self };
        let sum = |of: &dyn Fn(u64) -> u64| -> u128 {
            disk_reads(&bucket.tiers, shape).map(|(n, bytes)| n * u128::from(of(bytes))).sum()
        };
        let (alone, work) = (sum(&|bytes| disk.read_ps(bytes)), sum(&|b| disk.queued_ps(b)));
        Self {
            serial: self.serial + alone,
            prefetch_hidden: self.prefetch_hidden + alone,
            perfect: self.perfect.max(work),
            ..self
        }
    }

    /// Where the time of a token of `tokens` went.
    #[must_use]
    pub fn breakdown(&self, tokens: u64) -> Option<Breakdown> {
        let spent = self.spent?;
        let ms = |ps: u128| ps as f64 / 1e9 / tokens as f64;
        let part = |ps: u64| ms(u128::from(ps));
        let wall = u128::from(spent.wall());
        let saved = self.serial as f64 - wall as f64;
        Some(Breakdown {
            compute_ms: part(spent.compute),
            slowed_ms: part(spent.slowed),
            exposed_demand_ms: part(spent.demand),
            exposed_prefetch_ms: part(spent.prefetch),
            exposed_host_ms: part(spent.host),
            exposed_disk_ms: (spent.disk > 0).then(|| part(spent.disk)),
            drained_ms: part(spent.drained),
            idle_link_ms: ms(wall.saturating_sub(self.link_work)),
            overlap_saves_ms: saved / 1e9 / tokens as f64,
            late_prefetches_per_token: spent.late as f64 / tokens as f64,
        })
    }
}

/// Events with misses by how these are split between link and host, in ms a token: each from its
/// routing to the end of its kernel, with the residents that it found.
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
pub struct SplitPrice {
    /// As the rule splits them.
    pub rule_ms: f64,
    /// As ends first: the best number of copies of each event.
    pub best_ms: f64,
    /// rule / best: 1 is the optimum; absent without misses.
    pub rule_over_best: Option<f64>,
    /// The choice of who takes link and host to be as fast beside each other as alone.
    pub uncontended_ms: f64,
    /// All fetched.
    pub fetch_all_ms: f64,
    /// All by the host.
    pub host_all_ms: f64,
}

impl SplitPrice {
    /// `None` where nothing was judged.
    pub(crate) fn of(splits: &Splits, tokens: u64) -> Option<Self> {
        let ms = |ps: u64| ps as f64 / 1e9 / tokens as f64;
        (*splits != Splits::default()).then(|| Self {
            rule_ms: ms(splits.rule),
            best_ms: ms(splits.best),
            rule_over_best: (splits.best > 0).then(|| splits.rule as f64 / splits.best as f64),
            uncontended_ms: ms(splits.uncontended),
            fetch_all_ms: ms(splits.fetch_all),
            host_all_ms: ms(splits.host_all),
        })
    }
}

/// Where a token's time goes, in ms: the first seven add up to the timeline.
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
pub struct Breakdown {
    /// Kernels, as long as they take alone.
    pub compute_ms: f64,
    /// What kernels took longer because copies ran beside them.
    pub slowed_ms: f64,
    /// Waiting for missing experts, at most what their copies take on an idle link.
    pub exposed_demand_ms: f64,
    /// Waiting that prefetch caused: late copies, and demands queued behind them.
    pub exposed_prefetch_ms: f64,
    /// Waiting for the host's cores.
    pub exposed_host_ms: f64,
    /// Waiting for the disk; absent where there was none.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub exposed_disk_ms: Option<f64>,
    /// Copies still in flight where the phase or the window ended.
    pub drained_ms: f64,
    /// Time in which the link had nothing to do.
    pub idle_link_ms: f64,
    /// Serial minus timeline: negative where contention makes overlap cost more than it hides.
    pub overlap_saves_ms: f64,
    /// Prefetched experts that were asked for before they had arrived.
    pub late_prefetches_per_token: f64,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn prices_by_hand() {
        // A link of 10 ps a copy, 12 with its hand-off; 3 demands and 2 prefetches.
        let mut link = Link::affine("l", 10, 0);
        link.submission.handoff_ps = 2;
        let shape = Shape::uniform(2, 4, 1).unwrap().with_expert_bytes(1);
        let bucket = Bucket {
            tokens: 4,
            demand_fetches: vec![1, 2],
            prefetches: vec![0, 2],
            ..Bucket::default()
        };
        let at = |compute| Prices::of(&link, &shape, &bucket, compute, None);
        let prices = at(20);
        assert_eq!((prices.serial, prices.prefetch_hidden, prices.perfect), (80, 60, 50));
        assert_eq!((at(100).prefetch_hidden, at(100).perfect), (136, 100));
        let spent =
            Spent { compute: 20, slowed: 1, demand: 30, prefetch: 4, late: 2, ..Spent::default() };
        let prices = Prices::of(&link, &shape, &bucket, 0, Some(spent));
        assert_eq!((prices.timeline, prices.serial), (Some(55), 80));
        let breakdown = prices.breakdown(4).unwrap();
        assert_eq!(breakdown.idle_link_ms, 5.0 / 4e9);
        assert_eq!(
            (breakdown.overlap_saves_ms, breakdown.late_prefetches_per_token),
            (25.0 / 4e9, 0.5)
        );
    }
}
