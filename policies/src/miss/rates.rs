//! What link and host take for one expert, and what follows for the split of misses.

use super::split::q16;

/// What one expert takes, in picoseconds.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Rates {
    /// Copied behind others that keep the link busy; 0: the link takes no time.
    pub copy_ps: u64,
    /// Computed by the host's cores where it lies; `None`: they cannot.
    pub host_ps: Option<u64>,
    /// Copies beside the cores and the cores beside copies, in per mille of their time alone;
    /// `None`: not measured.
    pub beside: Option<(u32, u32)>,
}

impl Rates {
    /// The share of misses to fetch so that link and host finish together, in 1/65536: from the
    /// rates of both while both run, or, where those were not measured, FreeToken's fallback: the
    /// link's rate over the host's, at most 1. Everything where the host cannot serve.
    #[must_use]
    pub fn fetch_q16(&self) -> u32 {
        self.share(self.beside)
    }

    /// The same as if neither slowed the other: `link / (link + host)` of the rates alone.
    #[must_use]
    pub fn fetch_q16_uncontended(&self) -> u32 {
        self.share(Some((1000, 1000)))
    }

    fn share(&self, beside: Option<(u32, u32)>) -> u32 {
        let Some(host) = self.host_ps.filter(|_| self.copy_ps > 0) else { return q16(1.0) };
        let (host, link) = (host as f64, self.copy_ps as f64);
        q16(match beside {
            // Rates are inverse times: (1/link) / (1/link + 1/host).
            Some((copy, cores)) => {
                let (link, host) = (link * f64::from(copy), host * f64::from(cores));
                host / (host + link)
            }
            None => host / link,
        })
    }

    /// FreeToken's choice of a backend: the host helps where its rate alone is over twice the link's.
    #[must_use]
    pub fn hybrid_pays(&self) -> bool {
        self.host_ps.is_some_and(|host| u128::from(self.copy_ps) > 2 * u128::from(host))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn rates(copy_ps: u64, host_ps: u64) -> Rates {
        Rates { copy_ps, host_ps: Some(host_ps), beside: None }
    }

    #[test]
    fn shares_by_hand() {
        // The public profile: nvfp4, 21.89 and 8.41 GB/s overlapped: 27.8% fetched.
        // round(8.41 / 30.30 x 65536).
        let overlapped = Rates {
            beside: Some((1000, 1000)),
            ..rates((1e12 / 8.41) as u64, (1e12 / 21.89) as u64)
        };
        assert_eq!(overlapped.fetch_q16(), 18_190);
        // Not measured together: link over host, 57.0 / 170.1.
        let alone = rates((1e9 / 57.0) as u64, (1e9 / 170.1) as u64);
        assert!((f64::from(alone.fetch_q16()) / 65536.0 - 0.3351).abs() < 0.0001);
        assert!((f64::from(alone.fetch_q16_uncontended()) / 65536.0 - 0.251).abs() < 0.0001);
        // Link 3, host 1; beside each other 2 and 1.5 times slower: 1.5 of 7.5.
        let beside = Rates { beside: Some((2000, 1500)), ..rates(3, 1) };
        assert_eq!(beside.fetch_q16(), 13_107);
    }

    #[test]
    fn a_host_that_cannot_and_a_link_that_takes_no_time_fetch_everything() {
        assert_eq!(Rates { host_ps: None, ..rates(5, 0) }.fetch_q16(), 65_536);
        assert_eq!(rates(0, 5).fetch_q16(), 65_536);
    }

    #[test]
    fn the_backend_is_hybrid_over_twice_the_link() {
        assert!(rates(201, 100).hybrid_pays());
        assert!(!rates(200, 100).hybrid_pays());
        assert!(!Rates { host_ps: None, ..rates(201, 0) }.hybrid_pays());
    }
}
