//! How slots are shared between layers, and which numbers of them are possible.

use super::CacheError;
use super::entry::LIMIT;
use crate::{Key, PoolShape};

/// How slots are shared between layers.
///
/// ```
/// use hotset_policies::Slots;
///
/// // Two layers of eight experts, two of them a token.
/// let shared = Slots::Global(6).pools(&[8, 8], &[2, 2])?;
/// assert_eq!((shared.len(), shared[0].keys, shared[0].keys_per_token), (1, 16, 4));
/// let own = Slots::Layer(vec![4, 2]).pools(&[8, 8], &[2, 2])?;
/// assert_eq!((own.len(), own[1].capacity, own[1].keys), (2, 2, 8));
/// assert!(Slots::Global(17).pools(&[8, 8], &[2, 2]).is_err());
/// # Ok::<(), hotset_policies::CacheError>(())
/// ```
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Slots {
    /// One pool of this many slots over all layers.
    Global(u32),
    /// A pool of its own for each layer, with this many slots each.
    Layer(Vec<u32>),
}

impl Slots {
    /// The pools that these slots make of a model with `experts[l]` experts in layer `l`, of which
    /// a token uses `top_k[l]`: one, or one a layer.
    ///
    /// # Errors
    /// As [`ExpertCache::new`](super::ExpertCache::new).
    pub fn pools(&self, experts: &[u32], top_k: &[u32]) -> Result<Vec<PoolShape>, CacheError> {
        let bases = key_bases(experts)?;
        check_slots(self, experts)?;
        Ok(match self {
            Self::Global(capacity) => vec![PoolShape {
                capacity: *capacity,
                keys: bases[experts.len()],
                layer_bases: bases[..experts.len()].to_vec(),
                keys_per_token: top_k.iter().fold(0, |sum, &k| sum.saturating_add(k)),
            }],
            Self::Layer(capacities) => capacities
                .iter()
                .zip(experts)
                .enumerate()
                .map(|(layer, (&capacity, &keys))| PoolShape {
                    capacity,
                    keys,
                    layer_bases: vec![0],
                    keys_per_token: top_k.get(layer).copied().unwrap_or(1),
                })
                .collect(),
        })
    }

    /// Slots over all pools.
    #[must_use]
    pub fn total(&self) -> u32 {
        match self {
            Self::Global(slots) => *slots,
            Self::Layer(each) => each.iter().fold(0, |sum, &slots| sum.saturating_add(slots)),
        }
    }
}

/// Dense key of each layer's expert 0, and the number of experts behind the last.
pub(super) fn key_bases(experts: &[u32]) -> Result<Vec<Key>, CacheError> {
    if experts.is_empty() {
        return Err(CacheError::NoLayers);
    }
    if let Some(layer) = experts.iter().position(|&count| count == 0) {
        return Err(CacheError::NoExperts { layer });
    }
    let total: u64 = experts.iter().map(|&count| u64::from(count)).sum();
    if total > u64::from(LIMIT) {
        return Err(CacheError::TooManyExperts { experts: total });
    }
    let mut bases = vec![0];
    for &count in experts {
        bases.push(bases[bases.len() - 1] + count);
    }
    Ok(bases)
}

/// The dense key of a layer's expert.
///
/// # Panics
/// If `layer` or `expert` is out of range.
#[inline(always)]
pub(super) fn key_in(bases: &[Key], layer: usize, expert: u32) -> usize {
    let layers = bases.len() - 1;
    assert!(layer < layers, "layer {layer} of {layers}");
    let (base, end) = (bases[layer], bases[layer + 1]);
    // Compared before it is added: an id such as u32::MAX, some engines' padding, must not
    // wrap into another layer.
    assert!(expert < end - base, "expert {expert} of {} in layer {layer}", end - base);
    (base + expert) as usize
}

pub(super) fn check_slots(slots: &Slots, experts: &[u32]) -> Result<(), CacheError> {
    let over = |slots, experts| Err(CacheError::MoreSlotsThanExperts { slots, experts });
    match slots {
        Slots::Global(0) => Err(CacheError::NoSlots),
        Slots::Global(slots) => {
            let experts = experts.iter().sum();
            if *slots > experts { over(*slots, experts) } else { Ok(()) }
        }
        Slots::Layer(each) => {
            if each.len() != experts.len() {
                let (given, layers) = (each.len(), experts.len());
                return Err(CacheError::LayerCount { given, layers });
            }
            if each.iter().all(|&slots| slots == 0) {
                return Err(CacheError::NoSlots);
            }
            match each.iter().zip(experts).find(|(slots, experts)| slots > experts) {
                Some((&slots, &experts)) => over(slots, experts),
                None => Ok(()),
            }
        }
    }
}
