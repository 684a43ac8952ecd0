//! A policy written in Python, as the cache drives every other.
//!
//! Who is resident is kept here, so that a lookup calls nothing. Hits and admissions are collected and
//! told in order before anything is asked, so that the GIL is taken once for several of them. What
//! Python answers is checked before it is believed: a policy that raises, or evicts what is not
//! there, ends the run with an exception that says in which call, step and layer.

use std::collections::HashMap;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError};

use hotset_policies::{
    AnyPolicy, Event, GivenPolicy, Key, Need, Occupancy, Policy, PolicyInfo, PoolShape,
};
use pyo3::exceptions::PyTypeError;
use pyo3::prelude::*;
use pyo3::types::PyTuple;

use crate::errors::{HotsetError, refused};

/// Calls that are collected before they are told.
const MOST_COLLECTED: usize = 4096;

/// The first thing that went wrong in a policy.
#[derive(Default)]
pub struct Failure {
    happened: AtomicBool,
    raised: Mutex<Option<PyErr>>,
}

impl Failure {
    /// Whether anything went wrong.
    pub fn has_happened(&self) -> bool {
        self.happened.load(Ordering::Relaxed)
    }

    /// What went wrong, once.
    pub fn take(&self) -> Option<PyErr> {
        self.raised.lock().unwrap_or_else(PoisonError::into_inner).take()
    }

    fn note(&self, raised: PyErr) {
        let mut first = self.raised.lock().unwrap_or_else(PoisonError::into_inner);
        if !self.happened.swap(true, Ordering::Relaxed) {
            *first = Some(raised);
        }
    }
}

/// What a policy is built for: `Policy(pool)`.
///
/// capacity: slots; keys: experts that can ask for one, 0 to keys - 1; layer_bases: the first key of each
/// layer in the pool; keys_per_token: experts that a token uses over all of the pool's layers.
#[pyclass(frozen, module = "hotset", from_py_object)]
#[derive(Clone)]
pub struct Pool {
    shape: PoolShape,
}

#[pymethods]
impl Pool {
    #[new]
    #[pyo3(signature = (capacity, keys, layer_bases = vec![0], keys_per_token = 1))]
    fn new(capacity: u32, keys: u32, layer_bases: Vec<u32>, keys_per_token: u32) -> Self {
        Self { shape: PoolShape { capacity, keys, layer_bases, keys_per_token } }
    }

    #[getter]
    fn capacity(&self) -> u32 {
        self.shape.capacity
    }

    #[getter]
    fn keys(&self) -> u32 {
        self.shape.keys
    }

    #[getter]
    fn layer_bases(&self) -> Vec<u32> {
        self.shape.layer_bases.clone()
    }

    #[getter]
    fn keys_per_token(&self) -> u32 {
        self.shape.keys_per_token
    }

    fn __repr__(&self) -> String {
        let Self { shape } = self;
        format!("Pool(capacity={}, keys={}, layers={})", shape.capacity, shape.keys, shape.layers())
    }
}

/// The description under which a policy of this name goes; kept for good, once for each name.
fn info(name: &str) -> &'static PolicyInfo {
    static KNOWN: Mutex<Option<HashMap<String, &'static PolicyInfo>>> = Mutex::new(None);
    let mut known = KNOWN.lock().unwrap_or_else(PoisonError::into_inner);
    known.get_or_insert_default().entry(name.to_owned()).or_insert_with(|| {
        Box::leak(Box::new(PolicyInfo {
            name: Box::leak(name.to_owned().into_boxed_str()),
            summary: "a policy in Python",
            definition: "As its class says.",
            source: "the caller",
            needs: Need::Nothing,
            parameters: &[],
        }))
    })
}

/// The policy that `factory(pool)` makes for each pool.
///
/// # Errors
/// A name that a list of policies cannot have.
pub fn given(name: &str, factory: Py<PyAny>, failure: Arc<Failure>) -> PyResult<GivenPolicy> {
    let plain = |c: char| c.is_alphanumeric() || c == '-' || c == '_';
    if name.is_empty() || !name.chars().all(plain) {
        return Err(refused(format!(
            "policy name '{name}': letters, digits, - and _ alone (set the class's `name`)"
        )));
    }
    let info = info(name);
    Ok(GivenPolicy::new(info, move |pool| {
        AnyPolicy::new(Python::attach(|py| Foreign::new(py, info.name, &factory, pool, &failure)))
    }))
}

/// What Python has not been told yet.
#[derive(Clone, Copy)]
enum Told {
    Hit(Key),
    Admit(Key),
    Left(Key),
}

struct Methods {
    hit: Py<PyAny>,
    admit: Py<PyAny>,
    evict: Py<PyAny>,
    left: Option<Py<PyAny>>,
    event: Option<Py<PyAny>>,
    step: Option<Py<PyAny>>,
}

struct Foreign {
    name: &'static str,
    /// `None` where it could not be made, or something went wrong since.
    methods: Option<Methods>,
    failure: Arc<Failure>,
    slots: Occupancy,
    resident: Vec<bool>,
    told: Vec<Told>,
    bases: Vec<Key>,
    /// The arguments of a call with each key, made when first needed.
    arguments: Vec<Option<Py<PyTuple>>>,
    steps: u64,
    layer: u32,
}

impl Foreign {
    fn new(
        py: Python<'_>,
        name: &'static str,
        factory: &Py<PyAny>,
        pool: &PoolShape,
        failure: &Arc<Failure>,
    ) -> Self {
        let made = methods(py, name, factory, pool);
        let methods = match made {
            Ok(methods) => Some(methods),
            Err(raised) => {
                failure.note(raised);
                None
            }
        };
        Self {
            name,
            methods,
            failure: Arc::clone(failure),
            slots: Occupancy::new(pool.capacity),
            resident: vec![false; pool.keys as usize],
            told: Vec::with_capacity(MOST_COLLECTED),
            bases: pool.layer_bases.clone(),
            arguments: (0..pool.keys).map(|_| None).collect(),
            steps: 0,
            layer: 0,
        }
    }

    /// Ends the policy: from here on victims are taken in the order of their keys, until the run stops.
    fn fail(&mut self, raised: PyErr) {
        self.methods = None;
        self.told.clear();
        self.failure.note(raised);
    }

    fn at(&self) -> String {
        format!("step {}, layer {}", self.steps.saturating_sub(1), self.layer)
    }

    fn expert(&self, key: Key) -> String {
        let layer = self.bases.partition_point(|&base| base <= key).saturating_sub(1);
        format!("key {key} (expert {} of layer {layer})", key - self.bases[layer])
    }

    /// What was raised in `call`, with where.
    fn raised(&self, py: Python<'_>, call: &str, raised: PyErr) -> PyErr {
        let kind =
            raised.get_type(py).name().map_or_else(|_| String::new(), |name| name.to_string());
        let (policy, at, value) = (self.name, self.at(), raised.value(py));
        let text = format!("policy '{policy}' raised {kind} in {call} ({at}): {value}");
        let error = HotsetError::new_err(text);
        error.set_cause(py, Some(raised));
        error
    }

    fn collect(&mut self, told: Told) {
        if self.methods.is_none() {
            return;
        }
        self.told.push(told);
        if self.told.len() == MOST_COLLECTED {
            Python::attach(|py| self.tell(py));
        }
    }

    /// Tells Python what it has not been told.
    fn tell(&mut self, py: Python<'_>) {
        let Some(methods) = &self.methods else { return };
        let mut told = std::mem::take(&mut self.told);
        let mut failed = None;
        for &one in &told {
            let (method, call, key) = match one {
                Told::Hit(key) => (&methods.hit, "hit", key),
                Told::Admit(key) => (&methods.admit, "admit", key),
                Told::Left(key) => match &methods.left {
                    Some(left) => (left, "left", key),
                    None => continue,
                },
            };
            let arguments = &mut self.arguments[key as usize];
            let arguments = match arguments {
                Some(arguments) => arguments,
                None => match PyTuple::new(py, [key]) {
                    Ok(made) => arguments.insert(made.unbind()),
                    Err(raised) => {
                        failed = Some((call, key, raised));
                        break;
                    }
                },
            };
            if let Err(raised) = method.bind(py).call1(arguments.bind(py)) {
                failed = Some((call, key, raised));
                break;
            }
        }
        told.clear();
        self.told = told;
        if let Some((call, key, raised)) = failed {
            let error = self.raised(py, &format!("{call}({key})"), raised);
            self.fail(error);
        }
    }

    /// Whom Python evicts; `None`: it keeps all.
    fn victim(
        &mut self,
        py: Python<'_>,
        may_leave: &impl Fn(Key) -> bool,
    ) -> PyResult<Option<Key>> {
        let Some(methods) = &self.methods else { return Ok(None) };
        let answer = methods.evict.bind(py).call0();
        let answer = answer.map_err(|raised| self.raised(py, "evict()", raised))?;
        if answer.is_none() {
            return Ok(None);
        }
        if let Ok(key) = answer.extract::<i64>() {
            let key = self.known(key)?;
            if may_leave(key) {
                return Ok(Some(key));
            }
            return Err(refused(format!(
                "policy '{}': evict() gave {} ({}), which may not leave now (the running event, a \
                 prediction or a copy needs it): give an iterable of keys in the order in which \
                 they should leave, and the first that may leave does",
                self.name,
                self.expert(key),
                self.at(),
            )));
        }
        let keys = answer.try_iter().map_err(|_| {
            let kind = answer.get_type().name().map_or_else(|_| "it".to_owned(), |n| n.to_string());
            let (name, at) = (self.name, self.at());
            PyTypeError::new_err(format!(
                "policy '{name}': evict() gave a {kind} ({at}); give a key, an iterable of keys or None"
            ))
        })?;
        for key in keys {
            let key = key.map_err(|raised| self.raised(py, "evict()", raised))?;
            let number =
                key.extract::<i64>().map_err(|raised| self.raised(py, "evict()", raised))?;
            let key = self.known(number)?;
            if may_leave(key) {
                return Ok(Some(key));
            }
        }
        Ok(None)
    }

    /// A key that is resident.
    fn known(&self, key: i64) -> PyResult<Key> {
        let (name, at) = (self.name, self.at());
        let known = Key::try_from(key).ok().filter(|&key| (key as usize) < self.resident.len());
        match known {
            None => Err(refused(format!(
                "policy '{name}': evict() gave {key} ({at}); keys are 0 to {}",
                self.resident.len().saturating_sub(1)
            ))),
            Some(key) if !self.resident[key as usize] => Err(refused(format!(
                "policy '{name}': evict() gave {} ({at}), which is not resident",
                self.expert(key)
            ))),
            Some(key) => Ok(key),
        }
    }
}

fn methods(py: Python<'_>, name: &str, factory: &Py<PyAny>, pool: &PoolShape) -> PyResult<Methods> {
    let made = factory.bind(py).call1((Pool { shape: pool.clone() },)).map_err(|raised| {
        let kind =
            raised.get_type(py).name().map_or_else(|_| String::new(), |name| name.to_string());
        let text = format!("policy '{name}' raised {kind} when it was made: {}", raised.value(py));
        let error = HotsetError::new_err(text);
        error.set_cause(py, Some(raised));
        error
    })?;
    let optional = |method: &str| made.getattr(method).ok().map(Bound::unbind);
    let needed = |method: &str| {
        optional(method).ok_or_else(|| {
            PyTypeError::new_err(format!(
                "policy '{name}' has no method '{method}': it needs hit(key), admit(key) and evict()"
            ))
        })
    };
    Ok(Methods {
        hit: needed("hit")?,
        admit: needed("admit")?,
        evict: needed("evict")?,
        left: optional("left"),
        event: optional("event"),
        step: optional("step"),
    })
}

impl Policy for Foreign {
    const OBSERVES: bool = true;

    fn slots(&self) -> &Occupancy {
        &self.slots
    }

    fn slots_mut(&mut self) -> &mut Occupancy {
        &mut self.slots
    }

    fn contains(&self, key: Key) -> bool {
        self.resident[key as usize]
    }

    fn hit(&mut self, key: Key) {
        self.collect(Told::Hit(key));
    }

    fn enter(&mut self, key: Key) {
        self.resident[key as usize] = true;
        self.collect(Told::Admit(key));
    }

    fn pop(&mut self, may_leave: impl Fn(Key) -> bool) -> Option<Key> {
        let asked = self.methods.is_some().then(|| {
            Python::attach(|py| {
                self.tell(py);
                self.victim(py, &may_leave)
            })
        });
        let victim = match asked {
            Some(Ok(victim)) if self.methods.is_some() => victim,
            Some(Err(raised)) => {
                self.fail(raised);
                None
            }
            _ => None,
        };
        let victim = if self.methods.is_some() {
            victim
        } else {
            (0..self.resident.len() as Key)
                .find(|&key| self.resident[key as usize] && may_leave(key))
        }?;
        self.resident[victim as usize] = false;
        self.collect(Told::Left(victim));
        Some(victim)
    }

    fn discard(&mut self, key: Key) {
        self.resident[key as usize] = false;
        self.collect(Told::Left(key));
    }

    fn validate(&self) -> Result<(), String> {
        self.slots.agree_with(self.resident.iter().filter(|&&resident| resident).count() as u32)
    }

    fn begin_step(&mut self, tokens: u32) {
        self.steps += 1;
        let Some(Methods { step: Some(_), .. }) = &self.methods else { return };
        Python::attach(|py| {
            self.tell(py);
            let Some(Methods { step: Some(step), .. }) = &self.methods else { return };
            if let Err(raised) = step.bind(py).call1((tokens,)) {
                let error = self.raised(py, &format!("step({tokens})"), raised);
                self.fail(error);
            }
        });
    }

    fn begin_event(&mut self, event: &Event<'_>) {
        self.layer = event.layer;
        let Some(Methods { event: Some(_), .. }) = &self.methods else { return };
        Python::attach(|py| {
            self.tell(py);
            let Some(Methods { event: Some(method), .. }) = &self.methods else { return };
            let (layer, keys, weights) = (event.layer, event.keys.to_vec(), event.weights.to_vec());
            if let Err(raised) = method.bind(py).call1((layer, keys, weights)) {
                let error = self.raised(py, &format!("event({layer}, ...)"), raised);
                self.fail(error);
            }
        });
    }
}

impl Drop for Foreign {
    /// The last calls are told too: what they raise counts.
    fn drop(&mut self) {
        if self.methods.is_some() && !self.told.is_empty() {
            Python::attach(|py| self.tell(py));
        }
    }
}
