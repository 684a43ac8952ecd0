//! What a link and its host take for one expert: what rules that split misses go by.

use hotset_cost_models::Link;
use hotset_policies::miss::Rates;

use super::model::TimeModel;

impl TimeModel {
    /// The rates of experts of `bytes`: copies queued behind each other, and the host's cores at the
    /// threads that serve, both as contention slows them where that was measured and is on.
    #[must_use]
    pub fn rates(&self, link: &Link, bytes: u64) -> Rates {
        let beside = self.host_beside(link);
        let rate = self.host_kernel(link).ps_per_mib;
        let host_ps = u128::from(rate) * u128::from(bytes) / (1 << 20);
        let measured = !self.contention || !link.contention.host.is_empty();
        Rates {
            copy_ps: link.queued_ps(bytes),
            host_ps: (rate > 0).then(|| u64::try_from(host_ps).unwrap_or(u64::MAX).max(1)),
            beside: measured.then_some((beside.copy_permille, beside.host_permille)),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rates_are_those_of_the_threads_that_serve() {
        let link = hotset_cost_models::find_link("h200-pcie").unwrap();
        let mib = 1 << 20;
        let rates = TimeModel::default().rates(&link, mib);
        assert_eq!((rates.host_ps, rates.beside), (Some(8_339_466), Some((1609, 1197))));
        let sixteen = TimeModel { host_threads: Some(16), ..TimeModel::default() };
        assert_eq!(sixteen.rates(&link, mib).host_ps, Some(11_756_314));
        let alone = TimeModel { contention: false, ..TimeModel::default() };
        assert_eq!(alone.rates(&link, mib).beside, Some((1000, 1000)));
        // Knowing nothing of each other, the host would be left less.
        assert!(rates.fetch_q16() < alone.rates(&link, mib).fetch_q16());
        // FreeToken's reproduction measured both alone only.
        let alone = hotset_cost_models::find_link("freetoken-pcie").unwrap();
        let rates = TimeModel::default().rates(&alone, mib);
        assert_eq!(rates.beside, None);
        assert_eq!((f64::from(rates.fetch_q16()) / 65.536).round(), 335.0);
        let none = hotset_cost_models::find_link("h200-nvlink").unwrap();
        assert_eq!(TimeModel::default().rates(&none, mib).host_ps, None);
    }
}
