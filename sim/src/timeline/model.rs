//! The engine that a timeline stands for: its compute, and how copies run beside it.

use hotset_cost_models::{Disk, HbmModel, HostContention, HostKernel, Link, MachineProfile, Picos};
use hotset_traces::{LayerShape, Shape};
use serde::{Deserialize, Serialize};

use crate::SimError;

/// Compute of a token's layers when every expert is resident.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub enum Compute {
    /// Takes no time: the prices are of transfers alone.
    #[default]
    None,
    /// So much a token, whatever the experts, spread evenly over the layers; a step of several
    /// tokens takes it for each. Half of a layer's share lies before its routing is known.
    PerToken(Picos),
    /// Kernels that read the accelerator's memory: before a layer's routing is known
    /// `dense_bytes`, after it the bytes of the layer's distinct experts. The host waits for the
    /// end of each step, which costs [`HbmModel::step_ps`].
    Memory {
        /// What a kernel costs.
        hbm: HbmModel,
        /// Bytes that a step reads for each layer beside the experts.
        dense_bytes: u64,
    },
}

impl Compute {
    /// So many milliseconds a token.
    #[must_use]
    pub fn per_token_ms(ms: f64) -> Self {
        Self::PerToken(Picos::from_ms_f64(ms))
    }

    /// What one token by itself takes, in picoseconds.
    #[must_use]
    pub fn token_ps(&self, shape: &Shape) -> u64 {
        match self {
            Self::None => 0,
            Self::PerToken(token) => token.0,
            Self::Memory { hbm, dense_bytes } => {
                let layer = |layer: &LayerShape| {
                    let experts = hbm.kernel_ps(layer.expert_bytes, layer.top_k);
                    hbm.kernel_ps(*dense_bytes, 1).saturating_add(experts)
                };
                shape
                    .layers()
                    .iter()
                    .map(layer)
                    .fold(hbm.step_ps(kernels(shape)), u64::saturating_add)
            }
        }
    }

    /// A machine's memory, if it was measured.
    #[must_use]
    pub fn of_machine(machine: &MachineProfile, dense_bytes: u64) -> Option<Self> {
        machine.hbm.clone().map(|hbm| Self::Memory { hbm, dense_bytes })
    }
}

/// Kernels of a step: two a layer.
pub(super) fn kernels(shape: &Shape) -> u32 {
    u32::try_from(shape.layers().len()).unwrap_or(u32::MAX).saturating_mul(2)
}

/// How copies are ordered.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum CopyOrder {
    /// One copy engine; copies run in the order in which they were asked for.
    #[default]
    InOrder,
    /// One copy engine; what a layer waits for goes before prefetches that have not started. A
    /// prefetch that is asked for while it is queued keeps its place.
    DemandFirst,
    /// One copy engine for demands, one for prefetches; while both run, each has half of the link.
    TwoEngines,
}

/// What an expert kernel waits for.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Wait {
    /// All of the layer's experts, then one kernel.
    #[default]
    All,
    /// One kernel over what is there when the routing is known, another over the rest when that
    /// has arrived.
    HitsFirst,
}

/// The engine's side of a timeline; the link's side is a
/// [`Link`](hotset_cost_models::Link).
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TimeModel {
    /// Compute.
    pub compute: Compute,
    /// Order of the copies.
    pub copies: CopyOrder,
    /// What kernels wait for.
    pub wait: Wait,
    /// Whether what runs beside each other slows each other down, as the link's profile says.
    pub contention: bool,
    /// Host threads that serve experts; `None`: the most that the link's contention was measured
    /// with.
    pub host_threads: Option<u32>,
    /// What experts are read from where host memory does not hold them; `None`: reads take no time.
    pub disk: Option<Disk>,
    /// Whether every split of misses between link and host is judged beside the best one.
    pub judges_splits: bool,
}

impl TimeModel {
    /// Refuses a run of `tokens` tokens whose time, one thing after another on the slowest link,
    /// the clock cannot count.
    ///
    /// # Errors
    /// [`SimError::TooLong`].
    pub fn check_clock(
        &self,
        tokens: usize,
        shape: &Shape,
        links: &[Link],
    ) -> Result<(), SimError> {
        const DAY: u128 = 86_400_000_000_000_000;
        for link in links {
            // Every expert that a token uses may be copied twice: asked for and predicted.
            let copies: u128 = shape
                .layers()
                .iter()
                .map(|layer| {
                    let read =
                        self.disk.as_ref().map_or(0, |disk| disk.read_ps(layer.expert_bytes));
                    let copy = u128::from(link.demand_ps(layer.expert_bytes, 1));
                    u128::from(layer.top_k) * (copy + u128::from(read))
                })
                .sum();
            let token = u128::from(self.compute.token_ps(shape)) + 2 * copies;
            let whole = token * tokens as u128;
            if whole > i64::MAX as u128 {
                let days = u64::try_from(whole / DAY).unwrap_or(u64::MAX);
                return Err(SimError::TooLong { link: link.name.clone(), days });
            }
        }
        Ok(())
    }

    /// What the host's cores take for an expert, at the threads that serve; 0 for the first token: nobody
    /// measured them.
    pub(super) fn host_kernel(&self, link: &Link) -> HostKernel {
        let beside = self.host_beside(link);
        link.host_kernel.unwrap_or(HostKernel {
            ps_per_mib: beside.host_ps_per_mib,
            more_ps_per_mib: beside.more_ps_per_mib,
        })
    }

    /// Contention with the host at the threads that serve experts: of those measured, the fewest that
    /// are not fewer, else the most.
    pub(super) fn host_beside(&self, link: &Link) -> HostContention {
        let measured = &link.contention.host;
        let found = match self.host_threads {
            Some(threads) => measured.iter().find(|beside| beside.threads >= threads),
            None => None,
        };
        let none = HostContention {
            threads: 0,
            copy_permille: 1000,
            host_permille: 1000,
            host_ps_per_mib: 0,
            more_ps_per_mib: 0,
            handoff_ps: 0,
        };
        let beside = found.or(measured.last()).copied().unwrap_or(none);
        if self.contention {
            beside
        } else {
            HostContention { copy_permille: 1000, host_permille: 1000, threads: 0, ..beside }
        }
    }
}

impl Default for TimeModel {
    fn default() -> Self {
        Self {
            compute: Compute::None,
            copies: CopyOrder::InOrder,
            wait: Wait::All,
            contention: true,
            host_threads: None,
            disk: None,
            judges_splits: false,
        }
    }
}
