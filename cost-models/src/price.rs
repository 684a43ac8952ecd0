//! The prices of a token at a given hit rate: serial, with prefetch hidden, perfect.
//!
//! They bound what a machine can do and need no simulation; `hotset link price` prints them. Serial adds everything up; perfect overlaps everything;
//! prefetch-hidden is what the articles call perfect overlap: only what prefetch exceeds compute by is seen.

use crate::link::Link;
use crate::picos::Picos;

/// Where the time of a token, a step or a run goes, each part alone on its resource.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct TokenTimes {
    /// Compute, with every expert resident.
    pub compute: Picos,
    /// Transfers that were asked for when they were needed.
    pub demand: Picos,
    /// Transfers that a predictor asked for.
    pub prefetch: Picos,
}

impl TokenTimes {
    /// Compute and every transfer, one after another: the upper bound.
    pub fn serial(&self) -> Picos {
        self.compute + self.demand + self.prefetch
    }

    /// Compute, demand, and what prefetch exceeds compute by.
    pub fn prefetch_hidden(&self) -> Picos {
        self.compute + self.demand + self.prefetch_exposed()
    }

    /// The longer of compute and all transfers: the lower bound.
    pub fn perfect(&self) -> Picos {
        self.compute.max(self.demand + self.prefetch)
    }

    /// What of the predicted transfers compute does not hide.
    pub fn prefetch_exposed(&self) -> Picos {
        self.prefetch.saturating_sub(self.compute)
    }

    /// Share of the serial time that is spent moving weights, 0 to 1; 0 for no time at all.
    pub fn moving_share(&self) -> f64 {
        let serial = self.serial();
        if serial == Picos::ZERO {
            return 0.0;
        }
        (self.demand + self.prefetch).0 as f64 / serial.0 as f64
    }
}

/// Experts copied for each expert that a token needs.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Copies {
    /// Those that miss, and are copied when they are needed: 0 to 1.
    pub misses: f64,
    /// These and those that a predictor asks for: over 1 where it asks for more than is needed.
    pub all: f64,
}

impl Copies {
    /// Misses alone, nothing predicted.
    pub fn of_misses(misses: f64) -> Self {
        Self { misses, all: misses }
    }
}

/// What one token asks of a model's MoE layers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TokenShape {
    /// MoE layers.
    pub layers: u32,
    /// Experts that each layer needs.
    pub top_k: u32,
    /// Bytes of one expert.
    pub expert_bytes: u64,
}

impl TokenShape {
    /// Experts needed a token.
    pub fn experts(&self) -> u64 {
        u64::from(self.layers) * u64::from(self.top_k)
    }

    /// Expected time to fetch what misses, transfers one after another, in milliseconds. `miss_rate` is 0 to 1, or more
    /// for a policy that moves more than it needs.
    pub fn moved_ms(&self, miss_rate: f64, link: &Link) -> f64 {
        self.experts() as f64 * miss_rate * link.transfer(self.expert_bytes).as_ms_f64()
    }

    /// [`TokenShape::moved_ms`] as a span, rounded to the nearest picosecond.
    pub fn moved(&self, miss_rate: f64, link: &Link) -> Picos {
        Picos::from_ms_f64(self.moved_ms(miss_rate, link))
    }

    /// What one percentage point of hit rate is worth, in milliseconds a token.
    pub fn point_value_ms(&self, link: &Link) -> f64 {
        self.moved_ms(0.01, link)
    }

    /// The times of a token with every expert resident for `compute`, of which `copies` move over `link`.
    ///
    /// ```
    /// use hotset_cost_models::price::{Copies, TokenShape};
    /// use hotset_cost_models::{MIB, Picos, find_link};
    ///
    /// // 40 layers of top-8 experts of 1.6875 MiB over PCIe: at 76.4% hits, 8.36 ms a token go into copies.
    /// let token = TokenShape { layers: 40, top_k: 8, expert_bytes: 27 * MIB / 16 };
    /// let link = find_link("zgx-pcie").unwrap();
    /// let times = token.times(&Copies::of_misses(1.0 - 0.764), &link, Picos::from_ms_f64(3.53));
    /// assert_eq!(format!("{:.2}", times.demand.as_ms_f64()), "8.36");
    /// assert_eq!(times.serial(), times.compute + times.demand);
    /// ```
    pub fn times(&self, copies: &Copies, link: &Link, compute: Picos) -> TokenTimes {
        let demand = self.moved(copies.misses, link);
        let prefetch = self.moved(copies.all, link).saturating_sub(demand);
        TokenTimes { compute, demand, prefetch }
    }

    /// GiB a token when every expert is streamed.
    pub fn streamed_gib(&self) -> f64 {
        self.experts() as f64 * self.expert_bytes as f64 / f64::from(1 << 30)
    }
}

/// Share of a layer's misses that the host's cores should serve, 0 to 1, so that they finish with the copies.
///
/// Both rates in the same unit, either alone or under contention: `host / (host + link)`.
pub fn host_share(host_rate: f64, link_rate: f64) -> f64 {
    host_rate / (host_rate + link_rate)
}

/// FreeToken's rule: serve misses on the host too only when its cores read over twice as fast as the link.
pub fn hybrid_pays(host_rate: f64, link_rate: f64) -> bool {
    host_rate > 2.0 * link_rate
}

#[cfg(test)]
mod tests {
    use super::*;

    fn times(compute: u64, demand: u64, prefetch: u64) -> TokenTimes {
        TokenTimes { compute: Picos(compute), demand: Picos(demand), prefetch: Picos(prefetch) }
    }

    #[test]
    fn three_prices_by_hand() {
        let prices = |t: TokenTimes| (t.serial().0, t.prefetch_hidden().0, t.perfect().0);
        assert_eq!(prices(times(10, 3, 4)), (17, 13, 10), "prefetch fits beside compute");
        assert_eq!(prices(times(10, 3, 25)), (38, 28, 28), "15 of prefetch stick out");
        assert_eq!(prices(times(0, 3, 4)), (7, 7, 7), "nothing to hide behind");
    }

    #[test]
    fn share_of_no_time_is_zero() {
        assert_eq!(TokenTimes::default().moving_share(), 0.0);
        assert_eq!(times(3, 1, 0).moving_share(), 0.25);
    }

    #[test]
    fn expected_transfers_by_hand() {
        // 2 layers x 3 experts, a quarter missing, 1 MiB at 2 ms a MiB: 1.5 * 2 ms.
        let token = TokenShape { layers: 2, top_k: 3, expert_bytes: 1 << 20 };
        let link = Link::affine("l", 0, 2_000_000_000);
        assert_eq!(token.moved_ms(0.25, &link), 3.0);
        assert_eq!(token.moved(0.25, &link), Picos(3_000_000_000));
        assert_eq!(token.streamed_gib(), 6.0 / 1024.0);
    }

    #[test]
    fn prices_are_ordered() {
        for compute in [0, 5, 50] {
            for demand in [0, 7] {
                for prefetch in [0, 4, 60] {
                    let t = times(compute, demand, prefetch);
                    assert!(t.serial() >= t.prefetch_hidden());
                    assert!(t.prefetch_hidden() >= t.perfect());
                }
            }
        }
    }

    #[test]
    fn host_rule() {
        assert!(hybrid_pays(170.1, 57.0));
        assert!(!hybrid_pays(110.0, 57.0));
        assert_eq!(host_share(3.0, 1.0), 0.75);
    }
}
