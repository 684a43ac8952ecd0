//! The recorded future that bounds are built from, made once for all capacities.

use std::sync::{Arc, OnceLock};

use hotset_policies::{Future, Key};
use hotset_traces::{Phase, Trace};

use crate::drive::{EventSink, Way, drive_wide};
use crate::{PhaseFilter, Prefill, Scope, Semantics, SimError, Steps};

/// The stream of accesses of each pool, in the order in which a replay makes them.
pub struct Futures<'a> {
    trace: &'a Trace,
    steps: &'a Steps,
    semantics: Semantics,
    phase: PhaseFilter,
    prefill: Prefill,
    global: OnceLock<Option<Arc<[Arc<Future>]>>>,
    layer: OnceLock<Option<Arc<[Arc<Future>]>>>,
}

impl<'a> Futures<'a> {
    /// The future of a replay of the steps that `phase` picks under `semantics`. Nothing is
    /// read before it is asked for.
    #[must_use]
    pub fn new(
        trace: &'a Trace,
        steps: &'a Steps,
        semantics: Semantics,
        phase: PhaseFilter,
    ) -> Self {
        let (global, layer) = (OnceLock::new(), OnceLock::new());
        Self { trace, steps, semantics, phase, prefill: Prefill::OnDemand, global, layer }
    }

    /// Of a replay whose prefill is served so: what goes past the cache is not in its future.
    #[must_use]
    pub fn with_prefill(mut self, prefill: Prefill) -> Self {
        self.prefill = prefill;
        self
    }

    /// One stream a pool: one in global scope, one a layer in layer scope. Memory: 8 bytes an
    /// access, kept until this is dropped.
    ///
    /// # Errors
    /// A stream has more accesses than positions of 32 bits can number.
    pub fn of(&self, scope: Scope) -> Result<Arc<[Arc<Future>]>, SimError> {
        let cell = match scope {
            Scope::Global => &self.global,
            Scope::Layer | Scope::Adaptive => &self.layer,
        };
        cell.get_or_init(|| self.read(scope))
            .clone()
            .ok_or(SimError::TooLongForBound { bound: "belady" })
    }

    fn read(&self, scope: Scope) -> Option<Arc<[Arc<Future>]>> {
        let shape = self.trace.shape();
        let layers = shape.layers().len();
        let (bases, keys): (Vec<Key>, Vec<u32>) = match scope {
            Scope::Global => {
                ((0..layers).map(|l| shape.key_base(l)).collect(), vec![shape.total_experts()])
            }
            Scope::Layer | Scope::Adaptive => {
                (vec![0; layers], shape.layers().iter().map(|layer| layer.experts).collect())
            }
        };
        // Nearly right where all phases are wanted, so that the streams are not copied to grow.
        let accesses = match self.phase {
            PhaseFilter::All => self.trace.ids().len() / keys.len(),
            PhaseFilter::Prefill | PhaseFilter::Decode | PhaseFilter::Verify => 0,
        };
        let pools = keys.iter().map(|_| Vec::with_capacity(accesses)).collect();
        let mut streams = Streams { bases, pools };
        let cached = |phase| phase != Phase::Prefill || self.prefill == Prefill::OnDemand;
        let wanted = |phase| self.phase.wants(phase) && cached(phase);
        match self.semantics {
            Semantics::Event => {
                let way = Way::new(self.steps, &());
                // Nobody asks it to stop.
                let _ = drive_wide(self.trace, &way, wanted, &mut streams);
            }
            Semantics::Sequential => {
                let (ids, row_len) = (self.trace.ids(), shape.row_len());
                for row in (0..self.trace.tokens()).filter(|&row| wanted(self.trace.phase(row))) {
                    for (layer, layer_shape) in shape.layers().iter().enumerate() {
                        let start = row * row_len + shape.row_offset(layer);
                        let end = start + layer_shape.top_k as usize;
                        streams.add(layer, ids.slice(start..end).iter());
                    }
                }
            }
        }
        streams
            .pools
            .into_iter()
            .zip(keys)
            .map(|(accesses, keys)| Future::new(accesses, keys).map(Arc::new))
            .collect()
    }
}

struct Streams {
    bases: Vec<Key>,
    pools: Vec<Vec<Key>>,
}

impl Streams {
    fn add(&mut self, layer: usize, experts: impl Iterator<Item = u32>) {
        let base = self.bases[layer];
        let pool = if self.pools.len() == 1 { 0 } else { layer };
        self.pools[pool].extend(experts.map(|expert| base + expert));
    }
}

impl EventSink<u16> for Streams {
    const WEIGHTS: bool = false;

    fn begin_step(&mut self, _: usize, _: Phase, _: u32) {}

    fn event(&mut self, layer: usize, experts: &[u16], _: &[f32]) {
        self.add(layer, experts.iter().map(|&expert| u32::from(expert)));
    }

    fn end_step(&mut self) {}
}
