//! Every price that a timeline asks for, tabulated: replaying an event looks numbers up.

use hotset_cost_models::{HostKernel, Link};
use hotset_traces::Shape;

use super::model::{Compute, kernels};

/// Bursts up to this long are tabulated; each further copy adds what a queued one costs.
const LONGEST_BURST: u32 = 1024;

/// What copying and reading experts of one size costs, in picoseconds.
#[derive(Debug)]
pub(super) struct SizeCosts {
    bytes: u64,
    /// One more copy behind others.
    pub queued: u64,
    /// `demand[n]`: a burst of `n` on an idle link.
    demand: Vec<u64>,
    /// `kernel[n]`: a kernel that reads `n` experts; empty where compute does not depend on them.
    kernel: Vec<u64>,
    /// An expert on the host's cores, and each further token that wants it.
    pub host: u64,
    pub host_more: u64,
}

impl SizeCosts {
    #[inline(always)]
    pub fn demand(&self, copies: u32) -> u64 {
        match self.demand.get(copies as usize) {
            Some(&ps) => ps,
            None => self.long_burst(copies),
        }
    }

    #[cold]
    fn long_burst(&self, copies: u32) -> u64 {
        let last = self.demand.len() - 1;
        let further = u64::from(copies) - last as u64;
        self.demand[last].saturating_add(self.queued.saturating_mul(further))
    }
}

#[derive(Debug)]
struct LayerCosts {
    size: usize,
    /// Before the routing is known, and after it: of a step, or of each token of it.
    dense: u64,
    experts: u64,
}

/// The prices of one model over one link.
#[derive(Debug)]
pub(super) struct Costs {
    sizes: Vec<SizeCosts>,
    layers: Vec<LayerCosts>,
    per_token: bool,
    /// What starting and ending a step takes beside its kernels.
    pub step: u64,
}

impl Costs {
    /// `host` is what the host's cores take for an expert; 0: they cannot serve any.
    pub fn new(shape: &Shape, link: &Link, compute: &Compute, host: HostKernel) -> Self {
        let widest = shape.max_experts();
        let mut sizes: Vec<SizeCosts> = Vec::new();
        let count = shape.layers().len() as u64;
        let layers = shape
            .layers()
            .iter()
            .zip(0u64..)
            .map(|(layer, index)| {
                let bytes = layer.expert_bytes;
                let known = sizes.iter().position(|size| size.bytes == bytes);
                let size = known.unwrap_or_else(|| {
                    sizes.push(size_costs(bytes, widest, link, compute, host));
                    sizes.len() - 1
                });
                let (dense, experts) = match compute {
                    Compute::None => (0, 0),
                    Compute::PerToken(token) => {
                        // The first layers take what is left over, so that all add up.
                        let share = token.0 / count + u64::from(index < token.0 % count);
                        (share / 2, share - share / 2)
                    }
                    Compute::Memory { hbm, dense_bytes } => (hbm.kernel_ps(*dense_bytes, 1), 0),
                };
                LayerCosts { size, dense, experts }
            })
            .collect();
        let step = match compute {
            Compute::Memory { hbm, .. } => hbm.step_ps(kernels(shape)),
            Compute::None | Compute::PerToken(_) => 0,
        };
        Self { sizes, layers, per_token: matches!(compute, Compute::PerToken(_)), step }
    }

    /// Whether an expert takes the host longer the more tokens want it.
    pub fn host_weighs_tokens(&self) -> bool {
        self.sizes.iter().any(|size| size.host_more > 0)
    }

    #[inline(always)]
    pub fn size(&self, layer: usize) -> &SizeCosts {
        &self.sizes[self.layers[layer].size]
    }

    /// The kernel before a layer's routing is known, in a step of `tokens`.
    #[inline(always)]
    pub fn dense(&self, layer: usize, tokens: u32) -> u64 {
        let dense = self.layers[layer].dense;
        if self.per_token { dense.saturating_mul(u64::from(tokens)) } else { dense }
    }

    /// The kernel over `experts` of the `distinct` experts that a layer needs.
    #[inline(always)]
    pub fn experts(&self, layer: usize, tokens: u32, experts: u32, distinct: u32) -> u64 {
        let costs = &self.layers[layer];
        if let Some(&ps) = self.sizes[costs.size].kernel.get(experts as usize) {
            return ps;
        }
        let whole = costs.experts.saturating_mul(u64::from(tokens));
        if experts == distinct {
            return whole;
        }
        let share = u128::from(whole) * u128::from(experts) / u128::from(distinct.max(1));
        share as u64
    }
}

fn size_costs(
    bytes: u64,
    widest: u32,
    link: &Link,
    compute: &Compute,
    host: HostKernel,
) -> SizeCosts {
    let longest = widest.saturating_mul(2).clamp(2, LONGEST_BURST);
    let of_expert = |ps_per_mib: u64| {
        let ps = u128::from(ps_per_mib) * u128::from(bytes) / (1 << 20);
        u64::try_from(ps).unwrap_or(u64::MAX)
    };
    SizeCosts {
        bytes,
        queued: link.queued_ps(bytes),
        demand: (0..=longest).map(|copies| link.demand_ps(bytes, copies)).collect(),
        kernel: match compute {
            Compute::Memory { hbm, .. } => {
                (0..=widest).map(|experts| hbm.kernel_ps(bytes, experts)).collect()
            }
            _ => Vec::new(),
        },
        host: of_expert(host.ps_per_mib),
        host_more: of_expert(host.more_ps_per_mib),
    }
}

#[cfg(test)]
mod tests {
    use hotset_cost_models::Picos;

    use super::*;

    #[test]
    fn a_token_is_spread_over_the_layers_to_the_last_picosecond() {
        let shape = Shape::uniform(3, 4, 2).unwrap().with_expert_bytes(1 << 20);
        let link = Link::affine("l", 5, 7);
        let costs =
            Costs::new(&shape, &link, &Compute::PerToken(Picos(100)), HostKernel::default());
        // 34 + 33 + 33; two tokens, and half of the second layer's experts.
        assert_eq!([0, 1, 2].map(|l| costs.dense(l, 1)), [17, 16, 16]);
        assert_eq!(costs.dense(0, 2), 34);
        assert_eq!((costs.experts(1, 2, 2, 2), costs.experts(1, 2, 1, 2)), (34, 17));
        // An affine link: every copy costs the same.
        assert_eq!((costs.size(0).queued, costs.size(0).demand(3)), (12, 36));
        assert_eq!(costs.size(0).demand(100), 1200, "beyond the table");
    }
}
