//! What is in the slots before the first step, and what bringing it there costs.

use hotset_cost_models::Link;
use hotset_policies::Key;
use hotset_policies::miss::MissHandler;
use hotset_traces::Shape;
use serde::Serialize;

use crate::Setting;
use crate::capacity::dimensions;

/// The dense keys of the experts that a setting's cache begins with, in the order in which they are
/// brought in: those that its policy places, or all of the layers that are not the host's. A bound
/// begins empty.
pub(crate) fn placed(setting: &Setting, shape: &Shape) -> Vec<Key> {
    let (experts, top_k) = dimensions(shape);
    let slots = setting.slots.total();
    if let MissHandler::CpuLayers { n: Some(n) } = setting.misses.with_slots(&experts, slots) {
        let first = match (n as usize) < experts.len() {
            true => shape.key_base(n as usize),
            false => shape.total_experts(),
        };
        return (first..shape.total_experts()).take(slots as usize).collect();
    }
    let pools = setting.slots.pools(&experts, &top_k).unwrap_or_default();
    let counts = setting.training.as_deref().unwrap_or_default();
    let mut base = 0;
    let mut keys = Vec::new();
    for pool in &pools {
        let of_pool = counts.get(base as usize..).unwrap_or_default();
        keys.extend(setting.policy.placed(pool, of_pool).into_iter().map(|key| base + key));
        base += pool.keys;
    }
    keys
}

/// Experts of each layer that are brought in before the first step.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct Load {
    layers: Vec<u32>,
}

impl Load {
    /// Counts dense keys by layer.
    pub fn of(keys: &[Key], shape: &Shape) -> Self {
        let mut layers = vec![0; shape.layers().len()];
        let bases: Vec<u32> = (0..layers.len()).map(|layer| shape.key_base(layer)).collect();
        for key in keys {
            let layer = bases.partition_point(|base| base <= key).saturating_sub(1);
            if let Some(count) = layers.get_mut(layer) {
                *count += 1;
            }
        }
        Self { layers }
    }

    /// Experts over all layers.
    pub fn experts(&self) -> u64 {
        self.layers.iter().map(|&count| u64::from(count)).sum()
    }

    /// Their bytes.
    pub fn bytes(&self, shape: &Shape) -> u128 {
        let each = self.layers.iter().zip(shape.layers());
        each.map(|(&count, layer)| u128::from(count) * u128::from(layer.expert_bytes)).sum()
    }

    /// What copying them takes, all queued at once, in picoseconds.
    pub fn link_ps(&self, shape: &Shape, link: &Link) -> u128 {
        let each = self.layers.iter().zip(shape.layers()).filter(|(count, _)| **count > 0);
        let burst = |(&count, layer): (&u32, &hotset_traces::LayerShape)| {
            u128::from(link.burst_ps(layer.expert_bytes, count))
        };
        each.map(burst).sum()
    }
}

/// What a row's cache held before the first step.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Placed {
    /// Experts.
    pub experts: u64,
    /// Their MiB; absent where the experts' size is unknown.
    pub mib: Option<f64>,
    /// What copying them takes over each link, in ms, layer by layer; empty where the experts' size
    /// is unknown. No other figure has it.
    pub load_ms: Vec<f64>,
}

impl Placed {
    /// `None` where nothing is placed.
    pub(crate) fn of(load: &Load, shape: &Shape, links: &[Link], sized: bool) -> Option<Self> {
        let experts = load.experts();
        let load_ms = links.iter().map(|link| load.link_ps(shape, link) as f64 / 1e9);
        (experts > 0).then(|| Self {
            experts,
            mib: sized.then(|| load.bytes(shape) as f64 / f64::from(1 << 20)),
            load_ms: if sized { load_ms.collect() } else { Vec::new() },
        })
    }
}

#[cfg(test)]
mod tests {
    use hotset_policies::Slots;

    use super::*;

    #[test]
    fn what_is_placed_is_counted_by_layer_and_priced_on_the_link() {
        // Layers of 4 experts: keys 0-3 and 4-7. In layer scope each pool has its own top.
        let shape = Shape::uniform(2, 4, 1).unwrap().with_expert_bytes(1 << 20);
        let counts = [1, 9, 0, 5, 0, 0, 8, 7];
        let with = |policy: &str, slots| Setting {
            training: Some(counts.into()),
            ..Setting::new(policy.parse().unwrap(), slots)
        };
        let layer = placed(&with("static", Slots::Layer(vec![1, 2])), &shape);
        assert_eq!(layer, [1, 7, 6]);
        assert_eq!(placed(&with("static", Slots::Global(3)), &shape), [7, 6, 1]);
        let layers = |n, slots| {
            let misses = MissHandler::CpuLayers { n };
            placed(&Setting { misses, ..with("lru", Slots::Global(slots)) }, &shape)
        };
        assert_eq!(layers(Some(1), 8), [4, 5, 6, 7]);
        assert_eq!((layers(None, 3), layers(None, 4)), (vec![], vec![4, 5, 6, 7]));
        let load = Load::of(&layer, &shape);
        assert_eq!((load.experts(), load.bytes(&shape)), (3, 3 << 20));
        let link = Link::affine("l", 10, 1_000_000_000);
        assert_eq!(load.link_ps(&shape, &link), 3_000_000_030);
        let placed = Placed::of(&load, &shape, &[link], true).unwrap();
        assert_eq!((placed.experts, placed.mib), (3, Some(3.0)));
        assert_eq!(placed.load_ms, [3.00000003]);
        assert_eq!(Placed::of(&Load::of(&[], &shape), &shape, &[], true), None);
    }
}
