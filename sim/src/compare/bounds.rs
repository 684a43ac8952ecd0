//! Which bound a row is held against.
//!
//! MIN with forced admission is the optimum of caches that take in whatever they fetch. It is none where a
//! miss may be served without being admitted: for an event that needs more experts than there are slots,
//! for a policy that refuses, for a miss that the host serves. There MIN with bypass is the bound.

use hotset_policies::{AdmissionSpec, Need, PolicySpec, Slots};
use hotset_traces::Phase;

use crate::drive::{EventSink, Way, drive_wide};
use crate::prepare::Preparation;
use crate::size::Size;
use crate::{Prefill, ReplayProgress, Semantics, SimError};

/// Where the bound with bypass is needed.
pub(super) struct Bounds {
    /// Whether that bound can be replayed under this request at all.
    applies: bool,
    /// By policy: it may leave out what it fetches.
    refusing: Vec<bool>,
    /// By size: an event needs more experts than its pool has slots.
    overflowing: Vec<bool>,
}

impl Bounds {
    /// Looks at what the policies and the sizes ask for.
    ///
    /// # Errors
    /// [`SimError::Interrupted`].
    pub fn of(prepared: &Preparation<'_>, progress: &dyn ReplayProgress) -> Result<Self, SimError> {
        let request = prepared.request();
        let serving = &request.serving;
        let served = !serving.misses.fetches_all();
        let refuses = |policy: &PolicySpec| {
            served
                || policy.admission() != AdmissionSpec::Always
                || policy.needs() == Need::Training
                || *policy == PolicySpec::BeladyBypass
        };
        let widest = Widest::of(prepared, progress)?;
        Ok(Self {
            applies: serving.prefill == Prefill::OnDemand && serving.schedule.is_empty(),
            refusing: request.policies.iter().map(|policy| refuses(&policy.value)).collect(),
            overflowing: prepared.sizes().iter().map(|size| widest.exceeds(size)).collect(),
        })
    }

    /// Whether forced admission is no bound for a policy at a size, and bypass can be.
    pub fn is_bypass(&self, policy: usize, size: usize) -> bool {
        self.applies && (self.refusing[policy] || self.overflowing[size])
    }
}

/// The most experts that an event of each layer needs.
struct Widest {
    layers: Vec<u32>,
}

impl Widest {
    fn of(prepared: &Preparation<'_>, progress: &dyn ReplayProgress) -> Result<Self, SimError> {
        let layers = prepared.shape().layers();
        let (trace, steps) = (prepared.trace(), prepared.steps());
        if prepared.request().semantics == Semantics::Sequential {
            return Ok(Self { layers: vec![1; layers.len()] });
        }
        let most = (0..steps.len()).map(|step| steps.places(step).len()).max().unwrap_or(0);
        let possible = layers.iter().map(|layer| {
            let wanted = u64::from(layer.top_k).saturating_mul(most as u64);
            u32::try_from(wanted).unwrap_or(u32::MAX).min(layer.experts)
        });
        let possible = Self { layers: possible.collect() };
        if !prepared.sizes().iter().any(|size| possible.exceeds(size)) {
            return Ok(possible);
        }
        let mut counted = Self { layers: vec![0; layers.len()] };
        let wanted = |phase| prepared.request().phase.wants(phase);
        drive_wide(trace, &Way::new(steps, progress), wanted, &mut counted)?;
        Ok(counted)
    }

    /// Whether an event needs more than its pool has.
    fn exceeds(&self, size: &Size) -> bool {
        match &size.slots {
            Slots::Global(slots) => self.layers.iter().any(|widest| widest > slots),
            Slots::Layer(slots) => {
                self.layers.iter().zip(slots).any(|(widest, slots)| widest > slots)
            }
        }
    }
}

impl EventSink<u16> for Widest {
    const WEIGHTS: bool = false;

    fn begin_step(&mut self, _: usize, _: Phase, _: u32) {}

    fn event(&mut self, layer: usize, experts: &[u16], _: &[f32]) {
        self.layers[layer] = self.layers[layer].max(experts.len() as u32);
    }

    fn end_step(&mut self) {}
}
