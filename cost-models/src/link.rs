//! A link: the way an expert takes into the accelerator's memory, and what it costs.
//!
//! A link is a fixed cost and a rate, or a measured curve over size and burst length. What slows it down while other
//! things run (contention) lies beside it; whoever builds a timeline decides when that applies.

use serde::{Deserialize, Serialize};

use crate::contention::Contention;
use crate::curve::BurstCurve;
use crate::picos::{MIB, Picos, mul_div_round};

/// What sort of wire it is; decides nothing, tells a person what to compare with.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum LinkKind {
    /// Host memory over PCI Express.
    Pcie,
    /// Coherent host memory over NVLink-C2C.
    NvlinkC2c,
    /// Another accelerator's memory over NVLink.
    NvlinkPeer,
    /// One memory for host and accelerator; a copy is still a copy.
    Unified,
    /// Storage.
    Disk,
    /// Anything else.
    Other,
}

impl LinkKind {
    /// Its name in profiles and results.
    pub fn name(self) -> &'static str {
        match self {
            Self::Pcie => "pcie",
            Self::NvlinkC2c => "nvlink-c2c",
            Self::NvlinkPeer => "nvlink-peer",
            Self::Unified => "unified",
            Self::Disk => "disk",
            Self::Other => "other",
        }
    }
}

/// What transfers cost on an otherwise idle link, in picoseconds.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case", deny_unknown_fields)]
pub enum TransferCost {
    /// A fixed cost for each transfer and a rate.
    Affine {
        /// Picoseconds for each transfer, whatever its size.
        fixed_ps: u64,
        /// Picoseconds for each MiB.
        ps_per_mib: u64,
    },
    /// A measured curve.
    Curve(BurstCurve),
}

/// What submitting copies costs around the copies themselves, in picoseconds; zero where the source does not say.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct Submission {
    /// From the end of a kernel to the first copy that waits for it, and from the last copy to the kernel that waits
    /// for that: both hand-offs between streams together. Paid once a burst that starts on an idle link.
    pub handoff_ps: u64,
    /// The least time between two copies that are each followed by an event: smaller copies go no faster.
    pub copy_ps: u64,
}

/// An expert computed by host cores where it lies, instead of being copied.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct HostKernel {
    /// Picoseconds for each MiB of weights, alone, for one token.
    pub ps_per_mib: u64,
    /// What each further token of the step that wants the expert adds to that, in picoseconds a MiB; 0 where
    /// nobody measured it.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub more_ps_per_mib: u64,
}

impl HostKernel {
    /// An expert of `bytes` that `tokens` tokens want, in picoseconds.
    pub fn expert_ps(self, bytes: u64, tokens: u32) -> u64 {
        let further = u64::from(tokens.saturating_sub(1));
        let per_mib = self.ps_per_mib.saturating_add(self.more_ps_per_mib.saturating_mul(further));
        mul_div_round(per_mib, bytes, MIB)
    }
}

pub(crate) fn is_zero(value: &u64) -> bool {
    *value == 0
}

/// A bandwidth as a whole number of picoseconds a MiB.
pub(crate) fn ps_per_mib(bytes_per_second: f64) -> u64 {
    (MIB as f64 / bytes_per_second * 1e12).round() as u64
}

/// A link and everything that is known about its cost.
///
/// ```
/// use hotset_cost_models::{MIB, find_link};
///
/// let link = find_link("h200-pcie")?;
/// // Four experts of 12.61 MiB that a layer waits for are one burst, cheaper than four copies alone.
/// let expert = 12 * MIB + 639_795;
/// assert!(link.demand_ps(expert, 4) < 4 * link.demand_ps(expert, 1));
/// assert_eq!(find_link("zgx-c2c")?.transfer(160 * MIB).as_ms_f64(), 0.43);
/// # Ok::<(), hotset_cost_models::UnknownLink>(())
/// ```
///
/// Bounds that hold for every size and count, and that prices rest on: `n` times [`Link::queued_ps`] <=
/// [`Link::demand_ps`] of `n` <= `n` times [`Link::demand_ps`] of 1, and [`Link::burst_ps`] <= [`Link::demand_ps`].
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Link {
    /// Short name, as given on a command line.
    pub name: String,
    /// What sort of wire.
    pub kind: LinkKind,
    /// One line for a person.
    pub description: String,
    /// Where the figures come from.
    pub source: String,
    /// When they were measured, or published, or read.
    pub date: String,
    /// What transfers cost.
    pub cost: TransferCost,
    /// A token's compute when every expert is resident, where the source gives it.
    pub compute_per_token: Option<Picos>,
    /// Host cores that can serve an expert, where the source gives their speed.
    pub host_kernel: Option<HostKernel>,
    /// What slows it and what it slows.
    pub contention: Contention,
    /// What submitting its copies costs, summed up in two figures.
    pub submission: Submission,
    /// Rounds as they were measured: from the end of the kernel before which nobody knew of them to the start of the
    /// kernel that waits for them, for each size and number of copies. Where it is there, [`Link::demand_ps`] and
    /// [`Link::queued_ps`] come from it and not from `submission`.
    pub rounds: Option<BurstCurve>,
}

impl Link {
    /// A link with a fixed cost in picoseconds a transfer and a rate in picoseconds a MiB, and nothing else known.
    pub fn affine(name: impl Into<String>, fixed_ps: u64, ps_per_mib: u64) -> Self {
        Self {
            name: name.into(),
            kind: LinkKind::Other,
            description: String::new(),
            source: String::new(),
            date: String::new(),
            cost: TransferCost::Affine { fixed_ps, ps_per_mib },
            compute_per_token: None,
            host_kernel: None,
            contention: Contention::default(),
            submission: Submission::default(),
            rounds: None,
        }
    }

    /// A link of a nominal rate, as data sheets and engines' own calibrations give it: no fixed cost.
    ///
    /// ```
    /// use hotset_cost_models::Link;
    ///
    /// // 81.0 GB/s: 1 GiB takes 13.256 ms.
    /// let link = Link::of_rate("nominal", 81.0e9);
    /// assert_eq!(format!("{:.3}", link.transfer(1 << 30).as_ms_f64()), "13.256");
    /// ```
    pub fn of_rate(name: impl Into<String>, bytes_per_second: f64) -> Self {
        Self::affine(name, 0, ps_per_mib(bytes_per_second))
    }

    /// One transfer alone, in picoseconds; 0 for 0 bytes.
    pub fn transfer_ps(&self, bytes: u64) -> u64 {
        self.burst_ps(bytes, 1)
    }

    /// `transfers` transfers of `bytes` each, queued back to back on an idle link, in picoseconds.
    pub fn burst_ps(&self, bytes: u64, transfers: u32) -> u64 {
        match &self.cost {
            TransferCost::Affine { .. } if bytes == 0 => 0,
            TransferCost::Affine { fixed_ps, ps_per_mib } => mul_div_round(*ps_per_mib, bytes, MIB)
                .saturating_add(*fixed_ps)
                .saturating_mul(u64::from(transfers)),
            TransferCost::Curve(curve) => curve.burst_ps(bytes, transfers),
        }
    }

    /// One more transfer of `bytes` behind others that keep the link busy, in picoseconds: no start to pay, but never
    /// less than submitting it takes.
    pub fn queued_ps(&self, bytes: u64) -> u64 {
        if let Some(rounds) = &self.rounds {
            return rounds.queued_ps(bytes);
        }
        let marginal = match &self.cost {
            TransferCost::Affine { .. } => self.transfer_ps(bytes),
            TransferCost::Curve(curve) => curve.queued_ps(bytes),
        };
        if bytes == 0 { 0 } else { marginal.max(self.submission.copy_ps) }
    }

    /// A burst that a layer waits for, on an idle link: from the end of the kernel that the copies wait for to the
    /// start of the kernel that waits for the copies, in picoseconds.
    pub fn demand_ps(&self, bytes: u64, transfers: u32) -> u64 {
        if bytes == 0 || transfers == 0 {
            return 0;
        }
        if let Some(rounds) = &self.rounds {
            return rounds.burst_ps(bytes, transfers).max(self.burst_ps(bytes, transfers));
        }
        let submitted = self
            .submission
            .copy_ps
            .saturating_mul(u64::from(transfers - 1))
            .saturating_add(self.transfer_ps(bytes));
        self.burst_ps(bytes, transfers).max(submitted).saturating_add(self.submission.handoff_ps)
    }

    /// Share of a layer's misses to fetch when the host's cores serve the rest and both are to finish together, 0 to 1.
    ///
    /// From the rates of copies of `bytes` and of the cores while both run, if the profile has their contention at any
    /// number of threads (the most is taken); else FreeToken's fallback, link over host alone. `None` without a host
    /// kernel.
    pub fn fetch_share(&self, bytes: u64) -> Option<f64> {
        let host = self.host_kernel_ps(bytes)? as f64;
        let link = self.queued_ps(bytes) as f64;
        let share = match self.contention.host.last() {
            Some(beside) => {
                let host = host * f64::from(beside.host_permille);
                let link = link * f64::from(beside.copy_permille);
                // Rates are inverse times: (1/link) / (1/link + 1/host).
                host / (host + link)
            }
            None => host / link,
        };
        Some(share.min(1.0))
    }

    /// [`Link::transfer_ps`] as a span.
    pub fn transfer(&self, bytes: u64) -> Picos {
        Picos(self.transfer_ps(bytes))
    }

    /// [`Link::burst_ps`] as a span.
    pub fn burst(&self, bytes: u64, transfers: u32) -> Picos {
        Picos(self.burst_ps(bytes, transfers))
    }

    /// Time that an expert of `bytes` takes on the host's cores alone, for one token, if the profile has them.
    pub fn host_kernel_ps(&self, bytes: u64) -> Option<u64> {
        self.host_kernel.map(|kernel| kernel.expert_ps(bytes, 1))
    }

    /// The rate in GiB/s that one transfer of `bytes` reaches.
    pub fn rate_gib_s(&self, bytes: u64) -> f64 {
        bytes as f64 / (MIB as f64 * 1024.0) / (self.transfer_ps(bytes) as f64 * 1e-12)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::contention::HostContention;

    #[test]
    fn affine_cost_by_hand() {
        // 5 us and 1 ms a MiB: 1.5 MiB takes 1.505 ms, three of them 4.515 ms.
        let link = Link::affine("l", 5_000_000, 1_000_000_000);
        assert_eq!(link.transfer_ps(3 * MIB / 2), 1_505_000_000);
        assert_eq!(link.burst_ps(3 * MIB / 2, 3), 4_515_000_000);
        assert_eq!(link.transfer(MIB).as_ms_f64(), 1.005);
        assert_eq!(link.transfer_ps(0), 0);
        assert_eq!(link.burst_ps(MIB, 0), 0);
    }

    #[test]
    fn a_demand_burst_pays_the_hand_off_once() {
        // Curve: one copy 10, each further 6; submitting takes at least 8 a copy; hand-off 3.
        let curve = BurstCurve {
            bytes: vec![100, 200],
            transfers: vec![1, 2, 4],
            ps: vec![vec![10, 16, 28], vec![20, 32, 56]],
        };
        let mut link = Link::affine("l", 0, 1);
        link.cost = TransferCost::Curve(curve);
        link.submission = Submission { handoff_ps: 3, copy_ps: 8 };
        assert_eq!(link.demand_ps(100, 1), 13);
        assert_eq!(link.demand_ps(100, 4), 10 + 3 * 8 + 3, "submission is the bottleneck");
        assert_eq!(link.demand_ps(200, 4), 56 + 3, "the link is");
        assert_eq!(link.queued_ps(100), 8);
        assert_eq!(link.queued_ps(200), 12);
        assert_eq!(link.demand_ps(200, 0), 0);
        assert_eq!(link.demand_ps(0, 4), 0);
        assert_eq!(link.queued_ps(0), 0);
    }

    #[test]
    fn measured_rounds_are_the_price_of_demands_and_queues() {
        let mut link = Link::affine("l", 0, 1);
        link.cost = TransferCost::Curve(BurstCurve {
            bytes: vec![100, 200],
            transfers: vec![1, 4],
            ps: vec![vec![10, 34], vec![20, 68]],
        });
        link.submission = Submission { handoff_ps: 1000, copy_ps: 1000 };
        link.rounds = Some(BurstCurve {
            bytes: vec![100, 200],
            transfers: vec![1, 2],
            ps: vec![vec![14, 23], vec![24, 38]],
        });
        // 14 for the first, 9 for each further one, whatever the burst's 8 says.
        assert_eq!([1, 2, 3].map(|n| link.demand_ps(100, n)), [14, 23, 32]);
        assert_eq!((link.queued_ps(100), link.queued_ps(200)), (9, 14));
        // 24 + 14 for two; of four the burst alone takes 68, two more than 38 + 28.
        assert_eq!([2, 4].map(|n| link.demand_ps(200, n)), [38, 68]);
        assert_eq!((link.demand_ps(0, 4), link.demand_ps(100, 0), link.queued_ps(0)), (0, 0, 0));
    }

    #[test]
    fn the_fetch_share_balances_link_and_host() {
        // Link 3 ms a MiB, host 1 ms a MiB; beside each other 2 and 1.5 times slower: 6 against 1.5.
        let mut link = Link::affine("l", 0, 3_000_000_000);
        assert_eq!(link.fetch_share(MIB), None);
        link.host_kernel = Some(HostKernel { ps_per_mib: 1_000_000_000, more_ps_per_mib: 0 });
        assert_eq!(link.fetch_share(MIB), Some(1.0 / 3.0), "nothing known of contention");
        link.contention.host = vec![HostContention {
            threads: 8,
            copy_permille: 2000,
            host_permille: 1500,
            host_ps_per_mib: 1_000_000_000,
            more_ps_per_mib: 0,
            handoff_ps: 0,
        }];
        assert_eq!(link.fetch_share(MIB), Some(0.2));
    }

    #[test]
    fn an_absurd_transfer_saturates() {
        let link = Link::affine("l", 1, u64::MAX);
        assert_eq!(link.burst_ps(u64::MAX, u32::MAX), u64::MAX);
    }
}
