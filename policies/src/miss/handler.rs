//! The rules by which misses are copied, served by the host, or gone without.

use serde::{Deserialize, Serialize};

use super::coselection::CoSelection;
use super::{Rates, Split};

/// What becomes of misses. Those that the host serves or that are gone without are not shown to the
/// cache: they take no slot and evict nobody.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum MissHandler {
    /// All are fetched.
    #[default]
    Fetch,
    /// The host serves all; the cache keeps what it has.
    Host,
    /// Some are fetched, the host serves the others, so that both finish together: FreeToken's rule.
    Balanced(Split),
    /// FreeToken's choice of a backend: all are fetched, or balanced where the host's rate is over
    /// twice the link's. Until the rates are known it is as balanced.
    Freetoken(Split),
    /// The first `n` of a layer's misses in ascending id are fetched, the host serves the others.
    UploadCap {
        /// Copies a layer a step.
        n: u32,
    },
    /// Each expert by itself: the host serves it where `cpu` for each token that wants it is less
    /// than `gpu`.
    Fiddler {
        /// The host's cost of an expert a token.
        cpu: u32,
        /// The cost of an expert that is copied, in the same unit.
        gpu: u32,
    },
    /// Link and host draw from a queue of the misses by load, each what it would finish first.
    Hybrimoe {
        /// A copy's time; `None` until the rates are known, and one as long as the host's then.
        copy: Option<u64>,
        /// The host's time for each token, in the same unit.
        host: Option<u64>,
    },
    /// The host computes all experts of the first `n` layers, resident or not.
    CpuLayers {
        /// Layers; `None`: as many as leave the others room in the slots
        /// ([`MissHandler::with_slots`]).
        n: Option<u32>,
    },
    /// The host serves all; the outputs of the `n` with the lowest weights are added a layer later.
    Defer {
        /// Experts a layer whose output may be late.
        n: u32,
    },
    /// Those with less than this share of the router's weight are not computed; the others are
    /// fetched.
    Drop {
        /// The share, in millionths.
        below_ppm: u32,
    },
    /// A resident expert stands in that is often chosen together with the missing one; where there
    /// is none it is fetched.
    Substitute {
        /// The least likeness, in millionths.
        above_ppm: u32,
    },
    /// By the router's weight that lies at better experts: a missing one is fetched whole, as a smaller
    /// copy that no slot keeps, or not computed.
    LowPrecision {
        /// Up to this share of the weight at better ones it is fetched whole, in millionths.
        whole_ppm: u32,
        /// Up to this share a smaller copy is fetched; beyond it nothing.
        low_ppm: u32,
        /// The smaller copy's size as a share of the whole, in millionths.
        size_ppm: u32,
    },
    /// The router favours residents: a missing expert beyond the best `keep` gives way to a resident one
    /// where its logit is over that of the event's last by less than `lambda` times the mean range.
    Bias {
        /// The bias in units of the running mean of the range of logits, in millionths.
        lambda_ppm: u32,
        /// The best experts, which are never replaced.
        keep: u32,
    },
    /// Each token uses its best `k` experts only, resident or not. Whoever drives the cache leaves
    /// the others out; their misses are fetched.
    Top {
        /// Experts a token and layer.
        k: u32,
    },
}

impl MissHandler {
    /// A share of the misses in per mille is fetched.
    #[must_use]
    pub fn balanced(fetch_permille: u32) -> Self {
        Self::Balanced(Split::of_share(f64::from(fetch_permille) / 1000.0))
    }

    /// The rule at these rates: what it left open is filled in. Where the host cannot serve at all,
    /// everything that it would have served is fetched.
    ///
    /// ```
    /// use hotset_policies::miss::{MissHandler, Rates};
    ///
    /// let rates = Rates { copy_ps: 300, host_ps: Some(100), beside: Some((1000, 1000)) };
    /// let split = "freetoken".parse::<MissHandler>()?.with_rates(&rates);
    /// assert_eq!(split, "balanced:fetch=0.25".parse()?);
    /// let slow = Rates { host_ps: Some(200), ..rates };
    /// assert_eq!("freetoken".parse::<MissHandler>()?.with_rates(&slow), MissHandler::Fetch);
    /// # Ok::<(), hotset_policies::miss::MissError>(())
    /// ```
    #[must_use]
    pub fn with_rates(self, rates: &Rates) -> Self {
        let Some(host_ps) = rates.host_ps else {
            return if self.uses_host() { Self::Fetch } else { self };
        };
        let known = |split: Split| {
            let fetch_q16 = Some(split.fetch_q16.unwrap_or_else(|| rates.fetch_q16()));
            Self::Balanced(Split { fetch_q16, ..split })
        };
        match self {
            Self::Balanced(split) => known(split),
            Self::Freetoken(split) if rates.hybrid_pays() => known(split),
            Self::Freetoken(_) => Self::Fetch,
            Self::Hybrimoe { copy, host } => Self::Hybrimoe {
                copy: Some(copy.unwrap_or(rates.copy_ps)),
                host: Some(host.unwrap_or(host_ps)),
            },
            other => other,
        }
    }

    /// The rule for a cache of so many slots over layers of these experts.
    #[must_use]
    pub fn with_slots(self, experts: &[u32], slots: u32) -> Self {
        let Self::CpuLayers { n: None } = self else { return self };
        let mut left = experts.iter().map(|&experts| u64::from(experts)).sum::<u64>();
        let fits = |layer: &u32| {
            let fits = left <= u64::from(slots);
            left -= experts.get(*layer as usize).map_or(0, |&experts| u64::from(experts));
            fits
        };
        Self::CpuLayers {
            n: Some((0..experts.len() as u32).find(fits).unwrap_or(experts.len() as u32)),
        }
    }

    /// Whether every miss is fetched, so that a bound serves as it does.
    #[must_use]
    pub fn fetches_all(self) -> bool {
        matches!(self, Self::Fetch | Self::Top { .. })
    }

    /// Whether the host's cores serve experts under it.
    #[must_use]
    pub fn uses_host(self) -> bool {
        match self {
            Self::Fetch
            | Self::Drop { .. }
            | Self::Substitute { .. }
            | Self::LowPrecision { .. }
            | Self::Bias { .. }
            | Self::Top { .. } => false,
            Self::Host
            | Self::Balanced(_)
            | Self::Freetoken(_)
            | Self::UploadCap { .. }
            | Self::Fiddler { .. }
            | Self::Hybrimoe { .. }
            | Self::CpuLayers { .. }
            | Self::Defer { .. } => true,
        }
    }

    /// Whether it needs the rates of link and host and was not told them.
    #[must_use]
    pub fn needs_rates(self) -> bool {
        match self {
            Self::Balanced(split) => split.fetch_q16.is_none(),
            Self::Freetoken(_) => true,
            Self::Hybrimoe { copy, host } => copy.is_none() || host.is_none(),
            _ => false,
        }
    }

    /// Whether it leaves experts out that the router chose, and so loses router weight.
    #[must_use]
    pub fn loses_weight(self) -> bool {
        matches!(
            self,
            Self::Drop { .. }
                | Self::Substitute { .. }
                | Self::LowPrecision { .. }
                | Self::Bias { .. }
                | Self::Top { .. }
        )
    }

    /// The size of its smaller copies as a share of the whole, in millionths; 0: it has none.
    #[must_use]
    pub fn low_size_ppm(self) -> u32 {
        match self {
            Self::LowPrecision { size_ppm, .. } => size_ppm,
            _ => 0,
        }
    }

    /// Whether it goes by who is chosen together with whom.
    pub(super) fn pairs(self) -> bool {
        matches!(self, Self::Substitute { .. } | Self::Bias { .. })
    }

    /// Whether a model under it computes something else, so that its later routing would differ from
    /// the recorded one.
    #[must_use]
    pub fn changes_the_result(self) -> bool {
        self.loses_weight() || matches!(self, Self::Defer { .. })
    }

    /// Bytes that a dispatcher of this rule holds for layers of these experts.
    #[must_use]
    pub fn memory(self, experts: &[u32]) -> u64 {
        let each = experts.iter().map(|&experts| u64::from(experts)).sum::<u64>();
        let pairs = if self.pairs() { CoSelection::memory(experts) } else { 0 };
        (8 * each).saturating_add(pairs)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn where_the_host_cannot_serve_every_rule_that_needs_it_fetches() {
        let none = Rates { copy_ps: 5, host_ps: None, beside: None };
        for text in [
            "host",
            "balanced",
            "freetoken",
            "upload-cap",
            "fiddler",
            "hybrimoe",
            "cpu-layers",
            "defer",
            "fetch",
        ] {
            let handler: MissHandler = text.parse().unwrap();
            assert_eq!(handler.with_rates(&none), MissHandler::Fetch, "{text}");
            assert_eq!(handler.uses_host(), text != "fetch");
        }
        let drop: MissHandler = "drop:below=0.05".parse().unwrap();
        assert_eq!(drop.with_rates(&none), drop);
    }

    #[test]
    fn a_link_that_takes_no_time_leaves_the_split_nothing_for_the_host() {
        let rates = Rates { copy_ps: 0, host_ps: Some(7), beside: Some((1600, 1200)) };
        for text in ["balanced", "freetoken", "hybrimoe"] {
            match text.parse::<MissHandler>().unwrap().with_rates(&rates) {
                MissHandler::Fetch => {}
                MissHandler::Balanced(split) => assert_eq!(split.fetched(9), 9),
                MissHandler::Hybrimoe { copy, host } => {
                    assert_eq!((copy, host), (Some(0), Some(7)))
                }
                other => panic!("{other:?}"),
            }
        }
    }

    #[test]
    fn as_many_layers_are_the_hosts_as_leave_the_others_room() {
        let n = |slots| MissHandler::CpuLayers { n: None }.with_slots(&[4, 4, 4], slots);
        let layers = |n| MissHandler::CpuLayers { n: Some(n) };
        assert_eq!(
            [n(12), n(11), n(8), n(4), n(3)],
            [layers(0), layers(1), layers(1), layers(2), layers(3)]
        );
        assert_eq!(layers(1).with_slots(&[4, 4, 4], 3), layers(1), "as it was given");
    }
}
