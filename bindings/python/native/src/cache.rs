//! `hotset.ExpertCache`: the cache that an engine links, over arrays.

use std::sync::{Arc, Mutex, MutexGuard, TryLockError};

use hotset_policies::{AnyPolicy, Key, PolicySpec, Slots};
use numpy::{PyArray1, ToPyArray};
use pyo3::exceptions::PyTypeError;
use pyo3::prelude::*;

use crate::errors::refused;
use crate::foreign::{self, Failure};
use crate::ids;
use crate::plan::Plan;

/// Bytes that the policies of one cache may take, as for the command line.
const MOST_POLICY_BYTES: u64 = 4 << 30;
/// Experts of one cache, as of one trace.
const MOST_EXPERTS: u64 = 1 << 22;

type Cache = hotset_policies::ExpertCache<AnyPolicy>;

/// A list of keys that left, and one of (key, from slot, to slot) that moved.
type Resized<'py> = (Bound<'py, PyArray1<u32>>, Vec<(u32, u32, u32)>);

/// ExpertCache(experts, top_k, slots, policy='lru', ordered_copies=False)
///
/// experts: experts of each MoE layer, a list. top_k: how many of them a token uses, a list or one
/// number. slots: an int for one pool over all layers, a list for a pool a layer. policy: a name as in
/// `hotset policies`, or a class as in `hotset.compare`. ordered_copies: a fetch counts as complete when
/// it is planned, so `complete` need not be called.
///
/// It decides and copies nothing: `demand` says what is where and what to copy, the engine copies,
/// then calls `complete` and `release`.
#[pyclass(module = "hotset")]
pub struct ExpertCache {
    cache: Mutex<Cache>,
    failure: Arc<Failure>,
    experts: Vec<u32>,
}

/// A number for each layer, or one for all.
fn each(given: &Bound<'_, PyAny>, what: &str, layers: usize) -> PyResult<Vec<u32>> {
    let wrong = || PyTypeError::new_err(format!("{what}: give a whole number or a list of them"));
    let each = match given.extract::<i64>() {
        Ok(one) => vec![one; layers],
        Err(_) => given.extract::<Vec<i64>>().map_err(|_| wrong())?,
    };
    let number = |&number: &i64| {
        u32::try_from(number).map_err(|_| refused(format!("{what}: {number} is no count")))
    };
    each.iter().map(number).collect()
}

fn slots_of(given: &Bound<'_, PyAny>) -> PyResult<Slots> {
    match given.extract::<i64>() {
        Ok(_) => Ok(Slots::Global(each(given, "slots", 1)?[0])),
        Err(_) => Ok(Slots::Layer(each(given, "slots", 0)?)),
    }
}

fn policy_of(given: &Bound<'_, PyAny>, failure: &Arc<Failure>) -> PyResult<PolicySpec> {
    let spec = match given.extract::<String>() {
        Ok(name) => name.parse::<PolicySpec>().map_err(refused)?,
        Err(_) if given.is_callable() => {
            let factory = given.clone().unbind();
            PolicySpec::Given(foreign::given("policy", factory, Arc::clone(failure))?)
        }
        Err(_) => return Err(PyTypeError::new_err("policy: give a name or a class")),
    };
    if !spec.is_online() {
        let name = spec.info().name;
        return Err(refused(format!(
            "policy '{name}' needs the future or a training part, which an engine does not have"
        )));
    }
    Ok(spec)
}

impl ExpertCache {
    fn cache(&self) -> PyResult<MutexGuard<'_, Cache>> {
        match self.cache.try_lock() {
            Ok(cache) => Ok(cache),
            Err(TryLockError::Poisoned(_)) => Err(refused("the cache failed in a call before")),
            Err(TryLockError::WouldBlock) => Err(refused(
                "the cache is in use: by another thread, or by the policy that it is asking",
            )),
        }
    }

    /// Ends with what a policy in Python raised.
    fn checked<T>(&self, done: T) -> PyResult<T> {
        match self.failure.take() {
            Some(raised) => Err(raised),
            None if self.failure.has_happened() => {
                Err(refused("the cache's policy failed in a call before: make another cache"))
            }
            None => Ok(done),
        }
    }

    fn layer(&self, layer: i64) -> PyResult<usize> {
        let layers = self.experts.len();
        let known = usize::try_from(layer).ok().filter(|&layer| layer < layers);
        known.ok_or_else(|| refused(format!("layer {layer}: there are 0 to {}", layers - 1)))
    }

    fn expert(&self, layer: usize, expert: i64) -> PyResult<u32> {
        let experts = self.experts[layer];
        let known = u32::try_from(expert).ok().filter(|&expert| expert < experts);
        known.ok_or_else(|| {
            let last = experts - 1;
            refused(format!("expert {expert}: layer {layer} has experts 0 to {last}"))
        })
    }
}

#[pymethods]
impl ExpertCache {
    #[new]
    #[pyo3(signature = (experts, top_k, slots, policy = None, ordered_copies = false))]
    fn new(
        experts: Vec<u32>,
        top_k: &Bound<'_, PyAny>,
        slots: &Bound<'_, PyAny>,
        policy: Option<&Bound<'_, PyAny>>,
        ordered_copies: bool,
    ) -> PyResult<Self> {
        let total: u64 = experts.iter().map(|&experts| u64::from(experts)).sum();
        if total > MOST_EXPERTS {
            return Err(refused(format!("{total} experts in all; at most {MOST_EXPERTS}")));
        }
        let top_k = each(top_k, "top_k", experts.len())?;
        if top_k.len() != experts.len() {
            let (given, layers) = (top_k.len(), experts.len());
            return Err(refused(format!("top_k has {given} entries for {layers} layers")));
        }
        let slots = slots_of(slots)?;
        let failure = Arc::new(Failure::default());
        let policy = match policy {
            Some(given) => policy_of(given, &failure)?,
            None => "lru".parse().map_err(refused)?,
        };
        let mut built = Vec::new();
        for pool in slots.pools(&experts, &top_k).map_err(refused)? {
            policy.check_memory(&pool, MOST_POLICY_BYTES).map_err(refused)?;
            built.extend(policy.build(&pool));
        }
        let mut built = built.into_iter();
        let next = |_: usize, _: &hotset_policies::PoolShape| {
            built.next().unwrap_or_else(|| unreachable!("one was built for each pool"))
        };
        let mut cache = Cache::new(&experts, &top_k, &slots, next).map_err(refused)?;
        if ordered_copies {
            cache = cache.with_ordered_copies();
        }
        if let Some(raised) = failure.take() {
            return Err(raised);
        }
        Ok(Self { cache: Mutex::new(cache), failure, experts })
    }

    /// demand(layer, experts, weights=None) -> Plan
    ///
    /// What the layer needs now, best rank first; duplicates are one demand. weights: router weights,
    /// one an expert, for policies that read them.
    #[pyo3(signature = (layer, experts, weights = None))]
    fn demand(
        &self,
        layer: i64,
        experts: &Bound<'_, PyAny>,
        weights: Option<&Bound<'_, PyAny>>,
    ) -> PyResult<Plan> {
        let layer = self.layer(layer)?;
        let experts = ids::read(experts, layer, self.experts[layer])?;
        let weights = ids::weights(weights, experts.len())?;
        let plan = Plan::of(&self.cache()?.demand_weighted(layer, &experts, &weights));
        self.checked(plan)
    }

    /// prefetch(layer, experts) -> Plan
    ///
    /// Brings in what the layer is predicted to need, in this order.
    fn prefetch(&self, layer: i64, experts: &Bound<'_, PyAny>) -> PyResult<Plan> {
        let layer = self.layer(layer)?;
        let experts = ids::read(experts, layer, self.experts[layer])?;
        let plan = Plan::of(&self.cache()?.prefetch(layer, &experts));
        self.checked(plan)
    }

    /// complete(layer, expert) -> bool
    ///
    /// The copy of an expert, or of each of an array, is complete. Whether any was in flight.
    fn complete(&self, layer: i64, expert: &Bound<'_, PyAny>) -> PyResult<bool> {
        let layer = self.layer(layer)?;
        let experts = match expert.extract::<i64>() {
            Ok(one) => vec![self.expert(layer, one)?],
            Err(_) => ids::read(expert, layer, self.experts[layer])?,
        };
        let mut cache = self.cache()?;
        Ok(experts.iter().fold(false, |any, &expert| cache.complete(layer, expert) | any))
    }

    /// release(layer): its experts have been used, their slots may be given away again.
    fn release(&self, layer: i64) -> PyResult<()> {
        let layer = self.layer(layer)?;
        self.cache()?.release(layer);
        Ok(())
    }

    /// begin_step(tokens): a step over so many tokens begins.
    fn begin_step(&self, tokens: u32) -> PyResult<()> {
        self.cache()?.begin_step(tokens);
        self.checked(())
    }

    /// resize(slots) -> (evicted, moved)
    ///
    /// Gives or takes slots while the cache is in use. evicted: u32, dense keys that left. moved: a
    /// list of (key, from slot, to slot) to copy before the old slots go away.
    fn resize<'py>(&self, py: Python<'py>, slots: &Bound<'py, PyAny>) -> PyResult<Resized<'py>> {
        let slots = slots_of(slots)?;
        let resized = self.cache()?.resize(&slots).map_err(refused)?;
        let resized = self.checked(resized)?;
        let moved = resized.moved.iter().map(|moved| (moved.key, moved.from, moved.to)).collect();
        Ok((resized.evicted.to_pyarray(py), moved))
    }

    /// slot_of(layer, expert): its slot once its copy is complete, else None.
    fn slot_of(&self, layer: i64, expert: i64) -> PyResult<Option<u32>> {
        let layer = self.layer(layer)?;
        let expert = self.expert(layer, expert)?;
        Ok(self.cache()?.slot_of(layer, expert))
    }

    /// expert_of(key): layer and expert of a dense key.
    fn expert_of(&self, key: i64) -> PyResult<(usize, u32)> {
        let total: u32 = self.experts.iter().sum();
        let known = Key::try_from(key).ok().filter(|&key| key < total);
        let key =
            known.ok_or_else(|| refused(format!("key {key}: there are 0 to {}", total - 1)))?;
        Ok(self.cache()?.expert_of(key))
    }

    /// The dense keys of all that hold a slot, u32, ascending.
    fn residents<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyArray1<u32>>> {
        let residents: Vec<u32> = self.cache()?.residents().collect();
        Ok(residents.to_pyarray(py))
    }

    /// Slots over all pools.
    #[getter]
    fn capacity(&self) -> PyResult<u32> {
        Ok(self.cache()?.capacity())
    }

    /// Experts that hold a slot, those on their way included.
    #[getter]
    fn resident(&self) -> PyResult<u32> {
        Ok(self.cache()?.resident())
    }

    /// Experts of each layer.
    #[getter]
    fn experts(&self) -> Vec<u32> {
        self.experts.clone()
    }

    fn __repr__(&self) -> PyResult<String> {
        let cache = self.cache()?;
        let (layers, resident, capacity) = (cache.layers(), cache.resident(), cache.capacity());
        Ok(format!("ExpertCache(layers={layers}, resident={resident}, capacity={capacity})"))
    }
}
