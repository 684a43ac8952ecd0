//! What the cache answers, as arrays.

use hotset_policies::Action;
use numpy::{PyArray1, ToPyArray};
use pyo3::prelude::*;

/// The answer to one event; arrays have an entry for each distinct expert, hits first.
///
/// experts: u32, ids within the layer. slots: u32, slots in the layer's pool. evicted: i64, the dense key
/// of whoever held the slot until now, -1 where nobody did. actions: u8, one of Plan.HIT,
/// Plan.PREFETCH_HIT, Plan.PENDING, Plan.FETCH, Plan.UNPLACED. dropped: u32, dense keys that left
/// without another taking their slot.
#[pyclass(frozen, module = "hotset")]
pub struct Plan {
    experts: Vec<u32>,
    slots: Vec<u32>,
    evicted: Vec<i64>,
    actions: Vec<u8>,
    dropped: Vec<u32>,
    /// Experts that can be used at once.
    #[pyo3(get)]
    hits: u32,
    /// Of the hits, those that a prefetch brought in.
    #[pyo3(get)]
    prefetch_hits: u32,
    /// Experts on their way.
    #[pyo3(get)]
    pending: u32,
    /// Experts to copy.
    #[pyo3(get)]
    fetches: u32,
    /// Experts without a slot.
    #[pyo3(get)]
    unplaced: u32,
    /// Prefetched experts that left before anything asked for them.
    #[pyo3(get)]
    wasted: u32,
    /// Whether the event needs more experts than its pool has slots.
    #[pyo3(get)]
    overflow: bool,
}

impl Plan {
    /// The same, owned.
    pub fn of(plan: &hotset_policies::Plan<'_>) -> Self {
        let placements = plan.placements.iter();
        Self {
            experts: placements.clone().map(|placed| placed.expert).collect(),
            slots: placements.clone().map(|placed| placed.slot).collect(),
            evicted: placements
                .clone()
                .map(|placed| placed.evicted().map_or(-1, i64::from))
                .collect(),
            actions: placements.map(|placed| code(placed.action)).collect(),
            dropped: plan.dropped.to_vec(),
            hits: plan.hits,
            prefetch_hits: plan.prefetch_hits,
            pending: plan.pending,
            fetches: plan.fetches,
            unplaced: plan.unplaced,
            wasted: plan.wasted,
            overflow: plan.overflow,
        }
    }
}

fn code(action: Action) -> u8 {
    match action {
        Action::Hit => Plan::HIT,
        Action::PrefetchHit => Plan::PREFETCH_HIT,
        Action::Pending => Plan::PENDING,
        Action::Fetch => Plan::FETCH,
        Action::Unplaced => Plan::UNPLACED,
    }
}

#[pymethods]
impl Plan {
    #[classattr]
    const HIT: u8 = 0;
    #[classattr]
    const PREFETCH_HIT: u8 = 1;
    #[classattr]
    const PENDING: u8 = 2;
    #[classattr]
    const FETCH: u8 = 3;
    #[classattr]
    const UNPLACED: u8 = 4;

    #[getter]
    fn experts<'py>(&self, py: Python<'py>) -> Bound<'py, PyArray1<u32>> {
        self.experts.to_pyarray(py)
    }

    #[getter]
    fn slots<'py>(&self, py: Python<'py>) -> Bound<'py, PyArray1<u32>> {
        self.slots.to_pyarray(py)
    }

    #[getter]
    fn evicted<'py>(&self, py: Python<'py>) -> Bound<'py, PyArray1<i64>> {
        self.evicted.to_pyarray(py)
    }

    #[getter]
    fn actions<'py>(&self, py: Python<'py>) -> Bound<'py, PyArray1<u8>> {
        self.actions.to_pyarray(py)
    }

    #[getter]
    fn dropped<'py>(&self, py: Python<'py>) -> Bound<'py, PyArray1<u32>> {
        self.dropped.to_pyarray(py)
    }

    /// Experts that were not usable at once: fetched, pending or unplaced.
    #[getter]
    fn misses(&self) -> u32 {
        self.fetches + self.pending + self.unplaced
    }

    fn __len__(&self) -> usize {
        self.experts.len()
    }

    fn __repr__(&self) -> String {
        let Self { hits, fetches, pending, unplaced, .. } = self;
        format!("Plan(hits={hits}, fetches={fetches}, pending={pending}, unplaced={unplaced})")
    }
}
