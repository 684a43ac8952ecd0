//! How an engine serves prefill from, or past, the cache that decode uses.

use std::str::FromStr;

use hotset_policies::{Action, CacheError, ExpertCache, Plan, Policy, Slots};
use hotset_traces::{Phase, Shape};
use serde::{Deserialize, Serialize};

use crate::SimError;

/// What a prefill step does with the cache.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Prefill {
    /// As decode does: misses are fetched and admitted.
    #[default]
    OnDemand,
    /// Residents are used but not touched; misses go through a transient buffer and are not
    /// admitted. The cache stays as it was.
    Bypass,
    /// Whole layers stream through two buffers borrowed from slots `0..2E` (E: experts of the
    /// widest layer), as FreeToken does: the next layer's experts are all copied while a layer
    /// runs, whoever is resident. The borrowed slots are empty afterwards.
    Streamed,
}

impl Prefill {
    /// All modes.
    pub const ALL: [Self; 3] = [Self::OnDemand, Self::Bypass, Self::Streamed];

    /// Its name on the command line and in results.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::OnDemand => "on-demand",
            Self::Bypass => "bypass",
            Self::Streamed => "streamed",
        }
    }

    /// The slots that the two buffers of a streamed prefill take.
    ///
    /// # Errors
    /// There is no pool over all layers, or it has fewer slots.
    pub fn borrowed(shape: &Shape, slots: &Slots) -> Result<u32, SimError> {
        let needed = shape.max_experts().saturating_mul(2);
        match slots {
            Slots::Global(slots) if *slots >= needed => Ok(needed),
            Slots::Global(slots) => Err(SimError::NoRoomToStream { needed, slots: *slots }),
            Slots::Layer(_) => Err(SimError::StreamedNeedsGlobal),
        }
    }
}

impl FromStr for Prefill {
    type Err = SimError;

    fn from_str(text: &str) -> Result<Self, SimError> {
        let named = Self::ALL.into_iter().find(|mode| mode.name() == text);
        named.ok_or_else(|| SimError::PrefillText { text: text.to_owned() })
    }
}

/// How one run serves its prefill steps, and what that did to the slots.
pub(crate) struct PrefillService {
    mode: Prefill,
    /// Slots that a streamed prefill borrows.
    borrowed: u32,
    experts: Vec<u32>,
    bases: Vec<u32>,
    /// Whose experts a streamed prefill overwrote, by dense key; empty in the other modes.
    overwritten: Vec<bool>,
}

/// An event that went past the cache.
#[derive(Debug, Clone, Copy)]
pub(crate) struct PassedBy {
    /// Experts that were resident and used.
    pub hits: u32,
    /// Experts that were copied.
    pub copies: u32,
    /// Of those, through the transient buffer.
    pub unplaced: u32,
}

impl PrefillService {
    /// # Errors
    /// As [`Prefill::borrowed`], where slots are borrowed.
    pub fn new(mode: Prefill, shape: &Shape, slots: &Slots) -> Result<Self, SimError> {
        let (borrowed, keys) = match mode {
            Prefill::Streamed => (Prefill::borrowed(shape, slots)?, shape.total_experts()),
            Prefill::OnDemand | Prefill::Bypass => (0, 0),
        };
        Ok(Self {
            mode,
            borrowed,
            experts: shape.layers().iter().map(|layer| layer.experts).collect(),
            bases: (0..shape.layers().len()).map(|layer| shape.key_base(layer)).collect(),
            overwritten: vec![false; keys as usize],
        })
    }

    /// Whether the steps of a phase go past the cache.
    #[inline(always)]
    pub fn passes_by(&self, phase: Phase) -> bool {
        phase == Phase::Prefill && self.mode != Prefill::OnDemand
    }

    /// Whether whole layers stream.
    pub fn streams(&self) -> bool {
        self.mode == Prefill::Streamed
    }

    /// A step that goes past the cache begins: a streamed one takes its slots.
    pub fn begin_step<P: Policy>(&mut self, cache: &mut ExpertCache<P>) -> Result<(), CacheError> {
        if self.streams() {
            let keys = cache.invalidate(0, 0..self.borrowed.min(cache.capacity()))?;
            keys.iter().for_each(|&key| self.overwritten[key as usize] = true);
        }
        Ok(())
    }

    /// What an event that goes past the cache uses and copies.
    pub fn pass_by<P: Policy>(
        &self,
        cache: &ExpertCache<P>,
        layer: usize,
        experts: &[u16],
    ) -> PassedBy {
        if self.streams() {
            return PassedBy { hits: 0, copies: self.experts[layer], unplaced: 0 };
        }
        let there = |e: &&u16| cache.slot_of(layer, u32::from(**e)).is_some();
        let hits = experts.iter().filter(there).count() as u32;
        let copies = experts.len() as u32 - hits;
        PassedBy { hits, copies, unplaced: copies }
    }

    /// How many of a plan's fetches bring back what a streamed prefill overwrote.
    #[inline(always)]
    pub fn refetches(&mut self, layer: usize, plan: &Plan<'_>) -> u64 {
        if self.overwritten.is_empty() {
            return 0;
        }
        let (base, overwritten) = (self.bases[layer], &mut self.overwritten);
        let fetched = plan.placements.iter().filter(|p| p.action == Action::Fetch);
        let again = |key: u32| u64::from(std::mem::take(&mut overwritten[key as usize]));
        fetched.map(|placement| base + placement.expert).map(again).sum()
    }
}
