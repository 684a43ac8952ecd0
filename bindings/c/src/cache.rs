//! The cache that an engine links.

use std::ffi::c_char;

use hotset_policies::{
    Action, AnyPolicy, CacheError, ExpertCache, Plan as Planned, PolicySpec, Slots,
};

use crate::status::{Failure, Status, array, exclusive, guarded, shared, text};

/// Nobody held the slot.
pub const HOTSET_NOBODY: u32 = u32::MAX;
/// Bytes that the policies of one cache may take.
const MOST_POLICY_BYTES: u64 = 4 << 30;
/// Experts of one cache.
const MOST_EXPERTS: u64 = 1 << 22;

/// A cache of expert slots: events in, plans out. It copies nothing.
pub struct Cache {
    cache: ExpertCache<AnyPolicy>,
    experts: Vec<u32>,
    placements: Vec<Placement>,
    dropped: Vec<u32>,
}

/// What to do for an expert.
#[repr(C)]
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Do {
    /// Resident: use the slot.
    Hit = 0,
    /// Resident thanks to a prefetch, and asked for the first time since: use the slot.
    PrefetchHit = 1,
    /// On its way into the slot: wait for its copy.
    Pending = 2,
    /// Copy the expert into the slot, then call hotset_cache_complete.
    Fetch = 3,
    /// No slot for it: a demand is served through a buffer of the engine's, a prefetch is given up.
    Unplaced = 4,
}

/// Where one expert of an event goes.
#[repr(C)]
#[derive(Debug, Clone, Copy)]
pub struct Placement {
    /// Its id within its layer.
    pub expert: u32,
    /// Its slot in the layer's pool; meaningless if unplaced.
    pub slot: u32,
    /// The dense key of whoever held the slot until now, or HOTSET_NOBODY.
    pub evicted: u32,
    /// What to do.
    pub action: Do,
}

/// The answer to one event. What it points to is the cache's, until the next call on it.
#[repr(C)]
pub struct Plan {
    /// One entry a distinct expert: hits and pending ones as asked, then misses by ascending id.
    pub placements: *const Placement,
    /// Distinct experts.
    pub count: u32,
    /// Dense keys of experts that left without another taking their slot.
    pub dropped: *const u32,
    /// How many of them there are.
    pub dropped_count: u32,
    /// Experts that can be used at once.
    pub hits: u32,
    /// Of the hits, those that a prefetch brought in.
    pub prefetch_hits: u32,
    /// Experts on their way.
    pub pending: u32,
    /// Experts to copy.
    pub fetches: u32,
    /// Experts without a slot.
    pub unplaced: u32,
    /// Prefetched experts that left before anything asked for them.
    pub wasted: u32,
    /// Whether the event needs more experts than its pool has slots.
    pub overflow: bool,
}

impl From<CacheError> for Failure {
    fn from(error: CacheError) -> Self {
        let status = match error {
            CacheError::SlotInUse { .. } => Status::InUse,
            _ => Status::InvalidArgument,
        };
        Self { status, text: error.to_string() }
    }
}

/// One number of slots is a pool over all layers, as many as layers are a pool each.
fn slots_of(slots: &[u32], layers: usize) -> Result<Slots, Failure> {
    match slots {
        [shared] if layers != 1 => Ok(Slots::Global(*shared)),
        [only] => Ok(Slots::Global(*only)),
        each if each.len() == layers => Ok(Slots::Layer(each.to_vec())),
        _ => {
            let given = slots.len();
            let told = format!("slots: {given} numbers for {layers} layers; give 1 or {layers}");
            Err(Failure::invalid(told))
        }
    }
}

impl Cache {
    fn new(policy: &str, experts: &[u32], top_k: &[u32], slots: &[u32]) -> Result<Self, Failure> {
        let total: u64 = experts.iter().map(|&experts| u64::from(experts)).sum();
        if total > MOST_EXPERTS {
            return Err(Failure::invalid(format!(
                "{total} experts in all; at most {MOST_EXPERTS}"
            )));
        }
        let spec: PolicySpec = policy.parse().map_err(Failure::invalid)?;
        let slots = slots_of(slots, experts.len())?;
        let mut built = Vec::new();
        for pool in slots.pools(experts, top_k)? {
            spec.check_memory(&pool, MOST_POLICY_BYTES).map_err(Failure::invalid)?;
            built.push(spec.build(&pool).ok_or_else(|| {
                Failure::invalid(format!(
                    "policy '{policy}' needs the future or a training part, which an engine does not \
                     have"
                ))
            })?);
        }
        let mut built = built.into_iter();
        let cache = ExpertCache::new(experts, top_k, &slots, |_, _| {
            built.next().unwrap_or_else(|| unreachable!("one was built for each pool"))
        })?;
        let widest = experts.iter().copied().max().unwrap_or(0) as usize;
        Ok(Self {
            cache,
            experts: experts.to_vec(),
            placements: Vec::with_capacity(widest),
            dropped: Vec::with_capacity(widest),
        })
    }

    fn layer(&self, layer: u32) -> Result<usize, Failure> {
        let layers = self.experts.len();
        match layer as usize {
            known if known < layers => Ok(known),
            _ => Err(Failure::invalid(format!("layer {layer}: there are 0 to {}", layers - 1))),
        }
    }

    fn checked(&self, layer: u32, experts: &[u32]) -> Result<usize, Failure> {
        let known = self.layer(layer)?;
        let last = self.experts[known] - 1;
        match experts.iter().position(|&expert| expert > last) {
            None => Ok(known),
            Some(place) => Err(Failure::invalid(format!(
                "experts[{place}] is {}: layer {layer} has experts 0 to {last}",
                experts[place]
            ))),
        }
    }
}

/// Keeps a plan for the caller.
fn keep(plan: &Planned<'_>, placements: &mut Vec<Placement>, dropped: &mut Vec<u32>) -> Plan {
    placements.clear();
    placements.extend(plan.placements.iter().map(|placed| Placement {
        expert: placed.expert,
        slot: placed.slot,
        evicted: placed.evicted().unwrap_or(HOTSET_NOBODY),
        action: match placed.action {
            Action::Hit => Do::Hit,
            Action::PrefetchHit => Do::PrefetchHit,
            Action::Pending => Do::Pending,
            Action::Fetch => Do::Fetch,
            Action::Unplaced => Do::Unplaced,
        },
    }));
    dropped.clear();
    dropped.extend_from_slice(plan.dropped);
    Plan {
        placements: placements.as_ptr(),
        count: placements.len() as u32,
        dropped: dropped.as_ptr(),
        dropped_count: dropped.len() as u32,
        hits: plan.hits,
        prefetch_hits: plan.prefetch_hits,
        pending: plan.pending,
        fetches: plan.fetches,
        unplaced: plan.unplaced,
        wasted: plan.wasted,
        overflow: plan.overflow,
    }
}

/// Makes a cache for a model with experts[l] experts in MoE layer l, of which a token uses top_k[l].
/// slots: one number for a pool over all layers, or one for each layer. policy: a name as in
/// `hotset policies`, with parameters as "lru-k:k=2". The cache is to be freed.
///
/// # Safety
/// `policy` is a text; `experts` and `top_k` have `layers` entries, `slots` has `slots_count`; `cache`
/// can be written to.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn hotset_cache_new(
    policy: *const c_char,
    layers: usize,
    experts: *const u32,
    top_k: *const u32,
    slots_count: usize,
    slots: *const u32,
    cache: *mut *mut Cache,
) -> Status {
    guarded(|| {
        // SAFETY: the caller's promises.
        let (policy, experts, top_k, slots, cache) = unsafe {
            (
                text(policy, "policy")?,
                array(experts, layers, "experts")?,
                array(top_k, layers, "top_k")?,
                array(slots, slots_count, "slots")?,
                exclusive(cache, "cache")?,
            )
        };
        *cache = Box::into_raw(Box::new(Cache::new(policy, experts, top_k, slots)?));
        Ok(())
    })
}

/// Frees a cache; null is passed over.
///
/// # Safety
/// `cache` is null or from `hotset_cache_new`, and is not used afterwards.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn hotset_cache_free(cache: *mut Cache) {
    if !cache.is_null() {
        guarded(|| {
            // SAFETY: it came from `Box::into_raw`, and the caller gives it up.
            drop(unsafe { Box::from_raw(cache) });
            Ok(())
        });
    }
}

/// A step over so many tokens begins. Some policies go by it; call it once a forward pass.
///
/// # Safety
/// `cache` is from `hotset_cache_new`.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn hotset_cache_begin_step(cache: *mut Cache, tokens: u32) -> Status {
    guarded(|| {
        // SAFETY: the caller's promise.
        unsafe { exclusive(cache, "cache") }?.cache.begin_step(tokens);
        Ok(())
    })
}

/// What a layer needs now, best rank first; duplicates are one demand. weights: the router's weight of
/// each, or null. The layer's experts stay until hotset_cache_release.
///
/// # Safety
/// `cache` is from `hotset_cache_new`; `experts` has `count` entries, `weights` too unless it is null;
/// `plan` can be written to.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn hotset_cache_demand(
    cache: *mut Cache,
    layer: u32,
    experts: *const u32,
    weights: *const f32,
    count: usize,
    plan: *mut Plan,
) -> Status {
    guarded(|| {
        let weighted = if weights.is_null() { 0 } else { count };
        // SAFETY: the caller's promises. `plan` may not have been written to yet: it is not read.
        let (cache, experts, weights) = unsafe {
            (
                exclusive(cache, "cache")?,
                array(experts, count, "experts")?,
                array(weights, weighted, "weights")?,
            )
        };
        if plan.is_null() {
            return Err(Failure::null("plan"));
        }
        let layer = cache.checked(layer, experts)?;
        if let Some(place) = weights.iter().position(|weight| !weight.is_finite()) {
            let told = format!("weights[{place}] is {}: not a number", weights[place]);
            return Err(Failure::invalid(told));
        }
        let Cache { cache, placements, dropped, .. } = cache;
        let kept = keep(&cache.demand_weighted(layer, experts, weights), placements, dropped);
        // SAFETY: the caller's promise, and it is not null.
        unsafe { plan.write(kept) };
        Ok(())
    })
}

/// Brings in what a layer is predicted to need, in this order, evicting none that an open demand needs.
///
/// # Safety
/// As `hotset_cache_demand`.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn hotset_cache_prefetch(
    cache: *mut Cache,
    layer: u32,
    experts: *const u32,
    count: usize,
    plan: *mut Plan,
) -> Status {
    guarded(|| {
        // SAFETY: the caller's promises.
        let (cache, experts) =
            unsafe { (exclusive(cache, "cache")?, array(experts, count, "experts")?) };
        if plan.is_null() {
            return Err(Failure::null("plan"));
        }
        let layer = cache.checked(layer, experts)?;
        let Cache { cache, placements, dropped, .. } = cache;
        let kept = keep(&cache.prefetch(layer, experts), placements, dropped);
        // SAFETY: the caller's promise, and it is not null.
        unsafe { plan.write(kept) };
        Ok(())
    })
}

/// The copy of an expert into its slot is complete.
///
/// # Safety
/// `cache` is from `hotset_cache_new`.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn hotset_cache_complete(
    cache: *mut Cache,
    layer: u32,
    expert: u32,
) -> Status {
    guarded(|| {
        // SAFETY: the caller's promise.
        let cache = unsafe { exclusive(cache, "cache") }?;
        let layer = cache.checked(layer, &[expert])?;
        cache.cache.complete(layer, expert);
        Ok(())
    })
}

/// The layer's experts have been used: their slots may be given away again.
///
/// # Safety
/// `cache` is from `hotset_cache_new`.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn hotset_cache_release(cache: *mut Cache, layer: u32) -> Status {
    guarded(|| {
        // SAFETY: the caller's promise.
        let cache = unsafe { exclusive(cache, "cache") }?;
        let layer = cache.layer(layer)?;
        cache.cache.release(layer);
        Ok(())
    })
}

/// Gives or takes slots while the cache is in use; slots as for hotset_cache_new. Whoever no longer
/// fits has left, and whoever is in a slot that goes away is moved: `moved`, where it is not null, gets
/// (dense key, from, to) for each, `moved_count` how many. Refused with HOTSET_STATUS_IN_USE where a
/// demand is open or a copy in flight, and with HOTSET_STATUS_INVALID_ARGUMENT, after the change, where
/// `moved` has not room (three numbers for each slot before always suffice).
///
/// # Safety
/// `cache` is from `hotset_cache_new`; `slots` has `slots_count` entries, `moved` room for `moved_room`
/// numbers unless it is null; `moved_count` is null or can be written to.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn hotset_cache_resize(
    cache: *mut Cache,
    slots_count: usize,
    slots: *const u32,
    moved_room: usize,
    moved: *mut u32,
    moved_count: *mut usize,
) -> Status {
    guarded(|| {
        // SAFETY: the caller's promises.
        let (cache, slots) =
            unsafe { (exclusive(cache, "cache")?, array(slots, slots_count, "slots")?) };
        let slots = slots_of(slots, cache.experts.len())?;
        let resized = cache.cache.resize(&slots)?;
        let numbers = resized.moved.iter().flat_map(|moved| [moved.key, moved.from, moved.to]);
        if !moved.is_null() {
            if moved_room < 3 * resized.moved.len() {
                let needed = 3 * resized.moved.len();
                return Err(Failure::invalid(format!("moved: {moved_room} of {needed} numbers")));
            }
            for (place, number) in numbers.enumerate() {
                // SAFETY: there is room for so many.
                unsafe { moved.add(place).write(number) };
            }
        }
        if !moved_count.is_null() {
            // SAFETY: the caller's promise.
            unsafe { moved_count.write(resized.moved.len()) };
        }
        Ok(())
    })
}

/// The slot of an expert whose copy is complete, else HOTSET_NOBODY.
///
/// # Safety
/// `cache` is from `hotset_cache_new`; `slot` can be written to.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn hotset_cache_slot_of(
    cache: *const Cache,
    layer: u32,
    expert: u32,
    slot: *mut u32,
) -> Status {
    guarded(|| {
        // SAFETY: the caller's promises.
        let (cache, slot) = unsafe { (shared(cache, "cache")?, exclusive(slot, "slot")?) };
        let layer = cache.checked(layer, &[expert])?;
        *slot = cache.cache.slot_of(layer, expert).unwrap_or(HOTSET_NOBODY);
        Ok(())
    })
}

/// Layer and expert of a dense key, such as one that was evicted.
///
/// # Safety
/// `cache` is from `hotset_cache_new`; `layer` and `expert` can be written to.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn hotset_cache_expert_of(
    cache: *const Cache,
    key: u32,
    layer: *mut u32,
    expert: *mut u32,
) -> Status {
    guarded(|| {
        // SAFETY: the caller's promises.
        let (cache, layer, expert) = unsafe {
            (shared(cache, "cache")?, exclusive(layer, "layer")?, exclusive(expert, "expert")?)
        };
        let total: u32 = cache.experts.iter().sum();
        if key >= total {
            return Err(Failure::invalid(format!("key {key}: there are 0 to {}", total - 1)));
        }
        let (of_layer, of_expert) = cache.cache.expert_of(key);
        (*layer, *expert) = (of_layer as u32, of_expert);
        Ok(())
    })
}

/// Slots over all pools; 0 for null.
///
/// # Safety
/// `cache` is null or from `hotset_cache_new`.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn hotset_cache_capacity(cache: *const Cache) -> u32 {
    // SAFETY: the caller's promise.
    unsafe { cache.as_ref() }.map_or(0, |cache| cache.cache.capacity())
}

/// Experts that hold a slot, those on their way included; 0 for null.
///
/// # Safety
/// `cache` is null or from `hotset_cache_new`.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn hotset_cache_resident(cache: *const Cache) -> u32 {
    // SAFETY: the caller's promise.
    unsafe { cache.as_ref() }.map_or(0, |cache| cache.cache.resident())
}
